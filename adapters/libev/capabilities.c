/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "libev/capabilities.h"

#include <pthread.h>
#include <stdio.h>

#include <dial9/loop.h>

#include "libev/layout.h"
#include "libev/static.h"

struct d9__capabilities d9__libev_capabilities = D9__CAPABILITIES_INIT("libev");

static void say(const char *key, bool works, const char *yes, const char *no, const char *reason)
{
	d9__capability_set(&d9__libev_capabilities, key, works ? yes : no);
	if (!works)
		d9__capability_degrade(&d9__libev_capabilities, reason);
}

void d9__libev_capability_degrade(const char *key, const char *text, const char *reason)
{
	say(key, false, NULL, text, reason);
}

static void set_version(void)
{
	char text[32];

	snprintf(text, sizeof(text), "%d.%d", d9__libev.ev_version_major(),
		 d9__libev.ev_version_minor());
	d9__capabilities_set_version(&d9__libev_capabilities, text);
}

static void describe(void)
{
	const struct d9__libev_layout *layout = &d9__libev_layout;
	struct d9__capabilities *caps = &d9__libev_capabilities;
	char text[128];

	set_version();
	say("poll", layout->known, "full", "batch", layout->reason);
	d9__capability_set(caps, "park", "on");
	say("wake", layout->feeds, "full", "public", "libev's own feeding is bound inside it");
	d9__capability_set(caps, "spawn", "on");
	d9__capability_set(caps, "depth", layout->known ? "on" : "batch");
	say("lateness", layout->monotonic && layout->known, "on", "off",
	    layout->known ? "libev does not count in CLOCK_MONOTONIC" : layout->reason);
	d9__capability_set(caps, "task_end", "partial");
	if (d9__libev_is_static())
		d9__capability_set(caps, "mode", "static");
	d9__capability_count(caps, "slots_refused", &d9__libev_table.counts.refused);
	d9__capability_count(caps, "slots_foreign", &d9__libev_table.counts.foreign);
	if (layout->known) {
		snprintf(text, sizeof(text),
			 "counts=0x%x,arrays=0x%x,priority=0x%x,dummy=0x%x,release=0x%x,"
			 "acquire=0x%x,invoke=0x%x",
			 layout->counts, layout->arrays, layout->priority, layout->dummy,
			 layout->release, layout->acquire, layout->invoke);
		d9_library_describe("libev", "layout", text);
	}
	d9__capabilities_follow(caps);
}

void d9__libev_capability_describe(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static bool described;

	pthread_mutex_lock(&lock);
	if (!described)
		describe();
	described = true;
	pthread_mutex_unlock(&lock);
}

void d9__libev_capability_refuse(int err, bool record)
{
	if (d9__libev.ev_version_major && d9__libev.ev_version_minor)
		set_version();
	d9__capability_refuse(&d9__libev_capabilities, err,
			      "functions that everything needs are missing in it", record);
}
