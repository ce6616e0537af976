/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "analyze/helpers.h"
#include "analyze/stale.h"
#include "format/utf8.h"

/* Files of very old producers give metadata a wall-clock time; from 2020 on, in ns. */
#define WALL_TIME_FROM UINT64_C(1577836800000000000)

#define SITE_MARK " @ "

/* target_worker of a wake from outside the workers. */
#define FIRST_OTHER_WORKER 254

static struct d9_text text_of(const struct d9_event *event, unsigned k)
{
	const struct d9_value *value = d9_event_known(event, k);

	if (!value || !value->present || value->unresolved)
		return (struct d9_text){ "", 0 };
	return value->u.text;
}

static bool bool_of(const struct d9_event *event, unsigned k, bool fallback)
{
	const struct d9_value *value = d9_event_known(event, k);

	return value && value->present ? value->u.boolean : fallback;
}

#define NO_WORKER 255u

static struct d9__worker *worker_of(struct d9__analysis *a, const struct d9_event *event)
{
	return d9__timeline_worker(&a->timeline, d9_event_known_u64(event, 0, 0));
}

/* The task in field |k|; NULL: out of memory. */
static struct d9__task *task_of(struct d9__analysis *a, const struct d9_event *event, unsigned k)
{
	return d9__tasks_at(&a->tasks, d9_event_known_u64(event, k, 0));
}

static int set_callback(struct d9__analysis *a, struct d9__task *task, struct d9_text location)
{
	task->callback = d9__callbacks_at(&a->callbacks, location.data, location.len);
	return task->callback ? 0 : -ENOMEM;
}

/* ---- calls: pieces added up ---- */

static struct d9__callback *culprit_of(const struct d9__task *task)
{
	const struct d9__call *call = &task->call;

	if (task->callback->internal && call->inner && 2 * call->inner_ns >= call->total_ns)
		return call->inner;
	return task->callback;
}

/* The call of |task| is over: count it. */
static int finish_call(struct d9__analysis *a, struct d9__task *task)
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

static int on_piece(void *context, struct d9__worker *worker, const struct d9__piece *piece)
{
	struct d9__analysis *a = context;
	struct d9__task *task = piece->task;

	task->last_end_ns = piece->end_ns;
	if (!piece->resumed && finish_call(a, task))
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

/* ---- one function per event ---- */

/* |task| may have become one that is over: then keep it for a while, and forget the one kept longest. */
static int let_go(struct d9__analysis *a, struct d9__task *task)
{
	struct d9__task *old = d9__task_bury(&a->tasks, task);
	int err = old ? finish_call(a, old) : 0;

	if (old)
		d9__task_forget(&a->tasks, old);
	return err;
}

static int on_poll_start(struct d9__analysis *a, const struct d9_event *event)
{
	uint64_t ns = event->timestamp_ns;
	struct d9__worker *worker = worker_of(a, event);
	struct d9__task *task = task_of(a, event, 2), *before;
	bool resumed;
	int err;

	if (!worker || !task)
		return -ENOMEM;
	before = worker->piece.task;
	if (!task->callback && set_callback(a, task, text_of(event, 3)))
		return -ENOMEM;
	err = d9__timeline_close(&a->timeline, worker, ns);
	a->tasks.epoch++;
	d9__task_seen(&a->tasks, task);
	resumed = d9__latency_is_resumption(task, ns);
	if (!resumed && !err) {
		a->uninstrumented_polls += task->uninstrumented;
		err = d9__latency_start(&a->latency, worker, task, ns);
		if (!err)
			err = d9__callback_begin(task->callback, worker->number);
	}
	task->last_start_ns = ns;
	task->polled = true;
	if (!err)
		err = d9__timeline_poll_start(&a->timeline, worker, ns, task, resumed,
					      (unsigned)d9_event_known_u64(event, 1, 0));
	return err || !before ? err : let_go(a, before);
}

static int on_poll_end(struct d9__analysis *a, const struct d9_event *event)
{
	struct d9__worker *worker = worker_of(a, event);

	return worker ? d9__timeline_poll_end(&a->timeline, worker, event->timestamp_ns) : -ENOMEM;
}

static int on_park(struct d9__analysis *a, const struct d9_event *event)
{
	struct d9__worker *worker = worker_of(a, event);
	uint32_t tid = (uint32_t)d9_event_known_u64(event, 3, 0);

	if (!worker || d9__samples_thread(&a->samples, worker, tid))
		return -ENOMEM;
	return d9__timeline_park(&a->timeline, worker, event->timestamp_ns,
				 d9_event_known_u64(event, 2, 0), tid);
}

static int on_unpark(struct d9__analysis *a, const struct d9_event *event)
{
	struct d9__worker *worker = worker_of(a, event);
	uint32_t tid = (uint32_t)d9_event_known_u64(event, 4, 0);

	if (!worker || d9__samples_thread(&a->samples, worker, tid))
		return -ENOMEM;
	return d9__timeline_unpark(&a->timeline, worker, event->timestamp_ns,
				   d9_event_known_u64(event, 2, 0),
				   d9_event_known_u64(event, 3, UINT64_MAX), tid);
}

static int on_wake(struct d9__analysis *a, const struct d9_event *event)
{
	struct d9__task *task = task_of(a, event, 1);
	uint64_t target = d9_event_known_u64(event, 2, FIRST_OTHER_WORKER);
	struct d9__worker *worker;

	if (!task)
		return -ENOMEM;
	worker = d9__table_find(&a->timeline.by_id, target);
	if (worker && target < FIRST_OTHER_WORKER)
		worker->wakes_issued++;
	task->waker_worker = target;
	d9__latency_wake(&a->latency, task, event->timestamp_ns,
			 d9_event_known_u64(event, 0, 0),
			 (unsigned)d9_event_known_u64(event, 3, UINT32_MAX));
	return 0;
}

static int on_task_spawn(struct d9__analysis *a, const struct d9_event *event)
{
	struct d9__task *task = task_of(a, event, 0);
	struct d9_text location = text_of(event, 1), kind = text_of(event, 5);
	uint64_t address = d9_event_known_u64(event, 3, 0);
	char text[32];

	if (!task)
		return -ENOMEM;
	if (location.len == 0 && address) {
		location.len = (size_t)snprintf(text, sizeof(text), "0x%" PRIx64, address);
		location.data = text;
	}
	if (!task->callback && set_callback(a, task, location))
		return -ENOMEM;
	task->fd = (int64_t)d9_event_known_u64(event, D9_TASK_SPAWN_FD, UINT64_MAX);
	task->callback->address = address;
	task->callback->site_address = d9_event_known_u64(event, 4, 0);
	if (d9__callback_add_kind(&a->callbacks, task->callback, kind.data, kind.len))
		return -ENOMEM;
	return d9__task_spawn(&a->tasks, task, event->timestamp_ns, bool_of(event, 2, true));
}

static int on_task_terminate(struct d9__analysis *a, const struct d9_event *event)
{
	struct d9__task *task = task_of(a, event, 0);

	if (!task)
		return -ENOMEM;
	if (task->ended)
		return 0;
	d9__task_end(&a->tasks, task, event->timestamp_ns);
	return let_go(a, task);
}

static int on_cpu_sample(struct d9__analysis *a, const struct d9_event *event)
{
	const struct d9_value *stack = d9_event_known(event, 4);
	struct d9_text name = text_of(event, 3);
	struct d9__worker *worker =
		d9__samples_worker(&a->samples, (uint32_t)d9_event_known_u64(event, 1, 0));
	bool has_stack = stack && stack->present && !stack->unresolved;

	if (!worker)
		worker = d9__table_find(&a->timeline.by_id,
					 d9_event_known_u64(event, 0, 255));
	if (worker && name.len && worker->thread_name[0] == '\0')
		snprintf(worker->thread_name, sizeof(worker->thread_name), "%.*s", d9__precision(name.len),
			 name.data);
	return d9__samples_add(&a->samples, worker, event->timestamp_ns,
			       d9_event_known_u64(event, 2, 0) == 1,
			       has_stack ? stack->u.stack.addresses : NULL,
			       has_stack ? stack->u.stack.n : 0);
}

static int on_symbol(struct d9__analysis *a, const struct d9_event *event)
{
	struct d9_text name = text_of(event, 2);

	if (d9_event_known_u64(event, 3, 0) != 0)
		return 0;
	return d9__samples_symbol(&a->samples, d9_event_known_u64(event, 0, 0), name.data,
				  name.len);
}

static const char *origin_of(const struct d9_event *event)
{
	const char *name = d9_event_name(event) + strlen("SpanEnter");

	/* "SpanEnter:origin", "SpanEnter__origin", "SpanEnterEvent" */
	if (*name == ':')
		return name + 1;
	return !strncmp(name, "__", 2) ? name + 2 : "";
}

static int on_span_enter(struct d9__analysis *a, const struct d9_event *event)
{
	const struct d9_value *parent = d9_event_known(event, 2);
	struct d9__worker *worker = d9_event_known_u64(event, 0, 0) == NO_WORKER ? &a->no_worker :
										   worker_of(a, event);
	struct d9_text name = text_of(event, 3);
	struct d9__span_event span = { .ns = event->timestamp_ns,
				       .id = d9_event_known_u64(event, 1, 0),
				       .has_parent = parent && parent->present,
				       .origin = origin_of(event) };

	if (name.len == 0)
		name = (struct d9_text){ "unknown", strlen("unknown") };
	span.name = name.data;
	span.name_len = name.len;
	return worker ? d9__span_enter(&a->spans, &a->callbacks, worker, &span) : -ENOMEM;
}

/* "target::name:file:line", as the recorder spells what follows "SpanEnter:". */
static void spell_origin(char *buf, size_t size, const struct d9_event *event)
{
	struct d9_text target = text_of(event, D9_SPAN_CLOSE_TARGET);
	struct d9_text name = text_of(event, D9_SPAN_CLOSE_SPAN_NAME);
	struct d9_text file = text_of(event, D9_SPAN_CLOSE_FILE);

	snprintf(buf, size, "%.*s%s%.*s:%.*s:%llu", d9__precision(target.len), target.data,
		 target.len ? "::" : "", d9__precision(name.len), name.data, d9__precision(file.len), file.data,
		 (unsigned long long)d9_event_known_u64(event, D9_SPAN_CLOSE_LINE, 0));
}

static int on_span_close(struct d9__analysis *a, const struct d9_event *event)
{
	const struct d9_value *first = d9_event_known(event, D9_SPAN_CLOSE_FIRST_ENTER_NS);
	const struct d9_value *parent = d9_event_known(event, D9_SPAN_CLOSE_PARENT_ID);
	struct d9_text name = text_of(event, D9_SPAN_CLOSE_SPAN_NAME);
	struct d9__span_end end = {
		.ns = event->timestamp_ns,
		.id = d9_event_known_u64(event, D9_SPAN_CLOSE_SPAN_ID, 0),
		.start_ns = d9_event_known_u64(event, D9_SPAN_CLOSE_START_NS, 0),
		.active_ns = d9_event_known_u64(event, D9_SPAN_CLOSE_ACTIVE_NS, 0),
		.never_entered = !first || !first->present,
		.has_parent = parent && parent->present,
		.name = name.data,
		.name_len = name.len,
	};
	char origin[2048] = "";

	if (end.never_entered && end.start_ns)
		spell_origin(origin, sizeof(origin), event);
	end.origin = origin;
	return d9__span_close(&a->spans, &end);
}

static int on_metadata(struct d9__analysis *a, const struct d9_event *event)
{
	const struct d9_value *value = d9_event_known(event, 0);
	int err = 0;

	if (!value || !value->present || value->type != D9_FIELD_STRING_MAP)
		return 0;
	for (size_t i = 0; i < value->u.string_map.n && !err; i++) {
		const struct d9_text *pair = &value->u.string_map.pairs[2 * i];

		err = d9__metadata_put(&a->metadata, pair[0].data, pair[0].len, pair[1].data,
				       pair[1].len);
	}
	return err;
}

static void on_clock_sync(struct d9__analysis *a, const struct d9_event *event)
{
	uint64_t wall = d9_event_known_u64(event, 0, 0);

	if (wall == 0 || event->timestamp_ns == 0)
		return;
	if (a->has_wall && a->anchor_ns <= event->timestamp_ns)
		return;
	a->has_wall = true;
	a->anchor_ns = event->timestamp_ns;
	a->anchor_wall_ns = wall;
}

static void on_usage(struct d9__analysis *a, const struct d9_event *event)
{
	uint64_t values[D9__USAGE_FIELDS];

	for (unsigned i = 0; i < D9__USAGE_FIELDS; i++)
		values[i] = d9_event_known_u64(event, i, 0);
	d9__usage_add(&a->usage, event->timestamp_ns, values);
}

static void on_loss(struct d9__analysis *a, const struct d9_event *event)
{
	struct d9_text cause = text_of(event, 2);
	struct d9__loss loss = { .events = d9_event_known_u64(event, 3, 0),
				 .from_ns = d9_event_known_u64(event, 4, 0),
				 .to_ns = d9_event_known_u64(event, 5, 0) };

	d9__losses_add(&a->losses, cause.data, cause.len, &loss);
}

/* It comes right behind the end of the call that it is about. */
static void on_off_cpu(struct d9__analysis *a, const struct d9_event *event)
{
	struct d9__task *task = d9__table_find(&a->tasks.table,
					       d9_event_known_u64(event, D9_OFF_CPU_TASK_ID, 0));
	uint64_t taken_ns = d9_event_known_u64(event, D9_OFF_CPU_RUN_QUEUE_NS, 0);

	a->off_cpu_seen = true;
	if (!task || !task->call.stall)
		return;
	a->latency.kernel_known |= taken_ns > 0;
	task->call.stall->blocked_ns += d9_event_known_u64(event, D9_OFF_CPU_BLOCKED_NS, 0);
	task->call.stall->run_queue_ns += taken_ns;
	task->callback->taken_ns += taken_ns;
	d9__timeline_taken(task->call.worker, task->id, taken_ns);
	d9__rounds_taken(task->call.worker, task, taken_ns);
}

static int on_helper_run(struct d9__analysis *a, const struct d9_event *event)
{
	struct d9_text function = { "", 0 };
	const struct d9_value *value = d9_event_known(event, D9_HELPER_RUN_FUNCTION);
	struct d9__callback *callback;

	if (value)
		function = value->u.text;
	callback = d9__callbacks_at(&a->callbacks, function.data, function.len);
	if (!callback)
		return -ENOMEM;
	return d9__helper_ran(callback, &(struct d9__helper_run){
		.at_ns = event->timestamp_ns,
		.task = d9_event_known_u64(event, D9_HELPER_RUN_TASK_ID, 0),
		.wait_ns = d9_event_known_u64(event, D9_HELPER_RUN_WAIT_NS, 0),
		.run_ns = d9_event_known_u64(event, D9_HELPER_RUN_RUN_NS, 0),
	});
}

static int on_stale_timer(struct d9__analysis *a, const struct d9_event *event)
{
	struct d9__worker *worker = worker_of(a, event);
	struct d9__task *task = task_of(a, event, D9_STALE_TIMER_TASK_ID);

	if (!worker || !task)
		return -ENOMEM;
	return d9__stale_armed(worker, task, event->timestamp_ns,
			       d9_event_known_u64(event, D9_STALE_TIMER_TIMEOUT_NS, 0),
			       d9_event_known_u64(event, D9_STALE_TIMER_DUE_NS, 0));
}

static int on_other(struct d9__analysis *a, const struct d9_event *event)
{
	switch (event->kind) {
	case D9_EVENT_CLOCK_SYNC:
		on_clock_sync(a, event);
		return 0;
	case D9_EVENT_SEGMENT_METADATA:
		return on_metadata(a, event);
	case D9_EVENT_QUEUE_SAMPLE:
		d9__gauge_add(&a->queue, event->timestamp_ns, d9_event_known_u64(event, 0, 0));
		return 0;
	case D9_EVENT_RUNTIME_METRICS:
		d9__gauge_add(&a->queue, event->timestamp_ns, d9_event_known_u64(event, 1, 0));
		return 0;
	case D9_EVENT_LOOP_TASKS:
		d9__gauge_add(&a->registered, event->timestamp_ns,
			      d9_event_known_u64(event, 1, 0));
		return d9__population_add(&a->population, text_of(event, 0).data,
					  text_of(event, 0).len, d9_event_known_u64(event, 1, 0));
	case D9_EVENT_CPU_SAMPLE:
		return on_cpu_sample(a, event);
	case D9_EVENT_SYMBOL:
		return on_symbol(a, event);
	case D9_EVENT_RESOURCE_USAGE:
		on_usage(a, event);
		return 0;
	case D9_EVENT_OFF_CPU:
		on_off_cpu(a, event);
		return 0;
	case D9_EVENT_HELPER_RUN:
		return on_helper_run(a, event);
	case D9_EVENT_STALE_TIMER:
		return on_stale_timer(a, event);
	case D9_EVENT_RECORDER_LOSS:
		on_loss(a, event);
		return 0;
	case D9_EVENT_MEMORY_OVERFLOW:
		a->losses.dropped_allocs += d9_event_known_u64(event, 0, 0);
		a->losses.dropped_frees += d9_event_known_u64(event, 1, 0);
		return 0;
	default:
		return 0;
	}
}

static int dispatch(struct d9__analysis *a, const struct d9_event *event)
{
	switch (event->kind) {
	case D9_EVENT_POLL_START:
		return on_poll_start(a, event);
	case D9_EVENT_POLL_END:
		return on_poll_end(a, event);
	case D9_EVENT_WORKER_PARK:
		return on_park(a, event);
	case D9_EVENT_WORKER_UNPARK:
		return on_unpark(a, event);
	case D9_EVENT_WAKE:
		return on_wake(a, event);
	case D9_EVENT_TASK_SPAWN:
		return on_task_spawn(a, event);
	case D9_EVENT_TASK_TERMINATE:
		return on_task_terminate(a, event);
	case D9_EVENT_SPAN_ENTER:
		return on_span_enter(a, event);
	case D9_EVENT_SPAN_EXIT:
		return d9__span_exit(&a->spans, d9_event_known_u64(event, 1, 0), event->timestamp_ns);
	case D9_EVENT_SPAN_CLOSE:
		return on_span_close(a, event);
	case D9_EVENT_SPAN_MISUSE:
		a->spans.misused++;
		return 0;
	default:
		return on_other(a, event);
	}
}

/* ---- the pass ---- */

static int count_event(struct d9__analysis *a, const struct d9_event *event)
{
	uint32_t id = d9_schema_id(event->schema);

	a->events++;
	if (id >= a->n_counts) {
		size_t n = (size_t)id + 16;
		struct d9__event_count *counts = realloc(a->counts, n * sizeof(*counts));

		if (!counts)
			return -ENOMEM;
		memset(counts + a->n_counts, 0, (n - a->n_counts) * sizeof(*counts));
		a->counts = counts;
		a->n_counts = n;
	}
	if (!a->counts[id].name) {
		a->counts[id].name = strdup(d9_schema_name(event->schema));
		a->counts[id].kind = event->kind;
		if (!a->counts[id].name)
			return -ENOMEM;
	}
	a->counts[id].events++;
	return 0;
}

static bool is_loop_event(enum d9_event_kind kind)
{
	return kind == D9_EVENT_POLL_START || kind == D9_EVENT_POLL_END ||
	       kind == D9_EVENT_WORKER_PARK || kind == D9_EVENT_WORKER_UNPARK ||
	       kind == D9_EVENT_QUEUE_SAMPLE || kind == D9_EVENT_WAKE;
}

static void note_time(struct d9__analysis *a, const struct d9_event *event)
{
	uint64_t ns = event->timestamp_ns;

	if (!event->has_timestamp || ns == 0)
		return;
	if (event->kind == D9_EVENT_SEGMENT_METADATA && ns >= WALL_TIME_FROM)
		return;
	if (!a->any_time)
		a->first_ns = ns;
	a->any_time = true;
	a->last_ns = ns;
	if (!is_loop_event(event->kind))
		return;
	if (!a->any_loop)
		a->loop_first_ns = ns;
	a->any_loop = true;
	a->loop_last_ns = ns;
}

/* What an event says that happened at no time. */
static bool is_timeless(enum d9_event_kind kind)
{
	return kind == D9_EVENT_SYMBOL || kind == D9_EVENT_SEGMENT_METADATA ||
	       kind == D9_EVENT_RECORDER_LOSS || kind == D9_EVENT_MEMORY_OVERFLOW;
}

int d9__analysis_event(struct d9__analysis *a, const struct d9_event *event)
{
	a->timeline.on_piece = on_piece;
	a->timeline.context = a;
	note_time(a, event);
	if (count_event(a, event))
		return -ENOMEM;
	/* Others without a time come first, wherever they belong: they are counted, and that is all. */
	if (!event->timestamp_ns && !is_timeless(event->kind))
		return 0;
	return dispatch(a, event);
}

static int copy_segment(struct d9__segment_fact *fact, const struct d9_segment_info *info)
{
	*fact = (struct d9__segment_fact){
		.path = strdup(info->path ? info->path : "?"),
		.container = strdup(info->container ? info->container : "?"),
		.message = info->message ? strdup(info->message) : NULL,
		.stored_bytes = info->stored_bytes,
		.unpacked_bytes = info->unpacked_bytes,
		.events = info->events,
		.first_ns = info->first_ns,
		.last_ns = info->last_ns,
		.err_offset = info->err_offset,
		.active = info->active,
		.truncated = info->truncated,
		.err = info->err,
	};
	return fact->path && fact->container ? 0 : -ENOMEM;
}

static int copy_segments(struct d9__analysis *a, const struct d9_reader *reader)
{
	size_t n = d9_reader_segments(reader);
	int err = 0;

	a->segments = calloc(n + 1, sizeof(*a->segments));
	if (!a->segments)
		return -ENOMEM;
	for (size_t i = 0; i < n && !err; i++) {
		struct d9_segment_info info;

		if (a->processes && a->processes->of_segment[i] != a->process)
			continue;
		err = d9_reader_segment(reader, i, &info);
		if (!err)
			err = copy_segment(&a->segments[a->n_segments++], &info);
	}
	return err;
}

static int finish_task(void *context, struct d9__task *task)
{
	return finish_call(context, task);
}

int d9__analysis_finish(struct d9__analysis *a, const struct d9_reader *reader)
{
	int err;

	d9__timeline_finish(&a->timeline, a->loop_last_ns);
	err = d9__tasks_each(&a->tasks, finish_task, a);
	if (!err)
		err = d9__spans_finish(&a->spans);
	return err || !reader ? err : copy_segments(a, reader);
}

void d9__analysis_release(struct d9__analysis *a)
{
	for (size_t i = 0; i < a->n_counts; i++)
		free(a->counts[i].name);
	free(a->counts);
	for (size_t i = 0; i < a->n_segments; i++) {
		free(a->segments[i].path);
		free(a->segments[i].container);
		free(a->segments[i].message);
	}
	free(a->segments);
	d9__stalls_release(&a->stalls);
	d9__timeline_release(&a->timeline);
	d9__tasks_release(&a->tasks);
	d9__callbacks_release(&a->callbacks);
	d9__latency_release(&a->latency);
	d9__spans_release(&a->spans);
	d9__samples_release(&a->samples);
	d9__metadata_release(&a->metadata);
	d9__population_release(&a->population);
	*a = (struct d9__analysis){ 0 };
}

/* ---- names ---- */

/* "function file.c:12", or what of it is known, in new memory.  0 or -ENOMEM. */
static int describe(const char *function, const struct d9__place *place, char **out)
{
	char position[32] = "";

	if (place->file && place->line)
		snprintf(position, sizeof(position), ":%u", place->line);
	if (!function && !place->file)
		return 0;
	if (asprintf(out, "%s%s%s%s", function ? function : "",
		     function && place->file ? " " : "", place->file ? place->file : "",
		     position) < 0) {
		*out = NULL;
		return -ENOMEM;
	}
	return 0;
}

static int name_function(struct d9__callback *callback, const struct d9__namer *namer, size_t len)
{
	struct d9__place place = { .text = callback->location, .len = len,
				   .address = callback->address };

	if (!namer->name(namer->context, &place))
		return 0;
	if (place.function && !(callback->function = strdup(place.function)))
		return -ENOMEM;
	return describe(NULL, &place, &callback->source);
}

static int name_callback(struct d9__callback *callback, const struct d9__namer *namer)
{
	const char *mark = strstr(callback->location, SITE_MARK);
	struct d9__place site = { .address = callback->site_address, .is_return = true };
	int err;

	err = name_function(callback, namer,
			    mark ? (size_t)(mark - callback->location)
				 : strlen(callback->location));
	if (err || !mark)
		return err;
	site.text = mark + strlen(SITE_MARK);
	site.len = strlen(site.text);
	return namer->name(namer->context, &site)
		       ? describe(site.function, &site, &callback->site)
		       : 0;
}

int d9__analysis_name(struct d9__analysis *a, const struct d9__namer *namer)
{
	int err = 0;

	for (size_t i = 0; i < a->callbacks.n && !err; i++)
		err = name_callback(a->callbacks.items[i], namer);
	return err;
}

uint64_t d9__analysis_start_ns(const struct d9__analysis *a)
{
	return a->any_loop ? a->loop_first_ns : a->first_ns;
}

uint64_t d9__analysis_end_ns(const struct d9__analysis *a)
{
	return a->any_loop ? a->loop_last_ns : a->last_ns;
}

uint64_t d9__analysis_wall_ns(const struct d9__analysis *a, uint64_t ns)
{
	return a->has_wall ? ns + a->anchor_wall_ns - a->anchor_ns : 0;
}
