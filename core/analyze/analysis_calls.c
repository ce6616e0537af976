/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of callbacks: the pieces of polls added up, and the long ones kept. */
#include "config.h"

#include <errno.h>

#include "analyze/analysis_parts.h"
#include "base/zero.h"

/* Time of the task's callback without the functions of the program that it called. */
static uint64_t own_part(const struct d9__call *call)
{
	return call->total_ns > call->users_ns ? call->total_ns - call->users_ns : 0;
}

static uint64_t own_told(const struct d9__call *call)
{
	return call->told_ns > call->users_told_ns ? call->told_ns - call->users_told_ns : 0;
}

/*
 * Find the callback to which the long call belongs: a function that the library called in it, if
 * that has half of it, or more than the library has for itself, however often it was called.
 */
static struct d9__callback *find_culprit(const struct d9__traced_task *task)
{
	const struct d9__call *call = &task->call;
	struct d9__stall *stall = call->stall;
	struct d9__callback *culprit = task->callback;
	struct d9__off_part all = { .ns = call->total_ns,
				    .told_ns = call->told_ns,
				    .slept_ns = stall->blocked_ns };
	struct d9__off_part part = all;

	if (culprit->internal && call->inner.callback && call->users_ns) {
		if (2 * call->inner.ns >= call->total_ns || call->inner.ns > own_part(call)) {
			culprit = call->inner.callback;
			stall->culprit_runs = call->inner.runs;
			part.ns = call->inner.ns < all.ns ? call->inner.ns : all.ns;
			part.told_ns = call->inner.told_ns;
		} else {
			part.ns = own_part(call);
			part.told_ns = own_told(call);
		}
		d9__off_part(&all, &part);
	}
	stall->culprit_ns = part.ns;
	stall->others_slept_ns = all.slept_ns > part.slept_ns ? all.slept_ns - part.slept_ns : 0;
	stall->culprit = culprit;
	return culprit;
}

/* The kernel took from the callbacks in |call|, from |culprit| as large a part as it has of it. */
static void take_from(struct d9__callback *callback, struct d9__callback *culprit,
		      const struct d9__stall *stall)
{
	uint64_t taken_ns = stall->culprit_ns - d9__stall_own_ns(stall);

	if (taken_ns > stall->run_queue_ns)
		taken_ns = stall->run_queue_ns;
	culprit->taken_ns += taken_ns;
	callback->taken_ns += stall->run_queue_ns - taken_ns;
}

/* Without what the kernel took. */
static void ran_loop(const struct d9__call *call)
{
	uint64_t taken_ns = call->nested_taken_ns, own_ns = call->total_ns;

	if (taken_ns > call->nested_parked_ns)
		taken_ns = call->nested_parked_ns;
	if (call->stall)
		own_ns = d9__stall_left_ns(call->stall, own_ns);
	d9__callback_ran_loop(call->looper, own_ns + call->nested_ns - taken_ns, call->nested_ns - taken_ns,
			      call->nested_parked_ns - taken_ns, call->depth);
}

static void tell_call(const struct d9__analysis *a, const struct d9__traced_task *task)
{
	const struct d9__call *call = &task->call;
	struct d9__off_part all = { .ns = call->total_ns,
				    .told_ns = call->told_ns,
				    .slept_ns = call->slept_ns,
				    .ready_ns = call->ready_ns };
	struct d9__off_part own = { .ns = own_part(call), .told_ns = own_told(call) };
	struct d9__call_end end = {
		.callback = task->callback,
		.worker = call->worker->id,
		.task = task->id,
		.run = call->run,
		.piece = call->piece,
		.start_ns = call->start_ns,
		.ns = own_part(call),
		.end_ns = call->start_ns + call->total_ns + call->nested_ns,
		.delay_ns = call->delay_ns,
		.on_samples = call->on_samples - call->users_on,
		.off_samples = call->off_samples - call->users_off,
		.open_ended = call->open_ended,
		.read = call->read && (!call->users_ns || own_part(call) >= D9__STALL_NS),
		.stall = call->users_ns ? NULL : call->stall,
	};

	d9__off_part(&all, &own);
	end.blocked_ns = own.slept_ns;
	end.ready_ns = own.ready_ns;
	a->on_call.take(a->on_call.context, &end);
}

void d9__analysis_tell_unended(const struct d9__analysis *a)
{
	for (size_t i = 0; i < a->timeline.n && a->on_call.take_unended; i++) {
		const struct d9__worker *worker = a->timeline.items[i];
		const struct d9__piece *piece = &worker->piece;

		/* Of one that goes on the pieces before have been told. */
		if (piece->open && !piece->resumed)
			a->on_call.take_unended(
				a->on_call.context,
				&(struct d9__call_end) {
					.callback = piece->task->callback,
					.worker = worker->id,
					.task = piece->task->id,
					.run = piece->run,
					.piece = piece->number,
					.start_ns = piece->start_ns,
					.delay_ns = piece->delay_ns,
					.on_samples = piece->on_samples - piece->users.on_samples,
					.off_samples =
						piece->off_samples - piece->users.off_samples });
	}
}

/* |culprit|'s call was long: note whose it was. */
static void vote(struct d9__callback *culprit, const struct d9__traced_task *task)
{
	const struct d9__call *call = &task->call;
	uint64_t ns = d9__stall_own_ns(call->stall);

	culprit->slow.ns += ns;
	culprit->slow.n++;
	d9__vote_add(&culprit->slow.worker, call->worker->id, ns);
	if (!d9__vote_add(&culprit->slow.task, task->id, ns))
		return;
	culprit->slow.fd = task->fd;
	culprit->slow.of = task->callback;
}

int d9__analysis_finish_call(struct d9__analysis *a, struct d9__traced_task *task)
{
	struct d9__call *call = &task->call;
	uint64_t own_ns = call->total_ns;
	int err;

	if (call->pieces == 0)
		return 0;
	if (call->stall)
		own_ns = d9__stall_left_ns(call->stall, own_ns);
	/* The library's callback keeps its own part: the program's functions inside it are counted under their own names. */
	err = d9__callback_end(task->callback, own_part(call));
	if (!err)
		err = d9__histogram_add(&call->worker->calls, call->total_ns);
	if (!err)
		err = d9__histogram_add(&call->worker->own_calls, own_ns);
	if (!err)
		err = d9__shape_add(task->callback, call->number,
				    call->stall ? d9__stall_own_ns(call->stall) : call->total_ns);
	/* The longest run of the function that has most of the call has its own shape in time. */
	if (!err && call->stall && call->inner.longest_ns >= D9__STALL_NS)
		err = d9__shape_add(call->inner.callback, call->inner.longest,
				    d9__stall_left_ns(call->stall, call->inner.longest_ns));
	task->callback->open_ended += call->open_ended;
	if (call->depth)
		ran_loop(call);
	/* The thread's own figures are of the last piece alone, and in a sandbox there are none. */
	if (call->stall && (call->pieces > 1 || !a->off_cpu_seen) && call->waits_ns > call->stall->blocked_ns)
		call->stall->blocked_ns = call->waits_ns;
	if (a->on_call.take)
		tell_call(a, task);
	if (call->stall) {
		struct d9__callback *culprit = find_culprit(task);

		if (!err && d9__stall_is_blocked(call->stall))
			err = d9__histogram_add(&culprit->blocked, d9__stall_slept_ns(call->stall));
		if (!err)
			err = d9__histogram_add(&culprit->own, d9__stall_own_ns(call->stall));
		if (!err)
			err = d9__pauses_add(&a->pauses, call->stall, call->number);
		culprit->bursts += call->stall->culprit_runs > 1;
		take_from(task->callback, culprit, call->stall);
		d9__analysis_inside(call, culprit);
		vote(culprit, task);
		d9__callback_keep_stall(culprit, call->stall);
		culprit->behind_ns += call->stall->behind_ns;
		if (call->total_ns >= D9__STALL_NS)
			d9__stalls_keep(&a->stalls, call->stall);
		d9__stall_unref(call->stall);
	}
	d9__zero(call, sizeof(*call));
	return err;
}

static int begin_stall(struct d9__worker *worker, struct d9__traced_task *task)
{
	struct d9__stall *stall = d9__stall_new();

	if (!stall)
		return -ENOMEM;
	stall->callback = stall->culprit = task->callback;
	stall->task = task->id;
	stall->culprit_runs = 1;
	stall->worker = worker->id;
	stall->start_ns = task->call.start_ns;
	task->call.stall = stall;
	d9__worker_add_stall(worker, stall);
	return 0;
}

static void update_stall(struct d9__stall *stall, struct d9__worker *worker,
			 const struct d9__call *call, uint64_t end_ns, uint64_t period_ns)
{
	stall->end_ns = end_ns;
	stall->total_ns = stall->culprit_ns = call->total_ns;
	stall->pieces = call->pieces;
	stall->on_samples = call->on_samples;
	stall->sampled_ns = call->on_samples * period_ns;
	stall->off_samples = call->off_samples;
	stall->off_stack = call->off_stack;
	stall->span = call->span;
	stall->span_ns = call->span_ns;
	stall->nested_ns = call->nested_ns;
	stall->nested_parked_ns = call->nested_parked_ns;
	stall->nested_calls = call->nested_calls;
	stall->depth = call->depth;
	if (end_ns > worker->stalls_end_ns)
		worker->stalls_end_ns = end_ns;
}

static void add_inner(struct d9__inner *inner, const struct d9__inner *more)
{
	if (inner->callback != more->callback) {
		if (more->ns > inner->ns)
			*inner = *more;
		return;
	}
	inner->runs += more->runs;
	inner->ns += more->ns;
	inner->told_ns += more->told_ns;
	if (more->longest_ns > inner->longest_ns) {
		inner->longest_ns = more->longest_ns;
		inner->longest = more->longest;
	}
}

static void add_piece(struct d9__call *call, struct d9__worker *worker,
		      const struct d9__piece *piece)
{
	if (call->pieces++ == 0) {
		call->start_ns = piece->start_ns;
		call->number = piece->task->next_number;
		call->run = piece->run;
		call->piece = piece->number;
		call->delay_ns = piece->delay_ns;
	}
	call->worker = worker;
	call->total_ns += piece->end_ns - piece->start_ns;
	call->left.poll_ns = worker->poll_ns;
	call->left.nested_ns = worker->nested_ns;
	call->left.parked_ns = worker->parked_ns;
	call->left.taken_ns = worker->wait_sum_ns;
	call->left.polls = worker->polls;
	call->open_ended |= piece->open_ended;
	call->told_ns += piece->told_ns;
	call->users_ns += piece->users.ns;
	call->users_told_ns += piece->users.told_ns;
	call->users_on += piece->users.on_samples;
	call->users_off += piece->users.off_samples;
	call->users_open = piece->users.open;
	call->user = piece->users.callback;
	call->user_run = piece->users.run;
	call->on_samples += piece->on_samples;
	call->off_samples += piece->off_samples;
	if (piece->off_stack)
		call->off_stack = piece->off_stack;
	add_inner(&call->inner, &piece->inner);
	if (piece->span_ns > call->span_ns) {
		call->span = piece->span;
		call->span_ns = piece->span_ns;
	}
}

/* Calls that blocked for a moment are no place where a call that computes for long sleeps. */
static bool slept_there(const struct d9__traced_task *task, const struct d9__piece *piece)
{
	return !task->asleep_for_ns || task->asleep_for_ns >= 10 * D9__MS_NS ||
	       2 * task->asleep_for_ns >= piece->end_ns - piece->start_ns;
}

int d9__analysis_piece(void *context, struct d9__worker *worker, const struct d9__piece *piece)
{
	struct d9__analysis *a = context;
	struct d9__traced_task *task = piece->task;

	task->last_end_ns = piece->end_ns;
	if (a->on_piece)
		a->on_piece(a->on_piece_context, worker, piece);
	if (!piece->resumed && d9__analysis_finish_call(a, task))
		return -ENOMEM;
	if (!piece->resumed && d9__rounds_call(worker, piece) < 0)
		return -ENOMEM;
	add_piece(&task->call, worker, piece);
	if (task->asleep && task->asleep_ns >= piece->start_ns) {
		if (slept_there(task, piece))
			task->call.asleep = task->asleep;
		task->call.waits_ns += task->waits_ns;
	}
	task->asleep = NULL;
	task->waits_ns = 0;
	d9__spans_poll_end(&a->spans, piece);
	if (task->call.total_ns + task->call.nested_ns >= D9__STALL_NS && !task->call.stall && begin_stall(worker, task))
		return -ENOMEM;
	if (d9__analysis_account(worker, piece) < 0)
		return -ENOMEM;
	if (!task->call.stall)
		return 0;
	update_stall(task->call.stall, worker, &task->call, piece->end_ns, a->samples.period_ns);
	return 0;
}
