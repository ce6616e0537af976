/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers for people: durations, counts, bytes, shares, moments. */

#pragma once

#include <stddef.h>
#include <stdint.h>

/* Room for any of the texts below. */
#define D9__UNITS_MAX 96

/* A text in itself, so that several fit into one printf(). */
struct d9__units {
	char text[D9__UNITS_MAX];
};

struct d9__units d9__units_ns(uint64_t ns);       /* "950 ns", "12.3 us", "4.71 ms", "81.0 s" */
struct d9__units d9__units_count(uint64_t n);     /* "210,639" */
struct d9__units d9__units_bytes(uint64_t bytes); /* "1.34 MiB" */
struct d9__units d9__units_percent(double share); /* "14.7 %" of 0.147 */

/* Since the start of the trace: "+3.809489 s". */
struct d9__units d9__units_offset(uint64_t start_ns, uint64_t ns);

/* ns since 1970 as "2026-05-15T17:55:10.175979831Z"; empty for 0. */
struct d9__units d9__units_wall(uint64_t wall_ns);

/* ns since 1970 for people, to milliseconds: "2026-05-15 17:55:10.175 UTC"; empty for 0. */
struct d9__units d9__units_wall_short(uint64_t wall_ns);

/* The time of day alone: "17:55:10.175"; empty for 0. */
struct d9__units d9__units_wall_clock(uint64_t wall_ns);
