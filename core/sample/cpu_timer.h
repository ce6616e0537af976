/* SPDX-License-Identifier: Apache-2.0 */
/* CPU timer: a signal to one thread, each time that thread has used so much CPU time. */

#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Send |signal| with |value| to thread |tid| of this process, after each |period_ns| of its CPU
 * time; the first time |first_ns| from now.  The timer's number or -errno: -EAGAIN where no more
 * signals may be queued (RLIMIT_SIGPENDING), -EINVAL where the thread is gone.
 */
int d9__cpu_timer_start(uint32_t tid, int signal, int value, uint64_t first_ns, uint64_t period_ns);

/* A signal may still come. */
void d9__cpu_timer_stop(int timer);

/*
 * Whether |tid| blocks |signal| now, or waits for signals by sigwait(3) and its like: it would take ours for one of its own.
 */
bool d9__cpu_timer_is_blocked(uint32_t tid, int signal);

/* The CPU time that |tid| has used so far; 0: the thread is gone. */
uint64_t d9__cpu_timer_used_ns(uint32_t tid);
