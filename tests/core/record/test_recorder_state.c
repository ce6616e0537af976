/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <dial9/event.h>

#include "core/record/noise.h"
#include "core/record/scratch.h"
#include "record/flush.h"
#include "ring/ring_file.h"
#include "ring/ring_view.h"

static void test_recorder_to_nowhere_counts_only(void)
{
	struct d9_options *options = scratch_options();
	struct d9_recorder *recorder;

	d9_options_set_writer(options, D9_WRITER_NULL);
	recorder = scratch_start(options);
	emit_ticks(0, 5000);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);

	CU_ASSERT_EQUAL(scratch_files(scratch_dir, ""), 0);
	CU_ASSERT(counters_of(recorder).events_written >= 5000);
	CU_ASSERT_EQUAL(counters_of(recorder).bytes_written, 0);
}

/* ---- control from outside ---- */

static bool is_off(void)
{
	return !d9_enabled();
}

static bool is_on(void)
{
	return d9_enabled();
}

static void test_control_words_switch_recording(void)
{
	struct d9_recorder *recorder = scratch_start(scratch_options());

	emit_ticks(0, 10);
	atomic_store(&d9__ring.control->wanted, 2);
	d9__flush_wake();
	CU_ASSERT(wait_until(is_off));
	emit_ticks(10, 10);
	atomic_store(&d9__ring.control->wanted, 1);
	d9__flush_wake();
	CU_ASSERT(wait_until(is_on));
	emit_ticks(20, 10);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);

	CU_ASSERT_EQUAL(scratch_count("Tick"), 20);
}

/* ---- trouble with the disk ---- */

static bool is_paused(void)
{
	return d9_recorder_state(d9_recorder_running()) == D9_RECORDER_PAUSED;
}

static void log_something(void *arg, enum d9_log_level level, const char *line)
{
	(void)level;
	CU_ASSERT_PTR_NOT_NULL(strstr(line, "cannot"));
	++*(_Atomic(int) *)arg;
}

static uint64_t now_ms(void)
{
	return d9__clock_mono_ns() / 1000000;
}

/* As others see it: the page is the flush thread's. */
static uint64_t ticks_so_far(void)
{
	struct d9__ring_view view;
	uint64_t ticks = 0;

	CU_ASSERT_EQUAL_FATAL(d9__ring_view_open(&view, AT_FDCWD, d9__ring.path), 0);
	CU_ASSERT_EQUAL(d9__ring_view_read(&view, D9__RING_HEALTH_AT +
							 offsetof(struct d9__ring_health, ticks),
					   &ticks, sizeof(ticks)), 0);
	d9__ring_view_close(&view);
	return ticks;
}

static void test_recorder_of_a_program_that_does_little_is_seldom_awake(void)
{
	struct d9_recorder *recorder = scratch_start(scratch_options());
	uint64_t ticks = 0, begin_ms = 0;

	/* A wake-up of a loop twenty times a second; the recorder needs a moment to see that. */
	for (int i = 0; i < 30; i++) {
		if (i == 10) {
			ticks = ticks_so_far();
			begin_ms = now_ms();
		}
		emit_ticks((uint64_t)i * 5, 5);
		sleep_ms(50);
	}
	/* Ten times a second, not a hundred times. */
	CU_ASSERT(ticks_so_far() - ticks <= (now_ms() - begin_ms) / 40);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);
	CU_ASSERT_EQUAL(scratch_count("Tick"), 150);
}

static void test_recorder_that_cannot_write_pauses_and_goes_on(void)
{
	struct rlimit limit = { 4000, RLIM_INFINITY }, before;
	_Atomic(int) lines = 0;
	struct d9_options *options = scratch_options();
	struct d9_recorder *recorder;
	struct d9_counters c;

	d9_options_set_compress(options, D9_COMPRESS_NONE);
	d9_options_set_log(options, log_something, &lines);
	recorder = scratch_start(options);
	getrlimit(RLIMIT_FSIZE, &before);
	setrlimit(RLIMIT_FSIZE, &limit);
	emit_ticks(0, 10000);
	CU_ASSERT(wait_until(is_paused));
	CU_ASSERT_EQUAL(d9_recorder_error(recorder), -EFBIG);
	setrlimit(RLIMIT_FSIZE, &before);
	CU_ASSERT(d9_recorder_state(recorder) == D9_RECORDER_PAUSED);
	emit_ticks(10000, 100);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);

	c = counters_of(recorder);
	CU_ASSERT_EQUAL(all_lost(&c), 0);
	CU_ASSERT_EQUAL(scratch_count("Tick"), 10100);
	CU_ASSERT_EQUAL(lines, 1);
}

static bool wrote_again(void)
{
	emit_ticks(0, 1);
	return counters().events_written > 0 && !is_paused() &&
	       scratch_files(scratch_dir, ".active") == 1;
}

static void test_recorder_makes_its_directory_anew_when_it_vanished(void)
{
	struct d9_recorder *recorder = scratch_start(scratch_options());
	char dir[PATH_MAX];

	emit_ticks(0, 10);
	CU_ASSERT(wait_until(wrote_again));
	CU_ASSERT(d9_recorder_dir(recorder, dir, sizeof(dir)) > 0);
	nftw(dir, scratch_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	CU_ASSERT(wait_until(wrote_again));
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);

	CU_ASSERT(scratch_count("Tick") > 0);
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, "trace.0.bin.zst"), 0);
}

static void test_recorder_closing_all_descriptors_does_not_hurt(void)
{
	pid_t child = fork();
	int status;

	CU_ASSERT_FATAL(child >= 0);
	if (!child) {
		struct d9_options *options = scratch_options();
		struct d9_recorder *recorder = scratch_start(options);

		emit_ticks(0, 100);
		for (int fd = 3; fd < 256; fd++)
			close(fd);
		emit_ticks(100, 100);
		if (d9_recorder_stop(recorder, 5000) || scratch_count("Tick") != 200)
			_exit(1);
		scratch_remove();
		_exit(0);
	}
	waitpid(child, &status, 0);
	CU_ASSERT(WIFEXITED(status) && !WEXITSTATUS(status));
}

/* ---- losses ---- */

static void *emit_flood(void *arg)
{
	(void)arg;
	for (int i = 0; i < 400000; i++)
		D9_EMIT(&tick, i, i * 7);
	return NULL;
}

static void test_losses_and_written_events_add_up(void)
{
	struct d9_options *options = scratch_options();
	struct d9_recorder *recorder;
	struct d9_counters c;
	pthread_t thread[2];

	d9_options_set_ring_mb(options, 1);
	recorder = scratch_start(options);
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, emit_flood, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 10000), 0);

	c = counters_of(recorder);
	CU_ASSERT_EQUAL(scratch_count("Tick") + all_lost(&c), 800000);
	if (all_lost(&c))
		CU_ASSERT(scratch_count("RecorderLossEvent") > 0);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "to nowhere", test_recorder_to_nowhere_counts_only },
		{ "control words", test_control_words_switch_recording },
		{ "seldom awake", test_recorder_of_a_program_that_does_little_is_seldom_awake },
		{ "pauses and goes on", test_recorder_that_cannot_write_pauses_and_goes_on },
		{ "directory vanished", test_recorder_makes_its_directory_anew_when_it_vanished },
		{ "descriptors closed", test_recorder_closing_all_descriptors_does_not_hurt },
		{ "losses add up", test_losses_and_written_events_add_up },
		CU_TEST_INFO_NULL,
	};
	int result = d9_test_main("recorder_state", tests);

	scratch_remove();
	return result;
}
