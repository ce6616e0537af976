/* SPDX-License-Identifier: Apache-2.0 */
/* An event's part in an analysis: one function per kind. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis_parts.h"
#include "analyze/helpers.h"
#include "analyze/hot_threads.h"
#include "analyze/span_roles.h"
#include "analyze/stale.h"
#include "base/utf8.h"
#include "read/known_text.h"

static bool bool_of(const struct d9_event *event, unsigned k, bool fallback)
{
	const struct d9_value *value = d9_event_known(event, k);

	return value && value->present ? value->u.boolean : fallback;
}

#define NO_WORKER 255u

static struct d9__worker *worker_of(struct d9__analysis *a, const struct d9_event *event)
{
	return d9__timeline_worker(&a->timeline, d9__known_u64(event, 0, 0));
}

/* The task in field |k|; NULL: out of memory. */
static struct d9__traced_task *task_of(struct d9__analysis *a, const struct d9_event *event, unsigned k)
{
	return d9__tasks_at(&a->tasks, d9__known_u64(event, k, 0));
}

static int set_callback(struct d9__analysis *a, struct d9__traced_task *task, struct d9_text location)
{
	/* Many callbacks' tasks: none of them is to be accused. */
	if (task == a->tasks.others)
		location = (struct d9_text){ "(left out)", strlen("(left out)") };
	task->callback = d9__callbacks_at(&a->callbacks, location.data, location.len);
	return task->callback ? 0 : -ENOMEM;
}

/* |task| may have become one that is over: then keep it for a while, and forget the one kept longest. */
static int let_go(struct d9__analysis *a, struct d9__traced_task *task)
{
	struct d9__traced_task *old = d9__task_bury(&a->tasks, task);
	int err = old ? d9__analysis_finish_call(a, old) : 0;

	if (old)
		d9__task_forget(&a->tasks, old);
	return err;
}

static struct d9_text spawn_loc_of(const struct d9__analysis *a, const struct d9_event *event, unsigned k)
{
	return d9__spawn_texts_recorded(&a->spawn_texts, event->segment, d9__known_text(event, k));
}

static int on_poll_start(struct d9__analysis *a, const struct d9_event *event)
{
	uint64_t ns = event->timestamp_ns;
	struct d9__worker *worker = worker_of(a, event);
	struct d9__traced_task *task = task_of(a, event, 2), *before;
	bool resumed;
	int err;

	if (!worker || !task)
		return -ENOMEM;
	d9__samples_sign(worker, ns);
	before = worker->piece.task;
	d9__idle_end(&a->idle, d9__known_u64(event, 2, 0), ns);
	if (!task->callback && set_callback(a, task, spawn_loc_of(a, event, D9_POLL_START_SPAWN_LOC)))
		return -ENOMEM;
	err = d9__timeline_close(&a->timeline, worker, ns);
	a->tasks.epoch++;
	d9__task_seen(&a->tasks, task);
	task->callback->ran += task->spawned && !task->polled;
	resumed = d9__latency_is_resumption(task, ns);
	if (!resumed && !err) {
		a->uninstrumented_polls += task->uninstrumented;
		err = d9__latency_start(&a->latency, worker, task, ns);
		if (!err)
			err = d9__callback_begin(task->callback, worker->number, task->id);
		task->next_number = task->callback->calls - 1;
		task->next_run = ++a->callbacks.runs;
		task->next_delay_ns = a->latency.newest_ns;
	}
	task->last_start_ns = ns;
	task->polled = true;
	if (resumed)
		d9__timeline_nested(worker, task, ns);
	if (!err)
		err = d9__timeline_poll_start(&a->timeline, worker, ns, task, resumed,
					      d9__analysis_u32(event, 1, 0));
	return err || !before ? err : let_go(a, before);
}

static int on_poll_end(struct d9__analysis *a, const struct d9_event *event)
{
	struct d9__worker *worker = worker_of(a, event);

	if (!worker)
		return -ENOMEM;
	d9__samples_sign(worker, event->timestamp_ns);
	return d9__timeline_poll_end(&a->timeline, worker, event->timestamp_ns);
}

static int on_park(struct d9__analysis *a, const struct d9_event *event)
{
	struct d9__worker *worker = worker_of(a, event);
	uint64_t cpu_ns = d9__known_u64(event, 2, 0), from_ns, off_ns;
	uint32_t tid = d9__analysis_u32(event, 3, 0);

	if (!worker || d9__samples_thread(&a->samples, worker, tid))
		return -ENOMEM;
	d9__samples_sign(worker, event->timestamp_ns);
	off_ns = d9__timeline_off_cpu(worker, event->timestamp_ns, cpu_ns, tid, &from_ns);
	if (off_ns)
		d9__latency_period(&a->latency, worker->id, from_ns, event->timestamp_ns, off_ns);
	return d9__timeline_park(&a->timeline, worker, event->timestamp_ns, cpu_ns, tid);
}

static int on_unpark(struct d9__analysis *a, const struct d9_event *event)
{
	struct d9__worker *worker = worker_of(a, event);
	uint32_t tid = d9__analysis_u32(event, 4, 0);
	uint64_t wait_ns;

	if (!worker || d9__samples_thread(&a->samples, worker, tid))
		return -ENOMEM;
	d9__samples_sign(worker, event->timestamp_ns);
	wait_ns = d9__known_u64(event, D9_WORKER_UNPARK_SCHED_WAIT_NS, UINT64_MAX);
	d9__machine_add_ready(&a->machine, wait_ns == UINT64_MAX ? 0 : wait_ns);
	return d9__timeline_unpark(&a->timeline, worker, event->timestamp_ns,
				   d9__known_u64(event, 2, 0), wait_ns, tid);
}

static int on_wake(struct d9__analysis *a, const struct d9_event *event)
{
	struct d9__traced_task *task = task_of(a, event, 1);
	uint64_t target = d9__known_u64(event, 2, D9__WORKER_OTHERS);
	struct d9__worker *worker;

	if (!task)
		return -ENOMEM;
	worker = d9__table_find(&a->timeline.by_id, target);
	if (worker && target < D9__WORKER_OTHERS)
		worker->wakes_issued++;
	task->waker_worker = target;
	d9__latency_wake(&a->latency, task, event->timestamp_ns, d9__known_u64(event, 0, 0),
			 d9__analysis_u32(event, 3, UINT32_MAX));
	return 0;
}

static bool is_told(const struct d9__analysis *a, const struct d9_event *event)
{
	return a->told_ns && event->timestamp_ns == a->told_ns;
}

static int on_task_spawn(struct d9__analysis *a, const struct d9_event *event)
{
	struct d9__traced_task *task = task_of(a, event, 0);
	struct d9_text location = spawn_loc_of(a, event, D9_TASK_SPAWN_SPAWN_LOC), kind = d9__known_text(event, 5);
	struct d9_text name = d9__known_text(event, D9_TASK_SPAWN_NAME);
	uint64_t address = d9_event_known_u64(event, 3, 0);
	char text[32];

	if (!task)
		return -ENOMEM;
	if (location.len == 0 && address) {
		location.len = (size_t)snprintf(text, sizeof(text), "0x%" PRIx64, address);
		location.data = text;
	}
	if (d9__name_is_better(name.data, name.len, location.data, location.len))
		location = name;
	if (!task->callback && set_callback(a, task, location))
		return -ENOMEM;
	task->fd = (int64_t)d9_event_known_u64(event, D9_TASK_SPAWN_FD, UINT64_MAX);
	if (!is_told(a, event))
		d9__analysis_made(a, task);
	task->callback->address = address;
	task->callback->site_address = d9_event_known_u64(event, 4, 0);
	if (d9__callback_add_kind(&a->callbacks, task->callback, kind.data, kind.len) ||
	    d9__callback_add_name(task->callback, name.data, name.len))
		return -ENOMEM;
	if (!is_told(a, event))
		return d9__task_spawn(&a->tasks, task, event->timestamp_ns, bool_of(event, 2, true));
	d9__task_found(&a->tasks, task, event->timestamp_ns, bool_of(event, 2, true));
	return 0;
}

static int on_task_terminate(struct d9__analysis *a, const struct d9_event *event)
{
	struct d9__traced_task *task = task_of(a, event, 0);

	if (!task)
		return -ENOMEM;
	d9__idle_end(&a->idle, d9_event_known_u64(event, 0, 0), event->timestamp_ns);
	if (task->ended || task == a->tasks.others)
		return 0;
	if (task->reason == D9__WAKE_FD)
		d9__latency_closed(&a->latency, event->timestamp_ns);
	d9__task_end(&a->tasks, task, event->timestamp_ns);
	d9__task_lived(task, a->first_ns, event->timestamp_ns);
	return let_go(a, task);
}

struct d9__worker *d9__analysis_sampled(const struct d9__analysis *a, const struct d9_event *event)
{
	struct d9__worker *worker = d9__samples_worker(
		&a->samples, d9__analysis_u32(event, D9_CPU_SAMPLE_TID, 0));

	return worker ? worker
		      : d9__table_find(&a->timeline.by_id,
				       d9_event_known_u64(event, D9_CPU_SAMPLE_WORKER_ID, 255));
}

static int on_cpu_sample(struct d9__analysis *a, const struct d9_event *event)
{
	const struct d9_value *stack = d9_event_known(event, 4);
	struct d9_text name = d9__known_text(event, 3);
	struct d9__worker *worker = d9__analysis_sampled(a, event);
	bool has_stack = stack && stack->present && !stack->unresolved;
	struct d9__sampled sampled = { .tid = d9__analysis_u32(event, D9_CPU_SAMPLE_TID, 0),
				       .name = name.data,
				       .name_len = name.len,
				       .worker = worker,
				       .off_cpu = d9_event_known_u64(event, D9_CPU_SAMPLE_SOURCE, 0) == 1 };
	const struct d9_value *cpu = d9_event_known(event, D9_CPU_SAMPLE_CPU);
	const struct d9_value *truncated = d9_event_known(event, D9_CPU_SAMPLE_TRUNCATED);

	sampled.is_whole = has_stack && truncated && truncated->present && !truncated->u.boolean;
	/* Stacks of calls that block are told without a processor, and all of them. */
	sampled.in_slice = sampled.off_cpu && cpu && cpu->present &&
			   !(worker && d9__samples_is_told(worker, event->timestamp_ns));
	if (worker && name.len && worker->thread_name[0] == '\0')
		snprintf(worker->thread_name, sizeof(worker->thread_name), "%.*s", d9__precision(name.len),
			 name.data);
	return d9__samples_add(&a->samples, &sampled, event->timestamp_ns,
			       has_stack ? stack->u.stack.addresses : NULL,
			       has_stack ? stack->u.stack.n : 0);
}

int d9__analysis_alloc(struct d9__analysis *a, const struct d9_event *event, struct d9__heap *heap)
{
	const struct d9_value *stack = d9_event_known(event, D9_ALLOC_CALLCHAIN);
	struct d9__worker *worker =
		d9__samples_worker(&a->samples, d9__analysis_u32(event, D9_ALLOC_TID, 0));
	struct d9__heap_alloc alloc = {
		.ns = event->timestamp_ns,
		.size = d9_event_known_u64(event, D9_ALLOC_SIZE, 0),
		.address = d9_event_known_u64(event, D9_ALLOC_ADDR, 0),
		.rate = d9_event_known_u64(event, D9_ALLOC_SAMPLE_RATE_BYTES, 0),
		.callback = worker ? d9__samples_callback(worker, event->timestamp_ns) : NULL,
		.worker = worker,
	};

	if (stack && stack->present && !stack->unresolved) {
		alloc.addresses = stack->u.stack.addresses;
		alloc.n = stack->u.stack.n;
	}
	return d9__heap_alloc(heap, &alloc);
}

void d9__analysis_free(const struct d9_event *event, struct d9__heap *heap)
{
	d9__heap_free(heap, event->timestamp_ns, d9_event_known_u64(event, D9_FREE_ADDR, 0),
		      d9_event_known_u64(event, D9_FREE_ALLOC_TIMESTAMP_NS, 0));
}

static int on_task_dump(struct d9__analysis *a, const struct d9_event *event)
{
	const struct d9_value *stack = d9_event_known(event, D9_TASK_DUMP_CALLCHAIN);
	struct d9__idle_dump dump = { .task = d9_event_known_u64(event, D9_TASK_DUMP_TASK_ID, 0),
				      .ns = event->timestamp_ns,
				      .kept = bool_of(event, D9_TASK_DUMP_KEPT, false),
				      .truncated = bool_of(event, D9_TASK_DUMP_TRUNCATED, false) };

	if (stack && stack->present && !stack->unresolved) {
		dump.addresses = stack->u.stack.addresses;
		dump.n = stack->u.stack.n;
	}
	return d9__idle_dumped(&a->idle, &dump);
}

static int on_accept_queue(struct d9__analysis *a, const struct d9_event *event)
{
	struct d9_text address = d9__known_text(event, D9_TCP_ACCEPT_QUEUE_LOCAL_ADDR);
	struct d9__accept_sample sample = {
		.cookie = d9_event_known_u64(event, D9_TCP_ACCEPT_QUEUE_SOCKET_COOKIE, 0),
		.ns = event->timestamp_ns,
		.pending = d9_event_known_u64(event, D9_TCP_ACCEPT_QUEUE_PENDING_CONNECTIONS, 0),
		.limit = d9_event_known_u64(event, D9_TCP_ACCEPT_QUEUE_BACKLOG_LIMIT, 0),
		.port = d9__analysis_u32(event, D9_TCP_ACCEPT_QUEUE_LOCAL_PORT, 0),
		.address = address.data,
		.address_len = address.len,
	};

	return d9__accepts_add(&a->accepts,
			       d9__table_find(&a->timeline.by_id,
					      d9_event_known_u64(event, D9_TCP_ACCEPT_QUEUE_WORKER_ID, NO_WORKER)),
			       &sample);
}

static int on_symbol(struct d9__analysis *a, const struct d9_event *event)
{
	struct d9_text name = d9__known_text(event, 2);

	if (!d9_event_known_u64(event, D9_SYMBOL_ADDR, 0))
		return d9__spawn_texts_learn(&a->spawn_texts, event);
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
	struct d9__worker *worker = d9_event_known_u64(event, 0, NO_WORKER) == NO_WORKER ? &a->no_worker :
											   worker_of(a, event);
	struct d9_text name = d9__known_text(event, 3);
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

/* A segment begins by telling the spans that live. */
static int on_span_open(struct d9__analysis *a, const struct d9_event *event)
{
	const struct d9_value *parent = d9_event_known(event, D9_SPAN_OPEN_PARENT_ID);
	struct d9_text name = d9__known_text(event, D9_SPAN_OPEN_SPAN_NAME);
	struct d9_text origin = d9__known_text(event, D9_SPAN_OPEN_ORIGIN);
	struct d9__span_event span = { .ns = d9_event_known_u64(event, D9_SPAN_OPEN_START_NS,
								event->timestamp_ns),
				       .id = d9_event_known_u64(event, D9_SPAN_OPEN_SPAN_ID, 0),
				       .has_parent = parent && parent->present,
				       .name = name.data,
				       .name_len = name.len };
	char text[2048];

	snprintf(text, sizeof(text), "%.*s", d9__precision(origin.len), origin.data);
	span.origin = text;
	return d9__span_open(&a->spans, &a->callbacks, &a->no_worker, &span);
}

/* "target::name:file:line", as the recorder spells what follows "SpanEnter:". */
static void spell_origin(char *buf, size_t size, const struct d9_event *event)
{
	struct d9_text target = d9__known_text(event, D9_SPAN_CLOSE_TARGET);
	struct d9_text name = d9__known_text(event, D9_SPAN_CLOSE_SPAN_NAME);
	struct d9_text file = d9__known_text(event, D9_SPAN_CLOSE_FILE);

	snprintf(buf, size, "%.*s%s%.*s:%.*s:%llu", d9__precision(target.len), target.data,
		 target.len ? "::" : "", d9__precision(name.len), name.data, d9__precision(file.len), file.data,
		 (unsigned long long)d9_event_known_u64(event, D9_SPAN_CLOSE_LINE, 0));
}

static int on_span_close(struct d9__analysis *a, const struct d9_event *event)
{
	const struct d9_value *first = d9_event_known(event, D9_SPAN_CLOSE_FIRST_ENTER_NS);
	const struct d9_value *parent = d9_event_known(event, D9_SPAN_CLOSE_PARENT_ID);
	struct d9_text name = d9__known_text(event, D9_SPAN_CLOSE_SPAN_NAME);
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

/* Whether the trace begins with the first segment of its process: others name the one before them at once. */
static bool is_from_start(const struct d9__metadata *metadata)
{
	const char *mode = d9__metadata_value(metadata, "recorder.mode");

	return mode && !strcmp(mode, "continuous") && !d9__metadata_value(metadata, "segment.prior_sealed_clean");
}

static int on_metadata(struct d9__analysis *a, const struct d9_event *event)
{
	const struct d9_value *value = d9_event_known(event, 0);
	const char *hz, *rate, *told;
	int err = 0;

	if (!value || !value->present || value->type != D9_FIELD_STRING_MAP)
		return 0;
	for (size_t i = 0; i < value->u.string_map.n && !err; i++) {
		const struct d9_text *pair = &value->u.string_map.pairs[2 * i];

		err = d9__metadata_put(&a->metadata, pair[0].data, pair[0].len, pair[1].data,
				       pair[1].len);
	}
	if (!a->any_metadata)
		a->from_start = is_from_start(&a->metadata);
	a->any_metadata = true;
	told = d9__metadata_value(&a->metadata, "segment.told_ns");
	if (told)
		a->told_ns = strtoull(told, NULL, 10);
	hz = d9__metadata_value(&a->metadata, "cpu.sample_hz");
	/* Traces of the original recorder have the rate under this key. */
	if (!hz)
		hz = d9__metadata_value(&a->metadata, "cpu.profile.frequency_hz");
	if (hz && atoi(hz) > 0)
		a->samples.period_ns = D9__SECOND_NS / (unsigned)atoi(hz);
	d9__idle_set_mean(&a->idle, d9__metadata_value(&a->metadata, "task_dump.idle_threshold_ms"));
	rate = d9__metadata_value(&a->metadata, "memory.sample_rate_bytes");
	if (rate)
		a->heap.rate = strtoull(rate, NULL, 10);
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
	d9__usage_add(&a->usage, event->timestamp_ns, values,
		      d9_event_known_u64(event, D9_RESOURCE_USAGE_RECORDER_CPU_NS, 0));
}

static void on_loss(struct d9__analysis *a, const struct d9_event *event)
{
	struct d9_text cause = d9__known_text(event, 2);
	struct d9__trace_loss loss = { .events = d9_event_known_u64(event, 3, 0),
				 .from_ns = d9_event_known_u64(event, 4, 0),
				 .to_ns = d9_event_known_u64(event, 5, 0) };
	struct d9__worker *worker = d9__table_find(&a->timeline.by_id,
						   d9_event_known_u64(event, 1, NO_WORKER));

	d9__losses_add(&a->losses, cause.data, cause.len, &loss);
	if (worker && loss.events && loss.to_ns >= worker->lost_to_ns) {
		worker->lost_from_ns = loss.from_ns;
		worker->lost_to_ns = loss.to_ns;
	}
}

void d9__analysis_off_cpu(const struct d9_event *event, uint64_t *blocked_ns, uint64_t *ready_ns)
{
	*ready_ns = d9_event_known_u64(event, D9_OFF_CPU_RUN_QUEUE_NS, 0);
	*blocked_ns = d9_event_known_u64(event, D9_OFF_CPU_BLOCKED_NS, 0);
	/* A thread that sleeps gives up the CPU itself: if this one never did, the machine took the CPU from it. */
	if (d9_event_known_u64(event, D9_OFF_CPU_VOLUNTARY_SWITCHES, 1) == 0) {
		*ready_ns += *blocked_ns;
		*blocked_ns = 0;
	}
}

/* It comes right behind the end of the call that it is about. */
static void on_off_cpu(struct d9__analysis *a, const struct d9_event *event)
{
	struct d9__traced_task *task = d9__table_find(&a->tasks.table,
					       d9_event_known_u64(event, D9_OFF_CPU_TASK_ID, 0));
	const struct d9__piece *piece =
		task && task->call.worker ? &task->call.worker->piece : NULL;
	uint64_t taken_ns, blocked_ns, held_up_ns;

	d9__analysis_off_cpu(event, &blocked_ns, &taken_ns);
	a->off_cpu_seen = true;
	/* The machine took from it as well when that kept a CPU from another thread, for which it
	 * waits. */
	if (piece && piece->task == task && !piece->open) {
		held_up_ns = piece->held_up_ns < blocked_ns ? piece->held_up_ns : blocked_ns;
		blocked_ns -= held_up_ns;
		taken_ns += held_up_ns;
	}
	if (task && task->call.pieces) {
		task->call.read = true;
		task->call.slept_ns += blocked_ns;
		task->call.ready_ns += taken_ns;
	}
	if (task && task->call.worker)
		d9__analysis_read(task, event, blocked_ns, taken_ns);
	if (!task || !task->call.stall)
		return;
	a->latency.kernel_known |= taken_ns > 0;
	d9__machine_add_ready(&a->machine, taken_ns);
	task->call.stall->blocked_ns += blocked_ns;
	task->call.stall->run_queue_ns += taken_ns;
	d9__analysis_figures(&task->call, event);
	task->call.worker->unpark.told_ns += blocked_ns + taken_ns;
	d9__timeline_taken(task->call.worker, task->id, taken_ns);
	d9__rounds_taken(task->call.worker, task, taken_ns);
}

static int on_helper_run(struct d9__analysis *a, const struct d9_event *event)
{
	struct d9_text function = d9__known_text(event, D9_HELPER_RUN_FUNCTION);
	uint64_t id = d9_event_known_u64(event, D9_HELPER_RUN_TASK_ID, 0);
	const struct d9__traced_task *task = d9__table_find(&a->tasks.table, id);
	struct d9__callback *callback;
	struct d9__helper_run run;

	callback = d9__callbacks_at(&a->callbacks, function.data, function.len);
	if (!callback)
		return -ENOMEM;
	run = (struct d9__helper_run){
		.at_ns = event->timestamp_ns,
		.task = id,
		.by = task ? task->callback : NULL,
		.wait_ns = d9_event_known_u64(event, D9_HELPER_RUN_WAIT_NS, 0),
		.run_ns = d9_event_known_u64(event, D9_HELPER_RUN_RUN_NS, 0),
	};
	d9__helper_behind(&a->helper_runs, &run);
	return d9__helper_ran(callback, &run);
}

/* The worker that runs |task|, or ran it last; NULL: none has. */
static const struct d9__worker *worker_that_ran(const struct d9__analysis *a,
						const struct d9__traced_task *task)
{
	const struct d9__worker *found = task->call.worker;

	for (size_t i = 0; i < a->timeline.n; i++) {
		const struct d9__worker *worker = a->timeline.items[i];

		if (worker->piece.task == task &&
		    (!found || worker->piece.start_ns > found->piece.start_ns))
			found = worker;
	}
	return found;
}

static int on_loop_outside(struct d9__analysis *a, const struct d9_event *event)
{
	uint64_t from_ns = d9_event_known_u64(event, D9_LOOP_OUTSIDE_FROM_NS, 0);
	uint64_t to_ns = d9_event_known_u64(event, D9_LOOP_OUTSIDE_TO_NS, 0);
	struct d9__worker *worker = worker_of(a, event);
	uint64_t held_ns;

	if (!worker ||
	    d9__outside_calls_settle(&worker->outside_calls, &a->blocked, from_ns, &held_ns))
		return -ENOMEM;
	d9__loop_time_outside(&worker->loop_time, from_ns, to_ns);
	d9__loop_time_outside_held(&worker->loop_time, held_ns);
	d9__returns_come(&worker->returns, to_ns > from_ns ? to_ns - from_ns : 0, held_ns);
	d9__replay_outside(worker);
	d9__samples_between(&a->samples, worker, from_ns, to_ns);
	return 0;
}

static int on_run_queue(struct d9__analysis *a, const struct d9_event *event)
{
	struct d9__worker *worker = worker_of(a, event);

	if (!worker)
		return -ENOMEM;
	d9__timeline_ready(worker, d9_event_known_u64(event, D9_RUN_QUEUE_FROM_NS, 0),
			   event->timestamp_ns, d9_event_known_u64(event, D9_RUN_QUEUE_WAIT_NS, 0));
	return 0;
}

static void on_stopped(struct d9__analysis *a, const struct d9_event *event)
{
	uint64_t from_ns = d9_event_known_u64(event, D9_PROCESS_STOPPED_FROM_NS, 0);
	uint64_t to_ns = d9_event_known_u64(event, D9_PROCESS_STOPPED_TO_NS, 0);
	uint64_t ns = to_ns > from_ns ? to_ns - from_ns : 0;

	a->stopped.suspended_ns += d9_event_known_u64(event, D9_PROCESS_STOPPED_SUSPENDED_NS, 0);
	if (!ns)
		return;
	if (a->stopped.n < D9__STOPS_MAX) {
		a->stopped.items[a->stopped.n].from_ns = from_ns;
		a->stopped.items[a->stopped.n].to_ns = to_ns;
	}
	a->stopped.n++;
	a->stopped.ns += ns;
	if (ns > a->stopped.longest_ns) {
		a->stopped.longest_ns = ns;
		a->stopped.longest_at_ns = from_ns;
	}
	d9__timeline_stopped(&a->timeline, from_ns, to_ns);
}

static int on_fired(struct d9__analysis *a, const struct d9_event *event)
{
	uint64_t id = d9_event_known_u64(event, D9_DUMP_TRIGGER_TASK_ID, 0);
	const struct d9__traced_task *task = id ? d9__tasks_at(&a->tasks, id) : NULL;

	if (!task)
		return id ? -ENOMEM : d9__fired_add(&a->fired, event, NULL, NULL);
	return d9__fired_add(&a->fired, event, task->callback, worker_that_ran(a, task));
}

static int on_stale_timer(struct d9__analysis *a, const struct d9_event *event)
{
	struct d9__worker *worker = worker_of(a, event);
	struct d9__traced_task *task = task_of(a, event, D9_STALE_TIMER_TASK_ID);

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
		return d9__population_add(&a->population, d9__known_text(event, 0).data,
					  d9__known_text(event, 0).len, d9_event_known_u64(event, 1, 0));
	case D9_EVENT_CPU_SAMPLE:
		return on_cpu_sample(a, event);
	case D9_EVENT_TASK_DUMP:
		return on_task_dump(a, event);
	case D9_EVENT_TCP_ACCEPT_QUEUE:
		return on_accept_queue(a, event);
	case D9_EVENT_SYMBOL:
		return on_symbol(a, event);
	case D9_EVENT_RESOURCE_USAGE:
		on_usage(a, event);
		return 0;
	case D9_EVENT_OFF_CPU:
		on_off_cpu(a, event);
		return 0;
	case D9_EVENT_PROCESS_STATE:
		d9__machine_add(&a->machine, event);
		return d9__analysis_state(a, event);
	case D9_EVENT_LAST_SIGN:
		return d9__analysis_last_sign(a, event);
	case D9_EVENT_STUCK_POLL:
		d9__analysis_stuck(a, event);
		return d9__analysis_state(a, event);
	case D9_EVENT_BLOCKING_CALL:
		return d9__analysis_told(a, event) < 0 ? -ENOMEM : d9__analysis_state(a, event);
	case D9_EVENT_HELPER_RUN:
		return on_helper_run(a, event);
	case D9_EVENT_PROCESS_STOPPED:
		on_stopped(a, event);
		return 0;
	case D9_EVENT_LOOP_OUTSIDE:
		return on_loop_outside(a, event);
	case D9_EVENT_RUN_QUEUE:
		return on_run_queue(a, event);
	case D9_EVENT_BOUND_THREAD:
		d9__bound_add(&a->bound, &a->timeline, event);
		return 0;
	case D9_EVENT_STALE_TIMER:
		return on_stale_timer(a, event);
	case D9_EVENT_DUMP_TRIGGER:
		return on_fired(a, event);
	case D9_EVENT_RECORDER_LOSS:
		on_loss(a, event);
		return 0;
	case D9_EVENT_RECORDER_HEALTH:
		a->write_error = (int)d9_event_u64(event, "error", (uint64_t)a->write_error);
		return 0;
	case D9_EVENT_ALLOC:
		return d9__analysis_alloc(a, event, &a->heap);
	case D9_EVENT_FREE:
		d9__analysis_free(event, &a->heap);
		return 0;
	case D9_EVENT_MEMORY_OVERFLOW:
		a->losses.dropped_allocs += d9_event_known_u64(event, D9_MEMORY_OVERFLOW_DROPPED_ALLOCS, 0);
		a->losses.dropped_frees += d9_event_known_u64(event, D9_MEMORY_OVERFLOW_DROPPED_FREES, 0);
		a->heap.evicted += d9_event_known_u64(event, D9_MEMORY_OVERFLOW_EVICTED, 0);
		return 0;
	case D9_EVENT_CUSTOM:
		return d9__span_whole(&a->spans, event);
	default:
		return d9__analysis_state(a, event);
	}
}

int d9__analysis_dispatch(struct d9__analysis *a, const struct d9_event *event)
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
	case D9_EVENT_SPAN_OPEN:
		return on_span_open(a, event);
	case D9_EVENT_SPAN_MISUSE:
		a->spans.misused++;
		return 0;
	default:
		return on_other(a, event);
	}
}
