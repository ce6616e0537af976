/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#include <dial9/event.h>

#include "core/record/fixture.h"
#include "core/record/scratch.h"
#include "drain/drain.h"
#include "ring/emit_inl.h"

#define WORKERS 3

static const struct d9_field mark_fields[] = { { "number", D9_FIELD_VARINT, NULL, NULL } };
static struct d9_event_type mark = D9_EVENT_TYPE("Mark", mark_fields);

/* What the producer rules say about one worker: format 13, 10-12. */
struct rules {
	struct {
		int poll, park; /* 0 nothing yet, 1 open, 2 closed */
		uint64_t last_ns;
	} worker[WORKERS + 1];
	uint64_t polls, broken, backwards;
	uint64_t loss_events, lost;
	bool incomplete;
};

static void follow(struct rules *rules, int *state, int now)
{
	rules->broken += *state == now;
	*state = now;
}

static void check_rules(void *arg, const struct d9_event *event)
{
	struct rules *rules = arg;
	uint64_t id;

	if (event->kind == D9_EVENT_RECORDER_LOSS) {
		rules->loss_events++;
		rules->lost += d9_event_u64(event, "events", 0);
	}
	if (event->kind != D9_EVENT_POLL_START && event->kind != D9_EVENT_POLL_END &&
	    event->kind != D9_EVENT_WORKER_PARK && event->kind != D9_EVENT_WORKER_UNPARK)
		return;
	id = d9_event_u64(event, "worker_id", 99);
	CU_ASSERT_FATAL(id <= WORKERS);
	rules->backwards += event->timestamp_ns < rules->worker[id].last_ns;
	rules->worker[id].last_ns = event->timestamp_ns;
	switch ((int)event->kind) {
	case D9_EVENT_POLL_START:
		rules->polls++;
		follow(rules, &rules->worker[id].poll, 1);
		break;
	case D9_EVENT_POLL_END:
		follow(rules, &rules->worker[id].poll, 2);
		break;
	case D9_EVENT_WORKER_PARK:
		rules->broken += rules->worker[id].poll == 1;
		follow(rules, &rules->worker[id].park, 1);
		break;
	default:
		follow(rules, &rules->worker[id].park, 2);
		break;
	}
}

static uint64_t check_trace(struct rules *rules)
{
	*rules = (struct rules){ 0 };
	scratch_read(scratch_dir, true, check_rules, rules);
	CU_ASSERT_EQUAL(rules->broken, 0);
	CU_ASSERT_EQUAL(rules->backwards, 0);
	return rules->polls;
}

struct work {
	uint32_t worker;
	int rounds;
	long pause_us;
};

static void pause_us(long us)
{
	const struct timespec t = { us / 1000000, us % 1000000 * 1000 };

	if (us)
		nanosleep(&t, NULL);
}

/* A loop's life: unpark, five polls, park; again and again. */
static void *run_loop(void *arg)
{
	const struct work *work = arg;
	struct d9__slot *slot = d9__slot_self();
	uint32_t loc = d9__name_intern("here", 4), tid = (uint32_t)syscall(SYS_gettid);
	uint64_t cpu = 1;

	for (int i = 0; i < work->rounds; i++) {
		d9__emit_unpark(slot, d9__slot_now(slot), work->worker, 5, cpu++, 0, tid);
		for (unsigned k = 0; k < 5; k++) {
			d9__emit_poll_start(slot, d9__slot_now(slot), work->worker, 5 - k, 4, loc);
			d9__emit_poll_end(slot, d9__slot_now(slot), work->worker);
		}
		d9__emit_park(slot, d9__slot_now(slot), work->worker, 0, cpu++, tid);
		pause_us(work->pause_us);
	}
	return NULL;
}

/* A worker whose id may go to another thread hands its chunk over, as the loop's half does. */
static void *run_thread(void *arg)
{
	run_loop(arg);
	d9__chunk_seal(d9__slot_self());
	return NULL;
}

static void run_workers(int rounds, long pause)
{
	struct work work[WORKERS];
	pthread_t thread[WORKERS];

	for (uint32_t i = 0; i < WORKERS; i++) {
		work[i] = (struct work){ i, rounds, pause * i };
		pthread_create(&thread[i], NULL, run_thread, &work[i]);
	}
	for (int i = 0; i < WORKERS; i++)
		pthread_join(thread[i], NULL);
}

static void test_polls_and_parks_alternate_in_the_file(void)
{
	struct d9_recorder *recorder = scratch_start(scratch_options());
	struct rules rules;

	run_workers(300, 100);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);

	CU_ASSERT_EQUAL(check_trace(&rules), WORKERS * 300 * 5);
	CU_ASSERT_EQUAL(rules.loss_events, 0);
}

static void test_each_loss_is_told_from_where_the_one_before_ends(void)
{
	static struct d9__drain drain;
	struct d9__drain_loss first, second, again, last, late;

	fixture_ring(4);
	drain = (struct d9__drain){ .ring = &d9__ring };
	d9__loss_add(0, D9__LOSS_OVERRUN, 5, 1000, 2000);
	CU_ASSERT_TRUE(d9__drain_take_loss(&drain, 0, D9__LOSS_OVERRUN, &first));
	d9__loss_add(0, D9__LOSS_OVERRUN, 6, 2100, 3000); /* before the first is in the file */
	d9__drain_told(&drain, 0, D9__LOSS_OVERRUN);
	CU_ASSERT_TRUE(d9__drain_take_loss(&drain, 0, D9__LOSS_OVERRUN, &second));
	d9__loss_add(0, D9__LOSS_OVERRUN, 7, 3100, 4000);
	d9__drain_failed(&drain); /* the second was not written */
	CU_ASSERT_TRUE(d9__drain_take_loss(&drain, 0, D9__LOSS_OVERRUN, &again));
	d9__drain_told(&drain, 0, D9__LOSS_OVERRUN);
	d9__loss_add(0, D9__LOSS_OVERRUN, 8, 5000, 6000);
	CU_ASSERT_TRUE(d9__drain_take_loss(&drain, 0, D9__LOSS_OVERRUN, &last));
	d9__drain_told(&drain, 0, D9__LOSS_OVERRUN);
	d9__loss_add(0, D9__LOSS_OVERRUN, 9, 5500, 5600); /* by a thread that is late */
	CU_ASSERT_TRUE(d9__drain_take_loss(&drain, 0, D9__LOSS_OVERRUN, &late));

	CU_ASSERT(first.events == 5 && first.from_ns == 1000 && first.to_ns == 2000);
	CU_ASSERT(second.events == 6 && second.from_ns == 2000 && second.to_ns == 3000);
	CU_ASSERT(again.events == 13 && again.from_ns == 2000 && again.to_ns == 4000);
	CU_ASSERT(last.events == 8 && last.from_ns == 5000 && last.to_ns == 6000);
	CU_ASSERT(late.events == 9 && late.from_ns == 5500 && late.to_ns == 5600);
}

static void test_loss_is_never_told_from_the_beginning_of_time(void)
{
	static struct d9__drain drain;
	struct d9__drain_loss first, again;

	fixture_ring(4);
	drain = (struct d9__drain){ .ring = &d9__ring };
	d9__loss_add(0, D9__LOSS_OVERRUN, 5, 1000, 2000);
	CU_ASSERT_TRUE(d9__drain_take_loss(&drain, 0, D9__LOSS_OVERRUN, &first));
	d9__loss_add(0, D9__LOSS_OVERRUN, 6, 2100, 3000);
	d9__drain_put_back_loss(&drain, 0, D9__LOSS_OVERRUN, &first);
	d9__drain_told(&drain, 0, D9__LOSS_OVERRUN); /* of none: its time is not known any more */
	CU_ASSERT_TRUE(d9__drain_take_loss(&drain, 0, D9__LOSS_OVERRUN, &again));

	CU_ASSERT(again.events == 11 && again.from_ns == 3000 && again.to_ns == 3000);
}

static void test_losses_are_bridged(void)
{
	struct d9_options *options = scratch_options();
	struct d9_recorder *recorder;
	struct d9_counters c = { 0 };
	struct rules rules;
	int rounds = 0, lossy = 0;

	d9_options_set_ring_mb(options, 1);
	recorder = scratch_start(options);
	/*
	 * Until the ring was too small for eight times, the end of a thread's events among what was lost, whose
	 * id another thread has in the next round; soon, but for sanitizers.
	 */
	do {
		uint64_t before = c.lost[D9_LOSS_OVERRUN];

		run_workers(30000, 0);
		d9_recorder_counters(recorder, &c, sizeof(c));
		lossy += c.lost[D9_LOSS_OVERRUN] > before;
	} while (lossy < 8 && ++rounds < 20);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 10000), 0);

	CU_ASSERT_EQUAL(d9_recorder_counters(recorder, &c, sizeof(c)), 0);
	check_trace(&rules);
	CU_ASSERT_EQUAL(rules.lost, c.lost[D9_LOSS_OVERRUN] + c.lost[D9_LOSS_NO_CHUNK]);
	CU_ASSERT(rules.lost > 0 || rounds == 20);
}

static void test_polls_alternate_across_a_disk_that_fails(void)
{
	struct rlimit limit = { 30000, RLIM_INFINITY }, before;
	struct d9_options *options = scratch_options();
	struct d9_counters c = { 0 };
	struct d9_recorder *recorder;
	struct rules rules;

	d9_options_set_compress(options, D9_COMPRESS_NONE);
	d9_options_set_ring_mb(options, 1);
	recorder = scratch_start(options);
	getrlimit(RLIMIT_FSIZE, &before);
	setrlimit(RLIMIT_FSIZE, &limit);
	run_workers(3000, 0);
	for (int i = 0; i < 1000 && d9_recorder_state(recorder) != D9_RECORDER_PAUSED; i++)
		pause_us(10000);
	/* Until the ring is too small for what cannot be written. */
	for (int i = 0; i < 100 && !c.lost[D9_LOSS_DISK]; i++) {
		run_workers(3000, 0);
		pause_us(10000);
		d9_recorder_counters(recorder, &c, sizeof(c));
	}
	setrlimit(RLIMIT_FSIZE, &before);
	run_workers(200, 100);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);

	CU_ASSERT(check_trace(&rules) > 0);
	CU_ASSERT(rules.loss_events > 0);
}

static void test_slow_thread_is_written_in_pieces_that_decode_alone(void)
{
	struct d9_options *options = scratch_options();
	struct d9_recorder *recorder;
	struct rules rules;
	struct work work = { 0, 10, 0 };

	d9_options_set_compress(options, D9_COMPRESS_NONE);
	d9_options_set_usage_interval_ms(options, 0); /* what is sampled once a second begins a segment, too */
	recorder = scratch_start(options);
	for (int i = 0; i < 8; i++) {
		run_loop(&work);
		D9_EMIT(&mark, i);
		CU_ASSERT_EQUAL(d9_recorder_rotate(recorder, 5000), 0);
	}
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);

	CU_ASSERT_EQUAL(scratch_files(scratch_dir, ".bin"), 8);
	CU_ASSERT_EQUAL(check_trace(&rules), 8 * 10 * 5);
	CU_ASSERT_EQUAL(scratch_count("Mark"), 8);
}

/* As threads may be whose clock is ahead of the flush thread's. */
static void test_events_ahead_of_the_clock_are_written_at_the_stop(void)
{
	struct d9_recorder *recorder = scratch_start(scratch_options());
	uint64_t ahead_ns = d9__clock_mono_ns() + 3600 * UINT64_C(1000000000);
	struct d9__slot *slot = d9__slot_self();
	struct rules rules;

	d9__chunk_seal(slot); /* they are the first of a chunk */
	d9__emit_poll_start(slot, ahead_ns, 0, 0, 1, d9__name_intern("here", 4));
	d9__emit_poll_end(slot, ahead_ns + 1, 0);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);
	d9__chunk_seal(slot); /* and the last */
	CU_ASSERT_EQUAL(check_trace(&rules), 1);
}

static void test_recorder_that_starts_again_continues_open_chunks(void)
{
	struct work work = { 0, 10, 0 };
	struct rules rules;

	for (int i = 0; i < 3; i++) {
		struct d9_recorder *recorder = scratch_start(scratch_options());

		run_loop(&work);
		CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);
		CU_ASSERT_EQUAL(check_trace(&rules), 50);
	}
	scratch_remove();
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "alternation", test_polls_and_parks_alternate_in_the_file },
		{ "losses are bridged", test_losses_are_bridged },
		{ "losses have a beginning", test_loss_is_never_told_from_the_beginning_of_time },
		{ "losses follow each other",
		  test_each_loss_is_told_from_where_the_one_before_ends },
		{ "a failing disk", test_polls_alternate_across_a_disk_that_fails },
		{ "slow threads", test_slow_thread_is_written_in_pieces_that_decode_alone },
		{ "ahead of the clock", test_events_ahead_of_the_clock_are_written_at_the_stop },
		{ "started again", test_recorder_that_starts_again_continues_open_chunks },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("drain", tests);
}
