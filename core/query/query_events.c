/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/samples.h"
#include "base/array.h"
#include "query/query_events.h"
#include "query/query_spans.h"
#include "read/inner_calls.h"
#include "read/known_text.h"

/* The id, in all processes, of what is the |number|th of its process, from 1; 0: there is none. */
static uint64_t id_of(const struct d9__query_process *process, uint64_t number)
{
	return number ? (number - 1) * process->n_processes + process->number + 1 : 0;
}

static uint64_t known(const struct d9_event *event, unsigned k)
{
	return d9_event_known_u64(event, k, 0);
}

static bool is_told(const struct d9_event *event, unsigned k)
{
	const struct d9_value *value = d9_event_known(event, k);

	return value && value->present;
}

static void put_stack(struct d9__query_row *row, uint64_t stack)
{
	d9__query_known(row, stack, stack - 1);
}

/* ---- stacks ---- */

uint64_t d9__query_stack(struct d9__query_process *process, const struct d9_event *event,
			 unsigned k, bool running)
{
	const struct d9_value *value = d9_event_known(event, k);
	struct d9__query_stacks *stacks = process->stacks;
	uint64_t key[D9__TEXT_MAX / sizeof(uint64_t)];
	size_t n = sizeof(key) / sizeof(key[0]) - 1;
	uint32_t number;

	if (!value || !value->present || value->unresolved || !value->u.stack.n)
		return 0;
	if (n > value->u.stack.n)
		n = value->u.stack.n;
	key[0] = process->number << 1 | running;
	memcpy(key + 1, value->u.stack.addresses, n * sizeof(key[0]));
	if (d9__texts_number(&stacks->keys, (const char *)key, (n + 1) * sizeof(key[0]), &number) ||
	    (number >= stacks->n && !d9__array_grow(stacks->met, stacks->n))) {
		process->out_of_memory = true;
		return 0;
	}
	if (number >= stacks->n) {
		stacks->met[stacks->n].ns = event->timestamp_ns;
		stacks->met[stacks->n++].running = running;
	}
	return (uint64_t)number + 1;
}

/* ---- calls ---- */

static struct d9__worker *worker_of(const struct d9__query_process *process, uint64_t id)
{
	return d9__table_find(&process->analysis.timeline.by_id, id);
}

static struct d9__query_lane *lane_of(struct d9__query_process *process,
				      const struct d9__worker *worker)
{
	while (worker->number >= process->n_lanes) {
		if (!d9__array_grow(process->lanes, process->n_lanes)) {
			process->out_of_memory = true;
			return NULL;
		}
		process->lanes[process->n_lanes++] = (struct d9__query_lane) { 0 };
	}
	return &process->lanes[worker->number];
}

static void put_poll(struct d9__query_process *process, uint64_t worker,
		     struct d9__query_poll *poll)
{
	struct d9__query_row row = d9__query_row(process->rows, D9__QUERY_POLLS);

	d9__query_u64(&row, poll->id);
	d9__query_u64(&row, process->number);
	d9__query_u64(&row, worker);
	d9__query_u64(&row, poll->task);
	d9__query_u64(&row, poll->callback);
	d9__query_u64(&row, poll->start_ns);
	d9__query_known(&row, !poll->unended, poll->duration_ns);
	d9__query_known(&row, poll->delay_ns != UINT64_MAX, poll->delay_ns);
	d9__query_u64(&row, poll->local_queue);
	d9__query_known(&row, poll->told, poll->blocked_ns);
	d9__query_known(&row, poll->told, poll->ready_ns);
	d9__query_u64(&row, poll->on_samples);
	d9__query_u64(&row, poll->off_samples);
	d9__query_known(&row, !poll->on_samples, 0);
	d9__query_u64(&row, poll->resumed);
	d9__query_u64(&row, poll->open_ended);
	d9__query_row_done(&row);
}

static void flush(struct d9__query_process *process, uint64_t worker, struct d9__query_lane *lane)
{
	if (lane->ended.any && d9__query_wants(process->rows, D9__QUERY_POLLS))
		put_poll(process, worker, &lane->ended);
	lane->ended.any = false;
}

static void on_piece(void *context, struct d9__worker *worker, const struct d9__piece *piece)
{
	struct d9__query_process *process = context;
	struct d9__query_lane *lane = lane_of(process, worker);

	if (!lane)
		return;
	flush(process, worker->id, lane);
	lane->ended = (struct d9__query_poll) {
		.any = true,
		.id = id_of(process, piece->number),
		.task = piece->task->id,
		.callback = d9__callback_id(&process->analysis, piece->task->callback),
		.start_ns = piece->start_ns,
		.duration_ns = piece->end_ns - piece->start_ns,
		.delay_ns = lane->open_delay_ns,
		.local_queue = lane->open_queue,
		.on_samples = piece->on_samples,
		.off_samples = piece->off_samples,
		.resumed = piece->resumed,
		.open_ended = piece->open_ended,
	};
}

/* ---- runs ---- */

static void put_run(struct d9__query_process *process, const struct d9__call_end *call, bool ended)
{
	struct d9__query_row row = d9__query_row(process->rows, D9__QUERY_RUNS);

	d9__query_u64(&row, id_of(process, call->run));
	d9__query_u64(&row, process->number);
	d9__query_u64(&row, call->worker);
	d9__query_u64(&row, call->task);
	d9__query_u64(&row, d9__callback_id(&process->analysis, call->callback));
	d9__query_known(&row, call->caller, id_of(process, call->caller));
	d9__query_known(&row, call->piece, id_of(process, call->piece));
	d9__query_u64(&row, call->start_ns);
	d9__query_known(&row, ended, call->ns);
	d9__query_known(&row, call->delay_ns != UINT64_MAX, call->delay_ns);
	d9__query_known(&row, call->read, call->blocked_ns);
	d9__query_known(&row, call->read, call->ready_ns);
	d9__query_u64(&row, call->on_samples);
	d9__query_u64(&row, call->off_samples);
	d9__query_known(&row, !call->on_samples, 0);
	d9__query_u64(&row, call->open_ended);
	d9__query_row_done(&row);
}

/* Keep a long run inside a call of a library until what was read of that call is told. */
static void keep_inner(struct d9__query_process *process, const struct d9__call_end *call)
{
	struct d9__worker *worker = worker_of(process, call->worker);
	struct d9__query_lane *lane = worker ? lane_of(process, worker) : NULL;

	if (!lane)
		return;
	if (!d9__array_grow(lane->inner, lane->n_inner)) {
		process->out_of_memory = true;
		return;
	}
	lane->inner[lane->n_inner++] =
		(struct d9__query_inner) { call->run, call->ns, call->told_ns };
}

static void on_run(void *context, const struct d9__call_end *call)
{
	if (call->caller && call->ns >= D9__STALL_NS)
		keep_inner(context, call);
	put_run(context, call, true);
}

static void on_unended(void *context, const struct d9__call_end *call)
{
	put_run(context, call, false);
}

void d9__query_process_begin(struct d9__query_process *process)
{
	struct d9__analysis *a = &process->analysis;

	a->on_piece = on_piece;
	a->on_piece_context = process;
	if (d9__query_wants(process->rows, D9__QUERY_RUNS))
		a->on_call = a->spans.on_call = (struct d9__call_hook) {
			.take = on_run, .context = process, .take_unended = on_unended
		};
}

static void begin_poll(struct d9__query_process *process, const struct d9_event *event)
{
	struct d9__worker *worker = worker_of(process, known(event, D9_POLL_START_WORKER_ID));
	struct d9__query_lane *lane = worker ? lane_of(process, worker) : NULL;

	if (!lane)
		return;
	lane->open_delay_ns =
		worker->piece.resumed ? UINT64_MAX : process->analysis.latency.newest_ns;
	lane->open_queue = known(event, D9_POLL_START_LOCAL_QUEUE);
	lane->n_inner = 0;
}

/* A reading of a library's call is told of the long runs in it, of each its part. */
static void give_to_inner(struct d9__query_process *process, struct d9__query_lane *lane,
			  const struct d9__off_part *all)
{
	struct d9__query_rows *rows = process->rows;

	if (!lane->n_inner ||
	    d9__query_prepare(rows, &rows->read_run,
			      "UPDATE \"%w\".runs SET blocked_ns = ?, ready_ns = ? WHERE run = ?"))
		return;
	for (size_t i = 0; i < lane->n_inner; i++) {
		struct d9__query_row row = { .rows = rows, .stmt = rows->read_run, .column = 1 };
		struct d9__off_part part = { .ns = lane->inner[i].ns,
					     .told_ns = lane->inner[i].told_ns };

		d9__off_part(all, &part);
		d9__query_u64(&row, part.slept_ns);
		d9__query_u64(&row, part.ready_ns);
		d9__query_u64(&row, id_of(process, lane->inner[i].run));
		d9__query_row_done(&row);
	}
	lane->n_inner = 0;
}

/* Add the off-CPU time to the call that ended before |event|: it follows that call directly. */
static void add_off_cpu(struct d9__query_process *process, const struct d9_event *event)
{
	struct d9__worker *worker = worker_of(process, known(event, D9_OFF_CPU_WORKER_ID));
	struct d9__query_lane *lane = worker ? lane_of(process, worker) : NULL;

	if (!lane || !lane->ended.any || lane->ended.task != known(event, D9_OFF_CPU_TASK_ID))
		return;
	lane->ended.told = true;
	d9__analysis_off_cpu(event, &lane->ended.blocked_ns, &lane->ended.ready_ns);
	give_to_inner(process, lane,
		      &(struct d9__off_part) { .ns = lane->ended.duration_ns,
					       .told_ns = worker->piece.told_ns,
					       .slept_ns = lane->ended.blocked_ns,
					       .ready_ns = lane->ended.ready_ns });
}

/* The poll that |worker| runs at |ns|, or that ended then; NULL: none. */
static const struct d9__piece *poll_at(const struct d9__worker *worker, uint64_t ns)
{
	const struct d9__piece *piece = worker ? &worker->piece : NULL;

	return piece && piece->task && (piece->open || ns <= piece->end_ns) && ns >= piece->start_ns
		       ? piece
		       : NULL;
}

/* The run that |piece| is in. */
static uint64_t run_in(const struct d9__query_process *process, const struct d9__piece *piece)
{
	return id_of(process, piece->users.open ? piece->users.run : piece->run);
}

/* ---- other events ---- */

/* Before the analysis takes it. */
static void put_park(struct d9__query_process *process, const struct d9_event *event)
{
	const struct d9__worker *worker =
		worker_of(process, known(event, D9_WORKER_UNPARK_WORKER_ID));
	struct d9__query_row row = d9__query_row(process->rows, D9__QUERY_PARKS);
	uint64_t tid = known(event, D9_WORKER_UNPARK_TID);

	/* A worker that goes on under another thread did not wait meanwhile. */
	if (!worker || !worker->park.valid || (tid && worker->park.tid && worker->park.tid != tid))
		return;
	d9__query_u64(&row, process->number);
	d9__query_u64(&row, worker->id);
	d9__query_u64(&row, worker->park.ns);
	d9__query_u64(&row, event->timestamp_ns - worker->park.ns);
	d9__query_known(&row, is_told(event, D9_WORKER_UNPARK_SCHED_WAIT_NS),
			known(event, D9_WORKER_UNPARK_SCHED_WAIT_NS));
	d9__query_row_done(&row);
}

static void put_wake(struct d9__query_process *process, const struct d9_event *event)
{
	struct d9__query_row row = d9__query_row(process->rows, D9__QUERY_WAKES);
	uint64_t waker = known(event, D9_WAKE_EVENT_WAKER_TASK_ID);
	uint64_t worker = d9_event_known_u64(event, D9_WAKE_EVENT_TARGET_WORKER, D9__WORKER_OTHERS);
	bool told = is_told(event, D9_WAKE_EVENT_REASON);

	d9__query_u64(&row, process->number);
	d9__query_u64(&row, event->timestamp_ns);
	d9__query_u64(&row, known(event, D9_WAKE_EVENT_WOKEN_TASK_ID));
	d9__query_known(&row, waker, waker);
	d9__query_known(&row, worker < D9__WORKER_OTHERS, worker);
	d9__query_string(&row,
			 told ? d9__wake_reason_name((unsigned)known(event, D9_WAKE_EVENT_REASON))
			      : NULL);
	d9__query_row_done(&row);
}

/* Behind the analysis, which knows the callback by then. */
static void put_task(struct d9__query_process *process, const struct d9_event *event)
{
	uint64_t id = known(event, D9_TASK_SPAWN_TASK_ID);
	const struct d9__traced_task *task = d9__table_find(&process->analysis.tasks.table, id);
	const struct d9__callback *callback = task ? task->callback : NULL;
	const struct d9__analysis *a = &process->analysis;
	struct d9__task_row row = {
		.process = process->number,
		.task = id,
		.callback = { callback, callback ? d9__callback_id(a, callback) : 0 },
		.kind = d9__known_text(event, D9_TASK_SPAWN_KIND),
		.fd = { is_told(event, D9_TASK_SPAWN_FD), known(event, D9_TASK_SPAWN_FD) },
		.name = d9__known_text(event, D9_TASK_SPAWN_NAME),
		.spawned_ns = event->timestamp_ns,
	};

	d9__query_put(process->rows, D9__QUERY_TASKS, &row);
}

/* Set the column of |sql| in the row of |process| and |key|, which is a number or, in hex, a text.
 */
static void update(struct d9__query_process *process, sqlite3_stmt **stmt, const char *sql,
		   uint64_t key, bool hex, uint64_t time_ns, uint64_t born_ns)
{
	struct d9__query_row row = { .rows = process->rows };

	if (d9__query_prepare(process->rows, stmt, sql))
		return;
	row.stmt = *stmt;
	row.column = 1;
	d9__query_u64(&row, time_ns);
	d9__query_u64(&row, process->number);
	hex ? d9__query_hex(&row, key) : d9__query_u64(&row, key);
	if (hex)
		d9__query_u64(&row, born_ns);
	d9__query_row_done(&row);
}

static void end_task(struct d9__query_process *process, const struct d9_event *event)
{
	update(process, &process->rows->end_task,
	       "UPDATE \"%w\".tasks SET ended_ns = ? WHERE process = ? AND task = ? AND ended_ns "
	       "IS NULL",
	       known(event, D9_TASK_TERMINATE_TASK_ID), false, event->timestamp_ns, 0);
}

static void end_allocation(struct d9__query_process *process, const struct d9_event *event)
{
	update(process, &process->rows->end_allocation,
	       "UPDATE \"%w\".allocations SET freed_ns = ? WHERE process = ? AND address = ? AND "
	       "time_ns "
	       "= ?",
	       known(event, D9_FREE_ADDR), true, event->timestamp_ns,
	       known(event, D9_FREE_ALLOC_TIMESTAMP_NS));
}

static void put_sample_row(struct d9__query_process *process, const struct d9_event *event,
			   const struct d9__worker *worker, const struct d9__piece *piece,
			   uint64_t stack)
{
	struct d9__sampled_row row = {
		.process = process->number,
		.time_ns = event->timestamp_ns,
		.source = known(event, D9_CPU_SAMPLE_SOURCE) == 1 ? "off-cpu" : "on-cpu",
		.tid = known(event, D9_CPU_SAMPLE_TID),
		.thread = d9__known_text(event, D9_CPU_SAMPLE_THREAD_NAME),
		.worker = { worker, worker ? worker->id : 0 },
		.task = { piece, piece ? piece->task->id : 0 },
		.poll = { piece, piece ? id_of(process, piece->number) : 0 },
		.run = { piece, piece ? run_in(process, piece) : 0 },
		.stack = { stack, stack - 1 },
	};

	d9__query_put(process->rows, D9__QUERY_SAMPLES, &row);
}

static void put_sample(struct d9__query_process *process, const struct d9_event *event)
{
	struct d9__worker *worker = d9__analysis_sampled(&process->analysis, event);
	bool off = known(event, D9_CPU_SAMPLE_SOURCE) == 1,
	     has_row = d9__query_wants(process->rows, D9__QUERY_SAMPLES);
	uint64_t stack = d9__query_stack(process, event, D9_CPU_SAMPLE_CALLCHAIN, true);
	const struct d9__piece *piece = poll_at(worker, event->timestamp_ns);
	struct d9__query_lane *lane = worker ? lane_of(process, worker) : NULL;

	if (lane && off) {
		lane->off_ns = event->timestamp_ns;
		lane->off_stack = stack;
	}
	/* One that was taken as the poll ended comes behind it. */
	if (lane && piece && !piece->open && lane->ended.any) {
		lane->ended.on_samples = piece->on_samples;
		lane->ended.off_samples = piece->off_samples;
	}
	if (has_row)
		put_sample_row(process, event, worker, piece, stack);
	if (off && has_row &&
	    d9__query_weights_add_off(
		    &process->weights, process->rows,
		    d9__samples_absence(&process->analysis.samples,
					(uint32_t)known(event, D9_CPU_SAMPLE_TID)),
		    sqlite3_last_insert_rowid(process->rows->db)))
		process->out_of_memory = true;
	if (!off &&
	    d9__query_weights_add(
		    &process->weights, process->rows,
		    &(struct d9__query_weighed) {
			    .weight =
				    worker ? d9__samples_weight(worker, event->timestamp_ns) : NULL,
			    .ns = event->timestamp_ns,
			    .poll = piece ? id_of(process, piece->number) : 0,
			    .run = piece ? run_in(process, piece) : 0,
			    .sample = has_row ? sqlite3_last_insert_rowid(process->rows->db) : 0 }))
		process->out_of_memory = true;
}

static void put_blocking(struct d9__query_process *process, const struct d9_event *event)
{
	const struct d9__worker *worker =
		worker_of(process, known(event, D9_BLOCKING_CALL_WORKER_ID));
	uint64_t held = d9__query_stack(process, event, D9_BLOCKING_CALL_HOLDER_STACK, false);
	uint64_t task = known(event, D9_BLOCKING_CALL_TASK_ID);
	uint64_t holder_tid = known(event, D9_BLOCKING_CALL_HOLDER_TID);
	uint64_t holder_task = known(event, D9_BLOCKING_CALL_HOLDER_TASK);
	const struct d9__piece *piece = worker && worker->piece.open ? &worker->piece : NULL;
	struct d9__query_lane *lane = worker ? lane_of(process, worker) : NULL;
	/* The stack was told just before. */
	uint64_t stack = lane && lane->off_ns == event->timestamp_ns ? lane->off_stack : 0;

	if (piece && piece->task->id != task)
		piece = NULL;
	d9__query_put(process->rows, D9__QUERY_BLOCKING,
		      &(struct d9__blocking_row) {
			      .process = process->number,
			      .start_ns = event->timestamp_ns,
			      .duration_ns = known(event, D9_BLOCKING_CALL_DURATION_NS),
			      .worker = known(event, D9_BLOCKING_CALL_WORKER_ID),
			      .function = d9__known_text(event, D9_BLOCKING_CALL_FUNCTION),
			      .fd = { is_told(event, D9_BLOCKING_CALL_FD),
				      known(event, D9_BLOCKING_CALL_FD) },
			      .task = { task, task },
			      .poll = { piece, piece ? id_of(process, piece->number) : 0 },
			      .run = { piece, piece ? run_in(process, piece) : 0 },
			      .stack = { stack, stack - 1 },
			      .holder_tid = { holder_tid, holder_tid },
			      .holder_task = { holder_task, holder_task },
			      .holder_stack = { held, held - 1 } });
}

static void put_allocation(struct d9__query_process *process, const struct d9_event *event)
{
	uint64_t stack = d9__query_stack(process, event, D9_ALLOC_CALLCHAIN, false);
	const struct d9__worker *worker = d9__samples_worker(&process->analysis.samples,
							     (uint32_t)known(event, D9_ALLOC_TID));
	struct d9__query_row row = d9__query_row(process->rows, D9__QUERY_ALLOCATIONS);
	uint64_t rate = known(event, D9_ALLOC_SAMPLE_RATE_BYTES);
	bool inside = worker && worker->piece.open;

	if (!d9__query_wants(process->rows, D9__QUERY_ALLOCATIONS))
		return;
	d9__query_u64(&row, process->number);
	d9__query_u64(&row, event->timestamp_ns);
	d9__query_u64(&row, known(event, D9_ALLOC_TID));
	d9__query_hex(&row, known(event, D9_ALLOC_ADDR));
	d9__query_u64(&row, known(event, D9_ALLOC_SIZE));
	d9__query_u64(&row, rate ? rate : process->analysis.heap.rate);
	d9__query_known(&row, inside, inside ? worker->piece.task->id : 0);
	put_stack(&row, stack);
	d9__query_null(&row);
	d9__query_row_done(&row);
}

static void put_dump(struct d9__query_process *process, const struct d9_event *event)
{
	const struct d9_value *kept = d9_event_known(event, D9_TASK_DUMP_KEPT);
	uint64_t stack = d9__query_stack(process, event, D9_TASK_DUMP_CALLCHAIN, false);
	struct d9__query_row row = d9__query_row(process->rows, D9__QUERY_DUMPS);

	if (!d9__query_wants(process->rows, D9__QUERY_DUMPS))
		return;
	d9__query_u64(&row, process->number);
	d9__query_u64(&row, event->timestamp_ns);
	d9__query_u64(&row, known(event, D9_TASK_DUMP_TASK_ID));
	d9__query_u64(&row, kept && kept->present && kept->u.boolean);
	put_stack(&row, stack);
	d9__query_row_done(&row);
}

static int put_event(struct d9__query_process *process, const struct d9_event *told)
{
	const struct d9_event *event = d9__inner_calls_written(told);
	struct d9__text_out *out = process->lines->out;
	struct d9__query_row row;

	if (!event)
		return 0;
	row = d9__query_row(process->rows, D9__QUERY_EVENTS);
	out->err = 0;
	out->len = 0;
	if (d9__event_lines_json(process->lines, event))
		return -ENOMEM;
	d9__query_u64(&row, process->number);
	d9__query_known(&row, event->has_timestamp && event->timestamp_ns, event->timestamp_ns);
	d9__query_string(&row, d9_event_name(event));
	d9__query_text(&row, out->err ? NULL : out->data, out->len ? out->len - 1 : 0);
	d9__query_row_done(&row);
	return 0;
}

/* Add the rows that need the worker's state before |event| changes it. */
static void before(struct d9__query_process *process, const struct d9_event *event)
{
	if (event->kind == D9_EVENT_WORKER_UNPARK &&
	    d9__query_wants(process->rows, D9__QUERY_PARKS))
		put_park(process, event);
	else if (event->kind == D9_EVENT_WAKE && d9__query_wants(process->rows, D9__QUERY_WAKES))
		put_wake(process, event);
}

static int after(struct d9__query_process *process, const struct d9_event *event)
{
	switch (event->kind) {
	case D9_EVENT_POLL_START:
		begin_poll(process, event);
		return 0;
	case D9_EVENT_OFF_CPU:
		add_off_cpu(process, event);
		return 0;
	case D9_EVENT_TASK_SPAWN:
		if (d9__query_wants(process->rows, D9__QUERY_TASKS))
			put_task(process, event);
		return 0;
	case D9_EVENT_TASK_TERMINATE:
		if (d9__query_wants(process->rows, D9__QUERY_TASKS))
			end_task(process, event);
		return 0;
	case D9_EVENT_CPU_SAMPLE:
		put_sample(process, event);
		return 0;
	case D9_EVENT_LOOP_OUTSIDE:
		d9__query_weights_between(
			&process->weights,
			worker_of(process, known(event, D9_LOOP_OUTSIDE_WORKER_ID)),
			known(event, D9_LOOP_OUTSIDE_FROM_NS), known(event, D9_LOOP_OUTSIDE_TO_NS));
		return 0;
	case D9_EVENT_BLOCKING_CALL:
		put_blocking(process, event);
		return 0;
	case D9_EVENT_ALLOC:
		put_allocation(process, event);
		return 0;
	case D9_EVENT_FREE:
		if (d9__query_wants(process->rows, D9__QUERY_ALLOCATIONS))
			end_allocation(process, event);
		return 0;
	case D9_EVENT_TASK_DUMP:
		put_dump(process, event);
		return 0;
	case D9_EVENT_SPAN_ENTER:
	case D9_EVENT_SPAN_EXIT:
	case D9_EVENT_SPAN_CLOSE:
	case D9_EVENT_SPAN_OPEN:
		return d9__query_wants(process->rows, D9__QUERY_SPANS)
			       ? d9__query_span(process, event)
			       : 0;
	default:
		return 0;
	}
}

int d9__query_event(struct d9__query_process *process, const struct d9_event *event)
{
	before(process, event);
	if (d9__analysis_event(&process->analysis, event) || after(process, event) ||
	    process->out_of_memory)
		return -ENOMEM;
	return d9__query_wants(process->rows, D9__QUERY_EVENTS) ? put_event(process, event) : 0;
}

static void put_open_parks(struct d9__query_process *process)
{
	uint64_t end_ns = process->analysis.loop_last_ns;

	for (size_t i = 0; i < process->analysis.timeline.n; i++) {
		const struct d9__worker *worker = process->analysis.timeline.items[i];
		struct d9__query_row row = d9__query_row(process->rows, D9__QUERY_PARKS);

		if (!worker->park.valid)
			continue;
		d9__query_u64(&row, process->number);
		d9__query_u64(&row, worker->id);
		d9__query_u64(&row, worker->park.ns);
		d9__query_u64(&row, end_ns > worker->park.ns ? end_ns - worker->park.ns : 0);
		d9__query_null(&row);
		d9__query_row_done(&row);
	}
}

/* The poll that |worker| is in when the trace ends. */
static void put_unended(struct d9__query_process *process, const struct d9__worker *worker)
{
	const struct d9__query_lane *lane = lane_of(process, worker);
	const struct d9__piece *piece = &worker->piece;

	if (lane)
		put_poll(process, worker->id,
			 &(struct d9__query_poll) {
				 .unended = true,
				 .id = id_of(process, piece->number),
				 .task = piece->task->id,
				 .callback =
					 d9__callback_id(&process->analysis, piece->task->callback),
				 .start_ns = piece->start_ns,
				 .delay_ns = lane->open_delay_ns,
				 .local_queue = lane->open_queue,
				 .on_samples = piece->on_samples,
				 .off_samples = piece->off_samples,
				 .resumed = piece->resumed });
}

int d9__query_process_finish(struct d9__query_process *process, const struct d9_reader *reader)
{
	int err;

	if (d9__query_wants(process->rows, D9__QUERY_PARKS))
		put_open_parks(process);
	if (d9__query_wants(process->rows, D9__QUERY_SPANS))
		d9__query_spans_finish(process);
	err = d9__analysis_finish(&process->analysis, reader);
	for (size_t i = 0; i < process->analysis.timeline.n; i++) {
		const struct d9__worker *worker = process->analysis.timeline.items[i];

		if (worker->number < process->n_lanes)
			flush(process, worker->id, &process->lanes[worker->number]);
		if (worker->piece.open && d9__query_wants(process->rows, D9__QUERY_POLLS))
			put_unended(process, worker);
	}
	if (!err)
		d9__query_weights_put(&process->weights, process->rows,
				      process->analysis.samples.period_ns,
				      d9__analysis_switch_share(&process->analysis));
	return err;
}

void d9__query_process_release(struct d9__query_process *process)
{
	void *span;

	for (size_t place = 0; (place = d9__table_next(&process->spans, place, &span));)
		free(span);
	d9__table_release(&process->spans);
	d9__analysis_release(&process->analysis);
	d9__symbolizer_close(process->symbols);
	for (size_t i = 0; i < process->n_lanes; i++)
		free(process->lanes[i].inner);
	free(process->lanes);
	d9__query_weights_release(&process->weights);
}
