/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that never ended: how long they were open, by what the recorder last saw of them.  They count in all sums up
 * to there, and if that is long the program hung in them.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis_parts.h"
#include "base/utf8.h"
#include "read/known_text.h"

/* The loop library has called |inner| in the call that |worker| began at |ns|.  0 or -ENOMEM. */
static int enter_inner(struct d9__analysis *a, struct d9__worker *worker, struct d9_text inner,
		       uint64_t ns)
{
	struct d9__callback *callback = d9__callbacks_at(&a->callbacks, inner.data, inner.len);

	if (!callback || d9__callback_begin(callback, worker->number, worker->piece.task->id))
		return -ENOMEM;
	callback->span = true;
	if (!callback->caller)
		callback->caller = worker->piece.task->callback;
	worker->piece.users.open = 1;
	worker->piece.users.since_ns = ns;
	worker->piece.users.callback = callback;
	worker->piece.users.run = ++a->callbacks.runs;
	return 0;
}

int d9__analysis_goes_on(struct d9__analysis *a, struct d9__worker *worker,
			 const struct d9__going_call *call)
{
	struct d9__traced_task *task = d9__tasks_at(&a->tasks, call->task);
	int err;

	if (!task)
		return -ENOMEM;
	if (!task->callback)
		task->callback = d9__callbacks_at(&a->callbacks, call->place.data, call->place.len);
	if (!task->callback || d9__callback_begin(task->callback, worker->number, task->id))
		return -ENOMEM;
	task->next_number = task->callback->calls - 1;
	task->next_run = ++a->callbacks.runs;
	task->next_delay_ns = UINT64_MAX;
	task->last_start_ns = call->from_ns;
	task->polled = true;
	d9__task_seen(&a->tasks, task);
	err = d9__timeline_poll_start(&a->timeline, worker, call->from_ns, task, false, 0);
	return err || !call->inner.len ? err : enter_inner(a, worker, call->inner, call->from_ns);
}

/* The segment with its PollStart is gone; what was written since says that it is still open. */
static int begin_again(struct d9__analysis *a, struct d9__worker *worker, uint64_t id,
		       uint64_t since_ns)
{
	uint64_t from_ns = since_ns > a->first_ns ? since_ns : a->first_ns;

	if (worker->piece.open || worker->piece.start_ns >= since_ns || worker->park.valid)
		return 0;
	return d9__analysis_goes_on(
		a, worker,
		&(struct d9__going_call) { .task = id, .place = { "", 0 }, .from_ns = from_ns });
}

/* |worker|'s open call is of task |id| and was so at |ns|: the place to note what is known of it, or NULL. */
static struct d9__sign *sign_of(struct d9__worker *worker, uint64_t id, uint64_t ns)
{
	if (!worker->piece.open || worker->piece.task->id != id || ns < worker->piece.start_ns)
		return NULL;
	if (worker->sign.task != id || worker->sign.ns < worker->piece.start_ns)
		worker->sign = (struct d9__sign){ .task = id, .since_ns = worker->piece.start_ns };
	worker->sign.ns = ns;
	return &worker->sign;
}

/* The loop of |worker| stands still outside of callbacks, and has not gone on since |since_ns|. */
static struct d9__sign *outside_sign(struct d9__worker *worker, uint64_t since_ns, uint64_t ns)
{
	struct d9__sign *sign = &worker->outside;

	if (sign->ns < since_ns)
		*sign = (struct d9__sign){ .since_ns = since_ns };
	sign->ns = ns;
	return sign;
}

int d9__analysis_last_sign(struct d9__analysis *a, const struct d9_event *event)
{
	struct d9__worker *worker =
		d9__timeline_worker(&a->timeline, d9_event_known_u64(event, D9_LAST_SIGN_WORKER_ID, 0));
	uint64_t id = d9_event_known_u64(event, D9_LAST_SIGN_TASK_ID, 0);
	uint64_t told_ns = d9_event_known_u64(event, D9_LAST_SIGN_SINCE_NS, event->timestamp_ns);
	uint64_t since_ns = told_ns < event->timestamp_ns ? told_ns : event->timestamp_ns;
	struct d9_text span = d9__known_text(event, D9_LAST_SIGN_SPAN);
	struct d9__sign *sign;

	if (!worker)
		return -ENOMEM;
	if (!id) {
		sign = outside_sign(worker, since_ns, event->timestamp_ns);
		sign->inner = span.len ? d9__callbacks_at(&a->callbacks, span.data, span.len) : NULL;
		return span.len && !sign->inner ? -ENOMEM : 0;
	}
	if (begin_again(a, worker, id, since_ns))
		return -ENOMEM;
	sign = sign_of(worker, id, event->timestamp_ns);
	if (!sign) {
		worker->around = (struct d9__sign){ .task = id, .since_ns = since_ns, .ns = event->timestamp_ns };
		return 0;
	}
	if (since_ns < sign->since_ns)
		sign->since_ns = since_ns;
	sign->inner = span.len ? d9__callbacks_at(&a->callbacks, span.data, span.len) : NULL;
	return span.len && !sign->inner ? -ENOMEM : 0;
}

/* The thread of |worker| computes, and in none of its callbacks. */
static void saw_library(struct d9__worker *worker, const struct d9_event *event, uint64_t for_ns)
{
	worker->library.n++;
	worker->library.cpu_ns += d9_event_known_u64(event, D9_STUCK_POLL_CPU_NS, 0);
	worker->library.since_ns = event->timestamp_ns - for_ns;
	worker->library.until_ns = event->timestamp_ns;
}

void d9__analysis_stuck(struct d9__analysis *a, const struct d9_event *event)
{
	struct d9__worker *worker =
		d9__timeline_worker(&a->timeline, d9_event_known_u64(event, D9_STUCK_POLL_WORKER_ID, 0));
	uint64_t id = d9_event_known_u64(event, D9_STUCK_POLL_TASK_ID, 0);
	const struct d9_value *running = d9_event_known(event, D9_STUCK_POLL_RUNNING);
	struct d9_text text = d9__known_text(event, D9_STUCK_POLL_SYSCALL);
	struct d9_text kind = d9__known_text(event, D9_STUCK_POLL_KIND);
	uint64_t for_ns = d9_event_known_u64(event, D9_STUCK_POLL_FOR_NS, 0);
	struct d9__sign *sign;

	if (!worker || for_ns > event->timestamp_ns)
		return;
	if (kind.len && !id) {
		saw_library(worker, event, for_ns);
		return;
	}
	sign = id ? sign_of(worker, id, event->timestamp_ns) :
		    outside_sign(worker, event->timestamp_ns - for_ns, event->timestamp_ns);
	if (!sign)
		return;
	if (id && (!running || !running->present || !running->u.boolean))
		sign->asleep_ns += event->timestamp_ns -
				   (sign->looks ? sign->look_ns : worker->piece.start_ns);
	sign->look_ns = event->timestamp_ns;
	sign->looks++;
	sign->running = running && running->present && running->u.boolean;
	snprintf(sign->where, sizeof(sign->where), "%.*s", d9__precision(text.len), text.data);
	text = d9__known_text(event, D9_STUCK_POLL_WCHAN);
	snprintf(sign->wchan, sizeof(sign->wchan), "%.*s", d9__precision(text.len), text.data);
}

/* |ns| of |*left_ns|, or all that is left; takes it. */
static uint64_t take(uint64_t *left_ns, uint64_t ns)
{
	uint64_t taken_ns = ns < *left_ns ? ns : *left_ns;

	*left_ns -= taken_ns;
	return taken_ns;
}

/* Looks and samples are believed if they tell of so much of an open call's time. */
#define CUT_NS (100 * D9__MS_NS)

/*
 * The end of the trace cut |task|'s call.  The recorder reads what a call did with its time when
 * the call has ended: of this one the looks say for how long it was asleep, the samples for how
 * long on the CPU, and nothing whether the kernel let it run in the rest.
 */
static void cut(const struct d9__analysis *a, struct d9__worker *worker,
		struct d9__traced_task *task)
{
	const struct d9__piece *piece = &worker->piece;
	const struct d9__sign *sign = &worker->sign;
	struct d9__stall *stall = task->call.stall;
	uint64_t ns = piece->end_ns - piece->start_ns, left_ns = ns, asleep_ns = sign->asleep_ns;
	struct d9__call_reading reading;

	if (!stall)
		return;
	stall->open = true;
	if (sign->looks && !sign->running)
		asleep_ns += piece->end_ns - sign->look_ns;
	reading.cpu_ns = take(&left_ns, piece->on_samples * a->samples.period_ns);
	reading.blocked_ns =
		take(&left_ns, asleep_ns > piece->told_ns ? asleep_ns : piece->told_ns);
	reading.ready_ns = 0;
	worker->cut_cpu_ns = a->samples.period_ns ? reading.cpu_ns : sign->running ? left_ns : 0;
	if (sign->ns - sign->since_ns < D9__HUNG_NS)
		stall->unread_ns = ns - left_ns < CUT_NS ? stall->total_ns : left_ns;
	if (ns - left_ns < CUT_NS)
		return;
	d9__time_period_read(&worker->period, task->id, &reading);
	worker->unpark.told_ns += reading.blocked_ns;
	stall->blocked_ns += reading.blocked_ns;
	task->call.slept_ns += reading.blocked_ns;
}

/*
 * Whether the program ended by itself inside the open call of |worker|, which is its main thread's, as one does that calls
 * exit() there, or leaves the loop's stack behind as gevent does: what it did since is not the loop's.
 */
static bool ended_inside(const struct d9__analysis *a, const struct d9__worker *worker)
{
	const char *complete = d9__metadata_value(&a->metadata, "segment.complete");
	const char *clean = d9__metadata_value(&a->metadata, "segment.sealed_clean");
	const char *pid = d9__metadata_value(&a->metadata, "pid");

	return complete && !strcmp(complete, "true") && clean && !strcmp(clean, "true") && pid &&
	       strtoul(pid, NULL, 10) == worker->tid && (worker->sign.running || !worker->sign.where[0]);
}

bool d9__analysis_was_killed(const struct d9__analysis *a)
{
	const char *recovered = d9__metadata_value(&a->metadata, "recovered");
	const char *clean = d9__metadata_value(&a->metadata, "segment.sealed_clean");

	/* One that could not write is recovered too, even if it ended as it should. */
	return recovered && !strcmp(recovered, "true") && clean && !strcmp(clean, "false") &&
	       !a->write_error;
}

static int close_piece(struct d9__analysis *a, struct d9__worker *worker)
{
	struct d9__sign *sign = &worker->sign;
	struct d9__traced_task *task = worker->piece.task;
	uint64_t until_ns;
	int err;

	if (worker->piece.open && ended_inside(a, worker)) {
		worker->cut_cpu_ns = worker->piece.on_samples * a->samples.period_ns;
		return 0;
	}
	if (!worker->piece.open || sign->task != task->id || sign->ns < worker->piece.start_ns)
		return 0;
	sign->open = true;
	/* A wait in it may have ended since the recorder saw it last, or a sample may have found
	 * it. */
	until_ns = sign->ns > worker->piece.told_until_ns ? sign->ns : worker->piece.told_until_ns;
	if (until_ns > a->loop_last_ns)
		a->loop_last_ns = until_ns;
	err = d9__spans_end_of(&a->spans, worker, until_ns, &sign->inner, &sign->inner_since_ns);
	if (!err)
		err = d9__timeline_close(&a->timeline, worker, until_ns);
	if (!err)
		cut(a, worker, task);
	return err;
}

/*
 * The call that was around the loop at the last look, and has not gone on since: a piece without length at that moment
 * makes it as long as it was open.
 */
static int close_around(struct d9__analysis *a, struct d9__worker *worker)
{
	const struct d9__sign *around = &worker->around;
	struct d9__traced_task *task = around->task ? d9__tasks_at(&a->tasks, around->task) : NULL;
	int err;

	if (!task || worker->piece.open || task->call.worker != worker || task->call.start_ns > around->since_ns ||
	    task->last_end_ns >= around->ns)
		return 0;
	d9__timeline_nested(worker, task, around->ns);
	err = d9__timeline_poll_start(&a->timeline, worker, around->ns, task, true, 0);
	return err ? err : d9__timeline_close(&a->timeline, worker, around->ns);
}

/* Nothing of the worker is newer. */
static void close_outside(struct d9__worker *worker)
{
	struct d9__sign *sign = &worker->outside;

	sign->open = sign->ns && worker->piece.start_ns <= sign->since_ns && !worker->park.valid &&
		     (!worker->unpark.valid || worker->unpark.ns <= sign->since_ns);
}

int d9__analysis_close_open(struct d9__analysis *a)
{
	int err = 0;

	for (size_t i = 0; i < a->timeline.n && !err; i++) {
		err = close_piece(a, a->timeline.items[i]);
		if (!err)
			err = close_around(a, a->timeline.items[i]);
		close_outside(a->timeline.items[i]);
	}
	return err;
}
