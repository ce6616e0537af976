/* SPDX-License-Identifier: Apache-2.0 */
/* Check of rounds that do not end. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "findings/check_parts.h"
#include "findings/owners.h"
#include "text/units.h"

/* Our adapters have loops that never wait park now and then; other producers do not. */
static bool parks_are_told(const struct d9__metadata *metadata)
{
	const char *library;
	size_t len;

	for (size_t i = 0; i < metadata->n; i++)
		if (d9__metadata_key_is(metadata->items[i].key, "loop.", ".capabilities", &library,
					&len))
			return d9__metadata_coverage(metadata, "park") != D9__COVERAGE_NONE;
	return false;
}

/* A round of this length is critical, and goes before waits behind its calls. */
#define ENDLESS_NS (4 * D9__LONG_ROUND_NS)

static const struct d9__callback *callback_of(const struct d9__worker *worker)
{
	const struct d9__between *between = &worker->round.between;

	return between->one ? between->one : between->most;
}

static bool are_told(const struct d9__analysis *a)
{
	return !a->losses.events && parks_are_told(&a->metadata);
}

/*
 * How long the longest round of |worker| is to be taken: by the clock, if it had half of all that
 * the loop did, as a round that goes on for a time gets less of a busy machine; else without what
 * the kernel took.
 */
static uint64_t length_of(const struct d9__findings *findings, const struct d9__worker *worker)
{
	return 2 * worker->round.ns >= findings->owners[worker->number].awake_ns
		       ? worker->round.wall_ns
		       : worker->round.ns;
}

bool d9__finding_is_endless(const struct d9__findings *findings,
			    const struct d9__callback *callback)
{
	const struct d9__analysis *a = findings->analysis;

	/* A round of GLib's calls each source once: where others wait all the same, it is for its
	 * priority. */
	if (!are_told(a) || d9__metadata_is_only(&a->metadata, "glib"))
		return false;
	for (size_t i = 0; i < a->timeline.n && callback; i++)
		if (a->timeline.items[i]->round.ns > ENDLESS_NS &&
		    callback_of(a->timeline.items[i]) == callback)
			return true;
	return false;
}

static const char *advice_of(const struct d9__analysis *a, const struct d9__between *between)
{
	const struct d9__traced_task *task = d9__table_find(&a->tasks.table, between->one_task);

	if (!between->one)
		return "Handle fewer per round: the callbacks make each other ready, or too many "
		       "are ready at once, and the loop does all that is ready before it looks at "
		       "descriptors and timers again.";
	if (task && task->reason == D9__WAKE_SIGNAL)
		return "Send fewer signals, or write to a pipe or an eventfd instead, whose "
		       "callback "
		       "takes all there is: it is called once for each signal that came, and the "
		       "loop looks at descriptors and timers only behind all of them.";
	return "Do a limited amount of work, then let the loop go on: by a timer of 0 instead of "
	       "event_active() or ev_feed_event() of itself, or at a lower priority. It makes "
	       "itself ready again each time it runs, and the loop does all that is ready before "
	       "it looks at descriptors and timers again.";
}

static void long_round(struct d9__findings *findings, const struct d9__worker *worker)
{
	const struct d9__between *between = &worker->round.between;
	const struct d9__callback *callback = callback_of(worker);
	uint64_t ns = between->one ? between->one_ns : between->most_ns;
	struct d9__finding *finding;
	struct d9__shown_name name;

	name = d9__finding_name(callback);
	finding = d9__finding_add(
		findings, length_of(findings, worker) > ENDLESS_NS ? D9__CRITICAL : D9__WARNING,
		worker->round.ns, advice_of(findings->analysis, between),
		"Worker %" PRIu64
		" was in one round of its loop for %s, and looked at no descriptor and no "
		"timer meanwhile: it ran %s callbacks, %.*s most of the time.",
		worker->id, d9__units_ns(worker->round.ns).text,
		d9__units_count(worker->round.calls).text, name.len, name.text);
	d9__finding_set_callback(findings, finding, callback);
	d9__finding_set_brief(findings, finding, "keeps the loop in one round for %s",
			      d9__units_ns(worker->round.ns).text);
	d9__finding_set_effect(findings, finding, callback, "one round of %s",
			       d9__units_ns(worker->round.ns).text);
	d9__finding_add_evidence(findings, finding,
				 &(struct d9__evidence){ .at_ns = worker->round.from_ns,
							 .duration_ns = worker->round.ns,
							 .has_worker = true,
							 .worker = worker->id,
							 .task = between->one ? between->one_task : 0,
							 .callback = callback },
				 "began; of the last %s calls %s were %s, for %s of %s",
				 d9__units_count(between->calls).text,
				 d9__units_count(between->one ? between->one_calls : between->most_calls).text,
				 between->one ? "of this one task" : "of it",
				 d9__units_ns(ns).text, d9__units_ns(between->busy_ns).text);
	d9__finding_add_evidence(
		findings, finding, NULL,
		"counts from %s on, or where it is half of what the loop did from %s on, if no "
		"call took an eighth of it; told if no callback is known to have waited (see "
		"unfair and backlog)",
		d9__units_ns(D9__LONG_ROUND_NS).text, d9__units_ns(D9__LONG_ROUND_OWN_NS).text);
}

void d9__check_long_round(struct d9__findings *findings)
{
	const struct d9__analysis *a = findings->analysis;

	if (!are_told(a) || d9__finding_told(findings, "unfair") ||
	    d9__finding_told(findings, "backlog"))
		return;
	for (size_t i = 0; i < a->timeline.n; i++)
		if (length_of(findings, a->timeline.items[i]) >= D9__LONG_ROUND_NS)
			long_round(findings, a->timeline.items[i]);
}
