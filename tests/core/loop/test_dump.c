/* SPDX-License-Identifier: Apache-2.0 */
/* Dumps begin in the middle of the lives of tasks. */
#include "config.h"

#include <time.h>

#include <dial9/loop.h>

#include "core/record/scratch.h"
#include "loop/adapter.h"

#define MANY 200000 /* polls: a ring of a MiB holds fewer */

static struct d9_loop *loop;

/* In a frame of its own: what is inside a callback lies deeper. */
static __attribute__((noinline)) uint64_t poll_task(uint64_t key, const char *name)
{
	struct d9_poll poll = { .loop = loop, .task = { .key = key, .fd = (int)key + 100,
							.kind = D9_TASK_TIMER, .name = name } };
	uint64_t id;

	poll.task.callsite = d9_callsite((const void *)0x1000, (const void *)0x2000, 0);
	d9_poll_begin(&poll);
	id = poll.task_id;
	d9_poll_end(&poll);
	return id;
}

static void pause_ms(long ms)
{
	const struct timespec pause = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&pause, NULL);
}

static struct d9_recorder *start_with(struct d9_options *options)
{
	struct d9_recorder *recorder = scratch_start(options);

	CU_ASSERT_EQUAL_FATAL(d9_loop_register(D9_LIBRARY_OWN, &loop, "test", &loop), 0);
	return recorder;
}

static struct d9_recorder *start_in_flight(void)
{
	struct d9_options *options = scratch_options();

	CU_ASSERT_EQUAL(d9_options_set_mode(options, D9_MODE_FLIGHT), 0);
	d9_options_set_ring_mb(options, 1);
	return start_with(options);
}

static void stop(struct d9_recorder *recorder)
{
	d9_loop_unregister(loop);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);
}

/* ---- what a dump tells of one task ---- */

struct told {
	uint64_t task;
	unsigned spawns, polls, wrong; /* polled before it was announced */
	uint64_t spawned_ns, first_ns; /* the latter of all events of the file */
	uint64_t fd;
	char name[32], kind[32], loc[64];
};

static void copy_text(const struct d9_event *event, unsigned k, char *to, size_t size)
{
	const struct d9_value *value = d9_event_known(event, k);

	if (value && value->present)
		snprintf(to, size, "%.*s", (int)value->u.text.len, value->u.text.data);
}

static void look_at(void *arg, const struct d9_event *event)
{
	struct told *told = arg;
	const char *name = d9_event_name(event);
	const struct d9_value *id = d9_event_field(event, "task_id");

	if (!strcmp(name, "PollStartEvent") && (!told->first_ns || event->timestamp_ns < told->first_ns))
		told->first_ns = event->timestamp_ns;
	if (!id || id->u.u64 != told->task)
		return;
	if (!strcmp(name, "TaskSpawnEvent")) {
		told->spawns++;
		told->spawned_ns = event->timestamp_ns;
		told->fd = d9_event_known_u64(event, D9_TASK_SPAWN_FD, UINT64_MAX);
		copy_text(event, D9_TASK_SPAWN_NAME, told->name, sizeof(told->name));
		copy_text(event, D9_TASK_SPAWN_KIND, told->kind, sizeof(told->kind));
		copy_text(event, D9_TASK_SPAWN_SPAWN_LOC, told->loc, sizeof(told->loc));
	} else if (!strcmp(name, "PollStartEvent")) {
		told->polls++;
		told->wrong += !told->spawns;
	}
}

static struct told told_of(const char *path, uint64_t task, bool file_order)
{
	struct told told = { .task = task };

	scratch_read(path, file_order, look_at, &told);
	return told;
}

static struct d9_dump_receipt dump(struct d9_recorder *recorder, uint64_t last_ms)
{
	struct d9_dump_receipt receipt = { 0 };

	CU_ASSERT_EQUAL_FATAL(d9_dump(recorder, last_ms, NULL, 20000, &receipt, sizeof(receipt)), 0);
	return receipt;
}

/* ---- tests ---- */

static void check_announced(const char *path, uint64_t task)
{
	struct told in_file = told_of(path, task, true), in_time = told_of(path, task, false);

	CU_ASSERT_EQUAL(in_file.spawns, 1);
	CU_ASSERT(in_file.polls >= 1);
	CU_ASSERT_EQUAL(in_file.wrong + in_time.wrong, 0);
	CU_ASSERT_EQUAL(in_time.fd, 101);
	CU_ASSERT_STRING_EQUAL(in_time.name, "early");
	CU_ASSERT_STRING_EQUAL(in_time.kind, "timer");
	CU_ASSERT_STRING_EQUAL(in_time.loc, "0x1000 @ 0x2000");
}

static void test_task_whose_beginning_the_ring_forgot_is_announced_once(void)
{
	struct d9_recorder *recorder = start_in_flight();
	uint64_t early = poll_task(1, "early"), idle = poll_task(2, "idle"), ended = poll_task(3, NULL);
	uint64_t late;
	struct d9_dump_receipt one, two;

	d9_task_end(D9_LIBRARY_OWN, 3);
	for (int i = 0; i < MANY; i++)
		poll_task(4, "busy");
	poll_task(1, NULL);
	late = poll_task(5, "late");
	one = dump(recorder, 0);
	two = dump(recorder, 0);

	check_announced(one.path, early);
	check_announced(two.path, early);
	CU_ASSERT_EQUAL(told_of(one.path, idle, true).polls, 0);
	CU_ASSERT_EQUAL(told_of(one.path, idle, true).spawns, 1);
	CU_ASSERT_EQUAL(told_of(one.path, ended, true).spawns, 0);
	CU_ASSERT_EQUAL(told_of(one.path, late, true).spawns, 1);
	CU_ASSERT(told_of(one.path, late, true).spawned_ns > told_of(one.path, late, true).first_ns);
	CU_ASSERT_EQUAL(told_of(one.path, late, true).wrong, 0);
	stop(recorder);
}

static void test_window_announces_what_began_before_it_and_nothing_older_is_in_it(void)
{
	struct d9_recorder *recorder = start_in_flight();
	uint64_t early = poll_task(1, "early");
	struct d9_dump_receipt receipt;
	struct told told;

	pause_ms(400);
	poll_task(1, NULL);
	receipt = dump(recorder, 200);
	told = told_of(receipt.path, early, true);

	/* On a machine that is very busy the second poll is too old as well. */
	if (told.polls) {
		CU_ASSERT_EQUAL(told.polls, 1);
		check_announced(receipt.path, early);
		CU_ASSERT(told.spawned_ns >= receipt.from_ns);
	}
	stop(recorder);
}

/* So many that they take several batches, each with names of its own. */
static void test_thousands_of_tasks_are_announced_each_by_its_name(void)
{
	struct d9_recorder *recorder = start_in_flight();
	static uint64_t ids[3000];
	struct d9_dump_receipt receipt;
	char name[32];

	for (unsigned i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "task %u", i);
		ids[i] = poll_task(1000 + i, name);
	}
	for (int i = 0; i < MANY; i++)
		poll_task(4, "busy");
	receipt = dump(recorder, 0);
	for (unsigned i = 0; i < 3000; i += 599) {
		struct told told = told_of(receipt.path, ids[i], true);

		snprintf(name, sizeof(name), "task %u", i);
		CU_ASSERT_EQUAL(told.spawns, 1);
		CU_ASSERT_EQUAL(told.fd, 1100 + i);
		CU_ASSERT_STRING_EQUAL(told.name, name);
	}
	stop(recorder);
}

static void check_told(const char *path, uint64_t task, const char *name, unsigned spawns, unsigned polls)
{
	struct told told = told_of(path, task, false);

	CU_ASSERT_EQUAL(told.spawns, spawns);
	CU_ASSERT_EQUAL(told.polls, polls);
	CU_ASSERT_EQUAL(told.wrong, 0);
	CU_ASSERT_STRING_EQUAL(told.name, name);
	CU_ASSERT_STRING_EQUAL(told.kind, "timer");
	CU_ASSERT_STRING_EQUAL(told.loc, "0x1000 @ 0x2000");
}

static void test_task_that_ended_in_the_window_is_found_in_what_the_ring_holds_from_before(void)
{
	struct d9_recorder *recorder = start_in_flight();
	uint64_t ended = poll_task(3, "ended"), other;
	struct d9_dump_receipt receipt;

	/* Some chunks, so that the window does not begin in the one in which it began. */
	for (int i = 0; i < MANY / 20; i++)
		poll_task(4, "busy");
	pause_ms(400);
	poll_task(3, NULL);
	d9_task_end(D9_LIBRARY_OWN, 3);
	other = poll_task(5, "other");
	receipt = dump(recorder, 200);

	/* On a machine that is very busy all is too old. */
	if (told_of(receipt.path, ended, true).polls)
		check_told(receipt.path, ended, "ended", 1, 1);
	if (told_of(receipt.path, other, true).polls)
		check_told(receipt.path, other, "other", 1, 1);
	stop(recorder);
}

/* ---- continuous mode ---- */

static struct d9_recorder *start_continuous(enum d9_compress compress)
{
	struct d9_options *options = scratch_options();

	CU_ASSERT_EQUAL(d9_options_set_compress(options, compress), 0);
	return start_with(options);
}

/* To a directory of its own below the trace's. */
static struct d9_dump_receipt dump_to(struct d9_recorder *recorder, uint64_t last_ms, const char *name)
{
	struct d9_dump_receipt receipt = { 0 };
	char dir[PATH_MAX + 16];

	snprintf(dir, sizeof(dir), "%s/%s", scratch_dir, name);
	CU_ASSERT_EQUAL_FATAL(d9_dump(recorder, last_ms, dir, 20000, &receipt, sizeof(receipt)), 0);
	return receipt;
}

struct early {
	uint64_t early, idle, ended, late;
};

/* A segment in which tasks begin, one that is empty of them, and a window in which they are polled. */
static struct early live_through_three_segments(struct d9_recorder *recorder)
{
	struct early t;

	t.early = poll_task(1, "early");
	t.idle = poll_task(2, "idle");
	t.ended = poll_task(3, "ended");
	poll_task(4, "over");
	d9_task_end(D9_LIBRARY_OWN, 4);
	CU_ASSERT_EQUAL(d9_recorder_rotate(recorder, 5000), 0);
	poll_task(5, "between");
	CU_ASSERT_EQUAL(d9_recorder_rotate(recorder, 5000), 0);
	pause_ms(300);
	poll_task(1, NULL);
	poll_task(3, NULL);
	d9_task_end(D9_LIBRARY_OWN, 3);
	t.late = poll_task(6, "late");
	return t;
}

static void check_window_is_complete(enum d9_compress compress)
{
	struct d9_recorder *recorder = start_continuous(compress);
	struct early t = live_through_three_segments(recorder);
	struct d9_dump_receipt receipt = dump_to(recorder, 100, "window");

	/* The segment of the window tells what lived when it began: nothing is left to announce. */
	CU_ASSERT_EQUAL(receipt.segments, 1);
	CU_ASSERT(receipt.complete);
	check_told(receipt.path, t.early, "early", 1, 1);
	check_told(receipt.path, t.ended, "ended", 1, 1);
	check_told(receipt.path, t.idle, "idle", 1, 0);
	check_told(receipt.path, t.late, "late", 1, 1);
	CU_ASSERT(told_of(receipt.path, t.late, true).spawned_ns >
		  told_of(receipt.path, t.early, true).spawned_ns);
	stop(recorder);
}

static void test_window_of_a_continuous_trace_tells_of_all_tasks_in_it(void)
{
	check_window_is_complete(D9_COMPRESS_ZSTD);
	check_window_is_complete(D9_COMPRESS_GZIP);
	check_window_is_complete(D9_COMPRESS_NONE);
}

/* No faster than the chunks are written, so that nothing is lost. */
static void poll_busily(struct d9_recorder *recorder, uint64_t n)
{
	struct d9_counters before = { 0 }, c = { 0 };

	CU_ASSERT_EQUAL_FATAL(d9_recorder_counters(recorder, &before, sizeof(before)), 0);
	for (uint64_t done = 0; done < n;) {
		for (int i = 0; i < 5000; i++, done++)
			poll_task(4, "busy");
		do {
			pause_ms(1);
			CU_ASSERT_EQUAL_FATAL(d9_recorder_counters(recorder, &c, sizeof(c)), 0);
		} while (c.events_written - before.events_written + 30000 < 2 * done);
	}
}

/* Several windows of plain segments, whose batches are cut by the one that is read at a time. */
static void test_beginnings_are_found_in_large_older_segments(void)
{
	struct d9_recorder *recorder = start_continuous(D9_COMPRESS_NONE);
	struct d9_dump_receipt receipt;
	uint64_t ended;

	poll_busily(recorder, MANY / 2);
	ended = poll_task(3, "ended");
	poll_busily(recorder, MANY / 2);
	CU_ASSERT_EQUAL(d9_recorder_rotate(recorder, 5000), 0);
	pause_ms(300);
	poll_task(3, NULL);
	d9_task_end(D9_LIBRARY_OWN, 3);
	receipt = dump_to(recorder, 100, "window");

	check_told(receipt.path, ended, "ended", 1, 1);
	stop(recorder);
}

/* Three, one for the window, one for the rest: each tells the tasks that live. */
static void test_dump_leaves_the_trace_as_it_is(void)
{
	struct d9_recorder *recorder = start_continuous(D9_COMPRESS_ZSTD);
	struct early t = live_through_three_segments(recorder);
	struct d9_dump_receipt window = dump_to(recorder, 100, "window"), all;

	poll_task(1, NULL);
	all = dump(recorder, 0);

	/* Nothing is announced where all is told, and no number of a segment is given twice. */
	check_told(all.path, t.early, "early", all.segments, 3);
	check_told(all.path, t.ended, "ended", 3, 2);
	all = dump_to(recorder, 0, "window");
	check_told(window.path, t.early, "early", all.segments, 3);
	CU_ASSERT_EQUAL(scratch_files(window.path, ".zst"), all.segments);
	stop(recorder);
}

static void test_trace_and_its_dump_together_hold_each_poll_once(void)
{
	struct d9_recorder *recorder = start_continuous(D9_COMPRESS_ZSTD);
	struct early t = live_through_three_segments(recorder);
	struct d9_dump_receipt window = dump_to(recorder, 100, "window"), all = dump(recorder, 0);
	struct told told = { .task = t.early };
	struct d9_reader *reader = NULL;
	const struct d9_event *event;

	stop(recorder);
	CU_ASSERT_EQUAL_FATAL(d9_reader_new(&reader), 0);
	CU_ASSERT_EQUAL(d9_reader_add(reader, all.path), 0);
	/* Copies of segments that it has: it takes them once. */
	CU_ASSERT_EQUAL(d9_reader_add(reader, window.path), 0);
	while (d9_reader_next(reader, &event) == 1)
		look_at(&told, event);
	CU_ASSERT_EQUAL(told.polls, 2);
	CU_ASSERT_EQUAL(told.spawns, d9_reader_segments(reader));
	CU_ASSERT_EQUAL(told.wrong, 0);
	d9_reader_free(reader);
}

static void test_what_began_in_segments_that_the_budget_took_is_announced_in_the_trace(void)
{
	struct d9_options *options = scratch_options();
	struct d9_recorder *recorder;
	struct d9_dump_receipt receipt;
	struct told told;
	uint64_t early;

	d9_options_set_compress(options, D9_COMPRESS_NONE);
	d9_options_set_max_file_bytes(options, 1 << 20);
	d9_options_set_max_total_bytes(options, 3 << 20);
	recorder = start_with(options);
	early = poll_task(1, "early");
	poll_busily(recorder, 2 * MANY);
	poll_task(1, NULL);
	CU_ASSERT_EQUAL(d9_recorder_rotate(recorder, 5000), 0);
	receipt = dump(recorder, 0);

	/* By each segment that is left. */
	told = told_of(receipt.path, early, false);
	CU_ASSERT(told.spawns >= 1);
	CU_ASSERT_EQUAL(told.polls, 1);
	CU_ASSERT_EQUAL(told.wrong, 0);
	CU_ASSERT_STRING_EQUAL(told.name, "early");
	stop(recorder);
}

/* It is in no table, and its beginning is forgotten while it runs. */
static void test_task_that_runs_once_is_announced_while_it_runs(void)
{
	struct d9_recorder *recorder = start_in_flight();
	struct d9_dump_receipt within, behind;
	uint64_t id = 0;

	/* The second one's spawn is spelled as the first one's was. */
	for (uint64_t key = 1; key <= 2; key++) {
		struct d9_poll poll = { .loop = loop,
					.task = { .key = key, .fd = -1, .kind = D9_TASK_ONCE,
						  .flags = D9_TASK_RUNS_ONCE } };

		poll.task.callsite = d9_callsite((const void *)0x1000, (const void *)0x2000, 0);
		d9__poll_begin_once(&poll);
		id = poll.task_id;
		/* Whatever else the callback does. */
		for (int i = 0; key == 2 && i < MANY; i++)
			poll_task(4, "inner");
		if (key == 2)
			within = dump(recorder, 0);
		d9__poll_end_once(&poll);
	}
	behind = dump(recorder, 0);

	CU_ASSERT_EQUAL(told_of(within.path, id, true).spawns, 1);
	CU_ASSERT_STRING_EQUAL(told_of(within.path, id, true).kind, "once");
	CU_ASSERT_STRING_EQUAL(told_of(within.path, id, true).loc, "0x1000 @ 0x2000");
	CU_ASSERT_EQUAL(told_of(behind.path, id, true).spawns, 0);
	stop(recorder);
}

static const CU_TestInfo tests[] = {
	/* Tests with a small ring come first, because a ring does not shrink again. */
	{ "task that runs once is announced while it runs",
	  test_task_that_runs_once_is_announced_while_it_runs },
	{ "task whose beginning the ring forgot is announced once",
	  test_task_whose_beginning_the_ring_forgot_is_announced_once },
	{ "window announces what began before it, and nothing older is in it",
	  test_window_announces_what_began_before_it_and_nothing_older_is_in_it },
	{ "thousands of tasks are announced, each by its name",
	  test_thousands_of_tasks_are_announced_each_by_its_name },
	{ "task that ended in the window is found in what the ring holds from before",
	  test_task_that_ended_in_the_window_is_found_in_what_the_ring_holds_from_before },
	{ "window of a continuous trace tells of all tasks in it",
	  test_window_of_a_continuous_trace_tells_of_all_tasks_in_it },
	{ "beginnings are found in large older segments", test_beginnings_are_found_in_large_older_segments },
	{ "dump leaves the trace as it is", test_dump_leaves_the_trace_as_it_is },
	{ "trace and its dump together hold each poll once",
	  test_trace_and_its_dump_together_hold_each_poll_once },
	{ "what began in segments that the budget took is announced in the trace",
	  test_what_began_in_segments_that_the_budget_took_is_announced_in_the_trace },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	int status = d9_test_main("dumps of loops", tests);

	scratch_remove();
	return status;
}
