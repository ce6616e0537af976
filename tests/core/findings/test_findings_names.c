/* SPDX-License-Identifier: Apache-2.0 */
/* The report calls each callback by the best name that the trace has for it. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "story.h"
#include "support/d9_test.h"

#define SLOW "app+0x100 @ app+0x110"
#define TICK "app+0x200 @ app+0x210"
#define READ "libevent-2.1.so.7+0x300 @ app+0x310"
#define WEB  "app+0x400 @ app+0x410"

static int has(const char *text, const char *part)
{
	return strstr(text, part) != NULL;
}

static void test_handler_inside_a_library_callback_is_named_by_its_span(void)
{
	struct story s;
	const struct d9__callback *handler;
	char way[64];

	story_begin(&s);
	story_routine(&s, 0, 0, 300);
	story_unpark(&s, 0, 40000, 5000);
	story_start(&s, 0, 40001, 1, READ);
	story_span(&s, 0, 40010, 100000, 77, SLOW);
	story_end(&s, 0, 100001);
	story_park(&s, 0, 100021, 65000);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "long-callback");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x100");
	CU_ASSERT(has(story_finding(&s, 0)->evidence[0].text, "called from libevent"));
	handler = story_callback(&s, SLOW);
	CU_ASSERT_PTR_NOT_NULL_FATAL(handler);
	CU_ASSERT_EQUAL(handler->calls, 1);
	CU_ASSERT_EQUAL(handler->durations.max, 59990000);
	CU_ASSERT_TRUE(handler->span);
	/* Once: what it took is no time of the library's. */
	CU_ASSERT_EQUAL(story_callback(&s, READ)->durations.sum, 10000);
	CU_ASSERT_STRING_EQUAL(d9__callback_way(handler, way, sizeof(way)), "libevent-2.1.so.7 > app+0x100");
	story_free(&s);
}

/* A burst: the library's one call of 60 ms calls a function 60 times, for 900 us each. */
static void test_function_that_is_called_many_times_in_one_call_is_named(void)
{
	struct story s;

	story_begin(&s);
	story_routine(&s, 0, 0, 300);
	story_unpark(&s, 0, 40000, 5000);
	story_start(&s, 0, 40001, 1, READ);
	for (unsigned i = 0; i < 60; i++)
		story_span(&s, 0, 40010 + 1000 * i, 40910 + 1000 * i, 100 + i, SLOW);
	story_end(&s, 0, 100011);
	story_park(&s, 0, 100021, 65000);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x100");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->brief,
			       "blocks the loop 54.0 ms in 60 calls, once");
	CU_ASSERT(has(story_finding(&s, 0)->message,
		      "54.0 ms in 60 calls (once a call, or several in a row, took"));
	CU_ASSERT(has(story_finding(&s, 0)->evidence[0].text, "in 60 calls, called from libevent"));
	CU_ASSERT_EQUAL(story_callback(&s, SLOW)->stalls[0].stall->culprit_ns, 54000000);
	CU_ASSERT_EQUAL(story_callback(&s, READ)->n_stalls, 0);
	story_free(&s);
}

/* Each burst is of calls that are alike: none of them does anything now and then. */
static void test_bursts_in_a_rhythm_are_long_calls_and_no_housekeeping(void)
{
	struct story s;

	story_begin(&s);
	story_park(&s, 0, 0, 0);
	for (unsigned k = 0; k < 8; k++) {
		unsigned us = 300000 * (k + 1);

		story_unpark(&s, 0, us, 30000 * k);
		story_start(&s, 0, us, 1, READ);
		for (unsigned i = 0; i < 30; i++)
			story_span(&s, 0, us + 1000 * i, us + 1000 * i + 990, 100 + 30 * k + i,
				   SLOW);
		story_end(&s, 0, us + 30000);
		story_park(&s, 0, us + 30001, 30000 * (k + 1));
	}
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "periodic-pause")->check, "");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->brief,
			       "blocks the loop 29.7 ms in 30 calls, 8 times");
	CU_ASSERT(has(story_finding(&s, 0)->message, "in 30 calls, every 300 ms (8 times a call"));
	story_free(&s);
}

/* One of them lies in another: it is no time of its own. */
static void test_run_inside_a_run_of_the_same_function_counts_once(void)
{
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 40000, 5000);
	story_start(&s, 0, 40000, 1, READ);
	story_enter(&s, 0, 41000, 100, SLOW);
	story_span(&s, 0, 42000, 60000, 101, SLOW);
	story_exit(&s, 0, 61000, 100, SLOW);
	story_end(&s, 0, 100000);
	story_park(&s, 0, 100021, 65000);
	story_analyse(&s);

	/* Its 20 ms of 60 are not told of it, and not of the library. */
	CU_ASSERT_EQUAL(story_callback(&s, SLOW)->n_stalls, 0);
	CU_ASSERT_EQUAL(story_callback(&s, READ)->stalls[0].stall->culprit_ns, 40000000);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->brief,
			       "blocks the loop 40.0 ms, 1 of 1 calls");
	CU_ASSERT_FALSE(has(story_finding(&s, 0)->advice, "no function of yours"));
	story_free(&s);
}

/* Two functions have less than half each, and the library has least. */
static void test_library_is_not_accused_of_what_several_functions_took(void)
{
	struct story s;

	story_begin(&s);
	story_unpark(&s, 0, 40000, 5000);
	story_start(&s, 0, 40000, 1, READ);
	story_span(&s, 0, 42000, 69000, 100, WEB);
	story_span(&s, 0, 70000, 99000, 101, SLOW);
	story_end(&s, 0, 100000);
	story_park(&s, 0, 100021, 65000);
	story_analyse(&s);

	CU_ASSERT_EQUAL(story_callback(&s, SLOW)->stalls[0].stall->culprit_ns, 29000000);
	CU_ASSERT_EQUAL(story_callback(&s, READ)->n_stalls, 0);
	story_free(&s);
}

/* Two connections of one function, made at places of their own, and another function. */
static void test_function_that_is_registered_at_two_places_is_one_finding_with_both(void)
{
	static const char *const places[] = { SLOW, "app+0x100 @ app+0x120", WEB };
	const struct d9__finding *finding;
	struct story s;

	story_begin(&s);
	for (unsigned i = 0; i < 12; i++) {
		story_unpark(&s, 0, 100000 * i, 30000 * i);
		story_poll(&s, 0, 100000 * i + 1, 100000 * i + 30000 + 1000 * (i % 3), 1 + i % 3, places[i % 3]);
		story_park(&s, 0, 100000 * i + 40000, 30000 * (i + 1));
	}
	story_analyse(&s);

	CU_ASSERT_EQUAL(s.findings.n, 2);
	CU_ASSERT_EQUAL(s.findings.by_severity[D9__WARNING], 2);
	finding = story_finding(&s, 1);
	CU_ASSERT_STRING_EQUAL(finding->check, "long-callback");
	CU_ASSERT_STRING_EQUAL(finding->brief,
			       "blocks the loop 31.0 ms, 4 of 4 calls, 21 % of the time");
	CU_ASSERT_STRING_EQUAL(finding->evidence[finding->n_evidence - 1].text,
			       "as registered at app+0x110, it blocks the loop 30.0 ms, 4 of 4 "
			       "calls, 21 % of the time");
	story_free(&s);
}

static const struct d9__finding *of_task(const struct story *s, uint64_t task)
{
	for (size_t i = 0; i < s->findings.n; i++)
		if (s->findings.items[i]->task == task)
			return s->findings.items[i];
	return story_finding_of(s, "no such finding");
}

static void test_callback_without_a_function_has_the_name_of_its_source(void)
{
	static const char *const names[] = { "GIdleSource", "[gio] D-Bus read" };
	struct story s;

	story_begin(&s);
	for (unsigned i = 0; i < 2; i++)
		story_spawn_named(&s, i, 1 + i, i ? SLOW : TICK, names[i]);
	story_spawn_named(&s, 2, 3, WEB, "one");
	story_spawn_named(&s, 3, 4, WEB, "another");
	story_poll(&s, 0, 10, 60010, 2, SLOW);
	story_poll(&s, 0, 60020, 120020, 1, TICK);
	story_poll(&s, 0, 120030, 180030, 3, WEB);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(of_task(&s, 2)->name, "[gio] D-Bus read");
	CU_ASSERT_STRING_EQUAL(of_task(&s, 1)->name, "app+0x200");
	CU_ASSERT_STRING_EQUAL(of_task(&s, 3)->name, "app+0x400");
	story_free(&s);
}

static void test_closures_are_told_by_the_name_that_the_program_gave_their_sources(void)
{
	static const char *const places[] = { "python timer callback 2", "other python timer callbacks",
					      "python io callback @ _gi.so+0x10", "python idle callback" };
	static const char *const names[] = { "refresh", "refresh", "GIOChannel (Unix)", "GIdleSource" };
	struct story s;

	story_begin(&s);
	for (unsigned i = 0; i < 4; i++)
		story_spawn_named(&s, i, 1 + i, places[i], names[i]);
	for (unsigned i = 0; i < 4; i++)
		story_poll(&s, 0, 10 + 60020 * i, 60010 + 60020 * i, 1 + i, places[i]);
	story_analyse(&s);

	CU_ASSERT_EQUAL(of_task(&s, 1)->callback->calls, 2);
	CU_ASSERT_STRING_EQUAL(of_task(&s, 1)->name, "refresh");
	CU_ASSERT_STRING_EQUAL(of_task(&s, 3)->name, "python io callback");
	CU_ASSERT_STRING_EQUAL(of_task(&s, 4)->name, "python idle callback");
	story_free(&s);
}

static void test_gio_s_functions_are_told_by_what_they_are_for(void)
{
	static const char place[] = "libgio-2.0.so.0+0x%x00 @ libgio-2.0.so.0+0x10";
	static const struct {
		const char *given, *told;
	} names[] = {
		{ "[gio, ../../../gio/gdbusconnection.c] call_in_idle_cb", "D-Bus method call" },
		{ "[gio] emit_signal_instance_in_idle_cb", "D-Bus signal" },
		{ "[gio, ../../../gio/gfile.c] read_cb", "[gio] read_cb" },
		{ "[gio] D-Bus read", "[gio] D-Bus read" },
		{ "GChildWatchSource", "GChildWatchSource" },
	};
	char places[5][64];
	struct story s;

	story_begin(&s);
	for (unsigned i = 0; i < 5; i++) {
		snprintf(places[i], sizeof(places[i]), place, 1 + i);
		story_spawn_named(&s, i, 1 + i, places[i], names[i].given);
		story_poll(&s, 0, 10 + 60020 * i, 60010 + 60020 * i, 1 + i, places[i]);
	}
	/* The function by which all tasks of GTask end. */
	story_spawn_named(&s, 400000, 6, places[3], "g_subprocess_wait_async");
	story_analyse(&s);

	for (unsigned i = 0; i < 5; i++)
		CU_ASSERT_STRING_EQUAL(of_task(&s, 1 + i)->name, i == 3 ? "[gio] D-Bus read, ..." : names[i].told);
	story_free(&s);
}

static const CU_TestInfo tests[] = {
	{ "handler inside a library callback is named by its span",
	  test_handler_inside_a_library_callback_is_named_by_its_span },
	{ "function that a library calls many times in one call is named with their number",
	  test_function_that_is_called_many_times_in_one_call_is_named },
	{ "bursts in a rhythm are long calls and no housekeeping",
	  test_bursts_in_a_rhythm_are_long_calls_and_no_housekeeping },
	{ "run inside a run of the same function counts once",
	  test_run_inside_a_run_of_the_same_function_counts_once },
	{ "library is not accused of what several functions took",
	  test_library_is_not_accused_of_what_several_functions_took },
	{ "function that is registered at two places is one finding with both",
	  test_function_that_is_registered_at_two_places_is_one_finding_with_both },
	{ "callback without a function has the name of its source",
	  test_callback_without_a_function_has_the_name_of_its_source },
	{ "closures are told by the name that the program gave their sources",
	  test_closures_are_told_by_the_name_that_the_program_gave_their_sources },
	{ "GIO's functions are told by what they are for",
	  test_gio_s_functions_are_told_by_what_they_are_for },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("findings on names", tests);
}
