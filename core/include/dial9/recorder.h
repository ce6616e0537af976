/* SPDX-License-Identifier: Apache-2.0 */
/* Recorder: starting, stopping and asking the one recorder of a process. */

#ifndef DIAL9_RECORDER_H
#define DIAL9_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dial9/error.h>
#include <dial9/export.h>
#include <dial9/options.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A process has at most one recorder.  Attaching a loop starts it from the environment if the
 * program did not; a program that wants other options starts it first.
 *
 * Threads put events into memory that they own; one background thread, dial9-flush, compresses
 * and writes them.  A forked child does not inherit recording: it starts a recorder of its own,
 * with the same options and in a directory of its own, when it first records something.  All
 * functions of this header keep errno and may be called from any thread; none is
 * async-signal-safe unless it says so.
 */

/** The recorder.  Opaque; there is one, so the pointer stays valid for the life of the process. */
struct d9_recorder;

/** What the recorder is doing. */
enum d9_recorder_state {
	D9_RECORDER_STARTING = 0,
	D9_RECORDER_RECORDING = 1,
	D9_RECORDER_FLIGHT = 2,   /* keeps the newest events only, and writes on demand */
	D9_RECORDER_DISABLED = 3, /* switched off by d9_disable() or from outside */
	D9_RECORDER_PAUSED = 4,   /* cannot write; tries again, see d9_recorder_error() */
	D9_RECORDER_STOPPING = 5,
	D9_RECORDER_STOPPED = 6 /* also before the first start */
};

/** Why events were lost. */
enum d9_loss {
	D9_LOSS_OVERRUN = 0,     /* recorded faster than written: the oldest were given up */
	D9_LOSS_NO_CHUNK = 1,    /* likewise, and not even that was possible */
	D9_LOSS_NO_SLOT = 2,     /* over 1024 threads recording at once, or 1022 that run loops */
	D9_LOSS_DISK = 3,        /* could not be written */
	D9_LOSS_REENTRANT = 4,   /* from a signal handler inside the recorder */
	D9_LOSS_SIDE_RING = 5,   /* likewise, and the place for those was full */
	D9_LOSS_THREAD_EXIT = 6, /* from a thread that had already ended for the recorder */
	D9_LOSS_TOO_BIG = 7,     /* longer than an event may be */
	D9_LOSS_COUNT = 8
};

/**
 * Figures since the recorder was started.  Grows at its end in later releases; d9_recorder_counters()
 * is told how much the caller knows.
 */
struct d9_counters {
	uint64_t events_written;  /* reached a segment, or were thrown away by D9_WRITER_NULL */
	uint64_t bytes_recorded;  /* before compression */
	uint64_t bytes_written;   /* of segments */
	uint64_t segments_sealed;
	uint64_t segments_evicted; /* deleted for the budget */
	uint64_t bytes_evicted;
	uint64_t bytes_retained; /* in sealed segments that exist now, those of dead peers included */
	uint64_t write_errors;
	uint64_t lost[D9_LOSS_COUNT]; /* events, by cause */
};

/**
 * Start the recorder of this process.
 *
 * Returns once the trace directory was made and recording is on.  Later troubles with the
 * directory do not end it: it pauses, tries again, and says so in the log and in the trace.
 *
 * @param options  copied; NULL: the environment and the defaults
 * @param out      receives the recorder; may be NULL
 *
 * @return 0, or, with nothing started,
 *         -EALREADY  a recorder is running in this process (|*out| is set then, too)
 *         -EPERM     another user owns the trace directory, or others may write to it
 *         -EINVAL    the trace directory's name is unusable
 *         -ENOMEM    out of memory
 *         or what mkdir(2), open(2) or pthread_create(3) failed with
 *
 * Since: 0.1
 */
D9_API int d9_recorder_start(const struct d9_options *options, struct d9_recorder **out);

/**
 * Stop |recorder|: write everything that was recorded, seal the segment, end the threads.
 *
 * Hooks stay and cost one load.  Another recorder may be started afterwards.  Called from a
 * callback of the recorder, it returns -EDEADLK.
 *
 * @param deadline_ms  how long to wait; 0: not at all
 *
 * @return 0, also if it was stopped before; -ETIMEDOUT if the deadline passed: it goes on in the
 *         background; -EINVAL if |recorder| is NULL; -EPERM behind a seccomp filter, see
 *         dial9-record(1); another error, such as -ENOSPC, if not all that was recorded could be
 *         written: it has stopped all the same
 *
 * Since: 0.1
 */
D9_API int d9_recorder_stop(struct d9_recorder *recorder, uint32_t deadline_ms);

/**
 * Seal the segment now, with everything recorded so far.
 *
 * @return 0 once it is sealed, or at once if nothing was ever enabled; -ETIMEDOUT; -EINVAL if |recorder| is NULL
 *         or stopped; -ENOTSUP in flight mode, which has no segments; -EPERM behind a
 *         seccomp filter; else why it cannot be written, such as -ENOSPC: the recorder is paused
 *
 * Since: 0.1
 */
D9_API int d9_recorder_rotate(struct d9_recorder *recorder, uint32_t deadline_ms);

/** What d9_dump() made.  Grows at its end in later releases. */
struct d9_dump_receipt {
	/*
	 * In flight mode a file; else the directory that holds the segments.  Absolute; "" if nothing
	 * was recorded in the window.
	 */
	char path[4096];
	char id[32];       /* in flight mode: a ULID, also in the file's metadata as `dump.id` */
	uint64_t events;   /* in it; 0 if not in flight mode */
	uint64_t bytes;    /* on disk */
	uint64_t from_ns;  /* what it covers, in ns of CLOCK_MONOTONIC */
	uint64_t to_ns;
	uint32_t segments; /* files */
	bool complete;     /* nothing was lost in that time */
};

/**
 * Keep the last |last_ms| milliseconds: write them to a trace that is complete in itself.
 *
 * In flight mode: one segment with everything that the ring holds of the window; nothing is taken
 * out of the ring, so windows of several dumps may overlap, and each has all of its own.  Events of
 * the window's first moment may be missing where the ring does not reach that far back (its oldest
 * 2 MiB, or a quarter of it, are left to the threads that go on recording); wakes carry the time at which they were due,
 * which may lie before the window.
 *
 * Otherwise everything recorded so far is brought to disk and its segment sealed; the trace is the
 * segments that overlap the window, linked into |dir|, or copied if that is another file system.
 *
 * Tasks that began before are announced: those that live, 65536 of them at most, those that were polled in
 * the window first; and those that ended in it, if their beginning is in what the ring holds, or in the
 * newest 256 MiB of older segments.  In flight mode that stands at the beginning of the segment; else it is
 * one more segment, with the time of the first event.  In the recorder's own directory all began, so there
 * it is made only if the budget has taken segments.
 *
 * The background thread does the work; recording goes on meanwhile.  Called from any thread, also in
 * a callback of a loop, which then waits; not async-signal-safe: in a handler, set a flag.  Dumps
 * that are asked for at the same time are made one after the other.
 *
 * @param last_ms      how far back from now; 0: as far as there is anything
 * @param dir          made, with mode 0700, if it is missing; the segments go to its subdirectory
 *                     BOOT_ID, as in a trace directory; NULL: the recorder's own directory, whose
 *                     budget counts them
 * @param deadline_ms  how long to wait; 0: not at all
 * @param receipt      receives what was made; may be NULL
 * @param size         sizeof(*receipt)
 *
 * @return 0, also if the window is empty, or
 *         -ETIMEDOUT  the deadline passed; the dump is made nevertheless
 *         -ESHUTDOWN  the recorder was stopped before it came to it
 *         -EINVAL     |recorder| is NULL or stopped, |dir| is "", or |last_ms| is beyond 500 years
 *         -ENOENT     no |dir| is given and the recorder has none of its own
 *         -ENOTSUP    not in flight mode, and the recorder keeps no files (D9_WRITER_MEMORY, _NULL)
 *         -EPERM      others could tamper with |dir| or its subdirectory; or behind a seccomp filter
 *         -ENAMETOOLONG  |dir| is too long
 *         -ENOMEM     out of memory
 *         or what mkdir(2), open(2), write(2) or rename(2) failed with, such as -ENOSPC; then
 *         nothing is left in |dir|, and the events are still in the ring
 *
 * Since: 0.1
 */
D9_API int d9_dump(struct d9_recorder *recorder, uint64_t last_ms, const char *dir,
		   uint32_t deadline_ms, struct d9_dump_receipt *receipt, size_t size);

/** The running recorder, started by the program or by an adapter; NULL if there is none.  Since: 0.1 */
D9_API struct d9_recorder *d9_recorder_running(void);

/**
 * Switch recording on or off, for all threads, now.  Off, nothing is recorded and nothing written;
 * what was recorded before is written.  No effect while no recorder runs.  Threads: any.
 * Since: 0.1
 */
D9_API void d9_enable(void);
D9_API void d9_disable(void);

/** Whether anything is recorded at the moment.  Async-signal-safe.  Since: 0.1 */
D9_API bool d9_enabled(void);

/**
 * Add a fact about the process to the metadata of this segment and those that follow.
 *
 * @param key    copied; the key's earlier value is replaced
 * @param value  copied; NULL removes the key
 *
 * @return 0; -EINVAL if |key| is empty or longer than 255 bytes, or |value| longer than 65535;
 *         -ENOSPC after 1024 keys; -ENOMEM
 *
 * Since: 0.1
 */
D9_API int d9_metadata_set(const char *key, const char *value);

/**
 * Read the counters.
 *
 * @param out   receives them
 * @param size  sizeof(*out)
 *
 * @return 0, or -EINVAL if a pointer is NULL
 *
 * Since: 0.1
 */
D9_API int d9_recorder_counters(const struct d9_recorder *recorder, struct d9_counters *out,
				size_t size);

/** What |recorder| is doing; D9_RECORDER_STOPPED for NULL.  Since: 0.1 */
D9_API enum d9_recorder_state d9_recorder_state(const struct d9_recorder *recorder);

/** |state| in a word, never NULL.  Async-signal-safe.  Since: 0.1 */
D9_API const char *d9_recorder_state_text(enum d9_recorder_state state);

/** |loss| in a word, as in the trace, never NULL.  Async-signal-safe.  Since: 0.1 */
D9_API const char *d9_loss_text(enum d9_loss loss);

/** The negative errno of the last write that failed, 0 if none did.  Since: 0.1 */
D9_API int d9_recorder_error(const struct d9_recorder *recorder);

/**
 * The directory in which |recorder| keeps its segments, as absolute path; for tools and tests.
 *
 * @return the length, or -EINVAL for a NULL, -ENOENT if it keeps none, -ENOSPC if |size| is too small
 *
 * Since: 0.1
 */
D9_API int d9_recorder_dir(const struct d9_recorder *recorder, char *buf, size_t size);

/* ---- a sealed segment, in the callback that d9_options_set_segment_sealed() names ---- */

/** Its number; from 0. */
D9_API uint64_t d9_sealed_segment_index(const struct d9_sealed_segment *segment);

/** Its file, as absolute path; NULL if it is in memory.  Borrowed for the call. */
D9_API const char *d9_sealed_segment_path(const struct d9_sealed_segment *segment);

/** Its bytes if it is in memory, else NULL.  Borrowed for the call.  |*len| receives the length. */
D9_API const void *d9_sealed_segment_data(const struct d9_sealed_segment *segment, size_t *len);

/** Its length in bytes. */
D9_API uint64_t d9_sealed_segment_bytes(const struct d9_sealed_segment *segment);

/** Events in it, without what the recorder adds: clock, metadata, modules, health, losses. */
D9_API uint64_t d9_sealed_segment_events(const struct d9_sealed_segment *segment);

/** Time of its first and last event, in ns of CLOCK_MONOTONIC. */
D9_API void d9_sealed_segment_span(const struct d9_sealed_segment *segment, uint64_t *first_ns,
				   uint64_t *last_ns);

/** Whether no event was lost while it was written. */
D9_API bool d9_sealed_segment_complete(const struct d9_sealed_segment *segment);

#ifdef __cplusplus
}
#endif

#endif /* DIAL9_RECORDER_H */
