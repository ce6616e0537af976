/* SPDX-License-Identifier: Apache-2.0 */
/*
 * More events than any ring can hold: THREADS loops, each running CALLBACKS callbacks as fast as it
 * can.  Prints how many ran.
 *
 *	flood THREADS CALLBACKS
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <event2/event.h>
#include <event2/thread.h>

#include <dial9/libevent.h>

struct flooder {
	pthread_t thread;
	struct event_base *base;
	struct event *event;
	long done;
};

static long wanted;

static void again(evutil_socket_t fd, short what, void *arg)
{
	struct flooder *self = arg;

	(void)fd, (void)what;
	if (++self->done < wanted)
		event_active(self->event, EV_READ, 0);
}

static void *run(void *arg)
{
	struct flooder *self = arg;

	event_active(self->event, EV_READ, 0);
	event_base_dispatch(self->base);
	return NULL;
}

int main(int argc, char **argv)
{
	struct flooder *flooders;
	long threads, done = 0;

	if (argc != 3 || (threads = atol(argv[1])) < 1)
		return 2;
	wanted = atol(argv[2]);
	flooders = calloc((size_t)threads, sizeof(*flooders));
	evthread_use_pthreads();
	for (long i = 0; i < threads; i++) {
		flooders[i].base = event_base_new();
		d9_event_base_attach(flooders[i].base);
		flooders[i].event = event_new(flooders[i].base, -1, EV_PERSIST, again, &flooders[i]);
	}
	for (long i = 0; i < threads; i++)
		pthread_create(&flooders[i].thread, NULL, run, &flooders[i]);
	for (long i = 0; i < threads; i++) {
		pthread_join(flooders[i].thread, NULL);
		done += flooders[i].done;
		event_free(flooders[i].event);
		event_base_free(flooders[i].base);
	}
	free(flooders);
	printf("%ld\n", done);
	return 0;
}
