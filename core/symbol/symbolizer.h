/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbolizer: from the addresses of a recorded process to functions and lines, by the binaries on this machine.
 *
 *	struct d9__symbolizer *symbolizer;
 *	struct d9__frames frames;
 *
 *	d9__symbolizer_open(NULL, &symbolizer);
 *	while (there are events)
 *		d9__symbolizer_learn(symbolizer, event);
 *	d9__symbolizer_resolve(symbolizer, address, event->timestamp_ns, D9__EXECUTING, &frames);
 *	for (size_t i = 0; i < frames.n; i++)
 *		puts(frames.items[i].function);
 *	d9__symbolizer_close(symbolizer);
 *
 * It learns from two events of the trace.  A ModuleEvent says which file was mapped where, and when: the file is looked
 * for at that path, its debug information as debug_files.h says.  A file with another build-id than the recorded one
 * is named (d9__symbolizer_problem()) and never used.  A SymbolTableEntry is an answer that is in the trace already.
 *
 * Nothing is opened before the first question about its module, and every answer is kept.  Not thread-safe.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dial9/reader.h>

#include "symbol/binaries.h"
#include "symbol/module_map.h"
#include "symbol/symbol.h"

struct d9__symbolizer;

struct d9__symbolizer_options {
	struct d9__debug_places places;
	/*
	 * A directory for answers to be kept in from run to run, by build-id: it is this user's, and no other user
	 * writes into it.  -1: none.  Borrowed.
	 */
	int cache;
};

/* An answer. */
struct d9__frames {
	const struct d9__symbol *items; /* the innermost first, the real function last; borrowed until the next question */
	size_t n;			/* at least 1, after a success */
	bool known; /* else the only frame's function says where the address lies: "memcached+0x1a2b0" */
};

/*
 * The one of |frames| to show where there is room for one: the function that was meant by a pointer to it; of code, the one
 * in which that code was written.
 */
static inline const struct d9__symbol *d9__frames_one(const struct d9__frames *frames, enum d9__address_role role)
{
	return &frames->items[role == D9__ENTRY ? frames->n - 1 : 0];
}

#define D9__NO_TIME (UINT64_MAX - 1) /* for addresses without a time: the latest module there */

/* |options| NULL: no other places, no network, nothing is kept.  0 or -ENOMEM. */
int d9__symbolizer_open(const struct d9__symbolizer_options *options, struct d9__symbolizer **out);

/* Keeps the answers for the next run, if there is a directory for them.  NULL is allowed. */
void d9__symbolizer_close(struct d9__symbolizer *symbolizer);

/* Take |event| if it tells of a module or a symbol; no |symbolizer|, nothing to do.  0 or -ENOMEM. */
int d9__symbolizer_learn(struct d9__symbolizer *symbolizer, const struct d9_event *event);

/*
 * Functions that were compiled while the process ran, for addresses in no module: if |event| tells the process's pid,
 * they are read from perf-PID.map beside the segment |path|, a copy of what the runtime wrote to /tmp.  Once a process; that
 * there is no such file is no error.  0 or -ENOMEM.
 */
int d9__symbolizer_learn_jit(struct d9__symbolizer *symbolizer, const struct d9_event *event, const char *path);

/*
 * Find the functions at |address| of the process, which was met there at |ns|.  Rows of the trace with a position count
 * first, then the module that was mapped there, then rows without, then JIT maps.  |*out| is always something to show.
 */
void d9__symbolizer_resolve(struct d9__symbolizer *symbolizer, uint64_t address, uint64_t ns,
			    enum d9__address_role role, struct d9__frames *out);

/*
 * Where |text|, |len| bytes of the form "memcached+0x1a2b0", lay in the process: at that address rows name it.  0: it has
 * not that form, or no module of that name is known.
 */
uint64_t d9__symbolizer_address(const struct d9__symbolizer *symbolizer, const char *text, size_t len);

/*
 * As d9__symbolizer_resolve(), for |text|, |len| bytes of the form "memcached+0x1a2b0", as spawn locations have
 * it: the binary counts first, then rows.  false, with |*out| all zero, if it has not that form or no module of that
 * name is known.
 */
bool d9__symbolizer_resolve_name(struct d9__symbolizer *symbolizer, const char *text, size_t len,
				 enum d9__address_role role, struct d9__frames *out);

/* The function alone, or NULL if it is not known; it lives as long as |symbolizer|, which may be NULL. */
const char *d9__symbolizer_function(struct d9__symbolizer *symbolizer, const char *text, size_t len,
				    enum d9__address_role role);

/* Line |i| of what went wrong so far: files refused or missing, one sentence each with the path; NULL after the last. */
const char *d9__symbolizer_problem(const struct d9__symbolizer *symbolizer, size_t i);

/* Where the module lay that held |address| at |ns|, and its file; NULL: none is known.  Until the next event is learnt. */
const struct d9__stay *d9__symbolizer_stay(struct d9__symbolizer *symbolizer, uint64_t address, uint64_t ns,
					   const struct d9__binary **binary);

/* The files that were asked of, for summaries. */
const struct d9__binaries *d9__symbolizer_binaries(const struct d9__symbolizer *symbolizer);
