/* SPDX-License-Identifier: Apache-2.0 */
/* Timeline parts: functions of a file timeline_*.c that another one calls, too. */

#pragma once

#include "analyze/loop_time.h"
#include "analyze/timeline.h"

/* timeline_calls.c */

/* End the stretch without a callback, from |worker|'s unpark or its last call up to |ns|. */
void d9__timeline_end_gap(struct d9__worker *worker, uint64_t ns);

/* timeline_waits.c */

/*
 * Divide the time that |worker|'s thread was ready without a CPU, as the recorder told it up to the
 * end of the time awake that is over: |most_ns| at most were in that, and the rest in waits before.
 * Returns the former.
 */
uint64_t d9__timeline_ready_awake(struct d9__worker *worker, uint64_t most_ns);

/* Count the time awake |awake|, as far as it is filled in, which ended at |ns|. */
void d9__timeline_account_awake(struct d9__worker *worker, uint64_t ns,
				struct d9__loop_awake awake);

/* Keep |worker|'s round up to |ns| if its calls alone made it the longest so far. */
void d9__timeline_note_round(struct d9__worker *worker, uint64_t ns);
