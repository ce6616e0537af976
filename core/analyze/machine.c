/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "analyze/machine.h"

static const unsigned fields[D9__MACHINE_COUNTERS] = {
	[D9__MACHINE_THROTTLED_NS] = D9_PROCESS_STATE_CGROUP_THROTTLED_NS,
	[D9__MACHINE_THROTTLED] = D9_PROCESS_STATE_CGROUP_THROTTLED,
	[D9__MACHINE_STEAL_NS] = D9_PROCESS_STATE_STEAL_NS,
	[D9__MACHINE_RUNQUEUE_NS] = D9_PROCESS_STATE_RUNQUEUE_NS,
};

void d9__machine_add(struct d9__machine *machine, const struct d9_event *event)
{
	if (!machine->first_ns)
		machine->first_ns = event->timestamp_ns;
	else
		machine->ready_ns += machine->pending_ns;
	machine->pending_ns = 0;
	machine->last_ns = event->timestamp_ns;
	for (unsigned i = 0; i < D9__MACHINE_COUNTERS; i++) {
		const struct d9_value *value = d9_event_known(event, fields[i]);
		uint64_t now = d9_event_known_u64(event, fields[i], 0);

		if (!value || !value->present)
			continue;
		if (machine->counters[i].known && now > machine->counters[i].last)
			machine->counters[i].growth += now - machine->counters[i].last;
		machine->counters[i].known = true;
		machine->counters[i].last = now;
	}
}

void d9__machine_add_ready(struct d9__machine *machine, uint64_t ns)
{
	machine->pending_ns += ns;
}
