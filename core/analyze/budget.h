/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Budget: how much memory a command may take for what traces and rings claim.  A few packed bytes can name millions
 * of tasks, names and modules: code that keeps something for each asks here first, and counts what it leaves out; every
 * command tells that count.  One budget for the program, since its memory is one; without a start it is not
 * limited.  Not thread-safe.
 *
 *     88 MiB, and twice the size of what is read
 *
 * The reader has a limit of its own: d9_reader_set_memory_limit().
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct d9__json;

enum d9__kept {
	D9__KEPT_NAMES,
	D9__KEPT_ENDS, /* of names that are too long */
	D9__KEPT_CALLBACKS,
	D9__KEPT_CLASSES, /* of distributions */
	D9__KEPT_TASKS,
	D9__KEPT_SPANS,
	D9__KEPT_STACKS,
	D9__KEPT_SYMBOLS,
	D9__KEPT_MODULES,
	D9__KEPT_FILES, /* with symbols */
	D9__KEPT_METADATA,
	D9__KEPT_MARKS, /* of a life */
	D9__KEPT_PROCESSES,
	D9__KEPT_SEGMENTS,
	D9__KEPT_BLOCKS, /* of memory that is not freed */
	D9__KEPT_CALLS,	 /* of callbacks, in a chart of time */
	D9__KEPT_ROWS,	 /* of tables */
	D9__KEPT_KINDS,
};

/* |input_bytes| are read. */
void d9__budget_start(uint64_t input_bytes);

/* Whether |bytes| more may be kept.  If not, one of |what| is left out. */
bool d9__budget_take(enum d9__kept what, size_t bytes);

/* |bytes| of what was taken are free again. */
void d9__budget_give(size_t bytes);

/* |n| of |what| are left out for another reason: there are more than anybody can use. */
void d9__budget_leave_out(enum d9__kept what, uint64_t n);

/* "12,345 tasks, 3 names", in new memory; NULL if nothing was left out, or out of memory. */
char *d9__budget_left_out(void);

/* "left_out": {"tasks": 12345, "names": 3} */
void d9__budget_json(struct d9__json *json);

/* The key of |what| in JSON, and how many of it are left out. */
const char *d9__budget_key(enum d9__kept what, uint64_t *n);
