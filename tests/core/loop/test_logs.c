/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <dial9/options.h>

#include "core/loop/loop_events.h"
#include "loop/adapter.h"
#include "ring/gate.h"
#include "support/d9_test.h"

#define SECOND UINT64_C(1000000000)

static struct d9_loop *loop;

static void set_bridge(enum d9_log_bridge bridge)
{
	atomic_store(&d9__log_bridge, (int)bridge);
}

static void log_text(enum d9__log_level level, const char *text)
{
	d9__log_line(D9_LIBRARY_GLIB, level, NULL, text, strlen(text));
}

static void test_nothing_is_recorded_before_a_recorder_asks_for_it(void)
{
	log_text(D9__LOG_ERROR, "too early");
	set_bridge(D9_LOG_BRIDGE_OFF);
	log_text(D9__LOG_ERROR, "off");
	CU_ASSERT_FALSE(d9__logs_bridged());
	CU_ASSERT_EQUAL(loop_count(loop_events_collect(), LOOP_LOG), 0);
}

static void test_bridge_lets_its_level_and_what_is_worse_through(void)
{
	static const struct {
		enum d9_log_bridge bridge;
		size_t lines;
	} cases[] = { { D9_LOG_BRIDGE_ERROR, 2 }, { D9_LOG_BRIDGE_WARNING, 3 },
		      { D9_LOG_BRIDGE_INFO, 5 }, { D9_LOG_BRIDGE_DEBUG, 6 } };

	for (size_t i = 0; i < 4; i++) {
		set_bridge(cases[i].bridge);
		for (unsigned level = 0; level < D9__LOG_LEVELS; level++)
			log_text(level, "line");
		CU_ASSERT(d9__logs_bridged());
		CU_ASSERT_EQUAL(loop_count(loop_events_collect(), LOOP_LOG), cases[i].lines);
	}
}

static void test_line_keeps_its_level_text_and_errno(void)
{
	const struct loop_event *line;

	set_bridge(D9_LOG_BRIDGE_INFO);
	errno = ENOTTY;
	log_text(D9__LOG_CRITICAL, "a text");
	CU_ASSERT_EQUAL(errno, ENOTTY);
	line = loop_nth(loop_events_collect(), LOOP_LOG, 0);
	if (!line)
		return; /* for gcc with LTO, which follows the NULL */
	CU_ASSERT_STRING_EQUAL(line->text, "a text");
	CU_ASSERT_STRING_EQUAL(line->task_kind, "critical");
	CU_ASSERT_EQUAL(line->task, 0);
}

static void test_line_of_a_callback_names_its_task(void)
{
	const struct loop_events *events;
	struct d9_loop_run run;
	struct d9_poll poll = { .loop = loop, .task = { .key = 5, .fd = -1 } };

	d9_loop_enter(loop, &run);
	d9_poll_begin(&poll);
	log_text(D9__LOG_WARNING, "inside");
	d9_poll_end(&poll);
	d9_loop_leave(&run);
	events = loop_events_collect();
	CU_ASSERT(loop_nth(events, LOOP_LOG, 0)->task != 0);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_LOG, 0)->task, loop_nth(events, LOOP_START, 0)->task);
}

static void test_flood_is_cut_to_so_many_lines_a_second(void)
{
	loop_ns += 10 * SECOND;
	for (unsigned i = 0; i < 5000; i++)
		log_text(D9__LOG_WARNING, "again");
	CU_ASSERT_EQUAL(loop_count(loop_events_collect(), LOOP_LOG), 1000);
	loop_ns += SECOND;
	log_text(D9__LOG_WARNING, "the next second");
	CU_ASSERT_EQUAL(loop_count(loop_events_collect(), LOOP_LOG), 1);
}

static void test_recording_that_is_off_takes_no_line(void)
{
	d9__gate_set(0);
	log_text(D9__LOG_ERROR, "nobody listens");
	CU_ASSERT_FALSE(d9__log_wanted(D9__LOG_ERROR));
	d9__gate_set(D9__GATE_ALL);
	CU_ASSERT_EQUAL(loop_count(loop_events_collect(), LOOP_LOG), 0);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "nothing is recorded before a recorder asks for it",
		  test_nothing_is_recorded_before_a_recorder_asks_for_it },
		{ "bridge lets its level and what is worse through",
		  test_bridge_lets_its_level_and_what_is_worse_through },
		{ "line keeps its level, text and errno", test_line_keeps_its_level_text_and_errno },
		{ "line of a callback names its task", test_line_of_a_callback_names_its_task },
		{ "flood is cut to so many lines a second",
		  test_flood_is_cut_to_so_many_lines_a_second },
		{ "recording that is off takes no line", test_recording_that_is_off_takes_no_line },
		CU_TEST_INFO_NULL,
	};

	loop_events_start();
	loop = loop_events_add(D9_LIBRARY_OWN, &loop);
	return d9_test_main("logs", tests);
}
