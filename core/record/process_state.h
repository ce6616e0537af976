/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process state: once a second what the process holds (memory, descriptors, threads) and what the machine keeps from
 * it (its cgroup's throttling, time stolen by the host, waits for a CPU), as ProcessStateEvent.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/bound_thread.h"

#define D9__STATE_CGROUPS 4  /* the process's own, and those around it: each may have a limit */
#define D9__STATE_THREADS 32 /* more are not added up */

struct d9__slot;

/* Flush thread only: its descriptors are its own. */
struct d9__process_state {
	/* Opened at start, 0: there is none. */
	int statm, stat, task_dir, fd_dir, membership;
	int cgroups[D9__STATE_CGROUPS]; /* and again, where the process may have come into others */
	uint64_t member;     /* by a hash of what /proc/self/cgroup said when they were opened */
	uint64_t opening_ns; /* when they are opened again in any case */
	bool has_fd_count; /* the kernel tells it, since Linux 6.2 */
	uint64_t descriptors, count_ns; /* the newest count, and when it is made again */
	uint64_t steal_ns, stat_ns;     /* the same of the machine's figures */
	bool has_steal;
	struct {
		uint32_t tid;
		bool seen;
		uint64_t wait_ns, cpu_ns;
		struct d9__thread_growth growth;
	} threads[D9__STATE_THREADS];
	unsigned n_threads;
	bool threads_known;   /* from the look before, so that growth is since that */
	unsigned cpus;	      /* of the machine */
	uint64_t runqueue_ns; /* grows, also when threads end */
	bool throttles; /* some group tells */
	/* The figures of the open groups, and what to add for those since the start. */
	struct d9__throttled {
		uint64_t ns, times;
	} groups, others;
	uint64_t told_ns; /* in the latest event */
};

/* Figures of one look. */
struct d9__process_figures {
	uint64_t resident_bytes, descriptors, threads;
	bool has_throttled, has_steal, has_runqueue;
	uint64_t throttled_ns, throttled, steal_ns, runqueue_ns;
};

/* Of a state that was begun before, and ended, the figures go on. */
void d9__process_state_begin(struct d9__process_state *state);
void d9__process_state_end(struct d9__process_state *state);

/* Look; takes some 50 us. */
void d9__process_state_look(struct d9__process_state *state, uint64_t now_ns, struct d9__process_figures *out);

/* Look, and write the event into |own|. */
void d9__process_state_write(struct d9__process_state *state, struct d9__slot *own, uint64_t now_ns);

/* Look for the last time; write one if threads were throttled since the one before. */
void d9__process_state_write_last(struct d9__process_state *state, struct d9__slot *own,
				  uint64_t now_ns);

/* How long the limits of the cgroups have held threads since the latest look, or the start. */
uint64_t d9__process_state_throttled(const struct d9__process_state *state);

/* Throttling as the text of a cpu.stat has it, of either version of cgroups, added to |out|.  False: none is there. */
bool d9__process_state_parse_cgroup(const char *text, struct d9__process_figures *out);
