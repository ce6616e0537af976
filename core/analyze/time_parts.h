/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time parts: where the time of calls, spans and loops went.  Elapsed time has five parts, which
 * sum to it exactly:
 *
 * - on the CPU, by the thread's CPU time;
 * - ready: it could run and had no CPU (run queue, CPU limit, time that the host gave to others);
 * - blocked: asleep inside a callback;
 * - waiting, of spans and loops only: between calls;
 * - unknown: what no reading covers; it is never spread over the others.
 *
 * The readings that are used, best first:
 *
 * 1. A call of D9__STALL_NS and more has a reading at its end (OffCpuEvent): its parts are known.
 * 2. Waits that were told one by one (BlockingCallEvent) are blocked time.
 * 3. All other calls share the CPU time of their active period, from an unpark to the next park,
 *    and what the thread was ready in it (RunQueueEvent):
 *    short ones by their lengths, so that it is known in sum per callback; a long one has what the
 *    others cannot have used.
 * 4. Stack samples count where at least D9__SAMPLES_FEW of them are expected, and only within what
 *    1 to 3 leave unknown.
 *
 * Readings may contradict each other.  Then the kernel is believed before the program, so that no
 * function is accused of time that was taken from it: ready time counts first, blocked time next,
 * and CPU time has the rest; no part is ever larger than what is left of the elapsed time.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct d9__json;
struct d9__stall;

/* Of fewer samples no share is told. */
#define D9__SAMPLES_FEW 3

/* Functions that are told by name. */
#define D9__TOLD_FUNCTIONS 4

/* Functions that block, the one with most time first. */
struct d9__told_time {
	struct {
		const char *function; /* borrowed */
		uint64_t ns;
	} in[D9__TOLD_FUNCTIONS];
	unsigned n;
};

/* |ns| in |function|; the same function is always the same pointer. */
void d9__time_told_add(struct d9__told_time *told, const char *function, uint64_t ns);

/* Take |before|, which was all of it once, out of |told|. */
void d9__time_told_subtract(struct d9__told_time *told, const struct d9__told_time *before);

/* The parts of the time of one callback, call, kind of spans, or loop.  All zero is nothing. */
struct d9__account {
	uint64_t on_cpu_ns, ready_ns, blocked_ns;
	uint64_t by_period_ns; /* of the elapsed time, what shared the readings of its active period
				*/
	uint64_t samples;      /* on-CPU ones inside */
	uint64_t major_faults; /* that waited for a disk, in calls with readings of their own */
	struct d9__told_time told;  /* as they were told: their sum may be more than blocked_ns */
};

/* Add |from| to |account|. */
void d9__time_account_add(struct d9__account *account, const struct d9__account *from);

/* The parts of an elapsed time; they sum to |total_ns|. */
struct d9__parts {
	uint64_t total_ns, on_cpu_ns, ready_ns, blocked_ns, waiting_ns, unknown_ns;
	bool by_samples;  /* the CPU's part is no reading, but what samples stand for */
	bool few_samples; /* they would be told, and there are too few */
};

/*
 * Of |total_ns|, of which |waiting_ns| lay between calls.  A sample stands for |period_ns|; 0: not
 * known, and samples are left out.
 */
struct d9__parts d9__time_parts_of(const struct d9__account *account, uint64_t total_ns,
			      uint64_t waiting_ns, uint64_t period_ns);

/*
 * "62 % on CPU, 30 % blocked in fsync, 6 % ready, 2 % unknown" into |buf|: parts of 0.5 % and more,
 * the largest first; returns |buf|.
 */
const char *d9__time_parts_text(const struct d9__parts *parts, const struct d9__account *account,
			   char *buf, size_t size);

/* "time": {...} as in REPORT-JSON.md; |waits|: the time has a part between calls. */
void d9__time_parts_json(struct d9__json *json, const struct d9__parts *parts,
		    const struct d9__account *account, bool waits);

/* ---- the active period of a worker ---- */

/* Callbacks and spans of one period that are told apart, and long calls without readings of their
 * own. */
#define D9__PERIOD_STAYS 64
#define D9__PERIOD_LONGS 32

/* Functions and spans inside one call that are told apart. */
#define D9__CALL_STAYS 32

struct d9__time_stay {
	struct d9__account *account;
	uint64_t ns;
	uint64_t told_ns; /* of it, in waits that were told */
};

struct d9__period {
	/* Of calls with readings of their own: elapsed time and its parts. */
	uint64_t read_ns, on_cpu_ns, ready_ns, blocked_ns;
	uint64_t told_ns; /* blocked in others, as these tell */
	uint64_t long_ns; /* of long calls without readings, the rest */
	uint64_t untold_ready_ns; /* ready without a CPU, and in none of the calls with readings */
	struct d9__time_stay shorts[D9__PERIOD_STAYS];
	unsigned n_shorts;
	struct {
		struct d9__account *account;
		struct d9__stall *stall; /* an owned reference, or NULL */
		uint64_t ns;
	} longs[D9__PERIOD_LONGS];
	unsigned n_longs;

	/* The calls inside the call that is open, or ended last. */
	struct d9__time_stay inside[D9__CALL_STAYS];
	unsigned n_inside;
	struct d9__told_time told;

	/* A call that has ended, and whose reading comes next if it has one. */
	struct {
		bool valid;
		uint64_t task, ns, told_ns;
		struct d9__time_stay self;
		struct d9__stall *stall; /* an owned reference, or NULL */
	} pending;
};

/* A worker's call that has ended. */
struct d9__period_call {
	uint64_t task, ns;
	bool has_reading;	   /* one may come */
	uint64_t told_ns;	   /* in waits that were told, also of functions inside */
	struct d9__time_stay self; /* without functions inside that count for themselves */
	struct d9__stall *stall;   /* NULL: it is no long one */
};

/* A call begins. */
void d9__time_period_begin(struct d9__period *period);

/* Inside the open call something with an |account| of its own took |ns|, |told_ns| of it told as
 * blocked. */
void d9__time_period_inside(struct d9__period *period, struct d9__account *account, uint64_t ns,
		       uint64_t told_ns);

/*
 * Outside of calls |account| took |ns|; or it is a short call with nothing inside, and nothing
 * told.
 */
void d9__time_period_short(struct d9__period *period, struct d9__account *account, uint64_t ns);

/* A call has ended. */
void d9__time_period_call(struct d9__period *period, const struct d9__period_call *call);

/* Take a reading for the call of |task| that ended last. */
struct d9__call_reading {
	uint64_t blocked_ns, ready_ns;
	uint64_t cpu_ns; /* at most so much was used; UINT64_MAX: not told */
};
void d9__time_period_read(struct d9__period *period, uint64_t task,
		     const struct d9__call_reading *reading);

/* How long its calls were off the CPU, as they tell. */
uint64_t d9__time_period_off_cpu(struct d9__period *period);

/* The worker was ready without a CPU for |ns| of the period, beside the calls with readings. */
void d9__time_period_ready(struct d9__period *period, uint64_t ns);

/*
 * The period ends: its worker was awake for |awake_ns| and used |cpu_ns| of CPU (UINT64_MAX: not
 * known).  Adds the parts to |worker|'s account and to those of its calls.
 */
void d9__time_period_end(struct d9__period *period, struct d9__account *worker, uint64_t awake_ns,
		    uint64_t cpu_ns);

/* Forget it, with its references. */
void d9__time_period_release(struct d9__period *period);
