/* SPDX-License-Identifier: Apache-2.0 */
/* Dumps of flight mode begin in the middle of the lives of tasks. */
#include "config.h"

#include <time.h>

#include <dial9/loop.h>

#include "core/record/scratch.h"

#define MANY 200000 /* polls: a ring of a MiB holds fewer */

static struct d9_loop *loop;

static uint64_t poll_task(uint64_t key, const char *name)
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

static struct d9_recorder *start_in_flight(void)
{
	struct d9_options *options = scratch_options();
	struct d9_recorder *recorder;

	CU_ASSERT_EQUAL(d9_options_set_mode(options, D9_MODE_FLIGHT), 0);
	d9_options_set_ring_mb(options, 1);
	recorder = scratch_start(options);
	CU_ASSERT_EQUAL_FATAL(d9_loop_register(D9_LIBRARY_OWN, &loop, "test", &loop), 0);
	return recorder;
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
	const struct timespec pause = { 0, 400000000 };
	struct d9_recorder *recorder = start_in_flight();
	uint64_t early = poll_task(1, "early");
	struct d9_dump_receipt receipt;
	struct told told;

	nanosleep(&pause, NULL);
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

static const CU_TestInfo tests[] = {
	{ "task whose beginning the ring forgot is announced once",
	  test_task_whose_beginning_the_ring_forgot_is_announced_once },
	{ "window announces what began before it, and nothing older is in it",
	  test_window_announces_what_began_before_it_and_nothing_older_is_in_it },
	{ "thousands of tasks are announced, each by its name",
	  test_thousands_of_tasks_are_announced_each_by_its_name },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	int status = d9_test_main("dumps of loops", tests);

	scratch_remove();
	return status;
}
