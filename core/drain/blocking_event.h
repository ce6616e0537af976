/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocking event: a call inside a callback that blocked, on its way from the thread to the trace.
 *
 * It may end in a signal handler, and holds a stack, which only the flush thread can intern: so it is left raw in the
 * thread's side ring, as samples are (drain/side_event.h).
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ring/side_ring.h"
#include "ring/slot.h"
#include "segment/builder.h"

#define D9__BLOCKING_FRAMES_MAX 64u /* of the stack of who held the lock */

/* The payload of a side record of type D9__EVENT_BLOCKING_CALL: |n| addresses follow, the innermost first. */
struct d9__blocking_raw {
	uint64_t task, duration_ns;
	uint64_t holder_task;
	uint64_t held_ns;	     /* how long it held the lock of that */
	uint64_t held_cpu_ns;	     /* and used the CPU meanwhile; UINT64_MAX: not known */
	uint64_t held_ready_ns;	     /* and was ready without one; UINT64_MAX: not known */
	uint32_t worker, holder_tid; /* of who held the lock that it waited for; 0: not known, or no lock */
	int32_t fd;		     /* below 0: none */
	uint16_t n, reserved;
	char function[32];    /* ends */
	char holder_name[16]; /* ends; "": not known */
	uint64_t pcs[];
};

/* Leave |raw|, whose |n| addresses are |pcs|, in the side ring of |slot|; |ns|: when the call began.  As d9__side_put(). */
bool d9__blocking_leave(struct d9__slot *slot, const struct d9__blocking_raw *raw, const uint64_t *pcs, uint64_t ns);

/* Whether |record|, of type D9__EVENT_BLOCKING_CALL, is whole and within its limits. */
bool d9__blocking_is_sound(const struct d9__side_record *record);

/* Add the event of |record|, which is sound, to |b|. */
void d9__blocking_build(struct d9__builder *b, const struct d9__side_record *record);

/* Write it into |own|, the flush thread's slot. */
void d9__blocking_emit(struct d9__slot *own, const struct d9__side_record *record);
