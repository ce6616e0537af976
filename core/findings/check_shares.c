/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of shares: loops at their limit, and who has most of their time. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "findings/check_parts.h"
#include "findings/owners.h"
#include "text/units.h"

/* A loop is at its limit if it was busy for so long without a break, or for so large a part of the trace. */
#define LONG_NS   (3 * D9__SECOND_NS)
#define LONG_PART 5

/* Of less time no share is told. */
#define LEAST_NS D9__SECOND_NS

/* Owners that are told. */
#define OWNERS_TOLD 3

static bool is_saturated(const struct d9__worker *worker)
{
	const struct d9__loop_time *time = &worker->loop_time;

	return time->busy.longest_ns >= LONG_NS ||
	       (time->busy.ns >= LEAST_NS && LONG_PART * time->busy.ns >= d9__loop_time_total_ns(time));
}

/* Whether an earlier check says of |callback| that it has the loop. */
static bool is_accused(const struct d9__findings *findings, const struct d9__callback *callback)
{
	for (size_t i = 0; i < findings->n; i++) {
		const struct d9__finding *finding = findings->items[i];

		if (finding->callback == callback && finding->severity < D9__INFO &&
		    (finding->about == D9__ABOUT_TIME || finding->about == D9__ABOUT_WAKES))
			return true;
	}
	return d9__finding_is_explained(findings, callback);
}

static void saturated(struct d9__findings *findings, const struct d9__worker *worker,
		      const struct d9__owners *owners)
{
	const struct d9__owner *most = &owners->items[0];
	char who[512], name[128];
	struct d9__finding *finding;
	double share = d9__owners_share(owners, owners->awake_ns);

	d9__owners_text(findings->analysis, owners, OWNERS_TOLD, who, sizeof(who));
	finding = d9__finding_add(
		findings, D9__INFO, owners->awake_ns,
		"Look at the largest owner first: with more to do this loop falls behind, and all that it serves waits. "
		"Give part of it to another thread or process, or let each call do less.",
		"Worker %" PRIu64 " is at its limit: awake for %.0f %% of the time that the machine left it, busy for "
		"%s without a break (%s).",
		worker->id, 100 * share, d9__units_ns(worker->loop_time.busy.longest_ns).text, who);
	if (most->callback)
		d9__finding_set_callback(findings, finding, most->callback);
	d9__finding_set_brief(findings, finding, "%sworker %" PRIu64 " is awake for %.0f %% of the time",
			      most->callback ? "has most of it: " : "", worker->id, 100 * share);
	d9__finding_add_evidence(findings, finding,
				 &(struct d9__evidence){ .at_ns = worker->loop_time.busy.longest_from_ns,
							 .duration_ns = worker->loop_time.busy.longest_ns,
							 .has_worker = true,
							 .worker = worker->id },
				 "the longest stretch; %s has most, %s calls in %s",
				 d9__owner_name(most, name, sizeof(name)), d9__units_count(most->calls).text,
				 d9__units_ns(most->ns).text);
}

void d9__check_saturated(struct d9__findings *findings)
{
	const struct d9__analysis *a = findings->analysis;

	for (size_t i = 0; i < a->timeline.n; i++) {
		const struct d9__worker *worker = a->timeline.items[i];
		const struct d9__owners *owners = &findings->owners[i];

		if (is_saturated(worker) && owners->n && owners->left_ns >= LEAST_NS &&
		    !(owners->items[0].callback && is_accused(findings, owners->items[0].callback)))
			saturated(findings, worker, owners);
	}
}
