/* SPDX-License-Identifier: Apache-2.0 */
/* Attached loops, and what is known about their watchers. */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dial9/loop.h>

#include "libev/real.h"
#include "libev/thread.h"
#include "loop/adapter.h"

#define D9__LIBEV_RECORDS_MAX 1024
#define D9__LIBEV_SETS	      256u /* of remembered watchers per loop; a power of two */
#define D9__LIBEV_WAYS	      4u   /* in a set */

/*
 * What was told when a watcher was started, or else seen at its first poll.  What falls out of this
 * memory the core's task table still knows.  Read and written under whatever the program serialises
 * the loop with.
 */
struct d9__libev_watcher {
	_Alignas(64) const void *watcher; /* NULL: free.  Never dereferenced on its own account */
	const void *callback;
	const void *site;
	const struct d9_callsite *callsite; /* NULL: not asked for yet */
	uint64_t due_ns; /* one-shot timer that libev has stopped: its deadline; else 0 */
	int32_t fd;      /* of an io; what a signal or child watcher is for */
	uint16_t kind;   /* enum d9_task_kind */
	bool started;    /* seen: it is of that kind.  What is only fed may be of any */
	bool stopped;    /* and not started again */
	bool expired;    /* stopped by libev itself: its last poll is to come */
};

_Static_assert(sizeof(struct d9__libev_watcher) == 64, "one line for each");

struct d9__libev_record {
	_Atomic(const struct ev_loop *) address; /* NULL: free or retired */
	struct d9_loop *loop;
	struct d9__libev_watcher *watchers; /* D9__LIBEV_SETS of D9__LIBEV_WAYS, kept for ever */
	unsigned victim;                    /* the way that has to go next */

	/* The program's own pair, chained behind ours; NULL: none. */
	d9__libev_loop_fn release, acquire;

	int run_flags;      /* of the innermost ev_run() */
	uint32_t n_idle;    /* active idle watchers: the loop does not wait */
	bool batch;         /* libev's drain is bracketed as one poll */
	bool dying;         /* ev_loop_destroy() is at it */

	/* Protected by the lock of records.c. */
	struct d9__libev_record *next, *next_retired; /* in its bucket; among the retired */
};

/* How many loops are attached: hooks of others return at once. */
extern _Atomic(uint32_t) d9__libev_attached;

/* No lock.  NULL: |loop| is not attached. */
struct d9__libev_record *d9__libev_record_search(const struct ev_loop *loop);

/* The record of |loop|, or NULL; 1 ns for the loop that was asked for last. */
static inline struct d9__libev_record *d9__libev_record_of(struct d9__libev_thread *thread,
							   const struct ev_loop *loop)
{
	struct d9__libev_record *record = thread->latest;

	if (record && atomic_load_explicit(&record->address, memory_order_relaxed) == loop)
		return record;
	if (!atomic_load_explicit(&d9__libev_attached, memory_order_relaxed))
		return NULL;
	return d9__libev_record_search(loop);
}

/* The same for hooks that only record: NULL, too, while recording is off or the layout is sought. */
static inline struct d9__libev_record *d9__libev_recorded(struct d9__libev_thread *thread,
							  const struct ev_loop *loop)
{
	if (!d9__gate_open(D9__GATE_LOOP) || __builtin_expect(thread->calibrating, 0))
		return NULL;
	return d9__libev_record_of(thread, loop);
}

/*
 * Make a record for |loop|; an older one of that address that is dying stays with its owner.
 * 0 with |record|, also if there was one (then *|is_new| is false); -ENOSPC, -ENOMEM, -EINVAL.
 */
int d9__libev_record_add(const struct ev_loop *loop, const char *name,
			 struct d9__libev_record **record, bool *is_new);

/* Nobody finds it any more; its tasks end. */
void d9__libev_record_retire(struct d9__libev_record *record);

/* In the constructor. */
void d9__libev_records_init(void);

static inline struct d9__libev_watcher *d9__libev_set_of(const struct d9__libev_record *record,
							 const void *watcher)
{
	uint64_t hash = (uint64_t)(uintptr_t)watcher * UINT64_C(0x9e3779b97f4a7c15);

	return &record->watchers[(hash >> 56) * D9__LIBEV_WAYS];
}

_Static_assert(D9__LIBEV_SETS == UINT64_C(1) << (64 - 56), "d9__libev_set_of()");

/* What is remembered of |watcher|, or NULL. */
static inline struct d9__libev_watcher *d9__libev_recall(const struct d9__libev_record *record,
							 const void *watcher)
{
	struct d9__libev_watcher *set = d9__libev_set_of(record, watcher);

	for (unsigned i = 0; i < D9__LIBEV_WAYS; i++) {
		if (set[i].watcher == watcher)
			return &set[i];
	}
	return NULL;
}

/* A place to remember |watcher| in, which may be the one it has; the caller fills all of it. */
struct d9__libev_watcher *d9__libev_record_place_for(struct d9__libev_record *record, const void *watcher);

/* ---- async watchers: senders may be signal handlers and other threads ---- */

/* Make a cell for |watcher|.  False: none is free. */
bool d9__libev_record_cell_add(const void *watcher, struct d9_loop *loop);
void d9__libev_record_cell_remove(const void *watcher);
void d9__libev_record_cells_remove_of(struct d9_loop *loop);

/* Async-signal-safe.  Nothing happens if it has none. */
void d9__libev_record_cell_fill(const void *watcher);

/* 1 with |waker| set, 0 if nobody has sent. */
int d9__libev_record_cell_take(const void *watcher, struct d9_waker *waker);
