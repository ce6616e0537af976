/* SPDX-License-Identifier: Apache-2.0 */
/* Private offsets and abilities of the running libevent, found and tested at the first attach. */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libevent/real.h"

struct d9__libevent_fields {
	/* Offset of "the event that runs now" in a base; 0: not found, a stub is the task then. */
	uint32_t current_event;
	/* Offsets of deadline and interval in an event; 0: not found, no lateness then. */
	uint32_t deadline, interval;
	/* Read by hooks on threads that did not wait for the calibration, too. */
	_Atomic(bool) wake_by_public_calls; /* the activation functions are out of reach */
	_Atomic(bool) calibrated;      /* the hooks' inner calls need not be watched any more */
	_Atomic(void *) self_argument; /* what event_self_cbarg() returns */
	_Atomic(uint32_t) callback;    /* offset in an event; 0: not found */
};

/* Constant once d9__libevent_field_calibrate() has returned. */
extern struct d9__libevent_fields d9__libevent_fields;

/*
 * Find the fields, once per process; |base| tells version and method.  Never before the program
 * has a base of its own: debug mode and threads must be set up first.
 */
void d9__libevent_field_calibrate(struct event_base *base);

/* True if public calls must tell of wakes. */
static inline bool d9__libevent_wakes_are_public(void)
{
	/* relaxed: an activation before the first attach wakes no task of ours */
	return atomic_load_explicit(&d9__libevent_fields.wake_by_public_calls,
				    memory_order_relaxed);
}

/* Called by the hooks, only during calibration: libevent's inner calls reach them. */
void d9__libevent_field_probe_assign(void);
void d9__libevent_field_probe_activation(void);

/* The program brings its own allocator: the size of a base cannot be asked for. */
void d9__libevent_field_note_allocator(void);

/* The event whose callback runs on |base|, or NULL.  On the thread that runs it. */
static inline void *d9__libevent_current_event(const struct event_base *base)
{
	uint32_t offset = d9__libevent_fields.current_event;

	return offset ? *(void *const *)((uintptr_t)base + offset) : NULL;
}

/*
 * The callback that is in |event|, maybe a stub, or NULL: not known.  Unlike event_get_callback() also of
 * an event that libevent's debug mode would exit for.
 */
static inline d9__event_fn d9__libevent_callback_in(const struct event *event)
{
	/* relaxed: it is one constant offset, or not known yet */
	uint32_t offset = atomic_load_explicit(&d9__libevent_fields.callback, memory_order_relaxed);

	return offset && event ? *(const d9__event_fn *)((uintptr_t)event + offset) : NULL;
}

/*
 * When the timer |event|, which was just activated or is about to run, was due: ns of
 * CLOCK_MONOTONIC, or 0 if that is unknown or not plausible at |now_ns|.
 */
uint64_t d9__libevent_field_due_ns(const void *event, uint64_t now_ns);

/* The next deadline of |event|, whose timer is set: ns of CLOCK_MONOTONIC, or 0 if unknown. */
uint64_t d9__libevent_field_deadline_ns(const void *event);

/* The program's |timeout|, which may be one of libevent's common ones, in ns. */
uint64_t d9__libevent_field_timeout_ns(const struct timeval *timeout);
