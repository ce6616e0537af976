/* SPDX-License-Identifier: Apache-2.0 */
/* Reader: the events of a trace, in the order in which they happened. */

#ifndef DIAL9_READER_H
#define DIAL9_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dial9/error.h>
#include <dial9/export.h>
#include <dial9/field_type.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A trace is any number of segments: files written by dial9 for C or by the original dial9,
 * plain (.bin), gzip (.bin.gz) or zstd (.bin.zst), recognised by their content.
 *
 *	struct d9_reader *reader = NULL;
 *	const struct d9_event *event;
 *	int err = d9_reader_new(&reader);
 *
 *	if (!err)
 *		err = d9_reader_add(reader, "dial9-traces");
 *	while (!err && (err = d9_reader_next(reader, &event)) == 1) {
 *		puts(d9_event_name(event));
 *		err = 0;
 *	}
 *	if (err < 0)
 *		fprintf(stderr, "%s\n", d9_reader_message(reader));
 *	d9_reader_free(reader);
 */

/*
 * Threads: a reader, all that is borrowed from it, and a struct d9_span_fields are for one thread at a
 * time.  Different readers do not know of each other.  Nothing here takes a lock or starts a thread.
 */

/** An open trace.  Opaque. */
struct d9_reader;

/** The type of an event: a name and typed fields.  Borrowed from the reader until it is freed. */
struct d9_schema;

/**
 * Built-in event types, by their wire name.  A schema of any other name, or one that lacks a
 * mandatory field of its name, is D9_EVENT_CUSTOM.
 */
enum d9_event_kind {
	D9_EVENT_CUSTOM = 0,
	D9_EVENT_CLOCK_SYNC,
	D9_EVENT_SEGMENT_METADATA,
	D9_EVENT_POLL_START,
	D9_EVENT_POLL_END,
	D9_EVENT_WORKER_PARK,
	D9_EVENT_WORKER_UNPARK,
	D9_EVENT_QUEUE_SAMPLE,
	D9_EVENT_TASK_SPAWN,
	D9_EVENT_TASK_TERMINATE,
	D9_EVENT_WAKE,
	D9_EVENT_CPU_SAMPLE,
	D9_EVENT_TASK_DUMP,
	D9_EVENT_ALLOC,
	D9_EVENT_FREE,
	D9_EVENT_MEMORY_OVERFLOW,
	D9_EVENT_RESOURCE_USAGE,
	D9_EVENT_TCP_ACCEPT_QUEUE,
	D9_EVENT_SYMBOL,
	D9_EVENT_SPAN_ENTER,
	D9_EVENT_SPAN_EXIT,
	D9_EVENT_SPAN_CLOSE,
	D9_EVENT_RUNTIME_METRICS,
	D9_EVENT_RECORDER_LOSS,
	D9_EVENT_RECORDER_HEALTH,
	D9_EVENT_MODULE,
	D9_EVENT_OFF_CPU,
	D9_EVENT_BLOCKING_CALL,
	D9_EVENT_STUCK_POLL,
	D9_EVENT_LOOP_TASKS,
	D9_EVENT_STALE_TIMER,
	D9_EVENT_HELPER_RUN,
	D9_EVENT_LAST_SIGN,
	D9_EVENT_PROCESS_STATE,
	D9_EVENT_SOURCE_TIME,
	D9_EVENT_SPAN_MISUSE,
	D9_EVENT_SPAN_OPEN,
	D9_EVENT_RECORDER_LOG,
	D9_EVENT_DUMP_TRIGGER,
	D9_EVENT_LOOP_OUTSIDE,
	D9_EVENT_TASK_IO,
	D9_EVENT_PROCESS_STOPPED,
	D9_EVENT_RUN_QUEUE,
	D9_EVENT_BOUND_THREAD,
	/* Of file order alone: in time order it is told by its beginning and its end, as
	   D9_EVENT_SPAN_ENTER, D9_EVENT_SPAN_EXIT and D9_EVENT_SPAN_CLOSE. */
	D9_EVENT_SPAN_CALL,
	D9_EVENT_KIND_COUNT
};

/*
 * Fields of the built-in events, for d9_event_known(): their places in the catalogue.  A name in
 * a trace that has another type than the catalogue's (text where a number belongs) counts as
 * absent; any integer type stands for any other, any text type too.
 */
enum { D9_CLOCK_SYNC_REALTIME_NS };
enum { D9_SEGMENT_METADATA_ENTRIES };
enum {
	D9_POLL_START_WORKER_ID,
	D9_POLL_START_LOCAL_QUEUE,
	D9_POLL_START_TASK_ID,
	D9_POLL_START_SPAWN_LOC,
	D9_POLL_START_WAKE
};
enum { D9_POLL_END_WORKER_ID };
enum {
	D9_WORKER_PARK_WORKER_ID,
	D9_WORKER_PARK_LOCAL_QUEUE,
	D9_WORKER_PARK_CPU_TIME_NS,
	D9_WORKER_PARK_TID
};
enum {
	D9_WORKER_UNPARK_WORKER_ID,
	D9_WORKER_UNPARK_LOCAL_QUEUE,
	D9_WORKER_UNPARK_CPU_TIME_NS,
	D9_WORKER_UNPARK_SCHED_WAIT_NS, /* absent: not measured */
	D9_WORKER_UNPARK_TID
};
enum { D9_QUEUE_SAMPLE_GLOBAL_QUEUE };
enum {
	D9_TASK_SPAWN_TASK_ID,
	D9_TASK_SPAWN_SPAWN_LOC,
	D9_TASK_SPAWN_INSTRUMENTED, /* absent: true */
	D9_TASK_SPAWN_CALLBACK,
	D9_TASK_SPAWN_SPAWN_ADDR,
	D9_TASK_SPAWN_KIND,
	D9_TASK_SPAWN_FD,
	D9_TASK_SPAWN_NAME
};
enum { D9_TASK_TERMINATE_TASK_ID };
enum {
	D9_WAKE_EVENT_WAKER_TASK_ID,
	D9_WAKE_EVENT_WOKEN_TASK_ID,
	D9_WAKE_EVENT_TARGET_WORKER,
	D9_WAKE_EVENT_REASON /* enum d9_wake_reason of <dial9/loop.h>; absent in foreign traces */
};
enum {
	D9_CPU_SAMPLE_WORKER_ID,
	D9_CPU_SAMPLE_TID,
	D9_CPU_SAMPLE_SOURCE,
	D9_CPU_SAMPLE_THREAD_NAME,
	D9_CPU_SAMPLE_CALLCHAIN,
	D9_CPU_SAMPLE_CPU,
	D9_CPU_SAMPLE_TRUNCATED
};
enum { D9_TASK_DUMP_TASK_ID, D9_TASK_DUMP_CALLCHAIN, D9_TASK_DUMP_TRUNCATED, D9_TASK_DUMP_KEPT };
enum { D9_ALLOC_TID, D9_ALLOC_SIZE, D9_ALLOC_ADDR, D9_ALLOC_CALLCHAIN, D9_ALLOC_SAMPLE_RATE_BYTES };
enum { D9_FREE_TID, D9_FREE_ADDR, D9_FREE_SIZE, D9_FREE_ALLOC_TIMESTAMP_NS };
enum {
	D9_MEMORY_OVERFLOW_DROPPED_ALLOCS,
	D9_MEMORY_OVERFLOW_DROPPED_FREES,
	D9_MEMORY_OVERFLOW_EVICTED /* live allocations that were followed no further */
};
enum {
	D9_RESOURCE_USAGE_USER_CPU_NS,
	D9_RESOURCE_USAGE_SYSTEM_CPU_NS,
	D9_RESOURCE_USAGE_MAX_RSS_BYTES,
	D9_RESOURCE_USAGE_MINOR_FAULTS,
	D9_RESOURCE_USAGE_MAJOR_FAULTS,
	D9_RESOURCE_USAGE_BLOCK_INPUT_OPS,
	D9_RESOURCE_USAGE_BLOCK_OUTPUT_OPS,
	D9_RESOURCE_USAGE_VOLUNTARY_SWITCHES,
	D9_RESOURCE_USAGE_INVOLUNTARY_SWITCHES,
	D9_RESOURCE_USAGE_RECORDER_CPU_NS
};
enum {
	D9_TCP_ACCEPT_QUEUE_SOCKET_COOKIE,
	D9_TCP_ACCEPT_QUEUE_SOCKET_INODE,
	D9_TCP_ACCEPT_QUEUE_IP_VERSION,
	D9_TCP_ACCEPT_QUEUE_LOCAL_ADDR,
	D9_TCP_ACCEPT_QUEUE_LOCAL_PORT,
	D9_TCP_ACCEPT_QUEUE_PENDING_CONNECTIONS,
	D9_TCP_ACCEPT_QUEUE_BACKLOG_LIMIT,
	D9_TCP_ACCEPT_QUEUE_WORKER_ID
};
enum {
	D9_SYMBOL_ADDR,
	D9_SYMBOL_SIZE,
	D9_SYMBOL_NAME,
	D9_SYMBOL_INLINE_DEPTH,
	D9_SYMBOL_SOURCE_FILE,
	D9_SYMBOL_SOURCE_LINE
};
enum {
	D9_SPAN_WORKER_ID, /* of D9_EVENT_SPAN_ENTER and D9_EVENT_SPAN_EXIT */
	D9_SPAN_SPAN_ID,
	D9_SPAN_PARENT_SPAN_ID, /* enter only */
	D9_SPAN_SPAN_NAME
};
enum {
	D9_SPAN_CALL_WORKER_ID,
	D9_SPAN_CALL_SPAN_NAME,
	D9_SPAN_CALL_DURATION_NS, /* up to the time of the event */
	D9_SPAN_CALL_SPAN_INSTANCE_ID
};
enum {
	D9_SPAN_CLOSE_SPAN_ID,
	D9_SPAN_CLOSE_START_NS, /* of its creation; this and what follows is absent in old traces */
	D9_SPAN_CLOSE_SPAN_NAME,
	D9_SPAN_CLOSE_FIRST_ENTER_NS, /* absent: never entered */
	D9_SPAN_CLOSE_ACTIVE_NS,
	D9_SPAN_CLOSE_TARGET,
	D9_SPAN_CLOSE_FILE,
	D9_SPAN_CLOSE_LINE,
	D9_SPAN_CLOSE_LEVEL,
	D9_SPAN_CLOSE_PARENT_ID,
	D9_SPAN_CLOSE_UNBALANCED_ENTERS
};
enum {
	D9_SPAN_OPEN_SPAN_ID,
	D9_SPAN_OPEN_PARENT_ID,
	D9_SPAN_OPEN_SPAN_NAME,
	D9_SPAN_OPEN_START_NS, /* of its creation */
	D9_SPAN_OPEN_ORIGIN    /* as in the names of its D9_EVENT_SPAN_ENTER */
};
enum { D9_RECORDER_LOG_LEVEL, D9_RECORDER_LOG_TEXT, D9_RECORDER_LOG_TIMES };
enum {
	D9_SPAN_MISUSE_WORKER_ID,
	D9_SPAN_MISUSE_SPAN_ID,
	D9_SPAN_MISUSE_SPAN_NAME,
	D9_SPAN_MISUSE_MISTAKE
};
enum {
	D9_RUNTIME_METRICS_RUNTIME_NAME,
	D9_RUNTIME_METRICS_GLOBAL_QUEUE_DEPTH,
	D9_RUNTIME_METRICS_ALIVE_TASKS
};
enum {
	D9_RECORDER_LOSS_TID,
	D9_RECORDER_LOSS_WORKER_ID,
	D9_RECORDER_LOSS_CAUSE,
	D9_RECORDER_LOSS_EVENTS,
	D9_RECORDER_LOSS_FROM_NS,
	D9_RECORDER_LOSS_TO_NS
};
enum {
	D9_MODULE_BASE, /* load bias */
	D9_MODULE_START,
	D9_MODULE_SIZE,
	D9_MODULE_PATH,
	D9_MODULE_BUILD_ID,
	D9_MODULE_UNLOADED,
	D9_MODULE_FILE_SIZE, /* this and what follows: of files without a build-id; absent in old
				traces */
	D9_MODULE_FILE_MTIME_NS,
	D9_MODULE_FILE_INODE
};
enum {
	D9_OFF_CPU_WORKER_ID,
	D9_OFF_CPU_TASK_ID,
	D9_OFF_CPU_BLOCKED_NS,
	D9_OFF_CPU_RUN_QUEUE_NS,
	D9_OFF_CPU_VOLUNTARY_SWITCHES, /* this and what follows: growth since the thread's reading before it; absent in old traces */
	D9_OFF_CPU_INVOLUNTARY_SWITCHES,
	D9_OFF_CPU_MINOR_FAULTS,
	D9_OFF_CPU_MAJOR_FAULTS,
	D9_OFF_CPU_USER_CPU_NS,
	D9_OFF_CPU_SYSTEM_CPU_NS
};
enum {
	D9_BLOCKING_CALL_WORKER_ID,
	D9_BLOCKING_CALL_TASK_ID,
	D9_BLOCKING_CALL_FUNCTION,
	D9_BLOCKING_CALL_FD,
	D9_BLOCKING_CALL_DURATION_NS,
	D9_BLOCKING_CALL_HOLDER_TID,  /* 0 or absent: not known, or no lock */
	D9_BLOCKING_CALL_HOLDER_TASK, /* 0: in no callback */
	D9_BLOCKING_CALL_HOLDER_STACK,
	D9_BLOCKING_CALL_HOLDER_NAME,
	D9_BLOCKING_CALL_HELD_NS,
	D9_BLOCKING_CALL_HELD_CPU_NS,
	D9_BLOCKING_CALL_HELD_READY_NS
};
enum {
	D9_STUCK_POLL_WORKER_ID,
	D9_STUCK_POLL_TASK_ID,
	D9_STUCK_POLL_SYSCALL,
	D9_STUCK_POLL_RUNNING,
	D9_STUCK_POLL_FOR_NS,
	D9_STUCK_POLL_WCHAN, /* absent or empty: not readable */
	D9_STUCK_POLL_KIND,  /* "library": CPU time outside callbacks; else an open call */
	D9_STUCK_POLL_CPU_NS, /* with that kind: so much of WALL_NS */
	D9_STUCK_POLL_WALL_NS
};
enum {
	D9_DUMP_TRIGGER_TRIGGER, /* its name; metadata has its text at trigger.NAME */
	D9_DUMP_TRIGGER_VALUE,
	D9_DUMP_TRIGGER_THRESHOLD,
	D9_DUMP_TRIGGER_DUMP_ID,
	D9_DUMP_TRIGGER_TASK_ID, /* 0: none */
	D9_DUMP_TRIGGER_CALLBACK
};
enum { D9_LOOP_TASKS_LOOP, D9_LOOP_TASKS_TASKS };
enum {
	D9_STALE_TIMER_WORKER_ID,
	D9_STALE_TIMER_TASK_ID, /* of the timer */
	D9_STALE_TIMER_TIMEOUT_NS,
	D9_STALE_TIMER_DUE_NS
};
enum {
	D9_HELPER_RUN_FUNCTION,
	D9_HELPER_RUN_ITEM,
	D9_HELPER_RUN_TASK_ID, /* whose callback handed it over */
	D9_HELPER_RUN_WAIT_NS,
	D9_HELPER_RUN_RUN_NS
};
enum {
	D9_LAST_SIGN_WORKER_ID,
	D9_LAST_SIGN_TASK_ID,
	D9_LAST_SIGN_SINCE_NS, /* when the call began */
	D9_LAST_SIGN_SPAN      /* innermost open callback of the program inside the poll; empty: the task's own */
};
enum {
	D9_PROCESS_STATE_RESIDENT_BYTES,
	D9_PROCESS_STATE_DESCRIPTORS,
	D9_PROCESS_STATE_THREADS,
	D9_PROCESS_STATE_CGROUP_THROTTLED_NS, /* this and what follows grow; absent: not known */
	D9_PROCESS_STATE_CGROUP_THROTTLED,
	D9_PROCESS_STATE_STEAL_NS,
	D9_PROCESS_STATE_RUNQUEUE_NS /* of all threads of the process */
};
enum {
	D9_PROCESS_STOPPED_FROM_NS, /* the latest sign of any thread before */
	D9_PROCESS_STOPPED_TO_NS,   /* the first one behind it */
	D9_PROCESS_STOPPED_LEAST_NS,
	D9_PROCESS_STOPPED_SUSPENDED_NS /* the machine's, which is no part of the others */
};
enum {
	D9_SOURCE_TIME_WORKER_ID,
	D9_SOURCE_TIME_TASK_ID, /* 0 in phase "between" */
	D9_SOURCE_TIME_PHASE, /* "prepare", "check" or "between" */
	D9_SOURCE_TIME_CALLS,
	D9_SOURCE_TIME_TOTAL_NS,
	D9_SOURCE_TIME_MAX_NS,
	D9_SOURCE_TIME_FUNCTION, /* "module+0x..." of the prepare() or check() function itself */
	D9_SOURCE_TIME_ADDRESS	 /* the same in the recorded process */
};
enum {
	D9_LOOP_OUTSIDE_WORKER_ID,
	D9_LOOP_OUTSIDE_FROM_NS, /* when the thread left its loop */
	D9_LOOP_OUTSIDE_TO_NS	 /* when it was in one again: the event's own time */
};
enum {
	D9_RUN_QUEUE_WORKER_ID,
	D9_RUN_QUEUE_FROM_NS, /* from then on, until the event's own time */
	D9_RUN_QUEUE_WAIT_NS  /* ready without a CPU, beyond what unparks and calls tell */
};
enum {
	D9_BOUND_THREAD_TID,
	D9_BOUND_THREAD_NAME,
	D9_BOUND_THREAD_CPUS,	/* where it may run: "0", "0-3,8" */
	D9_BOUND_THREAD_CPU_NS, /* used, and ready without one, since the look before */
	D9_BOUND_THREAD_WAIT_NS
};
enum {
	D9_TASK_IO_WORKER_ID,
	D9_TASK_IO_TASK_ID, /* 0: outside of callbacks, or, where shared, of many callbacks */
	D9_TASK_IO_READS,   /* calls, whatever came of them */
	D9_TASK_IO_READ_BYTES,
	D9_TASK_IO_WRITES,
	D9_TASK_IO_WRITE_BYTES,
	D9_TASK_IO_ACCEPTS,
	D9_TASK_IO_AGAIN,      /* of all three: EAGAIN */
	D9_TASK_IO_EOF,	       /* of the reads: asked for bytes and got none */
	D9_TASK_IO_ERRORS,     /* of all three: any other errno */
	D9_TASK_IO_LAST_ERRNO, /* the latest of these; 0: none */
	D9_TASK_IO_FD,	       /* of the latest call; absent: below 0 */
	D9_TASK_IO_SHARED      /* calls of other tasks with the same callback are in it */
};

/** Text or bytes inside the reader; not terminated. */
struct d9_text {
	const char *data;
	size_t len;
};

struct d9_value;

/** One entry of a D9_FIELD_MAP. */
struct d9_map_entry;

/**
 * One decoded field.  All pointers are borrowed until the next d9_reader_next(); of what has no elements
 * or no length they may be NULL.  Lists and maps hold values of any type, 64 deep at the most.
 */
struct d9_value {
	enum d9_field_type type; /* pooled ones are resolved: STRING and STACK */
	bool present;            /* false: an optional field without a value; the rest is undefined */
	bool unresolved;         /* a pooled value whose id the trace never defined: a text says so, a stack is empty */
	union {
		uint64_t u64; /* VARINT, U8, U16, U32 */
		int64_t i64;
		double f64;
		bool boolean;
		struct d9_text text; /* STRING and BYTES; STRING may hold invalid UTF-8 */
		struct {
			const uint64_t *addresses; /* innermost frame first */
			size_t n;
		} stack;
		struct {
			const struct d9_text *pairs; /* key, value, key, value, ... in file order */
			size_t n;                    /* pairs */
		} string_map;
		struct {
			const struct d9_value *items;
			size_t n;
		} list;
		struct {
			const struct d9_map_entry *entries;
			size_t n;
		} map;
	} u;
};

struct d9_map_entry {
	struct d9_value key;
	struct d9_value value;
};

/** One event.  Borrowed until the next d9_reader_next(). */
struct d9_event {
	const struct d9_schema *schema;
	enum d9_event_kind kind;
	bool has_timestamp;
	uint64_t timestamp_ns;         /* CLOCK_MONOTONIC of the recorded process */
	const struct d9_value *values; /* one per field of |schema|, in its order */
	uint32_t segment;              /* index into the segments of the reader */
	uint64_t offset;               /* of the event's frame, in the unpacked segment */
};

/** What is known about one segment after it was read.  Texts are borrowed until the next d9_reader_next(). */
struct d9_segment_info {
	const char *path; /* as given or found, sealed meanwhile; "-" for standard input */
	const char *container; /* "plain", "gzip" or "zstd" */
	uint64_t stored_bytes, unpacked_bytes;
	uint64_t batches, events;
	uint64_t first_ns, last_ns; /* of its events that carry a time other than 0; 0 and 0 if none */
	bool active;      /* still being written, or left behind by a killed process */
	bool truncated;   /* ends in the middle of a frame; normal for an active one */
	int err; /* 0, or why not all was read; truncated and not active: -ENODATA; changed meanwhile: -ESTALE; gone: -ENOENT */
	uint64_t err_offset; /* where, in the unpacked stream; also if truncated */
	const char *message; /* one line for people, with path and offset, or NULL */
	uint64_t unusable;   /* events of a built-in name without one of its mandatory fields */
	uint64_t unresolved; /* pooled values whose id the batch does not define */
	uint64_t repeated_keys; /* in a D9_FIELD_STRING_MAP behind another pair of that key; the last one counts */
};

/**
 * Make a reader without any segment.
 *
 * @param out  receives the reader on success, untouched on failure; owned by the caller, release
 *             with d9_reader_free()
 *
 * @return 0 or -ENOMEM
 *
 * Threads: any.  Since: 0.1
 */
D9_API int d9_reader_new(struct d9_reader **out);

/**
 * Close everything and free |reader|, and with it all that was borrowed from it.  NULL is allowed.
 *
 * Threads: one at a time.  Since: 0.1
 */
D9_API void d9_reader_free(struct d9_reader *reader);

/**
 * Add a segment, a directory of segments (searched up to four levels of directories deep, as in
 * host/boot), or "-" for standard input.  Only before the first d9_reader_next().
 *
 * A damaged segment is not an error here: what could be read of it is delivered, and
 * d9_reader_segment() tells what is wrong.
 *
 * @param path  copied
 *
 * Files of a directory that are no segments are passed over, and so is a file that was added before, under
 * this name or another: dumps are links to segments of their trace.  A segment of a directory that cannot be
 * opened is added all the same, with the reason in its |err|; one that has gone since is not.
 *
 * @return 0; -ENOENT, -EACCES or another error of open(2); -EBADMSG if |path| is a file that is no
 *         trace at all; -ENODATA if it is too short for one and not active, or a directory without
 *         segments; -EFBIG if there are more than 20,000 directories in it; -EPROTONOSUPPORT; -EISDIR if standard input is a directory; -ENOMEM.
 *         d9_reader_message() then says more.  -EINVAL, without a message, for NULL and after the first
 *         d9_reader_next().
 *
 * Threads: one at a time.  Since: 0.1
 */
D9_API int d9_reader_add(struct d9_reader *reader, const char *path);

/**
 * Deliver events in file order instead of time order: segment by segment, exactly as written.  A pipe
 * is then read as it comes, and memory holds one frame and the pools of one batch.
 * Only before the first d9_reader_next(); afterwards it does nothing.
 *
 * Threads: one at a time.  Since: 0.1
 */
D9_API void d9_reader_set_file_order(struct d9_reader *reader, bool on);

/**
 * Limit the memory that one segment's claims may take (the pools of a batch, a single frame, all
 * schemas, the list of its batches).  What needs more is damage, -EFBIG, and so are, beyond another
 * 64 MiB, batches that overlap in time.  To be set before the first d9_reader_next().
 *
 * @param limit_bytes  0, the default: 64 times the size of the segment as stored plus 64 MiB
 *
 * Threads: one at a time.  Since: 0.1
 */
D9_API void d9_reader_set_memory_limit(struct d9_reader *reader, uint64_t limit_bytes);

/**
 * Deliver the next event.
 *
 * Time order is total over all segments and threads; events of equal time keep file order.  It is that
 * of CLOCK_MONOTONIC, which begins anew when a machine does: traces from before and after are mixed.
 * Events without a time, or with time 0 (symbol rows), come first.  Memory is bounded by the
 * batches that overlap in time, not by the length of the trace; the first call reads the whole
 * trace once.  A pipe and large gzip segments go through unlinked files in $TMPDIR or /tmp.
 *
 * @param event  receives the event, borrowed until the next call
 *
 * @return 1, 0 at the end, -ENOMEM, or an error of putting a pipe aside.  Damage and unreadable
 *         files do not end the iteration: see d9_reader_segment().
 *
 * Threads: one at a time.  Since: 0.1
 */
D9_API int d9_reader_next(struct d9_reader *reader, const struct d9_event **event);

/**
 * Number of segments added so far.
 *
 * Threads: one at a time.  Since: 0.1
 */
D9_API size_t d9_reader_segments(const struct d9_reader *reader);

/**
 * The description of segment |i|, complete once d9_reader_next() has returned 0.
 *
 * @param i     0 to d9_reader_segments() - 1, in the order in which they were added
 * @param info  filled in on success; its texts are borrowed
 *
 * @return 0, or -EINVAL if there is no such segment
 *
 * Threads: one at a time.  Since: 0.1
 */
D9_API int d9_reader_segment(const struct d9_reader *reader, size_t i,
			     struct d9_segment_info *info);

/**
 * The last error in words, one line with path and offset.
 *
 * @param reader  NULL is allowed: what d9_reader_new() lacked
 *
 * @return never NULL, empty if nothing failed; borrowed until the next call with |reader|
 *
 * Threads: one at a time.  Since: 0.1
 */
D9_API const char *d9_reader_message(const struct d9_reader *reader);

/**
 * How far reading is, for progress.  Takes time in proportion to the number of segments.
 *
 * @param done_bytes   receives the bytes that are done with, at most |*total_bytes|
 * @param total_bytes  receives the bytes of all segments as stored; of a pipe 0 until it was put aside
 *
 * Threads: one at a time.  Since: 0.1
 */
D9_API void d9_reader_progress(const struct d9_reader *reader, uint64_t *done_bytes,
			       uint64_t *total_bytes);

/* ---- schemas: never change, and fail in no other way than told.  Since: 0.1 ---- */

/** The event's name on the wire, terminated; borrowed until the reader is freed. */
D9_API const char *d9_schema_name(const struct d9_schema *schema);

/** Number of fields. */
D9_API size_t d9_schema_fields(const struct d9_schema *schema);

/** Name of field |i|, terminated, or NULL if there is no such field; borrowed until the reader is freed. */
D9_API const char *d9_schema_field_name(const struct d9_schema *schema, size_t i);

/**
 * Type of field |i| as on the wire: pooled types are not resolved.
 *
 * @param optional  receives whether events may lack it, untouched if there is no such field; may be NULL
 *
 * @return the type, or 0, which is none, if there is no such field
 */
D9_API enum d9_field_type d9_schema_field_type(const struct d9_schema *schema, size_t i,
					       bool *optional);

/**
 * Value of the annotation |key| ("unit") of field |i|, of several the last; terminated, borrowed until
 * the reader is freed.  NULL if there is no such annotation or field.
 */
D9_API const char *d9_schema_annotation(const struct d9_schema *schema, size_t i, const char *key);

/** Index of the first field called |name|, or -1.  A search: keep the result, by d9_schema_id(). */
D9_API int d9_schema_find(const struct d9_schema *schema, const char *name);

/**
 * A small number that is equal for equal schemas of one reader, in all batches and segments; dense
 * from 0, for tables.
 */
D9_API uint32_t d9_schema_id(const struct d9_schema *schema);

/* ---- events: what is borrowed is so until the next d9_reader_next().  Since: 0.1 ---- */

/** Same as d9_schema_name(event->schema). */
D9_API const char *d9_event_name(const struct d9_event *event);

/** The value of the first field called |name|, or NULL if there is none, or no value in it.  A search. */
D9_API const struct d9_value *d9_event_field(const struct d9_event *event, const char *name);

/**
 * The integer in the field |name|, of whatever integer type, or |fallback|: absent, or no integer.
 * BOOL counts as 0 or 1; negative values of I64 fields count as absent.
 */
D9_API uint64_t d9_event_u64(const struct d9_event *event, const char *name, uint64_t fallback);

/**
 * Built-in fields without a search: the |k|th field of the event's catalogue entry (FORMAT.md,
 * events), wherever this trace's schema has it.  NULL if absent.  Only for kinds other than
 * D9_EVENT_CUSTOM.
 */
D9_API const struct d9_value *d9_event_known(const struct d9_event *event, unsigned k);

/** d9_event_known() as an integer, or |fallback|. */
D9_API uint64_t d9_event_known_u64(const struct d9_event *event, unsigned k, uint64_t fallback);

/* ---- spans.  Since: 0.1 ---- */

/*
 * Values that spans inherit.  The values of a span are those of its latest enter or exit: all fields but
 * `worker_id`, `span_id`, `parent_span_id`, `span_name`, `span_instance_id` and `tid`.  A span has,
 * besides its own, the values of its parent, of that one's parent and so on: of several with one name
 * the nearest counts, and only names for which the span has no value of its own.  Stacks, lists and
 * maps are not inherited, nor what parents said that the trace does not hold, nor what lies behind 64
 * parents or 1,024 of their values.
 */
struct d9_span_fields;

/** A value that a span has from one of its parents; borrowed until the next take, or free. */
struct d9_span_field {
	const char *name;
	const struct d9_value *value;
	uint64_t span_id; /* of that parent */
};

/**
 * Make one, for the events of one reader.  Its memory grows with the spans that are open.
 *
 * @param out  receives it on success; owned by the caller, release with d9_span_fields_free()
 *
 * @return 0 or -ENOMEM
 */
D9_API int d9_span_fields_new(struct d9_span_fields **out);

/** Free |fields|, and with it what was borrowed.  NULL is allowed. */
D9_API void d9_span_fields_free(struct d9_span_fields *fields);

/**
 * Take the next event, in order of time; other kinds than spans' are allowed and cost nothing.
 *
 * @param process  tells processes apart whose span ids may be equal; any number, or 0
 * @param event    what it holds is copied where it is needed
 *
 * @return 0, or -ENOMEM: then only d9_span_fields_free() is left to call
 */
D9_API int d9_span_fields_take(struct d9_span_fields *fields, uint64_t process,
			       const struct d9_event *event);

/**
 * Values that the span of the latest event inherits, if that event was an enter or an exit.
 *
 * @param n  receives how many, 0 if none
 *
 * @return |*n| values, from the nearest parent to the farthest; may be NULL if there are none
 */
D9_API const struct d9_span_field *d9_span_fields_inherited(const struct d9_span_fields *fields,
							    size_t *n);

#ifdef __cplusplus
}
#endif

#endif /* DIAL9_READER_H */
