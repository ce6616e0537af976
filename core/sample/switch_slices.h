/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Switch slices: where sampled threads leave the CPU, each time, with their stacks, for 100 ms in 10 s.
 *
 * A sample costs about a microsecond and 8 KiB, which is too much for all the time.  The share is in the metadata
 * (sched.switch_duty), and readers scale by it.  Flush thread only.
 */

#pragma once

#include <stdint.h>

#include "ring/slot.h"

/*
 * A tick, after d9__sampled_look(): begin a slice, go on with it, or end it.  Returns when the next tick is to be. What
 * is to be said of the source is in |state|, of D9__PERF_REASON_LEN bytes.
 */
uint64_t d9__switch_slices_tick(struct d9__slot *own, uint64_t now_ns, char *state);

/* Write what is left into |own|, which may be NULL, and close all. */
void d9__switch_slices_end(struct d9__slot *own, uint64_t now_ns);

/* The next slice is the first, of another recorder.  In a forked child: see d9__perf_sampler_forget(). */
void d9__switch_slices_forget(void);
