/* SPDX-License-Identifier: Apache-2.0 */
/* The machine's effects on the process: the counters of ProcessStateEvent that only grow. */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <dial9/reader.h>

enum d9__machine_counter {
	D9__MACHINE_THROTTLED_NS, /* by the limit of its cgroup, and how often */
	D9__MACHINE_THROTTLED,
	D9__MACHINE_STEAL_NS,    /* that the host gave to other machines, of all CPUs */
	D9__MACHINE_RUNQUEUE_NS, /* its threads were ready without a CPU, all together */
	D9__MACHINE_COUNTERS
};

/* All zero: no samples. */
struct d9__machine {
	uint64_t first_ns, last_ns;
	uint64_t ready_ns;   /* of loops' threads, without a CPU, between the first and the last sample */
	uint64_t pending_ns; /* since the last */
	struct {
		bool known;
		uint64_t last, growth;
	} counters[D9__MACHINE_COUNTERS];
};

/* |event| is a ProcessStateEvent. */
void d9__machine_add(struct d9__machine *machine, const struct d9_event *event);

/* A loop's thread was ready without a CPU for |ns|, up to now. */
void d9__machine_add_ready(struct d9__machine *machine, uint64_t ns);
