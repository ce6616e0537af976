/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks: those that callbacks wait for, and the calls by which threads get and leave them.
 *
 * A lock that is free is got by a call that does not wait, whose answer is the same.  Only when
 * that says that the lock is taken the wait is timed, and its holder looked for (block/holders.h).
 */

#pragma once

#include "hook/got.h"

#define D9__LOCK_HOOKS	       14
#define D9__LOCK_HOOKS_RWLOCKS 7 /* the last ones: of locks for readers and writers */
extern const struct d9__got_hook d9__lock_hooks[D9__LOCK_HOOKS];
