/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs of the tests of samples share: a function that uses CPU time, and a wait for
 * the sampler. Include it first.
 */
#ifndef CPU_WORK_H
#define CPU_WORK_H

#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile double sink;

static double used(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

__attribute__((noinline)) static void compute(double seconds)
{
	double end = used() + seconds;

	while (used() < end)
		for (int i = 0; i < 20000; i++)
			sink = sink * 1.0000001 + i;
}

/*
 * Return once this thread has a CPU timer, or after three seconds: the flush thread starts it, and a
 * busy machine lets that one wait while a thread that computes would go on unseen.  In a program without a loop that thread
 * begins behind 0.1 s of CPU time.
 */
static inline void await_sampling(void)
{
	char line[128], wanted[64];

	snprintf(wanted, sizeof(wanted), "/tid.%d\n", (int)gettid());
	for (int tries = 0; tries < 3000; tries++) {
		FILE *timers = fopen("/proc/self/timers", "r");
		int found = 0;

		while (timers && !found && fgets(line, sizeof(line), timers))
			found = !strncmp(line, "notify:", 7) && strstr(line, wanted);
		if (timers)
			fclose(timers);
		if (found)
			return;
		for (double end = used() + (tries < 150 ? 0.001 : 0); used() < end;)
			continue;
		usleep(1000);
	}
}

#endif
