/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop whose thread is bound to one CPU, and an indexer that inherits that and computes there.
 * The innocent one computes for a fiftieth of the time.
 *
 *	bound CPU [innocent]
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "burn.h"
#include "loop.h"

static bool innocent;
static volatile bool over;

static __attribute__((noinline)) void build_index(void)
{
	BURN(1);
	STAY;
}

static void *index_all(void *arg)
{
	pthread_setname_np(pthread_self(), "indexer");
	while (!over) {
		build_index();
		if (innocent)
			usleep(50000);
	}
	return arg;
}

ON_TIMER(on_request, arg)
{
	(void)arg;
	BURN(0.3);
}

int main(int argc, char **argv)
{
	loop_t *loop = loop_new();
	pthread_t indexer;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(argc > 1 ? (size_t)atoi(argv[1]) : 0, &one);
	innocent = argc > 2;
	if (sched_setaffinity(0, sizeof(one), &one))
		return 77;
	pthread_create(&indexer, NULL, index_all, NULL);
	loop_every(loop, 0.003, on_request, NULL);
	loop_run(loop, 5);
	over = true;
	pthread_join(indexer, NULL);
	return 0;
}
