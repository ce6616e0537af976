/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open calls now: callbacks that have been running for long, by the ring alone: of a process that hangs, or did so when it
 * was killed.
 */

#pragma once

#include <stdint.h>

#include "base/time.h"
#include "watch/recorders.h"

struct d9__symbolizer;

#define D9__RUNNING_LONG_NS D9__SECOND_NS /* from here on it is worth a line */
#define D9__RUNNING_LEN	    256

struct d9__open_calls_now {
	const struct d9__ring_open *call; /* in the recorder's look */
	uint64_t for_ns;
	char name[D9__RUNNING_LEN / 4];	  /* the innermost callback of the program */
	char inside[D9__RUNNING_LEN / 4]; /* the library's callback that has called it, or "" */
};

/*
 * The calls of |recorder| that run for |least_ns| or more: until now, or until its process died.  |symbols| knows its
 * modules; NULL: names are as recorded.  How many, longest first.
 */
unsigned d9__open_calls_now(const struct d9__recorder_seen *recorder, struct d9__symbolizer *symbols, uint64_t least_ns,
			 struct d9__open_calls_now out[D9__RING_OPEN_MAX]);

/*
 * As d9__running_now() with D9__RUNNING_LONG_NS, with functions named from the ring's modules.  The
 * ring's owner chose these files, so another user's are read by root alone, in a child with that
 * user's rights.
 */
unsigned d9__open_calls_now_named(const struct d9__recorder_seen *recorder, struct d9__open_calls_now out[D9__RING_OPEN_MAX]);

/* "on_request 7.41 s in pause() (inside bufferevent read)". */
void d9__open_calls_now_text(const struct d9__open_calls_now *running, char buf[D9__RUNNING_LEN]);
