/* SPDX-License-Identifier: Apache-2.0 */
/* Options: how the recorder of this process behaves. */

#ifndef DIAL9_OPTIONS_H
#define DIAL9_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dial9/error.h>
#include <dial9/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Every option has a default that suits a service; most can also be set from the environment,
 * which is read once, by d9_recorder_start().  A setter beats the environment, the environment
 * beats the default.  A value in the environment that makes no sense is reported once through the
 * log callback and counts as unset.
 *
 *	struct d9_options *options;
 *	struct d9_recorder *recorder;
 *	int err = d9_options_new(&options);
 *
 *	if (!err) {
 *		d9_options_set_trace_dir(options, "/var/lib/frobd/traces");
 *		d9_options_set_rotation_ms(options, 10 * 1000);
 *		err = d9_recorder_start(options, &recorder);
 *		d9_options_free(options);
 *	}
 *
 * Setters copy what they are given.  They return 0, -EINVAL for a NULL or a value outside the
 * range that is named, or -ENOMEM; the option then keeps what it had.  One thread at a time may
 * use an options object.  Booleans in the environment: t true 1 y yes on, f false 0 n no off, in
 * any case; numbers are decimal and greater than 0.
 */

/** A set of options.  Opaque. */
struct d9_options;

/** What becomes of recorded events. */
enum d9_mode {
	D9_MODE_CONTINUOUS = 0, /* all are written (default) */
	D9_MODE_FLIGHT = 1      /* the newest stay in memory; see d9_dump() in <dial9/recorder.h> */
};

/** Where sealed segments go. */
enum d9_writer {
	D9_WRITER_ROTATING = 0, /* numbered files that rotate, within a budget (default) */
	D9_WRITER_SINGLE = 1,   /* one file that never rotates */
	D9_WRITER_MEMORY = 2,   /* no files: segments stay in memory, see the segment callback */
	D9_WRITER_NULL = 3      /* recorded, then thrown away: to measure what recording costs */
};

/** How segments are packed. */
enum d9_compress {
	D9_COMPRESS_ZSTD = 0, /* trace.N.bin.zst; zstd level 1 (default) */
	D9_COMPRESS_NONE = 1, /* trace.N.bin */
	D9_COMPRESS_GZIP = 2  /* trace.N.bin.gz: what viewers of the original dial9 open */
};

/** What time is read from. */
enum d9_clock {
	D9_CLOCK_AUTO = 0,     /* the processor's counter where it is sound (default) */
	D9_CLOCK_TSC = 1,      /* the processor's counter, sound or not */
	D9_CLOCK_MONOTONIC = 2 /* clock_gettime(CLOCK_MONOTONIC) */
};

/** Where the ring of recorded events lives until it is written. */
enum d9_ring {
	D9_RING_AUTO = 0,   /* the first of the following that works (default) */
	D9_RING_SHM = 1,    /* /dev/shm: survives the death of the process */
	D9_RING_MEMFD = 2,  /* an unnamed memory file */
	D9_RING_MEMORY = 3, /* plain memory */
	D9_RING_DISK = 4    /* the trace directory: survives a crash of the machine in part */
};

/** Which log lines of loop libraries become events. */
enum d9_log_bridge {
	D9_LOG_BRIDGE_OFF = 0,     /* none; nothing of a library's logging is touched (default) */
	D9_LOG_BRIDGE_ERROR = 1,   /* errors, and what GLib calls critical */
	D9_LOG_BRIDGE_WARNING = 2, /* also warnings */
	D9_LOG_BRIDGE_INFO = 3,    /* also messages */
	D9_LOG_BRIDGE_DEBUG = 4    /* all */
};

/** How bad it is. */
enum d9_log_level { D9_LOG_ERROR = 0, D9_LOG_WARNING = 1, D9_LOG_INFO = 2 };

/**
 * Receives what the recorder has to say; the library itself never prints.
 *
 * Called from d9_recorder_start() on the caller's thread for problems with options, afterwards on
 * the thread dial9-callback, which runs nothing but callbacks, has all signals blocked, and sees
 * the program's own descriptors.  |message| is one line without a line end, borrowed for the call.
 * Repeated messages come at most once a minute.
 */
typedef void (*d9_log_fn)(void *arg, enum d9_log_level level, const char *message);

struct d9_sealed_segment;

/**
 * Told of every sealed segment; see <dial9/recorder.h> for what can be asked about |segment|, which
 * is borrowed for the call.  Called on the thread dial9-callback, one call at a time, in order.  It
 * may be slow: segments wait for it, and once 64 wait, further ones are not announced.
 */
typedef void (*d9_segment_fn)(void *arg, const struct d9_sealed_segment *segment);

/**
 * Make a set of options that has nothing set.
 *
 * @param out  receives it on success; owned by the caller, release with d9_options_free()
 *
 * @return 0 or -ENOMEM
 *
 * Threads: any.  Since: 0.1
 */
D9_API int d9_options_new(struct d9_options **out);

/** Free |options|; a recorder started from it is not affected.  NULL is allowed. */
D9_API void d9_options_free(struct d9_options *options);

/**
 * Whether the environment is looked at.  Default: yes; never in a program that has other rights than who
 * started it, as a set-user-ID program has.
 */
D9_API int d9_options_set_environment(struct d9_options *options, bool on);

/**
 * Whether recording is on from the start.  Default: on; DIAL9_ENABLED.
 *
 * Off, hooks are placed but record nothing until d9_enable(), and no file is made before that.
 */
D9_API int d9_options_set_enabled(struct d9_options *options, bool on);

/**
 * Directory under which this process makes its own directory of segments.  Made if it is missing,
 * with mode 0700; what belongs to another user or others may write to is refused, and so are
 * symbolic links of another user's on the way.  Default: dial9-UID in the first of $STATE_DIRECTORY,
 * which systemd sets, in $TMPDIR or in /tmp; DIAL9_TRACE_DIR.
 */
D9_API int d9_options_set_trace_dir(struct d9_options *options, const char *dir);

/** Name of the service, as metadata.  Default: name of the executable; DIAL9_SERVICE_NAME. */
D9_API int d9_options_set_service(struct d9_options *options, const char *name);

/**
 * Where the trace is to be stored: |bucket| of an object store, under keys that begin with |prefix|,
 * for |service| (NULL: what d9_options_set_service() said).  Default: nowhere; DIAL9_S3_BUCKET, and
 * "dial9-traces" for |prefix| (NULL), DIAL9_S3_PREFIX.
 *
 * This process sends nothing: a shipper of the same user does, `dial9 ship --from-rings`, which takes
 * bucket and prefix from here, and address, region and credentials of the store never.
 *
 * @param bucket  3 to 63 letters, digits, '.', '-' or '_'
 * @param prefix  parts of letters, digits, '.', '_', '-' or '=', separated by '/'; 256 bytes at most
 *
 * @return 0; -EINVAL if one of them is no such name, with nothing changed; or -ENOMEM
 *
 * Since: 0.1
 */
D9_API int d9_options_set_s3(struct d9_options *options, const char *bucket, const char *prefix, const char *service);

/** Name of the host, as metadata.  Default: gethostname(). */
D9_API int d9_options_set_host(struct d9_options *options, const char *name);

/**
 * Name of the lane group of loops that have no name of their own.  Default: none;
 * DIAL9_RUNTIME_NAME.
 */
D9_API int d9_options_set_runtime_name(struct d9_options *options, const char *name);

/**
 * Which of the program's spans are recorded, as d9_span_filter() of <dial9/span.h> takes it.
 * Default: "info"; DIAL9_SPAN_FILTER.
 *
 * @return 0, -EINVAL if |filter| is none, -ENOMEM
 */
D9_API int d9_options_set_span_filter(struct d9_options *options, const char *filter);

/**
 * Triggers: the recorder keeps the time around the moments that they describe.  |texts| are separated by `;` or ends of
 * lines and shorter than 128 KiB in all; dial9-trigger(7) has their language.  A callback is matched by its module and offset,
 * "frobd+0x1234".  "@FILE" stands for the list in a file of 64 KiB at most, which is read as the recorder starts.
 * Default: none; DIAL9_TRIGGERS.
 *
 * @return 0, -EINVAL if one of them is none, -ENOMEM
 */
D9_API int d9_options_set_triggers(struct d9_options *options, const char *texts);

/**
 * Add a fact about the process to the metadata of every segment.
 *
 * @return 0, -EINVAL if |key| is empty or longer than 255 bytes or |value| longer than 4095,
 *         -ENOMEM
 */
D9_API int d9_options_add_metadata(struct d9_options *options, const char *key, const char *value);

/**
 * Whether events are written as they come, or only on demand.  Default: D9_MODE_CONTINUOUS;
 * DIAL9_MODE=continuous|flight.
 *
 * In flight mode the ring keeps the newest events and overwrites the oldest, which is no loss, and
 * nothing is compressed or written until d9_dump() or `dial9 dump` asks for it.  How far back that
 * reaches is the ring's size: 32 MiB hold some 2.8 million events.  A recorder that is stopped in
 * flight mode forgets what it holds; a process that is killed leaves it to `dial9 recover`.
 */
D9_API int d9_options_set_mode(struct d9_options *options, enum d9_mode mode);

/** Where segments go.  Default: D9_WRITER_ROTATING; DIAL9_WRITER=rotating|single|memory|null. */
D9_API int d9_options_set_writer(struct d9_options *options, enum d9_writer writer);

/** How segments are packed.  Default: D9_COMPRESS_ZSTD; DIAL9_COMPRESS=zstd|gzip|none. */
D9_API int d9_options_set_compress(struct d9_options *options, enum d9_compress compress);

/**
 * Age at which a segment is sealed, 100 ms to 365 days; UINT64_MAX: never.  Default: 60 000;
 * DIAL9_ROTATION_SECS (in seconds).
 */
D9_API int d9_options_set_rotation_ms(struct d9_options *options, uint64_t rotation_ms);

/**
 * Budget of all segments of this process together, at least 64 KiB; the oldest go first.  Default:
 * 1 GiB; DIAL9_MAX_DISK_USAGE_MB (in MiB).
 */
D9_API int d9_options_set_max_total_bytes(struct d9_options *options, uint64_t max_bytes);

/**
 * Budget of all dumps together, beside that of segments, at least 16 KiB; the oldest dump goes first, with its manifest and
 * what of it is neither the trace's nor a younger dump's.  Default: a fifth of that of segments; DIAL9_MAX_DUMPS_MB (in MiB).
 */
D9_API int d9_options_set_max_dump_bytes(struct d9_options *options, uint64_t max_bytes);

/**
 * Size at which a segment is sealed, at least 16 KiB.  Default: 100 MiB, but at most a quarter of
 * the budget (an eighth with D9_WRITER_MEMORY); DIAL9_MAX_FILE_SIZE_MB (in MiB).
 */
D9_API int d9_options_set_max_file_bytes(struct d9_options *options, uint64_t max_bytes);

/** Whether directories of dead processes are removed.  Default: yes; DIAL9_GC_DEAD_NAMESPACES. */
D9_API int d9_options_set_gc_dead_namespaces(struct d9_options *options, bool on);

/** Size of the ring of recorded events, 1 to 128 MiB.  Default: 32; DIAL9_RING_MB. */
D9_API int d9_options_set_ring_mb(struct d9_options *options, uint32_t ring_mb);

/** Place of the ring.  Default: D9_RING_AUTO; DIAL9_RING=auto|shm|memfd|memory|disk. */
D9_API int d9_options_set_ring(struct d9_options *options, enum d9_ring ring);

/** What time is read from.  Default: D9_CLOCK_AUTO; DIAL9_CLOCK=auto|tsc|monotonic. */
D9_API int d9_options_set_clock(struct d9_options *options, enum d9_clock clock);

/**
 * Whether loops are recorded at all.  Default: yes; DIAL9_LOOP_INSTRUMENTATION_ENABLED, or the
 * original's DIAL9_TOKIO_INSTRUMENTATION_ENABLED.
 */
D9_API int d9_options_set_loop_instrumentation(struct d9_options *options, bool on);

/** Whether tasks and wakes are recorded.  Default: yes; DIAL9_TASK_TRACKING_ENABLED. */
D9_API int d9_options_set_task_tracking(struct d9_options *options, bool on);

/**
 * How often resource usage is recorded, 1 to 3 600 000 ms; 0: never.  Default: 100;
 * DIAL9_PROCESS_RESOURCE_USAGE_SAMPLE_INTERVAL_MS, DIAL9_PROCESS_RESOURCE_USAGE_ENABLED.
 */
D9_API int d9_options_set_usage_interval_ms(struct d9_options *options, uint32_t interval_ms);

/**
 * How often the depth of queues is recorded, 1 to 3 600 000 ms; 0: never.  Default: 100;
 * DIAL9_QUEUE_SAMPLE_INTERVAL_MS.
 */
D9_API int d9_options_set_queue_interval_ms(struct d9_options *options, uint32_t interval_ms);

/**
 * One park in |n| measures how long the kernel let the thread wait for a processor, 1 to
 * 1 000 000, and so does the first one 10 ms after the latest that did.  Default: 10;
 * DIAL9_SCHED_WAIT_SAMPLE_RATE.
 */
D9_API int d9_options_set_sched_wait_sample_rate(struct d9_options *options, uint32_t n);

/*
 * Sample the call stack of each loop thread |hz| times per second of its CPU time (99): 0 is off, 1,000 the most;
 * the kernel's own clock limits it to some 250.  By SIGPROF, if its disposition is the default when the first loop
 * runs, else by the highest real-time signal of which that holds.  DIAL9_CPU_SAMPLE_HZ; with
 * DIAL9_CPU_PROFILE_ENABLED=false, off.  0 or -EINVAL.
 */
D9_API int d9_options_set_cpu_hz(struct d9_options *options, uint32_t hz);

/** Whose stacks are sampled. */
enum d9_cpu_threads {
	D9_CPU_THREADS_LOOP, /**< threads that run loops, and the first */
	D9_CPU_THREADS_ALL   /**< and all others of the process, found once a second */
};

/** Default: D9_CPU_THREADS_LOOP; DIAL9_CPU_PROFILE_THREADS=loop|all.  0 or -EINVAL. */
D9_API int d9_options_set_cpu_threads(struct d9_options *options, enum d9_cpu_threads threads);

/** What takes the samples of stacks. */
enum d9_cpu_backend {
	D9_CPU_BACKEND_AUTO,	   /**< the best that costs little: timers */
	D9_CPU_BACKEND_TIMER,	   /**< a timer and a signal per thread; no privilege */
	D9_CPU_BACKEND_PERF,	   /**< the kernel's perf events, one per processor: kernel frames; a privilege */
	D9_CPU_BACKEND_PERF_THREAD /**< one per thread: each of its sleeps costs about a microsecond more */
};

/**
 * Default: D9_CPU_BACKEND_AUTO; DIAL9_CPU_BACKEND=auto|timer|perf|perf-thread.  One that was asked for and is refused is not
 * replaced: nothing is sampled, and `source.cpu` in the trace and `dial9 status` say why.  0 or -EINVAL.
 */
D9_API int d9_options_set_cpu_backend(struct d9_options *options, enum d9_cpu_backend backend);

/**
 * Whether stacks are taken where sampled threads leave the CPU, in slices of 100 ms every 10 s.  Default: no;
 * DIAL9_SCHEDULE_PROFILE_ENABLED.  Takes a privilege; `source.offcpu` says whether it is there.  0 or -EINVAL.
 */
D9_API int d9_options_set_off_cpu(struct d9_options *options, bool on);

/**
 * Time the calls that can block (fsync(), sleep(), pthread_mutex_lock(), getaddrinfo(), ...) while a callback of a loop
 * runs, and tell those over 1 ms with their descriptor, their stack, and who held the lock.  Default: true;
 * DIAL9_BLOCKING_CALLS_ENABLED.  0 or -EINVAL.
 */
D9_API int d9_options_set_blocking_calls(struct d9_options *options, bool on);

/**
 * Count the results of reads, writes and accepts on threads that run loops (bytes, EAGAIN, the end
 * of a stream, errors) for the task whose callback made the call, and tell them once a second.
 * Needs the calls that can block to be timed.  Default: true; DIAL9_IO_ENABLED.  0 or -EINVAL.
 */
D9_API int d9_options_set_io(struct d9_options *options, bool on);

/**
 * Record where idle tasks wait: the call stack that armed the watcher.  A wait of |idle_ms| (1 to 3 600 000) is
 * recorded with a probability of 63 %, shorter ones less often, so that tasks are told in proportion to how long they
 * idle; 0: off.  Default: off; DIAL9_TASK_DUMP_ENABLED, DIAL9_TASK_DUMP_IDLE_THRESHOLD_MS (10).  Needs the tracking of
 * tasks.  0 or -EINVAL.
 */
D9_API int d9_options_set_task_dumps(struct d9_options *options, uint32_t idle_ms);

/**
 * How often the accept queues of the listening TCP sockets that loops watch are recorded, 1 to 3 600 000 ms; 0: never.
 * Default: never; DIAL9_SOCKET_ACCEPT_QUEUES_ENABLED, DIAL9_SOCKET_ACCEPT_QUEUES_SAMPLE_INTERVAL_MS (400).  0 or -EINVAL.
 */
D9_API int d9_options_set_accept_queues(struct d9_options *options, uint32_t interval_ms);

/**
 * Sample the program's allocations, on average one in |mean_bytes| bytes, with the stacks that asked for them: 0 is off,
 * 1 takes every allocation, 2^40 is the most.  Needs libdial9-memory, which the program links or `dial9 record --memory`
 * brings; see <dial9/memory.h>.  Default: off; DIAL9_MEMORY_PROFILE_ENABLED, DIAL9_MEMORY_SAMPLE_RATE_BYTES (524 288).
 */
D9_API int d9_options_set_memory(struct d9_options *options, uint64_t mean_bytes);

/**
 * Whether the end of each sampled allocation is recorded too, so that the trace tells what is still allocated, and leaks.
 * At most 65 536 sampled allocations are followed at a time.  Default: no; DIAL9_MEMORY_TRACK_LIVESET.
 */
D9_API int d9_options_set_memory_live_set(struct d9_options *options, bool on);

/**
 * Where the random gaps between sampled allocations begin, for tests: each thread's follow from |seed| and its place
 * in the order of first samples.  0: everywhere else each time.  Default: 0; DIAL9_MEMORY_SEED.
 */
D9_API int d9_options_set_memory_seed(struct d9_options *options, uint64_t seed);

/**
 * Which lines that libevent, libev and GLib log become events (`LogEvent`), at most 1000 a second.
 * They go where they went before as well.  Default: D9_LOG_BRIDGE_OFF;
 * DIAL9_LOG_BRIDGE=off|error|warning|info|debug.
 */
D9_API int d9_options_set_log_bridge(struct d9_options *options, enum d9_log_bridge level);

/** The function that is called with each problem.  Default: none. */
D9_API int d9_options_set_log(struct d9_options *options, d9_log_fn log, void *arg);

/** The function that is called with each sealed segment.  Default: none. */
D9_API int d9_options_set_segment_sealed(struct d9_options *options, d9_segment_fn sealed,
					 void *arg);

#ifdef __cplusplus
}
#endif

#endif /* DIAL9_OPTIONS_H */
