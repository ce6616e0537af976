/* SPDX-License-Identifier: Apache-2.0 */
/* The report tells what the recording lacks before it accuses anybody. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
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

static const struct d9__evidence *evidence_with(const struct d9__finding *finding, const char *part)
{
	for (size_t i = 0; i < finding->n_evidence; i++)
		if (has(finding->evidence[i].text, part))
			return &finding->evidence[i];
	return NULL;
}

static const struct d9__finding *finding_with(const struct story *s, const char *part)
{
	for (size_t i = 0; story_finding(s, i)->check[0]; i++)
		if (has(story_finding(s, i)->message, part))
			return story_finding(s, i);
	return story_finding(s, SIZE_MAX);
}

static void test_time_that_could_not_be_written_is_told_with_its_reason(void)
{
	struct d9__trace_loss loss = { .events = 5, .from_ns = 2000000000, .to_ns = 5000000000 };
	const struct d9__finding *finding;
	struct story s;

	story_begin(&s);
	story_poll(&s, 0, 0, 60000, 1, SLOW);
	/* Two threads tell of one pause, and one of another. */
	d9__losses_add(&s.analysis.losses, "disk", 4, &loss);
	loss.to_ns = 6000000000;
	d9__losses_add(&s.analysis.losses, "disk", 4, &loss);
	loss.from_ns = loss.to_ns + 1;
	loss.to_ns += 2000000000;
	d9__losses_add(&s.analysis.losses, "disk", 4, &loss);
	s.analysis.write_error = ENOSPC;
	story_analyse(&s);

	finding = story_finding(&s, 0);
	CU_ASSERT(has(finding->message, "15 events were lost"));
	CU_ASSERT(has(finding->message, "not written for 6.00 s: no space left on device"));
	CU_ASSERT(has(finding->brief, "not written for 6.00 s: no space left on device"));
	CU_ASSERT_EQUAL_FATAL(finding->n_evidence, 2);
	CU_ASSERT_EQUAL(finding->evidence[0].at_ns, 2000000000);
	CU_ASSERT_EQUAL(finding->evidence[0].duration_ns, 4000000000);
	CU_ASSERT(has(finding->evidence[0].text, "10 events"));
	story_free(&s);
}

static void test_segments_that_were_given_up_are_told(void)
{
	const struct d9__finding *finding;
	struct story s;

	story_begin(&s);
	story_say(&s, "segment.evicted", "0-2,5");
	story_poll(&s, 0, 0, 60000, 1, SLOW);
	story_analyse(&s);

	finding = finding_with(&s, "There was more");
	CU_ASSERT_EQUAL(finding->severity, D9__WARNING);
	CU_ASSERT_STRING_EQUAL(finding->check, "incomplete-data");
	CU_ASSERT_PTR_NOT_NULL(evidence_with(finding, "segments 0 to 2"));
	CU_ASSERT_PTR_NOT_NULL(evidence_with(finding, "segment 5"));
	story_free(&s);
}

/* A story whose trace goes on in a segment that was cut, with |events| left in it. */
static void cut_story(struct story *s, uint64_t events, bool active)
{
	struct d9__analysis *a = &s->analysis;

	story_begin(s);
	story_poll(s, 0, 0, 60000, 1, SLOW);
	story_analyse(s);
	a->segments = realloc(a->segments, 2 * sizeof(*a->segments));
	CU_ASSERT_PTR_NOT_NULL_FATAL(a->segments);
	a->segments[a->n_segments++] = (struct d9__segment_fact) { .path = strdup("/t/trace.1.bin"),
								   .events = events,
								   .active = active,
								   .truncated = true };
	d9__findings_release(&s->findings);
	CU_ASSERT_EQUAL_FATAL(d9__findings_make(&s->findings, a), 0);
}

static void test_segment_cut_before_its_first_event_is_told_first(void)
{
	const struct d9__finding *finding;
	struct story s;

	cut_story(&s, 0, false);
	finding = story_finding(&s, 0);
	CU_ASSERT_STRING_EQUAL(finding->check, "incomplete-data");
	CU_ASSERT_EQUAL(finding->severity, D9__WARNING);
	CU_ASSERT_STRING_EQUAL(finding->message, "1 of 2 segments is cut before the first event.");
	CU_ASSERT_EQUAL(finding->evidence[0].at_ns, s.analysis.segments[0].last_ns);
	CU_ASSERT_STRING_EQUAL(finding_with(&s, "end is missing")->check, "");
	story_free(&s);

	cut_story(&s, 1, false);
	CU_ASSERT_STRING_EQUAL(finding_with(&s, "cut before")->check, "");
	CU_ASSERT_EQUAL(finding_with(&s, "end is missing")->severity, D9__WARNING);
	story_free(&s);
}

static void test_segment_that_was_only_just_begun_is_no_alarm(void)
{
	struct story s;

	cut_story(&s, 0, true);
	CU_ASSERT_STRING_EQUAL(finding_with(&s, "cut before")->check, "");
	CU_ASSERT_EQUAL(finding_with(&s, "never sealed")->severity, D9__INFO);
	story_free(&s);
}

/* The metadata says |recovered| and |clean|, and the last write failed with |error|. */
static bool was_killed(const char *recovered, const char *clean, int error)
{
	struct story s;
	bool killed;

	story_begin(&s);
	story_say(&s, "recovered", recovered);
	story_say(&s, "segment.sealed_clean", clean);
	story_poll(&s, 0, 0, 60000, 1, SLOW);
	story_analyse(&s);
	s.analysis.write_error = error;
	killed = d9__analysis_was_killed(&s.analysis);
	story_free(&s);
	return killed;
}

static void test_program_whose_end_was_recovered_was_killed(void)
{
	CU_ASSERT_TRUE(was_killed("true", "false", 0));
	CU_ASSERT_FALSE(was_killed("true", "true", 0));
	CU_ASSERT_FALSE(was_killed("false", "false", 0));
	/* It may have ended by itself, with events left that had no room on the disk. */
	CU_ASSERT_FALSE(was_killed("true", "false", ENOSPC));
}

static void test_dumps_that_were_given_up_are_told(void)
{
	struct story s;

	story_begin(&s);
	story_say(&s, "dumps.evicted", "A,B");
	story_poll(&s, 0, 0, 60000, 1, SLOW);
	story_analyse(&s);

	CU_ASSERT_EQUAL(finding_with(&s, "2 older dumps")->severity, D9__INFO);
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

static void test_ticks_without_a_stack_are_no_shallow_stacks(void)
{
	uint64_t stack[] = { 0x1000, 0x2000, 0x3000, 0x4000 };

	for (size_t depth = 1; depth <= 4; depth += 3) {
		struct story s;

		story_begin(&s);
		story_routine(&s, 0, 0, 10);
		d9__samples_symbol(&s.analysis.samples, 0x1000, "named", strlen("named"));
		for (uint64_t i = 0; i < 40; i++)
			d9__samples_add(&s.analysis.samples,
					&(struct d9__sampled) { .off_cpu = false }, 1000 + i, stack,
					i % 3 ? 0 : depth);
		story_analyse(&s);
		CU_ASSERT_EQUAL(has(story_finding_of(&s, "sample-setup")->message, "frames deep"),
				depth == 1);
		story_free(&s);
	}
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
	{ "lost events come before everything else", test_lost_events_come_before_everything_else },
	{ "time that could not be written is told with its reason",
	  test_time_that_could_not_be_written_is_told_with_its_reason },
	{ "segment cut before its first event is told first",
	  test_segment_cut_before_its_first_event_is_told_first },
	{ "segment that was only just begun is no alarm",
	  test_segment_that_was_only_just_begun_is_no_alarm },
	{ "program whose end was recovered was killed",
	  test_program_whose_end_was_recovered_was_killed },
	{ "segments that were given up are told", test_segments_that_were_given_up_are_told },
	{ "given up dumps", test_dumps_that_were_given_up_are_told },
	{ "degraded hooks come first and forbid conclusions",
	  test_degraded_hooks_come_first_and_forbid_conclusions },
	{ "tasks without any wake are told if nothing explains it",
	  test_tasks_without_any_wake_are_told_if_nothing_explains_it },
	{ "samples whose frames have no names are told",
	  test_samples_whose_frames_have_no_names_are_told },
	{ "samples of running threads alone are told",
	  test_samples_of_running_threads_alone_are_told },
	{ "ticks without a stack are no shallow stacks",
	  test_ticks_without_a_stack_are_no_shallow_stacks },
	{ "trace without loop events says so first", test_trace_without_loop_events_says_so_first },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("findings on data", tests);
}
