// SPDX-License-Identifier: Apache-2.0
// The events that readers know, with the types of their fields; core/read/catalogue.c says the same in C.
//
// A field of another type counts as absent, and so does a negative integer.  An event that lacks a mandatory field is
// kept as it is, and nothing is made of it.

import { TYPE } from './frames.js';

const INTEGER = [TYPE.I64, TYPE.VARINT, TYPE.U8, TYPE.U16, TYPE.U32];
const CLASSES = { t: [TYPE.STRING, TYPE.POOLED_STRING], b: [TYPE.BOOL], s: [TYPE.STACK, TYPE.POOLED_STACK], m: [TYPE.STRING_MAP] };

const SPAN_STAY = 'worker_id span_id parent_span_id span_name:t';
const SPAN_CLOSE = 'span_id start_timestamp_ns span_name:t first_enter_timestamp_ns active_ns target:t file:t line level:t parent_span_instance_id unbalanced_enters attributes:m';

/** Fields by event: integers, or with :t a text, :b a truth value, :s a stack, :m a map; "!" is mandatory. */
export const KNOWN_EVENTS = {
	ClockSyncEvent: 'realtime_ns!',
	SegmentMetadataEvent: 'entries:m',
	PollStartEvent: 'worker_id! local_queue! task_id! spawn_loc:t wake',
	PollEndEvent: 'worker_id!',
	WorkerParkEvent: 'worker_id! local_queue! cpu_time_ns! tid',
	WorkerUnparkEvent: 'worker_id! local_queue! cpu_time_ns! sched_wait_ns tid',
	QueueSampleEvent: 'global_queue!',
	TaskSpawnEvent: 'task_id! spawn_loc:t instrumented:b callback spawn_addr kind:t fd name:t',
	TaskTerminateEvent: 'task_id!',
	WakeEventEvent: 'waker_task_id! woken_task_id! target_worker! reason',
	CpuSampleEvent: 'worker_id! tid! source! thread_name:t callchain:s cpu truncated:b',
	TaskDumpEvent: 'task_id! callchain:s truncated:b kept:b',
	AllocEvent: 'tid! size! addr callchain:s sample_rate_bytes',
	FreeEvent: 'tid! addr size! alloc_timestamp_ns!',
	MemoryProfileOverflowEvent: 'dropped_allocs! dropped_frees! evicted',
	ProcessResourceUsageEvent: 'user_cpu_ns system_cpu_ns max_rss_bytes minor_faults major_faults block_input_ops block_output_ops voluntary_context_switches involuntary_context_switches recorder_cpu_ns',
	TcpAcceptQueueEvent: 'socket_cookie socket_inode ip_version local_addr:t local_port pending_connections backlog_limit worker_id',
	SymbolTableEntry: 'addr! size symbol_name:t inline_depth source_file:t source_line',
	'SpanEnter:': SPAN_STAY, SpanEnter__: SPAN_STAY, SpanEnterEvent: SPAN_STAY,
	'SpanExit:': SPAN_STAY, SpanExit__: SPAN_STAY, SpanExitEvent: SPAN_STAY,
	'SpanCall:': 'worker_id! span_name:t duration_ns! span_instance_id',
	SpanClose__: SPAN_CLOSE, SpanCloseEvent: SPAN_CLOSE,
	SpanOpenEvent: 'span_id parent_span_id span_name:t start_timestamp_ns origin:t',
	SpanMisuseEvent: 'worker_id span_id span_name:t mistake:t',
	RuntimeMetricsEvent: 'runtime_name:t global_queue_depth alive_tasks',
	RecorderLossEvent: 'tid worker_id cause:t events! from_ns to_ns',
	RecorderHealthEvent: 'refused_sources:t',
	RecorderLogEvent: 'level:t text:t times',
	DumpTriggerEvent: 'trigger:t value threshold dump_id:t task_id callback',
	ModuleEvent: 'base! start size path:t build_id:t unloaded:b file_size file_mtime_ns file_inode',
	OffCpuEvent: 'worker_id task_id blocked_ns run_queue_ns voluntary_switches involuntary_switches minor_faults major_faults user_cpu_ns system_cpu_ns',
	BlockingCallEvent: 'worker_id task_id function:t fd duration_ns holder_tid holder_task holder_stack:s holder_name:t held_ns held_cpu_ns held_ready_ns',
	StuckPollEvent: 'worker_id task_id syscall:t running:b for_ns wchan:t kind:t cpu_ns wall_ns',
	LoopTasksEvent: 'loop:t tasks',
	HelperRunEvent: 'function:t item task_id wait_ns run_ns',
	StaleTimerEvent: 'worker_id task_id timeout_ns due_ns',
	LastSignEvent: 'worker_id task_id since_ns span:t',
	ProcessStateEvent: 'resident_bytes descriptors threads cgroup_throttled_ns cgroup_throttled steal_ns runqueue_ns',
	ProcessStoppedEvent: 'from_ns to_ns least_ns suspended_ns',
	SourceTimeEvent: 'worker_id task_id phase:t calls total_ns max_ns function:t address',
	LoopOutsideEvent: 'worker_id from_ns to_ns',
	RunQueueEvent: 'worker_id from_ns wait_ns',
	BoundThreadEvent: 'tid thread_name:t cpus:t cpu_ns wait_ns',
	TaskIoEvent: 'worker_id task_id reads read_bytes writes write_bytes accepts again eof errors last_errno fd shared:b',
};

const FIELDS = new Map(Object.entries(KNOWN_EVENTS).map(([event, row]) => [event, new Map(row.split(' ').map((text) => {
	const [, name, kind, mandatory] = /^(\w+)(?::(\w))?(!?)$/.exec(text);
	return [name, { types: CLASSES[kind] ?? INTEGER, mandatory: mandatory === '!' }];
}))]));
const NO_FIELDS = new Map();

function fieldsOf(event) {
	return FIELDS.get(event) ?? FIELDS.get(/^Span(?:(?:Enter|Exit)(?::|__)|Call:|Close__)/.exec(event)?.[0]) ?? NO_FIELDS;
}

/** Where the field |name| of |event| stands in |fields|, those of its schema; -1: as absent, also where it has a type that is not taken. */
export function placeOfField(event, fields, name) {
	const at = fields.findIndex((field) => field.name === name);
	return at >= 0 && (fieldsOf(event).get(name)?.types ?? INTEGER).includes(fields[at].type) ? at : -1;
}

/** Where the mandatory fields of |event| stand in |fields|; null: one is missing. */
export function mandatoryPlaces(event, fields) {
	const places = [...fieldsOf(event)].filter(([, { mandatory }]) => mandatory).map(([name]) => placeOfField(event, fields, name));
	return places.includes(-1) ? null : places;
}
