/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about connections that wait to be accepted, and listeners that cannot accept. */
#include "config.h"

#include <string.h>

#include "story.h"
#include "support/d9_test.h"

#define SLOW   "app+0x100 @ app+0x110"
#define ACCEPT "app+0x200 @ app+0x210"
#define SERVE  "app+0x300 @ app+0x310"

#define MS(n) ((n)*UINT64_C(1000))

static int has(const char *text, const char *part)
{
	return strstr(text, part) != NULL;
}

/* A callback holds worker 0's loop from 40 ms on for |us|. */
static void begin_held(struct story *s, uint64_t us)
{
	story_begin(s);
	story_routine(s, 0, 0, 300);
	story_unpark(s, 0, 39999, 0);
	story_poll(s, 0, 40000, 40000 + us, 1, SLOW);
	story_park(s, 0, 40001 + us, 0);
}

static void test_connections_that_wait_while_a_callback_holds_the_loop_are_told_as_its_effect(void)
{
	const struct d9__finding *effect;
	struct story s;

	begin_held(&s, 900000);
	story_accept_queue(&s, 0, 440000, 20, 64);
	story_accept_queue(&s, 0, 840000, 50, 64);
	story_analyse(&s);
	effect = story_effect_of(&s, "accept-queue");
	CU_ASSERT_EQUAL(effect->severity, D9__WARNING);
	CU_ASSERT(has(effect->effect, "50 connections waited at 127.0.0.1:8080"));
	CU_ASSERT(has(effect->message, "while app+0x100 held the loop"));
	CU_ASSERT(has(effect->evidence[0].text, "50 connections, of 64 that may; some waited in 2 of 2 looks"));
	story_free(&s);
}

/* The loop asked when the callback had returned. */
static void test_queue_that_is_seen_behind_the_call_is_told_alike(void)
{
	struct story s;

	begin_held(&s, 300000);
	story_unpark(&s, 0, 340010, 0);
	story_accept_queue(&s, 0, 340010, 7, 64);
	story_poll(&s, 0, 340020, 340030, 2, ACCEPT);
	story_park(&s, 0, 340040, 0);
	story_analyse(&s);
	CU_ASSERT(has(story_effect_of(&s, "accept-queue")->message,
		      "7 connections waited at 127.0.0.1:8080 while app+0x100 held the loop."));
	story_free(&s);
}

static void test_full_queue_is_critical(void)
{
	struct story s;

	begin_held(&s, 900000);
	story_accept_queue(&s, 0, 440000, 17, 16);
	story_analyse(&s);
	CU_ASSERT_EQUAL(story_effect_of(&s, "accept-queue")->severity, D9__CRITICAL);
	CU_ASSERT(has(story_effect_of(&s, "accept-queue")->message, "its queue was full"));
	story_free(&s);

	/* Even if no callback held the loop. */
	story_begin(&s);
	story_routine(&s, 0, 0, 300);
	story_accept_queue(&s, 255, 30001, 16, 16);
	story_analyse(&s);
	CU_ASSERT_EQUAL(story_finding_of(&s, "accept-queue")->severity, D9__CRITICAL);
	CU_ASSERT(has(story_finding_of(&s, "accept-queue")->message, "though no callback held the loop"));
	story_free(&s);
}

static void test_connections_that_are_accepted_soon_are_nothing_to_tell(void)
{
	struct story s;

	begin_held(&s, 50000);
	story_accept_queue(&s, 0, 80000, 50, 64);
	story_accept_queue(&s, 0, 90002, 0, 64);
	story_analyse(&s);
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "accept-queue")->check, "");
	CU_ASSERT_STRING_EQUAL(story_effect_of(&s, "accept-queue")->check, "");
	story_free(&s);
}

/* A listener takes |taken| connections; then it takes none, and is ready again and again. */
static void listen_and_spin(struct story *s, unsigned taken, const char *place)
{
	uint64_t us = 0;

	story_begin(s);
	story_spawn_fd(s, 0, 1, place, 7);
	for (unsigned i = 0; i < taken; i++, us += MS(1)) {
		story_unpark(s, 0, us, 0);
		story_start(s, 0, us + 1, 1, place);
		story_spawn_fd(s, us + 2, 100 + i, SERVE, 20 + i);
		story_end(s, 0, us + 20);
		story_park(s, 0, us + 21, 0);
	}
	for (unsigned i = 0; i < 60000; i++, us += 10) {
		story_unpark(s, 0, us, 0);
		story_wake(s, us + 1, 0, 1, D9__WAKE_FD);
		story_poll(s, 0, us + 1, us + 3, 1, place);
		story_park(s, 0, us + 9, 0);
	}
	story_analyse(s);
}

static void test_descriptor_that_took_connections_before_it_span_is_an_accept_storm(void)
{
	struct story s;

	listen_and_spin(&s, 10, SLOW);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "accept-storm");
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->name, "app+0x100");
	CU_ASSERT_STRING_EQUAL(story_finding_of(&s, "spin")->check, "");
	story_free(&s);
	listen_and_spin(&s, 1, SLOW);
	CU_ASSERT_STRING_EQUAL(story_finding(&s, 0)->check, "spin");
	story_free(&s);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "connections that wait while a callback holds the loop are told as its effect",
		  test_connections_that_wait_while_a_callback_holds_the_loop_are_told_as_its_effect },
		{ "queue that is seen behind the call is told alike",
		  test_queue_that_is_seen_behind_the_call_is_told_alike },
		{ "full queue is critical", test_full_queue_is_critical },
		{ "connections that are accepted soon are nothing to tell",
		  test_connections_that_are_accepted_soon_are_nothing_to_tell },
		{ "descriptor that took connections before it span is an accept storm",
		  test_descriptor_that_took_connections_before_it_span_is_an_accept_storm },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("findings about accept queues", tests);
}
