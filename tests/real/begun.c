/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops that run until they are killed.  Each of THREADS counts the callbacks that began in FILE,
 * which outlives the process: what is counted there had been recorded before.
 *
 *	begun THREADS FILE [WORK]
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/thread.h>

#include <dial9/libevent.h>

#define THREADS_MAX 16

struct loop {
	struct event_base *base;
	struct event *event;
	_Atomic(uint64_t) *begun;
};

static long work = 2000;

static void again(evutil_socket_t fd, short what, void *arg)
{
	struct loop *self = arg;

	(void)fd, (void)what;
	atomic_fetch_add_explicit(self->begun, 1, memory_order_release);
	for (volatile long i = 0; i < work; i++)
		;
	event_active(self->event, EV_READ, 0);
}

static void *run(void *arg)
{
	struct loop *self = arg;

	event_active(self->event, EV_READ, 0);
	event_base_dispatch(self->base);
	return NULL;
}

int main(int argc, char **argv)
{
	static struct loop loops[THREADS_MAX];
	int threads = argc > 2 ? atoi(argv[1]) : 0, fd;
	pthread_t thread;
	uint64_t *page;

	if (threads < 1 || threads > THREADS_MAX)
		return 2;
	if (argc > 3)
		work = atol(argv[3]);
	fd = open(argv[2], O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, 4096))
		return 2;
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return 2;
	evthread_use_pthreads();
	for (int i = 0; i < threads; i++) {
		loops[i].begun = (_Atomic(uint64_t) *)&page[i * 8];
		loops[i].base = event_base_new();
		if (d9_event_base_attach(loops[i].base))
			return 2;
		loops[i].event = event_new(loops[i].base, -1, EV_PERSIST, again, &loops[i]);
	}
	for (int i = 0; i < threads; i++)
		pthread_create(&thread, NULL, run, &loops[i]);
	alarm(20);
	for (;;)
		pause();
}
