/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inner_calls DIR HOW: a loop whose own callbacks call functions of the program, inside one
 *another, around spans and around a loop; always the same ones, so that what is recorded of them
 *can be compared.
 *
 *	end	all of them return
 *	exit	the program ends inside of one
 *	hang	one never returns; "hangs" is printed then
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <dial9/loop.h>
#include <dial9/options.h>
#include <dial9/recorder.h>
#include <dial9/span.h>

#define ROUNDS 40

static struct d9_span_site request_site = D9_SPAN_SITE(D9_SPAN_INFO, "shop", "request");

static struct d9_loop *loop;

/* Functions that the library calls; never run, but a callsite needs addresses. */
static void on_request(void)
{
	puts("request");
}

static void on_header(void)
{
	puts("header");
}

static void on_body(void)
{
	puts("body");
}

static void on_library(void)
{
	puts("library");
}

static const struct d9_callsite *site_of(void (*callback)(void))
{
	return d9_callsite((const void *)(uintptr_t)callback, (const void *)(uintptr_t)on_library,
			   0);
}

static void enter(struct d9_loop_span *span, void (*callback)(void))
{
	d9_loop_span_enter(span, site_of(callback));
}

static void poll_begin(struct d9_poll *poll, uint64_t key)
{
	*poll = (struct d9_poll) { .loop = loop,
				   .task = { .key = key,
					     .callsite = site_of(on_library),
					     .fd = -1,
					     .kind = D9_TASK_IO },
				   .reason = D9_WAKE_FD };
	d9_poll_begin(poll);
}

/* Deeper on the stack, as a loop inside a callback is. */
static __attribute__((noinline)) void run_inside(uint64_t key)
{
	struct d9_loop_run run;
	struct d9_loop_span span;
	struct d9_poll poll;

	d9_loop_enter(loop, &run);
	poll_begin(&poll, key);
	enter(&span, on_body);
	d9_loop_span_exit(&span);
	d9_poll_end(&poll);
	d9_loop_leave(&run);
}

/* A request of three functions inside one another, one of them twice, with a span of the program.
 */
static void serve(unsigned round)
{
	struct d9_loop_span request, header, body;
	struct d9_span span;
	struct d9_poll poll;

	poll_begin(&poll, 1 + round % 3);
	enter(&request, on_request);
	enter(&header, on_header);
	d9_loop_span_exit(&header);
	if (round % 4 == 0) {
		d9_span_create(&span, &request_site, D9_SPAN_CURRENT, NULL, 0);
		d9_span_enter(&span);
		enter(&body, on_body);
		d9_loop_span_exit(&body);
		d9_span_end(&span);
	}
	if (round % 5 == 0)
		run_inside(100 + round);
	enter(&header, on_header);
	d9_loop_span_exit(&header);
	d9_loop_span_exit(&request);
	d9_poll_end(&poll);
}

static void stay(const char *how)
{
	struct d9_loop_span request, body;
	struct d9_poll poll;

	poll_begin(&poll, 1);
	enter(&request, on_request);
	enter(&body, on_body);
	if (!strcmp(how, "exit"))
		exit(0);
	puts("hangs");
	fflush(stdout);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	struct d9_recorder *recorder = NULL;
	struct d9_options *options;
	struct d9_loop_run run;

	if (argc < 3 || d9_options_new(&options))
		return 1;
	d9_options_set_trace_dir(options, argv[1]);
	d9_options_set_service(options, "inner");
	d9_recorder_start(options, &recorder);
	d9_options_free(options);
	d9_loop_register(D9_LIBRARY_OWN, &loop, "own", &loop);
	d9_loop_enter(loop, &run);
	for (unsigned i = 0; i < ROUNDS; i++) {
		d9_loop_park(loop, -1);
		d9_loop_unpark(loop);
		serve(i);
	}
	if (strcmp(argv[2], "end") != 0)
		stay(argv[2]);
	d9_loop_leave(&run);
	d9_loop_unregister(loop);
	return d9_recorder_stop(recorder, 10000) != 0;
}
