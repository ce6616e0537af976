/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of a timeline: their pieces, and loops that ran inside of them. */
#include "config.h"

#include <string.h>

#include "analyze/timeline_parts.h"
#include "base/u64.h"
#include "base/zero.h"

/* Inside a library's callback, the user's function if most of the time went there. */
static const struct d9__callback *named_by(const struct d9__piece *piece)
{
	const struct d9__callback *callback = piece->task->callback;

	if (callback->internal && 2 * piece->inner.ns >= piece->end_ns - piece->start_ns &&
	    piece->inner.callback)
		return piece->inner.callback;
	return callback;
}

/*
 * Of calls before the first wait, or where an unpark was lost, the loop's own time tells nothing,
 * either.
 */
static void stayed(const struct d9__worker *worker, struct d9__callback *callback, uint64_t ns)
{
	if (worker->unpark.valid)
		d9__callback_stayed(callback, worker->number, ns);
}

void d9__piece_leave_users(struct d9__worker *worker, uint64_t ns)
{
	struct d9__piece *piece = &worker->piece;
	uint64_t stay_ns = ns - piece->users.since_ns;

	piece->users.ns += stay_ns;
	piece->users.told_ns += piece->told_ns - piece->users.told_since_ns;
	stayed(worker, piece->users.callback, stay_ns);
}

static int end_piece(struct d9__timeline *timeline, struct d9__worker *worker, uint64_t ns,
		     bool open_ended)
{
	struct d9__piece *piece = &worker->piece;
	size_t i = worker->n_recent++ % D9__WORKER_RECENT;

	piece->open = false;
	timeline->n_open--;
	timeline->open_sum -= worker->number;
	piece->task->running--;
	piece->open_ended = open_ended;
	piece->end_ns = ns;
	if (piece->users.open)
		d9__piece_leave_users(worker, ns);
	stayed(worker, piece->task->callback,
	       ns - piece->start_ns - d9__u64_min(ns - piece->start_ns, piece->users.ns));
	worker->open_ended += open_ended;
	worker->poll_ns += ns - piece->start_ns;
	worker->recent[i].start_ns = piece->start_ns;
	worker->recent[i].end_ns = ns;
	worker->recent[i].task = piece->task->id;
	worker->recent[i].taken_ns = 0;
	worker->recent[i].excused_ns =
		d9__kernel_backlog_call(&worker->natural, ns - piece->start_ns);
	worker->recent[i].callback = named_by(piece);
	worker->recent[i].depth = piece->task->call.depth;
	return timeline->on_piece ? timeline->on_piece(timeline->context, worker, piece) : 0;
}

const struct d9__worker *d9__timeline_only_open(const struct d9__timeline *timeline)
{
	return timeline->n_open == 1 ? timeline->items[timeline->open_sum] : NULL;
}

int d9__timeline_close(struct d9__timeline *timeline, struct d9__worker *worker, uint64_t ns)
{
	return worker->piece.open ? end_piece(timeline, worker, ns, true) : 0;
}

void d9__timeline_end_gap(struct d9__worker *worker, uint64_t ns)
{
	uint64_t from_ns =
		worker->piece.end_ns > worker->unpark.ns ? worker->piece.end_ns : worker->unpark.ns;

	if (!worker->unpark.valid || ns <= from_ns || ns - from_ns <= worker->gap.ns)
		return;
	worker->gap.from_ns = from_ns;
	worker->gap.ns = ns - from_ns;
}

/* Descriptors that one look finds ready are told so close to each other. */
#define ONE_LOOK_NS (100 * D9__US_NS)

/*
 * Whether the call that begins at |ns| became ready |delay_ns| ago, behind the first look that
 * |worker| took at its descriptors since its thread came back.  Looks that find nothing are not
 * told.
 */
static bool is_found_later(const struct d9__worker *worker, uint64_t ns, uint64_t delay_ns)
{
	return worker->unpark.valid && worker->unpark.ns >= worker->loop_time.outside_last_ns &&
	       delay_ns != UINT64_MAX && ns - delay_ns > worker->unpark.ns + ONE_LOOK_NS;
}

int d9__timeline_poll_start(struct d9__timeline *timeline, struct d9__worker *worker, uint64_t ns,
			    struct d9__traced_task *task, bool resumed, unsigned local_queue)
{
	int err = d9__timeline_close(timeline, worker, ns);

	d9__timeline_end_gap(worker, ns);
	if (!resumed && !task->callback->each_round)
		d9__returns_call(&worker->returns, task->reason, task->next_delay_ns,
				 is_found_later(worker, ns, task->next_delay_ns));
	d9__time_period_begin(&worker->period);
	if (worker->piece.task)
		worker->piece.task->pieces--;
	d9__zero(&worker->piece, sizeof(worker->piece));
	worker->piece.number = ++timeline->pieces;
	worker->piece.run = task->next_run;
	worker->piece.delay_ns = task->next_delay_ns;
	worker->piece.task = task;
	worker->piece.start_ns = ns;
	worker->piece.open = true;
	worker->piece.resumed = resumed;
	if (resumed && task->call.users_open) {
		worker->piece.users.open = task->call.users_open;
		worker->piece.users.since_ns = ns;
		worker->piece.users.callback = task->call.user;
		worker->piece.users.run = task->call.user_run;
	}
	timeline->n_open++;
	timeline->open_sum += worker->number;
	task->running++;
	task->pieces++;
	worker->polls++;
	worker->resumptions += resumed;
	worker->local_sum += local_queue;
	if (local_queue > worker->local_max)
		worker->local_max = local_queue;
	d9__starved_call(&worker->starved, task, ns, local_queue);
	return err;
}

/*
 * Instead of what ran in the loop that |task|'s call ran, the call itself is remembered, and that
 * the loop's waits were over for |taken_ns| before the thread had a CPU.  How deep loops lay in it.
 */
static unsigned swallow(struct d9__worker *worker, const struct d9__traced_task *task,
			uint64_t from_ns, uint64_t to_ns, uint64_t taken_ns)
{
	unsigned depth = 0;
	uint64_t n = worker->n_recent;

	for (uint64_t i = 0; i < n && i < D9__WORKER_RECENT; i++) {
		size_t at = (n - 1 - i) % D9__WORKER_RECENT;

		if (worker->recent[at].start_ns < from_ns)
			break;
		if (worker->recent[at].depth > depth)
			depth = worker->recent[at].depth;
		worker->recent[at].end_ns = worker->recent[at].start_ns;
		worker->recent[at].taken_ns = worker->recent[at].excused_ns = 0;
	}
	n = worker->n_recent++ % D9__WORKER_RECENT;
	memset(&worker->recent[n], 0, sizeof(worker->recent[n]));
	worker->recent[n].start_ns = from_ns;
	worker->recent[n].end_ns = to_ns;
	worker->recent[n].taken_ns = taken_ns < to_ns - from_ns ? taken_ns : to_ns - from_ns;
	worker->recent[n].task = task->id;
	worker->recent[n].callback = task->call.looper;
	worker->recent[n].depth = depth + 1;
	return depth + 1;
}

void d9__timeline_nested(struct d9__worker *worker, struct d9__traced_task *task, uint64_t ns)
{
	struct d9__call *call = &task->call;
	uint64_t gap_ns = ns - task->last_end_ns, told_ns, taken_ns;
	unsigned depth;

	if (call->worker != worker || ns <= task->last_end_ns)
		return;
	told_ns = worker->poll_ns - call->left.poll_ns + worker->nested_ns - call->left.nested_ns;
	worker->nested_ns += told_ns < gap_ns ? gap_ns - told_ns : 0;
	call->nested_ns += gap_ns;
	call->nested_parked_ns += worker->parked_ns - call->left.parked_ns;
	taken_ns = worker->wait_sum_ns - call->left.taken_ns;
	call->nested_taken_ns += taken_ns;
	call->nested_calls += worker->polls - call->left.polls;
	call->looper = call->users_open ? call->user : task->callback;
	depth = swallow(worker, task, task->last_end_ns, ns, taken_ns);
	if (depth > call->depth)
		call->depth = depth;
}

int d9__timeline_poll_end(struct d9__timeline *timeline, struct d9__worker *worker, uint64_t ns)
{
	return worker->piece.open ? end_piece(timeline, worker, ns, false) : 0;
}

void d9__timeline_taken(struct d9__worker *worker, uint64_t task, uint64_t taken_ns)
{
	size_t at = (worker->n_recent - 1) % D9__WORKER_RECENT;
	uint64_t whole_ns;

	worker->unpark.taken_ns += taken_ns;
	if (worker->n_recent == 0 || worker->recent[at].task != task)
		return;
	whole_ns = worker->recent[at].end_ns - worker->recent[at].start_ns;
	worker->recent[at].taken_ns = taken_ns < whole_ns ? taken_ns : whole_ns;
	worker->recent[at].excused_ns =
		d9__kernel_backlog_taken(&worker->natural, whole_ns, worker->recent[at].excused_ns,
					 worker->recent[at].taken_ns);
}
