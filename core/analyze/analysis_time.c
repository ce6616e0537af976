/* SPDX-License-Identifier: Apache-2.0 */
/* Adds to an analysis where time went, and what it would be without one callback. */
#include "config.h"

#include <errno.h>

#include "analyze/analysis_parts.h"
#include "read/known_text.h"

/* Functions that block, by name, in a whole trace. */
#define FUNCTIONS_MAX 256

uint64_t d9__analysis_held_up_ns(const struct d9_event *event)
{
	uint64_t ns = d9_event_known_u64(event, D9_BLOCKING_CALL_DURATION_NS, 0);
	uint64_t held_ns = d9_event_known_u64(event, D9_BLOCKING_CALL_HELD_NS, 0);
	uint64_t ready_ns = d9_event_known_u64(event, D9_BLOCKING_CALL_HELD_READY_NS, 0);

	/* A holder that had a CPU for most of it is the one who kept the lock. */
	if (!held_ns || 2 * ready_ns < held_ns)
		return 0;
	if (ready_ns >= held_ns)
		return ns;
	return (uint64_t)((double)ns * (double)ready_ns / (double)held_ns);
}

int d9__analysis_told(struct d9__analysis *a, const struct d9_event *event)
{
	uint64_t id = d9_event_known_u64(event, D9_BLOCKING_CALL_WORKER_ID, 0);
	struct d9__worker *worker = d9__table_find(&a->timeline.by_id, id);
	struct d9_text function = d9__known_text(event, D9_BLOCKING_CALL_FUNCTION);
	uint64_t held_up_ns = d9__analysis_held_up_ns(event);
	uint64_t ns = d9_event_known_u64(event, D9_BLOCKING_CALL_DURATION_NS, 0) - held_up_ns;
	struct d9__piece *piece = worker ? &worker->piece : NULL;
	struct d9__callback *callback;
	const char *name = "another call";
	uint32_t number;

	if (!piece || !piece->open ||
	    piece->task->id != d9_event_known_u64(event, D9_BLOCKING_CALL_TASK_ID, 0))
		return 0;
	if (function.len && a->functions.n < FUNCTIONS_MAX) {
		if (d9__texts_number(&a->functions, function.data, function.len, &number))
			return -ENOMEM;
		name = a->functions.items[number];
	}
	callback = piece->users.open ? piece->users.callback : piece->task->callback;
	piece->told_ns += ns;
	piece->held_up_ns += held_up_ns;
	if (event->timestamp_ns + ns + held_up_ns > piece->told_until_ns)
		piece->told_until_ns = event->timestamp_ns + ns + held_up_ns;
	d9__time_told_add(&d9__callback_time(callback, worker->number)->told, name, ns);
	d9__time_told_add(&worker->period.told, name, ns);
	return 0;
}

/* The call that |worker| ended just now slept for |ns|, and waited for a CPU behind that. */
static void call_slept(struct d9__worker *worker, const struct d9__traced_task *task, uint64_t ns)
{
	const struct d9__piece *piece = &worker->piece;
	uint64_t all_ns = piece->end_ns - piece->start_ns;
	bool inner = piece->inner.callback && 2 * piece->inner.ns >= all_ns;

	if (inner && piece->inner.ns < all_ns)
		all_ns = piece->inner.ns;
	if (!piece->open && piece->task == task)
		d9__replay_call_slept(worker, inner ? piece->inner.callback : task->callback,
				      piece->end_ns, ns < all_ns ? ns : all_ns);
}

/*
 * Of the time that the thread was ready without a CPU, how much it was so behind its sleeps: as
 * many parts of it as it gave up the CPU itself.
 */
static uint64_t ready_behind_sleeps(const struct d9_event *event, uint64_t ready_ns)
{
	uint64_t own = d9_event_known_u64(event, D9_OFF_CPU_VOLUNTARY_SWITCHES, 1);
	uint64_t all = own + d9_event_known_u64(event, D9_OFF_CPU_INVOLUNTARY_SWITCHES, 0);

	return all ? (uint64_t)((double)ready_ns * (double)own / (double)all) : 0;
}

void d9__analysis_read(const struct d9__traced_task *task, const struct d9_event *event,
		       uint64_t blocked_ns, uint64_t taken_ns)
{
	const struct d9_value *user = d9_event_known(event, D9_OFF_CPU_USER_CPU_NS);
	uint64_t major_faults = d9_event_known_u64(event, D9_OFF_CPU_MAJOR_FAULTS, 0);
	struct d9__call_reading reading = { .blocked_ns = blocked_ns,
					    .ready_ns = taken_ns,
					    .cpu_ns = UINT64_MAX };

	if (user && user->present)
		reading.cpu_ns = d9_event_known_u64(event, D9_OFF_CPU_USER_CPU_NS, 0) +
				 d9_event_known_u64(event, D9_OFF_CPU_SYSTEM_CPU_NS, 0);
	d9__time_period_read(&task->call.worker->period, task->id, &reading);
	if (task->call.pieces == 1)
		call_slept(task->call.worker, task,
			   blocked_ns ? blocked_ns + ready_behind_sleeps(event, taken_ns) : 0);
	d9__callback_time(task->callback, task->call.worker->number)->major_faults += major_faults;
	if (task->call.stall)
		task->call.stall->time.major_faults += major_faults;
}

/* A piece that is long, has functions of the program inside, or told of waits. */
static void account_piece(struct d9__worker *worker, const struct d9__piece *piece)
{
	struct d9__callback *callback = piece->task->callback;
	struct d9__stall *stall = piece->task->call.stall;
	uint64_t ns = piece->end_ns - piece->start_ns;
	uint64_t users_ns = piece->users.ns < ns ? piece->users.ns : ns;
	uint64_t users_told_ns =
		piece->users.told_ns < piece->told_ns ? piece->users.told_ns : piece->told_ns;

	/* The outermost function of the program runs a loop, and goes on behind it. */
	if (piece->users.open)
		d9__time_period_inside(&worker->period,
				       d9__callback_time(piece->users.callback, worker->number),
				       ns - (piece->users.since_ns - piece->start_ns),
				       piece->told_ns - piece->users.told_since_ns);
	if (stall)
		for (unsigned i = 0; i < worker->period.told.n; i++)
			d9__time_told_add(&stall->time.told, worker->period.told.in[i].function,
				     worker->period.told.in[i].ns);
	if (stall)
		stall->time.samples += piece->on_samples;
	d9__time_period_call(&worker->period,
			     &(struct d9__period_call) {
				     .task = piece->task->id,
				     .ns = ns,
				     .has_reading = ns >= D9__STALL_NS || piece->resumed,
				     .told_ns = piece->told_ns,
				     .self = { d9__callback_time(callback, worker->number),
					       ns - users_ns, piece->told_ns - users_told_ns },
				     .stall = stall,
			     });
}

int d9__analysis_account(struct d9__worker *worker, const struct d9__piece *piece)
{
	struct d9__callback *callback = piece->task->callback;
	uint64_t ns = piece->end_ns - piece->start_ns;

	if (ns < D9__STALL_NS && !piece->resumed && !piece->told_ns && !worker->period.n_inside &&
	    !piece->users.open && !piece->task->call.stall)
		d9__time_period_short(&worker->period, d9__callback_time(callback, worker->number),
				      ns);
	else
		account_piece(worker, piece);
	if (piece->inner.callback &&
	    d9__replay_call(worker, piece->inner.callback, piece->end_ns, piece->inner.ns) < 0)
		return -ENOMEM;
	if (d9__replay_call(worker, callback, piece->end_ns,
			    ns - (piece->users.ns < ns ? piece->users.ns : ns)) < 0)
		return -ENOMEM;
	if (piece->told_ns)
		call_slept(worker, piece->task, piece->told_ns);
	return 0;
}
