/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profile: the wanted stack samples of one process, equal ones added up, and the functions at their
 * addresses.
 *
 *	struct d9__profile profile = { .wanted = { .to_ns = UINT64_MAX } };
 *
 *	status = d9__profile_read(&profile, "export", paths);
 *	for (size_t i = 0; !status && i < profile.n; i++)
 *		... profile.stacks[i] ...
 *	d9__profile_release(&profile);
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dial9/reader.h>

#include "analyze/analysis.h"
#include "export/long_calls.h"
#include "export/profile_calls.h"
#include "export/profile_kinds.h"
#include "export/profile_spans.h"
#include "symbol/symbolizer.h"
#include "text/units.h"

#define D9__PROFILE_FRAMES 1024 /* kept of each stack, innermost first; more count as cut */

/* The facts, besides the stack, in which samples must agree to be added up. */
enum d9__profile_by {
	D9__PROFILE_BY_NOTHING,
	D9__PROFILE_BY_CALLBACK,
	D9__PROFILE_BY_WORKER,
	D9__PROFILE_BY_THREAD,
	D9__PROFILE_BY_SPAN,
};

/* The unit that stacks are counted in. */
enum d9__profile_weight {
	D9__PROFILE_WEIGHT_OF_KIND, /* the unit of its kind */
	D9__PROFILE_WEIGHT_SAMPLES,
	D9__PROFILE_WEIGHT_NS,
	D9__PROFILE_WEIGHT_BYTES,
};

/* Which samples are wanted, and how. */
struct d9__profile_filter {
	const char *callback; /* its name or a glob(7) pattern; NULL: of all, and outside of callbacks */
	const char *span;     /* a name or pattern, too; a span at any depth */
	const char *loop;     /* the name of a loop; NULL: of all, and of threads that run none */
	enum d9__profile_kind kind;
	enum d9__profile_by by;
	enum d9__profile_weight weight;
	bool has_worker;
	uint64_t worker;
	uint64_t from_ns, to_ns; /* after the first event of the trace */
	uint64_t min_ns;	 /* only inside of calls that took so long; 0: also outside of calls */
	bool own_frames;	 /* frames of the recorder, too */
};

/* The allocations that the samples stand for, estimated. */
struct d9__profile_heap {
	uint64_t alloc_objects, alloc_bytes, live_objects, live_bytes;
};

/* Samples of one callback, thread, span and stack. */
struct d9__profile_stack {
	const struct d9__callback *callback; /* that ran, or will run when the idle task does; NULL: none */
	const struct d9__worker *worker;     /* NULL: another thread */
	uint64_t tid;	   /* 0: not told, or of allocations */
	const char *thread; /* the thread's name; NULL: not told */
	const char *span;  /* the innermost that the thread was inside of; NULL: none, or allocations */
	const struct d9__weight *weight; /* of samples on the CPU: their stratum; NULL: none */
	uint64_t samples; /* in the profile's unit */
	uint64_t taken;	  /* how many there were, of stacks from CpuSampleEvents */
	uint64_t cpu_ns;  /* on the CPU, by the weights of the samples */
	bool lonely; /* it is CPU time of |callback|, or of |worker|'s loop, that no sample met */
	struct d9__profile_heap heap; /* of allocations only */
	struct d9__off_time off_time;
	uint64_t off_ns; /* that |off_time| stands for */
	uint64_t ns;	/* of the first sample: which modules were mapped */
	bool truncated; /* outer frames are missing */
	size_t n;	/* 0: the stack was not recorded */
	uint64_t addresses[];
};

/* A sample outside of callbacks: whether its loop had been left then is told when it is entered
 * again. */
struct d9__profile_beside {
	struct d9__profile_stack *stack;
	uint64_t ns;
};

struct d9__profile {
	struct d9__profile_filter wanted;
	struct d9__profile_calls *calls; /* d9__profile_calls_want(); NULL: they are not */
	bool raw;   /* addresses are enough: the reader of the file names them */
	bool whole; /* the analysis is finished and kept, too, and a trace without samples is fine
		     */

	/* Set by d9__profile_read(). */
	struct d9_reader *reader;
	struct d9__processes processes;
	struct d9__analysis analysis;
	struct d9__symbolizer *symbolizer;
	struct d9__profile_stack **stacks; /* owned; in the order of their first samples */
	size_t n;
	struct d9__table by_content;
	struct d9__heap heap; /* of the allocations that are wanted */
	struct d9__profile_spans spans;
	struct d9__long_calls long_calls; /* of at least |wanted.min_ns| */
	struct d9__texts threads; /* names */
	struct d9__profile_beside *beside; /* the newest, D9__BESIDE_SAMPLES at most; owned */
	size_t n_beside;		   /* ever added */
	bool off_timed;		  /* time off the CPU is known */
	uint64_t period_ns;	  /* CPU time per on-CPU sample; 0: unknown */
	uint64_t origin_ns; /* of the first event that carries a time */
	uint64_t found;	  /* samples of this kind, wanted or not */
	const struct d9__profile_kind_facts
		*facts; /* of the unit, by |wanted.kind| and |wanted.weight| */
	struct d9__profile_kind_facts weighed;	    /* these, if not of the kind itself */
	uint64_t samples; /* in |stacks|, in the unit of |facts| */
	struct d9__profile_stack *latest; /* off-CPU sample, and when; NULL: none that is kept */
	uint64_t latest_ns, timed;	  /* |timed|: samples whose call's time is known */
	int err;			  /* of the analysis's callbacks */
};

/* "samples cover 35 % of the process's CPU time", or "" where they cover enough of it, or are of
 * something else. */
void d9__profile_share(const struct d9__profile *profile, char *buf, size_t size);

/* Return |n| of the profile's unit as text: "3 samples", "1.34 MiB", "25.0 ms". */
struct d9__units d9__profile_amount(const struct d9__profile *profile, uint64_t n);

/*
 * Read the traces |paths| for |command|.  0, or an exit status after one line on stderr: it cannot be read, holds several
 * processes, or no sample that is wanted.  Release in both cases.
 */
int d9__profile_read(struct d9__profile *profile, const char *command, char **paths);

/*
 * Call this after all output, with its error |err| below 0, or 0: print what was damaged or left
 * out.  Returns an exit status.
 */
int d9__profile_close(struct d9__profile *profile, const char *command, int err);

/* Find the frames at address |i| of |stack|, at least one.  Borrowed until the next call. */
void d9__profile_frames(struct d9__profile *profile, const struct d9__profile_stack *stack, size_t i,
			struct d9__frames *out);

/* The name of what used the CPU time of |stack|, which is a lonely one; |buf| has room for it. */
const char *d9__profile_lonely(const struct d9__profile_stack *stack, char *buf, size_t size);

void d9__profile_release(struct d9__profile *profile);
