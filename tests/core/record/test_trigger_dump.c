/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <dial9/trigger.h>

#include "core/record/scratch.h"
#include "core/record/ticks.h"
#include "core/record/triggered.h"
#include "record/triggers.h"
#include "ring/ring_file.h"

#define MS    UINT64_C(1000000)
#define MANY  300000u /* three times what a ring of a MiB holds */
#define BURST 10000u

/* ---- windows ---- */

struct ticks {
	uint64_t n, first, next;
	bool ordered;
};

static void see_tick(void *arg, const struct d9_event *event)
{
	struct ticks *ticks = arg;
	uint64_t number;

	if (strcmp(d9_event_name(event), "Tick") != 0)
		return;
	number = event->values[0].u.u64;
	if (!ticks->n++)
		ticks->first = number;
	else if (number != ticks->next)
		ticks->ordered = false;
	ticks->next = number + 1;
}

static uint64_t written(struct d9_recorder *recorder)
{
	struct d9_counters c;

	CU_ASSERT_EQUAL(d9_recorder_counters(recorder, &c, sizeof(c)), 0);
	return c.bytes_written;
}

/*
 * The window has more events than the ring holds, so they are written while it is open.  Each burst
 * waits until some of the one before are written, and none is overwritten.
 */
static void test_a_window_has_every_event_also_of_more_than_the_ring_holds(void)
{
	struct d9_recorder *recorder = start(D9_MODE_FLIGHT, "t: call last 20ms then 600s");
	struct ticks ticks = { .ordered = true };
	uint64_t before;

	emit_ticks(1000000, 100);
	sleep_ms(50);
	before = written(recorder);
	CU_ASSERT_EQUAL(d9_trigger_fire("t"), 0);
	for (uint64_t i = 0; i < MANY; i += BURST) {
		emit_ticks(i, BURST);
		while (written(recorder) == before)
			sleep_ms(1);
		before = written(recorder);
	}
	stop(recorder);

	CU_ASSERT_EQUAL(manifests(), 1);
	CU_ASSERT(says("\"state\": \"closed\""));
	CU_ASSERT(says("\"complete\": true"));
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, ".zst"), 1);
	scratch_read(scratch_dir, false, see_tick, &ticks);
	CU_ASSERT(ticks.ordered);
	CU_ASSERT_EQUAL(ticks.first, 0);
	CU_ASSERT_EQUAL(ticks.next, MANY);
	CU_ASSERT_EQUAL(scratch_count("DumpTriggerEvent"), 1);
}

/*
 * Without waiting, threads overwrite events before the dump has taken them, and the dump says that
 * it is not complete.
 */
static void test_what_was_overwritten_before_it_was_written_is_told(void)
{
	struct d9_recorder *recorder = start(D9_MODE_FLIGHT, "t: call last 1s then 600s");
	struct ticks ticks = { .ordered = true };

	CU_ASSERT_EQUAL(d9_trigger_fire("t"), 0);
	emit_ticks(0, 1);
	while (!written(recorder))
		sleep_ms(1);
	emit_ticks(1, 4 * MANY - 1);
	stop(recorder);
	CU_ASSERT_EQUAL(manifests(), 1);
	scratch_read(scratch_dir, false, see_tick, &ticks);
	CU_ASSERT_EQUAL(ticks.first, 0);
	CU_ASSERT_EQUAL(ticks.next, 4 * MANY);
	CU_ASSERT(says(ticks.n == 4 * MANY ? "\"complete\": true" : "\"complete\": false"));
}

static void *emit_beyond_the_ring(void *unused)
{
	emit_ticks(0, MANY / 2);
	return unused;
}

/* A new thread, too: its first events are overwritten before the dump has taken any of them. */
static void test_what_a_new_thread_overwrote_before_it_was_written_is_told(void)
{
	struct d9_recorder *recorder = start(D9_MODE_FLIGHT, "t: call last 1s then 600s");
	struct ticks ticks = { .ordered = true };
	pthread_t thread;

	CU_ASSERT_EQUAL(d9_trigger_fire("t"), 0);
	while (!written(recorder))
		sleep_ms(1);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, emit_beyond_the_ring, NULL), 0);
	pthread_join(thread, NULL);
	stop(recorder);
	CU_ASSERT_EQUAL(manifests(), 1);
	scratch_read(scratch_dir, false, see_tick, &ticks);
	CU_ASSERT_EQUAL(ticks.next, MANY / 2);
	CU_ASSERT(says(ticks.n == MANY / 2 ? "\"complete\": true" : "\"complete\": false"));
}

/* The texts of the one before are not in its metadata, nor do late fires of it come to the next. */
static void see_triggers(void *arg, const struct d9_event *event)
{
	if (!strcmp(d9_event_name(event), "SegmentMetadataEvent"))
		for (size_t i = 0; i < event->values[0].u.string_map.n; i++)
			*(int *)arg += !strncmp(event->values[0].u.string_map.pairs[2 * i].data,
						"trigger", 7);
}

static void test_the_next_recorder_knows_nothing_of_triggers_before(void)
{
	struct d9_recorder *recorder = start(D9_MODE_CONTINUOUS, "t: call");
	int n = 0;

	CU_ASSERT_EQUAL(d9_trigger_fire("t"), 0);
	stop(recorder);
	scratch_read(scratch_dir, true, see_triggers, &n);
	CU_ASSERT(n > 0);
	n = 0;
	recorder = scratch_start(scratch_options());
	emit_ticks(0, 1);
	CU_ASSERT_EQUAL(d9_trigger_fire("t"), -ENOENT);
	stop(recorder);
	scratch_read(scratch_dir, true, see_triggers, &n);
	CU_ASSERT_EQUAL(n, 0);
	CU_ASSERT_EQUAL(manifests(), 0);
}

static void test_a_window_without_a_future_is_dumped_at_once(void)
{
	struct d9_recorder *recorder = start(D9_MODE_FLIGHT, "t: call then 0s");
	struct ticks ticks = { .ordered = true };

	emit_ticks(0, 1000);
	CU_ASSERT_EQUAL(d9_trigger_fire("t"), 0);
	while (!manifests() || !strstr(manifest, "\"state\": \"closed\""))
		sleep_ms(1);
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, ".zst"), 1);
	stop(recorder);
	scratch_read(scratch_dir, true, see_tick, &ticks);
	CU_ASSERT(ticks.ordered);
	CU_ASSERT_EQUAL(ticks.n, 1000);
}

/* No file may grow: writes fail, as on a full disk. */
static void let_files_grow(bool let)
{
	struct rlimit limit;

	getrlimit(RLIMIT_FSIZE, &limit);
	limit.rlim_cur = let ? limit.rlim_max : 0;
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void test_a_dump_that_cannot_be_written_now_is_tried_again_until_its_window_closes(void)
{
	struct d9_recorder *recorder = start(D9_MODE_FLIGHT, "t: call then 600s");
	struct ticks ticks = { .ordered = true };
	struct d9_counters c = { .write_errors = 0 };

	emit_ticks(0, 1000);
	let_files_grow(false);
	CU_ASSERT_EQUAL(d9_trigger_fire("t"), 0);
	while (!c.write_errors) {
		CU_ASSERT_EQUAL_FATAL(d9_recorder_counters(recorder, &c, sizeof(c)), 0);
		sleep_ms(1);
	}
	emit_ticks(1000, 1000);
	let_files_grow(true);
	while (!written(recorder))
		sleep_ms(1);
	emit_ticks(2000, 1000);
	stop(recorder);
	CU_ASSERT_EQUAL(manifests(), 1);
	CU_ASSERT(says("\"state\": \"closed\""));
	scratch_read(scratch_dir, true, see_tick, &ticks);
	CU_ASSERT(ticks.ordered);
	CU_ASSERT_EQUAL(ticks.n, 3000);
}

static void test_a_dump_by_hand_does_not_disturb_one_whose_window_is_open(void)
{
	struct d9_recorder *recorder = start(D9_MODE_FLIGHT, "t: call then 600s");
	struct d9_dump_receipt receipt;
	struct ticks ticks = { .ordered = true };
	int err;

	emit_ticks(0, 100);
	CU_ASSERT_EQUAL(d9_trigger_fire("t"), 0);
	while (!manifests())
		sleep_ms(1);
	emit_ticks(100, 100);
	err = d9_dump(recorder, 0, NULL, 60000, &receipt, sizeof(receipt));
	CU_ASSERT_EQUAL_FATAL(err, 0);
	emit_ticks(200, 100);
	scratch_read(receipt.path, true, see_tick, &ticks);
	CU_ASSERT_EQUAL(ticks.n, 200);
	stop(recorder);
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, ".zst"), 2);
	CU_ASSERT_EQUAL(scratch_count("Tick"), 500);
}

/* ---- how often ---- */

static void test_a_million_fires_are_one_dump(void)
{
	struct d9_recorder *recorder = start(D9_MODE_FLIGHT, "t: call");

	errno = EDOM;
	for (int i = 0; i < 1000000; i++)
		CU_ASSERT_EQUAL_FATAL(d9_trigger_fire("t"), 0);
	CU_ASSERT_EQUAL(errno, EDOM);
	CU_ASSERT_EQUAL(d9_trigger_fire("u"), -ENOENT);
	CU_ASSERT_EQUAL(d9_trigger_fire(NULL), -EINVAL);
	stop(recorder);
	CU_ASSERT_EQUAL(manifests(), 1);
	CU_ASSERT(says("\"fired_count\": 1"));
	CU_ASSERT_EQUAL(d9_trigger_fire("t"), -ENOENT);
}

static void test_another_trigger_joins_the_dump(void)
{
	struct d9_recorder *recorder =
		start(D9_MODE_CONTINUOUS,
		      "a: call pairs team=\"x\\\\y\"; b: call; c: poll > 1ms");

	CU_ASSERT_EQUAL(d9_trigger_fire("a"), 0);
	CU_ASSERT_EQUAL(d9_trigger_fire("b"), 0);
	poll_of(3 * MS);
	stop(recorder);
	CU_ASSERT_EQUAL(manifests(), 1);
	CU_ASSERT(says("\"trigger\": \"a\",\n  \"trigger_time\": \"20"));
	CU_ASSERT(says("\"fired_count\": 3"));
	CU_ASSERT(says("\"threshold\": 1000000, \"value\": 3000000"));
	CU_ASSERT(says("\"pairs\": {\"team\": \"x\\\\\\\\y\"}"));
	CU_ASSERT(says("\"segments\": [\"trace.0.bin.zst\"]"));
	CU_ASSERT_EQUAL(scratch_count("DumpTriggerEvent"), 3);
}

/* Until the flush thread has taken |n| firings of the first trigger. */
static void await_fired(uint64_t n)
{
	char text[D9__RING_ANSWER];
	uint64_t fired = 0;

	while (fired < n) {
		uint32_t number = 0;

		CU_ASSERT_EQUAL_FATAL(d9__triggers_request(D9__TRIGGER_SHOW, "", &number, &fired,
							   text, sizeof(text)),
				      0);
		sleep_ms(1);
	}
}

static void see_refusal(void *arg, const struct d9_event *event)
{
	if (!strcmp(d9_event_name(event), "RecorderLogEvent")) {
		struct d9_text text = event->values[1].u.text;

		*(int *)arg += memmem(text.data, text.len, "none is made", 12) != NULL;
	}
}

static void test_no_more_dumps_are_made_in_an_hour_than_the_trigger_says(void)
{
	struct d9_recorder *recorder =
		start(D9_MODE_CONTINUOUS, "t: call then 0s every 1s at most 1/h");
	int refusals = 0;

	CU_ASSERT_EQUAL(d9_trigger_fire("t"), 0);
	await_fired(1);
	sleep_ms(1100);
	CU_ASSERT_EQUAL(d9_trigger_fire("t"), 0);
	await_fired(2);
	/* The dump sealed the segment, and lines of the log alone begin none. */
	emit_ticks(0, 1);
	stop(recorder);
	CU_ASSERT_EQUAL(manifests(), 1);
	scratch_read(scratch_dir, true, see_refusal, &refusals);
	CU_ASSERT_EQUAL(refusals, 1);
}

/* ---- what dumps may take ---- */

/* One more process of a program in flight mode, with a dump of |ticks| events. */
static void dump_once(uint64_t max_dump_bytes, uint64_t ticks)
{
	struct d9_options *options = NULL;
	struct d9_recorder *recorder;

	CU_ASSERT_EQUAL_FATAL(d9_options_new(&options), 0);
	d9_options_set_environment(options, false);
	d9_options_set_trace_dir(options, scratch_dir);
	d9_options_set_mode(options, D9_MODE_FLIGHT);
	d9_options_set_ring_mb(options, 1);
	d9_options_set_max_total_bytes(options, 64 << 10);
	CU_ASSERT_EQUAL(d9_options_set_max_dump_bytes(options, max_dump_bytes), 0);
	CU_ASSERT_EQUAL(d9_options_set_triggers(options, "t: call then 0s at most 360/h"), 0);
	recorder = scratch_start(options);
	emit_ticks(0, ticks);
	CU_ASSERT_EQUAL(d9_trigger_fire("t"), 0);
	stop(recorder);
}

static uint64_t bytes_of_segments;

static int add_segment(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)ftw;
	if (type == FTW_F && strstr(path, ".zst"))
		bytes_of_segments += (uint64_t)st->st_size;
	return 0;
}

static void test_dumps_take_nothing_of_the_traces_budget(void)
{
	scratch_new();
	for (int i = 0; i < 3; i++)
		dump_once(UINT64_C(16) << 20, MANY / 10);
	CU_ASSERT_EQUAL(manifests(), 3);
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, ".zst"), 3);
	bytes_of_segments = 0;
	nftw(scratch_dir, add_segment, 16, FTW_PHYS);
	CU_ASSERT(bytes_of_segments > 64 << 10);
	CU_ASSERT(says("\"mode\": \"flight\""));
}

static void see_evicted(void *arg, const struct d9_event *event)
{
	const struct d9_value *entries = d9_event_field(event, "entries");

	if (event->kind != D9_EVENT_SEGMENT_METADATA || !entries)
		return;
	for (size_t i = 0; i < entries->u.string_map.n; i++)
		if (entries->u.string_map.pairs[2 * i].len == 13 &&
		    !memcmp(entries->u.string_map.pairs[2 * i].data, "dumps.evicted", 13))
			*(size_t *)arg = entries->u.string_map.pairs[2 * i + 1].len;
}

static void test_the_oldest_dump_goes_with_its_manifest_also_a_dead_processs(void)
{
	scratch_new();
	/* A recorder takes none of the directories of dead processes if it ends before. */
	for (int i = 0; i < 4 || (manifests() > 1 && i < 40); i++)
		dump_once(16 << 10, MANY / 10);
	CU_ASSERT_EQUAL(manifests(), 1);
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, ".zst"), 1);
}

static void test_dumps_that_went_are_told_in_the_next(void)
{
	struct d9_options *options = scratch_options();
	struct d9_dump_receipt receipt;
	struct d9_recorder *recorder;
	size_t told = 0;

	d9_options_set_mode(options, D9_MODE_FLIGHT);
	d9_options_set_max_dump_bytes(options, 16 << 10);
	recorder = scratch_start(options);
	emit_ticks(0, MANY / 10);
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(d9_dump(recorder, 0, NULL, 60000, &receipt, sizeof(receipt)), 0);
	stop(recorder);
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, ".zst"), 1);
	scratch_read(scratch_dir, true, see_evicted, &told);
	CU_ASSERT_EQUAL(told, 26);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		/* First: those of the others count. */
		{ "no more dumps are made in an hour than the trigger says",
		  test_no_more_dumps_are_made_in_an_hour_than_the_trigger_says },
		{ "a window has every event, also of more than the ring holds",
		  test_a_window_has_every_event_also_of_more_than_the_ring_holds },
		{ "what was overwritten before it was written is told",
		  test_what_was_overwritten_before_it_was_written_is_told },
		{ "what a new thread overwrote before it was written is told",
		  test_what_a_new_thread_overwrote_before_it_was_written_is_told },
		{ "the next recorder knows nothing of triggers before",
		  test_the_next_recorder_knows_nothing_of_triggers_before },
		{ "a window without a future is dumped at once",
		  test_a_window_without_a_future_is_dumped_at_once },
		{ "a dump that cannot be written now is tried again until its window closes",
		  test_a_dump_that_cannot_be_written_now_is_tried_again_until_its_window_closes },
		{ "a dump by hand does not disturb one whose window is open",
		  test_a_dump_by_hand_does_not_disturb_one_whose_window_is_open },
		{ "a million fires are one dump", test_a_million_fires_are_one_dump },
		{ "another trigger joins the dump", test_another_trigger_joins_the_dump },
		{ "dumps take nothing of the trace's budget",
		  test_dumps_take_nothing_of_the_traces_budget },
		{ "the oldest dump goes, also a dead process's",
		  test_the_oldest_dump_goes_with_its_manifest_also_a_dead_processs },
		{ "dumps that went are told", test_dumps_that_went_are_told_in_the_next },
		CU_TEST_INFO_NULL,
	};
	int result = d9_test_main("trigger_dump", tests);

	scratch_remove();
	return result;
}
