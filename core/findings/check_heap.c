/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of allocations that are never freed. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/heap.h"
#include "analyze/metadata.h"
#include "findings/check_parts.h"
#include "text/units.h"

#define SITES_TOLD    5
#define WARNING_BYTES ((double)(1 << 20)) /* less is worth knowing, no more */
#define WARNING_PART  20.0		  /* or one in so many bytes that are live */
#define PATH_FRAMES   6

static uint64_t whole(double number)
{
	return number > 0 ? (uint64_t)(number + 0.5) : 0;
}

/* How much of what a place allocates it keeps. */
static struct d9__units part(const struct d9__heap_site *site)
{
	double one_in = site->allocated.count / site->live.count;
	struct d9__units out = { "all that it allocated" };

	if (one_in >= 1.05)
		snprintf(out.text, sizeof(out.text), "one in %.3g that it allocated", one_in);
	return out;
}

/* Return why allocations may count as live that are not; "": no reason is known. */
static const char *doubt(const struct d9__analysis *a)
{
	return a->losses.dropped_frees || a->heap.evicted || a->losses.events
		       ? "; some frees may be missing, so it may be less"
		       : "";
}

static void tell(struct d9__findings *findings, const struct d9__heap_site *site)
{
	const struct d9__analysis *a = findings->analysis;
	uint64_t ns = a->heap.last_ns - a->heap.first_ns, bytes = whole(site->live.bytes);
	bool much = site->live.bytes >= WARNING_BYTES || site->live.bytes * WARNING_PART >= a->heap.live.bytes;
	struct d9__heap_name name = d9__heap_site_name(site), path = d9__heap_site_path(site, PATH_FRAMES);
	struct d9__finding *finding;

	finding = d9__finding_add(
		findings, much ? D9__WARNING : D9__INFO, bytes,
		"Look for the way on which what this place allocates is not freed, or for what keeps it: a list, a table "
		"or a cache without a limit.  dial9 flamegraph --kind live shows the callers.",
		"Memory that %s asked for all through the trace was not freed: %s in about %s blocks in %s, %s%s.",
		name.text, d9__units_bytes(bytes).text, d9__units_count(whole(site->live.count)).text,
		d9__units_ns(ns).text, part(site).text, doubt(a));
	d9__finding_set_name(findings, finding, name.text, strcspn(name.text, " "));
	d9__finding_set_brief(findings, finding, "%s never freed, more all the time", d9__units_bytes(bytes).text);
	d9__finding_add_evidence(findings, finding,
				 &(struct d9__evidence){ .at_ns = a->heap.first_ns, .duration_ns = ns },
				 "%s of %s samples are live at the end; each third of the time has a sixth of their bytes at "
				 "least",
				 d9__units_count(site->live.samples).text,
				 d9__units_count(site->allocated.samples).text);
	if (path.text[0])
		d9__finding_add_evidence(findings, finding, NULL, "called by way of %s", path.text);
}

void d9__check_leak_by_site(struct d9__findings *findings)
{
	const struct d9__analysis *a = findings->analysis;
	const char *program = d9__metadata_value(&a->metadata, "program");
	size_t n, told = 0;
	struct d9__heap_site *sites = d9__heap_sites(&a->heap, program, &n);

	if (!sites && n)
		findings->err = -ENOMEM;
	for (size_t i = 0; sites && i < n && told < SITES_TOLD; i++) {
		if (!d9__heap_site_grows(&a->heap, &sites[i]))
			continue;
		tell(findings, &sites[i]);
		told++;
	}
	free(sites);
}
