/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about what the process holds: memory and descriptors that grow. */
#include "config.h"

#include <string.h>

#include "story.h"
#include "support/d9_test.h"

#define ASK   "app+0x100 @ app+0x110"
#define TICK  "app+0x200 @ app+0x210"
#define OTHER "app+0x300 @ app+0x310"

#define MS(n) ((n)*UINT64_C(1000))
#define KIB   1024

static int has(const char *text, const char *part)
{
	return strstr(text, part) != NULL;
}

/* A call of |us| in an awake period of its own. */
static void call(struct story *s, uint64_t at_us, uint64_t us, unsigned task, const char *place)
{
	story_unpark(s, 0, at_us, 0);
	story_poll(s, 0, at_us + 1, at_us + 1 + us, task, place);
	story_park(s, 0, at_us + us + 2, 0);
}

/* ASK is called 100 times a second and TICK 10 times; each second the process holds what |held|
 * says. */
static void hold(struct story *s, unsigned seconds,
		 void (*held)(unsigned second, uint64_t *kib, uint64_t *fds))
{
	uint64_t kib, fds;

	story_begin(s);
	for (unsigned i = 0; i <= seconds; i++) {
		held(i, &kib, &fds);
		story_held(s, i * MS(1000), kib, fds);
		for (unsigned j = 0; j < 100 && i < seconds; j++) {
			call(s, i * MS(1000) + j * MS(10) + 1, 400, 1, ASK);
			if (j % 10 == 5)
				call(s, i * MS(1000) + j * MS(10) + 1000, 50, 2, TICK);
		}
	}
	story_analyse(s);
}

static void more_memory(unsigned second, uint64_t *kib, uint64_t *fds)
{
	*kib = 20 * KIB + second * 1600;
	*fds = 12;
}

static void more_descriptors(unsigned second, uint64_t *kib, uint64_t *fds)
{
	*kib = 20 * KIB;
	*fds = 12 + 10 * second;
}

static void little_more_memory(unsigned second, uint64_t *kib, uint64_t *fds)
{
	*kib = 200 * KIB + second * 30;
	*fds = 12 + second / 5;
}

/* It goes up and down again, and is higher at the end. */
static void memory_up_and_down(unsigned second, uint64_t *kib, uint64_t *fds)
{
	*kib = 200 * KIB + (second % 7) * 400 + second * 30;
	*fds = 12 + second % 13;
}

/* A cache that is full after half a minute. */
static void memory_until_full(unsigned second, uint64_t *kib, uint64_t *fds)
{
	*kib = 200 * KIB + (second < 35 ? second : 35) * 100;
	*fds = 12;
}

static void test_growth_along_a_line_is_told_in_a_minute_however_slow_it_is(void)
{
	struct story s;

	hold(&s, 70, little_more_memory);
	CU_ASSERT(has(story_finding_of(&s, "memory-growth")->message, "30.0 KiB a second"));
	CU_ASSERT(
		has(story_finding_of(&s, "memory-growth")->message, "with the calls of app+0x100"));
	CU_ASSERT(has(story_finding_of(&s, "descriptor-growth")->message, "0.2 a second"));
	story_free(&s);
	hold(&s, 50, little_more_memory);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "memory-growth")->check, "");
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "descriptor-growth")->check, "");
	story_free(&s);
}

static void test_memory_that_lies_on_no_line_or_stays_at_last_does_not_grow(void)
{
	struct story s;

	hold(&s, 70, memory_up_and_down);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "memory-growth")->check, "");
	story_free(&s);
	hold(&s, 70, memory_until_full);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "memory-growth")->check, "");
	story_free(&s);
}

static void test_memory_that_grows_is_told_with_the_callback_that_does_most(void)
{
	struct story s;

	hold(&s, 5, more_memory);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "memory-growth");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x100");
	CU_ASSERT_EQUAL(story_finding(&s, 0)->severity, D9__WARNING);
	CU_ASSERT(has(story_finding(&s, 0)->message, "from 20.0 MiB to 27.8 MiB in 5.00 s"));
	CU_ASSERT(has(story_finding(&s, 0)->message, "16.0 KiB each"));
	story_free(&s);
}

static void test_descriptors_that_grow_are_told_with_the_callback_called_as_often(void)
{
	struct story s;

	hold(&s, 6, more_descriptors);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "descriptor-growth");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x200");
	CU_ASSERT(has(story_finding(&s, 0)->message, "from 12 to 72 in 6.00 s"));
	CU_ASSERT(has(story_finding(&s, 0)->message, "1.0 each"));
	story_free(&s);
}

static void warm_up(unsigned second, uint64_t *kib, uint64_t *fds)
{
	*kib = (second < 2 ? 20 + 30 * second : 80) * KIB;
	*fds = second < 2 ? 12 + 50 * second : 112;
}

static void up_and_down(unsigned second, uint64_t *kib, uint64_t *fds)
{
	*kib = (20 + 10 * (second % 4)) * KIB;
	*fds = 12 + 30 * (second % 4);
}

static void in_one_step(unsigned second, uint64_t *kib, uint64_t *fds)
{
	*kib = (second < 6 ? 20 : 90) * KIB;
	*fds = second < 6 ? 12 : 200;
}

static void a_little(unsigned second, uint64_t *kib, uint64_t *fds)
{
	*kib = 20 * KIB + second * 60;
	*fds = 12 + second;
}

static void test_memory_that_is_used_and_given_back_is_no_growth(void)
{
	void (*const shapes[])(unsigned, uint64_t *, uint64_t *) = { warm_up, up_and_down,
								     in_one_step, a_little };

	for (unsigned i = 0; i < 4; i++) {
		struct story s;

		hold(&s, 12, shapes[i]);
		CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "memory-growth")->check, "");
		CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "descriptor-growth")->check, "");
		story_free(&s);
	}
}

/* Calls follow the load, which rises and falls; memory follows the calls of OTHER, which are cheap.
 */
static void test_callback_whose_calls_go_with_growth_is_named_though_another_does_more(void)
{
	struct story s;
	uint64_t kib = 20 * KIB;

	story_begin(&s);
	for (unsigned i = 0; i < 12; i++) {
		unsigned n = 10 + i * 7 % 5 * 15;

		story_held(&s, i * MS(1000), kib, 12);
		for (unsigned j = 0; j < 90; j++) {
			call(&s, i * MS(1000) + j * MS(11) + 1, 2000, 1, ASK);
			if (j < n)
				call(&s, i * MS(1000) + j * MS(11) + 4000, 50, 3, OTHER);
		}
		kib += n * 40;
	}
	story_held(&s, MS(12000), kib, 12);
	story_analyse(&s);

	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "memory-growth");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x300");
	CU_ASSERT(has(story_finding(&s, 0)->message, "40.0 KiB each"));
	story_free(&s);
}

static const CU_TestInfo tests[] = {
	{ "growth along a line is told in a minute however slow it is",
	  test_growth_along_a_line_is_told_in_a_minute_however_slow_it_is },
	{ "memory that lies on no line, or stays at last, does not grow",
	  test_memory_that_lies_on_no_line_or_stays_at_last_does_not_grow },
	{ "memory that grows is told with the callback that does most",
	  test_memory_that_grows_is_told_with_the_callback_that_does_most },
	{ "descriptors that grow are told with the callback called as often",
	  test_descriptors_that_grow_are_told_with_the_callback_called_as_often },
	{ "memory that is used and given back is no growth",
	  test_memory_that_is_used_and_given_back_is_no_growth },
	{ "callback whose calls go with growth is named though another does more",
	  test_callback_whose_calls_go_with_growth_is_named_though_another_does_more },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("findings_growth", tests);
}
