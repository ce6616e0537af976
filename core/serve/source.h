/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source: a place with segments, as the functions that the server needs of it: a local directory,
 * or a bucket.  None of them waits for a network: a remote place is listed and fetched by another
 * process, and a callback tells the end.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct d9__json;
struct event_base;

/* The facts that a name tells before anything is read; it lives as long as the source. */
struct d9__source_facts {
	const char *service, *host;
	const char *process; /* the recording that it is part of, for the page */
	int64_t from_ms, to_ms;
	uint64_t segments;	 /* of an hour's summary; 0: it is a segment itself */
	uint64_t missing, bytes; /* of an hour, as its key has it */
	int64_t worst_ms;	 /* below 0: not told */
	bool told;	  /* by another: a segment by the summary of its hour, or that by segments */
};

struct d9__source_segment {
	const char *name; /* below the place: "web-1/trace.0.bin" */
	uint64_t bytes;
	int64_t modified_ns; /* since 1970 */
	bool active;	     /* it is still being written */
	const struct d9__source_facts *facts; /* NULL: only its content tells */
};

/* Called with NULL when the awaited data is there; else |why| tells why it never will be. */
typedef void d9__source_ready(void *context, const char *why);

/* The search. */
struct d9__source_scope {
	const char *const *processes; /* as facts call them */
	size_t n_processes;	      /* 0: of all */
	const char *const *names;     /* of segments */
	size_t n_names;
	const char *dump; /* the id of one; NULL: none */
	double from_ms, to_ms;
	bool segments; /* each segment, not only the summaries */
};

struct d9__segment_source {
	void *context; /* owned by free() */
	bool whole;    /* it is more than its segments, even than a single one */

	/* Tell |take| of every segment, in their natural order; |*left_out|: something there is not
	 * given away.  0 or -errno, also of |take|. */
	int (*list)(void *context,
		    int (*take)(void *listing, const struct d9__source_segment *segment),
		    void *listing, bool *left_out);

	/* A descriptor of the segment |name|, which was listed, for the caller to close; or -errno.
	 */
	int (*open)(void *context, const char *name);

	/* A path by which another process of this program can read |name|, or with "" the whole, in new memory; NULL: out
	 * of memory. */
	char *(*path)(void *context, const char *name);

	void (*free)(void *context);

	/* The rest is of a place that is far away, all of it or nothing. */

	/* Work on |base| from now on.  0 or -ENOMEM. */
	int (*attach)(void *context, struct event_base *base);

	/* Return a number that changes when list() would list something else. */
	uint64_t (*version)(void *context);

	/*
	 * Look for the segments in |scope| and call |ready| once, unless it is NULL: perhaps at
	 * once.
	 */
	void (*look)(void *context, const struct d9__source_scope *scope, d9__source_ready *ready, void *ready_context);

	/* Fetch |name|, which was listed, so that open() and path() work, and call |ready| likewise. */
	void (*fetch)(void *context, const char *name, d9__source_ready *ready, void *ready_context);

	/* Answer every waiting request: the source ends. */
	void (*end)(void *context);

	/* Drop the requests of |ready_context|, which is about to be freed. */
	void (*forget)(void *context, void *ready_context);

	/* Whether |name| belongs to the dump |id|, which was looked for. */
	bool (*is_of_dump)(void *context, const char *id, const char *name);

	/* Write "place": its address, its fault, and what is left out. */
	void (*tell)(void *context, struct d9__json *json);
};

struct d9__bucket_options;
