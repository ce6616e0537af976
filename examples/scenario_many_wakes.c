/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop that has nearly nothing to do and is woken for that a thousand times a second: by twenty timers of their
 * own periods ("timers"), by a signal for each piece of work ("signals"), by a byte in a pipe for each
 * ("pipe").  The innocent twin has one timer for all, and is told of fifty pieces at once.
 *
 *	scenario_many_wakes timers|signals|pipe [innocent]
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include <dial9/libevent.h>

#define TIMERS 20

static int innocent, ends[2];
static atomic_int stopped;
static unsigned woken;

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	woken++;
}

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	woken++;
}

static void on_byte(evutil_socket_t fd, short what, void *arg)
{
	char bytes[64];

	(void)what, (void)arg;
	if (read(fd, bytes, innocent ? sizeof(bytes) : 1) > 0)
		woken++;
}

/* Something to do each millisecond; or told of fifty at once. */
static void *work(void *by_signal)
{
	const struct timespec pause = { .tv_nsec = innocent ? 50000000 : 700000 };

	while (!atomic_load(&stopped)) {
		nanosleep(&pause, NULL);
		if (by_signal)
			kill(getpid(), SIGUSR1);
		else if (write(ends[1], "x", 1) != 1)
			break;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const struct timeval second = { .tv_sec = 1 };
	int timers = argc > 1 && !strcmp(argv[1], "timers"), signals = argc > 1 && !strcmp(argv[1], "signals");
	struct event *events[TIMERS] = { NULL }, *event = NULL;
	struct event_base *base = event_base_new();
	pthread_t worker;

	innocent = argc > 2 && !strcmp(argv[2], "innocent");
	d9_event_base_attach(base);
	for (int i = 0; timers && i < (innocent ? 1 : TIMERS); i++) {
		const struct timeval period = { .tv_usec = innocent ? 50000 : 19000 + 100 * i };

		events[i] = event_new(base, -1, EV_PERSIST, on_timer, NULL);
		event_add(events[i], &period);
	}
	if (!timers && pipe(ends))
		return 1;
	if (!timers) {
		event = signals ? evsignal_new(base, SIGUSR1, on_signal, NULL)
				: event_new(base, ends[0], EV_READ | EV_PERSIST, on_byte, NULL);
		event_add(event, NULL);
		pthread_create(&worker, NULL, work, signals ? base : NULL);
	}
	event_base_loopexit(base, &second);
	event_base_dispatch(base);

	atomic_store(&stopped, 1);
	if (!timers)
		pthread_join(worker, NULL);
	for (int i = 0; i < TIMERS; i++)
		if (events[i])
			event_free(events[i]);
	if (event)
		event_free(event);
	event_base_free(base);
	printf("woken for %u calls\n", woken);
	return 0;
}
