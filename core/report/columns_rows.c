/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of each kind of row; the texts of those that SQL has are its schema's, to the letter. */
#include "config.h"

#include "findings/finding.h"
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

/* How often threads left the CPU, as |off| samples tell, of which |switches| were taken in slices
 * of the time. */
static uint64_t estimate(const struct d9__analysis *a, uint64_t off, uint64_t switches)
{
	return d9__samples_estimate(off, switches, d9__analysis_switch_share(a));
}

/* ---- durations ---- */

#define ROW(member) AT(struct d9__quantiles, member)

const struct d9__column d9__quantile_columns[] = {
	{ "count", NULL, NULL, D9__AS_COUNT, ROW(count), "how many" },
	{ "sum_ns", NULL, NULL, D9__AS_NS, ROW(sum_ns), "all together" },
	{ "min_ns", NULL, NULL, D9__AS_NS, ROW(min_ns), "the least" },
	{ "p50_ns", NULL, "P50", D9__AS_NS, ROW(p50_ns), "half of them are no longer" },
	{ "p90_ns", NULL, "P90", D9__AS_NS, ROW(p90_ns), "90 % are no longer" },
	{ "p99_ns", NULL, "P99", D9__AS_NS, ROW(p99_ns), "99 % are no longer" },
	{ "p999_ns", NULL, NULL, D9__AS_NS, ROW(p999_ns), "99.9 % are no longer" },
	{ "max_ns", NULL, "LONGEST", D9__AS_NS, ROW(max_ns), "the longest" },
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

#define ROW(member) AT(struct d9__worker_row, member)
#define OF(member)  IN(struct d9__worker, member)

const struct d9__column d9__worker_columns[] = {
	{ "id", "worker", "ID", D9__AS_ID, OF(id), "its id" },
	{ "process", "process", NULL, D9__AS_ID, ROW(process), NULL },
	{ "name", "name", "NAME", D9__AS_NAME, ROW(name), "the loop's, else the thread's" },
	{ "tid", "tid", "TID", D9__AS_ID, OF(tid), "thread" },
	{ "polls", "calls", "CALLS", D9__AS_COUNT, ROW(calls), "of callbacks" },
	{ "resumptions", NULL, NULL, D9__AS_COUNT, OF(resumptions),
	  "polls that go on with a call which a nested loop had cut" },
	{ "open_ended_polls", NULL, NULL, D9__AS_COUNT, OF(open_ended),
	  "ended by the next poll or park instead of an end of their own" },
	{ "poll_ns", "poll_ns", NULL, D9__AS_NS, OF(poll_ns), "in callbacks, ns" },
	{ "parks", "parks", "PARKS", D9__AS_COUNT, OF(parks), "waits for events" },
	{ "active_periods", NULL, NULL, D9__AS_COUNT, OF(active_periods),
	  "from an unpark to the next park" },
	{ "awake_ns", "awake_ns", "AWAKE", D9__AS_NS, OF(active_ns), "between them, ns" },
	{ "parked_ns", "parked_ns", "PARKED", D9__AS_NS, OF(parked_ns),
	  "in them, and asleep after it had left the loop, ns" },
	{ "busy_ns", NULL, NULL, D9__AS_NS, ROW(busy_ns),
	  "in open callbacks, also while a loop runs inside them" },
	{ "busy", NULL, "BUSY", D9__AS_SHARE, ROW(busy), "`busy_ns` / (`awake_ns` + `parked_ns`)" },
	{ "utilisation", NULL, NULL, D9__AS_SHARE, ROW(utilisation),
	  "`awake_ns` / (`awake_ns` + `parked_ns`)" },
	{ "cpu_utilisation", NULL, "ON CPU", D9__AS_SHARE, ROW(on_cpu),
	  "`cpu_ns` / (`awake_ns` + `parked_ns`)" },
	{ "cpu_ns", "cpu_ns", NULL, D9__AS_NS, ROW(cpu_ns),
	  "CPU time of its thread, ns; NULL: not recorded" },
	{ "cpu_ratio", NULL, NULL, D9__AS_SHARE, ROW(cpu_ratio),
	  "mean over the active periods of CPU time per time" },
	{ "long_call_ns", NULL, NULL, D9__AS_NS, ROW(long_call_ns),
	  "calls from here on are long for this worker" },
	{ "wakes_issued", NULL, NULL, D9__AS_COUNT, OF(wakes_issued), "tasks that it made ready" },
	{ "local_queue_max", NULL, NULL, D9__AS_COUNT, OF(local_max),
	  "most callbacks that were ready at a call" },
	{ "handovers", NULL, NULL, D9__AS_COUNT, OF(handovers),
	  "how often the id went on under another thread" },
	{ "time", NULL, NULL, OBJECT, "*time*" },
	{ "account", NULL, NULL, OBJECT, "whose its time was" },
	{ "kernel_waits", NULL, NULL, OBJECT, "*quantiles* of the waits above 0" },
	{ "samples", NULL, NULL, OBJECT, "of its thread" },
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

#define ROW(member) AT(struct d9__callback_row, member)
#define OF(member)  IN(struct d9__callback, member)

const struct d9__column d9__callback_columns[] = {
	{ NULL, "callback", NULL, D9__AS_KEY, ROW(id), NULL },
	{ "process", "process", NULL, D9__AS_ID, ROW(process), NULL },
	{ "name", "name", NULL, D9__AS_TEXT, ROW(name), "the function, else module+0xoffset" },
	{ "location", "location", NULL, D9__AS_TEXT, OF(location),
	  "CALLBACK @ SITE as in the trace" },
	{ "way", NULL, NULL, D9__AS_TEXT, ROW(way),
	  "of a function that a loop library calls inside a callback of its own: both" },
	{ "source", "source", "SOURCE", D9__AS_TEXT, OF(source),
	  "file.c:12 of the function, or NULL" },
	{ "site", "site", "MADE AT", D9__AS_TEXT, ROW(site), "where it was registered, or NULL" },
	{ "kind", "kind", "KIND", D9__AS_TEXT, ROW(kind),
	  "io, timer, signal, idle, ..., several joined by +" },
	{ "internal", "internal", NULL, D9__AS_FLAG, OF(internal), "1: the loop library's own" },
	{ "polls", NULL, "CALLS", D9__AS_COUNT, OF(calls), "calls, resumptions not counted" },
	{ "total_ns", NULL, "TOTAL", D9__AS_NS, ROW(calls.sum_ns),
	  "of its calls, without loops in them" },
	{ "min_ns", NULL, NULL, D9__AS_NS, ROW(calls.min_ns), "the shortest call" },
	{ "p50_ns", NULL, "P50", D9__AS_NS, ROW(calls.p50_ns), "half of the calls are no longer" },
	{ "p90_ns", NULL, NULL, D9__AS_NS, ROW(calls.p90_ns), "90 % are no longer" },
	{ "p99_ns", NULL, "P99", D9__AS_NS, ROW(calls.p99_ns), "99 % are no longer" },
	{ "max_ns", NULL, NULL, D9__AS_NS, ROW(calls.max_ns), "the longest call" },
	{ "over_1ms", NULL, NULL, D9__AS_COUNT, OF(over_1ms), "calls" },
	{ "over_10ms", NULL, NULL, D9__AS_COUNT, OF(over_10ms), "calls" },
	{ "over_50ms", NULL, NULL, D9__AS_COUNT, OF(over_50ms), "calls" },
	{ "open_ended", NULL, NULL, D9__AS_COUNT, OF(open_ended),
	  "calls that were ended by the next poll or park" },
	{ "time", NULL, NULL, OBJECT, "*time*" },
	{ "tasks", NULL, NULL, OBJECT, "`time`: *time* of its tasks" },
	{ "loops_inside", NULL, NULL, OBJECT, "of calls that ran a loop" },
	{ "tasks_spawned", NULL, "MADE", D9__AS_COUNT, OF(spawned), "its registrations" },
	{ "tasks_ended", NULL, "ENDED", D9__AS_COUNT, OF(ended), "of these, removed" },
	{ "tasks_alive", NULL, "AT END", D9__AS_COUNT, OF(alive), "registered at the end" },
	{ "tasks_peak", NULL, "PEAK", D9__AS_COUNT, OF(peak_alive), "most at once" },
	{ "on_cpu_samples", NULL, NULL, D9__AS_COUNT, OF(on_samples), "inside its calls" },
	{ "off_cpu_samples", NULL, NULL, D9__AS_COUNT, OF(off_samples), "inside its calls" },
	{ "off_cpu_estimated", NULL, NULL, D9__AS_COUNT, ROW(off_estimated),
	  "how often threads left the CPU" },
	{ "sampled", NULL, NULL, OBJECT, "*weight* of the on-CPU samples" },
	{ "delays", NULL, NULL, OBJECT, "*quantiles*" },
	{ "lateness", NULL, NULL, OBJECT, "*quantiles*" },
	{ NULL, NULL, "LONGEST", D9__AS_NS, ROW(longest_ns), NULL },
	{ NULL, NULL, "SHARE", D9__AS_SHARE, ROW(share), NULL },
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
		.off_estimated = estimate(a, callback->off_samples, callback->switches),
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

#define ROW(member) AT(struct d9__tasks_row, member)
#define OF(member)  IN(struct d9__tasks, member)

const struct d9__column d9__tasks_columns[] = {
	{ "recorded", NULL, NULL, OBJECT, "*recorded* of their ends" },
	{ "spawned", NULL, NULL, D9__AS_COUNT, OF(spawned), "registered in the trace" },
	{ "uninstrumented", NULL, NULL, D9__AS_COUNT, OF(uninstrumented),
	  "of these, those whose wakes cannot be seen" },
	{ "ended", NULL, NULL, D9__AS_COUNT, OF(ended), "removed in the trace" },
	{ "ended_without_spawn", NULL, NULL, D9__AS_COUNT, OF(ended_unspawned),
	  "of these, registered before the trace" },
	{ "alive_at_start", NULL, NULL, D9__AS_COUNT, OF(at_start), "registered before the trace" },
	{ "peak_alive", NULL, NULL, D9__AS_COUNT, ROW(peak), "most at once" },
	{ "alive_at_end", NULL, NULL, D9__AS_COUNT, ROW(at_end), "registered when the trace ends" },
	{ "time", NULL, NULL, OBJECT, "*time* of all tasks" },
	{ .key = NULL },
};
#undef ROW
#undef OF

struct d9__tasks_row d9__tasks_row(const struct d9__tasks *tasks)
{
	int64_t start = (int64_t)tasks->at_start;

	return (struct d9__tasks_row) { tasks, start + tasks->peak_change, start + tasks->change };
}

#define ROW(member) AT(struct d9__task_row, member)

const struct d9__column d9__task_columns[] = {
	{ NULL, "process", NULL, D9__AS_ID, ROW(process), NULL },
	{ NULL, "task", NULL, D9__AS_ID, ROW(task), "its id" },
	{ NULL, "callback", NULL, D9__AS_ID, ROW(callback), "callbacks.callback" },
	{ NULL, "kind", NULL, D9__AS_NAME, ROW(kind), NULL },
	{ NULL, "fd", NULL, D9__AS_ID, ROW(fd), "descriptor, or NULL" },
	{ NULL, "name", NULL, D9__AS_NAME, ROW(name), "by the program, or NULL" },
	{ NULL, "spawned_ns", NULL, D9__AS_NS, ROW(spawned_ns), "when it was registered, ns" },
	{ NULL, "ended_ns", NULL, D9__AS_NS, ROW(ended_ns),
	  "when it was removed, ns; NULL: it lives at the end" },
	{ .key = NULL },
};
#undef ROW
