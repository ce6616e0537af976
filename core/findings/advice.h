/* SPDX-License-Identifier: Apache-2.0 */
/* Advice: what to do instead, by the call that was slept in or found on the CPU; never a list of
 * all that may be. */

#pragma once

#include "findings/finding.h"

/*
 * The advice for a callback that sleeps in |place|: a function's name ("pthread_join"), "fsync(7)"
 * or "futex: a lock"; |callback| says whether its descriptor is non-blocking already.  NULL: not
 * known.
 */
const char *d9__advice_slept(const struct d9__findings *findings,
			     const struct d9__callback *callback, const char *place);

/* The one where that is not known; |pages|: it waits for pages from a disk. */
const char *d9__advice_sleeps(bool pages);

/* |place| as "in fdatasync(7)", "waiting for a lock". */
void d9__finding_asleep(const char *place, char *buf, size_t size);

/*
 * The function by which |callback|, asleep in |place|, starts a child and waits for it to load its
 * program; "": it does, by a function that is not known; NULL: it sleeps in another.  A |place| of
 * "" is not known.
 */
const char *d9__advice_starts_child(const struct d9__findings *findings,
				    const struct d9__callback *callback, const char *place);

/* The advice for that. */
const char *d9__advice_child(const struct d9__findings *findings);

/* Whether samples found |callback| asking again and again for a lock or a turn: it waits for
 * another thread, and does no work. */
bool d9__advice_asks_again(const struct d9__callback *callback);

/* The advice by the call in which samples found |callback| on the CPU; NULL: it is none that has a
 * remedy. */
const char *d9__advice_computes(const struct d9__findings *findings,
				const struct d9__callback *callback);

/* The advice for long calls of |callback|, by what |verdict| says of them and by where samples
 * found it. */
const char *d9__advice_long(const struct d9__findings *findings,
			    const struct d9__callback *callback, enum d9__stall_verdict verdict,
			    bool preempted);

/* Whether calls of |function| move bytes of a descriptor: they sleep only where that is blocking.
 */
bool d9__advice_is_io(const char *function);

/*
 * Whether |stall| may have slept only because whom it waited for had no CPU: |place|, "" if
 * unknown, is none where it sleeps for something else (a time, a disk), and loops' threads were
 * without one for as long.
 */
bool d9__finding_looks_starved(const struct d9__findings *findings, const struct d9__stall *stall,
			       const char *place);
