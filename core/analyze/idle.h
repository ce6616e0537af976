/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Idle tasks: what they wait for, by the stacks that armed them, and how long.
 *
 * A dump tells where a task began to wait; its next poll ends the wait, or the task's end, or that of the trace.  The
 * recorder dumps a wait of length T with a probability of 1 - exp(-T / mean), so it stands for T / (1 - exp(-T / mean)).
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/samples.h"
#include "base/table.h"

#define D9__IDLE_MEAN_MS 10. /* where the trace does not tell: the original's */

/* Waits that one stack began. */
struct d9__idle_stack {
	const struct d9__stack *stack;
	uint64_t dumps, kept; /* |kept|: with the stack of an earlier wait */
	uint64_t tasks;	      /* at least so many: one that comes back after others counts again */
	uint64_t latest_task;
	double idle_ns; /* estimated, of all tasks together */
	uint64_t longest_ns;
	bool truncated; /* outer frames may be missing */
};

/* One dump. */
struct d9__idle_dump {
	uint64_t task, ns; /* since when it waits */
	const uint64_t *addresses;
	size_t n;
	bool kept, truncated;
};

/* All zero at first. */
struct d9__idle {
	struct d9__samples samples; /* has the stacks, and their names */
	struct d9__table stacks;    /* struct d9__idle_stack by the number of its stack; owned */
	struct d9__table waiting;   /* struct waiting by task; owned */
	double mean_ns;
	uint64_t dumps;
	double idle_ns;
	/* Told of each wait that was dumped, when it is over; NULL: it is not told. */
	void (*on_wait)(void *context, uint64_t task, const struct d9__idle_stack *stack, uint64_t ns, double weight_ns);
	void *context;
};

void d9__idle_release(struct d9__idle *idle);

/* |mean_ms|: what metadata tells of the recorder's threshold. */
void d9__idle_set_mean(struct d9__idle *idle, const char *mean_ms);

/* 0 or -ENOMEM. */
int d9__idle_dumped(struct d9__idle *idle, const struct d9__idle_dump *dump);

/* |task| polls or ends at |ns|. */
void d9__idle_end(struct d9__idle *idle, uint64_t task, uint64_t ns);

/* The trace ends. */
void d9__idle_finish(struct d9__idle *idle, uint64_t ns);

/* The stacks, most idle first, in new memory; |*n| of them.  NULL: there are none, or no memory. */
const struct d9__idle_stack **d9__idle_sorted(const struct d9__idle *idle, size_t *n);

/*
 * "event_add < arm svc.c:12 < on_reply (armed once)", as much as fits |size|: from the call that armed the task outwards
 * to the callback in which it was made.
 */
void d9__idle_describe(const struct d9__idle_stack *stack, char *buf, size_t size);

/* Return the idle time that a dumped wait of |length_ns| stands for. */
double d9__idle_weight(uint64_t length_ns, double mean_ns);
