/* SPDX-License-Identifier: Apache-2.0 */
/* Thread: background threads that the recorded program does not notice. */

#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/time.h"

#define D9__THREAD_NAMES "dial9-" /* all our threads' names begin so */

/*
 * Start |fn| on a thread called |name|: all signals blocked, SCHED_OTHER whatever the caller's policy,
 * the processors that the process had when we were loaded, |stack| bytes of stack (0: the default).
 * 0 or -errno.
 */
int d9__thread_start(pthread_t *thread, const char *name, void *(*fn)(void *), size_t stack);

/*
 * Join |thread|, which is called |tid| and ends, and wait until the kernel has one thread less, which is a moment after
 * pthread_join() returns.
 */
void d9__thread_join(pthread_t thread, int tid);

/* The clock of the CPU time of thread |tid| of this process, as the kernel numbers it. */
static inline clockid_t d9__thread_cpu_clock(uint32_t tid)
{
	return (clockid_t)(~tid << 3 | 6u);
}

/* The CPU time that |tid| has used so far; 0: the thread is gone. */
static inline uint64_t d9__thread_used_ns(uint32_t tid)
{
	struct timespec used;

	return clock_gettime(d9__thread_cpu_clock(tid), &used) ? 0 : d9__timespec_ns(&used);
}

/*
 * pthread_self() of the flush thread, by which that is known without a system call; 0: there is
 * none, or it is away for a while.  Relaxed, because it orders nothing.
 */
extern _Atomic(uintptr_t) d9__thread_flush;

static inline bool d9__thread_is_flush(void)
{
	uintptr_t flush = atomic_load_explicit(&d9__thread_flush, memory_order_relaxed);

	return flush == (uintptr_t)pthread_self();
}
