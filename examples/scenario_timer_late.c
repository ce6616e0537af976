/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job of ten stages, 4 ms each, that hand over to one another with event_active(): no stage is
 * long, but the loop looks at its timers only when all are done, and a timer of 20 ms is late.  The
 * innocent twin hands over by a timer of its own, so that others that are due have their turn.
 *
 *	scenario_timer_late [innocent]
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <event2/event.h>

#include <dial9/libevent.h>

#define STAGES 10

static const struct timeval at_once = { 0, 0 };
static struct event *stages[STAGES];
static int innocent;
static unsigned jobs, beats;

/* Of CPU time, so that a busy machine does not make it less. */
static void compute(long us)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000 + (now.tv_nsec - begin.tv_nsec) / 1000 < us);
}

static void run_stage(evutil_socket_t fd, short what, void *arg)
{
	struct event **next = (struct event **)arg + 1;

	(void)fd, (void)what;
	compute(4000);
	if (next == stages + STAGES)
		jobs++;
	else if (innocent)
		event_add(*next, &at_once);
	else
		event_active(*next, 0, 0);
}

static void begin_job(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	event_active(stages[0], 0, 0);
}

static void beat(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	beats++;
}

int main(int argc, char **argv)
{
	const struct timeval often = { .tv_usec = 20000 }, now_and_then = { .tv_usec = 250000 };
	const struct timeval second = { .tv_sec = 1 };
	struct event_base *base = event_base_new();
	struct event *heart, *timer;

	innocent = argc > 1 && !strcmp(argv[1], "innocent");
	d9_event_base_attach(base);
	for (int i = 0; i < STAGES; i++)
		stages[i] = event_new(base, -1, 0, run_stage, &stages[i]);
	heart = event_new(base, -1, EV_PERSIST, beat, NULL);
	timer = event_new(base, -1, EV_PERSIST, begin_job, NULL);
	event_add(heart, &often);
	event_add(timer, &now_and_then);
	event_base_loopexit(base, &second);
	event_base_dispatch(base);

	for (int i = 0; i < STAGES; i++)
		event_free(stages[i]);
	event_free(heart);
	event_free(timer);
	event_base_free(base);
	printf("%u jobs, %u beats\n", jobs, beats);
	return 0;
}
