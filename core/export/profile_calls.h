/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of callbacks in a profile's trace, with the spans and blocking calls inside of them:
 * the work of each worker over time, for charts.  They nest: a call that lasts longer than the one
 * around it is cut at its end.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dial9/reader.h>

#include "analyze/texts.h"

#define D9__PROFILE_CALLS_MAX 1000000u /* kept; more are left out, and that is told */

struct d9__callback;
struct d9__profile;
struct d9__worker;

struct d9__profile_call {
	uint64_t start_ns, end_ns; /* after the first event; some of it lies in --from and --to */
	uint64_t worker;
	size_t number; /* their order in the trace: of two at the same time, the outer one is later
			*/
	const struct d9__callback *callback; /* NULL: a span, or a call that blocked */
	const char *name;		     /* then: the span, or the function */
};

/* All zero is empty. */
struct d9__profile_calls {
	struct d9__profile_call *items; /* by worker, then by start, the longer ones first */
	size_t n;
	struct d9__texts names;
	int err; /* -ENOMEM */
};

/*
 * Let |profile| keep its calls in |calls|, which must outlive it.  Call this before
 * d9__profile_read().
 */
void d9__profile_calls_want(struct d9__profile_calls *calls, struct d9__profile *profile);

/* Take |event|, after the analysis of |profile| did.  0 or -ENOMEM. */
int d9__profile_calls_take(struct d9__profile *profile, const struct d9_event *event);

/* After the last event: sort them.  0 or -ENOMEM. */
int d9__profile_calls_finish(struct d9__profile *profile);

void d9__profile_calls_release(struct d9__profile_calls *calls);
