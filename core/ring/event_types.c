/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "format/encoder.h"
#include "ring/event_types.h"

#define OPTIONAL(type) ((type) | D9__WIRE_OPTIONAL)
#define F(...)         (const struct d9__field[]){ __VA_ARGS__ }
#define FIELDS(...)                                                                               \
	F(__VA_ARGS__), (uint16_t)(sizeof(F(__VA_ARGS__)) / sizeof(struct d9__field)), NULL, 0
#define V(n)           { (n), D9__FIELD_VARINT, NULL, NULL }
#define NS(n)          { (n), D9__FIELD_VARINT, "ns", NULL }
#define OPTIONAL_V(n)  { (n), OPTIONAL(D9__FIELD_VARINT), NULL, NULL }
#define OPTIONAL_NS(n) { (n), OPTIONAL(D9__FIELD_VARINT), "ns", NULL }
#define BYTES(n)       { (n), D9__FIELD_VARINT, "bytes", NULL }
#define T(n, type)     { (n), (type), NULL, NULL }
#define GAUGE(n)       { (n), D9__FIELD_VARINT, NULL, "gauge" }
#define COUNTER(n)     { (n), D9__FIELD_VARINT, NULL, "counter" }

#define FRAMES_MAX 8192u

/* Fields in the order of the original's; what we add stands behind them. */
static const struct d9__schema builtins[D9__EVENT_BUILTIN_END] = {
	[D9__EVENT_POLL_START] = { "PollStartEvent",
		FIELDS(V("worker_id"), T("local_queue", D9__FIELD_U8), V("task_id"),
		       T("spawn_loc", D9__FIELD_POOLED_STRING), V("wake")) },
	[D9__EVENT_POLL_END] = { "PollEndEvent", FIELDS(V("worker_id")) },
	[D9__EVENT_PARK] = { "WorkerParkEvent",
		FIELDS(V("worker_id"), T("local_queue", D9__FIELD_U8), V("cpu_time_ns"),
		       T("tid", D9__FIELD_U32)) },
	[D9__EVENT_UNPARK] = { "WorkerUnparkEvent",
		FIELDS(V("worker_id"), T("local_queue", D9__FIELD_U8), V("cpu_time_ns"),
		       V("sched_wait_ns"), T("tid", D9__FIELD_U32)) },
	[D9__EVENT_WAKE] = { "WakeEventEvent",
		FIELDS(V("waker_task_id"), V("woken_task_id"), T("target_worker", D9__FIELD_U8),
		       T("reason", D9__FIELD_U8)) },
	[D9__EVENT_TASK_SPAWN] = { "TaskSpawnEvent",
		FIELDS(V("task_id"), T("spawn_loc", D9__FIELD_POOLED_STRING),
		       T("instrumented", D9__FIELD_BOOL), V("callback"), V("spawn_addr"),
		       T("kind", D9__FIELD_POOLED_STRING), T("fd", OPTIONAL(D9__FIELD_VARINT)),
		       T("name", OPTIONAL(D9__FIELD_POOLED_STRING))) },
	[D9__EVENT_TASK_TERMINATE] = { "TaskTerminateEvent", FIELDS(V("task_id")) },
	[D9__EVENT_CLOCK_SYNC] = { "ClockSyncEvent", FIELDS(V("realtime_ns")) },
	[D9__EVENT_SEGMENT_METADATA] = { "SegmentMetadataEvent",
		FIELDS(T("entries", D9__FIELD_STRING_MAP)) },
	[D9__EVENT_QUEUE_SAMPLE] = { "QueueSampleEvent",
		FIELDS(T("global_queue", D9__FIELD_U8)) },
	[D9__EVENT_RESOURCE_USAGE] = { "ProcessResourceUsageEvent",
		FIELDS(NS("user_cpu_ns"), NS("system_cpu_ns"), BYTES("max_rss_bytes"),
		       V("minor_faults"), V("major_faults"), V("block_input_ops"),
		       V("block_output_ops"), V("voluntary_context_switches"),
		       V("involuntary_context_switches"), NS("recorder_cpu_ns")) },
	[D9__EVENT_TCP_ACCEPT_QUEUE] = { "TcpAcceptQueueEvent",
		FIELDS(V("socket_cookie"), V("socket_inode"), T("ip_version", D9__FIELD_U8),
		       T("local_addr", D9__FIELD_STRING), T("local_port", D9__FIELD_U16),
		       T("pending_connections", D9__FIELD_U32),
		       T("backlog_limit", D9__FIELD_U32), V("worker_id")) },
	[D9__EVENT_LOOP_TASKS] = { "LoopTasksEvent",
		FIELDS(T("loop", D9__FIELD_POOLED_STRING), GAUGE("tasks")) },
	[D9__EVENT_MODULE] = { "ModuleEvent",
		FIELDS(V("base"), V("start"), BYTES("size"), T("path", D9__FIELD_STRING),
		       T("build_id", D9__FIELD_STRING), T("unloaded", D9__FIELD_BOOL),
		       OPTIONAL_V("file_size"), OPTIONAL_V("file_mtime_ns"),
		       OPTIONAL_V("file_inode")) },
	[D9__EVENT_LOSS] = { "RecorderLossEvent",
		FIELDS(T("tid", D9__FIELD_U32), V("worker_id"),
		       T("cause", D9__FIELD_POOLED_STRING), V("events"), V("from_ns"),
		       V("to_ns")) },
	[D9__EVENT_HEALTH] = { "RecorderHealthEvent",
		FIELDS(T("state", D9__FIELD_POOLED_STRING), COUNTER("events"), COUNTER("lost"),
		       BYTES("bytes_recorded"), BYTES("bytes_written"), GAUGE("chunks_full"),
		       COUNTER("segments"), V("error"), COUNTER("clock_steps")) },
	[D9__EVENT_SPAN_CLOSE] = { "SpanCloseEvent",
		FIELDS(V("span_id"), V("span_instance_id"), V("start_timestamp_ns"),
		       T("span_name", D9__FIELD_POOLED_STRING),
		       T("first_enter_timestamp_ns", OPTIONAL(D9__FIELD_VARINT)), NS("active_ns"),
		       T("target", OPTIONAL(D9__FIELD_POOLED_STRING)),
		       T("file", OPTIONAL(D9__FIELD_POOLED_STRING)),
		       T("line", OPTIONAL(D9__FIELD_VARINT)),
		       T("level", OPTIONAL(D9__FIELD_POOLED_STRING)),
		       T("parent_span_instance_id", OPTIONAL(D9__FIELD_VARINT)),
		       T("attributes", D9__FIELD_STRING_MAP),
		       T("unbalanced_enters", OPTIONAL(D9__FIELD_VARINT))) },
	[D9__EVENT_SPAN_OPEN] = { "SpanOpenEvent",
		FIELDS(V("span_id"), OPTIONAL_V("parent_span_id"), T("span_name", D9__FIELD_POOLED_STRING),
		       V("start_timestamp_ns"), T("origin", D9__FIELD_POOLED_STRING)) },
	[D9__EVENT_SPAN_MISUSE] = { "SpanMisuseEvent",
		FIELDS(V("worker_id"), V("span_id"), T("span_name", D9__FIELD_POOLED_STRING),
		       T("mistake", D9__FIELD_POOLED_STRING)) },
	[D9__EVENT_STUCK_POLL] = { "StuckPollEvent",
		FIELDS(V("worker_id"), V("task_id"), T("syscall", D9__FIELD_POOLED_STRING),
		       T("running", D9__FIELD_BOOL), NS("for_ns"), T("wchan", D9__FIELD_POOLED_STRING),
		       T("kind", D9__FIELD_POOLED_STRING), OPTIONAL_NS("cpu_ns"),
		       OPTIONAL_NS("wall_ns")) },
	[D9__EVENT_LAST_SIGN] = { "LastSignEvent",
		FIELDS(V("worker_id"), V("task_id"), NS("since_ns"), T("span", D9__FIELD_POOLED_STRING)) },
	[D9__EVENT_PROCESS_STATE] = { "ProcessStateEvent",
		FIELDS(BYTES("resident_bytes"), V("descriptors"), V("threads"),
		       OPTIONAL_NS("cgroup_throttled_ns"), OPTIONAL_V("cgroup_throttled"),
		       OPTIONAL_NS("steal_ns"), OPTIONAL_NS("runqueue_ns")) },
	[D9__EVENT_OFF_CPU] = { "OffCpuEvent",
		FIELDS(V("worker_id"), V("task_id"), NS("blocked_ns"), NS("run_queue_ns"),
		       OPTIONAL_V("voluntary_switches"), OPTIONAL_V("involuntary_switches"),
		       OPTIONAL_V("minor_faults"), OPTIONAL_V("major_faults"), OPTIONAL_NS("user_cpu_ns"),
		       OPTIONAL_NS("system_cpu_ns")) },
	[D9__EVENT_CPU_SAMPLE] = { "CpuSampleEvent",
		FIELDS(V("worker_id"), T("tid", D9__FIELD_U32), T("source", D9__FIELD_U8),
		       T("thread_name", OPTIONAL(D9__FIELD_POOLED_STRING)),
		       T("callchain", D9__FIELD_POOLED_STACK), OPTIONAL_V("cpu"), T("truncated", D9__FIELD_BOOL)) },
	[D9__EVENT_BLOCKING_CALL] = { "BlockingCallEvent",
		FIELDS(V("worker_id"), V("task_id"), T("function", D9__FIELD_POOLED_STRING), OPTIONAL_V("fd"),
		       NS("duration_ns"), T("holder_tid", D9__FIELD_U32), V("holder_task"),
		       T("holder_stack", OPTIONAL(D9__FIELD_POOLED_STACK)),
		       T("holder_name", OPTIONAL(D9__FIELD_POOLED_STRING)), OPTIONAL_NS("held_ns"),
		       OPTIONAL_NS("held_cpu_ns"), OPTIONAL_NS("held_ready_ns")) },
	[D9__EVENT_TASK_IO] = { "TaskIoEvent",
		FIELDS(V("worker_id"), V("task_id"), V("reads"), BYTES("read_bytes"), V("writes"),
		       BYTES("write_bytes"), V("accepts"), V("again"), V("eof"), V("errors"),
		       V("last_errno"), OPTIONAL_V("fd"),
		       T("shared", D9__FIELD_BOOL)) },
	[D9__EVENT_TASK_DUMP] = { "TaskDumpEvent",
		FIELDS(V("task_id"), T("callchain", D9__FIELD_POOLED_STACK), T("truncated", D9__FIELD_BOOL),
		       T("kept", D9__FIELD_BOOL)) },
	[D9__EVENT_SYMBOL] = { "SymbolTableEntry",
		FIELDS(V("addr"), V("size"), T("symbol_name", D9__FIELD_POOLED_STRING), V("inline_depth"),
		       T("source_file", D9__FIELD_POOLED_STRING), V("source_line")) },
	[D9__EVENT_ALLOC] = { "AllocEvent",
		FIELDS(T("tid", D9__FIELD_U32), BYTES("size"), V("addr"), T("callchain", D9__FIELD_POOLED_STACK),
		       BYTES("sample_rate_bytes")) },
	[D9__EVENT_FREE] = { "FreeEvent",
		FIELDS(T("tid", D9__FIELD_U32), V("addr"), BYTES("size"), V("alloc_timestamp_ns")) },
	[D9__EVENT_MEMORY_OVERFLOW] = { "MemoryProfileOverflowEvent",
		FIELDS(V("dropped_allocs"), V("dropped_frees"), V("evicted")) },
	[D9__EVENT_LOG] = { "RecorderLogEvent",
		FIELDS(T("level", D9__FIELD_POOLED_STRING), T("text", D9__FIELD_STRING), V("times")) },
	[D9__EVENT_DUMP_TRIGGER] = { "DumpTriggerEvent",
		FIELDS(T("trigger", D9__FIELD_POOLED_STRING), V("value"), V("threshold"),
		       T("dump_id", D9__FIELD_POOLED_STRING), V("task_id"), V("callback")) },
	[D9__EVENT_LOOP_OUTSIDE] = { "LoopOutsideEvent",
		FIELDS(V("worker_id"), V("from_ns"), V("to_ns")) },
	[D9__EVENT_PROCESS_STOPPED] = { "ProcessStoppedEvent",
		FIELDS(V("from_ns"), V("to_ns"), NS("least_ns"), NS("suspended_ns")) },
	[D9__EVENT_RUN_QUEUE] = { "RunQueueEvent",
		FIELDS(V("worker_id"), V("from_ns"), NS("wait_ns")) },
	[D9__EVENT_BOUND_THREAD] = { "BoundThreadEvent",
		FIELDS(T("tid", D9__FIELD_U32), T("thread_name", D9__FIELD_POOLED_STRING),
		       T("cpus", D9__FIELD_POOLED_STRING), NS("cpu_ns"), NS("wait_ns")) },
};

/* Both ids, because viewers pair by the one and the aggregation of later ones by the other. */
const struct d9__field d9__span_enter_fields[D9__SPAN_ENTER_FIELDS] = {
	V("worker_id"), V("span_id"), OPTIONAL_V("parent_span_id"),
	T("span_name", D9__FIELD_POOLED_STRING), V("span_instance_id"), T("tid", D9__FIELD_U32),
};

_Atomic(uint32_t) d9__event_types_old;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects registration */
static _Atomic(uint32_t) next_id = D9__EVENT_PROGRAM; /* written under |lock| */
static uint8_t preamble[1024];
static _Atomic(size_t) preamble_len; /* stored last (release) */

/* Stored under |lock| (release); read without (acquire).  Never freed. */
static _Atomic(const struct d9__type_frames *) types[D9__TYPES_MAX];

static struct d9__type_frames *frames_new(const struct d9__schema *schema, uint32_t id)
{
	size_t len = d9__schema_encoded_len(schema, (uint16_t)id);
	struct d9__type_frames *frames = d9__malloc(sizeof(*frames) + len);

	if (!frames)
		return NULL;
	frames->len = (uint32_t)len;
	d9__schema_encode(frames->bytes, schema, (uint16_t)id);
	return frames;
}

static int builtins_init_locked(void)
{
	uint8_t *p = d9__wire_put_header(preamble);

	for (uint32_t id = 1; id < D9__EVENT_BUILTIN_END; id++) {
		const struct d9__type_frames *frames =
			atomic_load_explicit(&types[id], memory_order_relaxed);

		if (!frames)
			frames = frames_new(&builtins[id], id);
		if (!frames)
			return -ENOMEM;
		atomic_store_explicit(&types[id], frames, memory_order_release);
		if (id <= D9__EVENT_HOT_LAST)
			p = d9__wire_put_bytes(p, frames->bytes, frames->len);
	}
	atomic_store_explicit(&preamble_len, (size_t)(p - preamble), memory_order_release);
	return 0;
}

int d9__event_types_init(void)
{
	int err = 0;

	pthread_mutex_lock(&lock);
	if (!atomic_load_explicit(&preamble_len, memory_order_relaxed))
		err = builtins_init_locked();
	pthread_mutex_unlock(&lock);
	return err;
}

/* Equal but for the type id?  Program ids take two bytes in the annotations frame as well. */
static bool frames_equal(const struct d9__type_frames *a, struct d9__type_frames *b,
			 const struct d9__schema *schema, uint32_t id_of_a)
{
	if (a->len != b->len)
		return false;
	d9__schema_encode(b->bytes, schema, (uint16_t)id_of_a);
	return memcmp(a->bytes, b->bytes, a->len) == 0;
}

static int register_locked(const struct d9__schema *schema)
{
	uint32_t id = D9__EVENT_PROGRAM;
	struct d9__type_frames *frames = frames_new(schema, id);

	if (!frames)
		return -ENOMEM;
	for (; id < d9__event_types_end(); id++)
		if (frames_equal(atomic_load_explicit(&types[id], memory_order_relaxed), frames,
				 schema, id)) {
			d9__free(frames);
			return (int)id;
		}
	if (id >= D9__TYPES_MAX) {
		d9__free(frames);
		return -ENOSPC;
	}
	d9__schema_encode(frames->bytes, schema, (uint16_t)id);
	atomic_store_explicit(&types[id], frames, memory_order_release);
	atomic_store_explicit(&next_id, id + 1, memory_order_release);
	return (int)id;
}

int d9__schema_register(const struct d9__schema *schema)
{
	int saved = errno, id;

	if (!d9__schema_valid(schema))
		return -EINVAL;
	if (d9__schema_encoded_len(schema, UINT16_MAX) > FRAMES_MAX)
		return -E2BIG;
	pthread_mutex_lock(&lock);
	id = register_locked(schema);
	pthread_mutex_unlock(&lock);
	errno = saved;
	return id;
}

int d9__span_enter_of(const char *library)
{
	char name[64];

	snprintf(name, sizeof(name), "SpanEnter:%s", library);
	return d9__schema_register(&(struct d9__schema){
		name, d9__span_enter_fields, D9__SPAN_ENTER_FIELDS, NULL, 0 });
}

const struct d9__type_frames *d9__event_type_frames(uint32_t type_id)
{
	if (type_id >= D9__TYPES_MAX)
		return NULL;
	return atomic_load_explicit(&types[type_id], memory_order_acquire);
}

uint32_t d9__event_types_end(void)
{
	/* acquire: pairs with the release in register_locked() */
	return atomic_load_explicit(&next_id, memory_order_acquire);
}

const struct d9__schema *d9__builtin_schema(uint32_t type_id)
{
	if (type_id >= D9__EVENT_BUILTIN_END || !builtins[type_id].name)
		return NULL;
	return &builtins[type_id];
}

const uint8_t *d9__preamble(size_t *len)
{
	*len = atomic_load_explicit(&preamble_len, memory_order_acquire);
	return preamble;
}

void d9__event_types_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

void d9__event_types_fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

void d9__event_types_fork_child(void)
{
	pthread_mutex_unlock(&lock); /* the child's only thread is the one that locked it */
}
