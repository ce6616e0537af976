/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that does its statistics in a signal handler, ten times a second, while its loop sleeps.  The
 * innocent twin lets the loop run them.
 *
 *	scenario_signal_handler [innocent]
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include <event2/event.h>

#include <dial9/libevent.h>

static volatile sig_atomic_t sums;
static int work_ms = 30;

static long cpu_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void sum_up(int number)
{
	long begin = cpu_ms();

	(void)number;
	while (cpu_ms() - begin < work_ms)
		;
	sums++;
}

static void on_signal(evutil_socket_t number, short what, void *arg)
{
	(void)what, (void)arg;
	sum_up(number);
}

static void look(evutil_socket_t fd, short what, void *base)
{
	(void)fd, (void)what;
	if (sums >= 10)
		event_base_loopbreak(base);
}

int main(int argc, char **argv)
{
	const struct itimerval every = { .it_interval.tv_usec = 100000, .it_value.tv_usec = 100000 };
	const struct timeval interval = { .tv_usec = 250000 };
	int innocent = argc > 1 && !strcmp(argv[1], "innocent");
	struct event_base *base = event_base_new();
	struct event *timer, *alarm;

	d9_event_base_attach(base);
	timer = event_new(base, -1, EV_PERSIST, look, base);
	alarm = event_new(base, SIGALRM, EV_SIGNAL | EV_PERSIST, on_signal, NULL);
	event_add(timer, &interval);
	if (innocent) {
		work_ms = 1;
		event_add(alarm, NULL);
	} else {
		signal(SIGALRM, sum_up);
	}
	setitimer(ITIMER_REAL, &every, NULL);
	event_base_dispatch(base);

	setitimer(ITIMER_REAL, &(struct itimerval) { 0 }, NULL);
	event_free(timer);
	event_free(alarm);
	event_base_free(base);
	printf("%d sums\n", (int)sums);
	return 0;
}
