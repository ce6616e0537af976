/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Archive: the summaries of a listing's segments. `dial9 serve --summary` reads each segment once,
 * in a process of its own, and again only when it has changed.  The summaries are kept in the
 * budget's memory (analyze/budget.h) and added up for each question.
 */

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "serve/listing.h"

struct d9__archive;
struct event_base;

/* On |base|; |source| is borrowed.  NULL: out of memory. */
struct d9__archive *d9__archive_new(struct event_base *base, const struct d9__segment_source *source);

/* Take over the segments of |listing| and read new ones.  0 or -ENOMEM. */
int d9__archive_sync(struct d9__archive *archive, const struct d9__listing *listing);

/* Segments that are added up. */
struct d9__archive_scope {
	const char *const *processes; /* as the map names them */
	size_t n_processes;	      /* 0: of all */
	double from_ms, to_ms;	      /* since 1970; those that reach into it */
};

/* Fetch and read the segments in |scope| that are in a bucket. */
void d9__archive_want(struct d9__archive *archive, const struct d9__archive_scope *scope);

/* Free it, and end the processes that still read. */
void d9__archive_free(struct d9__archive *archive);
