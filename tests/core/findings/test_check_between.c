/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about what programs do between two rounds of a loop that they drive themselves. */
#include "config.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "analyze/before.h"
#include "findings/owners.h"
#include "story.h"
#include "support/d9_test.h"

#define TICK "app+0x200 @ app+0x210"

#define MS(n)	   ((n)*UINT64_C(1000))
#define SECONDS(n) ((n)*UINT64_C(1000000))

static int has(const char *text, const char *part)
{
	return text && strstr(text, part) != NULL;
}

/* A second of rounds of 10 ms, each of which leaves the loop for |outside_us|, needs 100 us
 * besides, and sleeps. */
static void rounds(struct story *s, uint64_t outside_us, unsigned n)
{
	story_begin(s);
	for (unsigned i = 0; i < n; i++) {
		uint64_t us = MS(10) * i;

		story_unpark(s, 0, us, 0);
		story_poll(s, 0, us, us + 50, 1, TICK);
		story_outside(s, 0, us + 75, us + 75 + outside_us);
		story_park(s, 0, us + 100 + outside_us, 0);
	}
	story_unpark(s, 0, MS(10) * n, 0);
	story_park(s, 0, MS(10) * n, 0);
	story_analyse(s);
}

static const struct d9__finding *between(const struct story *s)
{
	return story_finding_of(s, "between-rounds");
}

static void test_a_tenth_of_the_time_between_rounds_is_a_finding(void)
{
	struct story s;

	rounds(&s, MS(1) + 1, 100);
	CU_ASSERT_STRING_EQUAL(between(&s)->check, "between-rounds");
	CU_ASSERT_EQUAL(between(&s)->severity, D9__WARNING);
	CU_ASSERT_STRING_EQUAL(between(&s)->name, "work between rounds");
	CU_ASSERT_STRING_EQUAL(between(&s)->brief,
			       "holds the loop 1.00 ms between rounds, 10 % of the time");
	CU_ASSERT(has(between(&s)->message,
		      "holds worker 0's loop between its rounds: 100 ms in all, 10 % of the time, "
		      "up to 1.00 ms at once."));
	CU_ASSERT(
		has(between(&s)->evidence[0].text, "the longest; 100 took a millisecond and more"));
	CU_ASSERT_EQUAL(between(&s)->evidence[0].duration_ns, MS(1) * 1000 + 1000);
	story_free(&s);

	rounds(&s, MS(1) - 1, 100);
	CU_ASSERT_STRING_EQUAL(between(&s)->check, "");
	story_free(&s);
}

static void test_no_share_is_told_of_less_than_a_second(void)
{
	struct story s;

	rounds(&s, MS(4), 99);
	CU_ASSERT_STRING_EQUAL(between(&s)->check, "");
	story_free(&s);
}

static void test_half_of_the_time_between_rounds_is_critical(void)
{
	struct story s;

	rounds(&s, MS(5) - 1, 100);
	CU_ASSERT_EQUAL(between(&s)->severity, D9__WARNING);
	story_free(&s);
	rounds(&s, MS(5) + 1, 100);
	CU_ASSERT_EQUAL(between(&s)->severity, D9__CRITICAL);
	story_free(&s);
}

/* Once in |us| of which it is away for |outside_us|. */
static void away_once(struct story *s, uint64_t outside_us, uint64_t us)
{
	story_begin(s);
	story_park(s, 0, 0, 0);
	story_unpark(s, 0, MS(40), 0);
	story_outside(s, 0, MS(41), MS(41) + outside_us);
	story_park(s, 0, MS(42) + outside_us, 0);
	story_unpark(s, 0, us, 0);
	story_park(s, 0, us, 0);
	story_analyse(s);
}

/* 0: it is not told. */
static int severity_of_one(uint64_t outside_us, uint64_t us)
{
	int severity = 0;
	struct story s;

	away_once(&s, outside_us, us);
	if (between(&s)->check[0])
		severity = 1 + (int)between(&s)->severity;
	story_free(&s);
	return severity;
}

static void test_one_time_between_two_rounds_is_judged_like_a_callback(void)
{
	CU_ASSERT_EQUAL(severity_of_one(MS(60), SECONDS(60)), 1 + (int)D9__CRITICAL);
	CU_ASSERT_EQUAL(severity_of_one(MS(20), SECONDS(60)), 1 + (int)D9__WARNING);
	CU_ASSERT_EQUAL(severity_of_one(MS(6), SECONDS(60)), 1 + (int)D9__INFO);
	CU_ASSERT_EQUAL(severity_of_one(MS(4), SECONDS(60)), 0);
}

static void test_a_tenth_of_a_second_between_two_rounds_is_critical_whatever_its_share(void)
{
	struct story s;

	away_once(&s, MS(100), SECONDS(60));
	CU_ASSERT_STRING_EQUAL(between(&s)->check, "between-rounds");
	CU_ASSERT_EQUAL(between(&s)->severity, D9__CRITICAL);
	CU_ASSERT_EQUAL(between(&s)->evidence[0].at_ns,
			s.analysis.timeline.items[0]->loop_time.first_ns + 41000000);
	story_free(&s);
	away_once(&s, MS(100), MS(200));
	CU_ASSERT_EQUAL(between(&s)->severity, D9__CRITICAL);
	story_free(&s);
}

/* 300 ms of 400 outside of the loop, with the CPU for |cpu_us| of it. */
static void works_outside(struct story *s, uint64_t cpu_us)
{
	story_begin(s);
	for (unsigned i = 0; i < 10; i++) {
		uint64_t us = MS(400) * i, used_us = (cpu_us + MS(1)) * i + 1;

		story_unpark(s, 0, us, used_us);
		story_outside(s, 0, us + MS(1), us + MS(301));
		story_park(s, 0, us + MS(301), used_us + cpu_us + MS(1));
	}
	story_unpark(s, 0, SECONDS(4), (cpu_us + MS(1)) * 10 + 1);
	story_park(s, 0, SECONDS(4), (cpu_us + MS(1)) * 10 + 1);
	story_analyse(s);
}

static void test_a_program_that_sleeps_between_rounds_is_not_accused_of_work(void)
{
	struct story s;

	works_outside(&s, MS(151));
	CU_ASSERT_STRING_EQUAL(between(&s)->check, "between-rounds");
	story_free(&s);
	works_outside(&s, MS(149));
	CU_ASSERT_STRING_EQUAL(between(&s)->check, "");
	story_free(&s);
}

/* ---- sleeps ---- */

enum { FD_READY = 1, TIMER_DUE = 2 };

/*
 * |n| times outside of the loop, each of |work_us| on the CPU and a sleep of |sleep_us|, if
 * |uneven| by turns of half of that, that, and half more; where the thread comes back the loop
 * sleeps for |parked_us| until a callback is ready, of a timer |late_us| ago.
 */
struct naps {
	unsigned n;
	uint64_t work_us, sleep_us, parked_us, late_us;
	uint64_t looks_us;   /* the loop looked for so long before it found them, and slept not */
	bool alone;	     /* no other is ready with it */
	const char *call;    /* the thread sleeps in it; NULL: not told */
	bool uneven, longer; /* longer: every fourth by as much */
};

static void naps(struct story *s, struct naps naps)
{
	uint64_t us = 0, cpu_us = 1;

	story_begin(s);
	story_unpark(s, 0, us, cpu_us);
	for (unsigned i = 0; i < naps.n; i++) {
		uint64_t away_us = naps.work_us + naps.sleep_us;

		if (naps.uneven)
			away_us += i % 3 * naps.sleep_us / 2 - naps.sleep_us / 2;
		if (naps.longer && i % 4 == 3)
			away_us += naps.sleep_us;
		if (naps.call)
			story_waited(s, 0, us + 100 + naps.work_us, 0, naps.call, naps.sleep_us);
		story_outside(s, 0, us + 100, us + 100 + away_us);
		us += 100 + away_us;
		cpu_us += 100 + naps.work_us;
		story_park(s, 0, us, cpu_us);
		us += naps.parked_us;
		story_unpark(s, 0, us, cpu_us);
		us += naps.looks_us;
		cpu_us += naps.looks_us;
		story_wake(s, us - naps.late_us, 0, 1, naps.late_us ? TIMER_DUE : FD_READY);
		story_poll(s, 0, us, us + 20, 1, TICK);
		if (!naps.alone) {
			story_wake(s, us, 0, 2, FD_READY);
			story_poll(s, 0, us + 20, us + 40, 2, TICK);
		}
	}
	story_park(s, 0, us + 50, cpu_us + 50);
	story_analyse(s);
}

static const struct d9__finding *sleeps(const struct story *s)
{
	return story_finding_of(s, "sleeps-between");
}

static int is_told(struct naps what)
{
	struct story s;
	int told;

	naps(&s, what);
	told = sleeps(&s)->check[0] != 0;
	story_free(&s);
	return told;
}

static void test_even_sleeps_behind_which_callbacks_are_ready_are_a_finding(void)
{
	struct story s;

	naps(&s, (struct naps) { .n = 100, .sleep_us = MS(20), .parked_us = 10 });
	CU_ASSERT_STRING_EQUAL(sleeps(&s)->check, "sleeps-between");
	CU_ASSERT_EQUAL(sleeps(&s)->severity, D9__WARNING);
	CU_ASSERT_STRING_EQUAL(sleeps(&s)->name, "sleep between rounds");
	CU_ASSERT_STRING_EQUAL(
		sleeps(&s)->brief,
		"2.00 s outside of the loop, up to 20.0 ms at once, 99 % of the time");
	CU_ASSERT(has(sleeps(&s)->message, "20.0 ms each time, up to 20.0 ms. Callbacks were ready "
					   "in 100 of 100 times when it came back."));
	CU_ASSERT(has(sleeps(&s)->advice, "Wait in the loop, not beside it"));
	CU_ASSERT_EQUAL(sleeps(&s)->evidence[0].duration_ns, MS(20) * 1000);
	CU_ASSERT_STRING_EQUAL(between(&s)->check, "");
	story_free(&s);

	naps(&s, (struct naps) { .n = 20, .sleep_us = MS(120), .parked_us = 10 });
	CU_ASSERT_EQUAL(sleeps(&s)->severity, D9__CRITICAL);
	story_free(&s);

	/* It may have ended a poll() that the program has itself. */
	naps(&s, (struct naps) { .n = 100, .sleep_us = MS(20), .parked_us = 10, .alone = true });
	CU_ASSERT_EQUAL(sleeps(&s)->severity, D9__INFO);
	CU_ASSERT_FALSE(d9__owners_have_room(&s.analysis, s.findings.owners));
	story_free(&s);
	naps(&s, (struct naps) { .n = 100, .sleep_us = MS(15), .parked_us = 10, .alone = true });
	CU_ASSERT_STRING_EQUAL(sleeps(&s)->check, "");
	CU_ASSERT_TRUE(d9__owners_have_room(&s.analysis, s.findings.owners));
	story_free(&s);
}

static void test_calls_that_block_between_rounds_are_told_however_short_they_are(void)
{
	struct story s;
	struct naps reads = { .n = 600, .sleep_us = MS(2), .parked_us = 10, .alone = true };
	const struct d9__owner *owner;

	/* Of a sleep without its call it is not known whether it serves the loop. */
	CU_ASSERT_FALSE(is_told(reads));
	reads.call = "read";
	naps(&s, reads);
	CU_ASSERT_STRING_EQUAL(sleeps(&s)->check, "sleeps-between");
	CU_ASSERT_EQUAL(sleeps(&s)->severity, D9__CRITICAL);
	CU_ASSERT_STRING_EQUAL(sleeps(&s)->brief, "sleeps between rounds, 95 % of the time, "
						  "2.00 ms each, 600 calls");
	CU_ASSERT(has(sleeps(&s)->message, "in read()"));
	CU_ASSERT(has(sleeps(&s)->message, "callbacks were ready in 600 of 600 times"));
	CU_ASSERT(has(sleeps(&s)->advice, "O_NONBLOCK"));
	CU_ASSERT_EQUAL(sleeps(&s)->evidence[0].duration_ns, MS(2) * 1000);
	owner = &s.findings.owners[0].items[0];
	CU_ASSERT_EQUAL(owner->kind, D9__OWNER_BETWEEN);
	CU_ASSERT_EQUAL(owner->blocked_ns, 600 * MS(2) * 1000);
	CU_ASSERT_STRING_EQUAL(owner->told.in[0].function, "read");
	CU_ASSERT_EQUAL(d9__loop_time_total_ns(&s.analysis.timeline.items[0]->loop_time),
			s.findings.owners[0].left_ns + s.findings.owners[0].taken_ns);
	story_free(&s);
	/* A tenth of the time, and one that is long. */
	reads.parked_us = MS(10);
	CU_ASSERT_FALSE(is_told(reads));
	naps(&s, (struct naps) { 2, 0, MS(300), 10, .call = "connect", .alone = true });
	CU_ASSERT_EQUAL(sleeps(&s)->severity, D9__CRITICAL);
	story_free(&s);
}

static void test_waits_of_the_program_s_own_between_rounds_are_no_calls_that_block(void)
{
	struct naps waits = { .n = 600, .sleep_us = MS(2), .parked_us = 10, .alone = true };
	static const char *const calls[] = { "poll",	"ppoll", "select",     "pselect",
					     "usleep",	"sleep", "nanosleep",  "epoll_wait",
					     "sigwait", "pause", "sigsuspend", "sigtimedwait" };
	struct story s;

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		waits.call = calls[i];
		CU_ASSERT_FALSE(is_told(waits));
	}
	/* Its wait may have another's name, if nothing waits for its end. */
	waits.parked_us = MS(3);
	waits.call = "read";
	naps(&s, waits);
	CU_ASSERT_STRING_EQUAL(sleeps(&s)->check, "");
	CU_ASSERT_EQUAL(s.findings.owners[0].items[0].blocked_ns, 0);
	story_free(&s);
}

/* A program that reads its commands, and looks into its loop until the answer to each is there. */
static void test_descriptors_that_later_looks_find_waited_for_no_call(void)
{
	struct naps commands = { .n = 20, .sleep_us = MS(500), .parked_us = 10, .call = "read" };

	commands.alone = true;
	CU_ASSERT_TRUE(is_told(commands));
	commands.looks_us = MS(2);
	CU_ASSERT_FALSE(is_told(commands));
	commands.looks_us = 50;
	CU_ASSERT_TRUE(is_told(commands));
	/* Nor for a sleep that nothing is known of. */
	CU_ASSERT_FALSE(is_told((struct naps) { 100, 0, MS(20), 10, .looks_us = MS(2) }));
	/* Timers tell themselves when they were due. */
	CU_ASSERT_TRUE(
		is_told((struct naps) { 100, 0, MS(20), 10, .late_us = MS(8), .looks_us = MS(2) }));
}

static void test_calls_behind_the_last_round_hold_no_loop_up(void)
{
	struct story s;
	struct d9__blocked_site *sites;
	size_t n;

	story_begin(&s);
	story_unpark(&s, 0, 0, 1);
	story_poll(&s, 0, 10, 20, 1, TICK);
	story_park(&s, 0, 100, 50);
	story_unpark(&s, 0, MS(1000), 60);
	story_poll(&s, 0, MS(1000), MS(1000) + 10, 1, TICK);
	story_waited(&s, 0, MS(1001), 0, "pthread_join", MS(900));
	story_park(&s, 0, MS(2000), 80);
	story_analyse(&s);
	CU_ASSERT_STRING_EQUAL(sleeps(&s)->check, "");
	/* Among all calls that blocked it is told, and not of the loop. */
	sites = d9__blocked_sites(&s.analysis.blocked, NULL, &n);
	CU_ASSERT_EQUAL_FATAL(n, 1);
	CU_ASSERT_EQUAL(sites[0].calls.total_ns, MS(900) * 1000);
	CU_ASSERT_EQUAL(s.findings.owners[0].items[0].blocked_ns, 0);
	free(sites);
	sites = d9__blocked_sites(&s.analysis.blocked, &s.analysis.timeline.items[0]->beside, &n);
	CU_ASSERT_EQUAL(n, 0);
	free(sites);
	story_free(&s);
}

static void test_sleep_between_rounds_is_innocent_while_nothing_waits(void)
{
	/* The loop itself sleeps until something is ready. */
	CU_ASSERT_FALSE(is_told((struct naps) { 100, 0, MS(20), MS(3), .uneven = false }));
	/* A frame. */
	CU_ASSERT_FALSE(is_told((struct naps) { 100, 0, MS(16), 10, .uneven = false }));
	CU_ASSERT_FALSE(is_told((struct naps) { 1000, 0, MS(1), 10, .uneven = false }));
	/* Too little for a share. */
	CU_ASSERT_FALSE(is_told((struct naps) { 40, 0, MS(20), 10, .uneven = false }));
}

/* A program that waits by a poll() of its own for what its loop watches comes back with it. */
static void test_sleeps_that_end_with_what_they_waited_for_are_uneven(void)
{
	CU_ASSERT_FALSE(is_told((struct naps) { 100, 0, MS(20), 10, .uneven = true }));
	/* Of a busy machine some are longer. */
	CU_ASSERT_TRUE(is_told((struct naps) { 100, 0, MS(20), 10, .longer = true }));
	/* But timers were late. */
	CU_ASSERT_TRUE(is_told((struct naps) { 100, 0, MS(20), 10, MS(6), .uneven = true }));
	CU_ASSERT_FALSE(is_told((struct naps) { 100, 0, MS(20), 10, MS(4), .uneven = true }));
}

static void test_work_beside_longer_sleeps_is_told_where_callbacks_wait(void)
{
	struct story s;

	naps(&s, (struct naps) { 100, MS(10), MS(14), 10, .uneven = false });
	CU_ASSERT_STRING_EQUAL(between(&s)->brief,
			       "holds the loop 10.0 ms between rounds, 41 % of the time");
	CU_ASSERT_STRING_EQUAL(sleeps(&s)->check, "sleeps-between");
	story_free(&s);

	naps(&s, (struct naps) { 100, MS(10), MS(14), MS(3), .uneven = false });
	CU_ASSERT_STRING_EQUAL(between(&s)->check, "");
	story_free(&s);
	/* The work is told if it is more. */
	naps(&s, (struct naps) { 100, MS(14), MS(10), 10, .uneven = false });
	CU_ASSERT_STRING_EQUAL(between(&s)->check, "between-rounds");
	CU_ASSERT_STRING_EQUAL(sleeps(&s)->check, "");
	story_free(&s);
}

static void test_each_loop_is_judged_by_itself(void)
{
	struct story s;

	story_begin(&s);
	for (unsigned worker = 0; worker < 3; worker++)
		story_unpark(&s, worker, worker, 0);
	story_outside(&s, 1, MS(10), MS(200));
	for (unsigned worker = 0; worker < 3; worker++)
		story_park(&s, worker, MS(250) + worker, 0);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(between(&s)->check, "between-rounds");
	CU_ASSERT(has(between(&s)->message, "holds worker 1's loop"));
	CU_ASSERT_EQUAL(between(&s)->evidence[0].worker, 1);
	CU_ASSERT_EQUAL(s.findings.n, 1);
	story_free(&s);
}

static void test_what_several_loops_have_alike_is_one_finding_that_names_them(void)
{
	struct story s;

	story_begin(&s);
	for (unsigned worker = 0; worker < 8; worker++)
		story_unpark(&s, worker, worker, 0);
	for (unsigned worker = 0; worker < 8; worker++)
		story_outside(&s, worker, MS(10), MS(200) + MS(1) * (worker == 5));
	for (unsigned worker = 0; worker < 8; worker++)
		story_park(&s, worker, MS(250) + worker, 0);
	story_analyse(&s);

	CU_ASSERT_EQUAL(s.findings.n, 1);
	CU_ASSERT_EQUAL(s.findings.by_severity[D9__CRITICAL], 1);
	CU_ASSERT(has(between(&s)->message, "holds worker 5's loop"));
	CU_ASSERT(has(between(&s)->message, "So it is on 7 other workers: "));
	for (unsigned worker = 0; worker < 8; worker++) {
		char name[16];

		if (worker == 5)
			continue;
		snprintf(name, sizeof(name), " %u", worker);
		CU_ASSERT(has(between(&s)->message, name));
	}
	story_free(&s);
}

/* ---- the function, by samples ---- */

enum {
	IN_MAIN = 0x10,
	IN_RUN,
	IN_WORK,
	IN_DRAW,
	IN_LIBC,
	IN_LOOP,
	IN_HOOK,
	IN_TICK,
};

/* The program's main() calls run(), that the loop and work() by turns; draw() is called by work().
 */
static struct d9__frame_name functions[] = {
	[IN_MAIN] = { "main", "app.c", "app", 1, true },
	[IN_RUN] = { "run", "app.c", "app", 2, true },
	[IN_WORK] = { "work", "app.c", "app", 3, true },
	[IN_DRAW] = { "draw", "app.c", "app", 4, true },
	[IN_LIBC] = { "memcpy", NULL, "libc.so.6", 0, true },
	[IN_LOOP] = { "event_base_loop", NULL, "libevent-2.1.so.7", 0, true },
	[IN_HOOK] = { "hook", NULL, "libdial9-preload.so.0", 0, true },
	[IN_TICK] = { "tick", "app.c", "app", 5, true },
};

/* As the report does before findings are made. */
static void name(struct story *s)
{
	void *item;

	for (size_t place = 0;
	     (place = d9__table_next(&s->analysis.samples.stacks, place, &item));) {
		struct d9__stack *stack = item;

		stack->names = calloc(stack->n + 1, sizeof(stack->names[0]));
		CU_ASSERT_PTR_NOT_NULL_FATAL(stack->names);
		for (size_t i = 0; i < stack->n; i++)
			stack->names[i] = functions[stack->addresses[i]];
	}
	d9__findings_release(&s->findings);
	CU_ASSERT_EQUAL_FATAL(d9__findings_make(&s->findings, &s->analysis), 0);
}

static void sample(struct story *s, uint64_t us, unsigned n, const uint64_t *stack)
{
	for (unsigned i = 0; i < n; i++)
		story_sample_in(s, 0, us + MS(10) * i, 4, stack);
}

/* It was found in work() |works| times outside of its loop, and once in a callback if
 * |seen_inside|. */
static void sampled(struct story *s, unsigned works, int seen_inside)
{
	static const uint64_t inside[] = { IN_TICK, IN_HOOK, IN_LOOP, IN_RUN, IN_MAIN },
			      working[] = { IN_LIBC, IN_WORK, IN_RUN, IN_MAIN },
			      drawing[] = { IN_DRAW, IN_WORK, IN_RUN, IN_MAIN };

	story_begin(s);
	story_unpark(s, 0, 0, 0);
	story_start(s, 0, 0, 1, TICK);
	if (seen_inside)
		story_sample_in(s, 0, MS(5), 5, inside);
	story_end(s, 0, MS(10));
	sample(s, MS(20), works / 2, working);
	sample(s, MS(100), works - works / 2, drawing);
	story_outside(s, 0, MS(11), MS(310));
	story_park(s, 0, MS(311), 0);
	story_analyse(s);
	name(s);
}

static void test_the_function_that_the_loop_s_caller_called_is_named(void)
{
	struct story s;

	sampled(&s, 6, 1);
	CU_ASSERT_STRING_EQUAL(between(&s)->name, "work");
	CU_ASSERT(has(between(&s)->message, "work holds worker 0's loop between its rounds"));
	CU_ASSERT(has(between(&s)->hot, "work"));
	story_free(&s);
}

/* A function that was inlined into another is not the one that is called. */
static void test_function_that_the_work_was_inlined_into_is_named(void)
{
	static const struct {
		const char *outermost, *name;
	} cases[] = { { "refresh", "refresh" }, { "run", "work" }, { "main", "work" } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct story s;

		functions[IN_WORK].outermost = cases[i].outermost;
		sampled(&s, 6, 1);
		CU_ASSERT_STRING_EQUAL(between(&s)->name, cases[i].name);
		story_free(&s);
	}
	functions[IN_WORK].outermost = NULL;
}

/* No sample tells who runs the loop: the outermost below main() is named. */
static void test_without_its_caller_the_outermost_function_below_main_is_named(void)
{
	struct story s;

	sampled(&s, 6, 0);
	CU_ASSERT_STRING_EQUAL(between(&s)->name, "run");
	story_free(&s);
}

static void test_few_samples_name_no_function(void)
{
	struct story s;

	sampled(&s, 2, 1);
	CU_ASSERT_STRING_EQUAL(between(&s)->name, "work between rounds");
	story_free(&s);
}

/* ---- a loop that never waits ---- */

/* For 2 s the loop is asked |rate| times a second, for |between_ms| of each 100 ms between rounds,
 * and sleeps for |asleep_ms| of them. */
static void asks(struct story *s, unsigned rate, unsigned between_ms, unsigned asleep_ms)
{
	story_begin(s);
	story_say(s, "loop.libevent.capabilities", "poll=full,park=on,wake=full,task_end=partial");
	for (unsigned i = 0; i < 20; i++) {
		uint64_t us = MS(100 * i), awake_us = MS(100 - asleep_ms);

		story_unpark(s, 0, us, i * awake_us + 1);
		story_poll(s, 0, us + 10, us + 20, 1, TICK);
		story_source_time(s, 0, us + 30, 0, "between", rate / 10, MS(between_ms), 900);
		story_park(s, 0, us + awake_us, (i + 1) * awake_us + 1);
	}
	story_unpark(s, 0, MS(2000), 20 * MS(100 - asleep_ms) + 1);
	story_analyse(s);
}

static void test_loop_that_is_asked_for_events_and_never_waits_is_told_as_that(void)
{
	struct story s;
	const struct d9__finding *finding;

	asks(&s, 100000, 20, 0);
	finding = story_finding(&s, 0);
	CU_ASSERT_STRING_EQUAL(finding->check, "loop-overhead");
	CU_ASSERT_EQUAL(finding->severity, D9__CRITICAL);
	CU_ASSERT_STRING_EQUAL(finding->brief, "never lets the loop wait: asks 100,000 times a "
					       "second, 100 % of the time");
	CU_ASSERT_STRING_EQUAL(between(&s)->check, "");
	story_free(&s);
	/* Of more work than asking the work is told; it may be one that looks at its loop. */
	asks(&s, 100000, 70, 0);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "between-rounds");
	CU_ASSERT_STRING_EQUAL(between(&s)->brief,
			       "works between rounds for 70 % of the time, each time under 1 ms");
	story_free(&s);
	asks(&s, 900, 20, 0);
	CU_ASSERT_STRING_EQUAL(between(&s)->check, "between-rounds");
	story_free(&s);
	asks(&s, 100000, 20, 50);
	CU_ASSERT_STRING_EQUAL(between(&s)->check, "between-rounds");
	story_free(&s);
}

/* ---- before the first round ---- */

/* The thread of worker 0 computes for 2 s and runs a loop for 2 s then. */
static void starts(struct story *s, const char *pid, const char *mode)
{
	static const uint64_t working[] = { IN_LIBC, IN_WORK, IN_MAIN },
			      inside[] = { IN_TICK, IN_HOOK, IN_LOOP, IN_MAIN };

	story_begin(s);
	story_say(s, "recorder.mode", mode);
	story_say(s, "pid", pid);
	for (unsigned i = 0; i < 10; i++)
		story_sample_before(s, MS(100) * i, 3, working);
	story_unpark(s, 0, MS(2000), 10);
	for (unsigned i = 0; i < 20; i++) {
		story_start(s, 0, MS(2000 + 100 * i), 1, TICK);
		story_sample_in(s, 0, MS(2010 + 100 * i), 4, inside);
		story_end(s, 0, MS(2020 + 100 * i));
	}
	story_park(s, 0, MS(4000), MS(400));
	story_analyse(s);
	name(s);
}

static uint64_t before_ms(const char *pid, const char *mode)
{
	struct story s;
	uint64_t ns;

	starts(&s, pid, mode);
	ns = d9__before_ns(&s.analysis, s.analysis.timeline.items[0]);
	story_free(&s);
	return ns / 1000000;
}

static void test_time_before_the_first_round_is_told_beside_with_its_function(void)
{
	struct story s;
	const struct d9__worker *worker;
	char *place;

	starts(&s, "100", "continuous");
	worker = s.analysis.timeline.items[0];
	CU_ASSERT_EQUAL(d9__before_ns(&s.analysis, worker), 2000 * MS(1) * 1000);
	CU_ASSERT_EQUAL(d9__loop_time_total_ns(&worker->loop_time), 2000 * MS(1) * 1000);
	place = d9__before_describe(&s.analysis, worker);
	CU_ASSERT_PTR_NOT_NULL_FATAL(place);
	CU_ASSERT_STRING_EQUAL(place, "100 % in work (app.c:3, in memcpy)");
	free(place);
	story_free(&s);
	/* When other threads began is not known, nor when recording did before the trace. */
	CU_ASSERT_EQUAL(before_ms("100", "continuous"), 2000);
	CU_ASSERT_EQUAL(before_ms("99", "continuous"), 0);
	CU_ASSERT_EQUAL(before_ms("100", "flight"), 0);
}

static CU_TestInfo tests[] = {
	{ "loop that is asked for events and never waits is told as that",
	  test_loop_that_is_asked_for_events_and_never_waits_is_told_as_that },
	{ "time before the first round is told beside, with its function",
	  test_time_before_the_first_round_is_told_beside_with_its_function },
	{ "a tenth of the time between rounds is a finding",
	  test_a_tenth_of_the_time_between_rounds_is_a_finding },
	{ "no share is told of less than a second", test_no_share_is_told_of_less_than_a_second },
	{ "one time between two rounds is judged like a callback",
	  test_one_time_between_two_rounds_is_judged_like_a_callback },
	{ "half of the time between rounds is critical",
	  test_half_of_the_time_between_rounds_is_critical },
	{ "a tenth of a second between two rounds is critical whatever its share",
	  test_a_tenth_of_a_second_between_two_rounds_is_critical_whatever_its_share },
	{ "a program that sleeps between rounds is not accused of work",
	  test_a_program_that_sleeps_between_rounds_is_not_accused_of_work },
	{ "even sleeps behind which callbacks are ready are a finding",
	  test_even_sleeps_behind_which_callbacks_are_ready_are_a_finding },
	{ "calls that block between rounds are told however short they are",
	  test_calls_that_block_between_rounds_are_told_however_short_they_are },
	{ "waits of the program's own between rounds are no calls that block",
	  test_waits_of_the_program_s_own_between_rounds_are_no_calls_that_block },
	{ "descriptors that later looks find waited for no call",
	  test_descriptors_that_later_looks_find_waited_for_no_call },
	{ "calls behind the last round hold no loop up",
	  test_calls_behind_the_last_round_hold_no_loop_up },
	{ "sleep between rounds is innocent while nothing waits",
	  test_sleep_between_rounds_is_innocent_while_nothing_waits },
	{ "sleeps that end with what they waited for are uneven",
	  test_sleeps_that_end_with_what_they_waited_for_are_uneven },
	{ "work beside longer sleeps is told where callbacks wait",
	  test_work_beside_longer_sleeps_is_told_where_callbacks_wait },
	{ "each loop is judged by itself", test_each_loop_is_judged_by_itself },
	{ "what several loops have alike is one finding that names them",
	  test_what_several_loops_have_alike_is_one_finding_that_names_them },
	{ "the function that the loop's caller called is named",
	  test_the_function_that_the_loop_s_caller_called_is_named },
	{ "function that the work was inlined into is named",
	  test_function_that_the_work_was_inlined_into_is_named },
	{ "without its caller the outermost function below main() is named",
	  test_without_its_caller_the_outermost_function_below_main_is_named },
	{ "few samples name no function", test_few_samples_name_no_function },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("check_between", tests);
}
