/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Before: the time from where recording began to where the process's first thread ran its first
 * loop.  No loop could serve anything yet, so that it is in no share of the loop's time; it is told
 * beside.  When other threads began is not recorded.
 */

#pragma once

#include <stdint.h>

#include "analyze/analysis.h"

/* 0: there was none, |worker| is of another thread, or the trace begins later. */
uint64_t d9__before_ns(const struct d9__analysis *a, const struct d9__worker *worker);

/*
 * "62 % in load_config (svc.c:30)", in new memory: where samples found |worker|'s thread then.
 * NULL: too few did.
 */
char *d9__before_describe(const struct d9__analysis *a, const struct d9__worker *worker);
