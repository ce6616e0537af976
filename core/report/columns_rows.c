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
	{ NULL, NULL, "P99", D9__AS_NS, ROW(p99_ns), NULL },
	{ NULL, NULL, "LONGEST", D9__AS_NS, OF(calls.max), NULL },
	{ .key = NULL },
};
#undef ROW
#undef OF

struct d9__worker_row d9__worker_row(const struct d9__analysis *a, const struct d9__worker *worker)
{
	double ratio = d9__worker_cpu_ratio(worker);

	return (struct d9__worker_row) {
		.worker = worker,
		.process = a->process,
		.calls = worker->polls - worker->resumptions,
		.busy_ns = d9__worker_busy_ns(worker),
		.long_call_ns = d9__long_call_ns(worker),
		.p99_ns = d9__histogram_quantile(&worker->calls, 0.99),
		.name = d9__analysis_worker_name(a, worker),
		.busy = d9__worker_busy(worker),
		.utilisation = d9__worker_utilisation(worker),
		.on_cpu = d9__worker_on_cpu(worker),
		.cpu_ratio = ratio,
		.cpu_ns = { ratio >= 0, worker->cpu_ns },
	};
}
