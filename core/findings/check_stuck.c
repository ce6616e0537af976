/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of calls that did not end: one never returned, which people look for first, or one still
 * ran when the trace ended. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "analyze/place_text.h"
#include "findings/check_parts.h"
#include "text/units.h"

/*
 * A callback that ran for so long when the trace ended is told.  Shorter calls may just have been
 * cut, where the segment or the process ended.
 */
#define RUNNING_NS D9__SECOND_NS

static const char *advice_for(const struct d9__sign *sign)
{
	if (!strcmp(sign->where, "futex: a lock"))
		return "See who holds the lock, while the program still hangs: `gdb -p PID -batch -ex 'thread apply "
		       "all bt'`. Nobody gives it back: a deadlock if the holder waits for this loop or for itself. "
		       "Take locks in one order, and none that another thread holds while it waits.";
	if (sign->running && !sign->where[0])
		return "Look for a loop in it whose condition never becomes false: it is on the CPU and does not "
		       "come to an end. While the program still runs, `gdb -p PID -batch -ex bt` shows where.";
	return "Let the loop wait for it (a descriptor, a timer, a child's end), or give the call a time limit. While the "
	       "program still hangs, `gdb -p PID -batch -ex bt` shows who called it. What it waits for did not come, "
	       "and nothing else of this loop ran meanwhile.";
}

/*
 * The loop library's own callback does not return, and calls the program's again and again: that one does, a short time
 * before the last sign or, where none that was open then still is, after it.
 */
static bool is_called_again(const struct d9__sign *sign)
{
	return sign->inner && sign->inner->calls > 1 &&
	       (!sign->inner_since_ns || sign->ns - sign->inner_since_ns < D9__HUNG_NS);
}

static const char called_again_advice[] =
	"Do less at a time, or take in less (evconnlistener_disable(), bufferevent_disable(), and go on by a timer), or "
	"hand the work to a thread: the loop library's callback goes on while there is more, connections or input come "
	"faster than this one deals with them, and nothing else of the loop runs.";

static void add_evidence(struct d9__findings *findings, struct d9__finding *finding, const struct d9__worker *worker,
			 const struct d9__callback *callback)
{
	const struct d9__sign *sign = &worker->sign;
	struct d9__evidence at = { .at_ns = sign->since_ns,
				   .duration_ns = sign->ns - sign->since_ns,
				   .has_worker = true,
				   .worker = worker->id,
				   .task = sign->task,
				   .callback = callback };
	char where[D9__WHEREABOUTS_LEN];

	d9__place_text(sign->where, sign->running, sign->wchan, where, sizeof(where));
	if (sign->looks > 1 && where[0])
		d9__finding_add_evidence(findings, finding, &at, "began, and had not ended when the process was last seen;"
					 " looked at %s times, at the end%s", d9__units_count(sign->looks).text, where);
	else
		d9__finding_add_evidence(findings, finding, &at, "began, and had not ended when the process was last seen");
}

static void stuck(struct d9__findings *findings, const struct d9__worker *worker)
{
	const struct d9__sign *sign = &worker->sign;
	const struct d9__callback *outer = worker->piece.task->callback;
	const struct d9__callback *callback = sign->inner ? sign->inner : outer;
	struct d9__shown_name name = d9__finding_name(callback), outer_name = d9__finding_name(outer);
	uint64_t ns = sign->ns - sign->since_ns;
	struct d9__finding *finding;
	char where[D9__WHEREABOUTS_LEN], inside[160] = "";
	bool again = is_called_again(sign);

	d9__place_text(sign->where, sign->running, sign->wchan, where, sizeof(where));
	if (callback != outer)
		snprintf(inside, sizeof(inside), " (inside %.*s)", outer_name.len, outer_name.text);
	if (again)
		finding = d9__finding_add(findings, D9__CRITICAL, ns, called_again_advice,
					  "%.*s was called again and again by %.*s, which had not returned for %s on worker "
					  "%llu when the trace ended.", name.len, name.text, outer_name.len, outer_name.text,
					  d9__units_ns(ns).text, (unsigned long long)worker->id);
	else
		finding = d9__finding_add(findings, D9__CRITICAL, ns, advice_for(sign),
					  "%.*s stuck for %s%s%s, on worker %llu, until the trace ended.", name.len,
					  name.text, d9__units_ns(ns).text, where, inside, (unsigned long long)worker->id);
	if (!finding)
		return;
	d9__finding_set_callback(findings, finding, callback);
	if (again)
		d9__finding_set_brief(findings, finding, "is called again and again, no end for %s",
				      d9__units_ns(ns).text);
	else
		d9__finding_set_brief(findings, finding, "stuck for %s%s%s", d9__units_ns(ns).text, where,
				      strlen(where) + strlen(inside) < 38 ? inside : "");
	add_evidence(findings, finding, worker, callback);
	d9__finding_explain(findings, finding, callback);
	if (callback != outer)
		d9__finding_explain(findings, finding, outer);
}

static void stands(struct d9__findings *findings, const struct d9__worker *worker)
{
	const struct d9__sign *sign = &worker->outside;
	uint64_t ns = sign->ns - sign->since_ns;
	struct d9__finding *finding;
	char where[D9__WHEREABOUTS_LEN], in[160] = "";

	if (sign->inner) {
		struct d9__shown_name name = d9__finding_name(sign->inner);

		snprintf(in, sizeof(in), " in %.*s", name.len, name.text);
	}
	d9__place_text(sign->where, sign->running, sign->wchan, where, sizeof(where));
	finding = d9__finding_add(findings, D9__CRITICAL, ns, advice_for(sign),
				  "The loop of worker %llu stood still for %s%s%s, outside of all callbacks, until the trace "
				  "ended.", (unsigned long long)worker->id, d9__units_ns(ns).text, in, where);
	if (!finding)
		return;
	if (sign->inner)
		d9__finding_set_callback(findings, finding, sign->inner);
	d9__finding_set_brief(findings, finding, "stuck for %s%s, outside of callbacks", d9__units_ns(ns).text, where);
	d9__finding_add_evidence(findings, finding,
				 &(struct d9__evidence){ .at_ns = sign->since_ns,
							 .duration_ns = ns,
							 .has_worker = true,
							 .worker = worker->id },
				 "the loop's latest event; looked at %s times since", d9__units_count(sign->looks).text);
}

void d9__check_stuck_callback(struct d9__findings *findings)
{
	const struct d9__timeline *timeline = &findings->analysis->timeline;

	for (size_t i = 0; i < timeline->n; i++) {
		const struct d9__worker *worker = timeline->items[i];

		if (worker->sign.open && worker->sign.ns - worker->sign.since_ns >= D9__HUNG_NS)
			stuck(findings, worker);
		if (worker->outside.open && worker->outside.ns - worker->outside.since_ns >= D9__HUNG_NS)
			stands(findings, worker);
	}
}

void d9__check_running_at_end(struct d9__findings *findings)
{
	const struct d9__analysis *a = findings->analysis;
	const char *complete = d9__metadata_value(&a->metadata, "segment.complete");
	const char *clean = d9__metadata_value(&a->metadata, "segment.sealed_clean");
	/* A program may call exit() inside a callback, as Python under gevent does. */
	enum d9__severity severity =
		complete && !strcmp(complete, "true") && (!clean || strcmp(clean, "false"))
			? D9__INFO
			: D9__WARNING;

	for (size_t i = 0; i < a->timeline.n; i++) {
		const struct d9__worker *worker = a->timeline.items[i];
		const struct d9__piece *piece = &worker->piece;
		struct d9__finding *finding;
		struct d9__shown_name name;
		uint64_t ns;

		if (!piece->open || a->last_ns < piece->start_ns + RUNNING_NS)
			continue;
		ns = a->last_ns - piece->start_ns;
		name = d9__finding_name(piece->task->callback);
		finding = d9__finding_add(findings, severity, ns,
					  "Look here if the program hung or was killed then: the "
					  "call did not end, and its length is in no figure.",
					  "%.*s was still running on worker %llu when the trace "
					  "ended, for %s at least.",
					  name.len, name.text, (unsigned long long)worker->id,
					  d9__units_ns(ns).text);
		d9__finding_set_callback(findings, finding, piece->task->callback);
		d9__finding_set_brief(findings, finding, "still ran when the trace ended, for %s",
				      d9__units_ns(ns).text);
		d9__finding_add_evidence(
			findings, finding,
			&(struct d9__evidence) { .at_ns = piece->start_ns,
						 .duration_ns = ns,
						 .has_worker = true,
						 .worker = worker->id,
						 .task = piece->task->id,
						 .callback = piece->task->callback },
			"began and did not end");
	}
}
