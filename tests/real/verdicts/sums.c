/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that are short and many: two dozen handshakes a second, each of them some milliseconds of
 * one function.  All from one callback ("one"), from three ("three"), on two loops ("loops").  The
 * innocent twin makes one in four seconds.  Or each call spins for a lock that a thread has while
 *it writes ("lock"), the innocent twin's for nothing.
 *
 *	sums one|three|loops|lock [innocent]
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "loop.h"

#define HANDSHAKES 24.0 /* a second */

static double every = 1 / HANDSHAKES;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* As long as the private key of 4,096 bits takes. */
static __attribute__((noinline)) unsigned sign_with_key(unsigned seed)
{
	double end = now() + 0.006;

	while (now() < end)
		for (unsigned i = 0; i < 1000; i++)
			seed = seed * 1103515245 + 12345;
	return seed;
}

static volatile unsigned result;

ON_TIMER(on_hello, arg)
{
	(void)arg;
	result = sign_with_key(result) + 1;
}

ON_TIMER(on_renewal, arg)
{
	(void)arg;
	result = sign_with_key(result) + 2;
}

ON_TIMER(on_resumption, arg)
{
	(void)arg;
	result = sign_with_key(result) + 3;
}

static pthread_spinlock_t statistics;
static volatile bool over;

/* Has the lock for seven of twelve milliseconds, or not at all. */
static void *write_statistics(void *innocent)
{
	struct timespec has = { 0, innocent ? 0 : 7000000 }, rests = { 0, 5000000 };

	while (!over) {
		pthread_spin_lock(&statistics);
		if (has.tv_nsec)
			nanosleep(&has, NULL);
		pthread_spin_unlock(&statistics);
		nanosleep(&rests, NULL);
	}
	return NULL;
}

static __attribute__((noinline)) void count_request(void)
{
	pthread_spin_lock(&statistics);
	result++;
	pthread_spin_unlock(&statistics);
}

ON_TIMER(on_request, arg)
{
	(void)arg;
	count_request();
}

static void *serve(void *arg)
{
	loop_t *loop = loop_new();

	(void)arg;
	loop_every(loop, every, on_hello, NULL);
	loop_run(loop, 4);
	return NULL;
}

int main(int argc, char **argv)
{
	const char *which = argc > 1 ? argv[1] : "one";
	loop_t *loop = loop_new();
	pthread_t thread;

	if (argc > 2)
		every = 3;
	if (!strcmp(which, "three")) {
		loop_every(loop, 3 * every, on_hello, NULL);
		loop_every(loop, 3.1 * every, on_renewal, NULL);
		loop_every(loop, 3.3 * every, on_resumption, NULL);
	} else if (!strcmp(which, "lock")) {
		pthread_spin_init(&statistics, PTHREAD_PROCESS_PRIVATE);
		pthread_create(&thread, NULL, write_statistics, argc > 2 ? argv : NULL);
		loop_every(loop, 0.009, on_request, NULL);
	} else {
		loop_every(loop, every, on_hello, NULL);
	}
	if (!strcmp(which, "loops"))
		pthread_create(&thread, NULL, serve, NULL);
	loop_run(loop, 4);
	over = true;
	if (!strcmp(which, "loops") || !strcmp(which, "lock"))
		pthread_join(thread, NULL);
	return 0;
}
