/* SPDX-License-Identifier: Apache-2.0 */
/* To whom the time of a loop belongs. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "findings/owners.h"
#include "story.h"
#include "support/d9_test.h"

#define ASK	  "app+0x100 @ app+0x110"
#define ASK_AGAIN "app+0x100 @ app+0x120"
#define TICK	  "app+0x200 @ app+0x210"
#define READ	  "libevent-2.1.so.7+0x300 @ app+0x310"

#define MS(n)  ((n)*UINT64_C(1000))
#define NS(us) ((us)*UINT64_C(1000))

#define RESUMPTION 8 /* of a wake: its task goes on with a call that a loop had cut */

static const struct d9__owner nobody;

/* The owner of |kind| with that name among those of worker |number|, or one that has nothing. */
static const struct d9__owner *owner_of(const struct story *s, size_t number,
					enum d9__owner_kind kind, const char *name)
{
	const struct d9__owners *owners = &s->findings.owners[number];
	char buf[128];

	for (size_t i = 0; i < owners->n; i++)
		if (owners->items[i].kind == kind &&
		    !strcmp(d9__owner_name(&owners->items[i], buf, sizeof(buf)), name))
			return &owners->items[i];
	return &nobody;
}

static const struct d9__owner *callback_of(const struct story *s, const char *name)
{
	return owner_of(s, 0, D9__OWNER_CALLBACK, name);
}

static uint64_t library_ns(const struct story *s)
{
	return owner_of(s, 0, D9__OWNER_LIBRARY, "library")->ns;
}

/* Read |s| back: each loop's owners sum to the time awake, and that, its sleep and what was taken
 * to the whole. */
static void analyse(struct story *s)
{
	story_analyse(s);
	for (size_t i = 0; i < s->analysis.timeline.n; i++) {
		const struct d9__owners *owners = &s->findings.owners[i];
		uint64_t ns = owners->others_ns;

		for (size_t j = 0; j < owners->n; j++) {
			CU_ASSERT(!j || owners->items[j - 1].ns >= owners->items[j].ns);
			ns += owners->items[j].ns;
		}
		CU_ASSERT_EQUAL(ns, owners->awake_ns);
		CU_ASSERT_EQUAL(owners->left_ns, owners->awake_ns + owners->asleep_ns);
		CU_ASSERT_EQUAL(owners->left_ns + owners->taken_ns,
				d9__loop_time_total_ns(&s->analysis.timeline.items[i]->loop_time));
	}
}

/* It sleeps for |sleep_us| from |us| on, and runs |place| for |run_us|; returns the end. */
static uint64_t turn(struct story *s, uint64_t us, uint64_t sleep_us, uint64_t run_us,
		     uint64_t task, const char *place)
{
	story_park(s, 0, us, 0);
	story_unpark(s, 0, us + sleep_us, 0);
	story_poll(s, 0, us + sleep_us, us + sleep_us + run_us, task, place);
	return us + sleep_us + run_us;
}

/* ---- shares ---- */

static void test_shares_are_of_what_the_machine_left(void)
{
	const struct d9__owners *owners;
	struct story s;

	/* Of each 100 ms it had 20 ms of a wait, and 20 ms of a call; 30 ms of each remain. */
	story_begin(&s);
	for (uint64_t us = 0; us < MS(1000); us += MS(100)) {
		story_park(&s, 0, us, 0);
		story_unpark_waited(&s, 0, us + MS(50), MS(20));
		story_poll(&s, 0, us + MS(50), us + MS(100), 1, ASK);
		story_off_cpu(&s, 0, us + MS(100), 1, 0, MS(20));
	}
	story_park(&s, 0, MS(1000), 0);
	analyse(&s);

	owners = &s.findings.owners[0];
	CU_ASSERT_EQUAL(owners->taken_ns, NS(MS(400)));
	CU_ASSERT_EQUAL(owners->left_ns, NS(MS(600)));
	CU_ASSERT_EQUAL(owners->awake_ns, NS(MS(300)));
	CU_ASSERT_EQUAL(callback_of(&s, "app+0x100")->ns, NS(MS(300)));
	CU_ASSERT_EQUAL(callback_of(&s, "app+0x100")->calls, 10);
	CU_ASSERT_DOUBLE_EQUAL(d9__owners_share(owners, owners->awake_ns), 0.5, 0.001);
	story_free(&s);
}

/* 100 calls of 900 us, each of which had the CPU for 450 us; of the rest the process's threads were
 * ready for |ready_us|. */
static void half_unknown(struct story *s, bool told, uint64_t ready_us)
{
	story_begin(s);
	if (told)
		story_run_queue(s, 0, 7);
	for (unsigned i = 0; i < 100; i++) {
		story_unpark(s, 0, MS(2) * i, 450 * (i + 1));
		story_poll(s, 0, MS(2) * i, MS(2) * i + 900, 1, ASK);
		story_park(s, 0, MS(2) * i + 900, 450 * (i + 2));
	}
	if (told)
		story_run_queue(s, MS(200), ready_us + 7);
	analyse(s);
}

static void test_unexplained_time_is_the_machines_as_far_as_threads_had_no_cpu(void)
{
	static const struct {
		bool told;
		uint64_t ready_us, own_us;
	} cases[] = {
		{ false, 0, MS(90) },
		{ true, 0, MS(90) },
		{ true, MS(45) / 2, MS(90) - MS(45) / 2 },
		{ true, MS(45), MS(45) },
		{ true, MS(500), MS(45) },
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct story s;

		half_unknown(&s, cases[i].told, cases[i].ready_us);
		CU_ASSERT_EQUAL(callback_of(&s, "app+0x100")->ns, NS(cases[i].own_us));
		CU_ASSERT_EQUAL(s.findings.owners[0].taken_ns, NS(MS(90) - cases[i].own_us));
		story_free(&s);
	}
}

static void test_nothing_is_a_share_of_no_time(void)
{
	struct d9__owners owners = { .left_ns = 0 };

	CU_ASSERT_DOUBLE_EQUAL(d9__owners_share(&owners, 0), 0, 0);
	CU_ASSERT_DOUBLE_EQUAL(d9__owners_share(&owners, 5), 0, 0);
}

/* ---- owners ---- */

static void test_functions_of_one_name_at_two_places_are_one_owner(void)
{
	struct story s;
	uint64_t us = 0;

	story_begin(&s);
	us = turn(&s, us, MS(10), MS(3), 1, ASK);
	us = turn(&s, us, MS(10), MS(5), 2, TICK);
	us = turn(&s, us, MS(10), MS(4), 3, ASK_AGAIN);
	story_park(&s, 0, us, 0);
	analyse(&s);

	CU_ASSERT_EQUAL(s.findings.owners[0].n, 2);
	CU_ASSERT_EQUAL(callback_of(&s, "app+0x100")->ns, NS(MS(7)));
	CU_ASSERT_EQUAL(callback_of(&s, "app+0x100")->calls, 2);
	CU_ASSERT_EQUAL(callback_of(&s, "app+0x200")->ns, NS(MS(5)));
	CU_ASSERT_PTR_EQUAL(callback_of(&s, "app+0x100"), &s.findings.owners[0].items[0]);
	story_free(&s);
}

static void test_sleep_at_two_places_is_added_up(void)
{
	struct story s;

	story_begin(&s);
	for (unsigned i = 0; i < 2; i++) {
		uint64_t us = MS(20) * i;

		story_park(&s, 0, us, 0);
		story_unpark(&s, 0, us + MS(10), 0);
		story_start(&s, 0, us + MS(10), 1 + i, i ? ASK_AGAIN : ASK);
		story_waited(&s, 0, us + MS(17), 1 + i, "read", MS(4) + MS(2) * i);
		story_end(&s, 0, us + MS(20));
		story_off_cpu(&s, 0, us + MS(20), 1 + i, MS(4) + MS(2) * i, 0);
	}
	story_park(&s, 0, MS(40), 0);
	analyse(&s);

	CU_ASSERT_EQUAL(callback_of(&s, "app+0x100")->ns, NS(MS(20)));
	CU_ASSERT_EQUAL(callback_of(&s, "app+0x100")->blocked_ns, NS(MS(10)));
	story_free(&s);
}

static void test_library_s_callback_and_the_function_inside_are_two_owners(void)
{
	struct story s;

	story_begin(&s);
	story_park(&s, 0, 0, 0);
	story_unpark(&s, 0, MS(10), 0);
	story_start(&s, 0, MS(10), 1, READ);
	story_span(&s, 0, MS(11), MS(18), 77, ASK);
	story_end(&s, 0, MS(20));
	story_park(&s, 0, MS(20), 0);
	analyse(&s);

	CU_ASSERT_EQUAL(s.findings.owners[0].n, 2);
	CU_ASSERT_EQUAL(callback_of(&s, "app+0x100")->ns, NS(MS(7)));
	CU_ASSERT_EQUAL(callback_of(&s, "libevent-2.1.so.7+0x300")->ns, NS(MS(3)));
	story_free(&s);
}

/* A call that the next wait cuts: its function did not return. */
static void test_function_inside_has_its_time_though_its_call_was_cut(void)
{
	struct story s;

	story_begin(&s);
	story_park(&s, 0, 0, 0);
	story_unpark(&s, 0, MS(10), 0);
	story_start(&s, 0, MS(10), 1, READ);
	story_enter(&s, 0, MS(12), 77, ASK);
	story_park(&s, 0, MS(20), 0);
	story_unpark(&s, 0, MS(30), 0);
	story_start(&s, 0, MS(30), 2, TICK);
	story_queue(&s, MS(35), 0);
	analyse(&s);

	CU_ASSERT_EQUAL(callback_of(&s, "app+0x100")->ns, NS(MS(8)));
	CU_ASSERT_EQUAL(callback_of(&s, "libevent-2.1.so.7+0x300")->ns, NS(MS(2)));
	/* This one goes on when the trace ends. */
	CU_ASSERT_EQUAL(callback_of(&s, "app+0x200")->ns, NS(MS(5)));
	CU_ASSERT_EQUAL(s.analysis.timeline.items[0]->loop_time.callback_ns, NS(MS(10 + 5)));
	story_free(&s);
}

/* The trace begins in the middle of a round, and after 40 ms an unpark was lost. */
static void test_calls_of_which_no_round_is_known_are_not_shared_out(void)
{
	struct story s;

	story_begin(&s);
	story_poll(&s, 0, 0, MS(9), 1, ASK);
	story_start(&s, 0, MS(9), 2, READ);
	story_span(&s, 0, MS(10), MS(12), 77, ASK);
	story_end(&s, 0, MS(13));
	story_park(&s, 0, MS(20), 0);
	story_unpark(&s, 0, MS(30), 0);
	story_poll(&s, 0, MS(30), MS(35), 1, ASK);
	story_park(&s, 0, MS(40), 0);
	story_poll(&s, 0, MS(50), MS(58), 1, ASK);
	story_park(&s, 0, MS(60), 0);
	story_unpark(&s, 0, MS(70), 0);
	story_park(&s, 0, MS(70), 0);
	story_analyse(&s);

	CU_ASSERT_EQUAL(s.findings.owners[0].n, 2);
	CU_ASSERT_EQUAL(callback_of(&s, "app+0x100")->ns, NS(MS(5)));
	CU_ASSERT_EQUAL(library_ns(&s), NS(MS(5)));
	CU_ASSERT_EQUAL(s.findings.owners[0].left_ns, NS(MS(30)));
	CU_ASSERT_EQUAL(s.analysis.timeline.items[0]->loop_time.lost_ns, NS(MS(20)));
	story_free(&s);
}

/* ASK runs a loop that sleeps for 30 ms, and calls TICK for 6 ms. */
static void test_loop_inside_a_callback_is_none_of_its_time(void)
{
	struct story s;

	story_begin(&s);
	story_park(&s, 0, 0, 0);
	story_unpark(&s, 0, MS(10), 0);
	story_poll(&s, 0, MS(10), MS(12), 1, ASK);
	story_park(&s, 0, MS(12), 0);
	story_unpark(&s, 0, MS(42), 0);
	story_poll(&s, 0, MS(42), MS(48), 2, TICK);
	story_wake(&s, MS(48), 1, 1, RESUMPTION);
	story_poll(&s, 0, MS(48), MS(51), 1, ASK);
	story_park(&s, 0, MS(51), 0);
	analyse(&s);

	CU_ASSERT_EQUAL(callback_of(&s, "app+0x100")->ns, NS(MS(5)));
	CU_ASSERT_EQUAL(callback_of(&s, "app+0x200")->ns, NS(MS(6)));
	CU_ASSERT_EQUAL(s.findings.owners[0].asleep_ns, NS(MS(40)));
	story_free(&s);
}

/* The function of the program inside of the library's callback runs the loop. */
static void test_loop_inside_a_function_of_the_program_is_none_of_its_time(void)
{
	struct story s;

	story_begin(&s);
	story_park(&s, 0, 0, 0);
	story_unpark(&s, 0, MS(10), 0);
	story_start(&s, 0, MS(10), 1, READ);
	story_enter(&s, 0, MS(11), 77, ASK);
	story_end(&s, 0, MS(13));
	story_park(&s, 0, MS(13), 0);
	story_unpark(&s, 0, MS(33), 0);
	story_poll(&s, 0, MS(33), MS(37), 2, TICK);
	story_wake(&s, MS(37), 1, 1, RESUMPTION);
	story_start(&s, 0, MS(37), 1, READ);
	story_exit(&s, 0, MS(42), 77, ASK);
	story_end(&s, 0, MS(43));
	story_park(&s, 0, MS(43), 0);
	analyse(&s);

	CU_ASSERT_EQUAL(callback_of(&s, "app+0x100")->ns, NS(MS(7)));
	CU_ASSERT_EQUAL(callback_of(&s, "app+0x200")->ns, NS(MS(4)));
	CU_ASSERT_EQUAL(callback_of(&s, "libevent-2.1.so.7+0x300")->ns, NS(MS(2)));
	story_free(&s);
}

static void test_each_worker_has_owners_of_its_own(void)
{
	struct story s;

	story_begin(&s);
	for (unsigned worker = 0; worker < 3; worker++)
		story_park(&s, worker, worker, 0);
	for (unsigned worker = 0; worker < 3; worker++)
		story_unpark(&s, worker, MS(10) + worker, 0);
	story_poll(&s, 0, MS(11), MS(15), 1, ASK);
	story_poll(&s, 1, MS(11), MS(19), 1, ASK);
	story_poll(&s, 1, MS(19), MS(21), 2, TICK);
	for (unsigned worker = 0; worker < 3; worker++)
		story_park(&s, worker, MS(30) + worker, 0);
	analyse(&s);

	CU_ASSERT_EQUAL(owner_of(&s, 0, D9__OWNER_CALLBACK, "app+0x100")->ns, NS(MS(4)));
	CU_ASSERT_EQUAL(owner_of(&s, 1, D9__OWNER_CALLBACK, "app+0x100")->ns, NS(MS(8)));
	CU_ASSERT_EQUAL(owner_of(&s, 1, D9__OWNER_CALLBACK, "app+0x200")->ns, NS(MS(2)));
	CU_ASSERT_EQUAL(owner_of(&s, 1, D9__OWNER_LIBRARY, "library")->ns, NS(MS(10)));
	CU_ASSERT_EQUAL(s.findings.owners[2].n, 1);
	CU_ASSERT_EQUAL(owner_of(&s, 2, D9__OWNER_LIBRARY, "library")->ns, NS(MS(20)));
	story_free(&s);
}

/* Twelve callbacks of 1 to 12 ms, in the order of their lengths, or against it: the eight longest
 * have items. */
static void test_owners_beyond_the_eight_largest_are_added_up(void)
{
	for (int backward = 0; backward < 2; backward++) {
		const struct d9__owners *owners;
		struct story s;
		uint64_t us = 0;

		story_begin(&s);
		for (unsigned i = 0; i < 12; i++) {
			unsigned n = backward ? 12 - i : i + 1;
			char place[64];

			snprintf(place, sizeof(place), "app+0x%x00 @ app+0x1", n);
			us = turn(&s, us, MS(1), MS(n), n, place);
		}
		story_park(&s, 0, us, 0);
		analyse(&s);

		owners = &s.findings.owners[0];
		CU_ASSERT_EQUAL_FATAL(owners->n, D9__OWNERS_MAX);
		for (unsigned i = 0; i < D9__OWNERS_MAX; i++)
			CU_ASSERT_EQUAL(owners->items[i].ns, NS(MS(12 - i)));
		CU_ASSERT_EQUAL(owners->others_ns, NS(MS(1 + 2 + 3 + 4)));
		story_free(&s);
	}
}

/* ---- outside of callbacks ---- */

static void test_functions_of_sources_are_owners_beside_the_library(void)
{
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 0, 0);
	story_poll(&s, 0, MS(1), MS(3), 1, ASK);
	story_source_time(&s, 0, MS(19), 1, "prepare", 20, MS(4), MS(1));
	story_source_time(&s, 0, MS(19), 1, "check", 10, MS(6), MS(1));
	story_park(&s, 0, MS(20), 0);
	analyse(&s);

	CU_ASSERT_EQUAL(callback_of(&s, "app+0x100")->ns, NS(MS(2)));
	CU_ASSERT_EQUAL(owner_of(&s, 0, D9__OWNER_PREPARE, "prepare() of app+0x100")->ns,
			NS(MS(4)));
	CU_ASSERT_EQUAL(owner_of(&s, 0, D9__OWNER_PREPARE, "prepare() of app+0x100")->calls, 20);
	CU_ASSERT_EQUAL(owner_of(&s, 0, D9__OWNER_CHECK, "check() of app+0x100")->ns, NS(MS(6)));
	CU_ASSERT_EQUAL(owner_of(&s, 0, D9__OWNER_CHECK, "check() of app+0x100")->calls, 10);
	CU_ASSERT_EQUAL(library_ns(&s), NS(MS(20 - 2 - 4 - 6)));
	story_free(&s);
}

/* Half of the time in a round the thread was ready without a CPU: half of what lies in check(),
 * too. */
static void test_functions_of_sources_have_none_of_the_machine_s(void)
{
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 0, 1);
	story_poll(&s, 0, 0, 1, 1, ASK);
	story_source_time(&s, 0, MS(39), 1, "check", 10, MS(8), MS(1));
	story_put_aside(&s, 0, MS(40), MS(20));
	story_park(&s, 0, MS(40), MS(20) + 1);
	analyse(&s);

	CU_ASSERT(owner_of(&s, 0, D9__OWNER_CHECK, "check() of app+0x100")->ns <= NS(MS(4) + 10));
	CU_ASSERT(owner_of(&s, 0, D9__OWNER_CHECK, "check() of app+0x100")->ns >= NS(MS(4) - 10));
	CU_ASSERT(library_ns(&s) <= NS(MS(16) + 10));
	story_free(&s);
}

static void test_functions_of_sources_have_no_more_than_the_rounds(void)
{
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 0, 0);
	story_poll(&s, 0, MS(1), MS(3), 1, ASK);
	story_source_time(&s, 0, MS(3), 1, "check", 10, MS(90), MS(1));
	story_park(&s, 0, MS(4), 0);
	analyse(&s);

	CU_ASSERT_EQUAL(owner_of(&s, 0, D9__OWNER_CHECK, "check() of app+0x100")->ns, NS(MS(2)));
	CU_ASSERT_EQUAL(library_ns(&s), 0);
	story_free(&s);
}

static void test_cpu_time_inside_waits_has_an_owner(void)
{
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 0, 1);
	story_park(&s, 0, MS(2), MS(2) + 1);
	story_unpark(&s, 0, MS(12), MS(6) + 1);
	story_park(&s, 0, MS(14), MS(8) + 1);
	analyse(&s);

	CU_ASSERT_EQUAL(owner_of(&s, 0, D9__OWNER_WAIT, "CPU time inside waits")->ns, NS(MS(4)));
	CU_ASSERT_EQUAL(s.findings.owners[0].asleep_ns, NS(MS(6)));
	story_free(&s);
}

static void test_work_between_rounds_has_an_owner_and_sleep_there_has_none(void)
{
	struct story s;

	/* 20 ms, of which it had the CPU for 12: 5 in the round, so that of the 15 outside 7 are
	 * work. */
	story_begin(&s);
	story_unpark(&s, 0, 0, 1);
	story_outside(&s, 0, MS(5), MS(20));
	story_park(&s, 0, MS(20), MS(12) + 1);
	/* Short ones are told in sum. */
	story_unpark(&s, 0, MS(30), MS(12) + 1);
	story_source_time(&s, 0, MS(34), 0, "between", 10, MS(3), 900);
	story_park(&s, 0, MS(34), MS(16) + 1);
	analyse(&s);

	CU_ASSERT_EQUAL(owner_of(&s, 0, D9__OWNER_BETWEEN, "between rounds")->ns, NS(MS(7 + 3)));
	CU_ASSERT_EQUAL(s.findings.owners[0].asleep_ns, NS(MS(8 + 10)));
	CU_ASSERT_EQUAL(library_ns(&s), NS(MS(5 + 1)));
	story_free(&s);
}

/* ---- words ---- */

static void text_is(const struct story *s, size_t max, const char *expected)
{
	char text[256];

	d9__owners_text(&s->analysis, &s->findings.owners[0], max, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, expected);
}

static void test_owners_are_told_with_their_shares_and_the_rest_as_others(void)
{
	struct story s;
	uint64_t us;

	story_begin(&s);
	us = turn(&s, 0, MS(400), MS(300), 1, ASK);
	us = turn(&s, us, MS(0), MS(200), 2, TICK);
	us = turn(&s, us, MS(0), MS(80), 3, "app+0x300 @ app+0x1");
	us = turn(&s, us, MS(0), MS(9), 4, "app+0x400 @ app+0x1");
	story_park(&s, 0, us, 0);
	story_unpark(&s, 0, MS(1000), 0);
	analyse(&s);

	text_is(&s, 4, "app+0x100 30 %, app+0x200 20 %, app+0x300 8 %");
	text_is(&s, 2, "app+0x100 30 %, app+0x200 20 %, others 9 %");
	text_is(&s, 0, "others 59 %");
	story_free(&s);
}

static void test_loop_without_owners_has_no_text(void)
{
	struct story s;

	story_begin(&s);
	story_park(&s, 0, 0, 0);
	story_unpark(&s, 0, MS(1000), 0);
	story_park(&s, 0, MS(1000), 0);
	analyse(&s);
	text_is(&s, 3, "");
	story_free(&s);
}

/* ASK is awake for 500 ms of a second, and sleeps for |asleep_us| of that in |function|. */
static void sleeps_in(struct story *s, uint64_t asleep_us, const char *function)
{
	story_begin(s);
	story_park(s, 0, 0, 0);
	story_unpark(s, 0, MS(500), 0);
	story_start(s, 0, MS(500), 1, ASK);
	if (function)
		story_waited(s, 0, MS(500) + asleep_us, 1, function, asleep_us);
	story_end(s, 0, MS(1000));
	story_off_cpu(s, 0, MS(1000), 1, asleep_us, 0);
	story_park(s, 0, MS(1000), 0);
	analyse(s);
}

static void test_sleep_is_told_beside_the_share_from_a_quarter_of_it_on(void)
{
	struct story s;

	sleeps_in(&s, MS(125), "read");
	text_is(&s, 3, "app+0x100 50 % (12 % asleep in read())");
	story_free(&s);
	sleeps_in(&s, MS(400), NULL);
	text_is(&s, 3, "app+0x100 50 % (40 % asleep)");
	story_free(&s);
	sleeps_in(&s, MS(124), "read");
	text_is(&s, 3, "app+0x100 50 %");
	story_free(&s);
}

static void test_sleep_that_waits_for_a_lock_is_told_as_that(void)
{
	struct story s;

	sleeps_in(&s, MS(400), "pthread_mutex_lock");
	text_is(&s, 3, "app+0x100 50 % (40 % asleep for a lock)");
	story_free(&s);
}

/* popen() took 2 ms of 400, and stdio, whose calls are not told, was found in a read. */
static void test_sleep_is_where_it_was_found_if_less_than_half_of_it_was_told(void)
{
	for (unsigned most = 0; most < 2; most++) {
		struct story s;

		story_begin(&s);
		story_park(&s, 0, 0, 0);
		story_unpark(&s, 0, MS(500), 0);
		story_start(&s, 0, MS(500), 1, ASK);
		story_waited(&s, 0, MS(502), 1, "popen", MS(2));
		story_asleep(&s, 0, MS(600), 1, "read(6)", 0, "");
		if (most)
			story_waited(&s, 0, MS(710), 1, "pclose", MS(200));
		story_end(&s, 0, MS(1000));
		story_off_cpu(&s, 0, MS(1000), 1, MS(400), 0);
		story_park(&s, 0, MS(1000), 0);
		analyse(&s);
		text_is(&s, 3,
			most ? "app+0x100 50 % (40 % asleep in pclose())"
			     : "app+0x100 50 % (40 % asleep in read(6))");
		story_free(&s);
	}
}

/* ASK reads in |ask_us| of each 10 ms, and sleeps in |asleep_us| of that; TICK has the rest. */
static bool moves_data(uint64_t ask_us, uint64_t asleep_us)
{
	struct story s;
	bool moves;

	story_begin(&s);
	story_say(&s, "source.io", "on");
	for (unsigned i = 0; i < 200; i++) {
		uint64_t us = MS(10) * i;

		story_unpark(&s, 0, us, 0);
		story_start(&s, 0, us, 1, ASK);
		if (asleep_us)
			story_waited(&s, 0, us + asleep_us, 1, "read", asleep_us);
		story_end(&s, 0, us + ask_us);
		story_poll(&s, 0, us + ask_us, us + MS(9), 2, TICK);
		story_park(&s, 0, us + MS(9), 0);
	}
	story_io(&s, MS(2000), 1, &(struct story_io) { .reads = 200 });
	analyse(&s);
	moves = d9__owners_move_data(&s.findings.owners[0]);
	story_free(&s);
	return moves;
}

static void test_loop_moves_data_where_half_of_its_calls_time_does(void)
{
	CU_ASSERT(moves_data(MS(5), 0));
	CU_ASSERT_FALSE(moves_data(MS(4), 0));
	CU_ASSERT_FALSE(moves_data(MS(5), MS(4)));
}

static CU_TestInfo tests[] = {
	{ "loop moves data where half of its calls' time does",
	  test_loop_moves_data_where_half_of_its_calls_time_does },
	{ "sleep is where it was found if less than half of it was told",
	  test_sleep_is_where_it_was_found_if_less_than_half_of_it_was_told },
	{ "shares are of what the machine left", test_shares_are_of_what_the_machine_left },
	{ "unexplained time is the machine's as far as threads had no CPU",
	  test_unexplained_time_is_the_machines_as_far_as_threads_had_no_cpu },
	{ "nothing is a share of no time", test_nothing_is_a_share_of_no_time },
	{ "functions of one name at two places are one owner",
	  test_functions_of_one_name_at_two_places_are_one_owner },
	{ "sleep at two places is added up", test_sleep_at_two_places_is_added_up },
	{ "a library's callback and the function inside are two owners",
	  test_library_s_callback_and_the_function_inside_are_two_owners },
	{ "a function inside has its time though its call was cut",
	  test_function_inside_has_its_time_though_its_call_was_cut },
	{ "calls of which no round is known are not shared out",
	  test_calls_of_which_no_round_is_known_are_not_shared_out },
	{ "a loop inside a callback is none of its time",
	  test_loop_inside_a_callback_is_none_of_its_time },
	{ "a loop inside a function of the program is none of its time",
	  test_loop_inside_a_function_of_the_program_is_none_of_its_time },
	{ "each worker has owners of its own", test_each_worker_has_owners_of_its_own },
	{ "owners beyond the eight largest are added up",
	  test_owners_beyond_the_eight_largest_are_added_up },
	{ "functions of sources are owners beside the library",
	  test_functions_of_sources_are_owners_beside_the_library },
	{ "functions of sources have no more than the rounds",
	  test_functions_of_sources_have_no_more_than_the_rounds },
	{ "functions of sources have none of the machine's",
	  test_functions_of_sources_have_none_of_the_machine_s },
	{ "CPU time inside waits has an owner", test_cpu_time_inside_waits_has_an_owner },
	{ "work between rounds has an owner, and sleep there has none",
	  test_work_between_rounds_has_an_owner_and_sleep_there_has_none },
	{ "owners are told with their shares, and the rest as others",
	  test_owners_are_told_with_their_shares_and_the_rest_as_others },
	{ "a loop without owners has no text", test_loop_without_owners_has_no_text },
	{ "sleep is told beside the share from a quarter of it on",
	  test_sleep_is_told_beside_the_share_from_a_quarter_of_it_on },
	{ "sleep that waits for a lock is told as that",
	  test_sleep_that_waits_for_a_lock_is_told_as_that },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("owners", tests);
}
