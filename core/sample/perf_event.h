/* SPDX-License-Identifier: Apache-2.0 */
/* Perf event: the kernel writes samples of stacks into a ring, for a processor or a thread. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sample/perf_records.h"

#define D9__PERF_REASON_LEN 256

/* The event to sample, and the thread or processor. */
struct d9__perf_want {
	int tid;	/* -1: all processes */
	int cpu;	/* -1: wherever |tid| runs */
	uint32_t hz;	/* of CPU time; 0: each time the thread leaves the CPU */
	uint32_t stack; /* bytes of it, at most; a multiple of 8 */
	size_t ring;	/* bytes, a power of 2; less where the kernel allows no more */
	bool no_kernel; /* leave the kernel's frames out, which takes less of a privilege */
};

/* One that is open; all zero is none. */
struct d9__perf_event {
	int fd_plus_1;
	void *map;   /* struct perf_event_mmap_page, and the ring behind it */
	size_t ring; /* bytes of the ring */
	uint64_t lost; /* of which drains have told */
};

/*
 * Open and start it.  0, or -errno: -EACCES or -EPERM where it is not permitted, -ENOMEM also where no memory may be
 * locked for the ring, -ESRCH where the thread is gone.
 */
int d9__perf_open(struct d9__perf_event *event, const struct d9__perf_want *want);

/* Nothing is sampled from now on; what is in the ring stays. */
void d9__perf_stop(const struct d9__perf_event *event);

void d9__perf_close(struct d9__perf_event *event);

/* Call |fn| for each sample in the ring.  Returns how many samples the kernel had no room for, since the last time. */
uint64_t d9__perf_drain(struct d9__perf_event *event, void (*fn)(void *arg, struct d9__perf_record *record),
			void *arg);

/*
 * Why |want| could not be had, with |err| of d9__perf_open(), and what would help: "perf_event_open(): Permission
 * denied at kernel.perf_event_paranoid=2; it takes 0, or CAP_PERFMON".
 */
void d9__perf_explain(char reason[D9__PERF_REASON_LEN], const struct d9__perf_want *want, int err);
