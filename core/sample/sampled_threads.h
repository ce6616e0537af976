/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sampled threads: which threads samplers look at.
 *
 * Threads that run loops stand at the index of their slot, and are known at the tick after their
 * loop began; the process's first thread is known from the first tick on, as programs begin in it.
 * Where all threads are wanted (d9__sampling.all_threads), the others stand behind
 * those, and are found in /proc/self/task: when the program has made one
 * (d9__sampling.thread_made), at most every 5 ms; at the tick at which there are more or fewer of
 * them; and once a second.  Our own threads are never among them.
 *
 * Everything here is the flush thread's.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ring/ring_file.h"
#include "ring/slot.h"

#define D9__SAMPLED_MAX (2 * D9__SLOT_COUNT)

/* Set in a constructor: redirects the calls that make threads, before the first look that wants
 * all; NULL: they are not. */
extern void (*d9__sampled_watch)(void);

/*
 * Bring the list up to date.  |own| is the flush thread's slot.  Returns when it has to be done
 * again, because a thread was made so soon after another, or has to say what it is called;
 * UINT64_MAX: whenever the flush thread looks.
 */
uint64_t d9__sampled_look(const struct d9__slot *own, uint64_t now_ns);

/* Nobody looks for a while: threads that come meanwhile are not as new as they seem. */
void d9__sampled_rest(void);

/* Forget all, as in a forked child. */
void d9__sampled_forget(void);

/* All threads have an index below this one. */
uint32_t d9__sampled_high(void);

/* The thread at |index|; 0: none. */
uint32_t d9__sampled_tid(uint32_t index);

/* Whether the latest look found it, and one before did not: all of its CPU time is the recording's.
 */
bool d9__sampled_is_new(uint32_t index);

/* Its name, as of the latest second; "" if it cannot be read. */
const char *d9__sampled_name(uint32_t index);

/* Its slot, or NULL: it runs no loop. */
static inline struct d9__slot *d9__sampled_slot(uint32_t index)
{
	return index < D9__SLOT_COUNT ? &d9__ring.slots[index] : NULL;
}

/* The thread |tid|: its index, or D9__SAMPLED_MAX. */
uint32_t d9__sampled_find(uint32_t tid);

/* Threads for which there was no room, at the latest walk. */
uint32_t d9__sampled_left_out(void);
