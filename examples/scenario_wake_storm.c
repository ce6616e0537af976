/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread hands results to a loop and wakes it for each.  The innocent twin hands over as many, and
 * wakes the loop for five hundred at a time.
 *
 *	scenario_wake_storm [innocent]
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/thread.h>

#include <dial9/libevent.h>

#define BATCH 500

static struct event_base *base;
static struct event *event;
static atomic_uint handed;
static atomic_int stopped;
static unsigned taken, calls;

static void take_results(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	taken += atomic_exchange(&handed, 0);
	calls++;
}

static void *produce(void *arg)
{
	const int *innocent = arg;

	while (!atomic_load(&stopped)) {
		usleep(20);
		if (atomic_fetch_add(&handed, 1) % BATCH == BATCH - 1 || !*innocent)
			event_active(event, EV_READ, 0);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const struct timeval second = { .tv_sec = 1 };
	int innocent = argc > 1 && !strcmp(argv[1], "innocent");
	pthread_t producer;

	evthread_use_pthreads();
	base = event_base_new();
	d9_event_base_attach(base);
	event = event_new(base, -1, EV_READ | EV_PERSIST, take_results, NULL);
	event_add(event, NULL);
	event_base_loopexit(base, &second);
	pthread_create(&producer, NULL, produce, &innocent);
	event_base_dispatch(base);

	atomic_store(&stopped, 1);
	pthread_join(producer, NULL);
	event_free(event);
	event_base_free(base);
	printf("%u results in %u calls\n", taken, calls);
	return 0;
}
