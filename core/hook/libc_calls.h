/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libc calls: what tables have in common that redirect calls of the C library, in whichever module they are made.
 *
 * A kind of calls is a table of its own (calls that block, calls that change who the process is, ...), so that none
 * outgrows D9__GOT_HOOKS_MAX and each has a switch of its own.  To add one:
 *
 *	static const struct d9__got_hook hooks[] = { D9__LIBC_HOOK(setuid), ... };
 *	static struct d9__got_table table = D9__LIBC_TABLE(hooks);
 *
 *	d9__libc_watch(&table);
 *
 * D9__GOT_TABLES_MAX tables may be installed at a time.  One more costs a pass over all modules at its installation, and
 * nothing later: a pass looks each name up in all tables.
 */

#pragma once

#include <stdbool.h>

#include "hook/got.h"

extern struct d9__images d9__libc_images;

/* For |skip|: the loader, and checkers' runtimes, which call libc in ways of their own. */
extern const char *const d9__libc_skip[];

/* { "setuid", hook_setuid, &real_setuid, ... }: slots that lead to what the program's scope gives for the name. */
#define D9__LIBC_HOOK(function)                                                                                        \
	{                                                                                                              \
		.name = #function, .replacement = (void *)hook_##function, .real = (void *)&real_##function,           \
		.place = D9__GOT_IN_OTHERS | D9__GOT_SCOPE                                                             \
	}

#define D9__LIBC_TABLE(all_hooks)                                                                                      \
	{                                                                                                              \
		.library = "libc", .images = &d9__libc_images, .hooks = (all_hooks),                                   \
		.n_hooks = sizeof(all_hooks) / sizeof((all_hooks)[0]), .reach = D9__GOT_ANY, .skip = d9__libc_skip     \
	}

/*
 * Does |address| lie in the program's own module?  Of a table: then libdial9 is linked in statically, and the engine leaves its
 * own module alone.  Of a function: the program has no slots that lead to it.
 */
bool d9__libc_is_out_of_reach(const void *address);

/* Install |table| where it is in reach; where it cannot be, its calls go on as they are. */
void d9__libc_watch(struct d9__got_table *table);
