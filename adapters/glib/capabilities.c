/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "glib/capabilities.h"

#include <stdio.h>

#include "glib/contexts.h"
#include "glib/dispatch.h"
#include "glib/real.h"
#include "glib/tables.h"
#include "glib/waits.h"

struct d9__capabilities d9__glib_capabilities = D9__CAPABILITIES_INIT("glib");

void d9__glib_capability_degrade(const char *key, const char *text, const char *reason)
{
	d9__capability_set(&d9__glib_capabilities, key, text);
	d9__capability_degrade(&d9__glib_capabilities, reason);
}

void d9__glib_capability_tell_refusals(void)
{
	static const char reason[] = "the kernel refused to make pages of some modules writable";

	if (atomic_load_explicit(&d9__glib_table.counts.refused, memory_order_relaxed) == 0)
		return;
	d9__glib_capability_degrade("task_end", "return", reason);
	d9__glib_capability_degrade("spawn", "name", reason);
	d9__glib_capability_degrade("wake", "round", reason);
}

static void say(const char *key, bool works, const char *yes, const char *no, const char *reason)
{
	if (works)
		d9__capability_set(&d9__glib_capabilities, key, yes);
	else
		d9__glib_capability_degrade(key, no, reason);
}

void d9__glib_capability_set_version(void)
{
	static const char *const parts[] = { "glib_major_version", "glib_minor_version",
					     "glib_micro_version" };
	unsigned numbers[3] = { 0 };
	char version[64];

	for (unsigned i = 0; i < 3; i++) {
		const guint *part = d9__images_resolve(&d9__glib_images, parts[i]);

		numbers[i] = part ? *part : 0;
	}
	snprintf(version, sizeof(version), "%u.%u.%u", numbers[0], numbers[1], numbers[2]);
	d9__capabilities_set_version(&d9__glib_capabilities, version);
}

static void count(void)
{
	struct d9__capabilities *caps = &d9__glib_capabilities;

	d9__capability_count(caps, "tables", &d9__glib_tables);
	d9__capability_count(caps, "stubs_full", &d9__glib_stubs_full);
	d9__capability_count(caps, "tables_unpatchable", &d9__glib_unpatchable);
	d9__capability_count(caps, "unseen", &d9__glib_unseen);
	d9__capability_count(caps, "polls_unbound", &d9__glib_polls_unbound);
	d9__capability_count(caps, "slots_refused", &d9__glib_table.counts.refused);
	d9__capability_count(caps, "slots_foreign", &d9__glib_table.counts.foreign);
}

void d9__glib_capability_describe(bool is_pipe, bool exported)
{
	const struct d9__glib_waits_seen *waits = &d9__glib_waits_seen;
	bool woken = waits->fd >= 0;

	d9__glib_capability_set_version();
	say("poll", exported, "full", "partial", "a table of GLib's could not be patched");
	say("park", is_pipe || waits->polled, "all", "query-check", "libglib's waits are not seen");
	if (!woken)
		d9__glib_capability_degrade("wakefd", "off", "a wake-up's descriptor could not be captured");
	else
		say("wakefd", !is_pipe, "eventfd", "pipe", "GLib has no eventfd");
	say("depth", d9__glib_pending_at != 0, "exact", "lower-bound",
	    "what is pending in a round is not known");
	d9__capability_set(&d9__glib_capabilities, "scan", "complete");
	d9__capability_set(&d9__glib_capabilities, "task_end", "destroy+finalize");
	d9__capability_set(&d9__glib_capabilities, "spawn", "site");
	d9__capability_set(&d9__glib_capabilities, "wake", woken ? "exact" : "round");
	d9__capability_set(&d9__glib_capabilities, "lateness", "on");
	d9__glib_capability_tell_refusals();
	count();
	d9__capabilities_follow(&d9__glib_capabilities);
}
