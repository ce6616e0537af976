/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dump: a window of the past as a trace of its own.  In flight mode from the ring, whose chunks stay
 * where they are; else from the segments, which are the past.  Flush thread.
 */

#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "segment/namespace.h"
#include "segment/segment.h"
#include "segment/writer.h"

#define D9__DUMP_ID_LEN 26

struct d9__dump_tasks;
struct d9__dump_job;

/* One dump: what is asked for, and what came of it. */
struct d9__dump {
	uint64_t asked_ns;  /* when */
	uint64_t last_ns;   /* how far back from then; 0: all there is */
	char dir[PATH_MAX]; /* absolute, made if it is missing; "": the recorder's own */
	const char *by;     /* who asked, for the metadata; static text */

	int err;
	char id[D9__DUMP_ID_LEN + 1]; /* sorts by time */
	/*
	 * Its file, or where its segments are if it is none of flight mode; "" if it is empty.  With |err|: the
	 * trace directory, if that is at fault and not |dir|.
	 */
	char path[PATH_MAX + D9__BOOT_ID_MAX + D9__SEGMENT_NAME_MAX];
	uint32_t segments;
	uint64_t events; /* 0: not counted */
	uint64_t bytes;
	uint64_t from_ns, to_ns; /* of its events */
	bool complete;           /* nothing was lost in it */
};

/* What a dump needs of the recorder that makes it. */
struct d9__dump_maker {
	struct d9__writer *own;  /* writes to the recorder's own directory, which is open if it has one */
	const struct d9_options *options;
	uint64_t loss_ns;        /* when something was lost last */
	int state;               /* enum d9_recorder_state */
	bool flight;             /* what it records is in the ring, else in segments */
	void (*keep_up)(void);   /* called often: what must not wait for the dump */
	void (*prepare)(void);   /* open the directory, if that was not possible so far */
	void (*seal)(void);      /* bring all that was recorded to disk, and begin a new segment */
	/* Write to the recorder's own trace what |tasks| lists, at |ns|, and seal it.  0 or -errno. */
	int (*announce)(struct d9__dump_tasks *tasks, uint64_t ns);
};

/* Where the window begins, in ns of CLOCK_MONOTONIC; 0: with the oldest there is. */
static inline uint64_t d9__dump_from(const struct d9__dump *dump)
{
	return dump->last_ns && dump->last_ns < dump->asked_ns ? dump->asked_ns - dump->last_ns : 0;
}

/* A new |dump->id|. */
void d9__dump_name(struct d9__dump *dump);

/* Write what the ring holds of the window to one segment.  |dump->err| tells. */
void d9__dump_ring(struct d9__dump *dump, const struct d9__dump_maker *maker);

/*
 * The same for a window that reaches into the future, in the recorder's own directory: what the ring holds of it is
 * written at once, and the rest as it comes, so that no event has to stay in the ring until the window closes.  What was
 * written stays if writing fails later.  NULL: |dump->err| tells, and nothing was written: it may be tried again.
 */
struct d9__dump_job *d9__dump_begin(struct d9__dump *dump, const struct d9__dump_maker *maker);

/* Write what came since.  Often enough for none of it to be overwritten.  False: |dump->err| tells, and only the end follows. */
bool d9__dump_go_on(struct d9__dump_job *job, const struct d9__dump_maker *maker);

/* Write the rest, and seal the segment.  |job| is gone. */
void d9__dump_end(struct d9__dump_job *job, const struct d9__dump_maker *maker);

/*
 * All events are in sealed segments of |maker->own|: link those that overlap the window, or copy
 * them where that is not possible.  |tasks| lists those that lived before they were sealed.
 */
void d9__dump_segments(struct d9__dump *dump, const struct d9__dump_maker *maker,
		       struct d9__dump_tasks *tasks);
