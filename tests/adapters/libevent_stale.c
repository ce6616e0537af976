/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libevent_stale [exact]: a callback that works for a time and then sets a timer, by a clock of before; with
 * "exact" the base has precise timers.  Prints how many were set so.
 */

#include <stdio.h>
#include <string.h>
#include <time.h>

#include <event2/event.h>

#define TIMERS 40

static unsigned set;
static struct event *timer, *work;

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec * 1e-6;
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	if (set < TIMERS)
		event_active(work, EV_TIMEOUT, 1);
}

static void on_work(evutil_socket_t fd, short what, void *arg)
{
	const struct timeval soon = { 0, 1000 }, at_once = { 0, 100 };
	double began = now_ms();

	(void)fd;
	(void)what;
	(void)arg;
	/* Right at its beginning the clock is fresh; from 5 ms on it is not. */
	event_add(timer, &at_once);
	while (now_ms() - began < 5)
		;
	set++;
	event_add(timer, &soon);
}

int main(int argc, char **argv)
{
	struct event_config *config = event_config_new();
	struct event_base *base;

	if (argc > 1 && !strcmp(argv[1], "exact"))
		event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
	base = event_base_new_with_config(config);
	timer = event_new(base, -1, 0, on_timer, NULL);
	work = event_new(base, -1, 0, on_work, NULL);
	event_active(work, EV_TIMEOUT, 1);
	event_base_dispatch(base);
	event_free(timer);
	event_free(work);
	event_base_free(base);
	event_config_free(config);
	printf("%u\n", set);
	return 0;
}
