/* SPDX-License-Identifier: Apache-2.0 */
/* The report tells what the recording lacks before it accuses anybody. */
#include "config.h"

#include <string.h>

#include "story.h"
#include "support/d9_test.h"

#define SLOW "app+0x100 @ app+0x110"

static int has(const char *text, const char *part)
{
	return strstr(text, part) != NULL;
}

static void test_lost_events_come_before_everything_else(void)
{
	struct story s;

	story_begin(&s);
	story_poll(&s, 0, 0, 60000, 1, SLOW);
	story_loss(&s, 70000, "overrun", 5);
	story_loss(&s, 71000, "disk", 2);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "incomplete-data");
	CU_ASSERT(has(story_finding(&s, 0)->message, "7 events were lost"));
	CU_ASSERT(has(story_finding(&s, 0)->evidence[0].text, "cause overrun: 5 events in 1 gap"));
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 1)->check, "long-callback");
	story_free(&s);
}

static void test_degraded_hooks_come_first_and_forbid_conclusions(void)
{
	struct story s;

	story_begin(&s);
	story_say(&s, "loop.libevent.capabilities", "poll=full,park=on,wake=off");
	story_say(&s, "loop.libevent.degraded", "activation functions unreachable; 2 slots refused");
	story_spawn(&s, 0, 1, SLOW, "io");
	story_poll(&s, 0, 1, 60000, 1, SLOW);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "degraded-hooks");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->evidence[1].text, "2 slots refused");
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "no-wakes")->check, "");
	story_free(&s);
}

static void test_tasks_without_any_wake_are_told_if_nothing_explains_it(void)
{
	struct story s;

	story_begin(&s);
	story_spawn(&s, 0, 1, SLOW, "io");
	story_poll(&s, 0, 1, 10, 1, SLOW);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "no-wakes");
	story_free(&s);
}

/* Samples that a profiler took, of |off| of them when the thread was taken off the CPU. */
static void sampled_story(struct story *s, uint64_t on, uint64_t off, uint64_t named)
{
	uint64_t stack[] = { 0x1000, 0x2000, 0x3000, 0x4000 };

	story_begin(s);
	story_routine(s, 0, 0, 10);
	if (named)
		d9__samples_symbol(&s->analysis.samples, named, "named", strlen("named"));
	for (uint64_t i = 0; i < on + off; i++)
		d9__samples_add(&s->analysis.samples, &(struct d9__sampled){ .off_cpu = i >= on }, 1000 + i, stack, 4);
	story_analyse(s);
}

static void test_samples_whose_frames_have_no_names_are_told(void)
{
	struct story s;

	sampled_story(&s, 10, 10, 0x9000);
	CU_ASSERT(has(story_finding_of(&s, "sample-setup")->message, "Fewer than a tenth"));
	CU_ASSERT_EQUAL(story_finding_of(&s, "sample-setup")->severity, D9__WARNING);
	story_free(&s);

	sampled_story(&s, 10, 10, 0);
	CU_ASSERT(has(story_finding_of(&s, "sample-setup")->message, "Fewer than a tenth of the frames"));
	story_free(&s);
}

static void test_samples_of_running_threads_alone_are_told(void)
{
	struct story s;

	sampled_story(&s, 20, 0, 0x1000);
	CU_ASSERT(has(story_finding_of(&s, "sample-setup")->message, "nothing tells where callbacks block"));
	CU_ASSERT_EQUAL(story_finding_of(&s, "sample-setup")->severity, D9__INFO);
	story_free(&s);
}

static void test_trace_without_loop_events_says_so_first(void)
{
	struct story s;

	story_begin(&s);
	story_say(&s, "service", "nothing");
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "nothing-recorded");
	CU_ASSERT(has(story_finding(&s, 0)->message, "no loop activity"));
	story_free(&s);
}

static const CU_TestInfo tests[] = {
	{ "lost events come before everything else",
	  test_lost_events_come_before_everything_else },
	{ "degraded hooks come first and forbid conclusions",
	  test_degraded_hooks_come_first_and_forbid_conclusions },
	{ "tasks without any wake are told if nothing explains it",
	  test_tasks_without_any_wake_are_told_if_nothing_explains_it },
	{ "samples whose frames have no names are told",
	  test_samples_whose_frames_have_no_names_are_told },
	{ "samples of running threads alone are told",
	  test_samples_of_running_threads_alone_are_told },
	{ "trace without loop events says so first",
	  test_trace_without_loop_events_says_so_first },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("findings on data", tests);
}
