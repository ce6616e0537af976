/* SPDX-License-Identifier: Apache-2.0 */
/* Adds to an analysis what the flush thread samples: where calls sleep, and what the process holds.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "analyze/analysis_parts.h"
#include "base/utf8.h"
#include "read/known_text.h"

/* Places in which calls were found asleep that are told apart, in a whole trace. */
#define PLACES_MAX 1024

/* As StuckPollEvent. */
#define BLOCKING_NS (10 * D9__MS_NS)

/* The open call of |task| sleeps, or slept, at |where|. */
static int set_asleep(struct d9__analysis *a, struct d9__traced_task *task, struct d9_text where,
		      uint64_t ns)
{
	uint32_t number;

	if (where.len == 0 || a->places.n >= PLACES_MAX)
		return 0;
	if (d9__texts_number(&a->places, where.data, where.len, &number))
		return -ENOMEM;
	task->asleep = a->places.items[number];
	task->asleep_ns = ns;
	return 0;
}

/* Write the place in which the call of |event| sleeps, in the words of StuckPollEvent. */
static int spell_place(char *buf, size_t size, const struct d9__blocked_event *event)
{
	char function[48];
	const char *what;

	snprintf(function, sizeof(function), "%.*s", d9__precision(event->function_len),
		 event->function);
	what = d9__blocked_waits_for(function);
	if (what)
		return snprintf(buf, size, "futex: %s", what);
	if (event->fd >= 0)
		return snprintf(buf, size, "%s(%lld)", function, (long long)event->fd);
	return snprintf(buf, size, "%s()", function);
}

/* Of what the open call of |task| blocks in, the place where it does so longest is where it sleeps.
 */
static int add_asleep(struct d9__analysis *a, struct d9__traced_task *task,
		      const struct d9__blocked_event *event, uint64_t held_up_ns)
{
	char where[64];
	int len = spell_place(where, sizeof(where), event), err;
	bool fresh = !task->asleep || task->asleep_ns < task->last_start_ns, same;

	task->waits_ns += event->ns - held_up_ns;
	same = !fresh && task->asleep_for_ns && !strcmp(task->asleep, where);
	if (!fresh && !same && event->ns <= task->asleep_for_ns)
		return 0;
	if (!same)
		task->asleep_for_ns = 0;
	err = set_asleep(a, task, (struct d9_text) { where, (size_t)len }, event->at_ns);
	task->asleep_for_ns += event->ns;
	task->asleep_until_ns = event->at_ns + event->ns;
	return err;
}

/* The stack that event |k| tells, or NULL. */
static int stack_of(struct d9__analysis *a, const struct d9_event *event, unsigned k,
		    const struct d9__stack **out)
{
	const struct d9_value *stack = d9_event_known(event, k);

	*out = NULL;
	if (!stack || !stack->present || stack->unresolved)
		return 0;
	*out = d9__samples_stack(&a->samples, event->timestamp_ns, stack->u.stack.addresses,
				 stack->u.stack.n);
	return *out ? 0 : -ENOMEM;
}

static const struct d9__callback *callback_of(const struct d9__analysis *a, uint64_t task)
{
	const struct d9__traced_task *found = task ? d9__table_find(&a->tasks.table, task) : NULL;

	return found ? found->callback : NULL;
}

/* |call| was made outside of callbacks: where the thread was outside of its loop. */
static int outside_call(struct d9__analysis *a, struct d9__worker *worker,
			struct d9__blocked_event *call)
{
	call->callback = &worker->beside;
	if (call->stack)
		d9__samples_blocked(&a->samples, worker, &worker->beside, call->at_ns + call->ns);
	return d9__outside_calls_add(&worker->outside_calls, &a->blocked.functions, call);
}

/* Shorter ones, which adapters tell, are no place where a call sleeps. */
static int on_blocking_call(struct d9__analysis *a, const struct d9_event *event)
{
	struct d9__traced_task *task = d9__table_find(
		&a->tasks.table, d9_event_known_u64(event, D9_BLOCKING_CALL_TASK_ID, 0));
	struct d9_text function = d9__known_text(event, D9_BLOCKING_CALL_FUNCTION);
	struct d9__blocked_event call = {
		.function = function.data,
		.function_len = function.len,
		.fd = (int64_t)d9_event_known_u64(event, D9_BLOCKING_CALL_FD, UINT64_MAX),
		.at_ns = event->timestamp_ns,
		.ns = d9_event_known_u64(event, D9_BLOCKING_CALL_DURATION_NS, 0),
		.worker = d9_event_known_u64(event, D9_BLOCKING_CALL_WORKER_ID, 0),
		.task = task ? task->id : 0,
		.holder_tid = d9__analysis_u32(event, D9_BLOCKING_CALL_HOLDER_TID, 0),
		.holder =
			callback_of(a, d9_event_known_u64(event, D9_BLOCKING_CALL_HOLDER_TASK, 0)),
		.held_ns = d9_event_known_u64(event, D9_BLOCKING_CALL_HELD_NS, 0),
		.held_cpu_ns = d9_event_known_u64(event, D9_BLOCKING_CALL_HELD_CPU_NS, UINT64_MAX),
		.held_ready_ns =
			d9_event_known_u64(event, D9_BLOCKING_CALL_HELD_READY_NS, UINT64_MAX),
	};
	struct d9_text holder = d9__known_text(event, D9_BLOCKING_CALL_HOLDER_NAME);
	struct d9__worker *worker = d9__table_find(&a->timeline.by_id, call.worker);
	struct d9__callback *ran;

	/* Its stack was told just before. */
	if (worker && worker->off.absence && worker->off.ns == event->timestamp_ns)
		d9__absence_blocked(worker->off.absence, call.ns);
	if ((task ? !task->callback : !worker) || function.len == 0 || call.ns < D9__STALL_NS)
		return 0;
	snprintf(call.holder_name, sizeof(call.holder_name), "%.*s", d9__precision(holder.len),
		 holder.data ? holder.data : "");
	if (worker && worker->off.stack && worker->off.ns == event->timestamp_ns)
		call.stack = worker->off.stack;
	if (stack_of(a, event, D9_BLOCKING_CALL_HOLDER_STACK, &call.held_stack))
		return -ENOMEM;
	if (!task)
		return outside_call(a, worker, &call);
	ran = worker ? d9__samples_callback(worker, event->timestamp_ns) : NULL;
	if (!ran)
		ran = task->callback;
	call.callback = ran;
	if (call.stack)
		d9__samples_blocked(&a->samples, worker, ran, call.at_ns + call.ns);
	if (d9__blocked_add(&a->blocked, &call))
		return -ENOMEM;
	return add_asleep(a, task, &call, d9__analysis_held_up_ns(event));
}

static int on_stuck_poll(struct d9__analysis *a, const struct d9_event *event)
{
	struct d9__traced_task *task = d9__table_find(
		&a->tasks.table, d9_event_known_u64(event, D9_STUCK_POLL_TASK_ID, 0));
	const struct d9_value *running = d9_event_known(event, D9_STUCK_POLL_RUNNING);
	struct d9_text where = d9__known_text(event, D9_STUCK_POLL_SYSCALL);

	if (!task || (running && running->present && running->u.boolean))
		return 0;
	if (where.len == 0)
		where = d9__known_text(event, D9_STUCK_POLL_WCHAN);
	if (where.len == 1 && where.data[0] == '0')
		return 0;
	/* A call that was told with its length says more. */
	if (task->asleep && task->asleep_ns >= task->last_start_ns &&
	    (event->timestamp_ns <= task->asleep_until_ns || task->asleep_for_ns >= BLOCKING_NS))
		return 0;
	task->asleep_for_ns = task->asleep_until_ns = 0;
	return set_asleep(a, task, where, event->timestamp_ns);
}

static uint64_t living(const struct d9__tasks *tasks)
{
	int64_t n = (int64_t)tasks->at_start + tasks->change;

	return n > 0 ? (uint64_t)n : 0;
}

static int on_process_state(struct d9__analysis *a, const struct d9_event *event)
{
	uint64_t held[D9__HELD] = {
		[D9__HELD_MEMORY] = d9_event_known_u64(event, D9_PROCESS_STATE_RESIDENT_BYTES, 0),
		[D9__HELD_DESCRIPTORS] = d9_event_known_u64(event, D9_PROCESS_STATE_DESCRIPTORS, 0),
		[D9__HELD_TASKS] = living(&a->tasks),
	};

	return d9__growth_add(&a->growth, &a->callbacks, event->timestamp_ns, held);
}

/* Note which function of the program it was. */
static int take_place(struct d9__analysis *a, struct d9__outside *outside,
		      const struct d9_event *event)
{
	struct d9_text place = d9__known_text(event, D9_SOURCE_TIME_FUNCTION);
	uint32_t number;

	if (place.len == 0 || a->places.n >= PLACES_MAX)
		return 0;
	if (d9__texts_number(&a->places, place.data, place.len, &number))
		return -ENOMEM;
	outside->place = a->places.items[number];
	outside->address = d9_event_known_u64(event, D9_SOURCE_TIME_ADDRESS, 0);
	return 0;
}

static int on_source_time(struct d9__analysis *a, const struct d9_event *event)
{
	struct d9__traced_task *task = d9__table_find(
		&a->tasks.table, d9_event_known_u64(event, D9_SOURCE_TIME_TASK_ID, 0));
	struct d9_text phase = d9__known_text(event, D9_SOURCE_TIME_PHASE);
	struct d9__worker *worker = d9__table_find(
		&a->timeline.by_id, d9_event_known_u64(event, D9_SOURCE_TIME_WORKER_ID, 0));
	struct d9__outside *outside;
	uint64_t max_ns = d9_event_known_u64(event, D9_SOURCE_TIME_MAX_NS, 0);

	/* It is of no source, and short. */
	if (phase.len && phase.data[0] == 'b') {
		if (worker)
			d9__loop_time_between(
				&worker->loop_time,
				d9_event_known_u64(event, D9_SOURCE_TIME_CALLS, 0),
				d9_event_known_u64(event, D9_SOURCE_TIME_TOTAL_NS, 0));
		return 0;
	}
	if (!task || !task->callback)
		return 0;
	if (worker)
		d9__timeline_source(worker, d9_event_known_u64(event, D9_SOURCE_TIME_TOTAL_NS, 0));
	outside = &task->callback->outside[phase.len && phase.data[0] == 'c' ? D9__IN_CHECK
									     : D9__IN_PREPARE];
	outside->calls += d9_event_known_u64(event, D9_SOURCE_TIME_CALLS, 0);
	outside->ns += d9_event_known_u64(event, D9_SOURCE_TIME_TOTAL_NS, 0);
	outside->worker = d9_event_known_u64(event, D9_SOURCE_TIME_WORKER_ID, 0);
	outside->task = task->id;
	outside->slow += max_ns >= 5 * D9__MS_NS;
	if (max_ns > outside->max_ns) {
		outside->max_ns = max_ns;
		outside->max_at_ns = event->timestamp_ns;
	}
	return outside->place ? 0 : take_place(a, outside, event);
}

static void on_task_io(const struct d9__analysis *a, const struct d9_event *event)
{
	const struct d9__traced_task *task =
		d9__table_find(&a->tasks.table, d9_event_known_u64(event, D9_TASK_IO_TASK_ID, 0));
	const struct d9__worker *worker = d9__table_find(
		&a->timeline.by_id, d9_event_known_u64(event, D9_TASK_IO_WORKER_ID, 0));
	struct d9__callback_on *on = task && task->callback && worker
					     ? d9__callback_on(task->callback, worker->number)
					     : NULL;
	uint64_t last_errno;

	if (!on)
		return;
	last_errno = d9_event_known_u64(event, D9_TASK_IO_LAST_ERRNO, 0);
	on->io.reads += d9_event_known_u64(event, D9_TASK_IO_READS, 0);
	on->io.writes += d9_event_known_u64(event, D9_TASK_IO_WRITES, 0);
	on->io.accepts += d9_event_known_u64(event, D9_TASK_IO_ACCEPTS, 0);
	on->io.again += d9_event_known_u64(event, D9_TASK_IO_AGAIN, 0);
	on->io.eof += d9_event_known_u64(event, D9_TASK_IO_EOF, 0);
	on->io.errors += d9_event_known_u64(event, D9_TASK_IO_ERRORS, 0);
	on->io.read_bytes += d9_event_known_u64(event, D9_TASK_IO_READ_BYTES, 0);
	on->io.write_bytes += d9_event_known_u64(event, D9_TASK_IO_WRITE_BYTES, 0);
	/* A second without errors has none. */
	if (last_errno)
		on->io.last_errno = last_errno;
	on->io.fd = (int64_t)d9_event_known_u64(event, D9_TASK_IO_FD, UINT64_MAX);
}

int d9__analysis_state(struct d9__analysis *a, const struct d9_event *event)
{
	switch (event->kind) {
	case D9_EVENT_BLOCKING_CALL:
		return on_blocking_call(a, event);
	case D9_EVENT_STUCK_POLL:
		return on_stuck_poll(a, event);
	case D9_EVENT_PROCESS_STATE:
		return on_process_state(a, event);
	case D9_EVENT_SOURCE_TIME:
		return on_source_time(a, event);
	case D9_EVENT_TASK_IO:
		on_task_io(a, event);
		return 0;
	default:
		return 0;
	}
}

/* |callback|'s call was asleep at |place|: count it; the least seen makes room. */
static void count_place(struct d9__callback *callback, const char *place)
{
	struct d9__asleep *items = callback->asleep;
	size_t i = 0;

	while (i < callback->n_asleep && items[i].place != place)
		i++;
	if (i == callback->n_asleep && i < D9__ASLEEP_MAX)
		items[callback->n_asleep++] = (struct d9__asleep) { .place = place };
	if (i == D9__ASLEEP_MAX) {
		i--;
		items[i] = (struct d9__asleep) { .place = place };
	}
	items[i].calls++;
	for (; i && items[i].calls > items[i - 1].calls; i--) {
		struct d9__asleep swap = items[i];

		items[i] = items[i - 1];
		items[i - 1] = swap;
	}
}

void d9__analysis_inside(const struct d9__call *call, struct d9__callback *culprit)
{
	if (call->asleep)
		count_place(culprit, call->asleep);
	if (!call->figures)
		return;
	culprit->inside.calls++;
	culprit->inside.faults += call->faults;
	culprit->inside.faulty_calls += call->faults >= D9__MANY_FAULTS;
	culprit->inside.user_ns += call->user_ns;
	culprit->inside.system_ns += call->system_ns;
	culprit->inside.own_ns += d9__stall_left_ns(call->stall, call->total_ns);
}

void d9__analysis_figures(struct d9__call *call, const struct d9_event *event)
{
	const struct d9_value *value = d9_event_known(event, D9_OFF_CPU_USER_CPU_NS);

	if (!value || !value->present)
		return;
	call->figures = true;
	call->faults += d9_event_known_u64(event, D9_OFF_CPU_MINOR_FAULTS, 0);
	call->user_ns += d9_event_known_u64(event, D9_OFF_CPU_USER_CPU_NS, 0);
	call->system_ns += d9_event_known_u64(event, D9_OFF_CPU_SYSTEM_CPU_NS, 0);
}

/* Which callback makes tasks of |made|: the one that does most often, by a vote. */
static void vote(struct d9__callback *made, const struct d9__callback *maker)
{
	if (made->maker_votes == 0)
		made->maker = maker;
	made->maker_votes += made->maker == maker ? 1 : UINT64_MAX;
}

void d9__analysis_made(struct d9__analysis *a, const struct d9__traced_task *task)
{
	/* Events do not say on which thread; with two threads in callbacks it is not known. */
	const struct d9__worker *running = d9__timeline_only_open(&a->timeline);
	struct d9__traced_task *by = running ? running->piece.task : NULL;

	if (!by || by == task)
		return;
	vote(task->callback,
	     running->piece.users.open ? running->piece.users.callback : by->callback);
	by->made += task->fd >= 0 && task->fd != by->fd;
}
