/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loop time: where the time of a loop's thread went.  What lies between its first event and its
 * last is divided completely: each instant is in one of the parts below, and they sum to the whole.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The shortest stretch in which it is asked whether a loop was busy. */
#define D9__BUSY_WINDOW_NS UINT64_C(250000000)

/* A loop is busy where it needs so many hundredths of what the machine leaves it. */
#define D9__BUSY_PERCENT 80

/* A callback, or a stretch without one, may hold the loop from here on. */
#define D9__LONG_STRETCH_NS UINT64_C(5000000)

/* All zero: nothing was recorded. */
struct d9__loop_time {
	uint64_t first_ns, last_ns;

	/* In waits: asleep, on the CPU all the same, and ready without a CPU when they were over.
	 */
	uint64_t asleep_ns, wait_cpu_ns, wait_ready_ns;

	uint64_t callback_ns; /* in callbacks, without the loops that they ran */
	uint64_t round_ns;    /* awake besides: the library's own work, prepare() and check() */
	uint64_t round_ready_ns; /* of round_ns, ready without a CPU, as far as it was told */

	/* From leaving the loop to entering it again: at work, asleep, and ready without a CPU. */
	uint64_t outside_ns, outside_asleep_ns, outside_ready_ns;
	/* As told of calls that block there, and are no wait for the loop's sake: of
	 * |outside_asleep_ns|, which has less where readings do. */
	uint64_t outside_held_ns;
	uint64_t outside_short_ns; /* of outside_ns, in times too short to be told one by one */
	uint64_t outside_max_ns,
		outside_max_at_ns; /* the longest such time: at work for no less, by readings */
	uint64_t outside_n;	   /* of a millisecond and more */
	uint64_t outside_short_n;  /* of shorter ones */
	uint64_t outside_first_ns,
		outside_last_ns; /* when the first of these began, the last ended */

	/* Of round_ns, stretches without a callback of D9__LONG_STRETCH_NS and more, by what they
	 * took themselves. */
	uint64_t round_n, round_long_ns, round_max_ns, round_max_at_ns;

	uint64_t stopped_ns; /* the whole process stood still */
	uint64_t lost_ns;    /* not recorded */

	/* Stretches in which it was busy, see D9__BUSY_PERCENT: all, and the longest of one piece.
	 */
	struct {
		uint64_t ns, longest_ns, longest_from_ns;
	} busy;

	/* State. */
	struct d9__loop_long {
		uint64_t from_ns, to_ns;
		uint64_t calls_ns; /* in callbacks */
		bool waited;
	} newest_long; /* the newest time without an event that is long enough for a stop */
	struct {
		uint64_t from_ns, to_ns;
	} stop; /* the newest, if the loop's events have not reached its end yet; else all 0 */
	struct {
		uint64_t from_ns, own_ns, asleep_ns; /* of the window that is open */
		uint64_t run_ns, run_from_ns;	     /* busy without a break up to it */
	} window;
	uint64_t outside_told_ns,
		outside_told_n; /* of the awake time that is open, between rounds */
	uint64_t outside_longest_ns, outside_longest_at_ns; /* of these the longest */
	uint64_t between_ns;	  /* between rounds, at times that are not known */
};

/* It waited from |from_ns| to |to_ns|, of it |cpu_ns| on the CPU and |ready_ns| ready without one.
 */
void d9__loop_time_waited(struct d9__loop_time *time, uint64_t from_ns, uint64_t to_ns,
			  uint64_t cpu_ns, uint64_t ready_ns);

/* An awake time, from a wait to the next. */
struct d9__loop_awake {
	uint64_t from_ns, to_ns;
	uint64_t calls_ns; /* in callbacks */
	uint64_t read_ns;  /* of these, in callbacks that tell how they were ready without a CPU */
	uint64_t own_ns;   /* on the CPU, or asleep in a callback: what no reading gives to the
			      machine */
	uint64_t gap_from_ns, gap_ns; /* the longest stretch of it without a callback; ns 0: none */
	uint64_t slept_ns; /* asleep outside of its loop; where no event tells when it had left it,
			      by a guess */
	uint64_t ready_ns; /* ready without a CPU, in no callback that tells of it */
	bool unread;	   /* others of this loop have readings, and this one has none */
};

/* Returns how long the process stood still in its callbacks. */
uint64_t d9__loop_time_awake(struct d9__loop_time *time, const struct d9__loop_awake *awake);

/*
 * The whole process stood still from |from_ns| to |to_ns|.  Returns how much of that lies in
 * callbacks whose awake time is over.
 */
uint64_t d9__loop_time_stopped(struct d9__loop_time *time, uint64_t from_ns, uint64_t to_ns);

/* The thread had left its loop from |from_ns| to |to_ns|, in the awake time that is open. */
void d9__loop_time_outside(struct d9__loop_time *time, uint64_t from_ns, uint64_t to_ns);

/* There calls blocked for |ns| that are no wait for the loop's sake. */
void d9__loop_time_outside_held(struct d9__loop_time *time, uint64_t ns);

/* It was outside for |ns| in all, in |n| times too short to be told one by one. */
void d9__loop_time_between(struct d9__loop_time *time, uint64_t n, uint64_t ns);

/* Of the time that it slept, |ns| were on the CPU. */
void d9__loop_time_burnt(struct d9__loop_time *time, uint64_t ns);

/*
 * Of the time that it seemed to sleep it was ready without a CPU for |ns|; returns how much of that
 * it can have been.
 */
uint64_t d9__loop_time_ready(struct d9__loop_time *time, uint64_t ns);

/* Nothing is known of the time from |from_ns| to |to_ns|. */
void d9__loop_time_lost(struct d9__loop_time *time, uint64_t from_ns, uint64_t to_ns);

/* Nothing follows. */
void d9__loop_time_finish(struct d9__loop_time *time);

/*
 * Take |before|, which was |time| once, out of it: it begins where that ended.  Its longest and
 * newest times stay those of all.
 */
void d9__loop_time_subtract(struct d9__loop_time *time, const struct d9__loop_time *before);

/* From its first event to its last. */
uint64_t d9__loop_time_total_ns(const struct d9__loop_time *time);
