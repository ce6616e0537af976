/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop that has nothing to do, in a process that computes elsewhere: in threads of its own
 *("threads"), in short ones of which there is always one ("short"), before its loop begins
 *("start").  In the innocent twin they sleep.
 *
 *	elsewhere threads|short|start [innocent]
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "loop.h"

static bool innocent;
static volatile bool over;

static __attribute__((noinline)) void compress_for(double s)
{
	struct timespec t;
	double end = -1, at;

	if (innocent) {
		usleep((useconds_t)(s * 1e6));
		return;
	}
	do {
		clock_gettime(CLOCK_MONOTONIC, &t);
		at = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
		end = end < 0 ? at + s : end;
	} while (at < end);
}

ON_TIMER(tick, arg)
{
	(void)arg;
}

static void *compress_all(void *arg)
{
	pthread_setname_np(pthread_self(), arg);
	while (!over)
		compress_for(0.01);
	return NULL;
}

static void *compress_one(void *arg)
{
	pthread_setname_np(pthread_self(), "compress-one");
	compress_for(0.03);
	return arg;
}

static void *start_short_ones(void *arg)
{
	while (!over) {
		pthread_t one;

		if (!pthread_create(&one, NULL, compress_one, NULL))
			pthread_join(one, NULL);
	}
	return arg;
}

int main(int argc, char **argv)
{
	static char names[2][16] = { "compress-1", "compress-2" };
	const char *which = argc > 1 ? argv[1] : "threads";
	loop_t *loop = loop_new();
	pthread_t threads[2];
	int n = 0;

	innocent = argc > 2;
	if (!strcmp(which, "start")) {
		compress_for(1.5);
	} else if (!strcmp(which, "short")) {
		pthread_create(&threads[n++], NULL, start_short_ones, NULL);
	} else {
		for (; n < 2; n++)
			pthread_create(&threads[n], NULL, compress_all, names[n]);
	}
	loop_every(loop, 0.1, tick, NULL);
	loop_run(loop, 3);
	over = true;
	while (n)
		pthread_join(threads[--n], NULL);
	return 0;
}
