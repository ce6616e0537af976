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

/* Runs of |giver| wait for long behind others, however short they are. */
static bool is_victim(const struct d9__helper_giver *giver)
{
	return giver->runs >= RUNS && giver->behind_ns / giver->runs >= WAIT_NS &&
	       giver->behind_ns / WAIT_PART >= giver->run_ns;
}

/* The giver of |helper| that holds the threads which |victim| waits for; NULL: no one more than
 * itself. */
static const struct d9__helper_giver *culprit_of(const struct d9__helper *helper,
						 const struct d9__helper_giver *victim)
{
	const struct d9__helper_giver *most = victim;

	for (size_t i = 0; i < helper->n_givers; i++)
		if (helper->givers[i].run_ns > most->run_ns)
			most = &helper->givers[i];
	return most != victim && most->run_ns / most->runs >= WAIT_NS &&
			       most->run_ns / most->runs >=
				       WAIT_PART * (victim->run_ns / victim->runs)
		       ? most
		       : NULL;
}

/* Long jobs fill the threads, and short ones wait: the long ones are the cause. */
static bool full_pool(struct d9__findings *findings, const struct d9__helper *helper)
{
	const struct d9__helper_giver *victim = NULL, *culprit;
	struct d9__shown_name name, long_name;
	struct d9__finding *finding;
	uint64_t run_ns;

	for (size_t i = 0; i < helper->n_givers; i++)
		if (is_victim(&helper->givers[i]) && culprit_of(helper, &helper->givers[i]) &&
		    (!victim || helper->givers[i].behind_ns > victim->behind_ns))
			victim = &helper->givers[i];
	if (!victim)
		return false;
	culprit = culprit_of(helper, victim);
	run_ns = culprit->run_ns / culprit->runs;
	name = d9__finding_name(victim->by);
	long_name = d9__finding_name(culprit->by);
	finding = d9__finding_add(findings, D9__WARNING, victim->wait_ns,
				  "Give long jobs a pool of their own, or cut them into pieces: "
				  "they fill the helper threads, and "
				  "short ones wait behind them.",
				  "Jobs handed over by %.*s hold the helper threads for %s each "
				  "(%s runs): those of %.*s, which "
				  "take %s, wait %s on average behind them (%s runs).",
				  long_name.len, long_name.text, d9__units_ns(run_ns).text,
				  d9__units_count(culprit->runs).text, name.len, name.text,
				  d9__units_ns(victim->run_ns / victim->runs).text,
				  d9__units_ns(victim->wait_ns / victim->runs).text,
				  d9__units_count(victim->runs).text);
	d9__finding_set_callback(findings, finding, culprit->by);
	d9__finding_set_brief(
		findings, finding, "fills the helper threads, %s each; others wait %s",
		d9__units_ns(run_ns).text, d9__units_ns(victim->wait_ns / victim->runs).text);
	d9__finding_add_evidence(
		findings, finding,
		&(struct d9__evidence) { .at_ns = culprit->slowest.at_ns - culprit->slowest.run_ns,
					 .duration_ns = culprit->slowest.run_ns,
					 .task = culprit->slowest.task,
					 .callback = culprit->by },
		"the longest run: %s", d9__units_ns(culprit->slowest.run_ns).text);
	d9__finding_add_evidence(
		findings, finding,
		&(struct d9__evidence) { .at_ns = victim->longest.at_ns - victim->longest.run_ns,
					 .duration_ns = victim->longest.run_ns,
					 .task = victim->longest.task,
					 .callback = victim->by },
		"the longest wait: %s, for a run of %s, handed over by %.*s",
		d9__units_ns(victim->longest.wait_ns).text,
		d9__units_ns(victim->longest.run_ns).text, name.len, name.text);
	return true;
}

static void helper_queue(struct d9__findings *findings, const struct d9__callback *callback)
{
	const struct d9__helper *helper = callback->helper;
	const struct d9__helper_run *longest = &helper->longest;
	const struct d9__stall *stall = handed_over_by(findings, longest);
	struct d9__finding *finding;
	struct d9__shown_name name = d9__finding_name(callback), by = d9__finding_name(longest->by);
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
	d9__finding_add_evidence(
		findings, finding,
		&(struct d9__evidence) {
			.at_ns = longest->at_ns - longest->run_ns,
			.duration_ns = longest->run_ns,
			.task = longest->task,
			.callback = callback,
		},
		"the longest wait: %s, for a run of %s%s%.*s", d9__units_ns(longest->wait_ns).text,
		d9__units_ns(longest->run_ns).text, longest->by ? ", handed over by " : "",
		longest->by ? by.len : 0, by.text);
	d9__finding_add_evidence(findings, finding, NULL,
				 "counts from %d runs on, that waited 5 ms behind others and %d times as long as "
				 "they took", RUNS, WAIT_PART);
}

void d9__check_helper_queue(struct d9__findings *findings)
{
	const struct d9__callbacks *callbacks = &findings->analysis->callbacks;

	for (size_t i = 0; i < callbacks->n; i++)
		if (callbacks->items[i]->helper &&
		    !full_pool(findings, callbacks->items[i]->helper) &&
		    is_queue(callbacks->items[i]->helper))
			helper_queue(findings, callbacks->items[i]);
}
