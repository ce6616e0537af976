/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of calls, by the thread's own figures: where they sleep, what they compute. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/stalls.h"
#include "findings/check_parts.h"
#include "text/units.h"

/* ---- where it sleeps ---- */

void d9__finding_add_places(struct d9__findings *findings, struct d9__finding *finding,
			    const struct d9__callback *callback)
{
	char text[512] = "";
	size_t used = 0;

	for (size_t i = 0; i < callback->n_asleep && used < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s (%s calls)", i ? ", " : "",
					 callback->asleep[i].place, d9__units_count(callback->asleep[i].calls).text);
	if (callback->n_asleep)
		d9__finding_add_evidence(findings, finding, NULL, "found asleep in %s", text);
}

/* ---- what it computes ---- */

/* A fault costs a quarter of a microsecond at least: with all of them, one in so many parts of the time. */
#define FAULT_NS   250
#define FAULT_PART 10

/* In a guest of a busy host it costs up to so much; then the kernel's share of the time says what the faults take. */
#define FAULT_MOST_NS 20000

/* So many calls have to have many. */
#define FAULTY_CALLS 3

bool d9__finding_is_in_kernel(const struct d9__callback *callback)
{
	uint64_t cpu_ns = callback->inside.user_ns + callback->inside.system_ns;

	return cpu_ns >= 5 * D9__MS_NS && 10 * callback->inside.system_ns >= 6 * cpu_ns &&
	       2 * cpu_ns >= callback->inside.own_ns;
}

/* Size of a page on the machine that recorded; 4096, as on x86, where the trace does not say it or tells nonsense. */
static uint64_t page_bytes(const struct d9__metadata *metadata)
{
	const char *text = d9__metadata_value(metadata, "system.page_bytes");
	unsigned long long bytes = text ? strtoull(text, NULL, 10) : 0;

	return bytes >= 4096 && bytes <= (1 << 20) ? bytes : 4096;
}

static void page_faults(struct d9__findings *findings, const struct d9__callback *callback)
{
	uint64_t each = callback->inside.faults / callback->inside.calls;
	uint64_t ns = callback->inside.own_ns / callback->inside.calls;
	struct d9__shown_name name = d9__finding_name(callback);
	struct d9__finding *finding;

	finding = d9__finding_add(
		findings, ns > 50 * D9__MS_NS ? D9__CRITICAL : D9__WARNING, callback->inside.faults,
		"Keep the buffer for the next call (M_MMAP_THRESHOLD_ and M_TRIM_THRESHOLD_ in mallopt(3) have "
		"malloc keep it), or read in smaller pieces: in each call memory is asked of the kernel, filled "
		"with zeros page by page when it is touched first, and given back, by a large buffer that is "
		"allocated and freed or a mapping that is made and removed.",
		"%.*s has %s page faults a call, %s of memory that is new to it, and takes %s each time: keep the "
		"buffer.",
		name.len, name.text, d9__units_count(each).text,
		d9__units_bytes(page_bytes(&findings->analysis->metadata) * each).text, d9__units_ns(ns).text);
	d9__finding_set_callback(findings, finding, callback);
	d9__finding_set_brief(findings, finding, "%s page faults a call: keep the buffer", d9__units_count(each).text);
	d9__finding_add_evidence(
		findings, finding,
		&(struct d9__evidence){ .callback = callback,
					.task = callback->n_stalls ? callback->stalls[0].stall->task : 0 },
		"%s faults in %s calls of over 1 ms; %s of their CPU time in the kernel",
		d9__units_count(callback->inside.faults).text, d9__units_count(callback->inside.calls).text,
		d9__units_percent((double)callback->inside.system_ns /
				  (double)(callback->inside.user_ns + callback->inside.system_ns + 1)).text);
	d9__finding_explain(findings, finding, callback);
}

static bool takes_faults(const struct d9__callback *callback)
{
	uint64_t faults = callback->inside.faults, system_ns = callback->inside.system_ns;
	uint64_t cpu_ns = callback->inside.user_ns + system_ns;

	return FAULT_PART * FAULT_NS * faults >= cpu_ns ||
	       (4 * system_ns >= cpu_ns && FAULT_MOST_NS * faults >= system_ns);
}

void d9__check_page_faults(struct d9__findings *findings)
{
	const struct d9__callbacks *callbacks = &findings->analysis->callbacks;

	for (size_t i = 0; i < callbacks->n; i++) {
		const struct d9__callback *callback = callbacks->items[i];

		if (callback->inside.faulty_calls >= FAULTY_CALLS &&
		    2 * callback->inside.faulty_calls >= callback->inside.calls &&
		    takes_faults(callback) &&
		    !d9__finding_is_explained(findings, callback))
			page_faults(findings, callback);
	}
}
