/* SPDX-License-Identifier: Apache-2.0 */
/* The flush thread without a recorder around it: the test makes the ring, starts the thread and ends it. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/descriptors.h"
#include "base/options.h"
#include "base/sanitized.h"
#include "base/thread.h"
#include "core/record/again.h"
#include "core/record/fixture.h"
#include "core/record/refuse.h"
#include "core/record/scratch.h"
#include "core/record/ticks.h"
#include "drain/health.h"
#include "record/aside.h"
#include "record/flush.h"
#include "record/flush_wait.h"
#include "record/source.h"
#include "ring/clock.h"

#define HOUR_NS UINT64_C(3600000000000)
#define EVENTS	16000u /* a chunk full, and a part of one */

/* ---- a disk that fails ---- */

static _Atomic(bool) broken;

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t len, off_t at);
ssize_t __real_pwrite(int fd, const void *bytes, size_t len, off_t at);

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t len, off_t at)
{
	if (!broken)
		return __real_pwrite(fd, bytes, len, at);
	errno = EIO;
	return -1;
}

/* ---- start and end, as the recorder does it ---- */

static pthread_t thread;
static struct d9_options options;

/* The flush thread notes here at each tick that it knows itself, and where its stack is. */
static struct {
	_Atomic(unsigned) n;
	_Atomic(bool) knows_itself;
	_Atomic(uintptr_t) frame;
} seen_at_tick;

static void see_tick(void)
{
	seen_at_tick.knows_itself = d9__thread_is_flush();
	seen_at_tick.frame = (uintptr_t)__builtin_frame_address(0);
	seen_at_tick.n++;
}

static void have_ring(void)
{
	static pid_t owner;

	if (owner == getpid())
		return;
	if (!owner)
		d9__tick_add(see_tick);
	owner = getpid();
	MUST(!d9__gate_init());
	d9__clock_start(D9__CLOCK_AUTO);
	fixture_ring(64);
}

/* With |given|, which is freed. */
static void prepare(struct d9_options *given)
{
	have_ring();
	d9__options_release(&options);
	MUST(!d9__options_resolve(&options, given));
	d9_options_free(given);
	memset(&d9__flush, 0, sizeof(d9__flush));
	d9__flush.state = D9_RECORDER_STARTING;
	d9__flush.open_result = 1;
	d9__flush.options = &options;
	d9__flush.gate_bits = D9__GATE_EVENT;
	d9__flush.flight = d9__options_number(&options, D9__OPTION_MODE) == D9_MODE_FLIGHT;
	d9__flush.start_disabled = !d9__options_number(&options, D9__OPTION_ENABLED);
	snprintf(d9__flush.trace_dir, sizeof(d9__flush.trace_dir), "%s", d9__options_text(&options, D9__OPTION_TRACE_DIR));
	snprintf(d9__flush.boot_id, sizeof(d9__flush.boot_id), "test-%d", (int)getpid());
	d9__gate_set(d9__flush.start_disabled ? 0 : d9__flush.gate_bits);
}

static void start(struct d9_options *given)
{
	prepare(given);
	MUST(!d9__flush_start(&thread));
}

static void end(void)
{
	d9__flush.on_to_the_end = d9__gate_bits() != 0;
	d9__gate_set(0);
	atomic_store_explicit(&d9__flush.stop, 1, memory_order_release);
	d9__flush_wake();
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(d9__flush.ended, 1);
	CU_ASSERT_EQUAL(d9__flush.state, D9_RECORDER_STOPPED);
}

/* Three whole ones from now on. */
static void await_ticks(void)
{
	unsigned from = seen_at_tick.n;

	CU_ASSERT(AGAIN_WAIT((d9__flush_wake(), seen_at_tick.n > from + 3)));
}

static void await_state(int state)
{
	CU_ASSERT(AGAIN_WAIT(d9__flush.state == state));
}

static void await_written(uint64_t events)
{
	CU_ASSERT(AGAIN_WAIT(d9__flush.counters.events >= events));
}

/* Full chunks are written at once. */
static void emit_and_await_some(void)
{
	uint64_t before = d9__flush.counters.events;

	emit_ticks(0, EVENTS);
	await_written(before + 1);
}

/* Whether descriptors of this table are of files in the scratch directory. */
static bool has_descriptors_there(void)
{
	DIR *d = opendir("/proc/self/fd");
	char path[PATH_MAX], link[PATH_MAX];
	bool found = false;

	for (struct dirent *e; d && (e = readdir(d));) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%s", e->d_name);
		n = readlink(path, link, sizeof(link));
		found |= n > 0 && !strncmp(link, scratch_dir, strlen(scratch_dir));
	}
	if (d)
		closedir(d);
	return found;
}

/* ---- what starts ---- */

static void test_start_comes_back_when_the_program_meets_no_descriptor_of_the_thread(void)
{
	start(scratch_options());
	CU_ASSERT_EQUAL(d9__flush.moved, 1);
	CU_ASSERT(d9__flush.ring_fd < 0 || fcntl(d9__flush.ring_fd, F_GETFD) < 0);
	emit_and_await_some();
	CU_ASSERT_FALSE(has_descriptors_there());
	end();
}

static void test_thread_holds_no_directory_of_the_program(void)
{
	char path[64], before[PATH_MAX] = "", after[PATH_MAX] = "", theirs[PATH_MAX] = "";

	CU_ASSERT_PTR_NOT_NULL(getcwd(before, sizeof(before)));
	start(scratch_options());
	CU_ASSERT_PTR_NOT_NULL(getcwd(after, sizeof(after)));
	CU_ASSERT_STRING_EQUAL(after, before);
	snprintf(path, sizeof(path), "/proc/self/task/%d/cwd", d9__flush.tid);
	CU_ASSERT(readlink(path, theirs, sizeof(theirs) - 1) > 0);
	CU_ASSERT_STRING_EQUAL(theirs, "/");
	end();
}

static void test_thread_is_known_by_itself_and_by_its_stack(void)
{
	start(scratch_options());
	CU_ASSERT_FALSE(d9__thread_is_flush());
	await_ticks();
	CU_ASSERT(seen_at_tick.knows_itself);
	CU_ASSERT(seen_at_tick.frame - d9__flush.stack < d9__flush.stack_bytes);
	end();
}

static void test_thread_tells_under_which_name_it_writes(void)
{
	char path[2 * PATH_MAX];

	/* Somebody has the name that it wishes for. */
	prepare(scratch_options());
	snprintf(path, sizeof(path), "%s/%s", scratch_dir, d9__flush.boot_id);
	CU_ASSERT_EQUAL(mkdir(path, 0700), 0);
	MUST(!d9__flush_start(&thread));
	CU_ASSERT(AGAIN_WAIT(d9__flush.open_result != 1));
	CU_ASSERT_EQUAL(d9__flush.open_result, 0);
	snprintf(path, sizeof(path), "%s/%s", scratch_dir, d9__flush.boot_id);
	emit_ticks(0, EVENTS);
	end();
	CU_ASSERT_EQUAL(scratch_files(path, ".bin.zst"), 1);
}

/* ---- what it writes ---- */

static void test_all_that_was_recorded_is_written_without_anybody_asking(void)
{
	start(scratch_options());
	emit_and_await_some();
	/* And the rest, though the thread that recorded it is silent now. */
	await_written(EVENTS);
	CU_ASSERT_EQUAL(d9__flush.state, D9_RECORDER_RECORDING);
	end();
}

static void test_end_writes_all_that_was_recorded_and_seals_it(void)
{
	start(scratch_options());
	emit_ticks(0, EVENTS);
	end();
	CU_ASSERT_EQUAL(scratch_count("Tick"), EVENTS);
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, ".active"), 0);
	CU_ASSERT_EQUAL(d9__flush.end_err, 0);
	CU_ASSERT_FALSE(d9__flush.unwritten);
}

static void test_thread_goes_on_ticking_where_nothing_is_recorded(void)
{
	start(scratch_options());
	d9__gate_set(0);
	await_ticks();
	CU_ASSERT_EQUAL(d9__flush.state, D9_RECORDER_DISABLED);
	d9__gate_set(D9__GATE_EVENT);
	await_ticks();
	CU_ASSERT_EQUAL(d9__flush.state, D9_RECORDER_RECORDING);
	end();
}

static void test_thread_that_starts_disabled_makes_a_directory_when_it_is_enabled(void)
{
	for (unsigned enabled = 0; enabled < 2; enabled++) {
		struct d9_options *given = scratch_options();

		d9_options_set_enabled(given, false);
		start(given);
		await_ticks();
		CU_ASSERT_EQUAL(d9__flush.state, D9_RECORDER_DISABLED);
		CU_ASSERT_EQUAL(rmdir(scratch_dir), 0); /* is empty */
		CU_ASSERT_EQUAL(mkdir(scratch_dir, 0700), 0);
		if (enabled) {
			d9__gate_set(D9__GATE_EVENT);
			emit_and_await_some();
		}
		end();
		CU_ASSERT_EQUAL(scratch_count("Tick"), enabled * EVENTS);
		CU_ASSERT_EQUAL(rmdir(scratch_dir) == 0, !enabled);
	}
}

static void test_flight_leaves_the_events_in_the_ring(void)
{
	struct d9_options *given = scratch_options();
	uint64_t lost = d9__health_lost();

	CU_ASSERT_EQUAL(d9_options_set_mode(given, D9_MODE_FLIGHT), 0);
	start(given);
	emit_ticks(0, EVENTS);
	await_ticks();
	CU_ASSERT_EQUAL(d9__flush.state, D9_RECORDER_FLIGHT);
	CU_ASSERT_EQUAL(d9__flush.counters.events, 0);
	end();
	CU_ASSERT_EQUAL(scratch_count("Tick"), 0);
	CU_ASSERT_EQUAL(d9__health_lost(), lost);
	/* Nor does a thread find them that comes later. */
	start(scratch_options());
	end();
	CU_ASSERT_EQUAL(scratch_count("Tick"), 0);
}

/* ---- what fails ---- */

static void test_thread_pauses_where_nothing_can_be_written_and_goes_on_by_itself(void)
{
	start(scratch_options());
	emit_and_await_some();
	broken = true;
	emit_ticks(0, EVENTS);
	await_state(D9_RECORDER_PAUSED);
	broken = false;
	await_state(D9_RECORDER_RECORDING);
	await_written(2 * EVENTS);
	end();
	CU_ASSERT_EQUAL(d9__flush.end_err, 0);
	CU_ASSERT_EQUAL(scratch_count("Tick"), 2 * EVENTS);
}

static void test_end_that_cannot_write_says_why_and_counts_what_is_lost(void)
{
	uint64_t before = d9__health_lost_by(D9__LOSS_DISK), lost;

	start(scratch_options());
	await_ticks();
	broken = true;
	emit_ticks(0, EVENTS);
	end();
	broken = false;
	CU_ASSERT_EQUAL(d9__flush.end_err, -EIO);
	CU_ASSERT(d9__flush.unwritten);
	CU_ASSERT_EQUAL(d9__flush.counters.events, 0);
	lost = d9__health_lost_by(D9__LOSS_DISK) - before;
	/* The next flush thread takes the chunk that a thread holds open, and fails at nothing else. */
	CU_ASSERT(lost > 0 && lost < EVENTS);
	start(scratch_options());
	end();
	CU_ASSERT_EQUAL(scratch_count("Tick"), EVENTS - lost);
	CU_ASSERT_EQUAL(d9__flush.end_err, 0);
	CU_ASSERT_FALSE(d9__flush.unwritten);
}

/* No recorder comes after it in this process: what it could not write stays in the ring. */
static int ends_for_good(void)
{
	struct fixture_taken taken = { .batches = 0 };

	start(scratch_options());
	await_ticks();
	broken = true;
	emit_ticks(0, EVENTS);
	d9__flush.last = true;
	end();
	fixture_drain_all(&taken, NULL, NULL);
	MUST(d9__flush.unwritten && d9__flush.end_err == -EIO);
	MUST(taken.events >= EVENTS && !taken.bad);
	return 0;
}

static void test_last_end_that_cannot_write_leaves_the_events_in_the_ring(void)
{
	again_check("ends_for_good", NULL);
}

static void put_file_at(const char *path)
{
	int fd;

	CU_ASSERT_EQUAL(rmdir(path), 0);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	CU_ASSERT(fd >= 0);
	close(fd);
}

static void test_thread_that_is_awaited_ends_where_its_directory_cannot_be(void)
{
	prepare(scratch_options());
	put_file_at(scratch_dir);
	d9__flush.awaited = true;
	MUST(!d9__flush_start(&thread));
	CU_ASSERT(AGAIN_WAIT(d9__flush.ended));
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(d9__flush.open_result, -ENOTDIR);
	CU_ASSERT_EQUAL(d9__flush.state, D9_RECORDER_STOPPED);
}

static void test_thread_for_which_nobody_waits_tries_its_directory_again(void)
{
	prepare(scratch_options());
	put_file_at(scratch_dir);
	MUST(!d9__flush_start(&thread));
	await_state(D9_RECORDER_PAUSED);
	CU_ASSERT_EQUAL(d9__flush.open_result, -ENOTDIR);
	emit_ticks(0, EVENTS);
	CU_ASSERT_EQUAL(unlink(scratch_dir), 0);
	await_state(D9_RECORDER_RECORDING);
	end();
	CU_ASSERT_EQUAL(d9__flush.open_result, 0);
	CU_ASSERT_EQUAL(scratch_count("Tick"), EVENTS);
}

static void test_want_of_room_may_pass_and_nothing_else(void)
{
	CU_ASSERT(d9__flush_may_pass(-ENOSPC) && d9__flush_may_pass(-EDQUOT));
	for (int err = 0; err < 140; err++)
		CU_ASSERT_EQUAL(d9__flush_may_pass(-err), err == ENOSPC || err == EDQUOT);
}

/* ---- aside ---- */

static void test_thread_that_steps_aside_goes_on_in_the_segment_that_it_had(void)
{
	start(scratch_options());
	emit_and_await_some();
	CU_ASSERT_FATAL(d9__aside_go(thread));
	CU_ASSERT_EQUAL(d9__flush.aside, D9__ASIDE_GONE);
	CU_ASSERT_EQUAL(d9__thread_flush, 0);
	CU_ASSERT_EQUAL(d9__flush.ended, 0);
	emit_ticks(EVENTS, EVENTS);
	CU_ASSERT_EQUAL_FATAL(d9__aside_return(&thread), 0);
	CU_ASSERT_EQUAL(d9__flush.aside, D9__ASIDE_NO);
	await_ticks();
	CU_ASSERT(seen_at_tick.knows_itself);
	end();
	CU_ASSERT_EQUAL(scratch_count("Tick"), 2 * EVENTS);
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, ".bin.zst"), 1);
	CU_ASSERT_EQUAL(d9__flush.counters.errors, 0);
}

/* As servers do that become daemons. */
static void close_from(int first)
{
	for (int fd = first; fd < 1024; fd++)
		close(fd);
}

/* The thread's old segment is left as a killed process leaves it. */
static void test_thread_that_steps_aside_while_the_program_closes_all_goes_on_in_another_segment(void)
{
	bool own;

	start(scratch_options());
	emit_and_await_some();
	CU_ASSERT_FATAL(d9__aside_go(thread));
	own = !d9__descriptors_are_shared();
	if (own)
		close_from(3);
	CU_ASSERT_EQUAL_FATAL(d9__aside_return(&thread), 0);
	emit_and_await_some();
	end();
	CU_ASSERT_EQUAL(scratch_count("Tick"), 2 * EVENTS);
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, ".bin.zst"), 1);
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, ".active"), own);
}

/* ---- waits ---- */

static struct {
	void (*wait)(uint32_t seen, uint64_t ns);
	uint32_t seen;
	_Atomic(bool) over;
} waiter;

static void *wait_an_hour(void *arg)
{
	waiter.wait(waiter.seen, HOUR_NS);
	waiter.over = true;
	return arg;
}

static pthread_t begin_wait(void (*wait)(uint32_t seen, uint64_t ns))
{
	pthread_t waits;

	have_ring();
	d9__flush.stop = 0;
	waiter.wait = wait;
	waiter.seen = d9__flush_wait_seen();
	waiter.over = false;
	MUST(!pthread_create(&waits, NULL, wait_an_hour, NULL));
	return waits;
}

static void wait_long(uint32_t seen, uint64_t ns)
{
	d9__flush_wait_long(seen, ns);
}

static void test_wake_ends_a_wait_that_may_not_have_begun(void)
{
	uint32_t seen;

	for (int i = 0; i < 20; i++) {
		pthread_t waits = begin_wait(i % 2 ? d9__flush_wait : wait_long);

		d9__flush_wake();
		pthread_join(waits, NULL);
	}
	seen = d9__flush_wait_seen();
	d9__flush_wake();
	d9__flush_wait(seen, HOUR_NS);
	CU_ASSERT_NOT_EQUAL(d9__flush_wait_seen(), seen);
}

static void test_nobody_waits_who_was_told_to_stop(void)
{
	have_ring();
	d9__flush.stop = 1;
	d9__flush_wait(d9__flush_wait_seen(), HOUR_NS);
	d9__flush_wait_long(d9__flush_wait_seen(), HOUR_NS);
	d9__flush.stop = 0;
}

static void test_chunk_that_is_sealed_wakes_once_for_each_wait(void)
{
	pthread_t waits = begin_wait(d9__flush_wait);
	uint32_t seen;

	CU_ASSERT(AGAIN_WAIT((d9__flush_wake_once(), waiter.over)));
	pthread_join(waits, NULL);
	seen = d9__flush_wait_seen();
	for (int i = 0; i < 100; i++)
		d9__flush_wake_once();
	CU_ASSERT_EQUAL(d9__flush_wait_seen(), seen);
}

static void test_rouse_ends_long_waits_and_no_others(void)
{
	pthread_t waits = begin_wait(wait_long);
	uint32_t seen;

	CU_ASSERT(AGAIN_WAIT((d9__flush_rouse(), waiter.over)));
	pthread_join(waits, NULL);
	waits = begin_wait(d9__flush_wait);
	seen = d9__flush_wait_seen();
	for (int i = 0; i < 100; i++)
		d9__flush_rouse();
	CU_ASSERT_EQUAL(d9__flush_wait_seen(), seen);
	d9__flush_wake();
	pthread_join(waits, NULL);
}

static int wakes_in_vain(void)
{
	if (AGAIN_SANITIZED)
		return again_skip("a sanitizer's runtime needs the call that is refused");
	have_ring();
	if (!refuse(SYS_futex, EPERM))
		return again_skip("no filters");
	errno = ERANGE;
	d9__flush_wake();
	_exit(errno != ERANGE);
}

static void test_wake_keeps_errno(void)
{
	again_check("wakes_in_vain", NULL);
}

/* ---- forks ---- */

/* Do as the recorder's fork handler does in the child. */
static void forget_parent(void)
{
	d9__gate_set(0);
	d9__ring_forget_in_child();
	d9__slot_forget_in_child();
	d9__flush_fork_child();
}

static struct d9_options *options_in(const char *dir)
{
	struct d9_options *given = NULL;

	MUST(!d9_options_new(&given));
	d9_options_set_environment(given, false);
	d9_options_set_trace_dir(given, dir);
	d9_options_set_ring_mb(given, 8);
	return given;
}

static void child_records(void)
{
	char dir[PATH_MAX];

	forget_parent();
	MUST(d9__flush.state == D9_RECORDER_STOPPED && !d9__thread_flush && !d9__flush.tid);
	MUST(!d9__flush.trace_dir[0] && !d9__flush.counters.events);
	MUST(!has_descriptors_there());
	snprintf(dir, sizeof(dir), "%.3000s/child", scratch_dir);
	start(options_in(dir));
	emit_ticks(0, 50);
	end();
	MUST(d9__flush.counters.events == 50 && !d9__flush.counters.errors);
	_exit(0);
}

static void fork_beside_it(void)
{
	int status = -1;
	pid_t pid;

	start(scratch_options());
	emit_and_await_some();
	pid = fork();
	if (!pid)
		child_records();
	MUST(waitpid(pid, &status, 0) == pid && !status);
	emit_ticks(EVENTS, EVENTS);
	end();
	MUST(d9__flush.counters.events == 2 * EVENTS && !d9__flush.counters.errors);
	MUST(scratch_count("Tick") == 2 * EVENTS + 50);
	MUST(scratch_count("RecorderLossEvent") == 0);
}

static int forks(void)
{
	if (D9__SANITIZED == 2)
		return again_skip("ThreadSanitizer ends children that start threads");
	fork_beside_it();
	return 0;
}

/* Its descriptors are the program's, then. */
static int forks_without_tables(void)
{
	if (D9__SANITIZED == 2)
		return again_skip("ThreadSanitizer ends children that start threads");
	if (!refuse(SYS_unshare, EPERM))
		return again_skip("no filters");
	fork_beside_it();
	MUST(d9__descriptors_are_shared());
	return 0;
}

static void test_child_has_no_thread_and_may_start_one_of_its_own(void)
{
	again_check("forks", NULL);
}

static void test_child_closes_what_it_has_of_the_parents_descriptors(void)
{
	again_check("forks_without_tables", NULL);
}

int main(int argc, char **argv)
{
	static const struct again_role roles[] = {
		{ "ends_for_good", ends_for_good },
		{ "wakes_in_vain", wakes_in_vain },
		{ "forks", forks },
		{ "forks_without_tables", forks_without_tables },
		{ NULL, NULL },
	};
	static const CU_TestInfo tests[] = {
		{ "descriptors of the thread", test_start_comes_back_when_the_program_meets_no_descriptor_of_the_thread },
		{ "directory of the thread", test_thread_holds_no_directory_of_the_program },
		{ "the thread is known", test_thread_is_known_by_itself_and_by_its_stack },
		{ "its name is told", test_thread_tells_under_which_name_it_writes },
		{ "events are written", test_all_that_was_recorded_is_written_without_anybody_asking },
		{ "the end writes all", test_end_writes_all_that_was_recorded_and_seals_it },
		{ "ticks go on", test_thread_goes_on_ticking_where_nothing_is_recorded },
		{ "disabled at the start", test_thread_that_starts_disabled_makes_a_directory_when_it_is_enabled },
		{ "flight", test_flight_leaves_the_events_in_the_ring },
		{ "paused", test_thread_pauses_where_nothing_can_be_written_and_goes_on_by_itself },
		{ "end that cannot write", test_end_that_cannot_write_says_why_and_counts_what_is_lost },
		{ "last end that cannot write", test_last_end_that_cannot_write_leaves_the_events_in_the_ring },
		{ "awaited in vain", test_thread_that_is_awaited_ends_where_its_directory_cannot_be },
		{ "directory later", test_thread_for_which_nobody_waits_tries_its_directory_again },
		{ "what may pass", test_want_of_room_may_pass_and_nothing_else },
		{ "aside", test_thread_that_steps_aside_goes_on_in_the_segment_that_it_had },
		{ "aside, and all is closed",
		  test_thread_that_steps_aside_while_the_program_closes_all_goes_on_in_another_segment },
		{ "wake", test_wake_ends_a_wait_that_may_not_have_begun },
		{ "stop", test_nobody_waits_who_was_told_to_stop },
		{ "wake once", test_chunk_that_is_sealed_wakes_once_for_each_wait },
		{ "rouse", test_rouse_ends_long_waits_and_no_others },
		{ "wake keeps errno", test_wake_keeps_errno },
		{ "child", test_child_has_no_thread_and_may_start_one_of_its_own },
		{ "child's descriptors", test_child_closes_what_it_has_of_the_parents_descriptors },
		CU_TEST_INFO_NULL,
	};
	int role = again_main(argc, argv, roles);
	int status = role;

	if (role < 0)
		status = d9_test_main("flush", tests);
	d9__options_release(&options);
	scratch_remove();
	return status;
}
