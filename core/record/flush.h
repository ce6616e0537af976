/* SPDX-License-Identifier: Apache-2.0 */
/* Flush: the background thread that empties the ring. */

#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <dial9/options.h>
#include <dial9/recorder.h>

#include "segment/namespace.h"
#include "segment/writer.h"

/* Whether the thread ends for a while: asked, and, by itself, gone.  See record/aside.h. */
enum d9__aside { D9__ASIDE_NO, D9__ASIDE_ASKED, D9__ASIDE_GONE };

/* One per process, reused by every start.  Fields without a note: set before the thread starts. */
struct d9__flush {
	const struct d9_options *options; /* unchanged while the thread runs */
	char trace_dir[PATH_MAX];         /* absolute */
	char boot_id[D9__BOOT_ID_MAX];    /* the wish; then, before |opened|, what it became */
	uint32_t gate_bits;               /* when on */
	bool start_disabled;
	bool flight; /* the mode */
	uint64_t lost_before[D9_LOSS_COUNT]; /* events, by recorders before this one */
	bool early; /* before the program has a loop: what it has nothing to say of is not written */
	bool awaited; /* who starts it waits for the trace directory, and does without a recorder if there is none */

	/* Flush thread writes, others read (relaxed unless noted). */
	_Atomic(int) state; /* enum d9_recorder_state */
	uintptr_t stack;	 /* before |moved|, like the next: its low end */
	size_t stack_bytes;
	_Atomic(int) tid; /* its, which stays when it has ended */
	_Atomic(int) open_result; /* of the trace directory; 1: not tried yet */
	_Atomic(int) moved; /* release: 1: to a descriptor table of its own; below 0: it cannot go on, -errno */
	int ring_fd; /* before |moved|: what the ring's descriptor was, -1 if it still is */
	_Atomic(int) ended; /* release: all else is written; a futex */
	_Atomic(int) end_err; /* before |ended|: why not all that was recorded is written; 0 */
	struct d9__writer_counters counters;
	_Atomic(bool) unwritten; /* before |ended|: the ring holds what could not be written */

	/* Others write, flush thread reads. */
	_Atomic(int) aside;         /* enum d9__aside; a futex */
	_Atomic(int) stop;          /* a request to end */
	_Atomic(bool) on_to_the_end; /* before |stop|: it recorded when it was told to end */
	_Atomic(bool) last;         /* before |stop|: no recorder of this process comes after this one */
};

extern struct d9__flush d9__flush;

/* Whether what is wrong with the trace directory may pass by itself, which is no reason not to start. */
bool d9__flush_may_pass(int err);

/* Start the thread.  The ring exists.  0 or -errno. */
int d9__flush_start(pthread_t *thread);

/* Start a thread that goes on where the one before it, D9__ASIDE_GONE, has ended.  0 or -errno. */
int d9__flush_start_again(pthread_t *thread);

/* Make the thread look at requests and control words now.  Async-signal-safe, keeps errno. */
void d9__flush_wake(void);

/* A loop has slept for long: whatever it calls now is looked at within 10 ms.  Keeps errno. */
void d9__flush_rouse(void);

/* In a forked child: there is no thread; the parent's descriptors, if shared, are closed. */
void d9__flush_fork_child(void);
