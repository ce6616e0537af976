/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over all modules: what hook/got.c decides when to make. */

#pragma once

#include "hook/got.h"

#define D9__GOT_TABLES_MAX 16

/* All functions here: under the patch lock. */

/* Make |table|'s names findable; once. */
void d9__got_pass_index(struct d9__got_table *table);

/*
 * Judge every word that may lead to a hook of |tables|, a list, and swap those that should be.
 * True if something changed or is to be looked at again soon.
 */
bool d9__got_pass_make(struct d9__got_table *tables);

/* Read all modules anew for |table| in the next pass: other real functions are known. */
void d9__got_pass_forget(struct d9__got_table *table);

/* Put the real functions of |table| back, and forget it. */
void d9__got_pass_restore(struct d9__got_table *table);

/* The loader's counters of loaded and unloaded modules at the last pass.  Without the lock, too. */
struct d9__loader_counters {
	uint64_t adds, subs;
};
struct d9__loader_counters d9__got_pass_counters(void);

/* The adapter reads its pointer with its own function type. */
typedef void *d9__any_function __attribute__((may_alias));

static inline void *d9__got_real(const struct d9__got_hook *hook)
{
	/* acquire: pairs with the release in d9__got_set_real() */
	return __atomic_load_n((d9__any_function *)hook->real, __ATOMIC_ACQUIRE);
}

static inline void d9__got_set_real(const struct d9__got_hook *hook, void *function)
{
	/* release: before a slot leads anyone to the replacement */
	__atomic_store_n((d9__any_function *)hook->real, function, __ATOMIC_RELEASE);
}
