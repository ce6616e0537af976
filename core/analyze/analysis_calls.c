/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of callbacks: the pieces of polls added up, and the long ones kept. */
#include "config.h"

#include <errno.h>

#include "analyze/analysis_parts.h"

static struct d9__callback *culprit_of(const struct d9__task *task)
{
	const struct d9__call *call = &task->call;

	if (task->callback->internal && call->inner && 2 * call->inner_ns >= call->total_ns)
		return call->inner;
	return task->callback;
}

int d9__analysis_finish_call(struct d9__analysis *a, struct d9__task *task)
{
	struct d9__call *call = &task->call;
	int err;

	if (call->pieces == 0)
		return 0;
	err = d9__callback_end(task->callback, call->total_ns);
	if (!err)
		err = d9__histogram_add(&call->worker->calls, call->total_ns);
	task->callback->open_ended += call->open_ended;
	if (call->stall) {
		struct d9__callback *culprit = culprit_of(task);

		call->stall->culprit = culprit;
		call->stall->culprit_ns = culprit == task->callback ? call->total_ns
								   : call->inner_ns;
		if (d9__stall_is_blocked(call->stall)) {
			culprit->blocked_calls++;
			culprit->blocked_ns += call->stall->blocked_ns;
		}
		d9__callback_keep_stall(culprit, call->stall);
		d9__stalls_keep(&a->stalls, call->stall);
		d9__stall_unref(call->stall);
	}
	*call = (struct d9__call){ 0 };
	return err;
}

static int begin_stall(struct d9__worker *worker, struct d9__task *task)
{
	struct d9__stall *stall = d9__stall_new();

	if (!stall)
		return -ENOMEM;
	stall->callback = stall->culprit = task->callback;
	stall->task = task->id;
	stall->worker = worker->id;
	stall->start_ns = task->call.start_ns;
	task->call.stall = stall;
	d9__worker_add_stall(worker, stall);
	return 0;
}

static void update_stall(struct d9__stall *stall, struct d9__worker *worker,
			 const struct d9__call *call, uint64_t end_ns)
{
	stall->end_ns = end_ns;
	stall->total_ns = stall->culprit_ns = call->total_ns;
	stall->pieces = call->pieces;
	stall->on_samples = call->on_samples;
	stall->off_samples = call->off_samples;
	stall->span = call->span;
	stall->span_ns = call->span_ns;
	if (end_ns > worker->stalls_end_ns)
		worker->stalls_end_ns = end_ns;
}

static void add_piece(struct d9__call *call, struct d9__worker *worker,
		      const struct d9__piece *piece)
{
	if (call->pieces++ == 0)
		call->start_ns = piece->start_ns;
	call->worker = worker;
	call->total_ns += piece->end_ns - piece->start_ns;
	call->open_ended |= piece->open_ended;
	call->on_samples += piece->on_samples;
	call->off_samples += piece->off_samples;
	if (piece->inner_ns > call->inner_ns) {
		call->inner = piece->inner;
		call->inner_ns = piece->inner_ns;
	}
	if (piece->span_ns > call->span_ns) {
		call->span = piece->span;
		call->span_ns = piece->span_ns;
	}
}

int d9__analysis_piece(void *context, struct d9__worker *worker, const struct d9__piece *piece)
{
	struct d9__analysis *a = context;
	struct d9__task *task = piece->task;

	task->last_end_ns = piece->end_ns;
	if (!piece->resumed && d9__analysis_finish_call(a, task))
		return -ENOMEM;
	if (!piece->resumed)
		d9__rounds_call(worker, piece);
	add_piece(&task->call, worker, piece);
	d9__spans_poll_end(&a->spans, piece);
	if (task->call.total_ns < D9__STALL_NS)
		return 0;
	if (!task->call.stall && begin_stall(worker, task))
		return -ENOMEM;
	update_stall(task->call.stall, worker, &task->call, piece->end_ns);
	return 0;
}
