/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of profiles: the events that their stacks come from, and their units. */

#pragma once

enum d9__profile_kind {
	D9__PROFILE_KIND_CPU,	  /* where threads computed */
	D9__PROFILE_KIND_OFF_CPU, /* where they blocked in callbacks, or were when the kernel took
				     them off the CPU */
	D9__PROFILE_KIND_HEAP,	  /* where they allocated */
	D9__PROFILE_KIND_LIVE,	  /* where they allocated memory that was never freed */
	D9__PROFILE_KIND_IDLE,	  /* where idle tasks were armed */
	D9__PROFILE_KINDS
};

/* The unit of a kind's counts. */
enum d9__profile_unit {
	D9__PROFILE_SAMPLES,
	D9__PROFILE_MICROSECONDS,
	D9__PROFILE_NANOSECONDS,
	D9__PROFILE_BYTES, /* of allocations, estimated */
};

struct d9__profile_kind_facts {
	const char *word;    /* of --kind */
	const char *samples; /* "on-CPU samples": for messages about a trace that lacks them */
	const char *what;    /* "allocated bytes": the unit */
	const char
		*title; /* "not freed": follows the sum of all; for samples, precedes that word */
	enum d9__profile_unit unit;
	const char *pprof_type; /* of the value that pprof shows first */
};

/* By enum d9__profile_kind; ends with one without a word. */
extern const struct d9__profile_kind_facts d9__profile_kinds[];

/* Of --kind off-cpu, if all its samples are of calls that blocked. */
extern const struct d9__profile_kind_facts d9__profile_blocking;

/* Of --kind cpu, if the trace tells for how much CPU time a sample stands. */
extern const struct d9__profile_kind_facts d9__profile_timed;

/* Of --kind off-cpu, if some samples are of switches. */
extern const struct d9__profile_kind_facts d9__profile_away;
