/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind tables: where executable memory is, and the unwind rows of all loaded modules, for
 * handlers to look addresses up in.
 *
 * The flush thread makes them and publishes them as versions.  A version never changes: when
 * modules come or go there is a new one, and the old one is freed long after no handler can be
 * using it any more.  The rows of a module are made once and shared by all versions.
 *
 * A version has the executable segments of modules, and the executable memory that no module has
 * (of a compiler at run time), for which the flush thread reads the kernel's list of mappings:
 * after a look-up has found an address nowhere, at most once a second.
 *
 * Rows are made once something wants them, for a start takes a third longer with them: of all
 * modules until they take up 8 MiB; of further modules when a sample hits them; 32 MiB is the
 * limit.  On machines other than x86-64 there are no rows.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sample/unwind_row.h"

#if defined(__x86_64__)
#define D9__UNWIND_TABLES 1
#else
#define D9__UNWIND_TABLES 0
#endif

struct d9__unwind_table; /* one version */

/* For status and tests. */
struct d9__unwind_figures {
	uint64_t version;   /* number of the newest; 0: none was published */
	size_t n_modules;   /* in it */
	size_t n_others;    /* ranges of executable memory that no module has */
	size_t n_waiting;   /* those of them whose rows are made when a sample hits them */
	size_t n_refused;   /* those whose rows would be over the limit */
	size_t n_rows;      /* in memory, old versions included */
	size_t n_retired;   /* old versions */
};

/*
 * Bring the tables up to date: the first call makes them; later ones look whether modules came or went, or
 * samples hit a module that has no rows yet, or an address that is nowhere, and mostly find nothing to do.  |now_ns| is
 * CLOCK_MONOTONIC.  0 or -ENOMEM; the last version then stays.
 *
 * On the flush thread: it takes the loader's lock.
 */
int d9__unwind_tables_refresh(uint64_t now_ns);

/*
 * Refresh the tables on a thread of the program that needs them before the flush thread's first tick.  While one is at it, others
 * find nothing to do; in a forked child none does anything where d9__modules_may_walk() is false.  Not under a lock of the program.
 */
int d9__unwind_tables_begin(uint64_t now_ns);

/*
 * Publish that there are no tables.  What was there is freed by later refreshes, if the recorder starts again,
 * or by d9__unwind_tables_release().  Flush thread only.
 */
void d9__unwind_tables_stop(uint64_t now_ns);

/* Free everything.  Only when no handler can be running any more.  Flush thread, or any when that has ended. */
void d9__unwind_tables_release(void);

/*
 * Have the next refresh make rows.  Without them walks end at the innermost frame.  Any thread;
 * async-signal-safe.
 */
void d9__unwind_tables_want_rows(void);

/* Whether rows were made; true where there never are any.  Async-signal-safe. */
bool d9__unwind_tables_have_rows(void);

/* Around a fork.  The child has the parent's tables, which describe it as well; it may refresh them. */
void d9__unwind_tables_fork_prepare(void);
void d9__unwind_tables_fork_parent(void);
void d9__unwind_tables_fork_child(void);

void d9__unwind_tables_figures(struct d9__unwind_figures *figures);

/* The newest version, or NULL.  Valid for at least 10 s.  Async-signal-safe. */
const struct d9__unwind_table *d9__unwind_table_now(void);

/* Its number: never 0, never the same for two versions. */
uint64_t d9__unwind_table_number(const struct d9__unwind_table *table);

/*
 * True if |pc| is in executable memory, and |*row| is its row then, or NULL: it has none, or they are not made yet.
 * The flush thread is asked to make them, or to look for the memory.  Async-signal-safe.
 */
bool d9__unwind_table_find(const struct d9__unwind_table *table, uintptr_t pc, const struct d9__unwind_row **row);
