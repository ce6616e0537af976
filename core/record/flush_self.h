/* SPDX-License-Identifier: Apache-2.0 */
/* State of the flush thread, and steps that a tick and requests take (flush_steps.c).  Flush thread only. */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "drain/dead_peers.h"
#include "drain/description.h"
#include "drain/drain.h"
#include "record/flush.h"
#include "record/jit_copy.h"
#include "record/open_calls.h"
#include "record/pace.h"
#include "record/pressure.h"
#include "record/process_state.h"
#include "record/stopped.h"
#include "segment/dump_tasks.h"
#include "segment/note_event.h"
#include "segment/writer.h"

struct d9__flush_self {
	struct d9__writer writer;
	struct d9__drain drain;
	struct d9__builder note;
	bool flight;    /* nothing is written unless asked for */
	uint32_t sealed; /* in flight mode: chunks sealed until the last tick */
	uint64_t loss_ns; /* likewise: when something was lost last */
	uint64_t lost_before, announced_ns; /* what had been lost when tasks were announced again */
	bool stillborn; /* no directory, and who started us wants no recorder without */
	bool dormant;   /* started disabled, and not enabled since: no directory yet */
	struct d9__description description;
	struct d9__dead_peers dead;
	struct d9__pace pace;
	struct d9__open_calls open;
	struct d9__process_state process;
	struct d9__stopped stopped;
	struct d9__pressure pressure;
	struct d9__jit_copy jit;
	struct d9__note_teller log;
	int state;
	bool stepped_back;
	int nice_before; /* stepped back */
	bool heard; /* some thread published something, ever */
	uint64_t second_ns, prefixes_ns; /* when the once-a-second work was done last */
	unsigned seconds;
	uint64_t tick_ns;   /* when the next tick is due */
	uint64_t looked_ns; /* at open calls */
	uint64_t source_ns; /* when the next source is due */
	uint64_t used_ns,
		used_at_ns; /* CPU time of the process at the latest tick, and when that was */
	uint64_t grow_ns;   /* the ring could not grow: when to try again */
};
extern struct d9__flush_self d9__flush_self;

/* Tell all threads that the recorder is in |state| of enum d9_recorder_state. */
void d9__flush_set_state(int state);

/* True if the recorder writes into a trace directory. */
bool d9__flush_wants_directory(void);

/* Try to open that. */
void d9__flush_open_directory(void);

/* Whether there is a place to write to; tries to make one when that is due. */
bool d9__flush_have_place(uint64_t now_ns);

/* Make the next try due now, because the obstacle of an earlier one may be gone. */
void d9__flush_retry_now(uint64_t now_ns);

/* Of the latest write that failed, negative errno; 0: none did. */
int d9__flush_last_error(void);

/* Drain the side rings, and all that was published so far; the first is a part of the second. */
void d9__flush_move_side_rings(void);
void d9__flush_drain(uint64_t now_ns);

/*
 * Write what was drained so far, and of the recorder's log what is settled, or with |all_of_log|
 * all.
 */
void d9__flush_commit(uint64_t now_ns);
void d9__flush_commit_with(bool all_of_log, uint64_t now_ns);

/* Everything that was published so far reaches the segment, which is sealed. */
void d9__flush_rotate(uint64_t now_ns);

/* Where |tasks| began is told in the segment.  0 or -errno. */
int d9__flush_announce(struct d9__dump_tasks *tasks, uint64_t ns, uint64_t now_ns);

/* Before a burst finds no chunk. */
void d9__flush_grow_ring(uint64_t now_ns);
