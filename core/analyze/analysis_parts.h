/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the parts of an analysis share. */

#pragma once

#include "analyze/analysis.h"
#include "read/known_number.h"

/* analysis_calls.c: the timeline's on_piece(); |context| is the analysis. */
int d9__analysis_piece(void *context, struct d9__worker *worker, const struct d9__piece *piece);

/* Tell on_call of the calls that go on when the trace ends. */
void d9__analysis_tell_unended(const struct d9__analysis *a);

/* The call of |task| is over: count it.  0 or -ENOMEM. */
int d9__analysis_finish_call(struct d9__analysis *a, struct d9__traced_task *task);

/* analysis_open.c: the recorder saw a call that is open.  0 or -ENOMEM. */
int d9__analysis_last_sign(struct d9__analysis *a, const struct d9_event *event);
void d9__analysis_stuck(struct d9__analysis *a, const struct d9_event *event);

/* At the end of the trace, end each open call at its last LastSignEvent.  Returns 0 or -ENOMEM. */
int d9__analysis_close_open(struct d9__analysis *a);

/* analysis_events.c: take |event|, which has a time or needs none.  0 or -ENOMEM. */
int d9__analysis_dispatch(struct d9__analysis *a, const struct d9_event *event);

/* d9__known_u64() of a field that has 32 bits, such as a thread's id; a longer value counts as
 * absent. */
static inline uint32_t d9__analysis_u32(const struct d9_event *event, unsigned k, uint32_t fallback)
{
	uint64_t value = d9__known_u64(event, k, fallback);

	return value > UINT32_MAX ? fallback : (uint32_t)value;
}

/* ---- analysis_time.c ---- */

/* A BlockingCallEvent of the call that is open.  0 or -ENOMEM. */
int d9__analysis_told(struct d9__analysis *a, const struct d9_event *event);

/*
 * How long the call of a BlockingCallEvent waited for a lock whose holder had no CPU, for most of
 * the time: as large a part of it as of what is known of the holder.
 */
uint64_t d9__analysis_held_up_ns(const struct d9_event *event);

/* An OffCpuEvent of |task|'s call, which ended just now: of it blocked, and ready without a CPU. */
void d9__analysis_read(const struct d9__traced_task *task, const struct d9_event *event, uint64_t blocked_ns,
		       uint64_t taken_ns);

/*
 * |worker|'s piece ended, and its call counts it: where its time went.  Of a long one, and of the last of a call that
 * ran a loop, a reading follows.  0 or -ENOMEM.
 */
int d9__analysis_account(struct d9__worker *worker, const struct d9__piece *piece);

/* ---- analysis_state.c ---- */

/* Take |event| if it is one of those that the recorder's thread writes.  0 or -ENOMEM. */
int d9__analysis_state(struct d9__analysis *a, const struct d9_event *event);

/* An OffCpuEvent has the thread's own figures of |call|, which has ended. */
void d9__analysis_figures(struct d9__call *call, const struct d9_event *event);

/* |call|, which was long, is over and counts as |culprit|'s: where it slept, what its thread used. */
void d9__analysis_inside(const struct d9__call *call, struct d9__callback *culprit);

/* |task| was made just now. */
void d9__analysis_made(struct d9__analysis *a, const struct d9__traced_task *task);
