/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Levels: conditions that hold for a while, which the flush thread looks at: the work that waits
 * for loops, and how many polls and wakes there are in a second.  They are of all loops, or of
 * those that `where` names: their sum.  Flush thread.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/trigger_text.h"

/* How it is with one condition; zeros at first. */
struct d9__level {
	uint64_t since_ns; /* it holds; 0: it does not */
	uint64_t step;	   /* of rates: up to there they were judged */
};

/* True: it is one of these. */
bool d9__level_is(enum d9__trigger_kind kind);

/* How much work waits for the loops whose name is |wanted|. */
typedef bool (*d9__loop_wanted)(const void *arg, const char *name);
typedef uint64_t (*d9__queue_fn)(d9__loop_wanted wanted, const void *arg);

/* The name of a worker's loop, "" if it has none. */
typedef void (*d9__worker_name_fn)(uint32_t worker, char *out, size_t size);

/* Whom to ask.  Any thread, once, before loops run. */
void d9__levels_provide(d9__queue_fn queue, d9__worker_name_fn worker_name);

/*
 * Whether what |trigger| waits for holds, and has for as long as it says; |*value| is how much
 * there is.  Rates are judged by the second that ends with each tenth of one, after
 * d9__rates_look().
 */
bool d9__level_look(struct d9__level *level, const struct d9__trigger *trigger, uint64_t now_ns,
		    uint64_t *value);
