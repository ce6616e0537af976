/* SPDX-License-Identifier: Apache-2.0 */
/* Every segment can be read alone: it begins by telling what lives, and says how the one before it ended. */
#include "config.h"

#include <signal.h>
#include <sys/wait.h>

#include <dial9/loop.h>
#include <dial9/span.h>

#include "core/record/scratch.h"
#include "drain/recover.h"

#define TASKS 300
#define SMALL (16 << 10) /* bytes of a segment */

#if defined(__SANITIZE_THREAD__)
#define FORKS 0 /* TSan ends a forked child that starts a thread */
#else
#define FORKS 1
#endif

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
	struct d9_recorder *recorder = start(SMALL);
	char dir[PATH_MAX];
	unsigned segments;
	struct said said;

	CU_ASSERT(d9_recorder_dir(recorder, dir, sizeof(dir)) > 0);
	for (unsigned i = 0; i < TASKS; i++)
		poll_task(1000 + i, NULL);
	CU_ASSERT_EQUAL(d9_recorder_rotate(recorder, 5000), 0);
	poll_task(1007, NULL);
	CU_ASSERT_EQUAL(d9_recorder_rotate(recorder, 5000), 0);
	stop(recorder);
	said = said_by(scratch_dir);
	CU_ASSERT(said.spawns >= TASKS);
	/* How many segments there are depends on when the recorder's thread looks: each but the first may tell a share of its size. */
	segments = scratch_files(dir, ".bin");
	CU_ASSERT(segments >= 3);
	CU_ASSERT(said.spawns <= TASKS + (segments - 1) * (SMALL / 256));
}

/* ---- spans ---- */

static struct d9_span_site request_site = D9_SPAN_SITE(D9_SPAN_INFO, "http", "request");
static struct d9_span_site session_site = D9_SPAN_SITE(D9_SPAN_INFO, "http", "session");

struct spans_said {
	unsigned n;
	char names[256], origin[128];
	uint64_t ids[8], parents[8], start_ns, ns;
};

static void look_at_spans(void *arg, const struct d9_event *event)
{
	struct spans_said *said = arg;
	const struct d9_value *name;

	if (event->kind != D9_EVENT_SPAN_OPEN || said->n == 8)
		return;
	name = d9_event_known(event, D9_SPAN_OPEN_SPAN_NAME);
	snprintf(said->names + strlen(said->names), sizeof(said->names) - strlen(said->names),
		 "%.*s ", (int)name->u.text.len, name->u.text.data);
	name = d9_event_known(event, D9_SPAN_OPEN_ORIGIN);
	snprintf(said->origin, sizeof(said->origin), "%.*s", (int)name->u.text.len,
		 name->u.text.data);
	said->start_ns = d9_event_known_u64(event, D9_SPAN_OPEN_START_NS, 0);
	said->ns = event->timestamp_ns;
	said->parents[said->n] = d9_event_known_u64(event, D9_SPAN_OPEN_PARENT_ID, 0);
	said->ids[said->n++] = d9_event_known_u64(event, D9_SPAN_OPEN_SPAN_ID, 0);
}

static struct spans_said spans_said_by(const char *path)
{
	struct spans_said said = { .n = 0 };

	scratch_read(path, true, look_at_spans, &said);
	return said;
}

static void test_segment_tells_the_spans_that_are_open_when_it_begins(void)
{
	struct d9_span session, request, other, nobody;
	struct d9_recorder *recorder = start(0);
	struct spans_said first, second, third;

	d9_span_create(&session, &session_site, D9_SPAN_ROOT, NULL, 0);
	d9_span_enter(&session);
	d9_span_create(&request, &request_site, D9_SPAN_CURRENT, NULL, 0);
	d9_span_exit(&session);
	d9_span_enter(&request);
	d9_span_create(&other, &request_site, D9_SPAN_ROOT, NULL, 0);
	d9_span_enter(&other);
	d9_span_end(&other);
	d9_span_create(&nobody, &request_site, D9_SPAN_ROOT, NULL, 0);
	d9_span_close(&nobody);
	CU_ASSERT_EQUAL(d9_recorder_rotate(recorder, 5000), 0);
	poll_task(1, NULL);
	d9_span_end(&request);
	CU_ASSERT_EQUAL(d9_recorder_rotate(recorder, 5000), 0);
	poll_task(1, NULL);
	d9_span_close(&session);
	CU_ASSERT_EQUAL(d9_recorder_rotate(recorder, 5000), 0);
	poll_task(1, NULL);
	first = spans_said_by(segment(recorder, 0));
	second = spans_said_by(segment(recorder, 1));
	third = spans_said_by(segment(recorder, 2));
	stop(recorder);

	CU_ASSERT_EQUAL(first.n, 0);
	CU_ASSERT_EQUAL(second.n, 2);
	CU_ASSERT_STRING_EQUAL(second.names, "session request ");
	CU_ASSERT_EQUAL(second.parents[0], 0);
	CU_ASSERT_EQUAL(second.parents[1], second.ids[0]);
	CU_ASSERT_EQUAL(third.n, 1);
	CU_ASSERT_EQUAL(third.ids[0], second.ids[0]);
	CU_ASSERT_PTR_NOT_NULL(strstr(third.origin, "http::session:"));
	CU_ASSERT(third.start_ns && third.start_ns < second.ns && second.ns < third.ns);
	CU_ASSERT_EQUAL(spans_said_by(segment(recorder, 3)).n, 0);
}

static void test_span_of_a_parent_process_is_not_told_by_its_child(void)
{
	struct d9_recorder *recorder = start(0);
	struct d9_span parent, child;
	struct spans_said said;
	int status = 1;
	pid_t pid;

	d9_span_create(&parent, &session_site, D9_SPAN_ROOT, NULL, 0);
	pid = FORKS ? fork() : -1;
	if (!pid) {
		d9_span_create(&child, &request_site, D9_SPAN_ROOT, NULL, 0);
		d9_span_enter(&child);
		poll_task(1, NULL);
		if (!d9_recorder_running() || d9_recorder_rotate(d9_recorder_running(), 5000))
			_exit(2);
		poll_task(1, NULL);
		d9_recorder_rotate(d9_recorder_running(), 5000);
		said = spans_said_by(segment(d9_recorder_running(), 1));
		_exit(said.n == 1 && !strcmp(said.names, "request ") ? 0 : 3);
	}
	if (FORKS) {
		CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
		CU_ASSERT_EQUAL(status, 0);
	}
	d9_span_close(&parent);
	stop(recorder);
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
	CU_ASSERT_EQUAL_FATAL(d9__recover_begin(&walk, scratch_dir, D9__RECOVER_WAIT), 0);
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
	{ "segment tells the tasks that live when it begins",
	  test_segment_tells_the_tasks_that_live_when_it_begins },
	{ "segment tells the spans that are open when it begins",
	  test_segment_tells_the_spans_that_are_open_when_it_begins },
	{ "span of a parent process is not told by its child",
	  test_span_of_a_parent_process_is_not_told_by_its_child },
	{ "segment says how it and the one before it ended",
	  test_segment_says_how_it_and_the_one_before_it_ended },
	{ "segments of a killed process say that it was cut",
	  test_segments_of_a_killed_process_say_that_it_was_cut },
	{ "small segments do not consist of what lives",
	  test_small_segments_do_not_consist_of_what_lives },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	int status = d9_test_main("segments that are read alone", tests);

	scratch_remove();
	return status;
}
