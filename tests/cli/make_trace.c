/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the traces that the tests of the program read: make_trace KIND CONTAINER FILE [N]. */
#include "config.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/make_newest.h"
#include "support/trace_builder.h"

enum {
	CLOCK_SYNC = 1,
	METADATA,
	POLL_START,
	POLL_END,
	PARK,
	UNPARK,
	WAKE,
	SAMPLE,
	SPAWN,
	LOSS,
	HEALTH,
	MODULE,
	SYMBOL,
	CUSTOM = 256,
	EVERY_TYPE,
	TERMINATE,
	SPAN_ENTER,
	SPAN_EXIT,
	SPAN_CLOSE,
	SPAN_OPEN,
	ORDER,
	TIMELESS,
	STEP_ENTER,
	STEP_EXIT,
	QUERY_ENTER,
	QUERY_EXIT,
	SPAN_MISUSE,
	OFF_CPU,
	SOURCE_TIME,
	BLOCKING,
	TASK_IO,
};

static uint64_t origin_ns = UINT64_C(5000000000);

static void put_schemas(struct trace *t)
{
	trace_batch(t);
	trace_builtin(t, CLOCK_SYNC, "ClockSyncEvent");
	trace_builtin(t, METADATA, "SegmentMetadataEvent");
	trace_builtin(t, POLL_START, "PollStartEvent");
	trace_builtin(t, POLL_END, "PollEndEvent");
	trace_builtin(t, PARK, "WorkerParkEvent");
	trace_builtin(t, UNPARK, "WorkerUnparkEvent");
	trace_builtin(t, WAKE, "WakeEventEvent");
	trace_builtin_fields(t, SAMPLE, "CpuSampleEvent", "worker_id tid source thread_name callchain cpu");
}

static void put_pairs(struct trace *t, size_t n, const char *const *pairs)
{
	trace_uint(t, n, 4);
	for (size_t i = 0; i < 2 * n; i++)
		trace_text(t, pairs[i]);
}

static void put_metadata(struct trace *t, uint64_t ns)
{
	static const char *const pairs[] = {
		"service", "demo",
		"loop.libevent.version", "2.1.12-stable",
		"loop.libevent.capabilities", "poll=yes,park=yes,depth=no",
		"loop.libevent.degraded", "depth: private layout not recognised",
		"runtime.main", "0",
	};

	trace_head(t, METADATA, ns);
	put_pairs(t, 5, pairs);
}

/* Write events as a recorder does: two polls on a worker, a wake, a park. */
static void make_small(struct trace *t)
{
	uint64_t ns = origin_ns;
	uint64_t loc;

	put_schemas(t);
	trace_event(t, CLOCK_SYNC, ns, UINT64_C(1800000000000000000));
	put_metadata(t, ns + 1000);
	loc = trace_string(t, "demo+0x1a2b0 @ demo+0x9f04");
	trace_event(t, UNPARK, ns + 2000, UINT64_C(0), UINT64_C(0), UINT64_C(100), UINT64_C(7),
		    UINT64_C(4242));
	trace_event(t, WAKE, ns + 2500, UINT64_C(0), UINT64_C(5), UINT64_C(0), UINT64_C(1));
	trace_event(t, POLL_START, ns + 3000, UINT64_C(0), UINT64_C(2), UINT64_C(5), loc);
	trace_event(t, POLL_END, ns + 15500, UINT64_C(0));
	loc = trace_string(t, "echo.c:42");
	trace_event(t, POLL_START, ns + 16500, UINT64_C(0), UINT64_C(1), UINT64_C(9), loc);
	trace_event(t, POLL_END, ns + UINT64_C(20016500), UINT64_C(0));
	trace_event(t, PARK, ns + UINT64_C(20017000), UINT64_C(0), UINT64_C(0), UINT64_C(900),
		    UINT64_C(4242));
}

/* Its call of 20 ms was ready to run for |run_queue_ns| of them, and got no CPU. */
static void make_held(struct trace *t, uint64_t run_queue_ns)
{
	make_small(t);
	trace_builtin_fields(t, OFF_CPU, "OffCpuEvent", "worker_id task_id blocked_ns run_queue_ns");
	trace_event(t, OFF_CPU, origin_ns + UINT64_C(20016500), UINT64_C(0), UINT64_C(9), UINT64_C(0), run_queue_ns);
}

/* A loop of half a second, awake and on the CPU for 460 ms, of which 440 lie in |phase| of a source, or are not told. */
static void make_outside(struct trace *t, const char *phase)
{
	uint64_t ns = origin_ns, awake_ns = UINT64_C(460000000);

	put_schemas(t);
	put_metadata(t, ns + 1000);
	trace_event(t, UNPARK, ns + 2000, UINT64_C(0), UINT64_C(0), UINT64_C(100), UINT64_C(7), UINT64_C(4242));
	trace_event(t, POLL_START, ns + 3000, UINT64_C(0), UINT64_C(2), UINT64_C(5),
		    (uint64_t)trace_string(t, "demo+0x1a2b0 @ demo+0x9f04"));
	trace_event(t, POLL_END, ns + 15500, UINT64_C(0));
	if (*phase) {
		trace_schema(t, SOURCE_TIME, "SourceTimeEvent",
			     "worker_id:9 task_id:9 phase:7 calls:9 total_ns:9 max_ns:9");
		trace_event(t, SOURCE_TIME, ns + awake_ns - 1, UINT64_C(0), UINT64_C(5), (uint64_t)trace_string(t, phase),
			    UINT64_C(22), UINT64_C(440000000), UINT64_C(20000000));
	}
	trace_event(t, PARK, ns + awake_ns, UINT64_C(0), UINT64_C(0), awake_ns, UINT64_C(4242));
	trace_event(t, UNPARK, ns + UINT64_C(500000000), UINT64_C(0), UINT64_C(0), awake_ns, UINT64_C(7), UINT64_C(4242));
	trace_event(t, PARK, ns + UINT64_C(500001000), UINT64_C(0), UINT64_C(0), awake_ns + 900, UINT64_C(4242));
}

/* Metadata with two keys that are there twice, and a name of no pool. */
static void make_repeats(struct trace *t)
{
	make_small(t);
	trace_head(t, METADATA, origin_ns + UINT64_C(20020000));
	put_pairs(t, 5, (const char *const[]){ "pid", "1", "pid", "4242", "x", "", "y", "a", "x", "b" });
	trace_event(t, POLL_START, origin_ns + UINT64_C(20030000), UINT64_C(0), UINT64_C(1), UINT64_C(9),
		    UINT64_C(777));
}

/* A second batch, of another thread, that overlaps the first in time. */
static void add_second_batch(struct trace *t)
{
	static const uint64_t stack[] = { 0x7f0000001234, 0x400abc };

	put_schemas(t);
	trace_event(t, SAMPLE, origin_ns + 9000, UINT64_C(255), UINT64_C(4243), UINT64_C(0), 1,
		    (uint64_t)trace_string(t, "pool \"x\"\n"),
		    (uint64_t)trace_stack(t, 2, stack), 0);
	trace_builtin(t, LOSS, "RecorderLossEvent");
	trace_event(t, LOSS, origin_ns + 30000, UINT64_C(4242), UINT64_C(0),
		    (uint64_t)trace_string(t, "overrun"), UINT64_C(37), origin_ns,
		    origin_ns + 29000);
	trace_schema(t, HEALTH, "RecorderHealthEvent", "state:4 events:9");
	trace_event(t, HEALTH, origin_ns + 31000, "recording", UINT64_C(12));
	trace_builtin(t, SPAWN, "TaskSpawnEvent");
	trace_event(t, SPAWN, origin_ns + 2400, UINT64_C(5),
		    (uint64_t)trace_string(t, "demo+0x1a2b0 @ demo+0x9f04"), UINT64_C(1),
		    UINT64_C(0x55550001a2b0), UINT64_C(0x555500009f04),
		    (uint64_t)trace_string(t, "io"), 1, UINT64_C(7), 0);
}

/* Every field type of the format, at its edges. */
static void make_types(struct trace *t)
{
	trace_batch(t);
	trace_schema(t, EVERY_TYPE, "Every\"Type",
		     "i:1 f:2 b:3 s:4 y:5 v:9 u8:11 u16:12 u32:13 event:9 gone:137 none:132 nan:2 "
		     "took:9");
	trace_annotate(t, EVERY_TYPE, 13, "unit", "us");
	trace_event(t, EVERY_TYPE, origin_ns, INT64_MIN, 0.1, UINT64_C(1),
		    "a\"b\\c\td\x01\xff\xc3\xa9\xed\xa0\x80z", "\x01\xfe", UINT64_MAX,
		    UINT64_C(255), UINT64_C(65535), UINT64_C(4294967295), UINT64_C(3), 0, 1, "",
		    __builtin_nan(""), UINT64_C(150));
	trace_schema(t, CUSTOM, "Nested", "map:10 list:14 pairs:15 stack:8 none:10 nothing:15");
	trace_head(t, CUSTOM, origin_ns + 1);
	put_pairs(t, 2, (const char *const[]){ "k", "v", "k2", "" });
	trace_uint(t, 2, 4); /* list: a varint and a list of one bool */
	trace_uint(t, 9, 1);
	trace_varint(t, 300);
	trace_uint(t, 14, 1);
	trace_uint(t, 1, 4);
	trace_uint(t, 3, 1);
	trace_uint(t, 1, 1);
	trace_uint(t, 1, 4); /* map: 7 -> "x" */
	trace_uint(t, 11, 1);
	trace_uint(t, 7, 1);
	trace_uint(t, 4, 1);
	trace_text(t, "x");
	trace_uint(t, 1, 4); /* stack */
	trace_uint(t, UINT64_MAX, 8);
	put_pairs(t, 0, NULL);
	trace_uint(t, 0, 4);
	trace_schema(t, TIMELESS, "!Timeless", "n:9");
	trace_event(t, TIMELESS, 0, UINT64_C(1));
}

/* A poll of a function in a binary that exists: FILE's program, ids and offsets from the test. */
static void make_module(struct trace *t, char **args)
{
	char loc[256];
	const char *slash = strrchr(args[0], '/');

	put_schemas(t);
	trace_builtin_fields(t, MODULE, "ModuleEvent", "base start size path build_id unloaded");
	snprintf(loc, sizeof(loc), "%s+0x%s @ %s+0x%s", slash + 1, args[2], slash + 1, args[3]);
	trace_event(t, POLL_START, origin_ns, UINT64_C(0), UINT64_C(0), UINT64_C(5),
		    (uint64_t)trace_string(t, loc));
	trace_event(t, POLL_END, origin_ns + 50, UINT64_C(0));
	trace_event(t, MODULE, origin_ns + 100, UINT64_C(0x555500000000),
		    UINT64_C(0x555500000000), UINT64_C(0x10000000), args[0], args[1], UINT64_C(0));
}

/* A poll of a function that only the trace's own symbols name. */
static void make_rows(struct trace *t)
{
	put_schemas(t);
	trace_builtin(t, SPAWN, "TaskSpawnEvent");
	trace_builtin(t, SYMBOL, "SymbolTableEntry");
	trace_event(t, SPAWN, origin_ns, UINT64_C(5),
		    (uint64_t)trace_string(t, "gone+0x1000 @ gone+0x2000"), UINT64_C(1),
		    UINT64_C(0x555500001000), UINT64_C(0), (uint64_t)trace_string(t, "io"), 0, 0);
	trace_event(t, POLL_START, origin_ns + 1, UINT64_C(0), UINT64_C(0), UINT64_C(5),
		    (uint64_t)trace_string(t, ""));
	trace_event(t, POLL_END, origin_ns + 50, UINT64_C(0));
	trace_event(t, SYMBOL, 0, UINT64_C(0x555500001000), UINT64_C(0),
		    (uint64_t)trace_string(t, "named_by_row"), UINT64_C(0),
		    (uint64_t)trace_string(t, "gone.c"), UINT64_C(7));
}

/* One of several processes, told by |boot_id|: a poll of |ms|; all use the same ids. */
static void make_process(struct trace *t, const char *boot_id, uint64_t ms)
{
	const char *const pairs[] = {
		"service", "demo", "boot_id", boot_id, "pid", strchr(boot_id, '-') + 1,
	};
	uint64_t ns = origin_ns + ms * 1000;

	put_schemas(t);
	trace_head(t, METADATA, ns);
	put_pairs(t, 3, pairs);
	trace_event(t, UNPARK, ns + 1000, UINT64_C(0), UINT64_C(0), UINT64_C(100), UINT64_C(0),
		    UINT64_C(4242));
	trace_event(t, POLL_START, ns + 2000, UINT64_C(0), UINT64_C(1), UINT64_C(5),
		    (uint64_t)trace_string(t, boot_id));
	trace_event(t, POLL_END, ns + 2000 + ms * 1000000, UINT64_C(0));
	trace_event(t, PARK, ns + 3000 + ms * 1000000, UINT64_C(0), UINT64_C(0),
		    UINT64_C(100) + ms * 1000000, UINT64_C(4242));
}

/*
 * Two seconds of the process |boot_id|, whose |workers| loops run |place| for 3, 2, 1, 0, 3 ms ...
 * of each 10; those of 3 ms sleep for 2 of them in read().  Each time they were ready for
 * |ready_ns| before they got a CPU.
 */
static void put_turn(struct trace *t, uint64_t worker, uint64_t ns, const char *place,
		     uint64_t ready_ns)
{
	uint64_t run_ns = (3 - worker % 4) * 1000000, tid = worker + 4243, none = 0;

	trace_event(t, UNPARK, ns, worker, none, none, ready_ns, tid);
	trace_event(t, POLL_START, ns, worker, UINT64_C(1), worker + 1,
		    (uint64_t)trace_string(t, place));
	if (run_ns == 3000000)
		trace_event(t, BLOCKING, ns + 2000000, worker, worker + 1,
			    (uint64_t)trace_string(t, "read"), 1, UINT64_C(5), UINT64_C(2000000));
	trace_event(t, POLL_END, ns + run_ns, worker);
	trace_event(t, PARK, ns + run_ns, worker, none, none, tid);
}

static void make_loops(struct trace *t, const char *boot_id, uint64_t workers, const char *place,
		       uint64_t ready_ns)
{
	const char *const pairs[] = {
		"service", "demo", "boot_id", boot_id, "pid", strchr(boot_id, '-') + 1,
	};

	put_schemas(t);
	trace_builtin_fields(t, BLOCKING, "BlockingCallEvent",
			     "worker_id task_id function fd duration_ns");
	trace_head(t, METADATA, origin_ns);
	put_pairs(t, 3, pairs);
	for (uint64_t turn = 0; turn < 200; turn++)
		for (uint64_t worker = 0; worker < workers; worker++)
			put_turn(t, worker, origin_ns + turn * 10000000 + worker * 1000, place,
				 ready_ns);
}

/* A loop that is busy for four seconds with 4,000 calls: as many reads, of |bytes| each, and
 * writes. */
static void make_limit(struct trace *t, uint64_t bytes)
{
	uint64_t ns = origin_ns, cpu_ns = UINT64_C(4000000000), none = 0, calls = 4000;
	uint64_t place;

	put_schemas(t);
	put_metadata(t, ns);
	trace_builtin_fields(t, TASK_IO, "TaskIoEvent",
			     "worker_id task_id reads read_bytes writes again eof errors");
	place = trace_string(t, "demo+0x1a2b0 @ demo+0x9f04");
	trace_event(t, UNPARK, ns, none, none, none, none, UINT64_C(4242));
	for (uint64_t i = 0; i < calls; i++) {
		trace_event(t, POLL_START, ns + i * 1000000, none, UINT64_C(1), UINT64_C(9), place);
		trace_event(t, POLL_END, ns + i * 1000000 + 900000, none);
	}
	trace_event(t, TASK_IO, ns + cpu_ns, none, UINT64_C(9), calls, calls * bytes, calls, none,
		    none, none);
	trace_event(t, PARK, ns + cpu_ns, none, none, cpu_ns, UINT64_C(4242));
}

/*
 * Of the process |boot_id|, which began at 1790000000 s of the day: from |after_s| on, with two calls of |ms|, a span around
 * each, a stack, and what its recorder says that it |evicted|.
 */
static void make_hour(struct trace *t, const char *boot_id, uint64_t after_s, uint64_t ms, const char *evicted)
{
	static const uint64_t stack[] = { 0x401000, 0x400abc };
	const char *const pairs[] = {
		"service", "demo", "boot_id", boot_id, "pid", strchr(boot_id, '-') + 1, "segment.evicted", evicted,
	};
	uint64_t ns = origin_ns + after_s * 1000000000, length = ms * 1000000;

	put_schemas(t);
	trace_schema(t, SPAN_ENTER, "SpanEnter:demo", "worker_id:9 span_id:9 parent_span_id:137 span_name:7");
	trace_schema(t, SPAN_EXIT, "SpanExit:demo", "worker_id:9 span_id:9 span_name:7");
	trace_builtin_fields(t, SPAN_CLOSE, "SpanCloseEvent", "span_id");
	trace_event(t, CLOCK_SYNC, ns, UINT64_C(1790000000000000000) + after_s * 1000000000);
	trace_head(t, METADATA, ns);
	put_pairs(t, *evicted ? 4 : 3, pairs);
	trace_event(t, UNPARK, ns + 1000, UINT64_C(0), UINT64_C(0), UINT64_C(100), UINT64_C(0), UINT64_C(4242));
	for (unsigned i = 0; i < 2; i++, ns += length + 1000) {
		trace_event(t, POLL_START, ns + 2000, UINT64_C(0), UINT64_C(1), UINT64_C(5),
			    (uint64_t)trace_string(t, "handler @ main"));
		trace_event(t, SPAN_ENTER, ns + 2000, UINT64_C(0), (uint64_t)i + 7, 0, (uint64_t)trace_string(t, "request"));
		trace_event(t, SAMPLE, ns + 2500, UINT64_C(0), UINT64_C(4242), UINT64_C(0), 1, (uint64_t)trace_string(t, "main"),
			    (uint64_t)trace_stack(t, 2, stack), 0);
		trace_event(t, SPAN_EXIT, ns + 2000 + length, UINT64_C(0), (uint64_t)i + 7, (uint64_t)trace_string(t, "request"));
		trace_event(t, SPAN_CLOSE, ns + 2000 + length, (uint64_t)i + 7);
		trace_event(t, POLL_END, ns + 2000 + length, UINT64_C(0));
	}
	trace_event(t, PARK, ns + 3000, UINT64_C(0), UINT64_C(0), UINT64_C(100) + 2 * length, UINT64_C(4242));
}

static void life_call(struct trace *t, uint64_t us, uint64_t to_us, uint64_t task, const char *place)
{
	uint64_t text = trace_string(t, place);

	trace_event(t, POLL_START, origin_ns + us * 1000, UINT64_C(0), UINT64_C(1), task, text);
	if (to_us)
		trace_event(t, POLL_END, origin_ns + to_us * 1000, UINT64_C(0));
}

static void life_wake(struct trace *t, uint64_t us, uint64_t waker, uint64_t reason)
{
	trace_event(t, WAKE, origin_ns + us * 1000, waker, UINT64_C(7), UINT64_C(0), reason);
}

/* Two short calls after ten seconds, of a callback with a long name. */
static void make_late(struct trace *t)
{
	static const char handler[] = "service::connection_pool<service::tls_stream>::on_readable_or_closed @ main";

	put_schemas(t);
	trace_builtin(t, WAKE, "WakeEventEvent");
	life_call(t, 1, 2, 9, handler);
	life_wake(t, 10000003, 9, 4);
	life_call(t, 10000010, 10000060, 7, "short @ main");
	life_wake(t, 10000070, 9, 4);
	life_call(t, 10000080, 10000090, 7, "short @ main");
}

static void tell_open(struct trace *t, uint64_t id, uint64_t start_us, const char *name)
{
	trace_event(t, SPAN_OPEN, origin_ns + 1000000, id, 0, (uint64_t)trace_string(t, name),
		    origin_ns + start_us * 1000, (uint64_t)trace_string(t, "demo"));
}

/* Two spans that a rotation finds open, entered and not: the segment before it, or the one behind,
 * which tells them. */
static void make_crossing(struct trace *t, bool behind)
{
	put_schemas(t);
	trace_schema(t, SPAN_ENTER, "SpanEnter:demo",
		     "worker_id:9 span_id:9 parent_span_id:137 span_name:7");
	trace_schema(t, SPAN_EXIT, "SpanExit:demo", "worker_id:9 span_id:9 span_name:7");
	trace_builtin_fields(t, SPAN_CLOSE, "SpanCloseEvent", "span_id start_timestamp_ns active_ns");
	trace_builtin(t, SPAN_OPEN, "SpanOpenEvent");
	if (!behind) {
		trace_event(t, SPAN_ENTER, origin_ns + 2000, UINT64_C(255), UINT64_C(5), 0,
			    (uint64_t)trace_string(t, "session"));
		trace_event(t, SPAN_EXIT, origin_ns + 3000, UINT64_C(255), UINT64_C(5),
			    (uint64_t)trace_string(t, "session"));
		trace_event(t, SPAN_ENTER, origin_ns + 4000, UINT64_C(255), UINT64_C(3), 0,
			    (uint64_t)trace_string(t, "request"));
		return;
	}
	tell_open(t, 5, 1, "session");
	tell_open(t, 3, 4, "request");
	trace_event(t, SPAN_EXIT, origin_ns + 1010000, UINT64_C(255), UINT64_C(3),
		    (uint64_t)trace_string(t, "request"));
	trace_event(t, SPAN_CLOSE, origin_ns + 1011000, UINT64_C(3), origin_ns + 4000,
		    UINT64_C(1006000));
}

/* A call that took nearly all of the time that can be told. */
static void make_endless(struct trace *t)
{
	put_schemas(t);
	life_call(t, 0, 0, 7, "endless @ main");
	trace_event(t, POLL_END, UINT64_MAX - 1, UINT64_C(0));
}

/* Task 7 is woken by its descriptor, by task 9, by itself; span 3 is entered twice. */
static void make_life(struct trace *t)
{
	static const char handler[] = "answer <&> ask @ main", other[] = "produce @ main";
	uint64_t text;

	put_schemas(t);
	trace_builtin(t, SPAWN, "TaskSpawnEvent");
	trace_builtin(t, TERMINATE, "TaskTerminateEvent");
	trace_builtin(t, WAKE, "WakeEventEvent");
	trace_schema(t, SPAN_ENTER, "SpanEnter:demo",
		     "worker_id:9 span_id:9 parent_span_id:137 span_name:7");
	trace_schema(t, SPAN_EXIT, "SpanExit:demo", "worker_id:9 span_id:9 span_name:7");
	trace_builtin_fields(t, SPAN_CLOSE, "SpanCloseEvent", "span_id");
	trace_schema(t, ORDER, "OrderEvent", "worker_id:9 n:9");
	text = trace_string(t, handler);
	trace_event(t, SPAWN, origin_ns, UINT64_C(7), text, UINT64_C(1), UINT64_C(0), UINT64_C(0),
		    (uint64_t)trace_string(t, "io"), 1, UINT64_C(12), 0);
	life_wake(t, 100, 0, 1);
	life_call(t, 110, 0, 7, handler);
	text = trace_string(t, "parse");
	trace_event(t, SPAN_ENTER, origin_ns + 120000, UINT64_C(0), UINT64_C(3), 0, text);
	trace_event(t, ORDER, origin_ns + 130000, UINT64_C(0), UINT64_C(42));
	trace_event(t, ORDER, origin_ns + 131000, UINT64_C(1), UINT64_C(43));
	trace_event(t, SPAN_EXIT, origin_ns + 150000, UINT64_C(0), UINT64_C(3), text);
	trace_event(t, POLL_END, origin_ns + 160000, UINT64_C(0));
	life_call(t, 200, 300, 9, other);
	life_wake(t, 250, 9, 4);
	life_call(t, 310, 0, 7, handler);
	trace_event(t, SPAN_ENTER, origin_ns + 320000, UINT64_C(0), UINT64_C(3), 0, text);
	trace_event(t, SPAN_EXIT, origin_ns + 330000, UINT64_C(0), UINT64_C(3), text);
	trace_event(t, SPAN_CLOSE, origin_ns + 330000, UINT64_C(3));
	life_wake(t, 340, 7, 4);
	trace_event(t, POLL_END, origin_ns + 360000, UINT64_C(0));
	life_call(t, 360, 400, 7, handler);
	trace_event(t, TERMINATE, origin_ns + 500000, UINT64_C(7));
	life_call(t, 600, 650, 9, other);
}

#define ENTER "worker_id:9 span_id:9 parent_span_id:137 span_name:7 span_instance_id:9 tid:13 "
#define EXIT  "worker_id:9 span_id:9 span_name:7 span_instance_id:9 tid:13 "

static void put_span_schemas(struct trace *t)
{
	put_schemas(t);
	trace_schema(t, SPAN_ENTER, "SpanEnter:http::request:s.c:3", ENTER "path:135 user:137");
	trace_schema(t, SPAN_EXIT, "SpanExit:http::request:s.c:3", EXIT "path:135 user:137");
	trace_schema(t, STEP_ENTER, "SpanEnter:http::step:s.c:9", ENTER "user:137 note:132");
	trace_schema(t, STEP_EXIT, "SpanExit:http::step:s.c:9", EXIT "user:137 note:132");
	trace_schema(t, QUERY_ENTER, "SpanEnter:db::query:q.c:7", ENTER "table:135");
	trace_schema(t, QUERY_EXIT, "SpanExit:db::query:q.c:7", EXIT "table:135");
	trace_builtin_fields(t, SPAN_CLOSE, "SpanCloseEvent",
			     "span_id span_instance_id start_timestamp_ns span_name first_enter_timestamp_ns active_ns "
			     "target file line level parent_span_instance_id");
	trace_builtin(t, SPAN_MISUSE, "SpanMisuseEvent");
}

/* A close of a span of the request's kind, or of the query's. */
static void close_span(struct trace *t, uint64_t us, uint64_t id, uint64_t start_us,
		       uint64_t first_us, uint64_t active_us, bool query)
{
	uint64_t name = trace_string(t, query ? "query" : "request");
	uint64_t target = trace_string(t, query ? "db" : "http");
	uint64_t file = trace_string(t, query ? "q.c" : "s.c"), level = trace_string(t, "info");
	uint64_t start_ns = origin_ns + start_us * 1000, line = query ? 7 : 3;

	if (first_us)
		trace_event(t, SPAN_CLOSE, origin_ns + us * 1000, id, id, start_ns, name, 1,
			    origin_ns + first_us * 1000, active_us * 1000, 1, target, 1, file, 1,
			    line, 1, level, 0);
	else
		trace_event(t, SPAN_CLOSE, origin_ns + us * 1000, id, id, start_ns, name, 0,
			    active_us * 1000, 1, target, 1, file, 1, line, 1, level, 0);
}

/*
 * Request 1 on two threads, in it step 2, in that query 3; query 4 is never entered, request 5 never
 * left or closed.
 */
static void make_spans(struct trace *t)
{
	const uint64_t no_worker = 255, t1 = 101, t2 = 102;
	uint64_t request, step, query, path, table;

	put_span_schemas(t);
	request = trace_string(t, "request");
	step = trace_string(t, "step");
	query = trace_string(t, "query");
	path = trace_string(t, "/index");
	table = trace_string(t, "users");
	trace_event(t, SPAN_ENTER, origin_ns + 10000, no_worker, UINT64_C(1), 0, request,
		    UINT64_C(1), t1, 1, path, 1, UINT64_C(42));
	close_span(t, 15, 4, 12, 0, 0, true);
	trace_event(t, SPAN_EXIT, origin_ns + 20000, no_worker, UINT64_C(1), request, UINT64_C(1),
		    t1, 1, path, 1, UINT64_C(42));
	trace_event(t, SPAN_ENTER, origin_ns + 40000, no_worker, UINT64_C(1), 0, request,
		    UINT64_C(1), t2, 1, path, 1, UINT64_C(42));
	trace_event(t, STEP_ENTER, origin_ns + 41000, no_worker, UINT64_C(2), 1, UINT64_C(1), step,
		    UINT64_C(2), t2, 1, UINT64_C(7), 1, "first");
	trace_event(t, QUERY_ENTER, origin_ns + 42000, no_worker, UINT64_C(3), 1, UINT64_C(2),
		    query, UINT64_C(3), t2, 1, table);
	trace_event(t, QUERY_EXIT, origin_ns + 50000, no_worker, UINT64_C(3), query, UINT64_C(3),
		    t2, 1, table);
	close_span(t, 50, 3, 41, 42, 8, true);
	trace_event(t, STEP_EXIT, origin_ns + 55000, no_worker, UINT64_C(2), step, UINT64_C(2), t2,
		    1, UINT64_C(7), 0);
	trace_event(t, SPAN_EXIT, origin_ns + 60000, no_worker, UINT64_C(1), request, UINT64_C(1),
		    t2, 1, path, 0);
	close_span(t, 70, 1, 5, 10, 30, false);
	trace_event(t, SPAN_ENTER, origin_ns + 80000, no_worker, UINT64_C(5), 0, request,
		    UINT64_C(5), t1, 0, 0);
	trace_event(t, SPAN_MISUSE, origin_ns + 81000, no_worker, UINT64_C(1), request,
		    (uint64_t)trace_string(t, "exit after close"));
}

/* |n| events of a busy worker, in batches of 4000. */
/* Texts that are no UTF-8, no XML, or orders to a terminal. */
static void make_wild(struct trace *t)
{
	uint32_t place;

	put_schemas(t);
	place = trace_string(t, "we\033[31mb\xff \xef\xbf\xbe+0x10 @ app+0x20");
	trace_builtin_fields(t, SPAWN, "TaskSpawnEvent", "task_id spawn_loc instrumented kind");
	trace_event(t, SPAWN, origin_ns, UINT64_C(3), (uint64_t)place, UINT64_C(1),
		    (uint64_t)trace_string(t, "io\033]0;x\a"));
	trace_event(t, POLL_START, origin_ns + 1000, UINT64_C(0), UINT64_C(1), UINT64_C(3),
		    (uint64_t)place);
	trace_event(t, POLL_END, origin_ns + 2000, UINT64_C(0));
}

/* A field that is called like a key of the line, and a health event longer than a line may be. */
static void make_odd(struct trace *t)
{
	char text[100001];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	trace_batch(t);
	trace_schema(t, SPAN_ENTER, "SpanEnter:odd",
		     "worker_id:9 span_id:9 parent_span_id:9 span_name:4 inherited:4");
	trace_event(t, SPAN_ENTER, origin_ns, UINT64_C(0), UINT64_C(1), UINT64_C(0), "outer", "own");
	trace_schema(t, STEP_ENTER, "SpanEnter:inner", "worker_id:9 span_id:9 parent_span_id:9 span_name:4");
	trace_event(t, STEP_ENTER, origin_ns + 1, UINT64_C(0), UINT64_C(2), UINT64_C(1), "inner");
	trace_schema(t, HEALTH, "RecorderHealthEvent", "text:4");
	trace_event(t, HEALTH, origin_ns + 2, text);
}

/* A call that begins at no time, and its end; then one that has both. */
static void make_timeless(struct trace *t)
{
	uint32_t place;

	trace_batch(t);
	place = trace_string(t, "app+0x10 @ app+0x20");
	trace_schema(t, TIMELESS, "!PollStartEvent", "worker_id:9 local_queue:11 task_id:9 spawn_loc:7");
	trace_builtin(t, POLL_START, "PollStartEvent");
	trace_builtin(t, POLL_END, "PollEndEvent");
	trace_event(t, TIMELESS, 0, UINT64_C(0), UINT64_C(1), UINT64_C(3), (uint64_t)place);
	trace_event(t, POLL_END, origin_ns, UINT64_C(0));
	trace_event(t, POLL_START, origin_ns + 1000, UINT64_C(0), UINT64_C(1), UINT64_C(3),
		    (uint64_t)place);
	trace_event(t, POLL_END, origin_ns + 2000, UINT64_C(0));
}

static void make_many(struct trace *t, uint64_t n)
{
	uint64_t loc = 0, ns = origin_ns;

	for (uint64_t i = 0; i < n; i += 2, ns += 1000) {
		if (i % 4000 == 0) {
			put_schemas(t);
			loc = trace_string(t, "demo+0x1a2b0 @ demo+0x9f04");
		}
		trace_event(t, POLL_START, ns, UINT64_C(0), UINT64_C(2), 5 + i % 97, loc);
		trace_event(t, POLL_END, ns + 600, UINT64_C(0));
	}
}

/* |n| callbacks, called ten times each; every tenth of them takes 2 ms once.  Some names are wide. */
static void make_callbacks(struct trace *t, uint64_t n)
{
	uint64_t ns = origin_ns, loc = 0;
	char text[96];

	for (uint64_t i = 0; i < 10 * n; i++, ns += 10000) {
		uint64_t callback = i % n, took_ns = i < n && callback % 10 == 3 ? 2000000 : 5000;

		if (i % 1000 == 0)
			put_schemas(t);
		snprintf(text, sizeof(text), "%s_%05u @ set_up_%05u",
			 callback % 7 == 3 ? "\xe5\x87\xa6\xe7\x90\x86" : "handle", (unsigned)callback,
			 (unsigned)callback / 10);
		loc = trace_string(t, text);
		trace_event(t, POLL_START, ns, UINT64_C(0), UINT64_C(2), 5 + callback, loc);
		trace_event(t, POLL_END, ns + took_ns, UINT64_C(0));
		ns += took_ns;
	}
}

/* Cut or spoil: "small" and what is wrong with it. */
static void spoil(struct trace *t, const char *kind)
{
	if (!strcmp(kind, "cut")) {
		t->len -= 4;
	} else if (!strcmp(kind, "unknown-tag")) {
		trace_uint(t, 0x77, 1);
		trace_uint(t, 0, 8);
	} else if (!strcmp(kind, "newer")) {
		trace_bytes(t, "TRC\0\2", 5);
	} else {
		fprintf(stderr, "make_trace: no kind '%s'\n", kind);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	struct trace t = { 0 };
	const char *kind = argc > 3 ? argv[1] : NULL;

	if (!kind) {
		fputs("usage: make_trace KIND CONTAINER FILE [ARGUMENTS]\n", stderr);
		return 2;
	}
	if (!strcmp(kind, "types")) {
		make_types(&t);
	} else if (!strcmp(kind, "spans")) {
		make_spans(&t);
	} else if (!strcmp(kind, "life")) {
		origin_ns += argc > 4 ? strtoull(argv[4], NULL, 10) : 0;
		make_life(&t);
	} else if (!strcmp(kind, "late")) {
		make_late(&t);
	} else if (!strcmp(kind, "crossing")) {
		make_crossing(&t, argc > 4);
	} else if (!strcmp(kind, "endless")) {
		make_endless(&t);
	} else if (!strcmp(kind, "wild")) {
		make_wild(&t);
	} else if (!strcmp(kind, "odd")) {
		make_odd(&t);
	} else if (!strcmp(kind, "timeless")) {
		make_timeless(&t);
	} else if (!strcmp(kind, "repeats")) {
		make_repeats(&t);
	} else if (!strcmp(kind, "newest")) {
		make_newest(&t);
	} else if (!strcmp(kind, "rows")) {
		make_rows(&t);
	} else if (!strcmp(kind, "module") && argc > 7) {
		make_module(&t, argv + 4);
	} else if (!strcmp(kind, "process") && argc > 5 && strchr(argv[4], '-')) {
		make_process(&t, argv[4], strtoull(argv[5], NULL, 10));
	} else if (!strcmp(kind, "hour") && argc > 7 && strchr(argv[4], '-')) {
		make_hour(&t, argv[4], strtoull(argv[5], NULL, 10), strtoull(argv[6], NULL, 10), argv[7]);
	} else if (!strcmp(kind, "loops") && argc > 6 && strchr(argv[4], '-')) {
		make_loops(&t, argv[4], strtoull(argv[5], NULL, 10), argv[6],
			   argc > 7 ? strtoull(argv[7], NULL, 10) : 0);
	} else if (!strcmp(kind, "limit") && argc > 4) {
		make_limit(&t, strtoull(argv[4], NULL, 10));
	} else if (!strcmp(kind, "held") && argc > 4) {
		make_held(&t, strtoull(argv[4], NULL, 10));
	} else if (!strcmp(kind, "outside") && argc > 4) {
		make_outside(&t, argv[4]);
	} else if (!strcmp(kind, "callbacks") && argc > 4) {
		make_callbacks(&t, strtoull(argv[4], NULL, 10));
	} else if (!strcmp(kind, "many") && argc > 4) {
		make_many(&t, strtoull(argv[4], NULL, 10));
	} else {
		make_small(&t);
		if (!strcmp(kind, "two"))
			add_second_batch(&t);
		else if (strcmp(kind, "small") != 0)
			spoil(&t, kind);
	}
	trace_save(&t, argv[3], argv[2]);
	trace_free(&t);
	return 0;
}
