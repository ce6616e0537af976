/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outside calls: calls that blocked while a thread was outside of its loop.  They lie between two
 * rounds only if it comes back, so that until then they are kept apart; what a thread does behind
 * its last round holds no loop up, and is told among all calls that blocked, of no loop.
 */

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "analyze/time_parts.h"

struct d9__blocked;
struct d9__blocked_event;
struct d9__texts;

struct d9__outside_calls {
	struct d9__blocked_event *open; /* since it left its loop */
	size_t n_open;

	/* Of those between rounds that are no wait for the loop's sake, see
	 * d9__blocked_is_own_wait(). */
	uint64_t n, ns;
	struct d9__told_time told;
};

/*
 * |event| is its newest, of no callback.  |functions| has the functions' names and owns them.  0 or
 * -ENOMEM.
 */
int d9__outside_calls_add(struct d9__outside_calls *calls, struct d9__texts *functions,
			  const struct d9__blocked_event *event);

/*
 * The thread has entered its loop again, which it had left at |from_ns|: count the calls in between
 * in |blocked|.  |*held_ns| is how long those took that are no wait for the loop's sake.  0 or
 * -ENOMEM.
 */
int d9__outside_calls_settle(struct d9__outside_calls *calls, struct d9__blocked *blocked,
			     uint64_t from_ns, uint64_t *held_ns);

/* The thread does not come back.  0 or -ENOMEM. */
int d9__outside_calls_end(struct d9__outside_calls *calls, struct d9__blocked *blocked);

void d9__outside_calls_release(struct d9__outside_calls *calls);
