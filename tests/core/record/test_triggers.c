/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <dial9/trigger.h>

#include "base/trigger_file.h"
#include "base/trigger_text.h"
#include "core/record/scratch.h"
#include "core/record/ticks.h"
#include "core/record/triggered.h"
#include "record/levels.h"
#include "record/triggers.h"
#include "ring/clock.h"
#include "ring/emit_inl.h"
#include "ring/names.h"
#include "ring/ring_file.h"

#define MS    UINT64_C(1000000)

/* ---- conditions ---- */

static void test_a_poll_fires_above_its_threshold_and_not_at_it(void)
{
	struct d9_recorder *recorder = start(D9_MODE_CONTINUOUS, "slow: poll > 50ms");

	CU_ASSERT_EQUAL(atomic_load(&d9__triggers_poll_ns), 50 * MS);
	CU_ASSERT_EQUAL(atomic_load(&d9__long_poll_ns), MS);
	poll_of(50 * MS - 1);
	poll_of(50 * MS);
	stop(recorder);
	CU_ASSERT_EQUAL(manifests(), 0);

	recorder = start(D9_MODE_CONTINUOUS, "slow: poll > 50ms; quick: poll > 20us");
	CU_ASSERT_EQUAL(atomic_load(&d9__long_poll_ns), 20000);
	poll_of(50 * MS + 1);
	stop(recorder);
	CU_ASSERT_EQUAL(manifests(), 1);
	CU_ASSERT(says("\"fired_count\": 2"));
	CU_ASSERT_EQUAL(scratch_count("DumpTriggerEvent"), 2);

	stop(start(D9_MODE_CONTINUOUS, "call"));
	CU_ASSERT_EQUAL(atomic_load(&d9__triggers_poll_ns), UINT64_MAX);
	CU_ASSERT_EQUAL(atomic_load(&d9__long_poll_ns), MS);
}

static void late_by(uint64_t late_ns)
{
	const struct d9__trigger_place place = { .task = 7, .loc = d9__name_intern("frobd+0x12 @ main", 17) };

	d9__triggers_late(d9__clock_mono_ns(), late_ns, &place);
}

static void test_a_late_timer_fires_above_its_threshold_and_not_at_it(void)
{
	struct d9_recorder *recorder = start(D9_MODE_CONTINUOUS, "late: lateness > 50ms where callback ~ frobd+*; poll > 1s");

	CU_ASSERT_EQUAL(atomic_load(&d9__triggers_late_ns), 50 * MS);
	late_by(50 * MS);
	stop(recorder);
	CU_ASSERT_EQUAL(manifests(), 0);

	recorder = start(D9_MODE_CONTINUOUS, "late: lateness > 50ms where callback ~ frobd+*");
	errno = EDOM;
	late_by(50 * MS + 1);
	CU_ASSERT_EQUAL(errno, EDOM);
	stop(recorder);
	CU_ASSERT_EQUAL(manifests(), 1);
	CU_ASSERT(says("\"condition\": \"lateness\", \"threshold\": 50000000, \"value\": 50000001"));

	stop(start(D9_MODE_CONTINUOUS, "call"));
	CU_ASSERT_EQUAL(atomic_load(&d9__triggers_late_ns), D9__NEVER_LATE);
}

/* Their stamps are those of a moment, so that all of them fall into a second however long this thread takes. */
static void record_polls(unsigned n)
{
	uint64_t ns = d9__clock_mono_ns() + 300 * MS;
	struct d9__slot *slot = d9__slot_self();

	for (unsigned i = 0; i < n; i++) {
		d9__emit_poll_start(slot, ns, 1, 0, 7, D9__NAME_EMPTY);
		d9__emit_poll_end(slot, ns, 1);
	}
}

/* Where the machine lets this thread wait for a second while it records them, they do not fire. */
static bool polls_fired(enum d9_mode mode)
{
	struct d9_recorder *recorder = start(mode, "busy: polls > 20000/s then 0s; wakes > 0/s");

	record_polls(20001);
	for (unsigned i = 0; i < 5000 && !manifests(); i++)
		sleep_ms(1);
	stop(recorder);
	return manifests();
}

static void polls_fire(enum d9_mode mode)
{
	for (unsigned tries = 0; tries < 10 && !polls_fired(mode); tries++)
		sleep_ms(1400); /* those before are still in the ring, and count for a second */
	CU_ASSERT_EQUAL(manifests(), 1);
	CU_ASSERT(says("\"condition\": \"polls\", \"threshold\": 20000, \"value\": 20001"));
	CU_ASSERT(says("\"fired_count\": 1"));
}

static void test_polls_are_counted_whether_chunks_are_written_or_recycled(void)
{
	polls_fire(D9_MODE_CONTINUOUS);
	/* The polls of the first recorder are still in the ring, and count for a second. */
	sleep_ms(1400);
	polls_fire(D9_MODE_FLIGHT);
}

static uint64_t many_wait(bool (*wanted)(const void *arg, const char *name), const void *arg)
{
	return wanted(arg, "main") ? 57 : 0;
}

static void test_a_queue_that_is_long_for_a_while_fires(void)
{
	struct d9_recorder *recorder;
	uint64_t begin_ns;

	d9__levels_provide(many_wait, NULL);
	begin_ns = d9__clock_mono_ns();
	recorder = start(D9_MODE_FLIGHT, "queue > 57; q: queue > 56 for 200ms where loop ~ main then 0s");
	while (!manifests())
		sleep_ms(1);
	CU_ASSERT(d9__clock_mono_ns() - begin_ns >= 200 * MS);
	stop(recorder);
	d9__levels_provide(NULL, NULL);
	CU_ASSERT_EQUAL(manifests(), 1);
	CU_ASSERT(says("\"trigger\": \"q\""));
	CU_ASSERT(says("\"condition\": \"queue\", \"threshold\": 56, \"value\": 57"));
	CU_ASSERT(says("\"fired_count\": 1"));
}

static void test_blocked_hurries_the_flush_thread_only_while_callbacks_run_or_may_begin(void)
{
	struct d9__open_calls open = { .youngest_ns = UINT64_MAX };

	d9__triggers_arm("blocked > 50ms");
	CU_ASSERT_EQUAL(d9__triggers_period_ns(&open, false), UINT64_MAX);
	CU_ASSERT_EQUAL(d9__triggers_period_ns(&open, true), 25 * MS);
	open.youngest_ns = 0;
	CU_ASSERT_EQUAL(d9__triggers_period_ns(&open, false), 25 * MS);
	d9__triggers_arm("blocked > 1ms");
	CU_ASSERT_EQUAL(d9__triggers_period_ns(&open, false), 10 * MS);
	d9__triggers_arm("poll > 1ms");
	CU_ASSERT_EQUAL(d9__triggers_period_ns(&open, true), UINT64_MAX);
}

static void test_where_is_asked_before_a_trigger_fires(void)
{
	struct d9_recorder *recorder = start(D9_MODE_CONTINUOUS, "a: poll > 1ms where callback ~ other+*;"
								  "b: poll > 1ms where callback ~ frobd+0x1?;"
								  "c: poll > 1ms where callback ~ frobd+* where thread ~ nobody");

	poll_of(2 * MS);
	stop(recorder);
	CU_ASSERT_EQUAL(manifests(), 1);
	CU_ASSERT(says("\"trigger\": \"b\""));
	CU_ASSERT(says("\"fired_count\": 1"));
}

static uint64_t callback_of(uint32_t loc)
{
	return loc == d9__name_intern("frobd+0x12 @ main", 17) ? 0xf00d : 0;
}

static void see_callback(void *arg, const struct d9_event *event)
{
	if (event->kind == D9_EVENT_DUMP_TRIGGER)
		*(uint64_t *)arg = *(uint64_t *)arg << 16 | d9_event_known_u64(event, D9_DUMP_TRIGGER_CALLBACK, 1);
}

static void test_the_event_has_the_address_of_the_callback(void)
{
	struct d9_recorder *recorder = start(D9_MODE_CONTINUOUS, "slow: poll > 1ms; t: call");
	uint64_t callbacks = 0;

	d9__triggers_provide(NULL, callback_of);
	poll_of(2 * MS);
	CU_ASSERT_EQUAL(d9_trigger_fire("t"), 0);
	stop(recorder);
	d9__triggers_provide(NULL, NULL);
	scratch_read(scratch_dir, true, see_callback, &callbacks);
	CU_ASSERT_EQUAL(callbacks, 0xf00d0000);
}

/* ---- mistakes ---- */

static void test_a_mistake_disables_its_trigger_alone(void)
{
	struct d9_options *options = scratch_options();
	struct d9_recorder *recorder;

	CU_ASSERT_EQUAL(d9_options_set_triggers(options, "call; pol > 5ms"), -EINVAL);
	CU_ASSERT_EQUAL(d9_options_set_triggers(options, NULL), -EINVAL);
	d9_options_set_environment(options, true);
	setenv("DIAL9_TRIGGERS", "pol > 5ms; good: call at most 360/h", 1);
	recorder = scratch_start(options);
	CU_ASSERT_EQUAL(d9_trigger_fire("good"), 0);
	stop(recorder);
	unsetenv("DIAL9_TRIGGERS");
	CU_ASSERT_EQUAL(manifests(), 1);
}

/* ---- while a recorder runs ---- */

static void test_triggers_are_armed_and_removed_while_the_recorder_runs(void)
{
	struct d9_recorder *recorder = start(D9_MODE_FLIGHT, "first: call then 0s");
	char why[64];

	CU_ASSERT_EQUAL(d9_trigger_add("slow: poll > 50ms then 0s at most 360/h", why, sizeof(why)), 0);
	CU_ASSERT_STRING_EQUAL(why, "");
	while (atomic_load(&d9__triggers_poll_ns) != 50 * MS)
		sleep_ms(1);
	CU_ASSERT_EQUAL(d9_trigger_add("slow: poll > 70ms then 0s at most 360/h", NULL, 0), 0);
	while (atomic_load(&d9__triggers_poll_ns) != 70 * MS)
		sleep_ms(1);
	poll_of(60 * MS);
	poll_of(71 * MS);
	CU_ASSERT_EQUAL(d9_trigger_remove("slow"), 0);
	while (atomic_load(&d9__triggers_poll_ns) != UINT64_MAX)
		sleep_ms(1);
	poll_of(80 * MS);
	CU_ASSERT_EQUAL(d9_trigger_remove("slow"), -ENOENT);
	CU_ASSERT_EQUAL(d9_trigger_remove(NULL), -EINVAL);
	CU_ASSERT_EQUAL(d9_trigger_fire("slow"), -ENOENT);
	stop(recorder);

	CU_ASSERT_EQUAL(manifests(), 1);
	CU_ASSERT(says("\"threshold\": 70000000, \"value\": 71000000"));
	CU_ASSERT(says("\"fired_count\": 1"));
	/* What the reader takes for the unit of its numbers stays. */
	CU_ASSERT_EQUAL(scratch_count("DumpTriggerEvent"), 1);
	CU_ASSERT_EQUAL(d9_trigger_add("late: call", why, sizeof(why)), -ESHUTDOWN);
}

/* In a child that may start no thread: its status is 0 if all is as it should be. */
static int start_without_threads(void)
{
	const struct rlimit none = { 0, 0 };
	struct d9_options *options;
	bool as_it_should;

	if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534) || setrlimit(RLIMIT_NPROC, &none))
		return 77;
	scratch_dir[0] = '\0';
	options = scratch_options();
	as_it_should = !d9_options_set_triggers(options, "call") && d9_recorder_start(options, NULL) == -EAGAIN &&
		       d9_trigger_add("late: call", NULL, 0) == -ESHUTDOWN && d9_trigger_fire("call") == -ENOENT;
	scratch_remove();
	return !as_it_should;
}

static void test_no_trigger_is_added_where_the_recorder_could_not_be_started(void)
{
	int status = -1;
	pid_t child;

	if (geteuid()) /* only root can become a user without threads */
		return;
	child = fork();
	if (!child)
		_exit(start_without_threads());
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	CU_ASSERT(WIFEXITED(status) && (!WEXITSTATUS(status) || WEXITSTATUS(status) == 77));
}

static void test_mistakes_in_an_added_trigger_are_told_with_their_column(void)
{
	struct d9_recorder *recorder = start(D9_MODE_FLIGHT, "first: call");
	char why[64], text[32];

	CU_ASSERT_EQUAL(d9_trigger_add("first: pol > 5ms", why, sizeof(why)), -EINVAL);
	CU_ASSERT(!strncmp(why, "column 8: 'pol'", 15));
	CU_ASSERT_EQUAL(d9_trigger_add("a: call; b: call", why, sizeof(why)), -EINVAL);
	CU_ASSERT_STRING_EQUAL(why, "column 10: a second trigger");
	CU_ASSERT_EQUAL(d9_trigger_add("", why, 9), -EINVAL);
	CU_ASSERT_STRING_EQUAL(why, "column 1");
	CU_ASSERT_EQUAL(d9_trigger_add(NULL, why, sizeof(why)), -EINVAL);
	/* The one of that name is as it was. */
	CU_ASSERT_EQUAL(d9_trigger_fire("first"), 0);
	for (unsigned i = 1; i < D9__TRIGGERS_MAX; i++) {
		snprintf(text, sizeof(text), "n%u: call", i);
		CU_ASSERT_EQUAL(d9_trigger_add(text, NULL, 0), 0);
	}
	CU_ASSERT_EQUAL(d9_trigger_add("more: call", why, sizeof(why)), -ENOSPC);
	CU_ASSERT_STRING_EQUAL(why, "there are 32 already");
	stop(recorder);
}

static void *fire_until_told(void *arg)
{
	_Atomic(bool) *enough = arg;

	while (!atomic_load(enough)) {
		poll_of(2 * MS);
		d9_trigger_fire("b");
	}
	return NULL;
}

static void test_threads_fire_while_others_arm_and_remove(void)
{
	struct d9_recorder *recorder = start(D9_MODE_FLIGHT, "a: poll > 1ms then 0s every 1s at most 1/h");
	_Atomic(bool) enough = false;
	pthread_t threads[2];
	char text[64];

	for (int i = 0; i < 2; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, fire_until_told, &enough), 0);
	for (unsigned i = 0; i < 2000; i++) {
		snprintf(text, sizeof(text), "%c: poll > 1ms where callback ~ frobd+* every %us at most 1/h", "bc"[i % 2], i % 7 + 1);
		while (d9_trigger_add(text, NULL, 0) == -ENOSPC)
			sleep_ms(1);
		if (i % 3 == 0)
			d9_trigger_remove("c");
	}
	atomic_store(&enough, true);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	/* Each entry comes to be free again. */
	d9_trigger_remove("a");
	d9_trigger_remove("b");
	d9_trigger_remove("c");
	for (unsigned i = 0; i < D9__TRIGGERS_MAX; i++) {
		snprintf(text, sizeof(text), "n%u: call", i);
		while (d9_trigger_add(text, NULL, 0) == -ENOSPC)
			sleep_ms(1);
	}
	stop(recorder);
}

/* Whoever may write to the ring may ask for anything. */
static void test_requests_of_any_kind_do_no_harm(void)
{
	struct d9_recorder *recorder = start(D9_MODE_FLIGHT, "first: call");
	struct d9__ring_trigger *shared = d9__ring.trigger;

	for (uint32_t i = 0; i < 8; i++) {
		uint32_t requested = atomic_load(&shared->requested) + 1;

		memset(shared->text, 'x', sizeof(shared->text));
		shared->what = i < 5 ? i : UINT32_MAX - i;
		shared->number = i % 2 ? UINT32_MAX : 0;
		atomic_store(&shared->requested, requested);
		while (atomic_load(&shared->done) != requested)
			sleep_ms(1);
		CU_ASSERT_EQUAL(shared->err,
				shared->what == D9__TRIGGER_SET						       ? -EINVAL :
				shared->what == D9__TRIGGER_REMOVE || shared->what == D9__TRIGGER_FIRE ? -ENOENT :
				shared->what != D9__TRIGGER_SHOW					       ? -ENOTSUP :
				shared->number								       ? -ENOENT :
														 0);
		CU_ASSERT_PTR_NOT_NULL(memchr(shared->answer, 0, sizeof(shared->answer)));
	}
	CU_ASSERT_EQUAL(d9_trigger_fire("first"), 0);
	stop(recorder);
}

static void write_list(const char *path, const char *text, size_t len)
{
	FILE *file = fopen(path, "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fwrite(text, 1, len, file);
	fclose(file);
}

/* The values of trigger_error.N, one after the other. */
static void see_errors(void *arg, const struct d9_event *event)
{
	char *out = arg;

	if (strcmp(d9_event_name(event), "SegmentMetadataEvent") != 0)
		return;
	out[0] = '\0';
	for (size_t i = 0; i < event->values[0].u.string_map.n; i++) {
		const struct d9_text *pair = &event->values[0].u.string_map.pairs[2 * i];

		if (!strncmp(pair[0].data, "trigger_error", 13))
			sprintf(out + strlen(out), "%.*s: %.*s\n", (int)pair[0].len, pair[0].data, (int)pair[1].len, pair[1].data);
	}
}

static bool finds(const char *errors, const char *text)
{
	bool found = strstr(errors, text) != NULL;

	if (!found)
		printf("not there: %s\nin: %s", text, errors);
	return found;
}

static void test_triggers_come_from_files_too(void)
{
	static const char list[] = "# what we keep\n\n  bad: pol > 5ms\ngood: call at most 360/h\n@other\n";
	struct d9_options *options = scratch_options();
	char path[PATH_MAX], pipe_path[PATH_MAX], large[D9__TRIGGER_FILE_MAX + 1], texts[6 * PATH_MAX], errors[8192] = "";
	struct d9_recorder *recorder;

	snprintf(path, sizeof(path), "%s/list", scratch_dir);
	write_list(path, list, strlen(list));
	snprintf(pipe_path, sizeof(pipe_path), "%s/pipe", scratch_dir);
	CU_ASSERT_EQUAL(mkfifo(pipe_path, 0600), 0);
	snprintf(texts, sizeof(texts), "@%s ; @%s; @%s.no; @%s.large; @%s.zero; last: call at most 360/h", path, pipe_path, path, path,
		 path);
	CU_ASSERT_EQUAL(d9_options_set_triggers(options, texts), 0);
	memset(large, '\n', sizeof(large));
	snprintf(path, sizeof(path), "%s/list.large", scratch_dir);
	write_list(path, large, sizeof(large));
	snprintf(path, sizeof(path), "%s/list.zero", scratch_dir);
	write_list(path, "call\0", 5);
	recorder = scratch_start(options);
	CU_ASSERT_EQUAL(d9_trigger_fire("good"), 0);
	CU_ASSERT_EQUAL(d9_trigger_fire("last"), 0);
	stop(recorder);
	CU_ASSERT_EQUAL(manifests(), 1);
	scratch_read(scratch_dir, true, see_errors, errors);
	CU_ASSERT(finds(errors, "trigger_error.1: "));
	CU_ASSERT(finds(errors, "/list, line 3, column 8: 'pol' is no condition"));
	CU_ASSERT(finds(errors, "/list, line 5, column 1: '@other' is no condition"));
	CU_ASSERT(finds(errors, "/pipe: it is no regular file"));
	CU_ASSERT(finds(errors, "/list.no: not found"));
	CU_ASSERT(finds(errors, "/list.large: it has more than 64 KiB"));
	CU_ASSERT(finds(errors, "/list.zero: it is no text: a byte is 0"));
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "a poll fires above its threshold and not at it",
		  test_a_poll_fires_above_its_threshold_and_not_at_it },
		{ "a late timer fires above its threshold and not at it",
		  test_a_late_timer_fires_above_its_threshold_and_not_at_it },
		{ "polls are counted whether chunks are written or recycled",
		  test_polls_are_counted_whether_chunks_are_written_or_recycled },
		{ "a queue that is long for a while fires",
		  test_a_queue_that_is_long_for_a_while_fires },
		{ "blocked hurries the flush thread only while callbacks run, or may begin",
		  test_blocked_hurries_the_flush_thread_only_while_callbacks_run_or_may_begin },
		{ "where is asked before a trigger fires",
		  test_where_is_asked_before_a_trigger_fires },
		{ "the event has the address of the callback",
		  test_the_event_has_the_address_of_the_callback },
		{ "triggers come from files, too", test_triggers_come_from_files_too },
		{ "a mistake disables its trigger alone",
		  test_a_mistake_disables_its_trigger_alone },
		{ "triggers are armed and removed while the recorder runs",
		  test_triggers_are_armed_and_removed_while_the_recorder_runs },
		{ "no trigger is added where the recorder could not be started",
		  test_no_trigger_is_added_where_the_recorder_could_not_be_started },
		{ "mistakes in an added trigger are told with their column",
		  test_mistakes_in_an_added_trigger_are_told_with_their_column },
		{ "threads fire while others arm and remove",
		  test_threads_fire_while_others_arm_and_remove },
		{ "requests of any kind do no harm", test_requests_of_any_kind_do_no_harm },
		CU_TEST_INFO_NULL,
	};
	int result = d9_test_main("triggers", tests);

	scratch_remove();
	return result;
}
