/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What release 0.5.4 has that older ones had not: RuntimeMetricsEvent per runtime, the worker that spawned a
 * task, waits that were not measured, ad-hoc spans with bit 63 in their ids, spans that one event tells, and
 * how segments ended.
 */
#include "config.h"

#include <stdint.h>

#include "cli/make_newest.h"
#include "support/trace_builder.h"

#define AD_HOC (UINT64_C(1) << 63)
#define ORIGIN UINT64_C(9000000000)
#define MS     UINT64_C(1000000)

enum { CLOCK = 1, METADATA, START, END, PARK, UNPARK, WAKE, SPAWN, TERMINATE, METRICS, SAMPLE, ENTER = 256, EXIT, JOB, QUERY, DRIFT };

static void put_pair(struct trace *t, const char *key, const char *value)
{
	trace_text(t, key);
	trace_text(t, value);
}

static void put_first(struct trace *t)
{
	trace_event(t, CLOCK, ORIGIN, UINT64_C(1790000000000000000));
	trace_head(t, METADATA, ORIGIN);
	trace_uint(t, 5, 4);
	put_pair(t, "service", "checkout");
	put_pair(t, "runtime.main", "0,1");
	put_pair(t, "cpu.profile.frequency_hz", "100");
	put_pair(t, "tokio.poll_coverage", "dial9-spawns-only");
	put_pair(t, "segment.prior_sealed_clean", "false");
}

static void put_last(struct trace *t)
{
	trace_head(t, METADATA, ORIGIN + 90 * MS);
	trace_uint(t, 2, 4);
	put_pair(t, "segment.complete", "true");
	put_pair(t, "segment.sealed_clean", "true");
}

static void put_schemas(struct trace *t)
{
	trace_builtin(t, CLOCK, "ClockSyncEvent");
	trace_builtin(t, METADATA, "SegmentMetadataEvent");
	trace_builtin(t, START, "PollStartEvent");
	trace_builtin(t, END, "PollEndEvent");
	trace_builtin(t, PARK, "WorkerParkEvent");
	trace_schema(t, UNPARK, "WorkerUnparkEvent", "worker_id:9 local_queue:11 cpu_time_ns:9 sched_wait_ns:137 tid:13");
	trace_builtin_fields(t, WAKE, "WakeEventEvent", "waker_task_id woken_task_id target_worker");
	trace_schema(t, SPAWN, "TaskSpawnEvent", "task_id:9 spawn_loc:7 instrumented:3 worker_id:137");
	trace_builtin(t, TERMINATE, "TaskTerminateEvent");
	trace_schema(t, METRICS, "RuntimeMetricsEvent", "runtime_name:7 global_queue_depth:13 alive_tasks:13");
	trace_builtin_fields(t, SAMPLE, "CpuSampleEvent", "worker_id tid source thread_name callchain cpu");
	trace_schema(t, ENTER, "SpanEnter:src/pay.rs:12:5", "worker_id:9 span_id:9 parent_span_id:137 span_name:7");
	trace_schema(t, EXIT, "SpanExit:src/pay.rs:12:5",
		     "worker_id:9 span_id:9 span_name:7 active_ns:9 idle_ns:9 poll_count:9 completed:3");
	trace_schema(t, JOB, "JobDone", "took_us:9 what:7 thread:13 task:9");
	trace_annotate(t, JOB, 0, "dial9.role", "span.duration");
	trace_annotate(t, JOB, 0, "unit", "us");
	trace_annotate(t, JOB, 0, "dial9.span.type", "metrique");
	trace_annotate(t, JOB, 1, "dial9.role", "span.name");
	trace_annotate(t, JOB, 2, "dial9.role", "thread_id");
	trace_annotate(t, JOB, 3, "dial9.role", "tokio.task_id");
	trace_schema(t, QUERY, "Query", "began:9 rows:9");
	trace_annotate(t, QUERY, 0, "dial9.role", "span.start");
	trace_schema(t, DRIFT, "Drift", "by:1");
	trace_annotate(t, DRIFT, 0, "dial9.role", "span.duration");
}

static void put_poll(struct trace *t, uint64_t worker, uint64_t from_ms, uint64_t to_ms, uint64_t task)
{
	const uint32_t place = trace_string(t, "src/pay.rs:40:9");

	trace_event(t, WAKE, ORIGIN + from_ms * MS - 500000, UINT64_C(0), task, UINT64_C(254));
	if (worker == 0)
		trace_event(t, UNPARK, ORIGIN + from_ms * MS - 1000, worker, UINT64_C(0), from_ms * 100000, 1,
			    UINT64_C(2000), UINT64_C(700));
	else
		trace_event(t, UNPARK, ORIGIN + from_ms * MS - 1000, worker, UINT64_C(0), from_ms * 100000, 0,
			    UINT64_C(700) + worker);
	trace_event(t, START, ORIGIN + from_ms * MS, worker, UINT64_C(1), task, (uint64_t)place);
	trace_event(t, END, ORIGIN + to_ms * MS, worker);
	trace_event(t, PARK, ORIGIN + to_ms * MS + 1000, worker, UINT64_C(0), to_ms * 100000, UINT64_C(700) + worker);
}

static void put_span(struct trace *t, uint64_t from_ms, uint64_t to_ms, uint64_t id)
{
	const uint64_t name = trace_string(t, "charge");

	trace_event(t, ENTER, ORIGIN + from_ms * MS, UINT64_C(0), id, 0, name);
	trace_event(t, EXIT, ORIGIN + to_ms * MS, UINT64_C(0), id, name, (to_ms - from_ms) * MS, UINT64_C(0), UINT64_C(1),
		    UINT64_C(1));
}

static void put_spawn(struct trace *t, uint64_t task)
{
	trace_event(t, SPAWN, ORIGIN + task * 1000, task, (uint64_t)trace_string(t, "src/pay.rs:40:9"), UINT64_C(1), 1,
		    UINT64_C(1));
}

void make_newest(struct trace *t)
{
	trace_batch(t);
	put_schemas(t);
	put_first(t);
	put_spawn(t, 1);
	trace_event(t, SPAWN, ORIGIN + 2000, UINT64_C(2), (uint64_t)trace_string(t, "src/pay.rs:40:9"), UINT64_C(0), 0);
	put_spawn(t, 3);
	trace_event(t, METRICS, ORIGIN + 2 * MS, (uint64_t)trace_string(t, ""), UINT64_C(3), UINT64_C(3));
	trace_event(t, METRICS, ORIGIN + 2 * MS, (uint64_t)trace_string(t, "io"), UINT64_C(0), UINT64_C(7));
	put_poll(t, 0, 5, 25, 1);
	/* Two that differ in the last of 64 bits only. */
	put_span(t, 6, 8, AD_HOC | 1);
	put_span(t, 9, 12, AD_HOC | 2);
	put_poll(t, 1, 30, 31, 2);
	put_poll(t, 0, 40, 42, 3);
	trace_event(t, JOB, ORIGIN + 60 * MS, UINT64_C(2500), (uint64_t)trace_string(t, "bake"), UINT64_C(9), UINT64_C(0));
	trace_event(t, JOB, ORIGIN + 61 * MS, UINT64_C(500), (uint64_t)trace_string(t, " "), UINT64_C(9), UINT64_C(0));
	trace_event(t, QUERY, ORIGIN + 70 * MS, ORIGIN + 66 * MS, UINT64_C(12));
	/* It begins behind its end: an event as any other. */
	trace_event(t, QUERY, ORIGIN + 70 * MS, ORIGIN + 80 * MS, UINT64_C(12));
	/* Nothing lasts for less than no time: an event as any other. */
	trace_event(t, DRIFT, ORIGIN + 72 * MS, UINT64_MAX);
	trace_event(t, SAMPLE, ORIGIN + 15 * MS, UINT64_C(255), UINT64_C(700), UINT64_C(0), 0,
		    (uint64_t)trace_stack(t, 2, (const uint64_t[]){ 0x1000, 0x2000 }), 0);
	trace_event(t, TERMINATE, ORIGIN + 50 * MS, UINT64_C(2));
	put_last(t);
}
