/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/sanitized.h"
#include "core/record/scratch.h"
#include "core/record/ticks.h"
#include "drain/recover.h"
#include "ring/emit_inl.h"
#include "ring/gate.h"
#include "ring/names.h"
#include "ring/ring_file.h"

/* A ring of a MiB holds some 80 000 of these. */
#define MANY 300000

/* Options of a recorder in flight mode with the least ring. */
static struct d9_options *flight_options(void)
{
	struct d9_options *options = scratch_options();

	CU_ASSERT_EQUAL(d9_options_set_mode(options, D9_MODE_FLIGHT), 0);
	d9_options_set_ring_mb(options, 1);
	return options;
}

/* Whether the numbers are MANY - n .. MANY - 1, in this order. */
struct newest {
	uint64_t n, next;
	bool ordered;
};

static void see_tick(void *arg, const struct d9_event *event)
{
	struct newest *newest = arg;
	uint64_t number;

	if (strcmp(d9_event_name(event), "Tick") != 0)
		return;
	number = event->values[0].u.u64;
	if (newest->n++ && number != newest->next)
		newest->ordered = false;
	newest->next = number + 1;
}

static void check_newest(const char *path)
{
	struct newest newest = { .ordered = true };

	scratch_read(path, true, see_tick, &newest);
	CU_ASSERT(newest.ordered);
	CU_ASSERT_EQUAL(newest.next, MANY);
	CU_ASSERT(newest.n > MANY / 8);
	CU_ASSERT(newest.n < MANY);
}

static uint64_t all_lost(struct d9_recorder *recorder)
{
	struct d9_counters c;
	uint64_t lost = 0;

	CU_ASSERT_EQUAL(d9_recorder_counters(recorder, &c, sizeof(c)), 0);
	for (int i = 0; i < D9_LOSS_COUNT; i++)
		lost += c.lost[i];
	return lost;
}

/* ---- flight mode ---- */

static void test_flight_mode_writes_nothing_and_loses_nothing(void)
{
	struct d9_recorder *recorder = scratch_start(flight_options());
	struct d9_counters c;

	emit_ticks(0, MANY);
	/* Longer than prefixes of quiet threads would stay unwritten. */
	sleep_ms(1200);
	CU_ASSERT_EQUAL(d9_recorder_state(recorder), D9_RECORDER_FLIGHT);
	CU_ASSERT_EQUAL(d9_recorder_rotate(recorder, 5000), -ENOTSUP);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);

	CU_ASSERT_EQUAL(all_lost(recorder), 0);
	CU_ASSERT_EQUAL(d9_recorder_counters(recorder, &c, sizeof(c)), 0);
	CU_ASSERT_EQUAL(c.events_written, 0);
	CU_ASSERT_EQUAL(c.bytes_written, 0);
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, ".zst") + scratch_files(scratch_dir, ".active"), 0);
}

static void test_recorder_after_one_in_flight_mode_writes_its_own_events_only(void)
{
	struct d9_recorder *recorder = scratch_start(flight_options());
	struct newest newest = { .ordered = true };

	emit_ticks(1000000, MANY);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);
	recorder = scratch_start(scratch_options());
	emit_ticks(0, 1000);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);

	scratch_read(scratch_dir, true, see_tick, &newest);
	CU_ASSERT_EQUAL(newest.n, 1000);
	CU_ASSERT(newest.ordered);
	CU_ASSERT_EQUAL(newest.next, 1000);
	CU_ASSERT_EQUAL(all_lost(recorder), 0);
}

struct facts {
	bool complete, recovered, flight;
};

static bool has_pair(const struct d9_value *map, const char *key, const char *value)
{
	for (size_t i = 0; i < map->u.string_map.n; i++) {
		const struct d9_text *pair = &map->u.string_map.pairs[2 * i];

		if (pair[0].len == strlen(key) && !memcmp(pair[0].data, key, pair[0].len))
			return pair[1].len == strlen(value) &&
			       !memcmp(pair[1].data, value, pair[1].len);
	}
	return false;
}

static void see_facts(void *arg, const struct d9_event *event)
{
	struct facts *facts = arg;

	if (event->kind != D9_EVENT_SEGMENT_METADATA)
		return;
	facts->complete |= has_pair(&event->values[0], "segment.complete", "true");
	facts->recovered |= has_pair(&event->values[0], "recovered", "true");
	facts->flight |= has_pair(&event->values[0], "recorder.mode", "flight");
}

static void test_what_a_killed_flight_recorder_held_is_recovered(void)
{
	struct d9_options *options = flight_options();
	struct d9__recovered found = { 0 };
	struct facts facts = { 0 };
	struct d9__recover walk;
	int status;
	pid_t pid = fork();

	if (!pid) {
		if (d9_recorder_start(options, NULL))
			_exit(1);
		emit_ticks(0, MANY);
		sleep_ms(50);
		kill(getpid(), SIGKILL);
	}
	d9_options_free(options);
	CU_ASSERT_EQUAL_FATAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_FATAL(WIFSIGNALED(status));
	CU_ASSERT_EQUAL_FATAL(d9__recover_begin(&walk, scratch_dir, D9__RECOVER_WAIT), 0);
	CU_ASSERT_EQUAL(d9__recover_next(&walk, &found), 1);
	d9__recover_end(&walk);

	CU_ASSERT_EQUAL(found.err, 0);
	CU_ASSERT_EQUAL(found.lost, 0);
	check_newest(scratch_dir);
	scratch_read(scratch_dir, true, see_facts, &facts);
	CU_ASSERT(facts.complete);
	CU_ASSERT(facts.recovered);
	CU_ASSERT(facts.flight);
}

/* ---- dumps ---- */

static int dump(struct d9_recorder *recorder, uint64_t last_ms, const char *dir,
		struct d9_dump_receipt *receipt)
{
	memset(receipt, 0, sizeof(*receipt));
	return d9_dump(recorder, last_ms, dir, 20000, receipt, sizeof(*receipt));
}

static void test_dump_is_a_trace_with_the_newest_events(void)
{
	struct d9_recorder *recorder = scratch_start(flight_options());
	struct d9_dump_receipt receipt;
	struct facts facts = { 0 };
	char dir[PATH_MAX];

	emit_ticks(0, MANY);
	CU_ASSERT_EQUAL(dump(recorder, 0, NULL, &receipt), 0);

	CU_ASSERT(receipt.complete);
	CU_ASSERT_EQUAL(receipt.segments, 1);
	CU_ASSERT_EQUAL(strlen(receipt.id), 26);
	CU_ASSERT(receipt.from_ns && receipt.from_ns < receipt.to_ns);
	CU_ASSERT(d9_recorder_dir(recorder, dir, sizeof(dir)) > 0);
	CU_ASSERT_EQUAL(strncmp(receipt.path, dir, strlen(dir)), 0);
	check_newest(receipt.path);
	scratch_read(receipt.path, true, see_facts, &facts);
	CU_ASSERT(facts.complete && facts.flight);
	CU_ASSERT_EQUAL(all_lost(recorder), 0);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, ".zst"), 1);
}

static void test_dumps_do_not_take_from_each_other(void)
{
	struct d9_recorder *recorder = scratch_start(flight_options());
	struct d9_dump_receipt one, two;
	char dir[PATH_MAX + 16];

	emit_ticks(0, MANY);
	snprintf(dir, sizeof(dir), "%s/a/b", scratch_dir);
	CU_ASSERT_EQUAL(dump(recorder, 0, dir, &one), 0);
	CU_ASSERT_EQUAL(dump(recorder, 0, dir, &two), 0);

	CU_ASSERT_STRING_NOT_EQUAL(one.path, two.path);
	CU_ASSERT_STRING_NOT_EQUAL(one.id, two.id);
	CU_ASSERT_EQUAL(strncmp(one.path, dir, strlen(dir)), 0);
	CU_ASSERT(two.events >= one.events);
	check_newest(one.path);
	check_newest(two.path);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);
}

/* ---- a quiet thread beside busy ones ---- */

static pthread_barrier_t turns;
static struct d9_event_type noise = D9_EVENT_TYPE("Noise", tick_fields);

/* Something in the beginning, something at the end, and no chunk that was full. */
static void *be_quiet(void *arg)
{
	(void)arg;
	emit_ticks(0, 10);
	pthread_barrier_wait(&turns);
	pthread_barrier_wait(&turns);
	emit_ticks(10, 5);
	pthread_barrier_wait(&turns);
	pthread_barrier_wait(&turns);
	return NULL;
}

/* Several rings full. */
static void *be_busy(void *arg)
{
	(void)arg;
	pthread_barrier_wait(&turns);
	for (uint64_t i = 0; i < MANY; i++)
		D9_EMIT(&noise, i);
	pthread_barrier_wait(&turns);
	pthread_barrier_wait(&turns);
	pthread_barrier_wait(&turns);
	return NULL;
}

static void test_dump_has_a_quiet_thread_beside_busy_ones(void)
{
	struct d9_recorder *recorder = scratch_start(flight_options());
	struct scratch_count count = { "Noise", 0 };
	struct newest ticks = { .ordered = true };
	struct d9_dump_receipt receipt;
	pthread_t thread[3];

	pthread_barrier_init(&turns, NULL, 4);
	pthread_create(&thread[0], NULL, be_quiet, NULL);
	pthread_create(&thread[1], NULL, be_busy, NULL);
	pthread_create(&thread[2], NULL, be_busy, NULL);
	for (int i = 0; i < 3; i++)
		pthread_barrier_wait(&turns);
	CU_ASSERT_EQUAL(dump(recorder, 0, NULL, &receipt), 0);
	pthread_barrier_wait(&turns);
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	pthread_barrier_destroy(&turns);

	scratch_read(receipt.path, true, scratch_count_event, &count);
	CU_ASSERT(count.n > 0 && count.n < MANY);
	scratch_read(receipt.path, true, see_tick, &ticks);
	CU_ASSERT_EQUAL(ticks.n, 15);
	CU_ASSERT_EQUAL(ticks.next, 15);
	CU_ASSERT(ticks.ordered);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);
}

/* ---- windows ---- */

static void see_earliest(void *arg, const struct d9_event *event)
{
	uint64_t *earliest_ns = arg;

	if (!strcmp(d9_event_name(event), "Tick") && event->timestamp_ns < *earliest_ns)
		*earliest_ns = event->timestamp_ns;
}

static void test_dump_of_a_window_holds_nothing_older(void)
{
	struct d9_recorder *recorder = scratch_start(flight_options());
	uint64_t before_ns, earliest_ns = UINT64_MAX;
	struct d9_dump_receipt receipt;
	struct scratch_count count = { "Tick", 0 };

	/* In one chunk, with a gap that is longer than the window. */
	emit_ticks(0, 100);
	sleep_ms(300);
	emit_ticks(100, 50);
	before_ns = d9__clock_mono_ns();
	CU_ASSERT_EQUAL(dump(recorder, 200, NULL, &receipt), 0);

	scratch_read(receipt.path, true, see_earliest, &earliest_ns);
	scratch_read(receipt.path, true, scratch_count_event, &count);
	/* With nothing in it, if all was older on a machine that is very busy. */
	CU_ASSERT(earliest_ns >= before_ns - 200 * UINT64_C(1000000));
	CU_ASSERT(count.n <= 50);
	CU_ASSERT_EQUAL(dump(recorder, 0, NULL, &receipt), 0);
	count.n = 0;
	scratch_read(receipt.path, true, scratch_count_event, &count);
	CU_ASSERT_EQUAL(count.n, 150);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);
}

static void test_dump_that_cannot_be_written_says_why_and_leaves_the_ring(void)
{
	struct d9_recorder *recorder = scratch_start(flight_options());
	struct d9_dump_receipt receipt;
	char path[PATH_MAX + 16];
	FILE *file;

	emit_ticks(0, 100);
	snprintf(path, sizeof(path), "%s/file", scratch_dir);
	file = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fclose(file);
	CU_ASSERT_EQUAL(dump(recorder, 0, path, &receipt), -ENOTDIR);
	CU_ASSERT_EQUAL(receipt.path[0], '\0');
	CU_ASSERT_EQUAL(dump(recorder, 0, "", &receipt), -EINVAL);
	CU_ASSERT_EQUAL(d9_dump(NULL, 0, NULL, 0, NULL, 0), -EINVAL);
	snprintf(path, sizeof(path), "%s/open", scratch_dir);
	CU_ASSERT_EQUAL(mkdir(path, 0700), 0);
	CU_ASSERT_EQUAL(chmod(path, 0777), 0);
	CU_ASSERT_EQUAL(dump(recorder, 0, path, &receipt), -EPERM);
	CU_ASSERT_EQUAL(chmod(path, 01777), 0);
	CU_ASSERT_EQUAL(dump(recorder, 0, path, &receipt), 0);
	CU_ASSERT(receipt.events >= 100);
	CU_ASSERT_EQUAL(d9_recorder_state(recorder), D9_RECORDER_FLIGHT);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);
	CU_ASSERT_EQUAL(dump(recorder, 0, NULL, &receipt), -EINVAL);
}

static void test_dump_finds_its_directory_removed_and_makes_it_anew(void)
{
	struct d9_recorder *recorder = scratch_start(flight_options());
	struct d9_dump_receipt receipt;
	char dir[PATH_MAX];

	emit_ticks(0, 100);
	CU_ASSERT(d9_recorder_dir(recorder, dir, sizeof(dir)) > 0);
	nftw(dir, scratch_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	CU_ASSERT_EQUAL(dump(recorder, 0, NULL, &receipt), 0);
	CU_ASSERT_EQUAL(access(receipt.path, R_OK), 0);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);
}

static void test_dump_in_continuous_mode_brings_the_segments(void)
{
	struct d9_recorder *recorder = scratch_start(scratch_options());
	struct scratch_count count = { "Tick", 0 };
	struct d9_dump_receipt receipt;
	char dir[PATH_MAX + 16];

	snprintf(dir, sizeof(dir), "%s/elsewhere", scratch_dir);
	emit_ticks(0, 1000);
	CU_ASSERT_EQUAL(d9_recorder_rotate(recorder, 5000), 0);
	emit_ticks(1000, 1000);
	CU_ASSERT_EQUAL(dump(recorder, 0, dir, &receipt), 0);
	CU_ASSERT_EQUAL(receipt.segments, 2);
	CU_ASSERT(receipt.bytes > 0 && receipt.complete);
	CU_ASSERT_EQUAL(strncmp(receipt.path, dir, strlen(dir)), 0);
	CU_ASSERT_EQUAL(scratch_read(receipt.path, true, scratch_count_event, &count) > 0, true);
	CU_ASSERT_EQUAL(count.n, 2000);

	/* Only what was sealed in the window; what an earlier dump brought is there already. */
	sleep_ms(200);
	emit_ticks(2000, 10);
	CU_ASSERT_EQUAL(dump(recorder, 100, dir, &receipt), 0);
	CU_ASSERT_EQUAL(receipt.segments, 1);
	CU_ASSERT_EQUAL(dump(recorder, 0, dir, &receipt), 0);
	/* One more if the process was sampled in between. */
	CU_ASSERT(receipt.segments == 3 || receipt.segments == 4);
	count.n = 0;
	scratch_read(receipt.path, true, scratch_count_event, &count);
	CU_ASSERT_EQUAL(count.n, 2010);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);
}

/* ---- dumps under load ---- */

#define LOAD_THREADS 3

static _Atomic(bool) load_ends;

/* Polls and parks of one worker, as fast as they go. */
static void *load(void *arg)
{
	uint32_t worker = (uint32_t)(uintptr_t)arg, loc = d9__name_intern("load", 4);
	struct d9__slot *slot = d9__slot_self();
	uint64_t task = worker + 1;

	while (!atomic_load_explicit(&load_ends, memory_order_relaxed)) {
		d9__emit_unpark(slot, d9__slot_now(slot), worker, 0, 1, 0, worker + 1);
		for (int i = 0; i < 20; i++) {
			d9__emit_poll_start(slot, d9__slot_now(slot), worker, 0, task, loc);
			d9__emit_poll_end(slot, d9__slot_now(slot), worker);
		}
		d9__emit_park(slot, d9__slot_now(slot), worker, 0, 1, worker + 1);
		nanosleep(&(struct timespec){ 0, 1000 }, NULL);
	}
	return NULL;
}

struct worker_rules {
	uint64_t last_ns;
	int poll, park; /* kind of the last, 0 = none yet */
};

struct rules {
	struct worker_rules worker[LOAD_THREADS];
	uint64_t events, broken, from_ns;
};

static void check_rules(void *arg, const struct d9_event *event)
{
	struct rules *rules = arg;
	bool poll = event->kind == D9_EVENT_POLL_START || event->kind == D9_EVENT_POLL_END;
	struct worker_rules *w;
	uint64_t id;
	int *last;

	if (!poll && event->kind != D9_EVENT_WORKER_PARK && event->kind != D9_EVENT_WORKER_UNPARK)
		return;
	id = d9_event_u64(event, "worker_id", 99);
	rules->events++;
	if (id >= LOAD_THREADS) {
		rules->broken++;
		return;
	}
	w = &rules->worker[id];
	last = poll ? &w->poll : &w->park;
	rules->broken += event->timestamp_ns < w->last_ns || event->timestamp_ns < rules->from_ns ||
			 *last == (int)event->kind;
	w->last_ns = event->timestamp_ns;
	*last = (int)event->kind;
}

/* The number of polls and parks in it. */
static uint64_t check_dump(struct d9_recorder *recorder, uint64_t last_ms)
{
	struct rules rules = { 0 };
	struct d9_dump_receipt receipt;

	rules.from_ns = d9__clock_mono_ns();
	rules.from_ns -= last_ms * 1000000 < rules.from_ns ? last_ms * 1000000 : rules.from_ns;
	CU_ASSERT_EQUAL_FATAL(dump(recorder, last_ms, NULL, &receipt), 0);
	if (receipt.path[0])
		scratch_read(receipt.path, true, check_rules, &rules);
	CU_ASSERT_EQUAL(rules.broken, 0);
	unlink(receipt.path);
	return rules.events;
}

static void test_dumps_under_load_hold_no_mixed_chunk(void)
{
	struct d9_options *options = flight_options();
	const char *wanted = getenv("D9_DUMPS");
	int dumps = wanted ? atoi(wanted) : D9__SANITIZED == 2 ? 50 : 100;
	pthread_t threads[LOAD_THREADS];
	struct d9_recorder *recorder;

	d9_options_set_ring_mb(options, 2);
	recorder = scratch_start(options);
	atomic_store(&load_ends, false);
	for (uintptr_t i = 0; i < LOAD_THREADS; i++)
		pthread_create(&threads[i], NULL, load, (void *)i);
	for (int i = 0; !atomic_load(&d9__ring.control->recycled) && i < 10000; i++)
		sleep_ms(2);
	/* From windows within one chunk to such as the ring cannot hold. */
	for (int i = 0; i < dumps; i++)
		check_dump(recorder, (uint64_t)(1 + i % 50));
	/* An hour back: whatever the threads of a busy machine came to do. */
	CU_ASSERT(check_dump(recorder, 3600000) > 0);
	atomic_store(&load_ends, true);
	for (int i = 0; i < LOAD_THREADS; i++)
		pthread_join(threads[i], NULL);
	CU_ASSERT(atomic_load(&d9__ring.control->recycled) > 0);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "writes nothing, loses nothing", test_flight_mode_writes_nothing_and_loses_nothing },
		{ "another recorder afterwards",
		  test_recorder_after_one_in_flight_mode_writes_its_own_events_only },
		{ "killed and recovered", test_what_a_killed_flight_recorder_held_is_recovered },
		{ "dump", test_dump_is_a_trace_with_the_newest_events },
		{ "two dumps", test_dumps_do_not_take_from_each_other },
		{ "quiet thread", test_dump_has_a_quiet_thread_beside_busy_ones },
		{ "dump of a window", test_dump_of_a_window_holds_nothing_older },
		{ "dump that fails", test_dump_that_cannot_be_written_says_why_and_leaves_the_ring },
		{ "directory removed", test_dump_finds_its_directory_removed_and_makes_it_anew },
		{ "dump in continuous mode", test_dump_in_continuous_mode_brings_the_segments },
		{ "dumps under load", test_dumps_under_load_hold_no_mixed_chunk },
		CU_TEST_INFO_NULL,
	};
	int failed = d9_test_main("flight", tests);

	scratch_remove();
	return failed;
}
