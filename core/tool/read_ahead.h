/* SPDX-License-Identifier: Apache-2.0 */
/* Read ahead: a trace's events, read by a thread of their own while others are looked at. */

#pragma once

#include <dial9/reader.h>

struct d9__progress;
struct d9__read_ahead;

/*
 * Begin with the first event of |reader|, which is the thread's until d9__read_ahead_end(); the
 * types of its events and the paths of its segments may be asked for at any time.  Where no thread
 * is to be had, the caller's own reads.  0 or -ENOMEM.
 */
int d9__read_ahead_begin(struct d9__read_ahead **out, struct d9_reader *reader);

/*
 * The next event, as d9__event_copy() has it, until the next call; draws progress.  NULL at the end
 * and on failure, with |*err| then.
 */
const struct d9_event *d9__read_ahead_next(struct d9__read_ahead *ahead,
					   struct d9__progress *progress, int *err);

/* The thread has ended, at the end of the trace or before it.  NULL is allowed. */
void d9__read_ahead_end(struct d9__read_ahead *ahead);
