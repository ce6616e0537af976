/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop of one's own, recorded: poll(2) with a descriptor and a timer.  What dial9 needs to be
 * told is marked with "d9".
 *
 *	own_loop DIR      records into DIR; read it with `dial9 report DIR`
 *	own_loop          records into memory
 */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <dial9/loop.h>
#include <dial9/options.h>
#include <dial9/recorder.h>

#define ROUNDS 50
#define MS_NS  UINT64_C(1000000)

struct handler {
	void (*callback)(struct handler *handler);
	const struct d9_callsite *callsite;
	int fd;          /* -1: a timer */
	uint64_t due_ns; /* of a timer */
	unsigned calls;
};

static struct handler reader, ticker;
static struct d9_loop *loop;
static int channel[2];

static void on_readable(struct handler *handler)
{
	char bytes[64];

	if (read(handler->fd, bytes, sizeof(bytes)) > 0)
		handler->calls++;
}

static void on_tick(struct handler *handler)
{
	handler->calls += write(channel[1], "x", 1) == 1;
	handler->due_ns += MS_NS;
}

/* d9: callback and place of registration name the task. */
static void __attribute__((noinline)) set_handler(struct handler *handler,
						  void (*callback)(struct handler *), int fd)
{
	*handler = (struct handler){ .callback = callback, .fd = fd };
	handler->callsite = d9_callsite((const void *)(uintptr_t)callback,
					__builtin_return_address(0), 0);
}

/* d9: one poll around each callback. */
static void call(struct handler *handler)
{
	struct d9_poll poll = {
		.loop = loop,
		.task = { .key = (uintptr_t)handler, .callsite = handler->callsite,
			  .fd = handler->fd, .kind = D9_TASK_IO },
		.reason = D9_WAKE_FD,
	};

	if (handler->fd < 0) {
		poll.task.kind = D9_TASK_TIMER;
		poll.reason = D9_WAKE_TIMER;
		poll.ready_ns = handler->due_ns;
	}
	d9_poll_begin(&poll);
	handler->callback(handler);
	d9_poll_end(&poll);
}

static void run_once(void)
{
	struct pollfd ready = { .fd = reader.fd, .events = POLLIN };
	uint64_t now_ns = d9_loop_now(), due_ns = ticker.due_ns;
	int timeout_ms = due_ns > now_ns ? (int)((due_ns - now_ns + MS_NS - 1) / MS_NS) : 0;

	d9_loop_park(loop, timeout_ms * (int64_t)MS_NS); /* d9: it is about to wait ... */
	if (poll(&ready, 1, timeout_ms) < 0)
		ready.revents = 0;
	d9_loop_unpark(loop); /* ... and has waited */
	if (ready.revents & POLLIN)
		call(&reader);
	if (d9_loop_now() >= due_ns)
		call(&ticker);
}

int main(int argc, char **argv)
{
	struct d9_recorder *recorder = NULL;
	struct d9_options *options;
	struct d9_loop_run run;

	if (pipe(channel) || d9_options_new(&options))
		return 1;
	d9_options_set_writer(options, argc > 1 ? D9_WRITER_ROTATING : D9_WRITER_MEMORY);
	if (argc > 1)
		d9_options_set_trace_dir(options, argv[1]);
	d9_recorder_start(options, &recorder);
	d9_options_free(options);
	d9_loop_register(D9_LIBRARY_OWN, &loop, "own", &loop); /* d9: once per loop */

	set_handler(&reader, on_readable, channel[0]);
	set_handler(&ticker, on_tick, -1);
	ticker.due_ns = d9_loop_now() + MS_NS;
	d9_loop_enter(loop, &run); /* d9: this thread runs the loop from here ... */
	while (ticker.calls < ROUNDS)
		run_once();
	d9_loop_leave(&run); /* ... to here */

	printf("%u ticks, %u reads\n", ticker.calls, reader.calls);
	d9_loop_unregister(loop);
	d9_recorder_stop(recorder, 1000);
	return ticker.calls == ROUNDS ? 0 : 1;
}
