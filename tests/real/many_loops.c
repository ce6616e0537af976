/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many loops at once, each in a thread of its own: a callback that makes its own event active again, CALLS
 * times.  All have entered their loop before the first of them leaves it.  Prints how many callbacks ran.
 *
 *	many_loops THREADS CALLS
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <event2/event.h>

struct loop {
	struct event_base *base;
	struct event *event;
	int left;
};

static pthread_barrier_t together;
static _Atomic(long) ran;
static int calls;

static void again(evutil_socket_t fd, short what, void *arg)
{
	struct loop *self = arg;

	(void)fd, (void)what;
	atomic_fetch_add_explicit(&ran, 1, memory_order_relaxed);
	if (self->left == 1)
		pthread_barrier_wait(&together);
	if (--self->left)
		event_active(self->event, EV_READ, 0);
}

static void *run(void *arg)
{
	struct loop self = { .base = event_base_new(), .left = calls };

	(void)arg;
	self.event = event_new(self.base, -1, EV_PERSIST, again, &self);
	event_active(self.event, EV_READ, 0);
	event_base_dispatch(self.base);
	event_free(self.event);
	event_base_free(self.base);
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 2 ? atoi(argv[1]) : 0;
	pthread_t *ids = calloc((size_t)(threads > 0 ? threads : 1), sizeof(*ids));
	pthread_attr_t small;

	if (threads < 1 || (calls = atoi(argv[2])) < 1 || !ids)
		return 2;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 256 << 10);
	pthread_barrier_init(&together, NULL, (unsigned)threads);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&ids[i], &small, run, NULL))
			return 2;
	for (int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	free(ids);
	printf("%ld\n", atomic_load(&ran));
	return 0;
}
