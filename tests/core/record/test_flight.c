/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>

#include <dial9/event.h>

#include "core/record/scratch.h"
#include "record/chunk.h"
#include "record/recover.h"

/* A ring of a MiB holds some 80 000 of these. */
#define MANY 300000

static const struct d9_field tick_fields[] = {
	{ "number", D9_FIELD_VARINT, NULL, NULL },
};
static struct d9_event_type tick = D9_EVENT_TYPE("Tick", tick_fields);

static void emit_ticks(uint64_t from, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		D9_EMIT(&tick, from + i);
}

static void sleep_ms(long ms)
{
	const struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

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
	CU_ASSERT_EQUAL(d9_recorder_rotate(recorder, 5000), 0);
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
	CU_ASSERT_EQUAL_FATAL(d9__recover_begin(&walk, scratch_dir, false), 0);
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

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "writes nothing, loses nothing", test_flight_mode_writes_nothing_and_loses_nothing },
		{ "another recorder afterwards",
		  test_recorder_after_one_in_flight_mode_writes_its_own_events_only },
		{ "killed and recovered", test_what_a_killed_flight_recorder_held_is_recovered },
		CU_TEST_INFO_NULL,
	};
	int failed = d9_test_main("flight", tests);

	scratch_remove();
	return failed;
}
