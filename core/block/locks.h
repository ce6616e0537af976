/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks: the mutexes that callbacks wait for, and who holds them meanwhile.
 *
 * A callback that finds a mutex locked notes it in a small table.  While something is in the table, a thread that
 * unlocks a mutex in it says so there: it had held it since the unlock before, or since the wait began.  The one that
 * held it longest is the wait's culprit.  All but the table's words is written and read by who has the mutex.
 *
 * Outside of that an unlock costs one load and a branch.  A mutex that other processes share may be held by them: then
 * its holder is not known.
 */

#pragma once

#include <stdint.h>

#include "drain/blocking_event.h"
#include "hook/got.h"

struct d9__lock_holder {
	uint64_t at_ns;	  /* when it unlocked; 0: no thread did */
	uint64_t held_ns; /* of the wait */
	uint64_t task;	  /* whose callback it was; 0: none */
	uint32_t tid, n;
	uint64_t pcs[D9__BLOCKING_FRAMES_MAX];
};

#define D9__LOCK_HOOKS         7
#define D9__LOCK_HOOKS_RWLOCKS 2 /* the last ones: of locks for readers and writers */
extern const struct d9__got_hook d9__lock_hooks[D9__LOCK_HOOKS];

/* In a forked child, whose only thread waits for nothing. */
void d9__locks_fork_child(void);
