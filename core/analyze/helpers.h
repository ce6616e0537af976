/* SPDX-License-Identifier: Apache-2.0 */
/* Work that loops hand to helper threads: how long it waits there, and how long it takes. */

#pragma once

#include <stdint.h>

#include "analyze/callbacks.h"

struct d9__helper_run {
	uint64_t at_ns; /* its end */
	uint64_t task;  /* whose callback handed it over; 0: none */
	const struct d9__callback *by; /* that callback; NULL: not known */
	uint64_t wait_ns, run_ns;
	uint64_t behind_ns; /* of the wait, helper threads ran something: d9__helper_behind() */
};

/* The newest runs of all helper threads, in the order in which they ended.  All zero is empty. */
#define D9__HELPER_RUNS 256
struct d9__helper_runs {
	struct {
		uint64_t start_ns, end_ns;
	} items[D9__HELPER_RUNS]; /* a ring */
	uint64_t n;		  /* ever added */
};

/* |run| ended: tell how much of its wait lay behind others, and keep it. */
void d9__helper_behind(struct d9__helper_runs *runs, struct d9__helper_run *run);

/* Callbacks that hand over the runs of one function, told apart. */
#define D9__HELPER_GIVERS 8

/* The runs of one function that one callback handed over. */
struct d9__helper_giver {
	const struct d9__callback *by;
	uint64_t runs, wait_ns, run_ns, behind_ns;
	struct d9__helper_run longest, slowest; /* as below */
};

/* All runs of one function. */
struct d9__helper {
	struct d9__helper_giver givers[D9__HELPER_GIVERS];
	size_t n_givers;
	uint64_t runs, wait_ns, run_ns, behind_ns;
	struct d9__helper_run longest; /* that waited longest */
	struct d9__helper_run slowest; /* that ran longest */
};

/* |callback| ran on a helper thread.  0 or -ENOMEM. */
int d9__helper_ran(struct d9__callback *callback, const struct d9__helper_run *run);
