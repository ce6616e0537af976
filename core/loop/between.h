/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between: the time from where a thread leaves its loop to where it enters one again.  Programs
 * that go round their loop by themselves work there, and no callback tells of it.
 */

#pragma once

#include <stdint.h>

#include "loop/thread_state.h"
#include "ring/slot.h"

/* This thread has left its outermost loop. */
void d9__between_begin(struct d9__thread *thread);

/* The half of d9__between_end() for who has left one. */
void d9__between_add(struct d9__thread *thread, struct d9__slot *slot, uint64_t ns);

/* This thread is in a loop again since |ns|, a stamp of now.  Before its stage is changed. */
static inline void d9__between_end(struct d9__thread *thread, struct d9__slot *slot, uint64_t ns)
{
	if (thread->between.left_ns)
		d9__between_add(thread, slot, ns);
}

/* Write at |ns| what is not written yet: this thread ends. */
void d9__between_tell_rest(struct d9__thread *thread, struct d9__slot *slot, uint64_t ns);
