/* SPDX-License-Identifier: Apache-2.0 */
/* Callsites: (callback, site) -> what the trace calls the tasks made there. */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <dial9/export.h>
#include <dial9/loop.h>

#define D9__CALLSITES_MAX 65536u

struct d9_callsite {
	struct d9_callsite *next; /* in its bucket; written once */
	const void *callback, *site;
	/* Handle of the text plus 1; 0: not made yet.  release/acquire with the text's making. */
	_Atomic(uint32_t) name;
	uint16_t kind; /* of its tasks, where that was told; written once */
};

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

/*
 * As d9_callsite() without flags, for a task of |kind|, after which callbacks in no module are called.  Those that
 * cannot be told apart, such as closures that a binding makes for one call, have one callsite, without addresses:
 * thousands of them would fill the table.
 */
D9_API const struct d9_callsite *d9__callsite_of_kind(const void *callback, const void *site, enum d9_task_kind kind);

/*
 * A loop library's own callback: what it is for, as far as its adapter knows; NULL: not known.  |role| is
 * a literal and stands for the function's module and offset in the names of its callsites.  Lock-free;
 * any lock may be held.
 */
D9_API const char *d9__callback_role(const void *callback);
D9_API void d9__callback_role_set(const void *callback, const char *role);

/* The address of the callback whose callsite has the name handle |name|; 0: not known.  Slow. */
uint64_t d9__callsites_callback(uint32_t name);

uint64_t d9__callsites_overflows(void);

void d9__callsites_fork_prepare(void);
void d9__callsites_fork_parent(void);
