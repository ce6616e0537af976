/* SPDX-License-Identifier: Apache-2.0 */
/* Figures sampled at intervals: queue depth, registered tasks, what the process used. */

#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A number that goes up and down.  All zero: no samples. */
struct d9__gauge {
	uint64_t samples, sum, max, max_at_ns, last;
};

void d9__gauge_add(struct d9__gauge *gauge, uint64_t ns, uint64_t value);

/* 0 without samples. */
double d9__gauge_mean(const struct d9__gauge *gauge);

/* Counters of getrusage(2), in the order of ProcessResourceUsageEvent. */
enum d9__usage_field {
	D9__USAGE_USER_NS,
	D9__USAGE_SYSTEM_NS,
	D9__USAGE_MAX_RSS_BYTES,
	D9__USAGE_MINOR_FAULTS,
	D9__USAGE_MAJOR_FAULTS,
	D9__USAGE_BLOCK_INPUTS,
	D9__USAGE_BLOCK_OUTPUTS,
	D9__USAGE_VOLUNTARY_SWITCHES,
	D9__USAGE_INVOLUNTARY_SWITCHES,
	D9__USAGE_FIELDS
};

/* All zero: no samples. */
struct d9__resource_usage {
	uint64_t samples, first_ns, last_ns;
	uint64_t last[D9__USAGE_FIELDS];
	uint64_t growth[D9__USAGE_FIELDS]; /* sums of positive differences; max_rss: the maximum */
	uint64_t recorder_ns;		   /* CPU time of the recorder, at the last */
	uint64_t recorder_growth_ns;
	uint64_t program_ns; /* CPU time of all else between samples that follow each other:
				recording was on */
	double cores_max;                  /* CPU time per wall time, most between two samples */
	uint64_t cores_max_at_ns;
};

void d9__usage_add(struct d9__resource_usage *usage, uint64_t ns,
		   const uint64_t values[D9__USAGE_FIELDS], uint64_t recorder_ns);

/* CPU time per wall time over all samples; 0 with fewer than two. */
double d9__usage_cores(const struct d9__resource_usage *usage);
