/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of each kind of row; the texts of those that SQL has are its schema's, to the letter. */
#include "config.h"

#include "findings/check_parts.h"
#include "report/columns.h"

/* The member of a row; IN(): of what its first member points to. */
#define TYPE(value)                                                                                \
	_Generic((value),                                                                       \
		uint64_t: D9__OF_U64,                                                           \
		uint32_t: D9__OF_U32,                                                           \
		int64_t: D9__OF_I64,                                                            \
		struct d9__known: D9__OF_KNOWN,                                                 \
		double: D9__OF_DOUBLE,                                                          \
		bool: D9__OF_BOOL,                                                              \
		char *: D9__OF_STRING,                                                          \
		const char *: D9__OF_STRING,                                                    \
		struct d9_text: D9__OF_TEXT)
#define AT(type, member) TYPE(((type *)0)->member), false, offsetof(type, member)
#define IN(type, member) TYPE(((type *)0)->member), true, offsetof(type, member)

#define OBJECT D9__AS_OBJECT, D9__OF_U64, false, 0

/* Of columns with one name alone. */
#define KEY(name) name, NULL, NULL
#define SQL(name) NULL, name, NULL

uint64_t d9__off_cpu_estimated(const struct d9__analysis *a, uint64_t off, uint64_t switches)
{
	return d9__samples_estimate(off, switches, d9__analysis_switch_share(a));
}

/* ---- durations ---- */

#define ROW(unit, member) D9__AS_##unit, AT(struct d9__quantiles, member)

const struct d9__column d9__quantile_columns[] = {
	{ KEY("count"), ROW(COUNT, count), "how many" },
	{ KEY("sum_ns"), ROW(NS, sum_ns), "all together" },
	{ KEY("min_ns"), ROW(NS, min_ns), "the least" },
	{ "p50_ns", NULL, "P50", ROW(NS, p50_ns), "half of them are no longer" },
	{ "p90_ns", NULL, "P90", ROW(NS, p90_ns), "90 % are no longer" },
	{ "p99_ns", NULL, "P99", ROW(NS, p99_ns), "99 % are no longer" },
	{ KEY("p999_ns"), ROW(NS, p999_ns), "99.9 % are no longer" },
	{ "max_ns", NULL, "LONGEST", ROW(NS, max_ns), "the longest" },
	{ .key = NULL },
};
#undef ROW

struct d9__quantiles d9__quantiles_of(const struct d9__histogram *h)
{
	return (struct d9__quantiles) {
		.count = h->count,
		.sum_ns = h->sum,
		.min_ns = h->min,
		.p50_ns = d9__histogram_quantile(h, 0.5),
		.p90_ns = d9__histogram_quantile(h, 0.9),
		.p99_ns = d9__histogram_quantile(h, 0.99),
		.p999_ns = d9__histogram_quantile(h, 0.999),
		.max_ns = h->max,
	};
}

/* ---- workers ---- */

#define ROW(unit, member) D9__AS_##unit, AT(struct d9__worker_row, member)
#define OF(unit, member)  D9__AS_##unit, IN(struct d9__worker, member)

const struct d9__column d9__worker_columns[] = {
	{ "id", "worker", "ID", OF(ID, id), "its id" },
	{ "process", "process", NULL, ROW(ID, process), NULL },
	{ "name", "name", "NAME", ROW(NAME, name), "the loop's, else the thread's" },
	{ "tid", "tid", "TID", OF(ID, tid), "thread" },
	{ "polls", "calls", "CALLS", ROW(COUNT, calls), "of callbacks" },
	{ KEY("resumptions"), OF(COUNT, resumptions),
	  "polls that go on with a call which a nested loop had cut" },
	{ KEY("open_ended_polls"), OF(COUNT, open_ended),
	  "ended by the next poll or park instead of an end of their own" },
	{ "poll_ns", "poll_ns", NULL, OF(NS, poll_ns), "in callbacks, ns" },
	{ "parks", "parks", "PARKS", OF(COUNT, parks), "waits for events" },
	{ KEY("active_periods"), OF(COUNT, active_periods), "from an unpark to the next park" },
	{ "awake_ns", "awake_ns", "AWAKE", OF(NS, active_ns), "between them, ns" },
	{ "parked_ns", "parked_ns", "PARKED", OF(NS, parked_ns),
	  "in them, and asleep after it had left the loop, ns" },
	{ KEY("busy_ns"), ROW(NS, busy_ns),
	  "in open callbacks, also while a loop runs inside them" },
	{ "busy", NULL, "BUSY", ROW(SHARE, busy), "`busy_ns` / (`awake_ns` + `parked_ns`)" },
	{ KEY("utilisation"), ROW(SHARE, utilisation), "`awake_ns` / (`awake_ns` + `parked_ns`)" },
	{ "cpu_utilisation", NULL, "ON CPU", ROW(SHARE, on_cpu),
	  "`cpu_ns` / (`awake_ns` + `parked_ns`)" },
	{ "cpu_ns", "cpu_ns", NULL, ROW(NS, cpu_ns),
	  "CPU time of its thread, ns; NULL: not recorded" },
	{ KEY("cpu_ratio"), ROW(SHARE, cpu_ratio),
	  "mean over the active periods of CPU time per time" },
	{ KEY("long_call_ns"), ROW(NS, long_call_ns),
	  "calls from here on are long for this worker" },
	{ KEY("wakes_issued"), OF(COUNT, wakes_issued), "tasks that it made ready" },
	{ KEY("local_queue_max"), OF(COUNT, local_max),
	  "most callbacks that were ready at a call" },
	{ KEY("handovers"), OF(COUNT, handovers), "how often the id went on under another thread" },
	{ KEY("time"), OBJECT, "*time*" },
	{ KEY("account"), OBJECT, "whose its time was" },
	{ KEY("kernel_waits"), OBJECT, "*quantiles* of the waits above 0" },
	{ KEY("samples"), OBJECT, "of its thread" },
	{ .key = NULL },
};
#undef ROW
#undef OF

void d9__worker_row(struct d9__worker_row *row, const struct d9__analysis *a,
		    const struct d9__worker *worker)
{
	double ratio = d9__worker_cpu_ratio(worker);

	*row = (struct d9__worker_row) {
		.worker = worker,
		.process = a->process,
		.calls = worker->polls - worker->resumptions,
		.busy_ns = d9__worker_busy_ns(worker),
		.long_call_ns = d9__long_call_ns(worker),
		.name = d9__analysis_worker_name(a, worker),
		.busy = d9__worker_busy(worker),
		.utilisation = d9__worker_utilisation(worker),
		.on_cpu = d9__worker_on_cpu(worker),
		.cpu_ratio = ratio,
		.cpu_ns = { ratio >= 0, worker->cpu_ns },
	};
}

/* ---- callbacks ---- */

#define ROW(unit, member) D9__AS_##unit, AT(struct d9__callback_row, member)
#define OF(unit, member)  D9__AS_##unit, IN(struct d9__callback, member)

const struct d9__column d9__callback_columns[] = {
	{ SQL("callback"), ROW(KEY, id), NULL },
	{ "process", "process", NULL, ROW(ID, process), NULL },
	{ "name", "name", NULL, ROW(TEXT, name), "the function, else module+0xoffset" },
	{ "location", "location", NULL, OF(TEXT, location), "CALLBACK @ SITE as in the trace" },
	{ KEY("way"), ROW(TEXT, way),
	  "of a function that a loop library calls inside a callback of its own: both" },
	{ "source", "source", "SOURCE", OF(TEXT, source), "file.c:12 of the function, or NULL" },
	{ "site", "site", "MADE AT", ROW(TEXT, site), "where it was registered, or NULL" },
	{ "kind", "kind", "KIND", ROW(TEXT, kind),
	  "io, timer, signal, idle, ..., several joined by +" },
	{ "internal", "internal", NULL, OF(FLAG, internal), "1: the loop library's own" },
	{ "polls", NULL, "CALLS", OF(COUNT, calls), "calls, resumptions not counted" },
	{ "total_ns", NULL, "TOTAL", ROW(NS, calls.sum_ns), "of its calls, without loops in them" },
	{ KEY("min_ns"), ROW(NS, calls.min_ns), "the shortest call" },
	{ "p50_ns", NULL, "P50", ROW(NS, calls.p50_ns), "half of the calls are no longer" },
	{ KEY("p90_ns"), ROW(NS, calls.p90_ns), "90 % are no longer" },
	{ "p99_ns", NULL, "P99", ROW(NS, calls.p99_ns), "99 % are no longer" },
	{ KEY("max_ns"), ROW(NS, calls.max_ns), "the longest call" },
	{ KEY("over_1ms"), OF(COUNT, over_1ms), "calls" },
	{ KEY("over_10ms"), OF(COUNT, over_10ms), "calls" },
	{ KEY("over_50ms"), OF(COUNT, over_50ms), "calls" },
	{ KEY("open_ended"), OF(COUNT, open_ended),
	  "calls that were ended by the next poll or park" },
	{ KEY("time"), OBJECT, "*time*" },
	{ KEY("tasks"), OBJECT, "`time`: *time* of its tasks" },
	{ KEY("loops_inside"), OBJECT, "of calls that ran a loop" },
	{ "tasks_spawned", NULL, "MADE", OF(COUNT, spawned), "its registrations" },
	{ "tasks_ended", NULL, "ENDED", OF(COUNT, ended), "of these, removed" },
	{ "tasks_alive", NULL, "AT END", OF(COUNT, alive), "registered at the end" },
	{ "tasks_peak", NULL, "PEAK", OF(COUNT, peak_alive), "most at once" },
	{ KEY("on_cpu_samples"), OF(COUNT, on_samples), "inside its calls" },
	{ KEY("off_cpu_samples"), OF(COUNT, off_samples), "inside its calls" },
	{ KEY("off_cpu_estimated"), ROW(COUNT, off_estimated), "how often threads left the CPU" },
	{ KEY("sampled"), OBJECT, "*weight* of the on-CPU samples" },
	{ KEY("delays"), OBJECT, "*quantiles*" },
	{ KEY("lateness"), OBJECT, "*quantiles*" },
	{ NULL, NULL, "LONGEST", ROW(NS, longest_ns), NULL },
	{ NULL, NULL, "SHARE", ROW(SHARE, share), NULL },
	{ .key = NULL },
};
#undef ROW
#undef OF

uint64_t d9__callback_id(const struct d9__analysis *a, const struct d9__callback *callback)
{
	return callback->number * (a->processes ? a->processes->n : 1) + a->process + 1;
}

void d9__callback_row(struct d9__callback_row *row, const struct d9__analysis *a,
		      const struct d9__callback *callback)
{
	*row = (struct d9__callback_row) {
		.callback = callback,
		.id = d9__callback_id(a, callback),
		.process = a->process,
		.off_estimated =
			d9__off_cpu_estimated(a, callback->off_samples, callback->switches),
		.site = d9__callback_site(callback),
		.calls = d9__quantiles_of(&callback->durations),
	};
	row->name.data = d9__callback_name(callback, &row->name.len);
	row->way = d9__callback_way(callback, row->way_text, sizeof(row->way_text));
	row->kind =
		d9__callback_kinds(&a->callbacks, callback, row->kind_text, sizeof(row->kind_text));
	/* A loop that a call runs keeps it open, and has its own callbacks in the table. */
	row->longest_ns = row->calls.max_ns > callback->nested.longest_ns
				  ? row->calls.max_ns
				  : callback->nested.longest_ns;
}

/* ---- tasks ---- */

#define ROW(unit, member) D9__AS_##unit, AT(struct d9__tasks_row, member)
#define OF(unit, member)  D9__AS_##unit, IN(struct d9__tasks, member)

const struct d9__column d9__tasks_columns[] = {
	{ KEY("recorded"), OBJECT, "*recorded* of their ends" },
	{ KEY("spawned"), OF(COUNT, spawned), "registered in the trace" },
	{ KEY("uninstrumented"), OF(COUNT, uninstrumented),
	  "of these, those whose wakes cannot be seen" },
	{ KEY("ended"), OF(COUNT, ended), "removed in the trace" },
	{ KEY("ended_without_spawn"), OF(COUNT, ended_unspawned),
	  "of these, registered before the trace" },
	{ KEY("alive_at_start"), OF(COUNT, at_start), "registered before the trace" },
	{ KEY("peak_alive"), ROW(COUNT, peak), "most at once" },
	{ KEY("alive_at_end"), ROW(COUNT, at_end), "registered when the trace ends" },
	{ KEY("time"), OBJECT, "*time* of all tasks" },
	{ .key = NULL },
};
#undef ROW
#undef OF

struct d9__tasks_row d9__tasks_row(const struct d9__tasks *tasks)
{
	int64_t start = (int64_t)tasks->at_start;

	return (struct d9__tasks_row) { tasks, start + tasks->peak_change, start + tasks->change };
}

#define ROW(unit, member) D9__AS_##unit, AT(struct d9__task_row, member)

const struct d9__column d9__task_columns[] = {
	{ SQL("process"), ROW(ID, process), NULL },
	{ SQL("task"), ROW(ID, task), "its id" },
	{ SQL("callback"), ROW(ID, callback), "callbacks.callback" },
	{ SQL("kind"), ROW(NAME, kind), NULL },
	{ SQL("fd"), ROW(ID, fd), "descriptor, or NULL" },
	{ SQL("name"), ROW(NAME, name), "by the program, or NULL" },
	{ SQL("spawned_ns"), ROW(NS, spawned_ns), "when it was registered, ns" },
	{ SQL("ended_ns"), ROW(NS, ended_ns),
	  "when it was removed, ns; NULL: it lives at the end" },
	{ .key = NULL },
};
#undef ROW

/* ---- spans ---- */

#define ROW(unit, member) D9__AS_##unit, AT(struct d9__span_name, member)

const struct d9__column d9__span_name_columns[] = {
	{ "name", NULL, "NAME", ROW(NAME, name), "of them all" },
	{ "spans", NULL, "COUNT", ROW(COUNT, count), "how many" },
	{ KEY("unmatched"), ROW(COUNT, unmatched), "entered and not left" },
	{ "active_ns", NULL, "BUSY", ROW(NS, active_ns), "inside of them" },
	{ KEY("active_in_polls_ns"), ROW(NS, active_in_polls_ns),
	  "of that, inside calls of the owning task" },
	{ "idle_ns", NULL, "IDLE", ROW(NS, idle_ns),
	  "of closed ones: from creation to close, less the time inside" },
	{ KEY("unclosed"), ROW(COUNT, unclosed), "the trace ended first" },
	{ KEY("time"), OBJECT, "*time*" },
	{ KEY("*quantiles*"), OBJECT, "from first enter to last exit" },
	{ KEY("origins"), OBJECT, "these figures per origin" },
	{ .key = NULL },
};
#undef ROW

#define ROW(unit, member) D9__AS_##unit, AT(struct d9__span_origin_row, member)
#define OF(unit, member)  D9__AS_##unit, IN(struct d9__span_type, member)

const struct d9__column d9__span_origin_columns[] = {
	{ KEY("origin"), ROW(TEXT, origin), "behind `SpanEnter:`" },
	{ KEY("with_parent"), OF(COUNT, with_parent), "how many have one" },
	{ KEY("unmatched"), OF(COUNT, unmatched), "entered and not left" },
	{ KEY("active_ns"), OF(NS, active_ns), "inside of them" },
	{ KEY("idle_ns"), OF(NS, idle_ns),
	  "of closed ones: from creation to close, less the time inside" },
	{ KEY("*quantiles*"), OBJECT, "from first enter to last exit" },
	{ KEY("over_10_p50"), ROW(COUNT, over_10_p50), "longer than ten times `p50_ns`" },
	{ .key = NULL },
};
#undef ROW
#undef OF

struct d9__span_origin_row d9__span_origin_row(const struct d9__span_type *type)
{
	const struct d9__histogram *h = &type->durations;

	return (struct d9__span_origin_row) {
		.type = type,
		.origin = { type->origin, d9__span_origin_len(type) },
		.over_10_p50 = d9__histogram_above(h, 10 * d9__histogram_quantile(h, 0.5)),
	};
}

#define ROW(unit, member) D9__AS_##unit, AT(struct d9__span_row, member)

const struct d9__column d9__span_columns[] = {
	{ SQL("process"), ROW(ID, process), NULL },
	{ SQL("span"), ROW(DIGITS, id), "its id" },
	{ SQL("parent"), ROW(DIGITS, parent), "spans.span, or NULL" },
	{ SQL("name"), ROW(TEXT, name), "of a function that the loop library called, its name" },
	{ SQL("origin"), ROW(NAME, origin), "where it is in the source" },
	{ SQL("worker"), ROW(ID, worker), "of its last enter; NULL: a thread without a loop" },
	{ SQL("task"), ROW(ID, task), "whose call it began in; NULL: none" },
	{ SQL("first_ns"), ROW(NS, first_ns), "first enter" },
	{ SQL("last_ns"), ROW(NS, last_ns), "last exit; NULL: never left" },
	{ SQL("active_ns"), ROW(NS, active_ns), "inside of it, ns" },
	{ SQL("enters"), ROW(COUNT, enters), NULL },
	{ SQL("closed"), ROW(FLAG, closed), "0: the trace ended first" },
	{ SQL("callback"), ROW(FLAG, callback),
	  "1: a function that the loop library called inside a callback of its own" },
	{ .key = NULL },
};
#undef ROW

/* ---- samples ---- */

#define ROW(unit, member) D9__AS_##unit, AT(struct d9__samples_row, member)
#define OF(unit, member)  D9__AS_##unit, IN(struct d9__samples, member)

const struct d9__column d9__samples_columns[] = {
	{ KEY("on_cpu"), OF(COUNT, on), "on the CPU" },
	{ KEY("off_cpu"), OF(COUNT, off), "as a thread left the CPU" },
	{ KEY("off_cpu_estimated"), ROW(COUNT, off_estimated), "how often threads left the CPU" },
	{ KEY("switches_measured"), ROW(SHARE, switch_share), "a share of the time" },
	{ KEY("on_cpu_in_polls"), OF(COUNT, on_in_polls), "of `on_cpu`, inside calls" },
	{ KEY("off_cpu_in_polls"), OF(COUNT, off_in_polls), "of `off_cpu`, inside calls" },
	{ KEY("off_worker"), OF(COUNT, off_worker), "of threads that run no loop" },
	{ KEY("stacks"), ROW(COUNT, stacks), "different ones" },
	{ KEY("top_off_cpu_stack"), ROW(COUNT, top_off), "in the largest group" },
	{ KEY("period_ns"), OF(NS, period_ns),
	  "of CPU time, for which a sample on the CPU stands" },
	{ KEY("cpu_share"), ROW(SHARE, cpu_share),
	  "of the process's CPU time, that samples stand for" },
	{ KEY("threads"), OBJECT, "those with most samples on the CPU first" },
	{ .key = NULL },
};
#undef ROW
#undef OF

struct d9__samples_row d9__samples_row(const struct d9__analysis *a)
{
	const struct d9__stack *top = d9__samples_top_off(&a->samples);

	return (struct d9__samples_row) {
		.samples = &a->samples,
		.off_estimated = d9__off_cpu_estimated(a, a->samples.off, a->samples.switches),
		.stacks = a->samples.stacks.n,
		.top_off = top ? top->off : 0,
		.switch_share = d9__analysis_switch_share(a),
		.cpu_share = d9__analysis_sampled_share(a),
	};
}

#define ROW(unit, member) D9__AS_##unit, AT(struct d9__thread_row, member)
#define OF(unit, member)  D9__AS_##unit, IN(struct d9__sample_counts, member)

const struct d9__column d9__thread_columns[] = {
	{ SQL("process"), ROW(ID, process), NULL },
	{ "tid", "tid", NULL, ROW(ID, tid), "thread" },
	{ "name", "name", NULL, ROW(NAME, name), "its own, or NULL" },
	{ "worker", "worker", NULL, ROW(ID, worker), "workers.worker; NULL: it runs no loop" },
	{ "on_cpu", "on_cpu_samples", NULL, OF(COUNT, on), NULL },
	{ "off_cpu", "off_cpu_samples", NULL, OF(COUNT, off), NULL },
	{ KEY("off_cpu_estimated"), ROW(COUNT, off_estimated), "how often it left the CPU" },
	{ KEY("functions"), OBJECT, "in which it was" },
	{ .key = NULL },
};
#undef ROW
#undef OF

struct d9__thread_row d9__thread_row(const struct d9__analysis *a,
				     const struct d9__hot_thread *thread)
{
	const struct d9__sample_counts *counts = &thread->counts;

	return (struct d9__thread_row) {
		.counts = counts,
		.process = a->process,
		.tid = thread->tid,
		.off_estimated = d9__off_cpu_estimated(a, counts->off, counts->switches),
		.worker = { thread->worker, thread->worker ? thread->worker->id : 0 },
		.name = thread->name,
	};
}

struct d9__thread_row d9__thread_row_of(const struct d9__analysis *a,
					const struct d9__worker *worker)
{
	static const struct d9__sample_counts none;

	return (struct d9__thread_row) {
		.counts = &none,
		.process = a->process,
		.tid = worker->tid,
		.worker = { true, worker->id },
		.name = worker->thread_name,
	};
}

#define ROW(unit, member) D9__AS_##unit, AT(struct d9__hot_function, member)

const struct d9__column d9__hot_function_columns[] = {
	{ KEY("function"), ROW(TEXT, frame.function), "null: no name is known" },
	{ KEY("module"), ROW(TEXT, frame.module), "null: not known" },
	{ KEY("file"), ROW(TEXT, frame.file), "null: not known" },
	{ KEY("line"), ROW(COUNT, frame.line), "0: not known" },
	{ KEY("on_cpu"), ROW(COUNT, n), "samples" },
	{ KEY("cpu_ns"), ROW(NS, ns), "the CPU time that these stand for" },
	{ .key = NULL },
};
#undef ROW

#define ROW(unit, member) D9__AS_##unit, AT(struct d9__sampled_row, member)

const struct d9__column d9__sample_columns[] = {
	{ SQL("process"), ROW(ID, process), NULL },
	{ SQL("time_ns"), ROW(NS, time_ns), NULL },
	{ SQL("source"), ROW(TEXT, source),
	  "on-cpu, off-cpu (the thread was taken off the CPU here)" },
	{ SQL("tid"), ROW(ID, tid), "thread" },
	{ SQL("thread"), ROW(NAME, thread), "its name, or NULL" },
	{ SQL("worker"), ROW(ID, worker), "NULL: it runs no loop" },
	{ SQL("task"), ROW(ID, task), "whose call it was in; NULL: none" },
	{ SQL("poll"), ROW(ID, poll), "polls.poll; NULL: none" },
	{ SQL("run"), ROW(ID, run), "runs.run; NULL: none" },
	{ SQL("stack"), ROW(ID, stack), "frames.stack; NULL: it has none" },
	{ SQL("cpu_ns"), ROW(NS, cpu_ns),
	  "that it stands for, ns; NULL: off the CPU, or not told" },
	{ .key = NULL },
};
#undef ROW

/* ---- calls that blocked ---- */

#define ROW(unit, member) D9__AS_##unit, AT(struct d9__blocked_row, member)
#define OF(unit, member)  D9__AS_##unit, IN(struct d9__blocked_site, calls.member)

const struct d9__column d9__blocked_columns[] = {
	{ KEY("function"), OF(TEXT, function), "`fsync`, `poll`, `pthread_mutex_lock`, ..." },
	{ KEY("fd"), ROW(ID, fd), "descriptor; null: none, or several" },
	{ KEY("callback"), ROW(TEXT, callback), "that called it" },
	{ KEY("at"), OBJECT, "`function`, `file`, `line` in the program" },
	{ "calls", NULL, "CALLS", OF(COUNT, n), "how many" },
	{ "total_ns", NULL, "TOTAL", OF(NS, total_ns), "all together" },
	{ "longest_ns", NULL, "LONGEST", OF(NS, longest.ns), "the longest" },
	{ KEY("longest_at_ns"), ROW(NS, longest_at_ns),
	  "when that began, since the start of the trace" },
	{ KEY("worker"), OF(ID, longest.worker), "of the longest" },
	{ KEY("task"), OF(ID, longest.task), "of the longest" },
	{ NULL, NULL, "CALL", ROW(TEXT, call), NULL },
	{ NULL, NULL, "AT", ROW(NAME, at), NULL },
	{ .key = NULL },
};
#undef ROW
#undef OF

static struct d9_text name_of(const struct d9__callback *callback)
{
	struct d9_text name = { NULL, 0 };

	if (callback)
		name.data = d9__callback_name(callback, &name.len);
	return name;
}

void d9__blocked_row(struct d9__blocked_row *row, const struct d9__analysis *a,
		     const struct d9__blocked_site *site)
{
	const struct d9__blocked_calls *calls = &site->calls;

	*row = (struct d9__blocked_row) {
		.site = site,
		.callback = name_of(calls->callback),
		.fd = { calls->fd >= 0 && !calls->several_fds, (uint64_t)calls->fd },
		.longest_at_ns = calls->longest.at_ns - d9__analysis_start_ns(a),
	};
	d9__blocked_what(calls, row->call_text, sizeof(row->call_text));
	row->call = row->call_text;
	d9__blocked_where(site, row->at_text, sizeof(row->at_text));
	row->at = row->at_text[0] ? row->at_text : NULL;
}

#define ROW(unit, member) D9__AS_##unit, AT(struct d9__lock_row, member)
#define OF(unit, member)  D9__AS_##unit, IN(struct d9__blocked_site, calls.member)

const struct d9__column d9__lock_columns[] = {
	{ KEY("callback"), ROW(TEXT, callback), "that waited" },
	{ KEY("at"), OBJECT, "where it asked for the lock" },
	{ "waits", NULL, "WAITS", OF(COUNT, held), "how many" },
	{ "longest_ns", NULL, "LONGEST", OF(NS, longest_held.ns), "the longest" },
	{ KEY("longest_at_ns"), ROW(NS, longest_at_ns),
	  "when that began, since the start of the trace" },
	{ KEY("holder_tid"), OF(ID, longest_held.holder_tid),
	  "the thread that held the lock then" },
	{ KEY("holder_name"), ROW(TEXT, holder_name), "that thread's name; null: not told" },
	{ KEY("held_ns"), OF(NS, longest_held.held_ns), "how long it had the lock; 0: not told" },
	{ KEY("held_cpu_ns"), ROW(NS, held_cpu_ns), "of that, on the CPU; null: not told" },
	{ KEY("holder_worker"), ROW(ID, worker), "of that thread; null: none" },
	{ KEY("holder_callback"), ROW(TEXT, holder_callback), "that ran there; null: none" },
	{ KEY("held_at"), OBJECT, "where it was unlocked" },
	{ NULL, NULL, "AT", ROW(NAME, at), NULL },
	{ NULL, NULL, "HELD BY", ROW(NAME, holder), NULL },
	{ .key = NULL },
};
#undef ROW
#undef OF

void d9__lock_row(struct d9__lock_row *row, const struct d9__analysis *a,
		  const struct d9__blocked_site *site)
{
	const struct d9__blocked_event *longest = &site->calls.longest_held;
	const struct d9__worker *worker = d9__samples_worker(&a->samples, longest->holder_tid);

	*row = (struct d9__lock_row) {
		.site = site,
		.callback = name_of(site->calls.callback),
		.holder_callback = name_of(longest->holder),
		.held_cpu_ns = { longest->held_cpu_ns != UINT64_MAX, longest->held_cpu_ns },
		.worker = { worker, worker ? worker->id : 0 },
		.longest_at_ns = longest->at_ns - d9__analysis_start_ns(a),
		.holder_name = longest->holder_name[0] ? longest->holder_name : NULL,
	};
	d9__finding_holder(a, site, row->holder_text, sizeof(row->holder_text));
	row->holder = row->holder_text;
	d9__blocked_where(site, row->at_text, sizeof(row->at_text));
	row->at = row->at_text[0] ? row->at_text : NULL;
}

#define ROW(unit, member) D9__AS_##unit, AT(struct d9__blocking_row, member)

const struct d9__column d9__blocking_columns[] = {
	{ SQL("process"), ROW(ID, process), NULL },
	{ SQL("start_ns"), ROW(NS, start_ns), NULL },
	{ SQL("duration_ns"), ROW(NS, duration_ns), NULL },
	{ SQL("function"), ROW(NAME, function), "fsync, poll, pthread_mutex_lock, ..." },
	{ SQL("fd"), ROW(ID, fd), "or NULL" },
	{ SQL("worker"), ROW(ID, worker), NULL },
	{ SQL("task"), ROW(ID, task), NULL },
	{ SQL("poll"), ROW(ID, poll), "polls.poll; NULL: outside of calls" },
	{ SQL("run"), ROW(ID, run), "runs.run; NULL likewise" },
	{ SQL("stack"), ROW(ID, stack), "frames.stack, where it was called; NULL: not recorded" },
	{ SQL("holder_tid"), ROW(ID, holder_tid),
	  "of a lock: the thread that held it; NULL: not known" },
	{ SQL("holder_task"), ROW(ID, holder_task), "whose call held it, or NULL" },
	{ SQL("holder_stack"), ROW(ID, holder_stack), "where it was unlocked, or NULL" },
	{ .key = NULL },
};
#undef ROW
