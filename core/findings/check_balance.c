/* SPDX-License-Identifier: Apache-2.0 */
/* Check of loops that do nothing beside one that does everything. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "findings/check_parts.h"
#include "text/units.h"

/* A trace that is shorter, or has fewer calls, says nothing about balance. */
#define LENGTH_NS D9__SECOND_NS
#define CALLS	  100

/* So many loops have to be idle, each awake for one in so many parts of the busiest's time. */
#define IDLE_WORKERS 2
#define IDLE_PART    20

static const struct d9__worker *busiest_of(const struct d9__analysis *a)
{
	const struct d9__worker *busiest = NULL;

	for (size_t i = 0; i < a->timeline.n; i++)
		if (!busiest || a->timeline.items[i]->active_ns > busiest->active_ns)
			busiest = a->timeline.items[i];
	return busiest;
}

/* Whether the program has |worker| do something that |other| does not do. */
static bool has_job_of_its_own(const struct d9__analysis *a, const struct d9__worker *worker,
			       const struct d9__worker *other)
{
	for (size_t i = 0; i < a->callbacks.n; i++)
		if (!a->callbacks.items[i]->internal && d9__callback_ran_on(a->callbacks.items[i], worker->number) &&
		    !d9__callback_ran_on(a->callbacks.items[i], other->number))
			return true;
	return false;
}

/* It was there for most of the time, waited for something to do, and got next to nothing. */
static bool is_idle(const struct d9__analysis *a, const struct d9__worker *worker, const struct d9__worker *busiest)
{
	return worker != busiest && worker->parks &&
	       2 * (worker->active_ns + worker->parked_ns) >= busiest->active_ns + busiest->parked_ns &&
	       IDLE_PART * worker->active_ns <= busiest->active_ns && !d9__worker_is_librarys_own(a, worker) &&
	       !has_job_of_its_own(a, worker, busiest);
}

/* The callback that takes most of |worker|'s time, as far as that is told: the one with the largest sum of all. */
static const struct d9__callback *most_on(const struct d9__analysis *a, const struct d9__worker *worker)
{
	const struct d9__callback *most = NULL;

	for (size_t i = 0; i < a->callbacks.n; i++)
		if (d9__callback_ran_on(a->callbacks.items[i], worker->number) &&
		    (!most || a->callbacks.items[i]->durations.sum > most->durations.sum))
			most = a->callbacks.items[i];
	return most;
}

void d9__check_idle_workers(struct d9__findings *findings)
{
	const struct d9__analysis *a = findings->analysis;
	const struct d9__worker *busiest = busiest_of(a);
	const struct d9__callback *most;
	struct d9__finding *finding;
	struct d9__shown_name name;
	size_t idle = 0;

	if (!busiest || busiest->polls < CALLS || busiest->active_ns + busiest->parked_ns < LENGTH_NS ||
	    d9__worker_utilisation(busiest) < 0.3)
		return;
	for (size_t i = 0; i < a->timeline.n; i++)
		idle += is_idle(a, a->timeline.items[i], busiest);
	if (idle < IDLE_WORKERS)
		return;
	most = most_on(a, busiest);
	name = d9__finding_name(most);
	finding = d9__finding_add(
		findings, d9__worker_utilisation(busiest) >= 0.5 ? D9__WARNING : D9__INFO, busiest->active_ns,
		"Deal connections or tasks out in turn, or to the loop with fewest, if these loops are there to "
		"share the work: something gives all of it to one (a hash or a counter that is always the same, "
		"the loop that accepts keeping all, one SO_REUSEPORT socket that gets all).",
		"Worker %" PRIu64 " does everything, and %zu other loops do nothing: it is awake %s of its time, for %s "
		"calls, most of it in %.*s.",
		busiest->id, idle, d9__units_percent(d9__worker_utilisation(busiest)).text,
		d9__units_count(busiest->polls).text, name.len, name.text);
	d9__finding_set_callback(findings, finding, most);
	d9__finding_set_brief(findings, finding, "runs on one worker, %zu other loops do nothing", idle);
	for (size_t i = 0; i < a->timeline.n; i++) {
		const struct d9__worker *worker = a->timeline.items[i];

		if (worker == busiest || is_idle(a, worker, busiest))
			d9__finding_add_evidence(findings, finding,
						 &(struct d9__evidence){ .has_worker = true, .worker = worker->id },
						 "%s calls, awake for %s of %s",
						 d9__units_count(worker->polls).text,
						 d9__units_ns(worker->active_ns).text,
						 d9__units_ns(worker->active_ns + worker->parked_ns).text);
	}
}
