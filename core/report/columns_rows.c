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
#define AT(unit, of, member)                                                                       \
	D9__AS_##unit, TYPE(((struct d9__##of *)0)->member), false,                                \
		offsetof(struct d9__##of, member)
#define IN(unit, of, member)                                                                       \
	D9__AS_##unit, TYPE(((struct d9__##of *)0)->member), true, offsetof(struct d9__##of, member)

#define OBJECT D9__AS_OBJECT, D9__OF_U64, false, 0

/* Of columns with one name alone. */
#define KEY(name) name, NULL, NULL
#define SQL(name) NULL, name, NULL

uint64_t d9__off_cpu_estimated(const struct d9__analysis *a, uint64_t off, uint64_t switches)
{
	return d9__samples_estimate(off, switches, d9__analysis_switch_share(a));
}

/* ---- durations ---- */

const struct d9__column d9__quantile_columns[] = {
	{ "count", NULL, "CALLS", AT(COUNT, quantiles, count), "how many" },
	{ KEY("sum_ns"), AT(NS, quantiles, sum_ns), "all together" },
	{ KEY("min_ns"), AT(NS, quantiles, min_ns), "the least" },
	{ "p50_ns", NULL, "P50", AT(NS, quantiles, p50_ns), "half of them are no longer" },
	{ "p90_ns", NULL, "P90", AT(NS, quantiles, p90_ns), "90 % are no longer" },
	{ "p99_ns", NULL, "P99", AT(NS, quantiles, p99_ns), "99 % are no longer" },
	{ KEY("p999_ns"), AT(NS, quantiles, p999_ns), "99.9 % are no longer" },
	{ "max_ns", NULL, "LONGEST", AT(NS, quantiles, max_ns), "the longest" },
	{ .key = NULL },
};

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

const struct d9__column d9__worker_columns[] = {
	{ "id", "worker", "ID", IN(ID, worker, id), "its id" },
	{ "process", "process", NULL, AT(ID, worker_row, process), NULL },
	{ "name", "name", "NAME", AT(NAME, worker_row, name), "the loop's, else the thread's" },
	{ "tid", "tid", "TID", IN(ID, worker, tid), "thread" },
	{ "polls", "calls", "CALLS", AT(COUNT, worker_row, calls), "of callbacks" },
	{ KEY("resumptions"), IN(COUNT, worker, resumptions),
	  "polls that go on with a call which a nested loop had cut" },
	{ KEY("open_ended_polls"), IN(COUNT, worker, open_ended),
	  "ended by the next poll or park instead of an end of their own" },
	{ "poll_ns", "poll_ns", NULL, IN(NS, worker, poll_ns), "in callbacks, ns" },
	{ "parks", "parks", "PARKS", IN(COUNT, worker, parks), "waits for events" },
	{ KEY("active_periods"), IN(COUNT, worker, active_periods),
	  "from an unpark to the next park" },
	{ "awake_ns", "awake_ns", "AWAKE", IN(NS, worker, active_ns), "between them, ns" },
	{ "parked_ns", "parked_ns", "PARKED", IN(NS, worker, parked_ns),
	  "in them, and asleep after it had left the loop, ns" },
	{ KEY("busy_ns"), AT(NS, worker_row, busy_ns),
	  "in open callbacks, also while a loop runs inside them" },
	{ "busy", NULL, "BUSY", AT(SHARE, worker_row, busy),
	  "`busy_ns` / (`awake_ns` + `parked_ns`)" },
	{ KEY("utilisation"), AT(SHARE, worker_row, utilisation),
	  "`awake_ns` / (`awake_ns` + `parked_ns`)" },
	{ "cpu_utilisation", NULL, "ON CPU", AT(SHARE, worker_row, on_cpu),
	  "`cpu_ns` / (`awake_ns` + `parked_ns`)" },
	{ "cpu_ns", "cpu_ns", NULL, AT(NS, worker_row, cpu_ns),
	  "CPU time of its thread, ns; NULL: not recorded" },
	{ KEY("cpu_ratio"), AT(SHARE, worker_row, cpu_ratio),
	  "mean over the active periods of CPU time per time" },
	{ KEY("long_call_ns"), AT(NS, worker_row, long_call_ns),
	  "calls from here on are long for this worker" },
	{ KEY("wakes_issued"), IN(COUNT, worker, wakes_issued), "tasks that it made ready" },
	{ KEY("local_queue_max"), IN(COUNT, worker, local_max),
	  "most callbacks that were ready at a call" },
	{ KEY("handovers"), IN(COUNT, worker, handovers),
	  "how often the id went on under another thread" },
	{ KEY("time"), OBJECT, "*time*" },
	{ KEY("account"), OBJECT, "whose its time was" },
	{ KEY("kernel_waits"), OBJECT, "*quantiles* of the waits above 0" },
	{ KEY("samples"), OBJECT, "of its thread" },
	{ .key = NULL },
};

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

const struct d9__column d9__callback_columns[] = {
	{ SQL("callback"), AT(KEY, callback_row, id), NULL },
	{ "process", "process", NULL, AT(ID, callback_row, process), NULL },
	{ "name", "name", NULL, AT(TEXT, callback_row, name),
	  "the function, else module+0xoffset" },
	{ "location", "location", NULL, IN(TEXT, callback, location),
	  "CALLBACK @ SITE as in the trace" },
	{ KEY("way"), AT(TEXT, callback_row, way),
	  "of a function that a loop library calls inside a callback of its own: both" },
	{ "source", "source", "SOURCE", IN(TEXT, callback, source),
	  "file.c:12 of the function, or NULL" },
	{ "site", "site", "MADE AT", AT(TEXT, callback_row, site),
	  "where it was registered, or NULL" },
	{ "kind", "kind", "KIND", AT(TEXT, callback_row, kind),
	  "io, timer, signal, idle, ..., several joined by +" },
	{ "internal", "internal", NULL, IN(FLAG, callback, internal), "1: the loop library's own" },
	{ "polls", NULL, "CALLS", IN(COUNT, callback, calls), "calls, resumptions not counted" },
	{ "total_ns", NULL, "TOTAL", AT(NS, callback_row, calls.sum_ns),
	  "of its calls, without loops in them" },
	{ KEY("min_ns"), AT(NS, callback_row, calls.min_ns), "the shortest call" },
	{ "p50_ns", NULL, "P50", AT(NS, callback_row, calls.p50_ns),
	  "half of the calls are no longer" },
	{ KEY("p90_ns"), AT(NS, callback_row, calls.p90_ns), "90 % are no longer" },
	{ "p99_ns", NULL, "P99", AT(NS, callback_row, calls.p99_ns), "99 % are no longer" },
	{ KEY("max_ns"), AT(NS, callback_row, calls.max_ns), "the longest call" },
	{ KEY("over_1ms"), IN(COUNT, callback, over_1ms), "calls" },
	{ KEY("over_10ms"), IN(COUNT, callback, over_10ms), "calls" },
	{ KEY("over_50ms"), IN(COUNT, callback, over_50ms), "calls" },
	{ KEY("open_ended"), IN(COUNT, callback, open_ended),
	  "calls that were ended by the next poll or park" },
	{ KEY("time"), OBJECT, "*time*" },
	{ KEY("tasks"), OBJECT, "`time`: *time* of its tasks" },
	{ KEY("loops_inside"), OBJECT, "of calls that ran a loop" },
	{ "tasks_spawned", NULL, "MADE", IN(COUNT, callback, spawned), "its registrations" },
	{ "tasks_ended", NULL, "ENDED", IN(COUNT, callback, ended), "of these, removed" },
	{ "tasks_alive", NULL, "AT END", IN(COUNT, callback, alive), "registered at the end" },
	{ "tasks_peak", NULL, "PEAK", IN(COUNT, callback, peak_alive), "most at once" },
	{ KEY("on_cpu_samples"), IN(COUNT, callback, on_samples), "inside its calls" },
	{ KEY("off_cpu_samples"), IN(COUNT, callback, off_samples), "inside its calls" },
	{ KEY("off_cpu_estimated"), AT(COUNT, callback_row, off_estimated),
	  "how often threads left the CPU" },
	{ KEY("off_cpu_ns"), AT(NS, callback_row, off_ns), "how long they were off it then" },
	{ KEY("sampled"), OBJECT, "*weight* of the on-CPU samples" },
	{ KEY("delays"), OBJECT, "*quantiles*" },
	{ KEY("lateness"), OBJECT, "*quantiles*" },
	{ NULL, NULL, "LONGEST", AT(NS, callback_row, longest_ns), NULL },
	{ NULL, NULL, "SHARE", AT(SHARE, callback_row, share), NULL },
	{ .key = NULL },
};

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
		.off_ns = d9__off_time_ns(&callback->off_time, d9__analysis_switch_share(a)),
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

const struct d9__column d9__tasks_columns[] = {
	{ KEY("recorded"), OBJECT, "*recorded* of their ends" },
	{ KEY("spawned"), IN(COUNT, tasks, spawned), "registered in the trace" },
	{ KEY("uninstrumented"), IN(COUNT, tasks, uninstrumented),
	  "of these, those whose wakes cannot be seen" },
	{ KEY("ended"), IN(COUNT, tasks, ended), "removed in the trace" },
	{ KEY("ended_without_spawn"), IN(COUNT, tasks, ended_unspawned),
	  "of these, registered before the trace" },
	{ KEY("alive_at_start"), IN(COUNT, tasks, at_start), "registered before the trace" },
	{ KEY("peak_alive"), AT(COUNT, tasks_row, peak), "most at once" },
	{ KEY("alive_at_end"), AT(COUNT, tasks_row, at_end), "registered when the trace ends" },
	{ KEY("time"), OBJECT, "*time* of all tasks" },
	{ .key = NULL },
};

struct d9__tasks_row d9__tasks_row(const struct d9__tasks *tasks)
{
	int64_t start = (int64_t)tasks->at_start;

	return (struct d9__tasks_row) { tasks, start + tasks->peak_change, start + tasks->change };
}

const struct d9__column d9__task_columns[] = {
	{ SQL("process"), AT(ID, task_row, process), NULL },
	{ SQL("task"), AT(ID, task_row, task), "its id" },
	{ SQL("callback"), AT(ID, task_row, callback), "callbacks.callback" },
	{ SQL("kind"), AT(NAME, task_row, kind), NULL },
	{ SQL("fd"), AT(ID, task_row, fd), "descriptor, or NULL" },
	{ SQL("name"), AT(NAME, task_row, name), "by the program, or NULL" },
	{ SQL("spawned_ns"), AT(NS, task_row, spawned_ns), "when it was registered, ns" },
	{ SQL("ended_ns"), AT(NS, task_row, ended_ns),
	  "when it was removed, ns; NULL: it lives at the end" },
	{ .key = NULL },
};

/* ---- spans ---- */

const struct d9__column d9__span_name_columns[] = {
	{ "name", NULL, "NAME", AT(NAME, span_name, name), "of them all" },
	{ "spans", NULL, "COUNT", AT(COUNT, span_name, count), "how many" },
	{ KEY("unmatched"), AT(COUNT, span_name, unmatched), "entered and not left" },
	{ "active_ns", NULL, "BUSY", AT(NS, span_name, active_ns), "inside of them" },
	{ KEY("active_in_polls_ns"), AT(NS, span_name, active_in_polls_ns),
	  "of that, inside calls of the owning task" },
	{ "idle_ns", NULL, "IDLE", AT(NS, span_name, idle_ns),
	  "of closed ones: from creation to close, less the time inside" },
	{ KEY("unclosed"), AT(COUNT, span_name, unclosed), "the trace ended first" },
	{ KEY("time"), OBJECT, "*time*" },
	{ KEY("*quantiles*"), OBJECT, "from first enter to last exit" },
	{ KEY("origins"), OBJECT, "these figures per origin" },
	{ .key = NULL },
};

const struct d9__column d9__span_origin_columns[] = {
	{ KEY("origin"), AT(TEXT, span_origin_row, origin), "behind `SpanEnter:`" },
	{ KEY("with_parent"), IN(COUNT, span_type, with_parent), "how many have one" },
	{ KEY("unmatched"), IN(COUNT, span_type, unmatched), "entered and not left" },
	{ KEY("active_ns"), IN(NS, span_type, active_ns), "inside of them" },
	{ KEY("idle_ns"), IN(NS, span_type, idle_ns),
	  "of closed ones: from creation to close, less the time inside" },
	{ KEY("*quantiles*"), OBJECT, "from first enter to last exit" },
	{ KEY("over_10_p50"), AT(COUNT, span_origin_row, over_10_p50),
	  "longer than ten times `p50_ns`" },
	{ .key = NULL },
};

struct d9__span_origin_row d9__span_origin_row(const struct d9__span_type *type)
{
	const struct d9__histogram *h = &type->durations;

	return (struct d9__span_origin_row) {
		.type = type,
		.origin = { type->origin, d9__span_origin_len(type) },
		.over_10_p50 = d9__histogram_above(h, 10 * d9__histogram_quantile(h, 0.5)),
	};
}

const struct d9__column d9__span_columns[] = {
	{ SQL("process"), AT(ID, span_row, process), NULL },
	{ SQL("span"), AT(DIGITS, span_row, id), "its id" },
	{ SQL("parent"), AT(DIGITS, span_row, parent), "spans.span, or NULL" },
	{ SQL("name"), AT(TEXT, span_row, name),
	  "of a function that the loop library called, its name" },
	{ SQL("origin"), AT(NAME, span_row, origin), "where it is in the source" },
	{ SQL("worker"), AT(ID, span_row, worker),
	  "of its last enter; NULL: a thread without a loop" },
	{ SQL("task"), AT(ID, span_row, task), "whose call it began in; NULL: none" },
	{ SQL("first_ns"), AT(NS, span_row, first_ns), "first enter" },
	{ SQL("last_ns"), AT(NS, span_row, last_ns), "last exit; NULL: never left" },
	{ SQL("active_ns"), AT(NS, span_row, active_ns), "inside of it, ns" },
	{ SQL("enters"), AT(COUNT, span_row, enters), NULL },
	{ SQL("closed"), AT(FLAG, span_row, closed), "0: the trace ended first" },
	{ SQL("callback"), AT(FLAG, span_row, callback),
	  "1: a function that the loop library called inside a callback of its own" },
	{ .key = NULL },
};

/* ---- samples ---- */

const struct d9__column d9__samples_columns[] = {
	{ KEY("on_cpu"), IN(COUNT, samples, on), "on the CPU" },
	{ KEY("off_cpu"), IN(COUNT, samples, off), "as a thread left the CPU" },
	{ KEY("off_cpu_estimated"), AT(COUNT, samples_row, off_estimated),
	  "how often threads left the CPU" },
	{ KEY("off_cpu_ns"), AT(NS, samples_row, off_ns), "how long they were off it then" },
	{ KEY("switches_measured"), AT(SHARE, samples_row, switch_share), "a share of the time" },
	{ KEY("on_cpu_in_polls"), IN(COUNT, samples, on_in_polls), "of `on_cpu`, inside calls" },
	{ KEY("off_cpu_in_polls"), IN(COUNT, samples, off_in_polls), "of `off_cpu`, inside calls" },
	{ KEY("off_worker"), IN(COUNT, samples, off_worker), "of threads that run no loop" },
	{ KEY("stacks"), AT(COUNT, samples_row, stacks), "different ones" },
	{ KEY("top_off_cpu_stack"), AT(COUNT, samples_row, top_off), "in the largest group" },
	{ KEY("period_ns"), IN(NS, samples, period_ns),
	  "of CPU time, for which a sample on the CPU stands" },
	{ KEY("cpu_share"), AT(SHARE, samples_row, cpu_share),
	  "of the process's CPU time, that samples stand for" },
	{ KEY("threads"), OBJECT, "those with most samples on the CPU first" },
	{ .key = NULL },
};

struct d9__samples_row d9__samples_row(const struct d9__analysis *a)
{
	const struct d9__stack *top = d9__samples_top_off(&a->samples);

	return (struct d9__samples_row) {
		.samples = &a->samples,
		.off_estimated = d9__off_cpu_estimated(a, a->samples.off, a->samples.switches),
		.off_ns = d9__off_time_ns(&a->samples.off_time, d9__analysis_switch_share(a)),
		.stacks = a->samples.stacks.n,
		.top_off = top ? top->off : 0,
		.switch_share = d9__analysis_switch_share(a),
		.cpu_share = d9__analysis_sampled_share(a),
	};
}

const struct d9__column d9__thread_columns[] = {
	{ SQL("process"), AT(ID, thread_row, process), NULL },
	{ "tid", "tid", NULL, AT(ID, thread_row, tid), "thread" },
	{ "name", "name", NULL, AT(NAME, thread_row, name), "its own, or NULL" },
	{ "worker", "worker", NULL, AT(ID, thread_row, worker),
	  "workers.worker; NULL: it runs no loop" },
	{ "on_cpu", "on_cpu_samples", NULL, IN(COUNT, sample_counts, on), NULL },
	{ "off_cpu", "off_cpu_samples", NULL, IN(COUNT, sample_counts, off), NULL },
	{ KEY("off_cpu_estimated"), AT(COUNT, thread_row, off_estimated),
	  "how often it left the CPU" },
	{ "off_cpu_ns", "off_cpu_ns", NULL, AT(NS, thread_row, off_ns),
	  "how long it was off it then" },
	{ KEY("functions"), OBJECT, "in which it was" },
	{ .key = NULL },
};

struct d9__thread_row d9__thread_row(const struct d9__analysis *a,
				     const struct d9__hot_thread *thread)
{
	const struct d9__sample_counts *counts = &thread->counts;

	return (struct d9__thread_row) {
		.counts = counts,
		.process = a->process,
		.tid = thread->tid,
		.off_estimated = d9__off_cpu_estimated(a, counts->off, counts->switches),
		.off_ns = d9__off_time_ns(&counts->off_time, d9__analysis_switch_share(a)),
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

const struct d9__column d9__hot_function_columns[] = {
	{ KEY("function"), AT(TEXT, hot_function, frame.function), "null: no name is known" },
	{ KEY("module"), AT(TEXT, hot_function, frame.module), "null: not known" },
	{ KEY("file"), AT(TEXT, hot_function, frame.file), "null: not known" },
	{ KEY("line"), AT(COUNT, hot_function, frame.line), "0: not known" },
	{ KEY("on_cpu"), AT(COUNT, hot_function, n), "samples" },
	{ KEY("cpu_ns"), AT(NS, hot_function, ns), "the CPU time that these stand for" },
	{ .key = NULL },
};

const struct d9__column d9__sample_columns[] = {
	{ SQL("process"), AT(ID, sampled_row, process), NULL },
	{ SQL("time_ns"), AT(NS, sampled_row, time_ns), NULL },
	{ SQL("source"), AT(TEXT, sampled_row, source),
	  "on-cpu, off-cpu (the thread was taken off the CPU here)" },
	{ SQL("tid"), AT(ID, sampled_row, tid), "thread" },
	{ SQL("thread"), AT(NAME, sampled_row, thread), "its name, or NULL" },
	{ SQL("worker"), AT(ID, sampled_row, worker), "NULL: it runs no loop" },
	{ SQL("task"), AT(ID, sampled_row, task), "whose call it was in; NULL: none" },
	{ SQL("poll"), AT(ID, sampled_row, poll), "polls.poll; NULL: none" },
	{ SQL("run"), AT(ID, sampled_row, run), "runs.run; NULL: none" },
	{ SQL("stack"), AT(ID, sampled_row, stack), "frames.stack; NULL: it has none" },
	{ SQL("cpu_ns"), AT(NS, sampled_row, cpu_ns),
	  "that it stands for, ns; NULL: off the CPU, or not told" },
	{ SQL("off_cpu_ns"), AT(NS, sampled_row, off_cpu_ns),
	  "until the thread's next sign, or of the call that blocked, as far as it is told, and "
	  "scaled as switches are, ns; NULL: on the CPU" },
	{ .key = NULL },
};

/* ---- calls that blocked ---- */

const struct d9__column d9__blocked_columns[] = {
	{ KEY("function"), IN(TEXT, blocked_site, calls.function),
	  "`fsync`, `poll`, `pthread_mutex_lock`, ..." },
	{ KEY("fd"), AT(ID, blocked_row, fd), "descriptor; null: none, or several" },
	{ KEY("callback"), AT(TEXT, blocked_row, callback),
	  "that called it; null: between rounds, or behind the last" },
	{ KEY("at"), OBJECT, "`function`, `file`, `line` in the program" },
	{ "calls", NULL, "CALLS", IN(COUNT, blocked_site, calls.n), "how many" },
	{ "total_ns", NULL, "TOTAL", IN(NS, blocked_site, calls.total_ns), "all together" },
	{ "longest_ns", NULL, "LONGEST", IN(NS, blocked_site, calls.longest.ns), "the longest" },
	{ KEY("longest_at_ns"), AT(NS, blocked_row, longest_at_ns),
	  "when that began, since the start of the trace" },
	{ KEY("worker"), IN(ID, blocked_site, calls.longest.worker), "of the longest" },
	{ KEY("task"), IN(ID, blocked_site, calls.longest.task), "of the longest" },
	{ NULL, NULL, "CALL", AT(TEXT, blocked_row, call), NULL },
	{ NULL, NULL, "AT", AT(NAME, blocked_row, at), NULL },
	{ .key = NULL },
};

static struct d9_text name_of(const struct d9__callback *callback)
{
	struct d9_text name = { NULL, 0 };

	/* The one that stands for time outside of callbacks has no name. */
	if (callback && (callback->function || callback->location[0]))
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

const struct d9__column d9__lock_columns[] = {
	{ KEY("callback"), AT(TEXT, lock_row, callback), "that waited" },
	{ KEY("at"), OBJECT, "where it asked for the lock" },
	{ "waits", NULL, "WAITS", IN(COUNT, blocked_site, calls.held), "how many" },
	{ "longest_ns", NULL, "LONGEST", IN(NS, blocked_site, calls.longest_held.ns),
	  "the longest" },
	{ KEY("longest_at_ns"), AT(NS, lock_row, longest_at_ns),
	  "when that began, since the start of the trace" },
	{ KEY("holder_tid"), IN(ID, blocked_site, calls.longest_held.holder_tid),
	  "the thread that held the lock then" },
	{ KEY("holder_name"), AT(TEXT, lock_row, holder_name),
	  "that thread's name; null: not told" },
	{ KEY("held_ns"), IN(NS, blocked_site, calls.longest_held.held_ns),
	  "how long it had the lock; 0: not told" },
	{ KEY("held_cpu_ns"), AT(NS, lock_row, held_cpu_ns),
	  "of that, on the CPU; null: not told" },
	{ KEY("held_ready_ns"), AT(NS, lock_row, held_ready_ns),
	  "of that, ready without a CPU; null: not told" },
	{ KEY("holder_worker"), AT(ID, lock_row, worker), "of that thread; null: none" },
	{ KEY("holder_callback"), AT(TEXT, lock_row, holder_callback),
	  "that ran there; null: none" },
	{ KEY("held_at"), OBJECT, "where it was unlocked" },
	{ NULL, NULL, "AT", AT(NAME, lock_row, at), NULL },
	{ NULL, NULL, "HELD BY", AT(NAME, lock_row, holder), NULL },
	{ .key = NULL },
};

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
		.held_ready_ns = { longest->held_ready_ns != UINT64_MAX, longest->held_ready_ns },
		.worker = { worker, worker ? worker->id : 0 },
		.longest_at_ns = longest->at_ns - d9__analysis_start_ns(a),
		.holder_name = longest->holder_name[0] ? longest->holder_name : NULL,
	};
	d9__finding_holder(a, site, row->holder_text, sizeof(row->holder_text));
	row->holder = row->holder_text;
	d9__blocked_where(site, row->at_text, sizeof(row->at_text));
	row->at = row->at_text[0] ? row->at_text : NULL;
}

const struct d9__column d9__blocking_columns[] = {
	{ SQL("process"), AT(ID, blocking_row, process), NULL },
	{ SQL("start_ns"), AT(NS, blocking_row, start_ns), NULL },
	{ SQL("duration_ns"), AT(NS, blocking_row, duration_ns), NULL },
	{ SQL("function"), AT(NAME, blocking_row, function),
	  "fsync, poll, pthread_mutex_lock, ..." },
	{ SQL("fd"), AT(ID, blocking_row, fd), "or NULL" },
	{ SQL("worker"), AT(ID, blocking_row, worker), NULL },
	{ SQL("task"), AT(ID, blocking_row, task), "NULL: between rounds, or behind the last" },
	{ SQL("poll"), AT(ID, blocking_row, poll), "polls.poll; NULL: outside of calls" },
	{ SQL("run"), AT(ID, blocking_row, run), "runs.run; NULL likewise" },
	{ SQL("stack"), AT(ID, blocking_row, stack),
	  "frames.stack, where it was called; NULL: not recorded" },
	{ SQL("holder_tid"), AT(ID, blocking_row, holder_tid),
	  "of a lock: the thread that held it; NULL: not known" },
	{ SQL("holder_task"), AT(ID, blocking_row, holder_task), "whose call held it, or NULL" },
	{ SQL("holder_stack"), AT(ID, blocking_row, holder_stack),
	  "where it was unlocked, or NULL" },
	{ .key = NULL },
};

/* ---- files ---- */

const struct d9__column d9__segment_columns[] = {
	{ "path", "path", NULL, IN(TEXT, segment_fact, path), NULL },
	{ "process", "process", NULL, AT(ID, segment_row, process), NULL },
	{ "container", "container", NULL, IN(TEXT, segment_fact, container), "plain, gzip, zstd" },
	{ "stored_bytes", "stored_bytes", NULL, IN(BYTES, segment_fact, stored_bytes), NULL },
	{ "unpacked_bytes", "unpacked_bytes", NULL, IN(BYTES, segment_fact, unpacked_bytes), NULL },
	{ "events", "events", NULL, IN(COUNT, segment_fact, events), NULL },
	{ "first_ns", "first_ns", NULL, IN(NS, segment_fact, first_ns),
	  "first and last event, ns" },
	{ "last_ns", "last_ns", NULL, IN(NS, segment_fact, last_ns), NULL },
	{ "active", "active", NULL, IN(FLAG, segment_fact, active),
	  "1: being written, or its process was killed" },
	{ KEY("truncated"), IN(FLAG, segment_fact, truncated),
	  "it ends in the middle of a frame, or was cut before its first event" },
	{ "error", "error", NULL, AT(TEXT, segment_row, error), "NULL: read to its end" },
	{ .key = NULL },
};

struct d9__segment_row d9__segment_row(const struct d9__analysis *a, size_t i)
{
	const struct d9__segment_fact *segment = &a->segments[i];

	return (struct d9__segment_row) { segment, a->process,
					  segment->err ? segment->message : NULL };
}
