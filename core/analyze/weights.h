/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights: the CPU time that a stack sample stands for.  A CPU timer is served at ticks of the
 * kernel, so the place of a function in a burst of work decides how often it is met: of seven equal
 * callbacks the first has two thirds of its samples, the fourth a quarter too many.  Samples are
 * therefore told apart by where the loop's own events say that they are, and in each such stratum
 * they share the CPU time that readings give it:
 *
 * - a callback: the CPU part of its calls (time_parts.h);
 * - a loop's rounds, the time between them, and its waits: what else its thread used.
 *
 * A stratum of fewer than D9__SAMPLES_FEW samples joins the others of its function, or of its loop.
 * Samples of threads without a loop, and of loops without readings, stand for a period each.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

struct d9__analysis;

/* A stratum.  All zero is empty. */
struct d9__weight {
	uint64_t samples; /* on the CPU */

	/* Set by d9__weights_make(). */
	uint64_t cpu_ns;  /* by readings, whatever joined it */
	double sample_ns; /* for which a sample stands; 0: there are none */
	bool about;	  /* of the CPU time most is a share of its loop's, or an estimate */
	bool few;	  /* with all that joined it fewer than D9__SAMPLES_FEW samples */
	bool lonely;	  /* nothing that joined it has a sample: its CPU time has no stack */
};

/* At the end, when the accounts of all callbacks and loops are complete.  0 or -ENOMEM. */
int d9__weights_make(struct d9__analysis *analysis);

/* Return the CPU time of |n| samples of |weight|; NULL: of a thread without a loop. */
uint64_t d9__weight_ns(const struct d9__weight *weight, uint64_t n, uint64_t period_ns);
