/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded contexts, by address and by the descriptor that wakes them.
 *
 * poll() and write() have no context among their arguments: that descriptor tells.  A context
 * ends when libglib closes it.
 */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <dial9/loop.h>

#include "glib/notes.h"
#include "glib/phases.h"
#include "glib/real.h"
#include "glib/thread.h"

#define D9__GLIB_CONTEXTS_MAX 1024
#define D9__GLIB_FDS_MAX      65536
#define D9__GLIB_KNOWN_MAX    256 /* sources a context remembers; a power of 2 */

/* What the loop's thread knows of a source from its first dispatch on. */
struct d9__glib_known {
	uint64_t key; /* 0: none */
	const struct d9_callsite *callsite;
	uint16_t kind;  /* enum d9_task_kind */
	uint16_t ready; /* enum d9__glib_ready */
	int32_t fd;
};

struct d9__glib_context {
	/* Written under the lock of contexts.c, before the record can be found. */
	_Atomic(GMainContext *) address; /* NULL: free */
	struct d9_loop *loop;
	uint64_t key; /* | source id: of the core's tasks */
	bool pipe_unresolved;
	struct d9__glib_context *next_retired;

	_Atomic(bool) closed;
	_Atomic(int) wake_fd;  /* that is polled; -1: unknown */
	_Atomic(int) write_fd; /* that is written; differs for a pipe */
	_Atomic(GPollFunc) user_poll; /* behind our chain function; NULL: none */
	/* The thread that polled or dispatched last, by the address of its block; 0: none. */
	_Atomic(uintptr_t) owner;
	_Atomic(bool) scan_wanted;
	_Atomic(uint32_t) highest; /* source id seen */

	struct d9__glib_notes notes;

	/* The loop's thread. */
	uint32_t wake_at;  /* where |wake_fd| was in the latest array */
	bool polled;       /* a poll hook saw it since the latest query */
	uint32_t scanned;  /* up to this id */
	int query_timeout; /* what the latest query() asked for */
	uint64_t queried_ns;
	uint64_t sampled_ns, scanned_ns;
	uint64_t rounds, spins, parks, polls; /* since the beginning */
	/* The same; read by the flush thread. */
	_Atomic(uint64_t) unseen; /* of the rounds that are over */
	_Atomic(uint32_t) left;   /* pending sources of this round; 0: it is over */
	uint64_t scanned_unseen;
	uint64_t scanned_silent; /* waits behind which no stub saw a dispatch */
	struct d9__glib_known known[D9__GLIB_KNOWN_MAX];
	struct d9__glib_phase phases[D9__GLIB_PHASES_MAX];
};

/* Is every context recorded (`dial9 record`), or only those that were attached? */
extern _Atomic(bool) d9__glib_all;

/* Every context is to be recorded, and none is known yet: the recorder has not been started. */
extern _Atomic(bool) d9__glib_waiting;

/* Grows whenever what a thread remembers of contexts may be wrong. */
extern _Atomic(uint32_t) d9__glib_generation;

/* By descriptor: those polled, and those written where they differ. */
extern _Atomic(struct d9__glib_context *) d9__glib_by_fd[D9__GLIB_FDS_MAX];

/* The default context, once it is known to exist. */
extern _Atomic(GMainContext *) d9__glib_default;

struct d9__glib_context *d9__glib_context_look_up(struct d9__glib_thread *thread,
					  const GMainContext *context);

/*
 * The record of |context|, which is made if all contexts are recorded.  NULL: not recorded.  No
 * lock of GLib is held.
 */
static inline struct d9__glib_context *d9__glib_context(struct d9__glib_thread *thread,
							 const GMainContext *context)
{
	if (__builtin_expect(thread->context == context &&
				     thread->generation ==
					     atomic_load_explicit(&d9__glib_generation,
								  memory_order_acquire),
			     1))
		return thread->record;
	return d9__glib_context_look_up(thread, context);
}

/* The record of what wakes by |fd|, or NULL.  Async-signal-safe. */
static inline struct d9__glib_context *d9__glib_context_of_fd(int fd)
{
	if ((unsigned)fd >= D9__GLIB_FDS_MAX)
		return NULL;
	/* acquire: pairs with the release when the record was made */
	return atomic_load_explicit(&d9__glib_by_fd[fd], memory_order_acquire);
}

static inline void d9__glib_become_owner(struct d9__glib_context *record,
					 struct d9__glib_thread *thread)
{
	if (atomic_load_explicit(&record->owner, memory_order_relaxed) != (uintptr_t)thread)
		atomic_store_explicit(&record->owner, (uintptr_t)thread, memory_order_relaxed);
}

/*
 * Record |context|.  |fd|: its wake-up descriptor if the caller knows it, else -1.  0, -ENOSPC,
 * -ENOMEM.  No lock of GLib is held.
 */
int d9__glib_context_register(GMainContext *context, const char *name, int fd,
		      struct d9__glib_context **out);

/* Dispatches that no stub saw, at most: a pending source may be destroyed by an earlier one. */
static inline uint64_t d9__glib_unseen_of(struct d9__glib_context *record)
{
	return atomic_load_explicit(&record->unseen, memory_order_relaxed);
}

/* By the loop's thread alone. */
static inline void d9__glib_add(_Atomic(uint64_t) *counter, uint64_t n)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

/* The default context exists from now on. */
void d9__glib_context_note_default(GMainContext *context);

/*
 * Its wake-up descriptor, found by a wake-up that is not made; -1: none.  *|is_pipe| tells that it
 * is only the end that is written.  Blocks signals meanwhile.
 */
int d9__glib_context_capture(GMainContext *context, bool *is_pipe);

/* libglib closes |fd| or finds its number free: the context that it woke is gone.  No lock. */
void d9__glib_context_note_closed(int fd);

/* The read end of a wake-up pipe is one of |fds|: find it.  NULL: it is not. */
struct d9__glib_context *d9__glib_context_resolve_pipe(const struct pollfd *fds, nfds_t n);

/* Dispatches that no stub saw, as of the latest tick.  At most that many: see depth. */
extern _Atomic(uint32_t) d9__glib_unseen;

void d9__glib_contexts_init(void);
