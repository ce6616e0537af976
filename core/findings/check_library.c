/* SPDX-License-Identifier: Apache-2.0 */
/* Check of loop libraries that hold their loop with what they do for a program: no callback runs
 * meanwhile. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/hot.h"
#include "findings/check_parts.h"
#include "findings/hold.h"
#include "findings/owners.h"
#include "text/units.h"

/*
 * Told if it has this share of its loop's time and needs so long for each wake, and for each call,
 * as a loop that does not sleep has many to a wake: a loop at its limit has a library that is busy,
 * a few microseconds for each round.
 */
#define SHARE	      0.1
#define EACH_NS	      (500 * D9__US_NS)
#define LEAST_NS      D9__SECOND_NS
#define CRITICAL_PART 0.5

/* Where short times between rounds have one in so many parts of the time, rounds are short, too. */
#define BETWEEN_PART 50

/* Fewer stretches are chance, or something that is done once. */
#define OFTEN 3

struct held {
	const struct d9__loop_time *time;
	uint64_t ns; /* of the library */
	double share;
	uint64_t rounds; /* that sources were asked in; 0: not told */
	uint64_t times, each_ns; /* wakes, calls or rounds, the most of them; and each */
};

static struct held held_of(const struct d9__analysis *a, const struct d9__worker *worker,
			   const struct d9__owners *owners)
{
	struct held held = { .time = &worker->loop_time };

	for (size_t i = 0; i < owners->n; i++)
		if (owners->items[i].kind == D9__OWNER_LIBRARY)
			held.ns = owners->items[i].ns;
	held.share = d9__owners_share(owners, held.ns);
	held.times = worker->parks > worker->polls ? worker->parks : worker->polls;
	held.rounds = d9__finding_rounds(a, worker);
	if (held.rounds > held.times)
		held.times = held.rounds;
	held.each_ns = held.ns / (held.times ? held.times : 1);
	return held;
}

static struct d9__hold hold_of(const struct d9__worker *worker)
{
	return (struct d9__hold) { .worker = worker,
				   .ns = worker->loop_time.round_max_ns,
				   .n = worker->loop_time.round_n,
				   .waited = true };
}

static bool is_share(const struct held *held, const struct d9__owners *owners)
{
	return owners->left_ns >= LEAST_NS && held->share >= SHARE && held->each_ns >= EACH_NS;
}

/* Whether a stretch without a callback is many rounds that did not wait, and no long one. */
static bool are_many_rounds(const struct held *held, const struct d9__owners *owners)
{
	return (held->rounds && owners->awake_ns / held->rounds < EACH_NS) ||
	       BETWEEN_PART * held->time->outside_short_ns >= owners->left_ns;
}

static enum d9__severity severity_of(const struct d9__findings *findings,
				     const struct d9__worker *worker, const struct held *held,
				     const struct d9__owners *owners)
{
	struct d9__hold hold = hold_of(worker);
	enum d9__severity severity = D9__INFO;

	if (held->time->round_n >= OFTEN)
		severity = d9__hold_severity(findings, &hold);
	if (!is_share(held, owners))
		return severity;
	if (held->share >= CRITICAL_PART)
		return D9__CRITICAL;
	return severity < D9__WARNING ? severity : D9__WARNING;
}

static const char *advice_of(const struct d9__metadata *metadata)
{
	if (d9__metadata_is_only(metadata, "libev"))
		return "Register fewer watchers of files (ev_stat looks at each by stat(2), again "
		       "and again, where inotify does not tell), at longer intervals or in a "
		       "thread: the loop goes through them itself and calls nothing meanwhile.";
	if (d9__metadata_is_only(metadata, "glib"))
		return "Give sources back: one that is destroyed stays in the list of its context "
		       "until the last g_source_unref(). Make fewer, and keep them instead of "
		       "making them anew: each round goes through all, and calls nothing "
		       "meanwhile.";
	return "Register fewer events and timers, and keep them instead of making them anew: the "
	       "library goes through them itself and calls nothing meanwhile.";
}

static void held_by_library(struct d9__findings *findings, const struct d9__worker *worker,
			    const struct d9__owners *owners, const struct held *held)
{
	const struct d9__analysis *a = findings->analysis;
	bool stretches = held->time->round_n >= OFTEN;
	uint64_t times = stretches ? held->time->round_n : held->times;
	const char *unit = worker->parks >= worker->polls ? "wakes" : "calls";
	uint64_t each_ns = stretches ? held->time->round_long_ns / times : held->each_ns;
	struct d9__finding *finding;
	char name[64];

	d9__owners_inside(a, name, sizeof(name));
	finding = d9__finding_add(findings, severity_of(findings, worker, held, owners), held->ns,
				  advice_of(&a->metadata),
				  "Worker %" PRIu64
				  "'s loop is %s for %.0f %% of the time, %s in each of %s %s, and "
				  "calls nothing meanwhile.",
				  worker->id, name, 100 * held->share, d9__units_ns(each_ns).text,
				  d9__units_count(times).text, stretches ? "long rounds" : unit);
	d9__finding_set_name(findings, finding, name, strlen(name));
	d9__finding_set_brief(findings, finding, "holds the loop %s, %s %s, %.0f %% of the time",
			      d9__units_ns(each_ns).text, d9__units_count(times).text,
			      stretches ? "times" : unit, 100 * held->share);
	if (finding)
		finding->hot = d9__hot_describe(&worker->beside, false);
	if (stretches)
		d9__finding_add_evidence(
			findings, finding,
			&(struct d9__evidence) { .at_ns = held->time->round_max_at_ns,
						 .duration_ns = held->time->round_max_ns,
						 .has_worker = true,
						 .worker = worker->id },
			"the longest stretch without a callback, %s by itself",
			d9__units_ns(held->time->round_max_ns).text);
	d9__finding_add_evidence(
		findings, finding,
		&(struct d9__evidence) { .has_worker = true, .worker = worker->id },
		"told from three stretches of 5 ms on that are no usual calls of the "
		"loop, or from %.0f %% of the time on with %s for each wake and call",
		100 * SHARE, d9__units_ns(EACH_NS).text);
}

void d9__check_held_by_library(struct d9__findings *findings, size_t number)
{
	const struct d9__analysis *a = findings->analysis;
	const struct d9__worker *worker = a->timeline.items[number];
	const struct d9__owners *owners = &findings->owners[number];
	struct held held = held_of(a, worker, owners);
	struct d9__hold hold = hold_of(worker);

	/*
	 * Callbacks that are not seen, and time between rounds that is not told, may lie in there.
	 * So may prepare() and check() of sources, which have a finding of their own, as has a loop
	 * that stood still until the end.
	 */
	if (a->losses.events || !d9__metadata_value(&a->metadata, "source.io") ||
	    d9__metadata_coverage(&a->metadata, "poll") != D9__COVERAGE_FULL ||
	    d9__finding_told(findings, "source-time") ||
	    d9__finding_told(findings, "stuck-callback"))
		return;
	if (!are_many_rounds(&held, owners) &&
	    ((held.time->round_n >= OFTEN && d9__hold_is_long(findings, &hold)) ||
	     is_share(&held, owners)))
		held_by_library(findings, worker, owners, &held);
}
