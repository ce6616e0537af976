/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the flush thread waits between two ticks.  d9__flush_wake() ends each wait, for requests; threads that
 * seal chunks end it once; d9__flush_rouse() ends a long one.
 *
 *	seen = d9__flush_wait_seen();
 *	... nothing is wanted ...
 *	d9__flush_wait(seen, ns);
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Return the word that a wait compares with: a wake after this ends it, or keeps it from beginning. */
uint32_t d9__flush_wait_seen(void);

/*
 * Wait until |wait_ns| have passed, a chunk is sealed or d9__flush_wake() is called; not if that
 * was since |seen|.
 */
void d9__flush_wait(uint32_t seen, uint64_t wait_ns);

/*
 * The longest time between two ticks, so that few samples wait for each thread, or where all
 * threads are sampled, for each CPU: nothing wakes the flush thread for one that computes, as the
 * sampling handler makes no system call.  Not |active|: threads that run loops rest.
 */
uint64_t d9__flush_wait_most(bool active);

/*
 * Wait so for |wait_ns|, at least a millisecond; d9__flush_rouse() ends a long one.  Returns how
 * long it was to last at the most.
 */
uint64_t d9__flush_wait_long(uint32_t seen, uint64_t wait_ns);

/* From threads that seal chunks: once per wait is enough.  Keeps errno. */
void d9__flush_wake_once(void);

/* In a forked child: no thread waits. */
void d9__flush_wait_fork_child(void);
