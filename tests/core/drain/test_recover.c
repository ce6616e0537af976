/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "core/record/scratch.h"
#include "drain/dead_ring.h"
#include "drain/recover.h"
#include "ring/emit_inl.h"
#include "ring/gate.h"
#include "ring/ring_view.h"

#define ROUNDS 3000
#define FIRST  10 /* polls of a recorder before */

static void pause_ms(long ms)
{
	const struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

static void record_polls(int rounds)
{
	struct d9__slot *slot = d9__slot_self();
	uint32_t loc = d9__name_intern("here", 4);

	for (int i = 0; i < rounds; i++) {
		d9__emit_poll_start(slot, d9__slot_now(slot), 0, 0, 4, loc);
		d9__emit_poll_end(slot, d9__slot_now(slot), 0);
	}
}

/* A process that records ROUNDS polls twice, |pause| ms between and after, and is killed. */
static void die_recording(long pause)
{
	struct d9_options *options = scratch_options();
	int status;
	pid_t pid;

	d9_options_set_service(options, "test-recover");
	pid = fork();
	if (!pid) {
		struct d9_recorder *recorder;

		if (d9_recorder_start(options, &recorder))
			_exit(1);
		record_polls(ROUNDS);
		pause_ms(pause);
		record_polls(ROUNDS);
		pause_ms(pause);
		kill(getpid(), SIGKILL);
	}
	d9_options_free(options);
	CU_ASSERT_EQUAL_FATAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_FATAL(WIFSIGNALED(status));
}

static unsigned recover_all(struct d9__recovered *last)
{
	struct d9__recover walk;
	unsigned n = 0;

	CU_ASSERT_EQUAL_FATAL(d9__recover_begin(&walk, scratch_dir, D9__RECOVER_WAIT), 0);
	while (d9__recover_next(&walk, last) == 1)
		n++;
	d9__recover_end(&walk);
	return n;
}

static void check_everything_is_there_once(long pause)
{
	struct d9__recovered found = { 0 };

	die_recording(pause);

	CU_ASSERT_EQUAL(recover_all(&found), 1);
	CU_ASSERT_EQUAL(found.err, 0);
	CU_ASSERT_EQUAL(found.lost, 0);
	CU_ASSERT_EQUAL(scratch_count("PollStartEvent"), 2 * ROUNDS);
	CU_ASSERT_EQUAL(scratch_count("PollEndEvent"), 2 * ROUNDS);
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, ".active"), 0);
	CU_ASSERT_EQUAL(recover_all(&found), 0);
}

static void test_ring_of_a_process_killed_at_once_is_recovered_whole(void)
{
	check_everything_is_there_once(0);
}

static void test_ring_of_which_part_was_written_is_continued(void)
{
	check_everything_is_there_once(600);
	check_everything_is_there_once(1300);
}

/* A process that is killed in a callback, or right behind one; some ticks of its recorder later, which may be off. */
static void die_in_callback(bool inside, bool off)
{
	struct d9_options *options = scratch_options();
	int status;
	pid_t pid;

	d9_options_set_service(options, "test-recover");
	pid = fork();
	if (!pid) {
		struct d9__slot *slot;
		uint64_t last_ns;

		if (d9_recorder_start(options, NULL))
			_exit(1);
		record_polls(10);
		slot = d9__slot_self();
		if (inside)
			d9__emit_poll_start(slot, d9__slot_now(slot), 0, 0, 4, d9__name_intern("here", 4));
		last_ns = slot->last_ns;
		if (off)
			d9_disable();
		while (*(volatile uint64_t *)&d9__ring.health->tick_ns < last_ns + UINT64_C(50000000))
			pause_ms(1);
		kill(getpid(), SIGKILL);
	}
	d9_options_free(options);
	CU_ASSERT_EQUAL_FATAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_FATAL(WIFSIGNALED(status));
}

static void test_callback_that_was_open_when_the_process_died_was_so_at_its_last_tick(void)
{
	struct d9__recovered found = { 0 };

	die_in_callback(false, false);
	CU_ASSERT_EQUAL(recover_all(&found), 1);
	CU_ASSERT_EQUAL(scratch_count("LastSignEvent"), 0);
	die_in_callback(true, false);
	CU_ASSERT_EQUAL(recover_all(&found), 1);
	CU_ASSERT_EQUAL(found.err, 0);
	CU_ASSERT_EQUAL(scratch_count("LastSignEvent"), 1);
}

static void test_callback_in_which_recording_was_switched_off_may_have_returned(void)
{
	struct d9__recovered found = { 0 };

	die_in_callback(true, true);
	CU_ASSERT_EQUAL(recover_all(&found), 1);
	CU_ASSERT_EQUAL(scratch_count("LastSignEvent"), 0);
}

/* In a child: what the program opens stays its own, whatever its number. */
static void restart(struct d9_options *options)
{
	int fds[8], open_after = 0;

	if (d9_recorder_stop(d9_recorder_running(), 5000))
		_exit(2);
	for (int i = 0; i < 8; i++)
		fds[i] = open("/dev/null", O_RDONLY);
	if (d9_recorder_start(options, NULL))
		_exit(3);
	for (int i = 0; i < 8; i++)
		open_after += fcntl(fds[i], F_GETFD) >= 0;
	if (open_after != 8)
		_exit(4);
}

static void check_killed_after_a_restart(enum d9_ring ring)
{
	struct d9_options *options = scratch_options();
	struct d9__recovered found = { 0 };
	uint64_t before = scratch_count("PollStartEvent");
	char missing[PATH_MAX + 8];
	int status;
	pid_t pid;

	snprintf(missing, sizeof(missing), "%s/a/b", scratch_dir);
	pid = fork();
	if (!pid) {
		d9_options_set_ring(options, ring);
		/* The first one's traces go elsewhere; nothing is there yet. */
		d9_options_set_trace_dir(options, missing);
		if (d9_recorder_start(options, NULL) ||
		    d9__ring.header->kind != (ring == D9_RING_DISK ? D9__RING_DISK : D9__RING_SHM))
			_exit(1);
		record_polls(FIRST);
		d9_options_set_trace_dir(options, scratch_dir);
		restart(options);
		record_polls(ROUNDS);
		kill(getpid(), SIGKILL);
	}
	d9_options_free(options);
	CU_ASSERT_EQUAL_FATAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_FATAL(WIFSIGNALED(status));

	CU_ASSERT_EQUAL(recover_all(&found), 1);
	CU_ASSERT_EQUAL(found.err, 0);
	/* A part may have been written before it was killed. */
	CU_ASSERT_EQUAL(scratch_count("PollStartEvent") - before, FIRST + ROUNDS);
	CU_ASSERT_EQUAL(recover_all(&found), 0);
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, "ring"), 0);
}

static void test_ring_of_a_recorder_that_was_started_again_is_recovered(void)
{
	check_killed_after_a_restart(D9_RING_SHM);
	check_killed_after_a_restart(D9_RING_DISK);
}

static void test_ring_of_a_living_process_is_not_touched(void)
{
	struct d9_recorder *recorder = scratch_start(scratch_options());
	struct d9__recovered found;

	record_polls(10);
	CU_ASSERT_EQUAL(recover_all(&found), 0);
	CU_ASSERT_EQUAL(access(d9__ring.path, F_OK), 0);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);
}

/* The ring of the process that died last, in memory; its name is removed. */
static uint8_t *steal_ring(size_t *size)
{
	struct d9__recover walk;
	struct d9__dead_ring ring;
	uint8_t *bytes = NULL;
	struct stat st;

	CU_ASSERT_EQUAL_FATAL(d9__recover_begin(&walk, scratch_dir, D9__RECOVER_WAIT), 0);
	for (size_t i = 0; !bytes && i < walk.n_rings; i++) {
		if (d9__dead_ring_open(&ring, walk.rings[i]))
			continue;
		if (!strcmp(ring.header.trace_dir, scratch_dir)) {
			CU_ASSERT_EQUAL_FATAL(fstat(ring.fd, &st), 0);
			*size = (size_t)st.st_size;
			bytes = malloc(*size);
			CU_ASSERT_EQUAL(pread(ring.fd, bytes, *size, 0), st.st_size);
			d9__dead_ring_unlink(&ring);
		}
		d9__dead_ring_close(&ring);
	}
	d9__recover_end(&walk);
	CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
	return bytes;
}

/* Recovery of a ring with |len| bytes at |at| replaced ends cleanly. */
static void try_mutation(uint8_t *bytes, size_t size, size_t at, uint64_t value, size_t len)
{
	struct d9__recovered found;
	uint8_t saved[8];
	char path[PATH_MAX];
	int fd;

	memcpy(saved, bytes + at, len);
	memcpy(bytes + at, &value, len);
	snprintf(path, sizeof(path), "%.2000s/mutant.ring", scratch_dir);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	CU_ASSERT_EQUAL(write(fd, bytes, size), (ssize_t)size);
	close(fd);
	memcpy(bytes + at, saved, len);
	recover_all(&found);
	unlink(path);
}

static void test_ring_with_any_field_mutated_is_recovered_or_refused(void)
{
	static const uint64_t values[] = { 0, 1, 0x7fffffff, UINT64_MAX, UINT64_C(0x4000000100000101) };
	const size_t slot = D9__RING_SLOTS_AT, chunk = D9__RING_CHUNKS_AT;
	size_t size;
	uint8_t *bytes;

	die_recording(0);
	bytes = steal_ring(&size);
	for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
		for (size_t at = 0; at < 48; at += 4)
			try_mutation(bytes, size, at, values[v], 4);
		for (size_t at = 0; at < sizeof(struct d9__slot); at += 8)
			try_mutation(bytes, size, slot + at, values[v], 8);
		for (size_t at = 0; at < D9__CHUNK_HEADER; at += 4)
			try_mutation(bytes, size, chunk + at, values[v], 4);
		for (size_t at = 0; at < 600; at += 37)
			try_mutation(bytes, size, chunk + D9__CHUNK_HEADER + at, values[v], 1);
		try_mutation(bytes, size, offsetof(struct d9__ring_header, description), values[v], 8);
		try_mutation(bytes, size, D9__RING_DESCRIPTION_AT + 300, values[v], 4);
	}
	for (size_t cut = 0; cut < size; cut += 50000)
		try_mutation(bytes, cut > 8 ? cut : 8, 0, *(uint64_t *)(void *)bytes, 8);
	free(bytes);
}

/* How often flock() still finds the lock held. */
static int held;

int flock(int fd, int operation)
{
	if (held > 0 && operation & LOCK_NB) {
		held--;
		errno = EWOULDBLOCK;
		return -1;
	}
	return (int)syscall(SYS_flock, fd, operation);
}

static void test_ring_of_a_dead_process_that_others_look_at_for_a_moment_is_dead(void)
{
	char path[PATH_MAX + 8];
	struct d9__ring_view view = { .pid = INT_MAX };

	snprintf(path, sizeof(path), "%s/ring", scratch_new());
	view.fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	CU_ASSERT_FATAL(view.fd >= 0);

	held = 5;
	CU_ASSERT_EQUAL(d9__ring_view_owner(&view), D9__OWNER_DEAD);
	held = INT_MAX;
	CU_ASSERT_EQUAL(d9__ring_view_owner(&view), D9__OWNER_ALIVE);
	held = 0;
	close(view.fd);
}

/* In a child with the rights of |uid|, what |fn| says. */
static int as_user(uid_t uid, int (*fn)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		_exit(setgid(uid) || setuid(uid) ? 99 : fn());
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int record_and_die(void)
{
	struct d9_options *options = NULL;

	if (d9_options_new(&options) || d9_options_set_environment(options, false) ||
	    d9_options_set_trace_dir(options, scratch_dir) || d9_options_set_mode(options, D9_MODE_FLIGHT) ||
	    d9_recorder_start(options, NULL))
		return 1;
	record_polls(ROUNDS);
	kill(getpid(), SIGKILL);
	return 2;
}

/* All rings of this user, each to where it says: 10 if none was there, else the error of the last. */
static int recover_where_they_say(void)
{
	struct d9__recovered found = { .err = -10 };
	struct d9__recover walk;

	if (d9__recover_begin(&walk, NULL, 0))
		return 98;
	while (d9__recover_next(&walk, &found) == 1)
		;
	d9__recover_end(&walk);
	return -found.err;
}

/* A ring belongs to the owner of its file, as must the directory that it names. */
static void test_rings_of_a_user_are_written_to_directories_of_that_user_only(void)
{
	uid_t uid = 50000 + (uid_t)getpid() % 10000;
	char shm[64];

	scratch_new();
	if (geteuid()) {
		printf("not root, who alone can become other users\n");
		return;
	}
	CU_ASSERT_EQUAL(chown(scratch_dir, uid, uid), 0);
	CU_ASSERT_EQUAL_FATAL(as_user(uid, record_and_die), -SIGKILL);

	CU_ASSERT_EQUAL(chown(scratch_dir, 0, 0), 0);
	CU_ASSERT_EQUAL(chmod(scratch_dir, 0755), 0);
	CU_ASSERT_EQUAL(as_user(uid, recover_where_they_say), EPERM);
	CU_ASSERT_EQUAL(as_user(uid + 1, recover_where_they_say), 10);

	CU_ASSERT_EQUAL(chown(scratch_dir, uid, uid), 0);
	CU_ASSERT_EQUAL(as_user(uid, recover_where_they_say), 0);
	CU_ASSERT_EQUAL(scratch_count("PollStartEvent"), ROUNDS);
	CU_ASSERT_EQUAL(as_user(uid, recover_where_they_say), 10);
	snprintf(shm, sizeof(shm), "/dev/shm/dial9-%u", (unsigned)uid);
	CU_ASSERT_EQUAL(rmdir(shm), 0);
}

static const CU_TestInfo tests[] = {
	{ "ring of a dead process that others look at for a moment is dead",
	  test_ring_of_a_dead_process_that_others_look_at_for_a_moment_is_dead },
	{ "ring of a process killed at once is recovered whole",
	  test_ring_of_a_process_killed_at_once_is_recovered_whole },
	{ "ring of which part was written is continued",
	  test_ring_of_which_part_was_written_is_continued },
	{ "callback that was open when the process died was so at its last tick",
	  test_callback_that_was_open_when_the_process_died_was_so_at_its_last_tick },
	{ "callback in which recording was switched off may have returned",
	  test_callback_in_which_recording_was_switched_off_may_have_returned },
	{ "ring with any field mutated is recovered or refused",
	  test_ring_with_any_field_mutated_is_recovered_or_refused },
	{ "started again, then killed", test_ring_of_a_recorder_that_was_started_again_is_recovered },
	{ "rings of a user are written to directories of that user only",
	  test_rings_of_a_user_are_written_to_directories_of_that_user_only },
	/* Last: a child of a process with a ring does not begin as others do. */
	{ "ring of a living process is not touched", test_ring_of_a_living_process_is_not_touched },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	int status = d9_test_main("recover", tests);

	scratch_remove();
	return status;
}
