/* SPDX-License-Identifier: Apache-2.0 */
/* Attached bases: a private copy of the backend's operations table with our dispatch in it. */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dial9/loop.h>

#include "libevent/real.h"

#define D9__LIBEVENT_BASES_MAX 1024

typedef int (*d9__libevent_dispatch_fn)(struct event_base *base, struct timeval *timeout);

/*
 * The one layout fact taken from compile time: the first word of a base points at this table, the
 * same in 2.0.22, 2.1.8, 2.1.12 and 2.2.1.  Guarded at every attach.
 */
struct d9__libevent_ops {
	const char *name;
	void *init;
	void *add;
	void *del;
	d9__libevent_dispatch_fn dispatch;
	void *dealloc;
	int need_reinit;
	int features;
	size_t fdinfo_len;
};

struct d9__libevent_base {
	struct d9__libevent_ops ops; /* first: libevent's word points here */

	/* Written under the lock of bases.c, before the word is stored. */
	const struct d9__libevent_ops *original;
	struct event_base *base; /* NULL: free or retired */
	struct d9_loop *loop;
	bool wrapped; /* false: polls only, the table was not one we know */
	/* Backend runs that did not wait; written by whoever holds the base's lock. */
	_Atomic(uint64_t) zero_dispatches;
	/* Its clock was seen ahead of the coarse one: it goes by the exact one.  By the loop's thread. */
	_Atomic(bool) exact_clock;
	struct d9__libevent_base *next_retired;
};

_Static_assert(sizeof(void *) != 8 || sizeof(struct d9__libevent_ops) == 64,
	       "libevent's struct eventop");

extern struct d9__libevent_base d9__libevent_bases[D9__LIBEVENT_BASES_MAX];

/* Records that were ever in use, from the first on; read without the lock too. */
extern _Atomic(unsigned) d9__libevent_bases_used;

/* Bases attached without a table of ours: found by address only. */
extern _Atomic(unsigned) d9__libevent_unwrapped;

/* What the first word of |base| points at, if that is ours; else NULL.  Any lock may be held. */
static inline struct d9__libevent_base *d9__libevent_wrapped_base(const struct event_base *base)
{
	/* relaxed: the word is stored after what it points at is complete, and only by us */
	uintptr_t word = __atomic_load_n((const uintptr_t *)(const void *)base, __ATOMIC_RELAXED);

	if (word - (uintptr_t)d9__libevent_bases >= sizeof(d9__libevent_bases))
		return NULL;
	return (struct d9__libevent_base *)word;
}

/* The loop of |base|, which may be attached without a table of ours; NULL: it is not attached. */
static inline struct d9_loop *d9__libevent_loop_of(const struct event_base *base)
{
	struct d9__libevent_base *record = d9__libevent_wrapped_base(base);

	if (record)
		return record->loop;
	/* acquire: pairs with the release at attach */
	if (atomic_load_explicit(&d9__libevent_unwrapped, memory_order_acquire))
		return d9_loop_find(D9_LIBRARY_LIBEVENT, base);
	return NULL;
}

/*
 * The record of |base| or NULL; puts our table back if libevent has replaced it.  Not under the
 * base's lock.
 */
struct d9__libevent_base *d9__libevent_base_find(struct event_base *base);

/*
 * Attach |base|.  0; -ENOTSUP if the guards refuse and |constructed| is false; -ENOSPC, -ENOMEM.
 * |constructed|: a hooked constructor returned it, so it is a base for certain.  |ours| is the
 * dispatch function that it gets; it comes this way because a program may attach in a constructor
 * that runs before ours does.
 */
int d9__libevent_base_wrap(struct event_base *base, const char *name, bool constructed,
			   d9__libevent_dispatch_fn ours);

/* Put libevent's own table back and forget |base|, before it is freed.  The loop, or NULL. */
struct d9_loop *d9__libevent_base_unwrap(struct event_base *base);

/* True if |address| is code of ours. */
bool d9__libevent_base_is_ours(const void *address);

/* In the constructor. */
void d9__libevent_bases_init(void);
