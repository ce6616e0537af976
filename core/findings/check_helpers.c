/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of work that loops hand to helper threads. */
#include "config.h"

#include <string.h>

#include "analyze/helpers.h"
#include "analyze/stalls.h"
#include "findings/check_parts.h"
#include "text/units.h"

/* So many runs, that waited on average so long behind others, and so many times as long as they took. */
#define RUNS	  10
#define WAIT_NS	  (5 * D9__MS_NS)
#define WAIT_PART 2

static bool is_queue(const struct d9__helper *helper)
{
	return helper->runs >= RUNS && helper->behind_ns / helper->runs >= WAIT_NS &&
	       helper->behind_ns / WAIT_PART >= helper->run_ns;
}

/* The long call that handed |run| over, or NULL. */
static const struct d9__stall *handed_over_by(const struct d9__findings *findings, const struct d9__helper_run *run)
{
	const struct d9__stalls *stalls = &findings->analysis->stalls;
	uint64_t ns = run->at_ns - run->run_ns - run->wait_ns;

	for (size_t i = 0; i < stalls->n; i++) {
		const struct d9__stall *stall = stalls->items[i].stall;

		if (run->task && stall->task == run->task && stall->start_ns <= ns && ns <= stall->end_ns)
			return stall;
	}
	return NULL;
}

/* Whether runs that another callback handed over hold the threads: the one that waited longest is none of them. */
static bool is_behind_others(const struct d9__helper *helper)
{
	return helper->slowest.by && helper->slowest.by != helper->longest.by &&
	       helper->slowest.run_ns >= WAIT_NS &&
	       helper->slowest.run_ns >= WAIT_PART * helper->longest.run_ns;
}

static void helper_queue(struct d9__findings *findings, const struct d9__callback *callback)
{
	const struct d9__helper *helper = callback->helper;
	const struct d9__helper_run *longest = &helper->longest;
	const struct d9__stall *stall = handed_over_by(findings, longest);
	struct d9__finding *finding;
	struct d9__shown_name name = d9__finding_name(callback), by = d9__finding_name(longest->by);
	struct d9__shown_name slow = d9__finding_name(helper->slowest.by);
	/* GIO runs every GTask by a function of its own: who handed it over says more. */
	bool is_gio = longest->by && d9__module_is_loop(callback->location, strlen(callback->location));

	finding = d9__finding_add(
		findings, D9__WARNING, helper->wait_ns,
		"Give the pool more threads, hand over less at a time, or make each run shorter: the helper "
		"threads are the bottleneck, not the loop.",
		"%s%.*s waited %s on average for a helper thread, and ran for %s (%s runs).",
		is_gio ? "Work handed over by " : "", is_gio ? by.len : name.len,
		is_gio ? by.text : name.text, d9__units_ns(helper->wait_ns / helper->runs).text,
		d9__units_ns(helper->run_ns / helper->runs).text,
		d9__units_count(helper->runs).text);
	d9__finding_set_callback(findings, finding, is_gio ? longest->by : callback);
	d9__finding_set_brief(findings, finding, "waits %s for a helper thread, runs %s",
			      d9__units_ns(helper->wait_ns / helper->runs).text,
			      d9__units_ns(helper->run_ns / helper->runs).text);
	if (stall)
		d9__finding_set_effect(findings, finding, stall->culprit, "work it hands over waits %s for a helper thread",
				       d9__units_ns(helper->wait_ns / helper->runs).text);
	d9__finding_add_evidence(findings, finding,
				 &(struct d9__evidence){
					 .at_ns = longest->at_ns - longest->run_ns,
					 .duration_ns = longest->run_ns,
					 .task = longest->task,
					 .callback = callback,
				 },
				 "the longest wait: %s, for a run of %s%s%.*s",
				 d9__units_ns(longest->wait_ns).text,
				 d9__units_ns(longest->run_ns).text,
				 longest->by ? ", handed over by " : "", longest->by ? by.len : 0, by.text);
	if (is_behind_others(helper))
		d9__finding_add_evidence(findings, finding,
					 &(struct d9__evidence){
						 .at_ns = helper->slowest.at_ns - helper->slowest.run_ns,
						 .duration_ns = helper->slowest.run_ns,
						 .task = helper->slowest.task,
						 .callback = helper->slowest.by,
					 },
					 "the longest run, which others wait behind: %s, handed over by %.*s",
					 d9__units_ns(helper->slowest.run_ns).text, slow.len, slow.text);
	d9__finding_add_evidence(findings, finding, NULL,
				 "counts from %d runs on, that waited 5 ms behind others and %d times as long as "
				 "they took", RUNS, WAIT_PART);
}

void d9__check_helper_queue(struct d9__findings *findings)
{
	const struct d9__callbacks *callbacks = &findings->analysis->callbacks;

	for (size_t i = 0; i < callbacks->n; i++)
		if (callbacks->items[i]->helper && is_queue(callbacks->items[i]->helper))
			helper_queue(findings, callbacks->items[i]);
}
