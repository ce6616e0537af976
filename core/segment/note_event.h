/* SPDX-License-Identifier: Apache-2.0 */
/* Note event: lines of the recorder's log as events of the trace. */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ring/note.h"
#include "segment/builder.h"

/* How far the trace is.  Flush thread; zeros at the start. */
struct d9__note_teller {
	uint32_t next;	/* lines below are in the trace */
	uint32_t added; /* those below are in the open segment, perhaps not yet written */
	uint64_t gap;	/* number + 1 of a line that was not complete at the last look */
};

/*
 * Make |out| a batch with the lines from |teller->next| on, one RecorderLogEvent each, and one that
 * says how many were overwritten before.  A line that is being written gets time until the next
 * call, unless |all|.
 */
void d9__note_events(struct d9__note_teller *teller, struct d9__builder *out, bool all);

/* |out| was written: those lines are told.  Otherwise the next call makes them again. */
void d9__note_events_told(struct d9__note_teller *teller);

/* Append to |out| the lines of |copy| that are neither below |from| nor before |from_ns|. */
void d9__note_events_of(const struct d9__notes *copy, uint32_t from, uint64_t from_ns,
			struct d9__builder *out);
