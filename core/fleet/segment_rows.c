/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "fleet/segment_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/budget.h"
#include "base/array.h"
#include "base/hash.h"
#include "base/time.h"
#include "read/known_text.h"

#define MINUTE_NS   (60 * D9__SECOND_NS)
#define MINUTES_MAX 1440 /* of one piece of a call; later minutes count in the last */

/* The columns in which samples have to agree to share a row. */
struct row_key {
	uint64_t of, weight;
	uint32_t minute, stack, thread, off_cpu;
};

static uint32_t minute_of(const struct d9__segment_rows *rows, uint64_t ns)
{
	return (uint32_t)((ns + rows->to_wall_ns) / MINUTE_NS);
}

/* ---- rows ---- */

/* Add a row, all zero; NULL: the budget does not allow it, which is counted, or out of memory. */
static void *add_row(struct d9__segment_rows *all, struct d9__row_list *rows)
{
	if (all->err || !d9__budget_take(D9__KEPT_ROWS, rows->size + 4 * sizeof(struct d9__table_entry)))
		return NULL;
	if (!d9__array_grow_sized(&rows->items, rows->n, rows->size)) {
		all->err = -ENOMEM;
		return NULL;
	}
	return memset((char *)rows->items + rows->n++ * rows->size, 0, rows->size);
}

/* Find the row of |key|, or add it and set |*is_new|.  NULL as in add_row(). */
static void *row_of(struct d9__segment_rows *all, struct d9__row_list *rows, const struct row_key *key, bool *is_new)
{
	uint64_t hash = d9__hash_bytes(d9__hash_secret(), key, sizeof(*key));
	uintptr_t place = (uintptr_t)d9__table_find(&rows->places, hash);
	void *row;

	*is_new = !place;
	if (place)
		return (char *)rows->items + (place - 1) * rows->size;
	row = add_row(all, rows);
	if (row && d9__table_add(&rows->places, hash, (void *)(uintptr_t)rows->n)) {
		all->err = -ENOMEM;
		return NULL;
	}
	return row;
}

static struct d9__calls_row *calls_row(struct d9__segment_rows *rows, const struct d9__callback *callback, uint64_t ns)
{
	struct row_key key = { .of = callback->number, .minute = minute_of(rows, ns) };
	bool is_new;
	struct d9__calls_row *row = row_of(rows, &rows->calls, &key, &is_new);

	if (row && is_new) {
		row->callback = callback;
		row->minute = key.minute;
	}
	return row;
}

static struct d9__loop_row *loop_row(struct d9__segment_rows *rows, const struct d9__worker *worker, uint32_t minute)
{
	struct row_key key = { .of = worker->number, .minute = minute };
	bool is_new;
	struct d9__loop_row *row = row_of(rows, &rows->loops, &key, &is_new);

	if (row && is_new) {
		row->worker = worker;
		row->minute = minute;
	}
	return row;
}

/* ---- calls ---- */

static unsigned power_of(uint64_t ns)
{
	return ns ? 63 - (unsigned)__builtin_clzll(ns) : 0;
}

static void add_slow(struct d9__segment_rows *rows, const struct d9__call_end *call)
{
	struct d9__slow_row *row = add_row(rows, &rows->slow);
	bool told = call->stall && rows->analysis->off_cpu_seen;

	if (!row)
		return;
	*row = (struct d9__slow_row){ .callback = call->callback, .worker = call->worker, .task = call->task,
				      .start_ns = call->start_ns, .ns = call->ns,
				      .blocked_ns = told ? call->stall->blocked_ns : UINT64_MAX,
				      .ready_ns = told ? call->stall->run_queue_ns : UINT64_MAX };
}

static void take_call(void *context, const struct d9__call_end *call)
{
	struct d9__segment_rows *rows = context;
	struct d9__calls_row *row = calls_row(rows, call->callback, call->start_ns);

	if (row) {
		row->polls++;
		row->busy_ns += call->ns;
		row->max_ns = call->ns > row->max_ns ? call->ns : row->max_ns;
		row->by_power[power_of(call->ns)]++;
	}
	if (call->ns > rows->slow_ns)
		add_slow(rows, call);
}

/* Split a piece among the minutes that it touches. */
static void take_piece(void *context, struct d9__worker *worker, const struct d9__piece *piece)
{
	struct d9__segment_rows *rows = context;
	uint64_t from_ns = piece->start_ns;

	for (unsigned i = 0; from_ns < piece->end_ns; i++) {
		uint32_t minute = minute_of(rows, from_ns);
		uint64_t next_ns = (minute + UINT64_C(1)) * MINUTE_NS - rows->to_wall_ns;
		uint64_t until_ns = i < MINUTES_MAX && next_ns > from_ns && next_ns < piece->end_ns ? next_ns : piece->end_ns;
		struct d9__loop_row *row = loop_row(rows, worker, minute);

		if (row)
			row->busy_ns += until_ns - from_ns;
		from_ns = until_ns;
	}
}

/* ---- loops ---- */

static uint64_t known(const struct d9_event *event, unsigned k)
{
	return d9_event_known_u64(event, k, 0);
}

/* After the analysis: it knows by then whether the call is new, and how late. */
static void take_start(struct d9__segment_rows *rows, const struct d9_event *event)
{
	const struct d9__worker *worker =
		d9__table_find(&rows->analysis->timeline.by_id, known(event, D9_POLL_START_WORKER_ID));
	struct d9__loop_row *row = worker ? loop_row(rows, worker, minute_of(rows, event->timestamp_ns)) : NULL;
	uint64_t queue = known(event, D9_POLL_START_LOCAL_QUEUE), late_ns = rows->analysis->latency.newest_ns;

	if (!row)
		return;
	row->queue_max = queue > row->queue_max ? queue : row->queue_max;
	if (worker->piece.resumed)
		return;
	row->polls++;
	if (late_ns == UINT64_MAX)
		return;
	row->wakes++;
	if (d9__histogram_add(&row->late, late_ns))
		rows->err = -ENOMEM;
}

/* Waits that the analysis has counted since the last look at |worker|. */
static void take_parks(struct d9__segment_rows *rows, const struct d9__worker *worker, uint64_t ns)
{
	struct d9__loop_row *row;

	while (worker->number >= rows->before.n) {
		if (!d9__array_grow(rows->before.parks, rows->before.n)) {
			rows->err = -ENOMEM;
			return;
		}
		rows->before.parks[rows->before.n++] = 0;
	}
	if (rows->before.parks[worker->number] == worker->parks)
		return;
	row = loop_row(rows, worker, minute_of(rows, ns));
	if (row)
		row->parks += worker->parks - rows->before.parks[worker->number];
	rows->before.parks[worker->number] = worker->parks;
}

static void take_lost(struct d9__segment_rows *rows, uint64_t ns)
{
	struct row_key key = { .minute = minute_of(rows, ns) };
	uint64_t events = rows->analysis->losses.events - rows->lost_before;
	bool is_new;
	struct d9__lost_row *row = events ? row_of(rows, &rows->lost, &key, &is_new) : NULL;

	rows->lost_before += events;
	if (!row)
		return;
	row->minute = key.minute;
	row->events += events;
}

/* ---- samples ---- */

/* Return the number of the sample's stack + 1; 0: it has none. */
static uint32_t stack_of(struct d9__segment_rows *rows, const struct d9_event *event)
{
	const struct d9_value *chain = d9_event_known(event, D9_CPU_SAMPLE_CALLCHAIN);
	uint32_t number;

	if (!chain || !chain->present || chain->unresolved || !chain->u.stack.n)
		return 0;
	if (d9__texts_number(&rows->stacks, (const char *)chain->u.stack.addresses,
			     chain->u.stack.n * sizeof(chain->u.stack.addresses[0]), &number)) {
		rows->err = -ENOMEM;
		return 0;
	}
	if (number >= rows->n_stacks && !d9__array_grow(rows->stack_ns, rows->n_stacks)) {
		rows->err = -ENOMEM;
		return 0;
	}
	if (number >= rows->n_stacks)
		rows->stack_ns[rows->n_stacks++] = event->timestamp_ns;
	return number + 1;
}

/* Return the number of the thread's name + 1; 0: the trace has none. */
static uint32_t thread_of(struct d9__segment_rows *rows, const struct d9_event *event)
{
	struct d9_text name = d9__known_text(event, D9_CPU_SAMPLE_THREAD_NAME);
	uint32_t number;

	if (!name.len)
		return 0;
	if (!d9__texts_number(&rows->threads, name.data, name.len, &number))
		return number + 1;
	rows->err = -ENOMEM;
	return 0;
}

static void take_sample(struct d9__segment_rows *rows, const struct d9_event *event)
{
	struct d9__worker *worker = d9__analysis_sampled(rows->analysis, event);
	const struct d9__callback *callback = worker ? d9__samples_callback(worker, event->timestamp_ns) : NULL;
	struct row_key key = { .of = callback ? callback->number + 1 : 0,
			       .minute = minute_of(rows, event->timestamp_ns),
			       .stack = stack_of(rows, event), .thread = thread_of(rows, event),
			       .off_cpu = known(event, D9_CPU_SAMPLE_SOURCE) == 1 };
	const struct d9__weight *weight =
		worker && !key.off_cpu ? d9__samples_weight(worker, event->timestamp_ns) : NULL;
	bool is_new;
	struct d9__sample_row *row;

	key.weight = (uint64_t)(uintptr_t)weight;
	row = row_of(rows, &rows->samples, &key, &is_new);
	if (row && is_new)
		*row = (struct d9__sample_row) { .callback = callback,
						 .minute = key.minute,
						 .stack = key.stack,
						 .thread = key.thread,
						 .off_cpu = key.off_cpu,
						 .weight = weight };
	if (row)
		row->samples++;
}

/* ---- the pass ---- */

void d9__segment_rows_begin(struct d9__segment_rows *rows, struct d9__analysis *analysis, uint64_t to_wall_ns,
			    uint64_t slow_ns)
{
	rows->analysis = analysis;
	rows->to_wall_ns = to_wall_ns;
	rows->slow_ns = slow_ns;
	rows->calls.size = sizeof(struct d9__calls_row);
	rows->loops.size = sizeof(struct d9__loop_row);
	rows->slow.size = sizeof(struct d9__slow_row);
	rows->samples.size = sizeof(struct d9__sample_row);
	rows->lost.size = sizeof(struct d9__lost_row);
	rows->stacks.kind = D9__KEPT_STACKS;
	analysis->on_piece = take_piece;
	analysis->on_piece_context = rows;
	analysis->on_call = analysis->spans.on_call = (struct d9__call_hook){ take_call, rows };
}

int d9__segment_rows_event(struct d9__segment_rows *rows, const struct d9_event *event)
{
	const struct d9__worker *worker;

	if (event->kind == D9_EVENT_POLL_START)
		take_start(rows, event);
	else if (event->kind == D9_EVENT_CPU_SAMPLE)
		take_sample(rows, event);
	else if (event->kind == D9_EVENT_RECORDER_LOSS)
		take_lost(rows, event->timestamp_ns);
	if (event->kind != D9_EVENT_WORKER_PARK && event->kind != D9_EVENT_WORKER_UNPARK)
		return rows->err;
	worker = d9__table_find(&rows->analysis->timeline.by_id, known(event, 0));
	if (worker)
		take_parks(rows, worker, event->timestamp_ns);
	return rows->err;
}

static int compare_calls(const void *left, const void *right)
{
	const struct d9__calls_row *a = left, *b = right;

	if (a->minute != b->minute)
		return a->minute < b->minute ? -1 : 1;
	return (a->callback->number > b->callback->number) - (a->callback->number < b->callback->number);
}

static int compare_loops(const void *left, const void *right)
{
	const struct d9__loop_row *a = left, *b = right;

	if (a->minute != b->minute)
		return a->minute < b->minute ? -1 : 1;
	return (a->worker->number > b->worker->number) - (a->worker->number < b->worker->number);
}

static int compare_slow(const void *left, const void *right)
{
	const struct d9__slow_row *a = left, *b = right;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	if (a->worker != b->worker)
		return a->worker < b->worker ? -1 : 1;
	return (a->callback->number > b->callback->number) - (a->callback->number < b->callback->number);
}

static void sort(struct d9__row_list *rows, int (*compare)(const void *, const void *))
{
	if (rows->n)
		qsort(rows->items, rows->n, rows->size, compare);
	/* Places are those of before. */
	d9__table_release(&rows->places);
}

/* Return the first of the sorted rows of |minute|, else the first of all. */
static struct d9__calls_row *first_of(const struct d9__row_list *calls, uint32_t minute)
{
	struct d9__calls_row *items = calls->items;
	size_t low = 0, high = calls->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (items[middle].minute < minute)
			low = middle + 1;
		else
			high = middle;
	}
	return low < calls->n && items[low].minute == minute ? &items[low] : items;
}

static void spread_lost(struct d9__segment_rows *rows)
{
	const struct d9__lost_row *lost = rows->lost.items;

	for (size_t i = 0; rows->calls.n && i < rows->lost.n; i++)
		first_of(&rows->calls, lost[i].minute)->lost += lost[i].events;
}

int d9__segment_rows_finish(struct d9__segment_rows *rows)
{
	const struct d9__timeline *timeline = &rows->analysis->timeline;

	for (size_t i = 0; i < timeline->n; i++)
		take_parks(rows, timeline->items[i], rows->analysis->loop_last_ns);
	take_lost(rows, rows->analysis->last_ns);
	sort(&rows->calls, compare_calls);
	sort(&rows->loops, compare_loops);
	sort(&rows->slow, compare_slow);
	spread_lost(rows);
	return rows->err;
}

static void release(struct d9__row_list *rows)
{
	free(rows->items);
	d9__table_release(&rows->places);
}

void d9__segment_rows_release(struct d9__segment_rows *rows)
{
	struct d9__loop_row *loops = rows->loops.items;

	for (size_t i = 0; i < rows->loops.n; i++)
		d9__histogram_release(&loops[i].late);
	release(&rows->calls);
	release(&rows->loops);
	release(&rows->samples);
	release(&rows->lost);
	release(&rows->slow);
	d9__texts_release(&rows->stacks);
	d9__texts_release(&rows->threads);
	free(rows->stack_ns);
	free(rows->before.parks);
}
