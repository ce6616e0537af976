/* SPDX-License-Identifier: Apache-2.0 */
/* Callsites: (callback, site) -> what the trace calls the tasks made there. */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "loop/adapter.h"

#define D9__CALLSITES_MAX 65536u

/* The one for |callback| and |site|; that for "unknown" when memory or numbers are out. */
struct d9_callsite *d9__callsites_intern(const void *callback, const void *site);

/* The slow half of d9__callsite_name(): looks up modules, takes locks.  Keeps errno. */
uint32_t d9__callsite_name_slow(struct d9_callsite *callsite);

/* Handle of `CALLBACK @ SITE`.  NULL gives the empty text. */
static inline uint32_t d9__callsite_name(const struct d9_callsite *callsite)
{
	uint32_t name;

	if (!callsite)
		return 0;
	name = atomic_load_explicit(&callsite->name, memory_order_acquire);
	if (__builtin_expect(name != 0, 1))
		return name - 1;
	return d9__callsite_name_slow((struct d9_callsite *)(uintptr_t)callsite);
}

/* The address of the callback whose callsite has the name handle |name|; 0: not known.  Slow. */
uint64_t d9__callsites_callback(uint32_t name);

uint64_t d9__callsites_overflows(void);

void d9__callsites_fork_prepare(void);
void d9__callsites_fork_parent(void);
