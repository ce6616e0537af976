/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tell_wakes DIR HOW [ROUNDS]: rounds of a loop in which tasks become ready in every way that a
 * poll can tell, 3000 of them through many chunks of the ring.
 *
 *	end	that is all
 *	hang	then a callback never returns; "hangs" is printed then
 *	run	then rounds without end, in which one task waits for 5 ms
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <dial9/loop.h>
#include <dial9/options.h>
#include <dial9/recorder.h>

#define REMOTE_WAKES 5

enum { FIRST = 1, SECOND, LATE, ACTIVE, SAYS, STAYS, INNER, TIMER, REMOTE };

static struct d9_loop *loop;
static pthread_barrier_t barrier;

static void on_event(void)
{
	puts("event");
}

static void begin(struct d9_poll *poll, uint64_t key, unsigned reason)
{
	*poll = (struct d9_poll) {
		.loop = loop,
		.task = { .key = key,
			  .callsite = d9_callsite((const void *)(uintptr_t)on_event,
						  (const void *)(uintptr_t)on_event, 0),
			  .fd = -1,
			  .kind = D9_TASK_IO },
		.flags = D9_POLL_BATCHED,
		.reason = (uint16_t)reason,
	};
	d9_poll_begin(poll);
}

static void call(uint64_t key)
{
	struct d9_poll poll;

	begin(&poll, key, D9_WAKE_UNKNOWN);
	d9_poll_end(&poll);
}

static void wait_for(int64_t timeout_ns, uint64_t first, uint64_t last)
{
	d9_loop_park(loop, timeout_ns);
	for (uint64_t key = first; key <= last; key++)
		d9_wake(loop, key, D9_WAKE_FD, NULL);
	d9_loop_unpark(loop);
}

/* Deeper on the stack, as a loop inside a callback is. */
static __attribute__((noinline)) void run_inside(void)
{
	struct d9_loop_run run;

	d9_loop_enter(loop, &run);
	wait_for(1000000, INNER, INNER);
	call(INNER);
	d9_loop_leave(&run);
}

static void work(unsigned round)
{
	struct d9_poll poll;

	/* A wait without timeout ends without an event. */
	wait_for(round % 7 == 6 ? 0 : 1000000, FIRST, round % 3 ? SECOND : LATE);
	begin(&poll, FIRST, D9_WAKE_UNKNOWN);
	d9_wake(loop, ACTIVE, D9_WAKE_ACTIVE, NULL);
	if (round % 5 == 0)
		run_inside();
	d9_wake(loop, STAYS, D9_WAKE_DEFERRED, NULL);
	d9_poll_end(&poll);
	call(SECOND);
	/* Of an earlier wait, as where it has a lower priority. */
	if (round % 3 == 2)
		call(LATE);
	if (round % 11 == 0)
		d9_wake(loop, ACTIVE, D9_WAKE_ACTIVE, NULL);
	begin(&poll, SAYS, D9_WAKE_FD);
	d9_poll_end(&poll);
	call(ACTIVE);
	call(STAYS);
	begin(&poll, TIMER, D9_WAKE_TIMER);
	d9_poll_end(&poll);
	call(REMOTE);
}

static void *wake_now_and_then(void *arg)
{
	(void)arg;
	for (int i = 0; i < REMOTE_WAKES; i++) {
		pthread_barrier_wait(&barrier);
		d9_wake(loop, REMOTE, D9_WAKE_CROSS_THREAD, NULL);
	}
	return NULL;
}

static void let_one_wait(void)
{
	const struct timespec five_ms = { 0, 5000000 };
	struct d9_poll poll;

	for (unsigned round = 0;; round++) {
		wait_for(1000000, FIRST, SECOND);
		begin(&poll, FIRST, D9_WAKE_UNKNOWN);
		nanosleep(&five_ms, NULL);
		d9_poll_end(&poll);
		call(SECOND);
	}
}

int main(int argc, char **argv)
{
	struct d9_recorder *recorder = NULL;
	struct d9_options *options;
	struct d9_loop_run run;
	struct d9_poll poll;
	pthread_t other;
	unsigned rounds;

	if (argc < 3 || d9_options_new(&options))
		return 1;
	rounds = argc > 3 ? (unsigned)atoi(argv[3]) : 3000;
	alarm(300); /* longer than a test takes */
	d9_options_set_trace_dir(options, argv[1]);
	d9_options_set_service(options, "told");
	d9_recorder_start(options, &recorder);
	d9_options_free(options);
	d9_loop_register(D9_LIBRARY_OWN, &loop, "own", &loop);
	pthread_barrier_init(&barrier, NULL, 2);
	if (pthread_create(&other, NULL, wake_now_and_then, NULL))
		return 1;
	d9_loop_enter(loop, &run);
	for (unsigned i = 0; i < rounds; i++) {
		if (i % (rounds / REMOTE_WAKES) == 0 && i / (rounds / REMOTE_WAKES) < REMOTE_WAKES)
			pthread_barrier_wait(&barrier);
		work(i);
	}
	pthread_join(other, NULL);
	if (!strcmp(argv[2], "run"))
		let_one_wait();
	if (strcmp(argv[2], "end") != 0) {
		wait_for(1000000, FIRST, SECOND);
		begin(&poll, FIRST, D9_WAKE_UNKNOWN);
		puts("hangs");
		fflush(stdout);
		for (;;)
			pause();
	}
	d9_loop_leave(&run);
	d9_loop_unregister(loop);
	return d9_recorder_stop(recorder, 10000) != 0;
}
