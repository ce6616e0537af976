/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What comes and goes without end, in a process that stays: memory, mappings, descriptors, threads and
 * places in tables are the same afterwards.  D9_LONG=1: recorders ten thousand times, too.
 */
#include "config.h"

#include <dial9/loop.h>

#include "core/record/scratch.h"
#include "loop/callsites.h"
#include "loop/loops.h"
#include "loop/tasks.h"
#include "ring/chunk.h"
#include "ring/names.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

#define LOOPS 10000
#define NAMES 100000
#define NUMBER_LEN 24

/* ---- what the process has ---- */

struct census {
	unsigned fds, threads, maps;
	uint64_t heap_bytes, rss_bytes;
};

static unsigned entries_of(const char *path)
{
	DIR *dir = opendir(path);
	unsigned n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

/* Lines of /proc/self/maps; and of /proc/self/status what begins with |key|, in KiB. */
static uint64_t lines_of(const char *path, const char *key)
{
	FILE *file = fopen(path, "re");
	unsigned long long n = 0;
	char line[512];

	while (file && fgets(line, sizeof(line), file)) {
		if (!key)
			n++;
		else if (!strncmp(line, key, strlen(key)))
			sscanf(line + strlen(key), "%llu", &n);
	}
	if (file)
		fclose(file);
	return n;
}

static struct census take_census(void)
{
	return (struct census){
		.fds = entries_of("/proc/self/fd"),
		.threads = entries_of("/proc/self/task"),
		.maps = (unsigned)lines_of("/proc/self/maps", NULL),
		.heap_bytes = d9_test_heap() + d9_test_mapped(),
		.rss_bytes = lines_of("/proc/self/status", "VmRSS:") << 10,
	};
}

static void check_flat(const struct census *before, const struct census *after)
{
	CU_ASSERT_EQUAL(after->fds, before->fds);
	/* One that was joined may be seen for a moment. */
	CU_ASSERT(after->threads <= before->threads + 1);
	/* An arena of malloc's may come, and a sanitizer keeps what was freed; of a leak there were hundreds. */
	CU_ASSERT(after->maps <= before->maps + (SANITIZED ? 100 : 4));
	CU_ASSERT(SANITIZED || after->heap_bytes <= before->heap_bytes + (128 << 10));
	CU_ASSERT(SANITIZED || after->rss_bytes <= before->rss_bytes + (8 << 20));
}

/* ---- recorders ---- */

static void start_and_stop(void)
{
	struct d9_options *options = NULL;
	struct d9_recorder *recorder = NULL;

	CU_ASSERT_EQUAL_FATAL(d9_options_new(&options), 0);
	d9_options_set_environment(options, false);
	d9_options_set_trace_dir(options, scratch_dir);
	d9_options_set_ring_mb(options, 1);
	d9_options_set_max_total_bytes(options, 1 << 20);
	CU_ASSERT_EQUAL_FATAL(d9_recorder_start(options, &recorder), 0);
	d9_options_free(options);
	CU_ASSERT_EQUAL_FATAL(d9_recorder_stop(recorder, 20000), 0);
}

static void test_recorders_come_and_go_without_end(void)
{
	int times = getenv("D9_LONG") ? 10000 : 1000;
	struct census before, after;

	scratch_new();
	for (int i = 0; i < times; i++) {
		if (i == times / 2)
			before = take_census();
		start_and_stop();
	}
	after = take_census();

	check_flat(&before, &after);
	scratch_remove();
}

/* ---- loops ---- */

static void poll_task(struct d9_loop *loop, uint64_t key, const char *name)
{
	struct d9_poll poll = { .loop = loop, .task = { .key = key, .fd = -1, .name = name } };

	d9_poll_begin(&poll);
	d9_poll_end(&poll);
}

static size_t places_of_loops(void)
{
	size_t n = 0;

	while (d9__loops_at(n))
		n++;
	return n;
}

static void look_at_worker(void *arg, const struct d9_event *event)
{
	const struct d9_value *id = d9_event_field(event, "worker_id");
	uint64_t *most = arg;

	if (id && !strcmp(d9_event_name(event), "PollStartEvent") && id->u.u64 > *most)
		*most = id->u.u64;
}

static void test_loops_come_and_go_without_end(void)
{
	struct d9_options *options = scratch_options();
	struct d9_recorder *recorder;
	struct census before, after;
	struct d9_loop *loop;
	uint64_t worker = 0;
	size_t places = 0;
	static char objects[7];

	/* The tables for stacks come with the first sample, at any time. */
	d9_options_set_cpu_hz(options, 0);
	recorder = scratch_start(options);
	for (int i = 0; i < LOOPS; i++) {
		if (i == LOOPS / 2) {
			/* Packed and written: what that takes is there from now on. */
			CU_ASSERT_EQUAL(d9_recorder_rotate(recorder, 20000), 0);
			before = take_census();
			places = places_of_loops();
		}
		CU_ASSERT_EQUAL_FATAL(d9_loop_register(D9_LIBRARY_OWN, &objects[i % 7], "comes", &loop), 0);
		poll_task(loop, (uint64_t)i % 100, NULL);
		d9_loop_unregister(loop);
	}
	CU_ASSERT_EQUAL(d9_recorder_rotate(recorder, 20000), 0);
	after = take_census();

	check_flat(&before, &after);
	CU_ASSERT_EQUAL(places_of_loops(), places);
	CU_ASSERT(places <= 4);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 20000), 0);
	scratch_read(scratch_dir, true, look_at_worker, &worker);
	CU_ASSERT_EQUAL(worker, 0);
}

/* ---- names ---- */

struct told {
	uint64_t own, other, wrong;
	char overflow[NUMBER_LEN];
};

static void look_at_name(struct told *told, const struct d9_event *event)
{
	const struct d9_value *name = d9_event_known(event, D9_TASK_SPAWN_NAME);
	char text[32];

	if (!name || !name->present) {
		told->wrong++;
		return;
	}
	snprintf(text, sizeof(text), "%.*s", (int)name->u.text.len, name->u.text.data);
	if (!strcmp(text, "(other)"))
		told->other++;
	else if (!strncmp(text, "one of many ", 12))
		told->own++;
	else
		told->wrong++;
}

/* Copy the value of |key| to |number|, if |event| is metadata that has it. */
static void take_number(const struct d9_event *event, const char *key, char number[NUMBER_LEN])
{
	const struct d9_value *pairs = &event->values[0];

	if (event->kind != D9_EVENT_SEGMENT_METADATA)
		return;
	for (size_t i = 0; i < pairs->u.string_map.n; i++) {
		const struct d9_text *pair = &pairs->u.string_map.pairs[2 * i];

		if (pair[0].len == strlen(key) && !memcmp(pair[0].data, key, pair[0].len))
			snprintf(number, NUMBER_LEN, "%.*s", (int)pair[1].len, pair[1].data);
	}
}

static void look_at(void *arg, const struct d9_event *event)
{
	struct told *told = arg;

	if (!strcmp(d9_event_name(event), "TaskSpawnEvent"))
		look_at_name(told, event);
	take_number(event, "names.other", told->overflow);
}

/* What is lost is told elsewhere. */
static void wait_for_room(uint64_t i)
{
	while (i % 50 == 0 && d9__chunk_free_count() < 3)
		usleep(200);
}

static uint64_t all_lost(struct d9_recorder *recorder)
{
	struct d9_counters c = { 0 };
	uint64_t lost = 0;

	CU_ASSERT_EQUAL(d9_recorder_counters(recorder, &c, sizeof(c)), 0);
	for (int i = 0; i < D9_LOSS_COUNT; i++)
		lost += c.lost[i];
	return lost;
}

static void test_hundred_thousand_names_are_bounded_and_the_rest_is_told(void)
{
	struct d9_options *options = scratch_options();
	struct census before, after;
	struct d9_recorder *recorder;
	struct told told = { 0 };
	struct d9_loop *loop = NULL;
	char name[32], number[24];

	d9_options_set_ring_mb(options, 64);
	recorder = scratch_start(options);
	CU_ASSERT_EQUAL_FATAL(d9_loop_register(D9_LIBRARY_OWN, &loop, "named", &loop), 0);
	before = take_census();
	for (uint64_t i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "one of many %u", (unsigned)i);
		poll_task(loop, i + 1, name);
		if (i % 100 == 0)
			d9_task_end(D9_LIBRARY_OWN, i + 1);
		wait_for_room(i);
	}
	after = take_census();
	/* All at once, as the loop would end them, they are more than the ring grows in a tick. */
	for (uint64_t i = 0; i < NAMES; i++) {
		d9_task_end(D9_LIBRARY_OWN, i + 1);
		wait_for_room(i);
	}
	d9_loop_unregister(loop);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 20000), 0);
	scratch_read(scratch_dir, true, look_at, &told);

	CU_ASSERT_EQUAL(d9__name_count(), D9__NAMES_MAX);
	snprintf(number, sizeof(number), "%llu", (unsigned long long)d9__name_overflows());
	CU_ASSERT_STRING_EQUAL(told.overflow, number);
	CU_ASSERT_EQUAL(told.wrong, 0);
	CU_ASSERT_EQUAL(all_lost(recorder), 0);
	CU_ASSERT_EQUAL(told.own + told.other, NAMES);
	/* A call that the machine held up has names as well. */
	CU_ASSERT(told.other <= d9__name_overflows());
	/* The ring's 64 MiB are of it. */
	CU_ASSERT(SANITIZED || after.rss_bytes < before.rss_bytes + (128 << 20));
}

/* ---- tasks ---- */

#define TASKS 20000
#define LIMIT 4096

struct lives {
	uint64_t spawns, ends;
	char forgotten[NUMBER_LEN];
};

static void look_at_life(void *arg, const struct d9_event *event)
{
	struct lives *lives = arg;

	lives->spawns += event->kind == D9_EVENT_TASK_SPAWN;
	lives->ends += event->kind == D9_EVENT_TASK_TERMINATE;
	take_number(event, "tasks.forgotten", lives->forgotten);
}

static void test_tasks_that_a_full_table_forgets_end_and_are_counted(void)
{
	struct d9_recorder *recorder = scratch_start(scratch_options());
	uint64_t before = d9__tasks_evicted();
	struct lives lives = { 0 };
	struct d9_loop *loop = NULL;
	char number[24];

	CU_ASSERT_EQUAL_FATAL(d9_loop_register(D9_LIBRARY_OWN, &loop, "full", &loop), 0);
	d9__tasks_set_limit(LIMIT);
	for (uint64_t i = 1; i <= TASKS; i++) {
		poll_task(loop, i << 6, NULL);
		wait_for_room(i);
	}
	CU_ASSERT(d9__tasks_count() <= LIMIT);
	d9_loop_unregister(loop);
	d9__tasks_set_limit(D9__TASKS_LIMIT);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 20000), 0);
	scratch_read(scratch_dir, true, look_at_life, &lives);

	CU_ASSERT(d9__tasks_evicted() - before >= TASKS - LIMIT);
	snprintf(number, sizeof(number), "%llu", (unsigned long long)d9__tasks_evicted());
	CU_ASSERT_STRING_EQUAL(lives.forgotten, number);
	CU_ASSERT_EQUAL(all_lost(recorder), 0);
	CU_ASSERT_EQUAL(lives.spawns, TASKS);
	CU_ASSERT_EQUAL(lives.ends, TASKS);
}

/* ---- places of registration ---- */

static void look_at_callsites(void *arg, const struct d9_event *event)
{
	take_number(event, "callsites.unknown", arg);
}

static void test_registrations_beyond_the_table_are_unknown_and_counted(void)
{
	struct d9_recorder *recorder = scratch_start(scratch_options());
	char told[NUMBER_LEN] = "", number[NUMBER_LEN];
	struct d9_loop *loop = NULL;

	CU_ASSERT_EQUAL_FATAL(d9_loop_register(D9_LIBRARY_OWN, &loop, "places", &loop), 0);
	for (uintptr_t i = 1; i <= D9__CALLSITES_MAX + 100; i++)
		d9__callsites_intern((void *)i, NULL);
	poll_task(loop, 1, NULL);
	d9_loop_unregister(loop);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 20000), 0);
	scratch_read(scratch_dir, true, look_at_callsites, told);

	CU_ASSERT(d9__callsites_overflows() >= 100);
	snprintf(number, sizeof(number), "%llu", (unsigned long long)d9__callsites_overflows());
	CU_ASSERT_STRING_EQUAL(told, number);
}

static const CU_TestInfo tests[] = {
	{ "recorders come and go without end", test_recorders_come_and_go_without_end },
	{ "loops come and go without end", test_loops_come_and_go_without_end },
	{ "tasks that a full table forgets end, and are counted",
	  test_tasks_that_a_full_table_forgets_end_and_are_counted },
	{ "hundred thousand names are bounded, and the rest is told",
	  test_hundred_thousand_names_are_bounded_and_the_rest_is_told },
	/* Last: the table stays full. */
	{ "registrations beyond the table are unknown, and counted",
	  test_registrations_beyond_the_table_are_unknown_and_counted },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	int status = d9_test_main("endless", tests);

	scratch_remove();
	return status;
}
