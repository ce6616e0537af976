/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <dial9/span.h>

#include "base/span_filter.h"
#include "core/loop/loop_events.h"
#include "ring/gate.h"
#include "span/attributes.h"
#include "support/d9_test.h"

static struct d9_span_site site = D9_SPAN_SITE(D9_SPAN_INFO, "test", "work");
static struct d9_loop *loop;

static void create(struct d9_span *span, uint64_t parent)
{
	CU_ASSERT_EQUAL(d9_span_create(span, &site, parent, NULL, 0), 0);
	CU_ASSERT_NOT_EQUAL(d9_span_id(span), 0);
}

static void begin_poll(struct d9_poll *poll, uint64_t key)
{
	*poll = (struct d9_poll){ .loop = loop, .task = { .key = key, .fd = -1 }, .depth = 1 };
	d9_poll_begin(poll);
}

/* Events of spans that were recorded, as letters. */
static const char *story(const struct loop_events *events)
{
	static char letters[256];
	size_t n = 0;

	for (size_t i = 0; i < events->n && n < sizeof(letters) - 1; i++)
		if (strchr("<>cmC", (int)events->items[i].kind))
			letters[n++] = (char)events->items[i].kind;
	letters[n] = '\0';
	return letters;
}

static const char *mistake(const struct loop_events *events, size_t n)
{
	return n < loop_count(events, LOOP_SPAN_MISUSE) ? loop_nth(events, LOOP_SPAN_MISUSE, n)->text : "none";
}

/* ---- life ---- */

static void test_span_tells_how_long_it_was_busy_and_how_long_it_took(void)
{
	const struct loop_events *events;
	const struct loop_event *event;
	struct d9_span span;
	uint64_t start_ns = loop_ns;

	create(&span, D9_SPAN_ROOT);
	for (int i = 0; i < 3; i++) {
		loop_ns += 100;
		d9_span_enter(&span);
		loop_ns += 7;
		d9_span_exit(&span);
	}
	loop_ns += 100;
	d9_span_close(&span);

	events = loop_events_collect();
	CU_ASSERT_STRING_EQUAL(story(events), "<><><>c");
	event = loop_nth(events, LOOP_SPAN_CLOSE, 0);
	CU_ASSERT_EQUAL(event->start_ns, start_ns);
	CU_ASSERT_EQUAL(event->ns, start_ns + 421);
	CU_ASSERT_EQUAL(event->active_ns, 21);
	CU_ASSERT_EQUAL(event->unbalanced, 0);
	CU_ASSERT_STRING_EQUAL(event->text, "work");
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_SPAN_ENTER, 0)->worker, 255);
	CU_ASSERT_EQUAL(d9_span_id(&span), 0);
}

static void test_span_entered_again_inside_itself_counts_once(void)
{
	const struct loop_events *events;
	struct d9_span span;

	create(&span, D9_SPAN_ROOT);
	d9_span_enter(&span);
	loop_ns += 5;
	d9_span_enter(&span);
	loop_ns += 5;
	d9_span_exit(&span);
	loop_ns += 5;
	d9_span_exit(&span);
	d9_span_close(&span);

	events = loop_events_collect();
	CU_ASSERT_STRING_EQUAL(story(events), "<>c");
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_SPAN_CLOSE, 0)->active_ns, 15);
}

static void test_span_end_leaves_and_closes_at_one_moment(void)
{
	const struct loop_events *events;
	struct d9_span span;

	create(&span, D9_SPAN_ROOT);
	d9_span_enter(&span);
	loop_ns += 5;
	d9_span_end(&span);

	events = loop_events_collect();
	CU_ASSERT_STRING_EQUAL(story(events), "<>c");
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_SPAN_EXIT, 0)->ns,
			loop_nth(events, LOOP_SPAN_CLOSE, 0)->ns);
}

/* ---- parents ---- */

static void test_span_is_a_child_of_the_innermost_that_is_entered(void)
{
	const struct loop_events *events;
	struct d9_span outer, inner, sibling;

	create(&outer, D9_SPAN_ROOT);
	CU_ASSERT_EQUAL(d9_span_current(), 0);
	d9_span_enter(&outer);
	CU_ASSERT_EQUAL(d9_span_current(), d9_span_id(&outer));
	create(&inner, D9_SPAN_CURRENT);
	CU_ASSERT_EQUAL(d9_span_current(), d9_span_id(&outer));
	d9_span_enter(&inner);
	CU_ASSERT_EQUAL(d9_span_current(), d9_span_id(&inner));
	d9_span_exit(&inner);
	d9_span_close(&inner);
	create(&sibling, d9_span_id(&outer));
	d9_span_exit(&outer);
	d9_span_close(&outer);
	d9_span_enter(&sibling);
	d9_span_end(&sibling);

	events = loop_events_collect();
	CU_ASSERT_STRING_EQUAL(story(events), "<<>c>c<>c");
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_SPAN_ENTER, 0)->parent, 0);
	for (size_t i = 1; i < 3; i++)
		CU_ASSERT_EQUAL(loop_nth(events, LOOP_SPAN_ENTER, i)->parent,
				loop_nth(events, LOOP_SPAN_ENTER, 0)->span);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_SPAN_CLOSE, 0)->parent,
			loop_nth(events, LOOP_SPAN_ENTER, 0)->span);
}

static void test_span_left_out_of_order_uncovers_the_right_parent(void)
{
	struct d9_span a, b;

	create(&a, D9_SPAN_ROOT);
	create(&b, D9_SPAN_ROOT);
	d9_span_enter(&a);
	d9_span_enter(&b);
	d9_span_exit(&a);
	CU_ASSERT_EQUAL(d9_span_current(), d9_span_id(&b));
	d9_span_exit(&b);
	CU_ASSERT_EQUAL(d9_span_current(), 0);
	d9_span_close(&a);
	d9_span_close(&b);
	CU_ASSERT_STRING_EQUAL(story(loop_events_collect()), "<<>>cc");
}

static void test_span_of_an_earlier_callback_is_no_parent_in_a_later_one(void)
{
	const struct loop_events *events;
	struct d9_loop_run run;
	struct d9_span span;
	struct d9_poll poll;

	d9_loop_enter(loop, &run);
	loop_ns += 10;
	begin_poll(&poll, 1);
	create(&span, D9_SPAN_ROOT);
	d9_span_enter(&span);
	CU_ASSERT_EQUAL(d9_span_current(), d9_span_id(&span));
	loop_ns += 10;
	d9_poll_end(&poll);
	CU_ASSERT_EQUAL(d9_span_current(), 0);
	begin_poll(&poll, 2);
	CU_ASSERT_EQUAL(d9_span_current(), 0);
	loop_ns += 10;
	d9_span_exit(&span);
	d9_span_close(&span);
	d9_poll_end(&poll);
	d9_loop_leave(&run);

	events = loop_events_collect();
	CU_ASSERT_STRING_EQUAL(story(events), "<>c");
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_SPAN_CLOSE, 0)->active_ns, 20);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_SPAN_ENTER, 0)->worker,
			loop_nth(events, LOOP_START, 0)->worker);
	CU_ASSERT_EQUAL(loop_first_violation(events), events->n);
}

static void test_span_of_the_program_is_a_child_of_the_adapters(void)
{
	const struct loop_events *events;
	struct d9_loop_span handler;
	struct d9_loop_run run;
	struct d9_span span;
	struct d9_poll poll;

	d9_loop_enter(loop, &run);
	begin_poll(&poll, 3);
	d9_loop_span_enter(&handler, d9_callsite((const void *)16, NULL, 0));
	create(&span, D9_SPAN_CURRENT);
	d9_span_enter(&span);
	d9_span_end(&span);
	d9_loop_span_exit(&handler);
	CU_ASSERT_EQUAL(d9_span_current(), 0);
	d9_poll_end(&poll);
	d9_loop_leave(&run);

	events = loop_events_collect();
	CU_ASSERT_STRING_EQUAL(story(events), "<>cC");
	CU_ASSERT_NOT_EQUAL(loop_nth(events, LOOP_SPAN_CALL, 0)->span, 0);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_SPAN_ENTER, 0)->parent,
			loop_nth(events, LOOP_SPAN_CALL, 0)->span);
}

/* Deeper on the stack, as a loop inside a callback is. */
static __attribute__((noinline)) void run_nested_loop(void)
{
	struct d9_loop_run run;
	struct d9_poll poll;

	d9_loop_enter(loop, &run);
	loop_ns += 5;
	begin_poll(&poll, 5);
	loop_ns += 5;
	d9_poll_end(&poll);
	loop_ns += 5;
	d9_loop_leave(&run);
	loop_ns += 5;
}

static void test_span_behind_a_nested_loop_lies_in_the_callbacks_second_piece(void)
{
	const struct loop_events *events;
	struct d9_loop_run run;
	struct d9_span span;
	struct d9_poll poll;

	d9_loop_enter(loop, &run);
	loop_ns += 5;
	begin_poll(&poll, 4);
	loop_ns += 5;
	run_nested_loop();
	create(&span, D9_SPAN_CURRENT);
	d9_span_enter(&span);
	loop_ns += 5;
	d9_span_end(&span);
	d9_poll_end(&poll);
	d9_loop_leave(&run);

	events = loop_events_collect();
	CU_ASSERT_EQUAL_FATAL(loop_count(events, LOOP_START), 3);
	CU_ASSERT(loop_nth(events, LOOP_START, 2)->ns <= loop_nth(events, LOOP_SPAN_ENTER, 0)->ns);
	CU_ASSERT_EQUAL(loop_first_violation(events), events->n);
}

static void test_span_deeper_than_the_limit_is_still_recorded(void)
{
	struct d9_span spans[70];
	const struct loop_events *events;

	for (int i = 0; i < 70; i++) {
		create(&spans[i], D9_SPAN_CURRENT);
		d9_span_enter(&spans[i]);
	}
	for (int i = 69; i >= 0; i--) {
		d9_span_exit(&spans[i]);
		d9_span_close(&spans[i]);
	}
	CU_ASSERT_EQUAL(d9_span_current(), 0);

	events = loop_events_collect();
	CU_ASSERT_EQUAL(loop_count(events, LOOP_SPAN_ENTER), 70);
	CU_ASSERT_EQUAL(loop_count(events, LOOP_SPAN_EXIT), 70);
	CU_ASSERT_EQUAL(loop_count(events, LOOP_SPAN_CLOSE), 70);
	CU_ASSERT_EQUAL(loop_count(events, LOOP_SPAN_MISUSE), 0);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_SPAN_ENTER, 69)->parent,
			loop_nth(events, LOOP_SPAN_ENTER, 63)->span);
}

static void test_span_that_callbacks_leave_behind_makes_room_for_others(void)
{
	struct d9_loop_run run;
	struct d9_poll poll;
	struct d9_span left[100], span;

	d9_loop_enter(loop, &run);
	for (unsigned i = 0; i < 100; i++) {
		loop_ns += 10;
		begin_poll(&poll, 6);
		create(&left[i], D9_SPAN_CURRENT);
		d9_span_enter(&left[i]);
		loop_ns += 10;
		d9_poll_end(&poll);
	}
	begin_poll(&poll, 7);
	create(&span, D9_SPAN_CURRENT);
	d9_span_enter(&span);
	CU_ASSERT_EQUAL(d9_span_current(), d9_span_id(&span));
	d9_span_end(&span);
	d9_poll_end(&poll);
	d9_loop_leave(&run);
	loop_events_collect();
}

/* ---- mistakes ---- */

static void test_span_left_more_often_than_entered_is_told(void)
{
	const struct loop_events *events;
	struct d9_span span;

	create(&span, D9_SPAN_ROOT);
	d9_span_exit(&span);
	d9_span_enter(&span);
	d9_span_exit(&span);
	d9_span_exit(&span);
	d9_span_close(&span);

	events = loop_events_collect();
	CU_ASSERT_STRING_EQUAL(story(events), "m<>mc");
	CU_ASSERT_STRING_EQUAL(mistake(events, 0), "exit without enter");
}

static void test_span_closed_while_entered_is_left_first_and_told(void)
{
	const struct loop_events *events;
	struct d9_span span;

	create(&span, D9_SPAN_ROOT);
	d9_span_enter(&span);
	loop_ns += 9;
	d9_span_close(&span);
	CU_ASSERT_EQUAL(d9_span_current(), 0);

	events = loop_events_collect();
	CU_ASSERT_STRING_EQUAL(story(events), "<m>c");
	CU_ASSERT_STRING_EQUAL(mistake(events, 0), "close while entered");
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_SPAN_CLOSE, 0)->active_ns, 9);
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_SPAN_CLOSE, 0)->unbalanced, 1);
}

static void test_span_used_after_its_close_is_told_and_does_no_harm(void)
{
	const struct loop_events *events;
	struct d9_span span;

	create(&span, D9_SPAN_ROOT);
	d9_span_close(&span);
	d9_span_enter(&span);
	d9_span_exit(&span);
	d9_span_close(&span);
	CU_ASSERT_EQUAL(d9_span_set(&span, 0, d9_arg_u64(1)), 0);

	events = loop_events_collect();
	CU_ASSERT_STRING_EQUAL(story(events), "cmmm");
	CU_ASSERT_STRING_EQUAL(mistake(events, 0), "enter after close");
	CU_ASSERT_STRING_EQUAL(mistake(events, 1), "exit after close");
	CU_ASSERT_STRING_EQUAL(mistake(events, 2), "close twice");
}

static void *close_it(void *arg)
{
	d9_span_close(arg);
	return NULL;
}

static void test_span_closed_by_a_thread_while_another_is_inside_is_nobodys_parent(void)
{
	const struct loop_events *events;
	struct d9_span span;
	pthread_t thread;

	create(&span, D9_SPAN_ROOT);
	d9_span_enter(&span);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, close_it, &span), 0);
	pthread_join(thread, NULL);
	d9_span_exit(&span);
	CU_ASSERT_EQUAL(d9_span_current(), 0);

	events = loop_events_collect();
	CU_ASSERT_EQUAL(loop_count(events, LOOP_SPAN_MISUSE), 1);
	CU_ASSERT_STRING_EQUAL(mistake(events, 0), "close while entered");
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_SPAN_CLOSE, 0)->unbalanced, 1);
}

static void test_span_entered_while_recording_was_off_is_no_mistake(void)
{
	struct d9_span before, during;

	create(&before, D9_SPAN_ROOT);
	create(&during, D9_SPAN_ROOT);
	d9_span_enter(&before);
	d9__gate_set(0);
	d9_span_enter(&during);
	d9__gate_set(D9__GATE_ALL);
	CU_ASSERT_EQUAL(d9_span_current(), 0);
	d9_span_exit(&before);
	d9_span_exit(&during);
	d9_span_close(&before);
	d9_span_close(&during);
	CU_ASSERT_EQUAL(loop_count(loop_events_collect(), LOOP_SPAN_MISUSE), 0);
}

/* ---- filter ---- */

static bool is_on(const char *filter, const char *target, uint32_t level)
{
	struct d9_span_site one = D9_SPAN_SITE(level, target, "one");
	struct d9_span span;
	bool on;

	CU_ASSERT_EQUAL(d9_span_filter(filter), 0);
	CU_ASSERT_EQUAL(d9_span_create(&span, &one, D9_SPAN_ROOT, NULL, 0), 0);
	on = d9_span_id(&span) != 0;
	CU_ASSERT_EQUAL(d9_span_on(&one), on);
	d9_span_close(&span);
	return on;
}

static void test_filter_takes_the_longest_target_that_fits(void)
{
	static const struct {
		const char *filter, *target;
		uint32_t level;
		bool on;
	} cases[] = {
		{ "info", "net", D9_SPAN_INFO, true },
		{ "info", "net", D9_SPAN_DEBUG, false },
		{ "off", "net", D9_SPAN_ERROR, false },
		{ "trace", "", D9_SPAN_TRACE, true },
		{ "net=debug", "net", D9_SPAN_DEBUG, true },
		{ "net=debug", "net.tls", D9_SPAN_DEBUG, true },
		{ "net=debug", "db", D9_SPAN_ERROR, false },
		{ "info,net=debug,net.tls=off", "net.tls", D9_SPAN_ERROR, false },
		{ "net.tls=off,net=debug,info", "net.tcp", D9_SPAN_DEBUG, true },
		{ "net.tls=off,net=debug,info", "db", D9_SPAN_INFO, true },
		{ " WARN , net = Trace ", "net", D9_SPAN_TRACE, true },
		{ "info,warn", "db", D9_SPAN_INFO, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CU_ASSERT_EQUAL(is_on(cases[i].filter, cases[i].target, cases[i].level),
				cases[i].on);
	CU_ASSERT_EQUAL(d9_span_filter("info"), 0);
	loop_events_collect();
}

static void test_filter_that_is_none_changes_nothing(void)
{
	static const char *const bad[] = { "", "loud", "net=", "=info", "info,,debug", "net=loud" };
	char longest[1100];

	memset(longest, 'x', sizeof(longest));
	memcpy(longest + sizeof(longest) - 6, "=info", 6);
	CU_ASSERT_EQUAL(d9_span_filter("debug"), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_EQUAL(d9_span_filter(bad[i]), -EINVAL);
	CU_ASSERT_EQUAL(d9_span_filter(NULL), -EINVAL);
	CU_ASSERT_EQUAL(d9_span_filter(longest), -EINVAL);
	CU_ASSERT_TRUE(is_on("debug", "x", D9_SPAN_DEBUG));
	CU_ASSERT_EQUAL(d9_span_filter("info"), 0);
	loop_events_collect();
}

static void test_filter_is_changed_while_spans_live(void)
{
	struct d9_span span, other;

	create(&span, D9_SPAN_ROOT);
	d9_span_enter(&span);
	CU_ASSERT_EQUAL(d9_span_filter("off"), 0);
	CU_ASSERT_FALSE(d9_span_on(&site));
	d9_span_create(&other, &site, D9_SPAN_CURRENT, NULL, 0);
	CU_ASSERT_EQUAL(d9_span_id(&other), 0);
	d9_span_enter(&other);
	CU_ASSERT_EQUAL(d9_span_current(), d9_span_id(&span));
	d9_span_end(&other);
	d9_span_end(&span);
	CU_ASSERT_EQUAL(d9_span_filter("info"), 0);
	CU_ASSERT_TRUE(d9_span_on(&site));
	CU_ASSERT_STRING_EQUAL(story(loop_events_collect()), "<>c");
}

static void test_span_site_is_off_while_recording_is(void)
{
	static struct d9_span_site unseen = D9_SPAN_SITE(D9_SPAN_INFO, "test", "unseen");
	struct d9_span span;

	CU_ASSERT_TRUE(d9_span_on(&unseen));
	d9__gate_set(0);
	CU_ASSERT_FALSE(d9_span_on(&site));
	CU_ASSERT_FALSE(d9_span_on(&unseen));
	CU_ASSERT_EQUAL(d9_span_create(&span, &unseen, D9_SPAN_ROOT, NULL, 0), 0);
	CU_ASSERT_EQUAL(d9_span_id(&span), 0);
	d9__gate_set(D9__GATE_ALL);
	CU_ASSERT_TRUE(d9_span_on(&site));
}

static void test_span_outlives_a_descriptor_that_is_unloaded(void)
{
	struct d9_field *field = malloc(sizeof(*field));
	struct d9_span_site *gone = malloc(sizeof(*gone));
	const struct loop_events *events;
	char *name = strdup("number");
	struct d9_span span;

	*field = (struct d9_field){ name, D9_FIELD_VARINT, NULL, NULL };
	*gone = (struct d9_span_site)D9_SPAN_SITE(D9_SPAN_INFO, "plugin", "unloaded");
	gone->fields = field;
	gone->n_fields = 1;
	CU_ASSERT_EQUAL(D9_SPAN_CREATE(&span, gone, D9_SPAN_ROOT, 7), 0);
	d9_span_enter(&span);
	free(name);
	free(field);
	free(gone);
	CU_ASSERT_EQUAL(d9_span_filter("off"), 0);
	CU_ASSERT_EQUAL(d9_span_filter("info"), 0);
	CU_ASSERT_EQUAL(D9_SPAN_SET(&span, 0, 8), 0);
	d9_span_end(&span);

	events = loop_events_collect();
	CU_ASSERT_STRING_EQUAL(story(events), "<>c");
	CU_ASSERT_STRING_EQUAL(loop_nth(events, LOOP_SPAN_CLOSE, 0)->text, "unloaded");
}

/* ---- blocks ---- */

static void leave_by_return(void)
{
	D9_SPAN_HERE(D9_SPAN_INFO, "test", "block");

	if (loop)
		return;
	loop_ns++;
}

static void leave_by_goto(void)
{
	{
		D9_SPAN_HERE(D9_SPAN_INFO, "test", "block");

		if (loop)
			goto out;
		loop_ns++;
	}
out:
	loop_ns++;
}

static void leave_by_break(void)
{
	for (;;) {
		D9_SPAN_HERE(D9_SPAN_INFO, "test", "outer");
		D9_SPAN_HERE(D9_SPAN_INFO, "test", "inner");

		break;
	}
}

static void test_scope_ends_however_its_block_is_left(void)
{
	const struct loop_events *events;

	leave_by_return();
	leave_by_goto();
	leave_by_break();

	CU_ASSERT_EQUAL(d9_span_current(), 0);
	events = loop_events_collect();
	CU_ASSERT_STRING_EQUAL(story(events), "<>c<>c<<>c>c");
	CU_ASSERT_EQUAL(loop_nth(events, LOOP_SPAN_ENTER, 3)->parent,
			loop_nth(events, LOOP_SPAN_ENTER, 2)->span);
}

/* ---- threads and signals ---- */

#define THREADS 4
#define ROUNDS  100 /* fits in the ring, in whatever order threads run */

static void *share(void *arg)
{
	struct d9_span *shared = arg;

	for (int i = 0; i < ROUNDS; i++) {
		struct d9_span own;

		d9_span_enter(shared);
		create(&own, D9_SPAN_CURRENT);
		d9_span_enter(&own);
		d9_span_end(&own);
		d9_span_exit(shared);
	}
	return NULL;
}

/* Entered time of span |id|, by its events. */
static uint64_t entered_ns(const struct loop_events *events, uint64_t id)
{
	uint64_t sum = 0;

	/* Whatever the order: exits count up, enters down. */
	for (size_t i = 0; i < events->n; i++)
		if (events->items[i].span == id && events->items[i].kind == LOOP_SPAN_ENTER)
			sum -= events->items[i].ns;
		else if (events->items[i].span == id && events->items[i].kind == LOOP_SPAN_EXIT)
			sum += events->items[i].ns;
	return sum;
}

static void test_span_is_entered_by_several_threads_at_once(void)
{
	const struct loop_events *events;
	pthread_t threads[THREADS];
	struct d9_span span;
	uint64_t id;

	loop_clock_runs = true;
	create(&span, D9_SPAN_ROOT);
	id = d9_span_id(&span);
	for (int i = 0; i < THREADS; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, share, &span), 0);
	share(&span);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	loop_clock_runs = false;
	d9_span_close(&span);

	events = loop_events_collect();
	CU_ASSERT_EQUAL(loop_count(events, LOOP_SPAN_ENTER), 2 * ROUNDS * (THREADS + 1));
	CU_ASSERT_EQUAL(loop_count(events, LOOP_SPAN_MISUSE), 0);
	for (size_t i = 0; i < events->n; i++) {
		const struct loop_event *event = &events->items[i];

		if (event->kind == LOOP_SPAN_ENTER && event->span != id)
			CU_ASSERT_EQUAL(event->parent, id);
		if (event->kind == LOOP_SPAN_CLOSE && event->span == id)
			CU_ASSERT_EQUAL(event->active_ns, entered_ns(events, id));
	}
}

static struct d9_span_site switched = D9_SPAN_SITE(D9_SPAN_INFO, "test", "switched");

static void *make_spans(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		D9_SPAN_SCOPE(&switched);
		sched_yield();
	}
	return NULL;
}

static void test_filter_is_changed_while_threads_make_spans(void)
{
	const struct loop_events *events;
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, make_spans, NULL), 0);
	for (int i = 0; i < ROUNDS; i++) {
		CU_ASSERT_EQUAL(d9_span_filter(i % 2 ? "info" : "off"), 0);
		sched_yield();
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	make_spans(NULL);

	events = loop_events_collect();
	CU_ASSERT(loop_count(events, LOOP_SPAN_ENTER) >= ROUNDS);
	CU_ASSERT_EQUAL(loop_count(events, LOOP_SPAN_EXIT), loop_count(events, LOOP_SPAN_ENTER));
	CU_ASSERT_EQUAL(loop_count(events, LOOP_SPAN_CLOSE), loop_count(events, LOOP_SPAN_ENTER));
	CU_ASSERT_EQUAL(loop_count(events, LOOP_SPAN_MISUSE), 0);
}

static struct d9_span_site in_handler = D9_SPAN_SITE(D9_SPAN_INFO, "test", "handler");
static volatile sig_atomic_t handled;

static void on_signal(int signal)
{
	struct d9_span span;

	(void)signal;
	d9_span_create(&span, &in_handler, D9_SPAN_CURRENT, NULL, 0);
	d9_span_enter(&span);
	d9_span_end(&span);
	handled++;
}

static void test_span_in_a_handler_does_not_disturb_the_thread(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	const struct itimerspec soon = { { 0, 0 }, { 0, 20000 } };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	const struct loop_events *events;
	timer_t timer;
	sig_atomic_t seen = -1;
	size_t own = 0;

	CU_ASSERT_EQUAL(d9_span_site_register(&in_handler), 0);
	sigemptyset(&action.sa_mask);
	sigaddset(&action.sa_mask, SIGUSR1);
	CU_ASSERT_EQUAL_FATAL(sigaction(SIGUSR1, &action, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	handled = 0;
	for (; handled < 200; own++) {
		struct d9_span span;

		/* One at a time: where a handler takes longer than a period, nothing else would ever run. */
		if (handled != seen) {
			seen = handled;
			timer_settime(timer, 0, &soon, NULL);
		}
		errno = 77;
		create(&span, D9_SPAN_CURRENT);
		d9_span_enter(&span);
		if (d9_span_current() != d9_span_id(&span))
			CU_FAIL_FATAL("a handler's span stays current");
		d9_span_end(&span);
		CU_ASSERT_EQUAL(errno, 77);
		/* Handlers that write as fast as this reads would keep it for ever. */
		if (own % 4096 == 4095) {
			sigprocmask(SIG_BLOCK, &action.sa_mask, NULL);
			loop_events_collect();
			sigprocmask(SIG_UNBLOCK, &action.sa_mask, NULL);
		}
	}
	timer_delete(timer);
	CU_ASSERT_EQUAL(d9_span_current(), 0);

	events = loop_events_collect();
	CU_ASSERT_EQUAL(loop_count(events, LOOP_SPAN_MISUSE), 0);
}

/* ---- values ---- */

static void test_attribute_of_a_float_reads_as_it_was(void)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = {
		{ 0, "0" },	      { 1, "1" },	     { -2.5, "-2.5" },
		{ 0.1, "0.1" },	      { 1234567.25, "1234567.25" }, { 0.999999999, "1" },
		{ 1e20, "1e20" },     { -1.5e-7, "-1.5e-7" }, { 1e300 * 1e300, "inf" },
		{ 0.001, "0.001" },   { 3.000001, "3.000001" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char buf[33] = "";

		buf[d9__attribute_f64(buf, cases[i].value)] = '\0';
		CU_ASSERT_STRING_EQUAL(buf, cases[i].text);
	}
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "span tells how long it was busy and how long it took",
		  test_span_tells_how_long_it_was_busy_and_how_long_it_took },
		{ "span entered again inside itself counts once",
		  test_span_entered_again_inside_itself_counts_once },
		{ "span end leaves and closes at one moment",
		  test_span_end_leaves_and_closes_at_one_moment },
		{ "span is a child of the innermost that is entered",
		  test_span_is_a_child_of_the_innermost_that_is_entered },
		{ "span left out of order uncovers the right parent",
		  test_span_left_out_of_order_uncovers_the_right_parent },
		{ "span of an earlier callback is no parent in a later one",
		  test_span_of_an_earlier_callback_is_no_parent_in_a_later_one },
		{ "span of the program is a child of the adapter's",
		  test_span_of_the_program_is_a_child_of_the_adapters },
		{ "span behind a nested loop lies in the callback's second piece",
		  test_span_behind_a_nested_loop_lies_in_the_callbacks_second_piece },
		{ "span deeper than the limit is still recorded",
		  test_span_deeper_than_the_limit_is_still_recorded },
		{ "span that callbacks leave behind makes room for others",
		  test_span_that_callbacks_leave_behind_makes_room_for_others },
		{ "span left more often than entered is told",
		  test_span_left_more_often_than_entered_is_told },
		{ "span closed while entered is left first and told",
		  test_span_closed_while_entered_is_left_first_and_told },
		{ "span used after its close is told and does no harm",
		  test_span_used_after_its_close_is_told_and_does_no_harm },
		{ "span closed by a thread while another is inside is nobody's parent",
		  test_span_closed_by_a_thread_while_another_is_inside_is_nobodys_parent },
		{ "span entered while recording was off is no mistake",
		  test_span_entered_while_recording_was_off_is_no_mistake },
		{ "filter takes the longest target that fits",
		  test_filter_takes_the_longest_target_that_fits },
		{ "filter that is none changes nothing", test_filter_that_is_none_changes_nothing },
		{ "filter is changed while spans live", test_filter_is_changed_while_spans_live },
		{ "span site is off while recording is", test_span_site_is_off_while_recording_is },
		{ "span outlives a descriptor that is unloaded",
		  test_span_outlives_a_descriptor_that_is_unloaded },
		{ "scope ends however its block is left", test_scope_ends_however_its_block_is_left },
		{ "span is entered by several threads at once",
		  test_span_is_entered_by_several_threads_at_once },
		{ "filter is changed while threads make spans",
		  test_filter_is_changed_while_threads_make_spans },
		{ "span in a handler does not disturb the thread",
		  test_span_in_a_handler_does_not_disturb_the_thread },
		{ "attribute of a float reads as it was", test_attribute_of_a_float_reads_as_it_was },
		CU_TEST_INFO_NULL,
	};

	loop_events_start();
	loop = loop_events_add(D9_LIBRARY_OWN, &site);
	return d9_test_main("span", tests);
}
