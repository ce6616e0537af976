/* SPDX-License-Identifier: Apache-2.0 */
/* The pass over a trace, and what is known at its end. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis_parts.h"
#include "base/array.h"
#include "format/definition.h"

/* Files of very old producers give metadata a wall-clock time; from 2020 on, in ns. */
#define WALL_TIME_FROM UINT64_C(1577836800000000000)

/* A program starts for so long at most, and for one part in so many of what is recorded. */
#define START_NS   D9__SECOND_NS
#define START_PART 3

/* A thread in a wait is at work from so much CPU time on. */
#define AT_WORK_NS (100 * D9__MS_NS)

/* CPU time that was not read for so large a part of the trace, one in so many, is not known. */
#define UNREAD_PART 10

/* A call that begins so soon belongs to the start. */
#define START_SOON_NS (100 * D9__MS_NS)

/* The first event of |schema|. */
static __attribute__((cold)) int begin_count(struct d9__analysis *a, const struct d9_schema *schema,
					     enum d9_event_kind kind)
{
	if (!d9__array_reach(a->counts, &a->n_counts, schema->id))
		return -ENOMEM;
	a->counts[schema->id].name = strdup(schema->name);
	a->counts[schema->id].kind = kind;
	return a->counts[schema->id].name ? 0 : -ENOMEM;
}

static int count_event(struct d9__analysis *a, const struct d9_event *event)
{
	const struct d9_schema *written = event->schema->written_as;
	const struct d9_schema *schema = written ? written : event->schema;

	/* A call is one event of the trace, at its end. */
	if (written && event->kind != D9_EVENT_SPAN_EXIT)
		return 0;
	a->events++;
	if ((schema->id >= a->n_counts || !a->counts[schema->id].name) &&
	    begin_count(a, schema, written ? D9_EVENT_SPAN_CALL : event->kind))
		return -ENOMEM;
	a->counts[schema->id].events++;
	return 0;
}

static bool is_loop_event(enum d9_event_kind kind)
{
	return kind == D9_EVENT_POLL_START || kind == D9_EVENT_POLL_END ||
	       kind == D9_EVENT_WORKER_PARK || kind == D9_EVENT_WORKER_UNPARK ||
	       kind == D9_EVENT_QUEUE_SAMPLE || kind == D9_EVENT_WAKE ||
	       kind == D9_EVENT_LAST_SIGN || kind == D9_EVENT_STUCK_POLL;
}

static void note_time(struct d9__analysis *a, const struct d9_event *event)
{
	uint64_t ns = event->timestamp_ns;

	if (!event->has_timestamp || ns == 0)
		return;
	if (event->kind == D9_EVENT_SEGMENT_METADATA && ns >= WALL_TIME_FROM)
		return;
	/* Its time is that of an arming, which may lie long before the events that are there. */
	if (event->kind == D9_EVENT_TASK_DUMP)
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

/* True if an event of |kind| tells of no moment. */
static bool is_timeless(enum d9_event_kind kind)
{
	return kind == D9_EVENT_SYMBOL || kind == D9_EVENT_SEGMENT_METADATA ||
	       kind == D9_EVENT_RECORDER_LOSS || kind == D9_EVENT_MEMORY_OVERFLOW;
}

int d9__analysis_event(struct d9__analysis *a, const struct d9_event *event)
{
	a->timeline.on_piece = d9__analysis_piece;
	a->timeline.context = a;
	note_time(a, event);
	if (count_event(a, event))
		return -ENOMEM;
	/* Others without a time come first, wherever they belong: they are counted, and that is
	 * all. */
	if (!event->timestamp_ns && !is_timeless(event->kind))
		return 0;
	return d9__analysis_dispatch(a, event);
}

static int copy_segment(struct d9__segment_fact *fact, const struct d9_segment_info *info)
{
	*fact = (struct d9__segment_fact) {
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

/* The segment of its process after |i|, or after D9__NO_SEGMENT the first. */
static size_t next_segment(const struct d9__analysis *a, const struct d9_reader *reader, size_t i)
{
	if (a->processes)
		return i == D9__NO_SEGMENT ? a->processes->items[a->process].first
					   : a->processes->next[i];
	return i + 1 < d9_reader_segments(reader) ? i + 1 : D9__NO_SEGMENT;
}

static int copy_segments(struct d9__analysis *a, const struct d9_reader *reader)
{
	size_t first = next_segment(a, reader, D9__NO_SEGMENT), n = 0;
	int err = 0;

	for (size_t i = first; i != D9__NO_SEGMENT; i = next_segment(a, reader, i))
		n++;
	a->segments = calloc(n + 1, sizeof(*a->segments));
	if (!a->segments)
		return -ENOMEM;
	for (size_t i = first; i != D9__NO_SEGMENT && !err; i = next_segment(a, reader, i)) {
		struct d9_segment_info info;

		err = d9_reader_segment(reader, i, &info);
		if (!err)
			err = copy_segment(&a->segments[a->n_segments++], &info);
	}
	return err;
}

static int finish_task(void *context, struct d9__traced_task *task)
{
	const struct d9__analysis *a = context;

	if (!task->ended && task != a->tasks.others)
		d9__task_lived(task, a->first_ns, a->last_ns);
	return d9__analysis_finish_call(context, task);
}

/* The process stood still in |stall|: its thread slept by the kernel's word, and was not the
 * program's to wake. */
static void take_stops(const struct d9__analysis *a, struct d9__stall *stall)
{
	uint64_t left_ns = stall->blocked_ns;

	for (size_t i = 0; i < a->stopped.n && i < D9__STOPS_MAX && !stall->stopped_ns; i++) {
		uint64_t from_ns = a->stopped.items[i].from_ns, to_ns = a->stopped.items[i].to_ns;

		from_ns = from_ns > stall->start_ns ? from_ns : stall->start_ns;
		to_ns = to_ns < stall->end_ns ? to_ns : stall->end_ns;
		if (to_ns > from_ns)
			left_ns -= to_ns - from_ns < left_ns ? to_ns - from_ns : left_ns;
	}
	if (stall->stopped_ns || left_ns == stall->blocked_ns)
		return;
	stall->stopped_ns = stall->blocked_ns - left_ns;
	stall->blocked_ns = left_ns;
	stall->run_queue_ns += stall->stopped_ns;
	stall->time.ready_ns += stall->stopped_ns;
	stall->time.blocked_ns -= stall->stopped_ns < stall->time.blocked_ns
					  ? stall->stopped_ns
					  : stall->time.blocked_ns;
}

/* Long calls were measured before it was known that the process stood still in them. */
static void finish_stops(struct d9__analysis *a)
{
	for (size_t i = 0; i < a->callbacks.n && a->stopped.n; i++) {
		struct d9__callback *callback = a->callbacks.items[i];

		for (size_t j = 0; j < callback->n_stalls; j++)
			take_stops(a, callback->stalls[j].stall);
		/* A call that was long by a stop alone stands in front of none that was so by
		 * itself. */
		d9__callback_sort_stalls(callback);
	}
	for (size_t i = 0; i < a->stalls.n && a->stopped.n; i++)
		take_stops(a, a->stalls.items[i].stall);
}

/*
 * Samples find a thread at work in a wait that the trace's end cuts: the recorder need not have
 * told of that.  As for the recorder it has to be at work for half of a fifth of a second: a few
 * samples are what a thread does at its end.
 */
static void finish_waits(struct d9__analysis *a)
{
	for (size_t i = 0; i < a->timeline.n; i++) {
		struct d9__worker *worker = a->timeline.items[i];
		uint64_t cpu_ns = worker->wait_samples * a->samples.period_ns;

		if (!worker->park.valid || cpu_ns < AT_WORK_NS || cpu_ns <= worker->library.cpu_ns)
			continue;
		worker->library.n += worker->library.n == 0;
		worker->library.cpu_ns = cpu_ns;
		worker->library.since_ns = worker->park.ns;
		worker->library.until_ns = worker->wait_sampled_ns;
	}
}

int d9__analysis_finish(struct d9__analysis *a, const struct d9_reader *reader)
{
	int err;

	err = d9__analysis_close_open(a);
	finish_waits(a);
	d9__bound_finish(&a->bound, &a->timeline);
	if (d9__timeline_finish(&a->timeline, a->loop_last_ns) < 0)
		err = -ENOMEM;
	if (!err)
		err = d9__tasks_each(&a->tasks, finish_task, a);
	d9__analysis_tell_unended(a);
	d9__idle_finish(&a->idle, d9__analysis_end_ns(a));
	d9__callbacks_finish(&a->callbacks);
	for (size_t i = 0; i < a->timeline.n && !err; i++)
		err = d9__outside_calls_end(&a->timeline.items[i]->outside_calls, &a->blocked);
	finish_stops(a);
	d9__fired_name(&a->fired, &a->callbacks);
	if (!err)
		err = d9__spans_finish(&a->spans);
	if (!err)
		err = d9__weights_make(a);
	return err || !reader ? err : copy_segments(a, reader);
}

bool d9__analysis_has_any(const struct d9__analysis *a)
{
	return a->timeline.n || a->samples.on + a->samples.off || a->heap.allocated.samples;
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
	d9__pauses_release(&a->pauses);
	d9__timeline_release(&a->timeline);
	d9__tasks_release(&a->tasks);
	d9__callbacks_release(&a->callbacks);
	d9__latency_release(&a->latency);
	d9__spans_release(&a->spans);
	d9__samples_release(&a->samples);
	d9__idle_release(&a->idle);
	d9__accepts_release(&a->accepts);
	d9__fired_release(&a->fired);
	d9__heap_release(&a->heap);
	d9__blocked_release(&a->blocked);
	d9__metadata_release(&a->metadata);
	d9__population_release(&a->population);
	d9__growth_release(&a->growth);
	d9__texts_release(&a->places);
	d9__texts_release(&a->functions);
	d9__spawn_texts_release(&a->spawn_texts);
	*a = (struct d9__analysis) { 0 };
}

/*
 * Whether no reading tells what |worker| used of a tenth of the trace, or more: a loop that does
 * not wait has none.
 */
static bool is_unread(const struct d9__analysis *a, const struct d9__worker *worker)
{
	uint64_t last_ns = worker->loop_time.last_ns;

	return worker->unpark.valid && last_ns > worker->unpark.ns &&
	       UNREAD_PART * (last_ns - worker->unpark.ns) >= a->loop_last_ns - a->loop_first_ns;
}

/* |worker|'s thread: all that it used, counted once for all the loops that it ran. */
static uint64_t thread_ns(const struct d9__analysis *a, const struct d9__worker *worker)
{
	for (size_t i = 0; i < worker->number; i++)
		if (a->timeline.items[i]->cpu.valid &&
		    a->timeline.items[i]->cpu.tid == worker->cpu.tid)
			return 0;
	return worker->cpu.valid ? worker->cpu.ns : 0;
}

struct d9__cpu_shares d9__analysis_cpu(const struct d9__analysis *a)
{
	const uint64_t *usage = a->from_start ? a->usage.last : a->usage.growth;
	struct d9__cpu_shares shares = { .all_ns = usage[D9__USAGE_USER_NS] +
						   usage[D9__USAGE_SYSTEM_NS] };
	bool known = false, unread = false;
	uint64_t told_ns;

	for (size_t i = 0; i < a->timeline.n; i++) {
		known |= a->timeline.items[i]->cpu_seen;
		unread |= is_unread(a, a->timeline.items[i]);
	}
	if (!known || unread)
		return (struct d9__cpu_shares) { .all_ns = 0 };
	for (size_t i = 0; i < a->timeline.n; i++)
		shares.loops_ns += a->from_start ? thread_ns(a, a->timeline.items[i]) +
							   a->timeline.items[i]->cut_cpu_ns
						 : a->timeline.items[i]->cpu_ns;
	shares.recorder_ns = a->from_start ? a->usage.recorder_ns : a->usage.recorder_growth_ns;
	told_ns = shares.loops_ns + shares.recorder_ns;
	shares.elsewhere_ns = shares.all_ns > told_ns ? shares.all_ns - told_ns : 0;
	return shares;
}

const char *d9__analysis_worker_name(const struct d9__analysis *a, const struct d9__worker *worker)
{
	const char *group = d9__metadata_group(&a->metadata, worker->id);

	if (group)
		return group;
	return worker->thread_name[0] ? worker->thread_name : NULL;
}

uint64_t d9__analysis_start_ns(const struct d9__analysis *a)
{
	return a->any_loop ? a->loop_first_ns : a->first_ns;
}

bool d9__analysis_is_start(const struct d9__analysis *a, uint64_t from_ns, uint64_t to_ns,
			   bool waited)
{
	uint64_t since_ns = to_ns - a->loop_first_ns;

	return a->from_start && from_ns >= a->loop_first_ns && since_ns <= START_NS &&
	       START_PART * since_ns <= a->loop_last_ns - a->loop_first_ns &&
	       (!waited || from_ns - a->loop_first_ns <= START_SOON_NS);
}

uint64_t d9__analysis_end_ns(const struct d9__analysis *a)
{
	return a->any_loop ? a->loop_last_ns : a->last_ns;
}

double d9__analysis_switch_share(const struct d9__analysis *a)
{
	const char *text = d9__metadata_value(&a->metadata, "sched.switch_duty");
	double duty = text ? atof(text) : 0, seen;
	uint64_t ns = d9__analysis_end_ns(a) - d9__analysis_start_ns(a);

	if (!(duty > 0 && duty < 1) || ns == 0)
		return 1;
	/* The first slice lies at the beginning: of a short trace that is more than the duty cycle.
	 */
	seen = (double)(a->samples.slices * D9__SLICE_NS) / (double)ns;
	return seen > 1 ? 1 : seen > duty ? seen : duty;
}

double d9__analysis_sampled_share(const struct d9__analysis *a)
{
	uint64_t used_ns = a->usage.program_ns;

	if (!a->samples.period_ns || used_ns < D9__SECOND_NS / 2)
		return -1;
	return (double)(a->samples.on * a->samples.period_ns) / (double)used_ns;
}

uint64_t d9__analysis_wall_ns(const struct d9__analysis *a, uint64_t ns)
{
	return a->has_wall ? ns + a->anchor_wall_ns - a->anchor_ns : 0;
}
