/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Off time: how long threads were off the CPU in what samples of that tell.  A call that blocked
 * tells its length; a switch lasts until its thread's next sign, which is a sample of it or an
 * event of its loop.  Where only slices of the time have switches it lasts until the slice's end at
 * most, and its part of all slices stands for the whole.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Only the end of a trace may tell that its switches are those of slices. */
struct d9__off_time {
	uint64_t blocked_ns; /* in calls that blocked */
	uint64_t away_ns;    /* in switches, if all are told */
	uint64_t sliced_ns;  /* in switches, if only those of slices are told: of these as much as
				lies in them */
};

/* Return the time that |time| stands for, if switches were recorded in |switch_share| of it. */
static inline uint64_t d9__off_time_ns(const struct d9__off_time *time, double switch_share)
{
	if (switch_share >= 1)
		return time->blocked_ns + time->away_ns;
	return time->blocked_ns + (uint64_t)((double)time->sliced_ns / switch_share + 0.5);
}

#define D9__OFF_TIMES                                                                              \
	5 /* that one sample may count in: its thread, its stack, its callback ...                 \
	   */

/* The newest sample of a thread off the CPU.  All zero: it is back. */
struct d9__absence {
	struct d9__off_time *times[D9__OFF_TIMES]; /* borrowed; as long as the absence is open */
	size_t n;
	uint64_t from_ns;
	uint64_t slice_ns; /* the end of the slice that it is in, if slices there are; 0: in none */
	bool is_told;	   /* it is in a call that blocked, whose length is told */
};

/* The time of |absence| counts in |time|, too. */
static inline void d9__absence_counts_in(struct d9__absence *absence, struct d9__off_time *time)
{
	if (absence->n < D9__OFF_TIMES)
		absence->times[absence->n++] = time;
}

/* The thread of |absence|, which may be open, gave a sign at |ns|. */
static inline void d9__absence_end(struct d9__absence *absence, uint64_t ns)
{
	uint64_t slice_ns = ns < absence->slice_ns ? ns : absence->slice_ns;

	for (size_t i = 0; !absence->is_told && i < absence->n; i++) {
		absence->times[i]->away_ns += ns > absence->from_ns ? ns - absence->from_ns : 0;
		absence->times[i]->sliced_ns +=
			slice_ns > absence->from_ns ? slice_ns - absence->from_ns : 0;
	}
	absence->n = 0;
}

/* The sample of |absence| was of a call that blocked for |ns|: it was no switch. */
static inline void d9__absence_blocked(struct d9__absence *absence, uint64_t ns)
{
	for (size_t i = 0; i < absence->n; i++)
		absence->times[i]->blocked_ns += ns;
	absence->n = 0;
}
