/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records 1000 polls in counted_calls(), 1000 of those that adapters tell themselves in
 *counted_told(), 100 waits that find 10 or 20 descriptors in counted_waits(), 1000 tasks of one
 *poll in counted_tasks(), or 1000 stays in a span in counted_spans(), for check_instructions.sh to
 *count:
 *
 *	counted_calls poll|wake|off|told|ready|once|brief|span|block|filtered|found10|found20
 */
#include "config.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <dial9/loop.h>
#include <dial9/options.h>
#include <dial9/recorder.h>
#include <dial9/span.h>

#include "loop/adapter.h"

#define CALLS 1000

static struct d9_loop *loop;
static const struct d9_callsite *callsite;

/* The number of the line is one of their fields: it takes one byte as long as they stand above line 128. */
static struct d9_span_site wanted = D9_SPAN_SITE(D9_SPAN_INFO, "counted", "wanted");
static struct d9_span_site unwanted = D9_SPAN_SITE(D9_SPAN_TRACE, "counted", "unwanted");

/* As an adapter does it: every field is stored once. */
static inline void call(int woken)
{
	struct d9_poll poll;

	if (woken)
		d9_wake(loop, 1000, D9_WAKE_ACTIVE, NULL);
	poll.loop = loop;
	poll.task.key = 1000;
	poll.task.identity = 7;
	poll.task.callsite = callsite;
	poll.task.name = NULL;
	poll.task.fd = -1;
	poll.task.kind = D9_TASK_ACTIVE;
	poll.task.flags = 0;
	poll.depth = 1;
	poll.flags = D9_POLL_BATCHED;
	poll.ready_ns = 0;
	poll.reason = D9_WAKE_UNKNOWN;
	d9_poll_begin(&poll);
	d9_poll_end(&poll);
}

void counted_calls(int n, int woken);

__attribute__((noinline)) void counted_calls(int n, int woken)
{
	while (n--)
		call(woken);
}

/* Of a descriptor in GLib, which says why it runs, or of an idle source, which stays ready. */
static inline void call_told(int ready)
{
	struct d9_poll poll;

	poll.loop = loop;
	poll.task.key = 1000;
	poll.task.identity = 7;
	poll.task.callsite = callsite;
	poll.depth = 1;
	poll.flags = D9_POLL_BATCHED;
	poll.ready_ns = 0;
	poll.reason = ready ? D9_WAKE_UNKNOWN : D9_WAKE_FD;
	if (ready) {
		d9__poll_begin_known(&poll);
		d9__poll_end_ready(&poll);
	} else {
		d9__poll_begin_woken(&poll);
		d9_poll_end(&poll);
	}
}

void counted_told(int n, int ready);

__attribute__((noinline)) void counted_told(int n, int ready)
{
	while (n--)
		call_told(ready);
}

/* |n| descriptors that a wait finds, and their callbacks. */
static inline void find(uint64_t n)
{
	d9_loop_park(loop, 1000000);
	for (uint64_t i = 0; i < n; i++)
		d9_wake(loop, 1000 + i, D9_WAKE_FD, NULL);
	d9_loop_unpark(loop);
	for (uint64_t i = 0; i < n; i++) {
		struct d9_poll poll;

		poll.loop = loop;
		poll.task.key = 1000 + i;
		poll.task.identity = 7;
		poll.task.callsite = callsite;
		poll.task.name = NULL;
		poll.task.fd = -1;
		poll.task.kind = D9_TASK_IO;
		poll.task.flags = 0;
		poll.depth = 1;
		poll.flags = D9_POLL_BATCHED;
		poll.ready_ns = 0;
		poll.reason = D9_WAKE_UNKNOWN;
		d9_poll_begin(&poll);
		d9_poll_end(&poll);
	}
}

void counted_waits(int n, uint64_t each);

__attribute__((noinline)) void counted_waits(int n, uint64_t each)
{
	while (n--)
		find(each);
}

static void count_waits(uint64_t each)
{
	for (int i = 0; i < 20; i++)
		find(each);
	counted_waits(CALLS / 10, each);
}

static void count_told(int ready)
{
	for (int i = 0; i < 20; i++)
		call_told(ready);
	counted_told(CALLS, ready);
}

/*
 * Like event_base_once(), of which an adapter knows that it runs once, or like event_new(), event_active()
 * and event_free(): woken, called and gone.
 */
static inline void call_task(int once)
{
	struct d9_poll poll;

	d9_wake(loop, 2000, D9_WAKE_ACTIVE, NULL);
	poll.loop = loop;
	poll.task.key = 2000;
	poll.task.identity = 7;
	poll.task.callsite = callsite;
	poll.task.name = NULL;
	poll.task.fd = -1;
	poll.task.kind = D9_TASK_ONCE;
	poll.task.flags = once ? D9_TASK_RUNS_ONCE : 0;
	poll.depth = 1;
	poll.flags = D9_POLL_BATCHED;
	poll.ready_ns = 0;
	poll.reason = D9_WAKE_UNKNOWN;
	if (once) {
		d9__poll_begin_once(&poll);
		d9__poll_end_once(&poll);
	} else {
		d9_poll_begin(&poll);
		d9_poll_end(&poll);
		d9_task_end(D9_LIBRARY_OWN, 2000);
	}
}

void counted_tasks(int n, int once);

__attribute__((noinline)) void counted_tasks(int n, int once)
{
	while (n--)
		call_task(once);
}

static void count_tasks(int once)
{
	for (int i = 0; i < 20; i++)
		call_task(once);
	counted_tasks(CALLS, once);
}

static struct d9_span span;

static inline void stay(void)
{
	d9_span_enter(&span);
	d9_span_exit(&span);
}

static inline void block(struct d9_span_site *site)
{
	D9_SPAN_SCOPE(site);
}

void counted_spans(int n, struct d9_span_site *site);

__attribute__((noinline)) void counted_spans(int n, struct d9_span_site *site)
{
	while (n--) {
		if (site)
			block(site);
		else
			stay();
	}
}

static int count_spans(const char *what)
{
	struct d9_span_site *site = !strcmp(what, "block") ? &wanted :
				    !strcmp(what, "filtered") ? &unwanted : NULL;

	if (d9_span_create(&span, &wanted, D9_SPAN_ROOT, NULL, 0))
		return 1;
	for (int i = 0; i < 20; i++) {
		stay();
		block(&wanted);
		block(&unwanted);
	}
	counted_spans(CALLS, site);
	return 0;
}

static int start(void)
{
	struct d9_options *options;
	int err;

	if (d9_options_new(&options))
		return 1;
	d9_options_set_writer(options, D9_WRITER_NULL);
	err = d9_recorder_start(options, NULL);
	d9_options_free(options);
	if (err || d9_loop_register(D9_LIBRARY_OWN, &loop, "counted", &loop))
		return 1;
	callsite = d9_callsite((const void *)(uintptr_t)call, (const void *)(uintptr_t)start, 0);
	return 0;
}

int main(int argc, char **argv)
{
	const struct timespec settle = { 0, 500000000 };
	int woken = argc > 1 && !strcmp(argv[1], "wake");

	if (start()) {
		fputs("cannot start recording\n", stderr);
		return 1;
	}
	/* The clock changes over to ticks when it is calibrated. */
	nanosleep(&settle, NULL);
	if (argc > 1 && strstr("span block filtered", argv[1]))
		return count_spans(argv[1]);
	for (int i = 0; i < 20; i++)
		call(woken);
	if (argc > 1 && strstr("told ready", argv[1])) {
		count_told(!strcmp(argv[1], "ready"));
		return 0;
	}
	if (argc > 1 && !strncmp("found", argv[1], 5)) {
		count_waits(strcmp(argv[1], "found20") ? 10 : 20);
		return 0;
	}
	if (argc > 1 && strstr("once brief", argv[1])) {
		count_tasks(!strcmp(argv[1], "once"));
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "off"))
		d9_disable();
	counted_calls(CALLS, woken);
	return 0;
}
