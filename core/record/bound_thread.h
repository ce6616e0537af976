/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that may not run on each CPU of the machine: how much CPU time they had and waited for,
 * as BoundThreadEvent. By it a reader knows whether a loop that was ready without a CPU stood
 * behind the program's own threads.
 */

#pragma once

#include <stddef.h>
#include <stdint.h>

#define D9__BOUND_CPUS_MAX 128 /* bytes for the text of a set of CPUs */

struct d9__slot;

/* The CPU time of one thread, and how long it was ready without one, since the look before. */
struct d9__thread_growth {
	uint32_t tid;
	uint64_t cpu_ns, wait_ns;
};

/*
 * Into |cpus| where thread |tid| may run: "0" or "0-3,8".  Returns on how many; 0: on all of
 * |online|, or it is not known, or does not fit.
 */
unsigned d9__bound_thread_cpus(uint32_t tid, unsigned online, char *cpus, size_t size);

/*
 * Write the event into |own|, if the thread is bound and it used or waited for a hundredth of a
 * second.  |task_dir| is a descriptor of /proc/self/task.
 */
void d9__bound_thread_write(struct d9__slot *own, uint64_t now_ns, int task_dir, unsigned online,
			    const struct d9__thread_growth *growth);
