/* SPDX-License-Identifier: Apache-2.0 */
/* Mapped: memory that is ours, and known as ours: see record/lock_all.h. */

#pragma once

#include <stddef.h>

#include <dial9/export.h>

/*
 * Where the program has forbidden itself system calls (base/sandbox.h), only the recorder's thread
 * gets memory, and gives it back: for others there is none, and what they give back stays.
 */

/* Zeros, at a page; pages that are never touched cost addresses alone.  NULL if there are none.  Any thread; changes errno. */
D9_API void *d9__map(size_t bytes);

/*
 * Make |memory|, which d9__map(|bytes|) gave, |to| bytes long, perhaps at another place.  NULL: there are
 * none, and |memory| is as before.
 */
void *d9__remap(void *memory, size_t bytes, size_t to);

/* Give back what d9__map(|bytes|) gave. */
void d9__unmap(void *memory, size_t bytes);

/* From now on the kernel locks whatever is mapped, and counts it against ulimit -l: d9__map() unlocks ours at once. */
void d9__mapped_limit(void);

/*
 * Unlock |memory|, which its caller mapped by other means.  Does nothing before d9__mapped_limit(); may
 * change errno.
 */
void d9__mapped_unlock(const void *memory, size_t bytes);

/* Call |fn| for each piece that is mapped now.  Of more than D9__MAPPED_MAX the later ones are not known. */
#define D9__MAPPED_MAX 512
void d9__mapped_each(void (*fn)(void *arg, const void *memory, size_t bytes), void *arg);
