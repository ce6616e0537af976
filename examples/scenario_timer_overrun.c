/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A timer of 3 ms whose callback takes 5 ms: it is always due, and the loop does little else.  The
 * innocent twin sets the timer when the work is done, and has the loop look at the clock before:
 * else the 3 ms would count from when the callback began.
 *
 *	scenario_timer_overrun [innocent]
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <event2/event.h>

#include <dial9/libevent.h>

static const struct timeval period = { .tv_usec = 3000 };
static const struct timeval rest = { .tv_usec = 20000 }; /* more than a tick of the clock that libevent looks at */
static unsigned runs;

/* Of CPU time, so that a busy machine does not make it less. */
static void compute(long us)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000 + (now.tv_nsec - begin.tv_nsec) / 1000 < us);
}

static void read_sensors(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	compute(5000);
	runs++;
}

static void read_sensors_and_rest(evutil_socket_t fd, short what, void *arg)
{
	read_sensors(fd, what, arg);
	event_base_update_cache_time(event_get_base(arg));
	event_add(arg, &rest);
}

int main(int argc, char **argv)
{
	const struct timeval second = { .tv_sec = 1 };
	int innocent = argc > 1 && !strcmp(argv[1], "innocent");
	struct event_base *base = event_base_new();
	struct event *timer;

	d9_event_base_attach(base);
	if (innocent)
		timer = event_new(base, -1, 0, read_sensors_and_rest, event_self_cbarg());
	else
		timer = event_new(base, -1, EV_PERSIST, read_sensors, NULL);
	event_add(timer, &period);
	event_base_loopexit(base, &second);
	event_base_dispatch(base);

	event_free(timer);
	event_base_free(base);
	printf("%u runs\n", runs);
	return 0;
}
