/* SPDX-License-Identifier: Apache-2.0 */
/* Time: units in nanoseconds, and the clock in which dial9 counts. */

#pragma once

#include <stdint.h>
#include <time.h>

#define D9__US_NS     UINT64_C(1000)
#define D9__MS_NS     UINT64_C(1000000)
#define D9__SECOND_NS UINT64_C(1000000000)

static inline uint64_t d9__timespec_ns(const struct timespec *ts)
{
	return (uint64_t)ts->tv_sec * D9__SECOND_NS + (uint64_t)ts->tv_nsec;
}

static inline struct timespec d9__timespec_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / D9__SECOND_NS), .tv_nsec = (long)(ns % D9__SECOND_NS) };
}

/* CLOCK_MONOTONIC, in ns.  Signal-safe. */
static inline uint64_t d9__mono_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return d9__timespec_ns(&now);
}
