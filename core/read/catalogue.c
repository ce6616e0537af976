/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One row per built-in event, its fields in the order of the enums in <dial9/reader.h>.  Fields
 * are found by name and by class of type, so that missing, extra, reordered and retyped fields
 * do no harm.
 */
#include "config.h"

#include "read/catalogue.h"

#include <string.h>

#include <dial9/reader.h>

#include "format/poll_wakes.h"

enum class { CLASS_INTEGER = 1, CLASS_TEXT, CLASS_BOOL, CLASS_STACK, CLASS_MAP };

#define MANDATORY 0x80

struct field {
	const char *name;
	uint8_t class; /* enum class, perhaps with MANDATORY */
};

/* M: mandatory integer.  I: integer.  T: text.  B: bool.  S: stack. */
#define M(name) { name, CLASS_INTEGER | MANDATORY }
#define I(name) { name, CLASS_INTEGER }
#define T(name) { name, CLASS_TEXT }
#define B(name) { name, CLASS_BOOL }
#define S(name) { name, CLASS_STACK }

#define SPAN_CLOSE                                                                                \
	I("span_id"), I("start_timestamp_ns"), T("span_name"), I("first_enter_timestamp_ns"),      \
		I("active_ns"), T("target"), T("file"), I("line"), T("level"),                     \
		I("parent_span_instance_id"), I("unbalanced_enters")

static const struct entry {
	const char *name;
	enum d9_event_kind kind;
	bool prefix; /* the event's name begins with |name| */
	struct field fields[D9__DEFINITION_KNOWN_MAX];
} entries[] = {
	{ "ClockSyncEvent", D9_EVENT_CLOCK_SYNC, false, { M("realtime_ns") } },
	{ "SegmentMetadataEvent", D9_EVENT_SEGMENT_METADATA, false, { { "entries", CLASS_MAP } } },
	{ "PollStartEvent", D9_EVENT_POLL_START, false,
	  { M("worker_id"), M("local_queue"), M("task_id"), T("spawn_loc"), I("wake") } },
	{ "PollEndEvent", D9_EVENT_POLL_END, false, { M("worker_id") } },
	{ "WorkerParkEvent", D9_EVENT_WORKER_PARK, false,
	  { M("worker_id"), M("local_queue"), M("cpu_time_ns"), I("tid") } },
	/* sched_wait_ns is mandatory for the oldest readers only: absent means "not measured". */
	{ "WorkerUnparkEvent", D9_EVENT_WORKER_UNPARK, false,
	  { M("worker_id"), M("local_queue"), M("cpu_time_ns"), I("sched_wait_ns"), I("tid") } },
	{ "QueueSampleEvent", D9_EVENT_QUEUE_SAMPLE, false, { M("global_queue") } },
	{ "TaskSpawnEvent", D9_EVENT_TASK_SPAWN, false,
	  { M("task_id"), T("spawn_loc"), B("instrumented"), I("callback"), I("spawn_addr"),
	    T("kind"), I("fd"), T("name") } },
	{ "TaskTerminateEvent", D9_EVENT_TASK_TERMINATE, false, { M("task_id") } },
	{ "WakeEventEvent", D9_EVENT_WAKE, false,
	  { M("waker_task_id"), M("woken_task_id"), M("target_worker"), I("reason") } },
	{ "CpuSampleEvent", D9_EVENT_CPU_SAMPLE, false,
	  { M("worker_id"), M("tid"), M("source"), T("thread_name"), S("callchain"), I("cpu"),
	    B("truncated") } },
	{ "TaskDumpEvent", D9_EVENT_TASK_DUMP, false, { M("task_id"), S("callchain"), B("truncated"), B("kept") } },
	{ "AllocEvent", D9_EVENT_ALLOC, false,
	  { M("tid"), M("size"), I("addr"), S("callchain"), I("sample_rate_bytes") } },
	{ "FreeEvent", D9_EVENT_FREE, false,
	  { M("tid"), I("addr"), M("size"), M("alloc_timestamp_ns") } },
	{ "MemoryProfileOverflowEvent", D9_EVENT_MEMORY_OVERFLOW, false,
	  { M("dropped_allocs"), M("dropped_frees"), I("evicted") } },
	{ "ProcessResourceUsageEvent", D9_EVENT_RESOURCE_USAGE, false,
	  { I("user_cpu_ns"), I("system_cpu_ns"), I("max_rss_bytes"), I("minor_faults"),
	    I("major_faults"), I("block_input_ops"), I("block_output_ops"),
	    I("voluntary_context_switches"), I("involuntary_context_switches"),
	    I("recorder_cpu_ns") } },
	{ "TcpAcceptQueueEvent", D9_EVENT_TCP_ACCEPT_QUEUE, false,
	  { I("socket_cookie"), I("socket_inode"), I("ip_version"), T("local_addr"),
	    I("local_port"), I("pending_connections"), I("backlog_limit"), I("worker_id") } },
	{ "SymbolTableEntry", D9_EVENT_SYMBOL, false,
	  { M("addr"), I("size"), T("symbol_name"), I("inline_depth"), T("source_file"),
	    I("source_line") } },
	{ "SpanEnter:", D9_EVENT_SPAN_ENTER, true,
	  { I("worker_id"), I("span_id"), I("parent_span_id"), T("span_name") } },
	{ "SpanEnter__", D9_EVENT_SPAN_ENTER, true,
	  { I("worker_id"), I("span_id"), I("parent_span_id"), T("span_name") } },
	{ "SpanEnterEvent", D9_EVENT_SPAN_ENTER, false,
	  { I("worker_id"), I("span_id"), I("parent_span_id"), T("span_name") } },
	{ "SpanExit:", D9_EVENT_SPAN_EXIT, true,
	  { I("worker_id"), I("span_id"), I("parent_span_id"), T("span_name") } },
	{ "SpanExit__", D9_EVENT_SPAN_EXIT, true,
	  { I("worker_id"), I("span_id"), I("parent_span_id"), T("span_name") } },
	{ "SpanExitEvent", D9_EVENT_SPAN_EXIT, false,
	  { I("worker_id"), I("span_id"), I("parent_span_id"), T("span_name") } },
	{ "SpanCall:", D9_EVENT_SPAN_CALL, true,
	  { M("worker_id"), T("span_name"), M("duration_ns"), I("span_instance_id") } },
	{ "SpanClose__", D9_EVENT_SPAN_CLOSE, true, { SPAN_CLOSE } },
	{ "SpanCloseEvent", D9_EVENT_SPAN_CLOSE, false, { SPAN_CLOSE } },
	{ "SpanOpenEvent", D9_EVENT_SPAN_OPEN, false,
	  { I("span_id"), I("parent_span_id"), T("span_name"), I("start_timestamp_ns"), T("origin") } },
	{ "SpanMisuseEvent", D9_EVENT_SPAN_MISUSE, false,
	  { I("worker_id"), I("span_id"), T("span_name"), T("mistake") } },
	{ "RuntimeMetricsEvent", D9_EVENT_RUNTIME_METRICS, false,
	  { T("runtime_name"), I("global_queue_depth"), I("alive_tasks") } },
	{ "RecorderLossEvent", D9_EVENT_RECORDER_LOSS, false,
	  { I("tid"), I("worker_id"), T("cause"), M("events"), I("from_ns"), I("to_ns") } },
	{ "RecorderHealthEvent", D9_EVENT_RECORDER_HEALTH, false, { { 0 } } },
	{ "RecorderLogEvent", D9_EVENT_RECORDER_LOG, false, { T("level"), T("text"), I("times") } },
	{ "DumpTriggerEvent", D9_EVENT_DUMP_TRIGGER, false,
	  { T("trigger"), I("value"), I("threshold"), T("dump_id"), I("task_id"), I("callback") } },
	{ "ModuleEvent", D9_EVENT_MODULE, false,
	  { M("base"), I("start"), I("size"), T("path"), T("build_id"), B("unloaded"),
	    I("file_size"), I("file_mtime_ns"), I("file_inode") } },
	{ "OffCpuEvent", D9_EVENT_OFF_CPU, false,
	  { I("worker_id"), I("task_id"), I("blocked_ns"), I("run_queue_ns"), I("voluntary_switches"),
	    I("involuntary_switches"), I("minor_faults"), I("major_faults"), I("user_cpu_ns"),
	    I("system_cpu_ns") } },
	{ "BlockingCallEvent", D9_EVENT_BLOCKING_CALL, false,
	  { I("worker_id"), I("task_id"), T("function"), I("fd"), I("duration_ns"), I("holder_tid"),
	    I("holder_task"), S("holder_stack"), T("holder_name"), I("held_ns"),
	    I("held_cpu_ns"), I("held_ready_ns") } },
	{ "StuckPollEvent", D9_EVENT_STUCK_POLL, false,
	  { I("worker_id"), I("task_id"), T("syscall"), B("running"), I("for_ns"), T("wchan"),
	    T("kind"), I("cpu_ns"), I("wall_ns") } },
	{ "LoopTasksEvent", D9_EVENT_LOOP_TASKS, false, { T("loop"), I("tasks") } },
	{ "HelperRunEvent", D9_EVENT_HELPER_RUN, false,
	  { T("function"), I("item"), I("task_id"), I("wait_ns"), I("run_ns") } },
	{ "StaleTimerEvent", D9_EVENT_STALE_TIMER, false,
	  { I("worker_id"), I("task_id"), I("timeout_ns"), I("due_ns") } },
	{ "LastSignEvent", D9_EVENT_LAST_SIGN, false,
	  { I("worker_id"), I("task_id"), I("since_ns"), T("span") } },
	{ "ProcessStateEvent", D9_EVENT_PROCESS_STATE, false,
	  { I("resident_bytes"), I("descriptors"), I("threads"), I("cgroup_throttled_ns"),
	    I("cgroup_throttled"), I("steal_ns"), I("runqueue_ns") } },
	{ "ProcessStoppedEvent", D9_EVENT_PROCESS_STOPPED, false,
	  { I("from_ns"), I("to_ns"), I("least_ns"), I("suspended_ns") } },
	{ "SourceTimeEvent", D9_EVENT_SOURCE_TIME, false,
	  { I("worker_id"), I("task_id"), T("phase"), I("calls"), I("total_ns"), I("max_ns"), T("function"),
	    I("address") } },
	{ "LoopOutsideEvent", D9_EVENT_LOOP_OUTSIDE, false,
	  { I("worker_id"), I("from_ns"), I("to_ns") } },
	{ "RunQueueEvent", D9_EVENT_RUN_QUEUE, false,
	  { I("worker_id"), I("from_ns"), I("wait_ns") } },
	{ "BoundThreadEvent", D9_EVENT_BOUND_THREAD, false,
	  { I("tid"), T("thread_name"), T("cpus"), I("cpu_ns"), I("wait_ns") } },
	{ "TaskIoEvent", D9_EVENT_TASK_IO, false,
	  { I("worker_id"), I("task_id"), I("reads"), I("read_bytes"), I("writes"),
	    I("write_bytes"), I("accepts"), I("again"), I("eof"), I("errors"), I("last_errno"),
	    I("fd"), B("shared") } },
};

static enum class class_of(uint8_t type)
{
	switch (type) {
	case D9_FIELD_I64:
	case D9_FIELD_VARINT:
	case D9_FIELD_U8:
	case D9_FIELD_U16:
	case D9_FIELD_U32:
		return CLASS_INTEGER;
	case D9_FIELD_STRING:
	case D9_FIELD_POOLED_STRING:
		return CLASS_TEXT;
	case D9_FIELD_BOOL:
		return CLASS_BOOL;
	case D9_FIELD_STACK:
	case D9_FIELD_POOLED_STACK:
		return CLASS_STACK;
	case D9_FIELD_STRING_MAP:
		return CLASS_MAP;
	default:
		return 0;
	}
}

static const struct entry *entry_of(const char *name)
{
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		const struct entry *entry = &entries[i];

		if (entry->prefix ? strncmp(name, entry->name, strlen(entry->name)) == 0 :
				    strcmp(name, entry->name) == 0)
			return entry;
	}
	return NULL;
}

/* Look up the fields; false if a mandatory one is missing. */
static bool bind(struct d9_schema *schema, const struct entry *entry)
{
	bool complete = true;

	for (uint32_t k = 0; k < D9__DEFINITION_KNOWN_MAX && entry->fields[k].name; k++) {
		const struct field *wanted = &entry->fields[k];
		bool mandatory = wanted->class & MANDATORY;
		int at = d9__definition_find(schema, wanted->name);

		if (at >= 0 && (int)class_of(schema->fields[at].type) != (wanted->class & ~MANDATORY))
			at = -1;
		schema->known[k] = at;
		complete = complete && (at >= 0 || !mandatory);
		if (at >= 0 && mandatory && schema->fields[at].optional)
			schema->must |= UINT32_C(1) << k;
	}
	return complete;
}

void d9__catalogue_classify(struct d9_schema *schema)
{
	const struct entry *entry = entry_of(schema->name);

	for (uint32_t k = 0; k < D9__DEFINITION_KNOWN_MAX; k++)
		schema->known[k] = -1;
	schema->kind = D9_EVENT_CUSTOM;
	if (!entry || schema->unusable)
		return;
	if (bind(schema, entry))
		schema->kind = (uint8_t)entry->kind;
	else
		schema->incomplete = true;
	schema->begins_earlier = schema->kind == D9_EVENT_SPAN_CALL && schema->has_timestamp;
	schema->tells_wakes = d9__poll_wakes_tell(schema);
}

const char *d9__catalogue_name(size_t i, bool *prefix)
{
	if (i >= sizeof(entries) / sizeof(entries[0]))
		return NULL;
	*prefix = entries[i].prefix;
	return entries[i].name;
}
