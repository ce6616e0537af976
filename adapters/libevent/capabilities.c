/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "libevent/capabilities.h"

#include <stdatomic.h>

#include <dial9/loop.h>

#include "libevent/bases.h"
#include "libevent/fields.h"
#include "libevent/pools.h"
#include "libevent/static.h"

struct d9__capabilities d9__libevent_capabilities = D9__CAPABILITIES_INIT("libevent");

static void say(const char *key, bool works, const char *yes, const char *no, const char *reason)
{
	d9__capability_set(&d9__libevent_capabilities, key, works ? yes : no);
	if (!works)
		d9__capability_degrade(&d9__libevent_capabilities, reason);
}

/* No lock: a record that is used again counts on. */
static uint64_t zero_dispatches(void)
{
	unsigned n = atomic_load_explicit(&d9__libevent_bases_used, memory_order_relaxed);
	uint64_t sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += atomic_load_explicit(&d9__libevent_bases[i].zero_dispatches,
					    memory_order_relaxed);
	return sum;
}

void d9__libevent_capability_describe(const struct event_base *base, bool assigns, bool activations)
{
	struct d9__capabilities *caps = &d9__libevent_capabilities;

	d9__capabilities_set_version(caps, d9__real.event_get_version());
	d9_library_describe("libevent", "method", d9__real.event_base_get_method(base));
	if (d9__libevent_is_static())
		d9__capability_set(caps, "mode", "static");
	d9__capability_set(caps, "spawn", "on");
	d9__capability_set(caps, "task_end", "partial");
	/* Of events in the program's own structures nothing is told before they run. */
	d9__capability_set(caps, "armed_end", "full");
	d9__capability_set(caps, "park", "on");
	d9__capability_set(caps, "depth", d9__real.event_base_get_num_events ? "on" : "derived");
	/* A static one's calls inside one object are bound there, whatever the others do. */
	say("poll", assigns && !d9__libevent_is_static(), "full", "partial",
	    "libevent's own callbacks are bound inside it");
	say("task", d9__libevent_fields.current_event, "event", "slot",
	    "no unique offset of the running event");
	say("lateness", d9__libevent_fields.deadline, "on", "off",
	    "no unique offset of a timer's deadline");
	say("wake", activations, "full", "public",
	    "libevent's activation functions are out of reach");
	/* Activations name events, polls their stubs then: only deferred callbacks have wakes. */
	if (!d9__libevent_fields.current_event)
		d9__capability_set(caps, "wake", "partial");
	d9__capability_count(caps, "stubs_full", &d9__stubs_full);
	d9__capability_count(caps, "slots_refused", &d9__libevent_table.counts.refused);
	d9__capability_count(caps, "slots_foreign", &d9__libevent_table.counts.foreign);
	d9__capability_sum(caps, "zero_dispatches", zero_dispatches);
	d9__capabilities_follow(caps);
}

void d9__libevent_capability_refuse(int err, bool record)
{
	if (d9__real.event_get_version)
		d9__capabilities_set_version(&d9__libevent_capabilities,
					     d9__real.event_get_version());
	d9__capability_refuse(&d9__libevent_capabilities, err,
			      "functions that everything needs are missing in it", record);
}

void d9__libevent_capability_degrade_park(void)
{
	say("park", false, NULL, "off", "the backend's table is laid out like none we know");
}

void d9__libevent_capability_degrade_poll(const char *reason)
{
	say("poll", false, NULL, "partial", reason);
}
