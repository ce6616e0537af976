/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The differential test: scripts of feeding, clearing, draining and invoking run under libev's
 * drain and under ours.  Which callbacks ran in which order, with which events, and what was
 * pending then must be the same.
 */

#pragma once

#include <stdint.h>

#include <dial9/export.h>

struct ev_loop;

/* Run libev's drain and ours on |n| scripts from |seed| on.  Returns how many went otherwise. */
unsigned d9__libev_drain_differences(struct ev_loop *loop, uint64_t seed, unsigned n);

/*
 * Run |n| scripts from |seed| on under libev's drain and under ours, on a loop of their own.  For
 * tests. Returns how many differed; -1 if our drain is not in use.
 */
D9_API int d9__libev_drain_compare(uint64_t seed, unsigned n);
