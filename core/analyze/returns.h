/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Returns to a loop that its thread had left, and slept outside of: did callbacks wait meanwhile?
 * No event tells when a descriptor became ready that nothing watched.  But callbacks that are ready
 * at once where the thread comes back were so before; and as sleeps of one length end by
 * themselves, and not by what the thread slept for, callbacks waited for them.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyze/histogram.h"
#include "base/time.h"

/* Shorter times outside are no matter, nor is a callback that waits for less. */
#define D9__RETURN_NS (5 * D9__MS_NS)

/* All zero: it never slept outside. */
struct d9__returns {
	uint64_t n;	/* times outside of D9__RETURN_NS and more */
	uint64_t found; /* behind which callbacks were ready at once */
	uint64_t calls; /* of them, in all */
	uint64_t late;	/* of |found|, where one of a timer or another thread had waited for so long
			 */

	/* Sleeps outside of that length and more, and the longest; by readings, that tell of
	 * several between two waits together. */
	struct d9__histogram sleeps;
	uint64_t longest_ns, longest_at_ns;

	/* Times outside in which calls blocked that are no wait for the loop's sake, behind how
	 * many of them callbacks were ready at once, and how long they blocked at most in one of
	 * these. */
	uint64_t held, held_found, held_longest_ns;

	bool open, seen_found, seen_late; /* of the newest time outside, until the loop sleeps */
	uint64_t held_ns; /* likewise; 0: no call blocked, or callbacks behind it were seen */
};

void d9__returns_release(struct d9__returns *returns);

/* The thread has come back after |ns|, in which calls blocked for |held_ns| that are no wait for
 * the loop's sake. */
void d9__returns_come(struct d9__returns *returns, uint64_t ns, uint64_t held_ns);

/*
 * A callback begins that became ready for |reason|, |delay_ns| ago; UINT64_MAX: not known.
 * |looked|: the loop had looked at its descriptors since the thread came back, and found it only
 * later.
 */
void d9__returns_call(struct d9__returns *returns, unsigned reason, uint64_t delay_ns, bool looked);

/* The loop slept. */
void d9__returns_slept(struct d9__returns *returns);

/*
 * Between two waits the thread was outside for |outside_ns| in |n| times, of which it slept for
 * |asleep_ns|; |longest_ns| of it, from |at_ns| on, was the longest time.  0 or -ENOMEM.
 */
int d9__returns_measure(struct d9__returns *returns, uint64_t n, uint64_t outside_ns,
			uint64_t asleep_ns, uint64_t longest_ns, uint64_t at_ns);

/* How long a sleep lasted on average; 0: there was none. */
uint64_t d9__returns_mean_ns(const struct d9__returns *returns);

/* Whether callbacks waited for calls that block: often enough, or for long. */
bool d9__returns_are_held(const struct d9__returns *returns);

/* Whether callbacks were late by the sleeps: often enough, and as nothing that they waited for
 * ended them. */
bool d9__returns_are_late(const struct d9__returns *returns);
