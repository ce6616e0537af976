/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU time: what a park and an unpark say about the thread's CPU time and its wait for a CPU.
 *
 * Reading costs more than everything else that is recorded, so only some pairs are measured: one
 * in a number of pairs, those behind a long active period, and those 10 ms behind the one before;
 * never two in a millisecond.  In the others the thread is taken to have run all the time since it
 * was last known.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#define D9__CPU_STEP_NS 4096u /* values are multiples: 1 % of a millisecond costs no bytes */
#define D9__CPU_LONG_NS 1000000u /* what counts as long, and the least time between readings */

struct d9__cpu_reading {
	uint64_t run_ns;  /* on a CPU */
	uint64_t wait_ns; /* runnable without one; 0 where |has_wait| is false, as is the next */
	uint64_t arrivals; /* how often it got one, after a sleep or such a wait */
	bool has_wait;
};

/* The kernel's counters of a thread; they only grow. */
struct d9__cpu_usage {
	uint64_t voluntary, involuntary; /* switches: by a wait, by others that want the CPU */
	uint64_t minor, major;           /* page faults: without a disk's help, with it */
	uint64_t user_ns, system_ns;     /* by the kernel's own division; the sum is that of a reading */
};

/* All owned by one thread. */
struct d9__cpu_time {
	uint64_t park_cpu, unpark_cpu;  /* last written, unrounded; never go down */
	uint64_t unpark_ns;             /* when it was written */
	uint64_t park_ns;
	struct d9__cpu_reading last;    /* newest reading, at |read_ns| */
	uint64_t read_ns;               /* 0: none yet */
	struct d9__cpu_usage usage;     /* newest: an unpark's that was measured, or a long poll's */
	uint64_t parked_ns;             /* spent parked since the newest reading */
	uint64_t sleeps;                /* parks since then that slept */
	uint64_t untold_ns;             /* wait for a CPU that no park or poll tells, */
	uint64_t untold_from_ns;        /* since then */
	uint64_t pair_ns;               /* park of the latest measured pair; 0: none yet */
	uint32_t pairs;                 /* unmeasured since the last measured one */
	bool measured;                  /* the park was: read at the unpark as well */
	bool was_long;                  /* a poll over D9__CPU_LONG_NS since the last park */
	bool schedstat_off;             /* its descriptor is not ours any more, or never was */
	int fd;                         /* schedstat, or -1; only pread() */
	uint64_t opened_ns;             /* latest attempt */
	uint32_t tid;
};

/* Time in a long poll without the CPU: asleep, and preempted.  |grown| is that of the time since the reading before it. */
struct d9__cpu_off {
	uint64_t blocked_ns, run_queue_ns;
	struct d9__cpu_usage grown;
};

/*
 * For how long thread |tid| was ready without a CPU so far, into |*wait_ns|; false: it is not
 * known. It opens a file, which takes some microseconds.
 */
bool d9__cpu_time_ready(uint32_t tid, uint64_t *wait_ns);

void d9__cpu_time_init(struct d9__cpu_time *cpu, uint32_t tid);

/*
 * Open the descriptor now, and not at the first reading: a program that runs out of descriptors later keeps its
 * figures, and it is then that they are wanted.  Keeps errno.
 */
void d9__cpu_time_open(struct d9__cpu_time *cpu, uint64_t now_ns);

/* Close the descriptor, if it is still what was opened. */
void d9__cpu_time_release(struct d9__cpu_time *cpu);

/* One pair in |n| is measured; the number of DIAL9_SCHED_WAIT_SAMPLE_RATE. */
void d9__cpu_time_set_rate(uint32_t n);

/* The thread's CPU time for a park at |now_ns|. */
uint64_t d9__cpu_time_park(struct d9__cpu_time *cpu, uint64_t now_ns);

/*
 * The wait for a CPU since |*from_ns| that neither an unpark nor a long poll told, once it is worth
 * an event; else 0.  Where waits are short few of them are measured, and a thread that is put aside
 * in one of the others would seem to sleep.
 */
uint64_t d9__cpu_time_take_untold(struct d9__cpu_time *cpu, uint64_t *from_ns);

/* The thread's CPU time for an unpark; |*wait_ns| is the wait since the park, 0 if not measured. */
uint64_t d9__cpu_time_unpark(struct d9__cpu_time *cpu, uint64_t now_ns, uint64_t *wait_ns);

/*
 * A poll of |poll_ns|, over D9__CPU_LONG_NS, ended at |now_ns|.  True with |*off| filled if there was a reading
 * before it.  Who slept made a voluntary switch: what was lost without one others took, or the machine did.
 */
bool d9__cpu_time_long_poll(struct d9__cpu_time *cpu, uint64_t now_ns, uint64_t poll_ns,
			    struct d9__cpu_off *off);

/* Tests only: replaces the kernel; NULL restores it. */
void d9__cpu_time_fake(bool (*read)(struct d9__cpu_reading *out), void (*usage)(struct d9__cpu_usage *out));
