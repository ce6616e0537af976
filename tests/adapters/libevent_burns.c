/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libevent_burns [signal]: a base that waits for a second; with "signal" a handler computes for 3 s
 * of CPU time in the middle of that wait.  Prints 1 if it had a CPU for nearly all of that time.
 */

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include <event2/event.h>

#define BURN_S 3.0

static double took_s = 2 * BURN_S;

static double now_s(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void burn(int number)
{
	double began = now_s(CLOCK_MONOTONIC), used = now_s(CLOCK_THREAD_CPUTIME_ID);

	(void)number;
	while (now_s(CLOCK_THREAD_CPUTIME_ID) - used < BURN_S)
		;
	took_s = now_s(CLOCK_MONOTONIC) - began;
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
}

int main(int argc, char **argv)
{
	const struct itimerval soon = { .it_value = { 0, 300000 } };
	const struct timeval second = { 1, 0 };
	struct event_base *base = event_base_new();
	struct event *timer = event_new(base, -1, 0, on_timer, NULL);

	event_add(timer, &second);
	if (argc > 1 && !strcmp(argv[1], "signal")) {
		signal(SIGALRM, burn);
		setitimer(ITIMER_REAL, &soon, NULL);
	}
	event_base_dispatch(base);
	event_free(timer);
	event_base_free(base);
	printf("%d\n", took_s < 1.2 * BURN_S);
	return 0;
}
