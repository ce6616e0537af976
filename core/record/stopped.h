/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stopped: the whole process stood still, and no callback of it is to blame: SIGSTOP, a debugger, a
 * frozen cgroup, a container or a virtual machine that is paused.  The flush thread, which stood
 * still as well, comes back from its wait long after that was due, and no thread left a sign in
 * between.
 *
 * It comes back late, too, where other threads have the CPUs.  The kernel tells how long this
 * thread was ready without one, and how long the cgroup's limit held threads: what explains half
 * is no stop.
 *
 * CLOCK_MONOTONIC stands still while the machine is suspended, CLOCK_BOOTTIME does not.  That is
 * told apart.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

#define D9__STOPPED_NS (250 * D9__MS_NS) /* shorter ones are not told */

struct d9__process_state;
struct d9__slot;

/* A wait of the flush thread, and what the kernel kept it waiting for. */
struct d9__stopped_wait {
	uint64_t begun_ns, due_ns, back_ns;
	uint64_t before_ns, after_ns; /* signs of all threads, as struct d9__signs */
	bool has_queue;
	uint64_t queue_ns;     /* how long the flush thread was ready without a CPU since */
	uint64_t throttled_ns; /* and how long the cgroup's limit held threads */
};

struct d9__stop {
	uint64_t from_ns, to_ns; /* the latest sign before, the first one behind it */
	uint64_t least_ns;	 /* of that time it certainly stood still: since the wait was due */
	uint64_t suspended_ns;	 /* the machine, besides */
};

/* Whether the process stood still during |wait|: |*out| tells how long.  Looks at nothing else. */
bool d9__stopped_judge(const struct d9__stopped_wait *wait, struct d9__stop *out);

/* Flush thread only. */
struct d9__stopped {
	int fd; /* its schedstat; 0: none */
	uint64_t read_ns, queue_ns; /* when that was read last, and what it told */
	uint64_t late_ns;	    /* waits that ended since, after they were due: together */
	uint64_t asked_ns;	    /* when CLOCK_BOOTTIME was asked last */
	uint64_t away_ns;	    /* how far it is ahead */
};

void d9__stopped_begin(struct d9__stopped *stopped);
void d9__stopped_end(struct d9__stopped *stopped);

/*
 * A wait that began at |begun_ns| and was to end at |due_ns| is over: whether the process stood
 * still meanwhile, or the machine was suspended.
 */
bool d9__stopped_look(struct d9__stopped *stopped, const struct d9__process_state *process,
		      uint64_t begun_ns, uint64_t due_ns, struct d9__stop *out);

/*
 * How long this thread ran, and how long it was ready without a CPU, ever.  False: not known, or
 * the latter is not counted.
 */
bool d9__stopped_schedule(const struct d9__stopped *stopped, uint64_t *ran_ns, uint64_t *waited_ns);

/* Write the event into |own|. */
void d9__stopped_write(struct d9__slot *own, const struct d9__stop *stop);
