/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two loops that hand a request to each other sixty times until it is done, a piece of it each
 * time.  In the innocent twin each does its half at once.
 *
 *	hops [innocent]
 */
#include <pthread.h>
#include <unistd.h>

#include "loop.h"

static unsigned hops = 60, left;
static loop_t *loops[2];

static void hand_over(int to);

/* A piece of the request, and the rest is the other's. */
static void do_piece(int here)
{
	for (volatile unsigned i = 0; i < 1000; i++)
		;
	if (__atomic_sub_fetch(&left, 1, __ATOMIC_RELAXED))
		hand_over(!here);
}

#if defined(VERDICT_EV)
static ev_async wakes[2];

static void take_piece(loop_t *loop, ev_async *w, int r)
{
	(void)loop, (void)r;
	do_piece(w == &wakes[1]);
}

static void hand_over(int to)
{
	ev_async_send(loops[to], &wakes[to]);
}

static void prepare(void)
{
	for (int i = 0; i < 2; i++) {
		ev_async_init(&wakes[i], take_piece);
		ev_async_start(loops[i], &wakes[i]);
	}
}
#elif defined(VERDICT_GLIB)
static gboolean take_piece(gpointer here)
{
	do_piece(GPOINTER_TO_INT(here));
	return FALSE;
}

static void hand_over(int to)
{
	g_main_context_invoke_full(loops[to], 0, take_piece, GINT_TO_POINTER(to), NULL);
}

static void prepare(void)
{
}
#else
#include <event2/thread.h>

static struct event *wakes[2];

static void take_piece(evutil_socket_t fd, short what, void *here)
{
	(void)fd, (void)what;
	do_piece(here == &wakes[1]);
}

static void hand_over(int to)
{
	event_active(wakes[to], EV_READ, 0);
}

static void prepare(void)
{
	for (int i = 0; i < 2; i++)
		wakes[i] = event_new(loops[i], -1, EV_PERSIST, take_piece, &wakes[i]);
}
#endif

/* Fifty requests a second, none before the one before is done. */
ON_TIMER(on_request, arg)
{
	(void)arg;
	if (__atomic_load_n(&left, __ATOMIC_RELAXED))
		return;
	left = hops;
	hand_over(1);
}

ON_TIMER(keep, arg)
{
	(void)arg;
}

static void *second(void *arg)
{
	loop_every(loops[1], 1, keep, NULL);
	loop_run(loops[1], 2);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	(void)argv;
	if (argc > 1)
		hops = 2;
#if !defined(VERDICT_EV) && !defined(VERDICT_GLIB)
	evthread_use_pthreads();
#endif
	loops[0] = loop_new();
	loops[1] = loop_new();
	prepare();
	pthread_create(&thread, NULL, second, NULL);
	loop_every(loops[0], 0.02, on_request, NULL);
	loop_run(loops[0], 2);
	pthread_join(thread, NULL);
	return 0;
}
