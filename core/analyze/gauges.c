/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "analyze/gauges.h"
#include "base/time.h"

/* Shorter intervals say little about how many cores were in use. */
#define CORES_MIN_NS (10 * D9__MS_NS)

/* The recorder samples more often while the process records or computes: between others it was off,
 * or all was at rest. */
#define FOLLOWS_NS (3 * D9__SECOND_NS)

void d9__gauge_add(struct d9__gauge *gauge, uint64_t ns, uint64_t value)
{
	if (gauge->samples == 0 || value > gauge->max) {
		gauge->max = value;
		gauge->max_at_ns = ns;
	}
	gauge->samples++;
	gauge->sum += value;
	gauge->last = value;
}

double d9__gauge_mean(const struct d9__gauge *gauge)
{
	return gauge->samples ? (double)gauge->sum / (double)gauge->samples : 0;
}

static void note_cpu(struct d9__resource_usage *usage, uint64_t ns,
		     const uint64_t values[D9__USAGE_FIELDS], uint64_t recorder_ns)
{
	uint64_t wall_ns = ns - usage->last_ns, cpu_ns = 0, own_ns = recorder_ns;

	for (unsigned i = D9__USAGE_USER_NS; i <= D9__USAGE_SYSTEM_NS; i++)
		if (values[i] > usage->last[i])
			cpu_ns += values[i] - usage->last[i];
	if (wall_ns >= CORES_MIN_NS && (double)cpu_ns / (double)wall_ns > usage->cores_max) {
		usage->cores_max = (double)cpu_ns / (double)wall_ns;
		usage->cores_max_at_ns = usage->last_ns;
	}
	/* Another thread of the recorder's begins at 0. */
	if (recorder_ns >= usage->recorder_ns)
		own_ns -= usage->recorder_ns;
	usage->recorder_growth_ns += own_ns;
	if (wall_ns <= FOLLOWS_NS && cpu_ns > own_ns)
		usage->program_ns += cpu_ns - own_ns;
}

void d9__usage_add(struct d9__resource_usage *usage, uint64_t ns,
		   const uint64_t values[D9__USAGE_FIELDS], uint64_t recorder_ns)
{
	if (usage->samples++ == 0) {
		usage->first_ns = ns;
		usage->growth[D9__USAGE_MAX_RSS_BYTES] = values[D9__USAGE_MAX_RSS_BYTES];
	} else {
		note_cpu(usage, ns, values, recorder_ns);
		for (unsigned i = 0; i < D9__USAGE_FIELDS; i++)
			if (values[i] > usage->last[i] && i != D9__USAGE_MAX_RSS_BYTES)
				usage->growth[i] += values[i] - usage->last[i];
	}
	if (values[D9__USAGE_MAX_RSS_BYTES] > usage->growth[D9__USAGE_MAX_RSS_BYTES])
		usage->growth[D9__USAGE_MAX_RSS_BYTES] = values[D9__USAGE_MAX_RSS_BYTES];
	usage->last_ns = ns;
	usage->recorder_ns = recorder_ns;
	for (unsigned i = 0; i < D9__USAGE_FIELDS; i++)
		usage->last[i] = values[i];
}

double d9__usage_cores(const struct d9__resource_usage *usage)
{
	uint64_t wall_ns = usage->last_ns - usage->first_ns;

	if (usage->samples < 2 || wall_ns == 0)
		return 0;
	return (double)(usage->growth[D9__USAGE_USER_NS] + usage->growth[D9__USAGE_SYSTEM_NS]) /
	       (double)wall_ns;
}
