/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that are short and many: two dozen handshakes a second, each of them some milliseconds of
 *one function.  All from one callback ("one"), from three ("three"), on two loops ("loops").  The
 *innocent twin makes one in four seconds.
 *
 *	sums one|three|loops [innocent]
 */
#include <pthread.h>
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
	} else {
		loop_every(loop, every, on_hello, NULL);
	}
	if (!strcmp(which, "loops"))
		pthread_create(&thread, NULL, serve, NULL);
	loop_run(loop, 4);
	if (!strcmp(which, "loops"))
		pthread_join(thread, NULL);
	return 0;
}
