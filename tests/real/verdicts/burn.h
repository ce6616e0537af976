/* SPDX-License-Identifier: Apache-2.0 */
/* Work in the very function that says so, without one for it that would be found there instead. */

#pragma once

#include <time.h>

#define BURN_NOW_MS(t)                                                                             \
	(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &(t)),                                             \
	 1e3 * (double)(t).tv_sec + 1e-6 * (double)(t).tv_nsec)

/* |ms| of CPU time, however busy the machine is; the clock is looked at now and then. */
#define BURN(ms)                                                                                   \
	do {                                                                                       \
		struct timespec burn_at;                                                           \
		double burn_end = BURN_NOW_MS(burn_at) + (ms);                                     \
		do                                                                                 \
			for (volatile unsigned burn_i = 0; burn_i < 20000;)                        \
				burn_i = burn_i + 1;                                               \
		while (BURN_NOW_MS(burn_at) < burn_end);                                           \
	} while (0)

/* At the end of a function: what it called before is no jump. */
#define STAY __asm__ volatile("")
