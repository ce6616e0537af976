/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "core/record/noise.h"
#include "core/record/scratch.h"
#include "ring/ring_file.h"

#if defined(__SANITIZE_THREAD__)
#define TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TSAN 1
#endif
#endif
#ifndef TSAN
#define TSAN 0
#endif

static void test_recorder_writes_what_was_emitted_and_stops(void)
{
	struct d9_recorder *recorder = scratch_start(scratch_options());

	CU_ASSERT_PTR_EQUAL(d9_recorder_running(), recorder);
	CU_ASSERT_EQUAL(d9_recorder_state(recorder), D9_RECORDER_RECORDING);
	CU_ASSERT(d9_enabled());
	emit_ticks(0, 1000);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);

	CU_ASSERT_FALSE(d9_enabled());
	CU_ASSERT_PTR_NULL(d9_recorder_running());
	CU_ASSERT_EQUAL(d9_recorder_state(recorder), D9_RECORDER_STOPPED);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 0), 0);
	CU_ASSERT_EQUAL(scratch_count("Tick"), 1000);
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, ".bin.zst"), 1);
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, ".active"), 0);
}

static uint64_t cpu_ns(void)
{
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	return ((uint64_t)ru.ru_utime.tv_sec + (uint64_t)ru.ru_stime.tv_sec) * 1000000000u +
	       ((uint64_t)ru.ru_utime.tv_usec + (uint64_t)ru.ru_stime.tv_usec) * 1000u;
}

static void note_used(void *arg, const struct d9_event *event)
{
	uint64_t *used_ns = arg;

	if (event->kind == D9_EVENT_RESOURCE_USAGE)
		*used_ns = d9_event_known_u64(event, D9_RESOURCE_USAGE_USER_CPU_NS, 0) +
			   d9_event_known_u64(event, D9_RESOURCE_USAGE_SYSTEM_CPU_NS, 0);
}

static void test_recorder_that_stops_samples_what_was_used_since_the_last_interval(void)
{
	struct d9_options *options = scratch_options();
	uint64_t used_ns = 0, burned_ns = cpu_ns() + 50000000;
	struct d9_recorder *recorder;

	d9_options_set_usage_interval_ms(options, 3600000);
	recorder = scratch_start(options);
	emit_ticks(0, 10);
	while (cpu_ns() < burned_ns)
		;
	burned_ns = cpu_ns();
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);

	scratch_read(scratch_dir, true, note_used, &used_ns);
	/* The kernel adds what a thread uses on another processor at its next tick. */
	CU_ASSERT(used_ns + 25000000 >= burned_ns);
}

static void test_recorder_starts_once_at_a_time_and_again_later(void)
{
	struct d9_recorder *recorder = scratch_start(scratch_options()), *same = NULL;

	CU_ASSERT_EQUAL(d9_recorder_start(NULL, &same), -EALREADY);
	CU_ASSERT_PTR_EQUAL(same, recorder);
	emit_ticks(0, 10);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);
	recorder = scratch_start(scratch_options());
	emit_ticks(10, 20);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);

	CU_ASSERT_EQUAL(scratch_count("Tick"), 20);
}

/* |arg|: whether metadata says why the ring was not renamed. */
static void find_not_renamed(void *arg, const struct d9_event *event)
{
	const struct d9_value *map = event->kind == D9_EVENT_SEGMENT_METADATA ? &event->values[0] : NULL;

	for (size_t i = 0; map && i < map->u.string_map.n; i++) {
		struct d9_text key = map->u.string_map.pairs[2 * i];

		*(bool *)arg |= key.len == 16 && memcmp(key.data, "ring.not_renamed", 16) == 0;
	}
}

static void record_and_find_not_renamed(bool *told)
{
	struct d9_recorder *recorder = scratch_start(scratch_options());

	emit_ticks(0, 10);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);
	scratch_read(scratch_dir, true, find_not_renamed, told);
}

/* The last one: the ring of this process has no name any more. */
static void test_ring_whose_file_somebody_removed_is_told_when_the_recorder_starts_again(void)
{
	bool told = false;

	record_and_find_not_renamed(&told);
	record_and_find_not_renamed(&told);
	CU_ASSERT_FALSE(told);
	unlink(d9__ring.path);

	record_and_find_not_renamed(&told);
	CU_ASSERT_TRUE(told);
}

static unsigned open_descriptors(void)
{
	return scratch_files("/proc/self/fd", "");
}

/* A thread that was joined may stay in /proc for a moment. */
static bool is_alone(void)
{
	DIR *dir = opendir("/proc/self/task");
	unsigned n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n == 3 + TSAN; /* TSan has one of its own */
}

static void test_recorder_leaves_nothing_behind_after_many_starts(void)
{
	unsigned before, i;

	scratch_start(scratch_options());
	d9_recorder_stop(d9_recorder_running(), 5000);
	before = open_descriptors();
	for (i = 0; i < 50; i++) {
		struct d9_recorder *recorder = scratch_start(scratch_options());

		/* None of ours is visible to the program, or to a child. */
		CU_ASSERT_EQUAL(open_descriptors(), before);
		emit_ticks(0, 10);
		CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);
	}
	CU_ASSERT_EQUAL(open_descriptors(), before);
	CU_ASSERT(wait_until(is_alone));
}

static void test_recorder_that_starts_disabled_makes_no_file(void)
{
	struct d9_options *options = scratch_options();
	struct d9_recorder *recorder;
	char dir[PATH_MAX];

	d9_options_set_enabled(options, false);
	recorder = scratch_start(options);
	emit_ticks(0, 10);
	CU_ASSERT_EQUAL(d9_recorder_dir(recorder, dir, sizeof(dir)), -ENOENT);
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, ""), 0);
	d9_enable();
	emit_ticks(10, 5);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);

	CU_ASSERT_EQUAL(scratch_count("Tick"), 5);
}

static void test_recorder_without_events_leaves_no_segment(void)
{
	struct d9_options *options = scratch_options();
	struct d9_recorder *recorder;
	char peers[PATH_MAX + 16];
	FILE *looked;

	/* As after a long look at peers, which is no segment. */
	snprintf(peers, sizeof(peers), "%s/.peers", scratch_dir);
	looked = fopen(peers, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(looked);
	fclose(looked);
	d9_options_set_usage_interval_ms(options, 0);
	recorder = scratch_start(options);
	sleep_ms(30);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);

	CU_ASSERT_EQUAL(scratch_files(scratch_dir, ""), 0);
}

static void test_recorder_rotates_when_told(void)
{
	struct d9_recorder *recorder = scratch_start(scratch_options());

	for (int i = 0; i < 3; i++) {
		emit_ticks((uint64_t)i * 100, 100);
		CU_ASSERT_EQUAL(d9_recorder_rotate(recorder, 5000), 0);
		CU_ASSERT_EQUAL(scratch_files(scratch_dir, ".bin.zst"), (unsigned)i + 1);
	}
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);

	CU_ASSERT_EQUAL(counters_of(recorder).segments_sealed, 3);
	CU_ASSERT_EQUAL(scratch_count("Tick"), 300);
}

static bool three_sealed(void)
{
	emit_ticks(0, 1);
	return counters().segments_sealed >= 3;
}

static void test_recorder_rotates_by_time(void)
{
	struct d9_options *options = scratch_options();
	struct d9_recorder *recorder;

	d9_options_set_rotation_ms(options, 100);
	recorder = scratch_start(options);
	CU_ASSERT(wait_until(three_sealed));
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);
}

static void test_recorder_keeps_its_budget_by_deleting_the_oldest(void)
{
	struct d9_options *options = scratch_options();
	struct d9_recorder *recorder;
	struct d9_counters c;

	d9_options_set_max_total_bytes(options, 256 << 10);
	d9_options_set_max_file_bytes(options, 64 << 10);
	recorder = scratch_start(options);
	for (uint64_t i = 0; i < 40; i++) {
		emit_ticks(i * 5000, 5000);
		sleep_ms(12);
	}
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);

	c = counters_of(recorder);
	CU_ASSERT(c.segments_sealed > 4);
	CU_ASSERT(c.segments_evicted > 0);
	CU_ASSERT(c.bytes_retained <= 256 << 10);
	CU_ASSERT_EQUAL(c.segments_sealed - c.segments_evicted,
			scratch_files(scratch_dir, ".bin.zst"));
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, "trace.0.bin.zst"), 0);
}

static void check_packing(enum d9_compress compress, const char *suffix)
{
	struct d9_options *options = scratch_options();
	struct d9_recorder *recorder;

	d9_options_set_compress(options, compress);
	recorder = scratch_start(options);
	emit_ticks(0, 3000);
	sleep_ms(30);
	emit_ticks(3000, 3000);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);

	CU_ASSERT_EQUAL(scratch_files(scratch_dir, suffix), 1);
	CU_ASSERT_EQUAL(scratch_count("Tick"), 6000);
}

static void test_recorder_packs_as_it_is_told(void)
{
	check_packing(D9_COMPRESS_NONE, "trace.0.bin");
	check_packing(D9_COMPRESS_GZIP, "trace.0.bin.gz");
	check_packing(D9_COMPRESS_ZSTD, "trace.0.bin.zst");
}

static bool first_thousand_written(void)
{
	return counters().events_written >= 1000;
}

static void test_segment_can_be_read_while_it_is_written(void)
{
	static const enum d9_compress kinds[] = { D9_COMPRESS_ZSTD, D9_COMPRESS_NONE,
						  D9_COMPRESS_GZIP };

	for (int i = 0; i < 3; i++) {
		struct d9_options *options = scratch_options();
		struct d9_recorder *recorder;

		d9_options_set_compress(options, kinds[i]);
		recorder = scratch_start(options);
		emit_ticks(0, 1000);
		CU_ASSERT(wait_until(first_thousand_written));

		CU_ASSERT_EQUAL(scratch_files(scratch_dir, ".active"), 1);
		CU_ASSERT_EQUAL(scratch_count("Tick"), 1000);
		CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);
	}
}

struct segments {
	_Atomic(unsigned) n, files;
	_Atomic(uint64_t) events, bytes;
};

static void take_segment(void *arg, const struct d9_sealed_segment *segment)
{
	struct segments *segments = arg;
	uint64_t first_ns, last_ns;
	size_t len;
	const char *data = d9_sealed_segment_data(segment, &len);
	const char *path = d9_sealed_segment_path(segment);

	CU_ASSERT_EQUAL(d9_sealed_segment_index(segment), segments->n);
	CU_ASSERT(d9_sealed_segment_complete(segment));
	d9_sealed_segment_span(segment, &first_ns, &last_ns);
	CU_ASSERT(first_ns && first_ns <= last_ns);
	if (data)
		CU_ASSERT(len == d9_sealed_segment_bytes(segment) && !memcmp(data, "TRC", 4));
	if (path)
		segments->files += access(path, R_OK) == 0;
	segments->events += d9_sealed_segment_events(segment);
	segments->bytes += d9_sealed_segment_bytes(segment);
	segments->n++;
}

static void test_sealed_segments_are_announced(void)
{
	struct segments segments = { 0 };
	struct d9_options *options = scratch_options();
	struct d9_recorder *recorder;

	d9_options_set_usage_interval_ms(options, 0);
	d9_options_set_segment_sealed(options, take_segment, &segments);
	recorder = scratch_start(options);
	for (int i = 0; i < 4; i++) {
		emit_ticks(0, 50);
		CU_ASSERT_EQUAL(d9_recorder_rotate(recorder, 5000), 0);
	}
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);

	CU_ASSERT_EQUAL(segments.n, 4);
	CU_ASSERT_EQUAL(segments.files, 4);
	CU_ASSERT(segments.events >= 200);
}

static void test_recorder_in_memory_makes_no_file(void)
{
	struct segments segments = { 0 };
	struct d9_options *options = scratch_options();
	struct d9_recorder *recorder;

	d9_options_set_writer(options, D9_WRITER_MEMORY);
	d9_options_set_compress(options, D9_COMPRESS_NONE);
	d9_options_set_max_total_bytes(options, 512 << 10);
	d9_options_set_segment_sealed(options, take_segment, &segments);
	recorder = scratch_start(options);
	for (int i = 0; i < 30; i++) {
		emit_ticks(0, 5000);
		sleep_ms(12);
	}
	CU_ASSERT(counters().bytes_retained <= 512 << 10);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);

	CU_ASSERT_EQUAL(scratch_files(scratch_dir, ""), 0);
	CU_ASSERT(counters_of(recorder).segments_evicted > 0);
	CU_ASSERT(segments.n > 1);
	CU_ASSERT_EQUAL(segments.bytes, counters_of(recorder).bytes_written);
}

/* ---- what stands in a segment ---- */

struct heads {
	char names[10][32];
	int n;
	char complete[8];
	int modules;
	bool has_program;
};

static void note_head(void *arg, const struct d9_event *event)
{
	struct heads *heads = arg;

	if (heads->n < 10)
		snprintf(heads->names[heads->n++], 32, "%s", d9_event_name(event));
	if (event->kind == D9_EVENT_MODULE)
		heads->modules++;
	if (event->kind == D9_EVENT_SEGMENT_METADATA) {
		const struct d9_value *entries = d9_event_field(event, "entries");

		for (size_t i = 0; i < entries->u.string_map.n; i++) {
			struct d9_text key = entries->u.string_map.pairs[2 * i];
			struct d9_text value = entries->u.string_map.pairs[2 * i + 1];

			if (key.len == 16 && !memcmp(key.data, "segment.complete", 16))
				snprintf(heads->complete, sizeof(heads->complete), "%.*s",
					 (int)value.len, value.data);
			if (key.len == 4 && !memcmp(key.data, "user", 4))
				heads->has_program = value.len == 5;
		}
	}
}

static void test_segment_begins_with_clock_metadata_clock(void)
{
	struct d9_options *options = scratch_options();
	struct d9_recorder *recorder;
	struct heads heads = { .n = 0 };

	d9_options_add_metadata(options, "user", "value");
	recorder = scratch_start(options);
	emit_ticks(0, 100);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);

	scratch_read(scratch_dir, true, note_head, &heads);
	CU_ASSERT_STRING_EQUAL(heads.names[0], "ClockSyncEvent");
	CU_ASSERT_STRING_EQUAL(heads.names[1], "SegmentMetadataEvent");
	CU_ASSERT_STRING_EQUAL(heads.names[2], "ClockSyncEvent");
	CU_ASSERT_STRING_EQUAL(heads.names[3], "ModuleEvent");
	CU_ASSERT(heads.modules >= 3);
	CU_ASSERT_STRING_EQUAL(heads.complete, "true");
	CU_ASSERT(heads.has_program);
}

static void test_recorder_keeps_its_files_private(void)
{
	struct d9_recorder *recorder = scratch_start(scratch_options());
	char dir[PATH_MAX], file[PATH_MAX + 32];
	struct stat st;

	CU_ASSERT(d9_recorder_dir(recorder, dir, sizeof(dir)) > 0);
	emit_ticks(0, 10);
	CU_ASSERT_EQUAL(d9_recorder_rotate(recorder, 5000), 0);
	snprintf(file, sizeof(file), "%s/trace.0.bin.zst", dir);
	CU_ASSERT_EQUAL(stat(dir, &st), 0);
	CU_ASSERT_EQUAL(st.st_mode & 07777, 0700);
	CU_ASSERT_EQUAL(stat(file, &st), 0);
	CU_ASSERT_EQUAL(st.st_mode & 07777, 0600);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);
}

static void test_recorder_refuses_a_directory_that_others_may_write_to(void)
{
	struct d9_options *options = scratch_options();
	struct d9_recorder *recorder = NULL;

	chmod(scratch_dir, 0777);
	CU_ASSERT_EQUAL(d9_recorder_start(options, &recorder), -EPERM);
	CU_ASSERT_PTR_NULL(recorder);
	CU_ASSERT_PTR_NULL(d9_recorder_running());
	d9_options_set_trace_dir(options, "/proc/self/status/x");
	CU_ASSERT(d9_recorder_start(options, &recorder) < 0);
	d9_options_free(options);
}

/* ---- fork ---- */

static void test_forked_child_records_into_a_directory_of_its_own(void)
{
	struct d9_recorder *recorder = scratch_start(scratch_options());
	char dir[PATH_MAX], child_dir[PATH_MAX] = "";
	pid_t child;
	int status, pipes[2];

	CU_ASSERT_EQUAL_FATAL(pipe(pipes), 0);
	emit_ticks(0, 100);
	/* TSan ends a forked child that starts a thread, if the parent had any. */
	child = TSAN ? -1 : fork();
	if (child < 0) {
		CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);
		return;
	}
	if (!child) {
		/* Silent from its first instruction; begins with its first event. */
		int wrong = d9_enabled() || d9_recorder_running();

		emit_ticks(1000, 7);
		if (wrong || !d9_recorder_running() || d9_recorder_stop(recorder, 5000))
			_exit(1);
		d9_recorder_dir(recorder, child_dir, sizeof(child_dir));
		if (write(pipes[1], child_dir, sizeof(child_dir)) < 0)
			_exit(2);
		_exit(0);
	}
	close(pipes[1]);
	emit_ticks(100, 100);
	waitpid(child, &status, 0);
	CU_ASSERT(WIFEXITED(status) && !WEXITSTATUS(status));
	CU_ASSERT_EQUAL(read(pipes[0], child_dir, sizeof(child_dir)), (ssize_t)sizeof(child_dir));
	d9_recorder_dir(recorder, dir, sizeof(dir));
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);

	CU_ASSERT(strcmp(dir, child_dir) != 0);
	{
		struct scratch_count ours = { "Tick", 0 }, theirs = { "Tick", 0 };

		scratch_read(dir, true, scratch_count_event, &ours);
		scratch_read(child_dir, true, scratch_count_event, &theirs);
		CU_ASSERT_EQUAL(ours.n, 200);
		CU_ASSERT_EQUAL(theirs.n, 7);
	}
	close(pipes[0]);
}

static void test_child_of_a_raw_clone_records_nothing(void)
{
	struct d9_recorder *recorder = scratch_start(scratch_options());
	int status;
	pid_t child;

	emit_ticks(0, 50);
	child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (!child) {
		emit_ticks(50, 50);
		d9_enable();
		emit_ticks(100, 50);
		syscall(SYS_exit_group, d9_recorder_stop(recorder, 1000));
	}
	waitpid(child, &status, 0);
	CU_ASSERT(WIFEXITED(status) && !WEXITSTATUS(status));
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);

	CU_ASSERT_EQUAL(scratch_count("Tick"), 50);
}

/* ---- starts that fail, stops that cannot end ---- */

static char said[256];

static void hear(void *arg, enum d9_log_level level, const char *line)
{
	(void)arg, (void)level;
	snprintf(said, sizeof(said), "%s", line);
}

static void put_file_in_place_of_scratch(char name[PATH_MAX])
{
	snprintf(name, PATH_MAX, "%s", scratch_dir);
	scratch_remove();
	CU_ASSERT_EQUAL(mknod(name, S_IFREG | 0600, 0), 0);
}

static void test_stop_tells_that_not_all_is_written(void)
{
	struct d9_options *options = scratch_options();
	struct d9_recorder *recorder;
	char dir[PATH_MAX];
	int err;

	d9_options_set_log(options, hear, NULL);
	recorder = scratch_start(options);
	/* Nobody can make a directory of that name again. */
	put_file_in_place_of_scratch(dir);
	emit_ticks(0, 10);
	err = d9_recorder_stop(recorder, 5000);
	CU_ASSERT_PTR_NULL(d9_recorder_running());
	/* A slow machine lets a tick come between, which does try again: it is told of the file. */
	CU_ASSERT(err == -ENOENT || err == -ENOTDIR);
	CU_ASSERT(err == -ENOTDIR || !strstr(said, "trying again"));
	CU_ASSERT_EQUAL(unlink(dir), 0);
}

static void test_start_that_fails_says_so_once(void)
{
	struct d9_options *options = scratch_options();
	struct d9_recorder *recorder = NULL;
	char dir[PATH_MAX];

	put_file_in_place_of_scratch(dir);
	d9_options_set_log(options, hear, NULL);
	said[0] = '\0';
	CU_ASSERT_EQUAL(d9_recorder_start(options, &recorder), -ENOTDIR);
	CU_ASSERT_PTR_NULL(recorder);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "; not recording"));
	CU_ASSERT_EQUAL(unlink(dir), 0);
	d9_options_free(options);
}

/* Until the posting of |arg|, a semaphore. */
static void slow_segment(void *arg, const struct d9_sealed_segment *segment)
{
	(void)segment;
	sem_wait(arg);
}

static void test_stop_keeps_its_deadline(void)
{
	struct d9_options *options = scratch_options();
	struct d9_recorder *recorder;
	sem_t over;

	sem_init(&over, 0, 0);
	d9_options_set_segment_sealed(options, slow_segment, &over);
	recorder = scratch_start(options);
	emit_ticks(0, 10);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 50), -ETIMEDOUT);
	sem_post(&over);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);
	sem_destroy(&over);
	scratch_remove();
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "writes and stops", test_recorder_writes_what_was_emitted_and_stops },
		{ "samples what was used at last", test_recorder_that_stops_samples_what_was_used_since_the_last_interval },
		{ "starts once", test_recorder_starts_once_at_a_time_and_again_later },
		{ "leaves nothing behind", test_recorder_leaves_nothing_behind_after_many_starts },
		{ "disabled makes no file", test_recorder_that_starts_disabled_makes_no_file },
		{ "no events, no segment", test_recorder_without_events_leaves_no_segment },
		{ "rotates when told", test_recorder_rotates_when_told },
		{ "rotates by time", test_recorder_rotates_by_time },
		{ "keeps its budget", test_recorder_keeps_its_budget_by_deleting_the_oldest },
		{ "packs as told", test_recorder_packs_as_it_is_told },
		{ "readable while written", test_segment_can_be_read_while_it_is_written },
		{ "segments are announced", test_sealed_segments_are_announced },
		{ "in memory", test_recorder_in_memory_makes_no_file },
		{ "head of a segment", test_segment_begins_with_clock_metadata_clock },
		{ "private files", test_recorder_keeps_its_files_private },
		{ "foreign directory",
		  test_recorder_refuses_a_directory_that_others_may_write_to },
		{ "forked child", test_forked_child_records_into_a_directory_of_its_own },
		{ "raw clone", test_child_of_a_raw_clone_records_nothing },
		{ "stop tells what is not written", test_stop_tells_that_not_all_is_written },
		{ "failed start", test_start_that_fails_says_so_once },
		{ "stop keeps its deadline", test_stop_keeps_its_deadline },
		{ "a ring without a name", test_ring_whose_file_somebody_removed_is_told_when_the_recorder_starts_again },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("recorder", tests);
}
