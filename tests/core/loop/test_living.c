/* SPDX-License-Identifier: Apache-2.0 */
/* Every segment can be read alone: it begins by telling what lives, and says how the one before it ended. */
#include "config.h"

#include <signal.h>
#include <sys/wait.h>

#include <dial9/loop.h>

#include "core/record/scratch.h"
#include "record/recover.h"

#define TASKS 300

static struct d9_loop *loop;

static uint64_t poll_task(uint64_t key, const char *name)
{
	struct d9_poll poll = { .loop = loop, .task = { .key = key, .fd = (int)key, .kind = D9_TASK_TIMER,
							.name = name } };
	uint64_t id;

	poll.task.callsite = d9_callsite((const void *)0x1000, (const void *)0x2000, 0);
	d9_poll_begin(&poll);
	id = poll.task_id;
	d9_poll_end(&poll);
	return id;
}

static struct d9_recorder *start_in(const char *dir, uint64_t file_bytes)
{
	struct d9_options *options = NULL;
	struct d9_recorder *recorder;

	CU_ASSERT_EQUAL_FATAL(d9_options_new(&options), 0);
	d9_options_set_environment(options, false);
	d9_options_set_trace_dir(options, dir);
	d9_options_set_compress(options, D9_COMPRESS_NONE);
	if (file_bytes)
		d9_options_set_max_file_bytes(options, file_bytes);
	recorder = scratch_start(options);
	CU_ASSERT_EQUAL_FATAL(d9_loop_register(D9_LIBRARY_OWN, &loop, "test", &loop), 0);
	return recorder;
}

static struct d9_recorder *start(uint64_t file_bytes)
{
	return start_in(scratch_new(), file_bytes);
}

static void stop(struct d9_recorder *recorder)
{
	d9_loop_unregister(loop);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);
}

static const char *segment(struct d9_recorder *recorder, unsigned n)
{
	static char path[PATH_MAX + 32];
	char dir[PATH_MAX];

	CU_ASSERT(d9_recorder_dir(recorder, dir, sizeof(dir)) > 0);
	snprintf(path, sizeof(path), "%s/trace.%u.bin", dir, n);
	return path;
}

/* A recorder with TASKS tasks, the first of which has ended; in the second segment another begins. */
static struct d9_recorder *record_three_segments(void)
{
	struct d9_recorder *recorder = start(0);
	char name[32];

	for (unsigned i = 0; i < TASKS; i++) {
		snprintf(name, sizeof(name), "task %u", i);
		poll_task(1000 + i, name);
	}
	d9_task_end(D9_LIBRARY_OWN, 1000);
	CU_ASSERT_EQUAL(d9_recorder_rotate(recorder, 5000), 0);
	poll_task(1007, NULL);
	poll_task(1, "late");
	CU_ASSERT_EQUAL(d9_recorder_rotate(recorder, 5000), 0);
	poll_task(1007, NULL);
	d9_task_end(D9_LIBRARY_OWN, 1008);
	return recorder;
}

/* ---- what a segment says ---- */

struct said {
	unsigned spawns, named;
	uint64_t spawn_ns, poll_ns;
	char told_ns[24], prior[8], clean[8], complete[8];
};

static void keep(const struct d9_text *pair, const char *key, char *to, size_t size)
{
	if (pair[0].len == strlen(key) && !memcmp(pair[0].data, key, pair[0].len))
		snprintf(to, size, "%.*s", (int)pair[1].len, pair[1].data);
}

static void look(void *arg, const struct d9_event *event)
{
	struct said *said = arg;

	if (event->kind == D9_EVENT_TASK_SPAWN) {
		const struct d9_value *name = d9_event_known(event, D9_TASK_SPAWN_NAME);

		said->spawns++;
		said->named += name && name->present;
		said->spawn_ns = event->timestamp_ns;
	}
	if (event->kind == D9_EVENT_POLL_START && !said->poll_ns)
		said->poll_ns = event->timestamp_ns;
	if (event->kind != D9_EVENT_SEGMENT_METADATA)
		return;
	for (size_t i = 0; i < event->values[0].u.string_map.n; i++) {
		const struct d9_text *pair = &event->values[0].u.string_map.pairs[2 * i];

		keep(pair, "segment.told_ns", said->told_ns, sizeof(said->told_ns));
		keep(pair, "segment.prior_sealed_clean", said->prior, sizeof(said->prior));
		keep(pair, "segment.sealed_clean", said->clean, sizeof(said->clean));
		keep(pair, "segment.complete", said->complete, sizeof(said->complete));
	}
}

static struct said said_by(const char *path)
{
	struct said said = { .spawns = 0 };

	scratch_read(path, true, look, &said);
	return said;
}

static void test_segment_tells_the_tasks_that_live_when_it_begins(void)
{
	struct d9_recorder *recorder = record_three_segments();
	struct said said = said_by(segment(recorder, 1));

	stop(recorder);
	/* All but the one that had ended; and the one that begins in it. */
	CU_ASSERT_EQUAL(said.spawns, TASKS);
	CU_ASSERT_EQUAL(said.named, TASKS);
	said = said_by(segment(recorder, 2));
	CU_ASSERT_EQUAL(said.spawns, TASKS);
	CU_ASSERT_EQUAL(said.named, TASKS);
	CU_ASSERT_EQUAL(said.spawn_ns, strtoull(said.told_ns, NULL, 10));
	CU_ASSERT_EQUAL(said_by(segment(recorder, 0)).spawns, TASKS);
	CU_ASSERT_STRING_EQUAL(said_by(segment(recorder, 0)).told_ns, "");
}

static void test_segment_says_how_it_and_the_one_before_it_ended(void)
{
	struct d9_recorder *recorder = record_three_segments();
	struct said said;

	stop(recorder);
	said = said_by(segment(recorder, 0));
	CU_ASSERT_STRING_EQUAL(said.prior, "");
	CU_ASSERT_STRING_EQUAL(said.clean, "true");
	CU_ASSERT_STRING_EQUAL(said.complete, "true");
	said = said_by(segment(recorder, 2));
	CU_ASSERT_STRING_EQUAL(said.prior, "true");
	CU_ASSERT_STRING_EQUAL(said.clean, "true");
}

static void test_small_segments_do_not_consist_of_what_lives(void)
{
	struct d9_recorder *recorder = start(16 << 10);
	struct said said;

	for (unsigned i = 0; i < TASKS; i++)
		poll_task(1000 + i, NULL);
	CU_ASSERT_EQUAL(d9_recorder_rotate(recorder, 5000), 0);
	poll_task(1007, NULL);
	CU_ASSERT_EQUAL(d9_recorder_rotate(recorder, 5000), 0);
	stop(recorder);
	said = said_by(scratch_dir);
	CU_ASSERT(said.spawns >= TASKS);
	CU_ASSERT(said.spawns <= TASKS + TASKS / 2);
}

/* The second segment is being written, and the ring holds more, when the process is killed. */
static void record_until_killed(void)
{
	struct d9_recorder *recorder = start_in(scratch_dir, 0);
	struct d9_counters before = { 0 }, now = { 0 };

	poll_task(1, "early");
	d9_recorder_rotate(recorder, 5000);
	d9_recorder_counters(recorder, &before, sizeof(before));
	poll_task(1, NULL);
	do {
		usleep(1000);
		d9_recorder_counters(recorder, &now, sizeof(now));
	} while (now.events_written == before.events_written);
	poll_task(1, NULL);
	kill(getpid(), SIGKILL);
}

static void test_segments_of_a_killed_process_say_that_it_was_cut(void)
{
	struct d9__recovered found = { 0 };
	struct d9__recover walk;
	struct said said;
	char path[PATH_MAX + 64];
	int status;
	pid_t pid;

	scratch_new();
	pid = fork();
	if (!pid) {
		record_until_killed();
		_exit(1);
	}
	CU_ASSERT_EQUAL_FATAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_FATAL(WIFSIGNALED(status));
	CU_ASSERT_EQUAL_FATAL(d9__recover_begin(&walk, scratch_dir, 0), 0);
	CU_ASSERT_EQUAL(d9__recover_next(&walk, &found), 1);
	d9__recover_end(&walk);
	CU_ASSERT_EQUAL(found.err, 0);

	snprintf(path, sizeof(path), "%s/trace.0.bin", found.dir);
	CU_ASSERT_STRING_EQUAL(said_by(path).clean, "true");
	snprintf(path, sizeof(path), "%s/trace.1.bin", found.dir);
	said = said_by(path);
	CU_ASSERT_STRING_EQUAL(said.prior, "true");
	CU_ASSERT_STRING_EQUAL(said.clean, "false");
	CU_ASSERT_STRING_EQUAL(said.complete, "true");
	snprintf(path, sizeof(path), "%s/trace.2.bin", found.dir);
	said = said_by(path);
	CU_ASSERT_STRING_EQUAL(said.prior, "false");
	CU_ASSERT_STRING_EQUAL(said.clean, "false");
}

static const CU_TestInfo tests[] = {
	{ "segment tells the tasks that live when it begins", test_segment_tells_the_tasks_that_live_when_it_begins },
	{ "segment says how it and the one before it ended", test_segment_says_how_it_and_the_one_before_it_ended },
	{ "segments of a killed process say that it was cut",
	  test_segments_of_a_killed_process_say_that_it_was_cut },
	{ "small segments do not consist of what lives", test_small_segments_do_not_consist_of_what_lives },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	int status = d9_test_main("segments that are read alone", tests);

	scratch_remove();
	return status;
}
