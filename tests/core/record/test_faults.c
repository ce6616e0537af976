/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the file system can do to a recorder (recorder.md, 4 and 8): it pauses, says so, goes on by itself;
 * every event is in the trace or told as lost; the recording thread is not made to wait.  Mounts happen in
 * a mount namespace of their own, which takes root.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <dial9/event.h>

#include "core/record/again.h"
#include "core/record/full_device.h"
#include "core/record/quota.h"
#include "core/record/scratch.h"
#include "drain/recover.h"
#include "record/recorder.h"
#include "ring/ring_file.h"

#define NOBODY 65534

static const struct d9_field fields[] = {
	{ "number", D9_FIELD_VARINT, NULL, NULL },
	{ "noise", D9_FIELD_BYTES, NULL, NULL },
};
static struct d9_event_type numbered = D9_EVENT_TYPE("Numbered", fields);

/* ---- a thread that records ---- */

static struct {
	pthread_t thread;
	_Atomic(bool) stop;
	_Atomic(uint64_t) n;
	uint64_t sleeps;
	long waited; /* how often the kernel put the thread to sleep */
} loop;

static void *run_loop(void *arg)
{
	uint32_t noise[16] = { 0 }, random = 1;
	struct rusage before, after;

	(void)arg;
	D9_EMIT(&numbered, 0, d9_bytes(noise, sizeof(noise))); /* takes its slot */
	loop.n = 1;
	getrusage(RUSAGE_THREAD, &before);
	while (!loop.stop) {
		for (int i = 0; i < 16; i++)
			noise[i] = random = random * 1664525 + 1013904223;
		D9_EMIT(&numbered, loop.n, d9_bytes(noise, sizeof(noise)));
		loop.n++;
		if (loop.n % 100 == 0) {
			again_pause_ms(1);
			loop.sleeps++;
		}
	}
	getrusage(RUSAGE_THREAD, &after);
	loop.waited = after.ru_nvcsw - before.ru_nvcsw;
	return NULL;
}

static void start_loop(void)
{
	MUST(!pthread_create(&loop.thread, NULL, run_loop, NULL));
}

/*
 * It slept when it wanted to, and at no other time; but valgrind lets one thread run at a time, and a sanitizer's
 * runtime has locks of its own.
 */
static void stop_loop(void)
{
	loop.stop = true;
	pthread_join(loop.thread, NULL);
	MUST(loop.waited <= (long)loop.sleeps + 2 || AGAIN_SANITIZED || again_in_valgrind());
}

/* ---- the recorder ---- */

#define SEGMENT_BYTES (256 << 10)

static _Atomic(long) fail_from; /* the first write that begins there or beyond fails; 0: none */

static bool is_paused(void)
{
	return d9_recorder_state(d9_recorder_running()) == D9_RECORDER_PAUSED;
}

static bool is_recording(void)
{
	return d9_recorder_state(d9_recorder_running()) == D9_RECORDER_RECORDING;
}

/* What `dial9 status` says of this process contains |text|; true where the program cannot be run. */
static bool status_says(const char *text)
{
	const char *top = getenv("top_builddir");
	char command[PATH_MAX + 64], line[65536];
	bool said = false;
	FILE *out;

	if (!top)
		return true;
	snprintf(command, sizeof(command), "%s/core/dial9 status --json %d", top, (int)getpid());
	out = popen(command, "r");
	if (!out)
		return true;
	while (fgets(line, sizeof(line), out))
		said |= strstr(line, text) != NULL;
	pclose(out);
	return said;
}

static bool status_says_errno(int err)
{
	char text[64];

	snprintf(text, sizeof(text), "\"error\":{\"errno\":%d,", err);
	return status_says(text);
}

static uint64_t written(void)
{
	struct d9_counters c = { 0 };

	d9_recorder_counters(d9_recorder_running(), &c, sizeof(c));
	return c.events_written;
}

static uint64_t lost_to(enum d9_loss cause)
{
	struct d9_counters c = { 0 };

	d9_recorder_counters(d9_recorder_running(), &c, sizeof(c));
	return c.lost[cause];
}

static unsigned ring_mb = 2;
static enum d9_compress compress = D9_COMPRESS_NONE;

static void start_in(const char *dir)
{
	struct d9_options *options = NULL;

	MUST(!d9_options_new(&options));
	d9_options_set_environment(options, false);
	d9_options_set_trace_dir(options, dir);
	d9_options_set_ring_mb(options, ring_mb);
	d9_options_set_compress(options, compress);
	d9_options_set_usage_interval_ms(options, 0);
	if (fail_from)
		d9_options_set_max_file_bytes(options, SEGMENT_BYTES);
	MUST(!d9_recorder_start(options, NULL));
	d9_options_free(options);
}

struct sum {
	uint64_t numbers, lost, disk, next;
	bool disorder;
};

static void add_up(void *arg, const struct d9_event *event)
{
	struct sum *sum = arg;

	if (!strcmp(d9_event_name(event), "RecorderLossEvent")) {
		uint64_t events = d9_event_field(event, "events")->u.u64;
		struct d9_text cause = d9_event_field(event, "cause")->u.text;

		sum->lost += events;
		if (cause.len == 4 && !memcmp(cause.data, "disk", 4))
			sum->disk += events;
	}
	if (!strcmp(d9_event_name(event), "Numbered")) {
		uint64_t n = d9_event_field(event, "number")->u.u64;

		sum->disorder |= n < sum->next;
		sum->next = n + 1;
		sum->numbers++;
	}
}

/* Stop; the trace holds every event or tells of its loss.  |lossy|: some were lost to the disk.  How many were lost. */
static uint64_t stop_and_add_up(const char *dir, bool lossy)
{
	struct sum sum = { 0 };

	MUST(!d9_recorder_stop(d9_recorder_running(), 20000));
	scratch_read(dir, true, add_up, &sum);
	if (sum.numbers + sum.lost != loop.n)
		fprintf(stderr, "%lu recorded, %lu found, %lu lost\n", (unsigned long)loop.n,
			(unsigned long)sum.numbers, (unsigned long)sum.lost);
	MUST(sum.numbers + sum.lost == loop.n);
	MUST(!sum.disorder);
	MUST(!lossy || sum.disk > 0);
	return sum.lost;
}

/* ---- roles ---- */

static int disk_full_at_start(void)
{
	const char *dir;

	scratch_new();
	if (!own_mounts() || !(dir = tmpfs_at("small", "size=1m")))
		return again_skip("no mount namespace");
	fill(dir);
	start_in(dir);
	start_loop();
	MUST(AGAIN_WAIT(is_paused()));
	MUST(status_says("\"state\":\"paused\"") && status_says_errno(ENOSPC));
	/* Until events are lost. */
	MUST(AGAIN_WAIT(lost_to(D9_LOSS_DISK) > 10000));
	MUST(!mount("tmpfs", dir, "tmpfs", MS_REMOUNT, "size=256m"));
	MUST(AGAIN_WAIT(is_recording()));
	again_pause_ms(50);
	stop_loop();
	stop_and_add_up(dir, true);
	return 0;
}

/* In a chunk that is not full: a full one, of which a slow machine may try to write, cannot go back. */
#define LAST_WORDS 500

/* It ends by itself before there is room. */
static int records_and_ends(void)
{
	uint8_t noise[64] = { 0 };

	start_in(again_arg);
	for (uint64_t i = 0; i < LAST_WORDS; i++)
		D9_EMIT(&numbered, i, d9_bytes(noise, sizeof(noise)));
	return 0;
}

static void count_numbered(void *arg, const struct d9_event *event)
{
	*(unsigned *)arg += !strcmp(d9_event_name(event), "Numbered");
}

/* Events in memory when the program ends are recovered once there is room, of many programs the latest's. */
static int disk_full_to_the_end(void)
{
	unsigned recovered = 0, numbers = 0;
	struct d9__recover walk;
	struct d9__recovered found;
	const char *dir, *others;

	scratch_new();
	if (!own_mounts() || mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=64m") ||
	    !(dir = tmpfs_at("small", "size=1m")))
		return again_skip("no mount namespace");
	others = fill(dir);
	for (int i = 0; i < 5; i++)
		MUST(!again("records_and_ends", dir));
	MUST(!unlink(others));
	MUST(!d9__recover_begin(&walk, dir, D9__RECOVER_WAIT));
	for (; d9__recover_next(&walk, &found) == 1; recovered++)
		MUST(!found.err && !found.lost);
	d9__recover_end(&walk);
	/* The last, and the two before it; in valgrind one may end before it has looked at what others left. */
	MUST(recovered == 3 || (recovered > 3 && again_in_valgrind()));
	scratch_read(dir, false, count_numbered, &numbers);
	MUST(numbers == recovered * LAST_WORDS);
	return 0;
}

/* A neighbour takes all room, and all that is given up, for longer than the ring lasts: what was written stays. */
static void fill_for_a_while(const char *dir, const char *ours)
{
	unsigned segments;
	const char *others;
	uint64_t events;

	start_in(dir);
	start_loop();
	MUST(AGAIN_WAIT(written() > 1000));
	for (segments = 0; segments < 4; segments++) {
		events = written();
		MUST(AGAIN_WAIT(written() > events));
		MUST(!d9_recorder_rotate(d9_recorder_running(), 10000));
	}
	MUST(AGAIN_WAIT(({ others = fill(dir); is_paused(); })));
	/* The recorder truncates what it could not write, and may write once more into that room. */
	MUST(AGAIN_WAIT(({ fill(dir); status_says_errno(ENOSPC); })));
	MUST(AGAIN_WAIT(({ fill(dir); lost_to(D9_LOSS_DISK) > 0; })));
	MUST(scratch_files(dir, ".bin") + 1 >= segments);
	MUST(!unlink(others));
	MUST(AGAIN_WAIT(is_recording()));
	events = written();
	MUST(AGAIN_WAIT(written() > events));
	stop_loop();
	MUST(!d9_recorder_stop(d9_recorder_running(), 20000));
	MUST(scratch_read(dir, true, NULL, NULL) > 1000);
	MUST(scratch_files(dir, ours) == 1);
}

static int disk_filled_by_others(void)
{
	const char *dir;

	scratch_new();
	if (!own_mounts() || !(dir = tmpfs_at("shared", "size=32m")))
		return again_skip("no mount namespace");
	fill_for_a_while(dir, "trace.1.bin");
	return 0;
}

/* A file system with blocks, which are given out late. */
static int ext4_filled_by_others(void)
{
	char image[PATH_MAX], dir[PATH_MAX];
	const char *missing;

	scratch_new();
	snprintf(image, sizeof(image), "%.3000s/image", scratch_dir);
	snprintf(dir, sizeof(dir), "%.3000s/small", scratch_dir);
	if (!own_mounts())
		return again_skip("no mount namespace");
	missing = quota_mount_ext4(image, dir);
	if (missing)
		return again_skip(missing);
	fill_for_a_while(dir, "trace.1.bin");
	return 0;
}

/* The kernel's own quota, and more of it later. */
static int quota_exceeded(void)
{
	char image[PATH_MAX], dir[PATH_MAX];
	const char *missing;

	scratch_new();
	snprintf(image, sizeof(image), "%.3000s/image", scratch_dir);
	snprintf(dir, sizeof(dir), "%.3000s/limited", scratch_dir);
	if (!own_mounts())
		return again_skip("no mount namespace");
	missing = quota_mount(image, dir, 2 << 20);
	if (missing)
		return again_skip(missing);
	start_in(dir);
	start_loop();
	MUST(AGAIN_WAIT(is_paused()));
	MUST(status_says("\"state\":\"paused\"") && status_says_errno(EDQUOT));
	MUST(AGAIN_WAIT(lost_to(D9_LOSS_DISK) > 10000));
	MUST(quota_set(dir, 100 << 20));
	MUST(AGAIN_WAIT(is_recording()));
	again_pause_ms(50);
	stop_loop();
	stop_and_add_up(dir, true);
	return 0;
}

/* ---- a disk that errs ---- */

static _Atomic(int) write_error;
static _Atomic(int) fail_once; /* an errno */

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t len, off_t at);
ssize_t __real_pwrite(int fd, const void *bytes, size_t len, off_t at);

/* Half of it, then nothing. */
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t len, off_t at)
{
	static bool half;
	int once = atomic_exchange(&fail_once, 0);

	if (once) {
		errno = once;
		return -1;
	}
	if (fail_from && at >= fail_from) {
		fail_from = 0;
		errno = EIO;
		return -1;
	}
	half = write_error && !half;
	if (!write_error || (half && len > 1))
		return __real_pwrite(fd, bytes, half ? len / 2 : len, at);
	errno = write_error;
	return -1;
}

/* Quota, a dying disk: |again_arg| is the errno. */
static int write_fails(void)
{
	int err = atoi(again_arg);

	scratch_new();
	start_in(scratch_dir);
	start_loop();
	MUST(AGAIN_WAIT(written() > 1000));
	for (int i = 0; i < 2; i++) {
		uint64_t events;

		write_error = err;
		MUST(AGAIN_WAIT(is_paused()));
		MUST(status_says_errno(err));
		MUST(AGAIN_WAIT(lost_to(D9_LOSS_DISK) > 0));
		write_error = 0;
		events = written();
		MUST(AGAIN_WAIT(is_recording() && written() > events));
	}
	stop_loop();
	stop_and_add_up(scratch_dir, true);
	return 0;
}

/* |again_arg| is the errno.  The ring has room for what comes meanwhile: all of it is there. */
static int one_write_fails(void)
{
	int err = atoi(again_arg);

	scratch_new();
	ring_mb = 64;
	compress = D9_COMPRESS_ZSTD;
	start_in(scratch_dir);
	start_loop();
	for (int i = 0; i < 2; i++) {
		uint64_t events = written();

		MUST(AGAIN_WAIT(written() > events + 1000));
		fail_once = err;
		MUST(AGAIN_WAIT(is_paused()));
		MUST(AGAIN_WAIT(is_recording()));
	}
	stop_loop();
	MUST(!stop_and_add_up(scratch_dir, false));
	return 0;
}

/* What a full segment holds is written: that it cannot be sealed costs none of it, or what is told. */
static int sealing_fails(void)
{
	scratch_new();
	fail_from = SEGMENT_BYTES;
	start_in(scratch_dir);
	start_loop();
	MUST(AGAIN_WAIT(!fail_from && is_recording() && written() > 20000));
	stop_loop();
	stop_and_add_up(scratch_dir, false);
	return 0;
}

static void count_second_hundred(void *arg, const struct d9_event *event)
{
	*(unsigned *)arg += !strcmp(d9_event_name(event), "Numbered") && 
			    d9_event_u64(event, "number", 0) >= 100;
}

/* The first write of the stop fails: the next, which does not wait, has it all; and what was sealed stays. */
static int the_stop_tries_again(void)
{
	uint8_t noise[64] = { 0 };
	unsigned found = 0;

	scratch_new();
	start_in(scratch_dir);
	for (uint64_t i = 0; i < 100; i++)
		D9_EMIT(&numbered, i, d9_bytes(noise, sizeof(noise)));
	MUST(!d9_recorder_rotate(d9_recorder_running(), 10000));
	fail_once = ENOSPC;
	for (uint64_t i = 100; i < 200; i++)
		D9_EMIT(&numbered, i, d9_bytes(noise, sizeof(noise)));
	MUST(!d9_recorder_stop(d9_recorder_running(), 20000));
	MUST(!fail_once);
	scratch_read(scratch_dir, true, count_second_hundred, &found);
	MUST(found == 100);
	MUST(scratch_files(scratch_dir, "trace.0.bin") == 1);
	return 0;
}

/* As `dial9 record` starts it: what cannot be written to yet is no reason not to start. */
static int read_only(void)
{
	const char *dir;

	scratch_new();
	if (!own_mounts() || !(dir = tmpfs_at("ro", "size=64m")))
		return again_skip("no mount namespace");
	MUST(!mount("tmpfs", dir, "tmpfs", MS_REMOUNT | MS_RDONLY, NULL));
	setenv("DIAL9_TRACE_DIR", dir, 1);
	setenv("DIAL9_COMPRESS", "none", 1);
	setenv("DIAL9_RING_MB", "2", 1);
	MUST(!d9__recorder_ensure());
	start_loop();
	MUST(AGAIN_WAIT(is_paused()));
	MUST(status_says("\"state\":\"paused\"") && status_says_errno(EROFS));
	MUST(!mount("tmpfs", dir, "tmpfs", MS_REMOUNT, NULL));
	MUST(AGAIN_WAIT(is_recording()));
	stop_loop();
	stop_and_add_up(dir, false);
	return 0;
}

static int no_descriptors(void)
{
	struct rlimit few = { 3, 0 }, before;

	scratch_new();
	MUST(!getrlimit(RLIMIT_NOFILE, &before));
	few.rlim_max = before.rlim_max;
	start_in(scratch_dir);
	start_loop();
	MUST(AGAIN_WAIT(loop.n > 1000));
	MUST(!d9_recorder_rotate(d9_recorder_running(), 10000));
	MUST(!setrlimit(RLIMIT_NOFILE, &few));
	MUST(AGAIN_WAIT(is_paused()));
	MUST(d9_recorder_error(d9_recorder_running()) == -EMFILE);
	MUST(!setrlimit(RLIMIT_NOFILE, &before));
	MUST(status_says_errno(EMFILE));
	MUST(AGAIN_WAIT(is_recording()));
	stop_loop();
	stop_and_add_up(scratch_dir, false);
	return 0;
}

static int privileges_dropped(void)
{
	if (geteuid())
		return again_skip("not root");
	scratch_new();
	start_in(scratch_dir);
	start_loop();
	MUST(AGAIN_WAIT(loop.n > 1000));
	MUST(!d9_recorder_rotate(d9_recorder_running(), 10000));
	MUST(!setresuid(NOBODY, NOBODY, 0));
	MUST(AGAIN_WAIT(is_paused()));
	MUST(d9_recorder_error(d9_recorder_running()) == -EACCES);
	MUST(!setresuid(0, 0, 0));
	MUST(status_says_errno(EACCES));
	MUST(AGAIN_WAIT(is_recording()));
	stop_loop();
	stop_and_add_up(scratch_dir, false);
	return 0;
}

static uint64_t sealed(void)
{
	struct d9_counters c = { 0 };

	d9_recorder_counters(d9_recorder_running(), &c, sizeof(c));
	return c.segments_sealed;
}

static int directory_removed(void)
{
	char dir[PATH_MAX];

	scratch_new();
	snprintf(dir, sizeof(dir), "%.3000s/traces", scratch_dir);
	start_in(dir);
	start_loop();
	MUST(AGAIN_WAIT(written() > 1000));
	nftw(dir, scratch_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	MUST(AGAIN_WAIT(d9_recorder_error(d9_recorder_running()) == -ENOENT));
	MUST(AGAIN_WAIT(is_recording()));
	MUST(AGAIN_WAIT(!d9_recorder_rotate(d9_recorder_running(), 1000) && sealed() > 0));
	stop_loop();
	MUST(!d9_recorder_stop(d9_recorder_running(), 20000));
	MUST(scratch_files(dir, "trace.0.bin") == 0);
	MUST(scratch_files(dir, ".bin") > 0);
	MUST(scratch_read(dir, true, NULL, NULL) > 0);
	return 0;
}

/* ---- roles: where the ring is ---- */

static void record_a_lot(const char *kind, const char *reason)
{
	char text[128];

	start_in(scratch_dir);
	snprintf(text, sizeof(text), "\"kind\":\"%s\"", kind);
	MUST(status_says(text));
	MUST(AGAIN_WAIT(!reason || status_says(reason)));
	for (int i = 0; i < 3; i++) {
		uint32_t noise[200];

		for (int j = 0; j < 200; j++)
			noise[j] = (uint32_t)(j * 77777 + i);
		for (int j = 0; j < 20000; j++, loop.n++)
			D9_EMIT(&numbered, loop.n, d9_bytes(noise, sizeof(noise)));
		again_pause_ms(30);
	}
	stop_and_add_up(scratch_dir, false);
}

static int shm_of(const char *data, const char *kind, const char *reason)
{
	scratch_new();
	if (!own_mounts() || mount("tmpfs", "/dev/shm", "tmpfs", 0, data))
		return again_skip("no mount namespace");
	record_a_lot(kind, reason);
	return 0;
}

static int shm_much_too_small(void)
{
	return shm_of("size=256k", "memfd", "\"ring.fallback\":\"/dev/shm: no space left\"");
}

static int shm_with_room_for_half(void)
{
	return shm_of("size=800k", "shm", "\"chunks\":4,");
}

static int shm_that_cannot_grow(void)
{
	return shm_of("size=1700k", "shm", NULL);
}

static int shm_read_only(void)
{
	scratch_new();
	if (!own_mounts() || mount("tmpfs", "/dev/shm", "tmpfs", MS_RDONLY, NULL))
		return again_skip("no mount namespace");
	record_a_lot("memfd", "\"ring.fallback\":\"/dev/shm: read-only file system\"");
	return 0;
}

/* A container as they are run in production: nothing can be written anywhere. */
static int root_read_only(void)
{
	if (!own_mounts() || mount("none", "/", "none", MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) ||
	    mount("tmpfs", "/dev/shm", "tmpfs", MS_RDONLY, NULL))
		return again_skip("no mount namespace");
	setenv("DIAL9_TRACE_DIR", "/nowhere/to/be/found", 1);
	MUST(!d9__recorder_ensure());
	start_loop();
	MUST(AGAIN_WAIT(is_paused()));
	MUST(status_says_errno(EROFS));
	MUST(status_says("\"kind\":\"memfd\""));
	stop_loop();
	d9_recorder_stop(d9_recorder_running(), 1000);
	return 0;
}

/* ---- tests ---- */

#define ROLES_AND_TESTS(X)                                                                         \
	X(disk_full_at_start)                                                                      \
	X(disk_full_to_the_end)                                                                    \
	X(disk_filled_by_others)                                                                   \
	X(ext4_filled_by_others)                                                                   \
	X(quota_exceeded)                                                                          \
	X(sealing_fails)                                                                           \
	X(the_stop_tries_again)                                                                    \
	X(read_only)                                                                               \
	X(no_descriptors)                                                                          \
	X(privileges_dropped)                                                                      \
	X(directory_removed)                                                                       \
	X(shm_much_too_small)                                                                      \
	X(shm_with_room_for_half)                                                                  \
	X(shm_that_cannot_grow)                                                                    \
	X(shm_read_only)                                                                           \
	X(root_read_only)

static void test_faults_quota_used_up(void)
{
	char err[16];

	snprintf(err, sizeof(err), "%d", EDQUOT);
	again_check("write_fails", err);
}

static void test_faults_disk_broken(void)
{
	char err[16];

	snprintf(err, sizeof(err), "%d", EIO);
	again_check("write_fails", err);
}

static void test_faults_one_write_fails_by_a_bad_disk(void)
{
	char err[16];

	snprintf(err, sizeof(err), "%d", EIO);
	again_check("one_write_fails", err);
}

static void test_faults_one_write_fails_by_want_of_room(void)
{
	char err[16];

	snprintf(err, sizeof(err), "%d", ENOSPC);
	again_check("one_write_fails", err);
}

#define TEST(role)                                                                                 \
	static void test_faults_##role(void)                                                       \
	{                                                                                          \
		again_check(#role, NULL);                                                          \
	}
ROLES_AND_TESTS(TEST)

int main(int argc, char **argv)
{
	static const struct again_role roles[] = {
#define ROLE(role) { #role, role },
		ROLES_AND_TESTS(ROLE){ "write_fails", write_fails },
		{ "one_write_fails", one_write_fails },
		{ "records_and_ends", records_and_ends },
		{ NULL, NULL },
	};
	static const CU_TestInfo tests[] = {
		{ "full disk pauses, and goes on when there is room",
		  test_faults_disk_full_at_start },
		{ "disk that is full to the end leaves the latest in memory", test_faults_disk_full_to_the_end },
		{ "disk that others fill costs one segment at most, and that is told", test_faults_disk_filled_by_others },
		{ "one write that fails costs nothing, by a bad disk", test_faults_one_write_fails_by_a_bad_disk },
		{ "one write that fails costs nothing, by want of room", test_faults_one_write_fails_by_want_of_room },
		{ "small ext4 that others fill, likewise", test_faults_ext4_filled_by_others },
		{ "quota that is used up pauses until there is more of it", test_faults_quota_exceeded },
		{ "write that fails pauses, by quota", test_faults_quota_used_up },
		{ "write that fails pauses, by a bad disk", test_faults_disk_broken },
		{ "segment that cannot be sealed costs what is told", test_faults_sealing_fails },
		{ "stop tries again", test_faults_the_stop_tries_again },
		{ "read-only disk pauses until it can be written to", test_faults_read_only },
		{ "no descriptors pauses", test_faults_no_descriptors },
		{ "dropped privileges pause", test_faults_privileges_dropped },
		{ "directory that is removed is made again", test_faults_directory_removed },
		{ "/dev/shm much too small gives a ring elsewhere",
		  test_faults_shm_much_too_small },
		{ "/dev/shm with room for half gives half a ring",
		  test_faults_shm_with_room_for_half },
		{ "/dev/shm in which nothing grows is used as it is",
		  test_faults_shm_that_cannot_grow },
		{ "/dev/shm read-only gives a ring elsewhere", test_faults_shm_read_only },
		{ "root read-only pauses, no more", test_faults_root_read_only },
		CU_TEST_INFO_NULL,
	};
	int role = again_main(argc, argv, roles);

	if (role >= 0) {
		scratch_remove();
		return role;
	}
	return d9_test_main("faults", tests);
}
