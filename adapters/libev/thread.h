/* SPDX-License-Identifier: Apache-2.0 */
/* Thread: the state of this thread in libev. */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "libev/real.h"

struct d9__libev_record;

/* The state that a nested run or poll saves on its own stack and puts back. */
struct d9__libev_context {
	struct d9__libev_record *record; /* whose callback runs; NULL: none */
	const void *callback;            /* that runs, libev's own included; NULL: none */
	uintptr_t frame;                 /* stack address of the innermost run; 0: none */
	bool internal;                   /* the running callback is libev's */
};

struct d9__libev_thread {
	struct d9__libev_context now;
	struct d9__libev_record *latest; /* that was looked up */
	const void *feeder; /* the program's call that makes libev feed watchers; NULL: none */
	uint64_t once_due_ns; /* deadline of the latest timer of libev's own */
	int signum; /* libev feeds the watchers of this signal; 0: it does not */
	bool calibrating;   /* hooks pass everything through */
	bool restarting;    /* in ev_timer_again(), which has been told */
};

_Static_assert(sizeof(struct d9__libev_thread) <= 64, "static TLS of late libraries is scarce");

extern _Thread_local struct d9__libev_thread d9__libev_self D9_TLS;

static inline struct d9__libev_thread *d9__libev_thread(void)
{
	return &d9__libev_self;
}

static inline bool d9__in_our_image(const void *address)
{
	return (uintptr_t)address - d9__libev_own.low < d9__libev_own.high - d9__libev_own.low;
}

/*
 * Was a call that returns to |caller| made by libev itself?  One that returns to us is a callback's
 * last, which the compiler made a jump.
 */
static inline bool d9__called_by_libev(const struct d9__libev_thread *thread, const void *caller)
{
	return d9__in_libev(caller) || (thread->now.internal && d9__in_our_image(caller));
}

/* The place of such a call by the program. */
static inline const void *d9__libev_site(const struct d9__libev_thread *thread, const void *caller)
{
	return d9__in_our_image(caller) && thread->now.callback ? thread->now.callback : caller;
}
