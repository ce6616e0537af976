/* SPDX-License-Identifier: Apache-2.0 */
/* Check of callbacks that run a loop themselves. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "analyze/hot.h"
#include "analyze/stalls.h"
#include "findings/check_parts.h"
#include "findings/hold.h"
#include "findings/owners.h"
#include "text/units.h"

/* Shorter ones are not worth telling. */
#define NESTED_NS (5 * D9__MS_NS)

/* Without others that wait behind it, and that wait so long, no such call is critical. */
#define WAITED_NS (50 * D9__MS_NS)

/* A shorter one that no other waits for is no harm: the loop inside may serve them meanwhile. */
#define ALONE_NS (40 * D9__MS_NS)

/* A call that is open for longer counts whenever it comes. */
#define START_NS (500 * D9__MS_NS)

/*
 * A loop that is polled keeps a CPU busy: such calls, from so many on, are told from this share of
 * the time on, however usual and harmless to others they are.
 */
#define POLLED_OFTEN 3
#define POLLED_SHARE 0.02

/* An inner loop that calls no more has little to do. */
#define FEW_CALLS 10

/* The call of |callback| that was open longest around a loop of its own; NULL: it is not kept. */
static const struct d9__stall *longest_nested(const struct d9__callback *callback)
{
	const struct d9__stall *found = NULL;

	for (size_t i = 0; i < callback->n_stalls; i++) {
		const struct d9__stall *stall = callback->stalls[i].stall;

		if (stall->depth && (!found || stall->nested_ns > found->nested_ns))
			found = stall;
	}
	return found;
}

static const struct d9__worker *worker_of(const struct d9__analysis *a,
					  const struct d9__stall *stall)
{
	return stall ? d9__table_find(&a->timeline.by_id, stall->worker) : NULL;
}

/* Whether the only such call came while the program started, and was no pause that a client notices then. */
static bool is_start(const struct d9__analysis *a, const struct d9__callback *callback, const struct d9__stall *stall)
{
	return stall && callback->nested.calls == 1 && callback->nested.longest_ns <= START_NS &&
	       d9__analysis_is_start(a, stall->start_ns, stall->start_ns + callback->nested.longest_ns,
				     stall->waited_max_ns >= D9__WAIT_EXPLAIN_NS);
}

/*
 * How much of the longest such call the machine may have made: it kept a loop's thread from the CPU for that long, and the
 * callback's calls usually end by so much earlier.
 */
static uint64_t held_up_ns(const struct d9__analysis *a, const struct d9__callback *callback)
{
	uint64_t usual_ns = (callback->durations.sum + callback->nested.ns) / callback->nested.calls;
	uint64_t more_ns = callback->nested.longest_ns > usual_ns ? callback->nested.longest_ns - usual_ns : 0;
	uint64_t ready_ns = d9__ready_longest_ns(a);

	return more_ns < ready_ns ? more_ns : ready_ns;
}

static bool is_costly(const struct d9__findings *findings, const struct d9__callback *callback)
{
	double share = d9__owners_open_share(findings->analysis, findings->owners, callback);

	return callback->nested.calls >= POLLED_OFTEN && share >= POLLED_SHARE;
}

/* Where others waited longer than the callback was open, the machine made them wait for the rest. */
static enum d9__severity nested_severity(const struct d9__findings *findings,
					 const struct d9__callback *callback,
					 const struct d9__stall *stall, bool polled)
{
	const struct d9__analysis *a = findings->analysis;
	uint64_t held_ns = held_up_ns(a, callback), open_ns = callback->nested.longest_ns - held_ns;
	uint64_t waited_ns =
		stall && stall->waited_max_ns > held_ns ? stall->waited_max_ns - held_ns : 0;
	bool waited = waited_ns > D9__WAIT_EXPLAIN_NS;
	/* Of short waits the sum counts for nothing. */
	struct d9__hold hold = { .worker = worker_of(a, stall),
				 .ns = open_ns,
				 .n = callback->nested.calls,
				 .behind_ns = waited ? callback->behind_ns : 0,
				 .waited = waited };
	enum d9__severity severity = d9__hold_severity(findings, &hold);

	if (is_start(a, callback, stall))
		return D9__INFO;
	if (!d9__hold_is_long(findings, &hold) || (!waited && open_ns < ALONE_NS))
		return polled && is_costly(findings, callback) ? D9__WARNING : D9__INFO;
	return severity == D9__CRITICAL && waited_ns <= WAITED_NS ? D9__WARNING : severity;
}

static void add_longest(struct d9__findings *findings, struct d9__finding *finding,
			const struct d9__callback *callback, const struct d9__stall *stall)
{
	char waited[256] = "";

	if (stall->waited)
		snprintf(waited, sizeof(waited), "; %s other%s waited behind it, up to %s",
			 d9__units_count(stall->waited).text, stall->waited == 1 ? "" : "s",
			 d9__units_ns(stall->waited_max_ns).text);
	d9__finding_add_evidence(findings, finding,
				 &(struct d9__evidence){ .at_ns = stall->start_ns,
							 .duration_ns = stall->end_ns - stall->start_ns,
							 .has_worker = true,
							 .worker = stall->worker,
							 .task = stall->task,
							 .callback = callback },
				 "open for %s: %s of its own, %s in the loop that it ran, which waited for %s and "
				 "called %s callbacks%s",
				 d9__units_ns(stall->total_ns + stall->nested_ns).text,
				 d9__units_ns(stall->total_ns).text, d9__units_ns(stall->nested_ns).text,
				 d9__units_ns(stall->nested_parked_ns).text,
				 d9__units_count(stall->nested_calls).text, waited);
}

/* Whether half of the stacks of |callback| lie in a loop library that it has called; true where there are too few. */
static bool is_found_in_loop(const struct d9__callback *callback)
{
	const struct d9__stack *stack;
	uint64_t on, in_loop = 0, all = 0;

	if (!callback->hot || callback->hot->on < D9__HOT_FEW)
		return true;
	for (size_t place = 0; (stack = d9__hot_next(callback->hot, &place, &on));) {
		all += on;
		in_loop += d9__hot_calls_loop(callback, stack) ? on : 0;
	}
	return 2 * in_loop >= all;
}

/*
 * Whether loops inside are looked at again and again and not let wait.  What the adapter told of them is what they
 * called: the time between counts as the callback's own.
 */
static bool is_polled(const struct d9__stall *stall)
{
	uint64_t open_ns = stall->total_ns + stall->nested_ns;

	return 10 * stall->nested_parked_ns < open_ns &&
	       (2 * stall->total_ns >= open_ns || stall->nested_calls < FEW_CALLS) &&
	       2 * stall->blocked_ns < stall->total_ns && is_found_in_loop(stall->callback);
}

static void nested_loop(struct d9__findings *findings, const struct d9__callback *callback)
{
	const struct d9__stall *stall = longest_nested(callback);
	bool polled = stall && is_polled(stall);
	uint64_t open_ns = callback->nested.longest_ns, own_ns = callback->nested.longest_own_ns;
	struct d9__shown_name name = d9__finding_name(callback);
	struct d9__finding *finding;
	char deep[64] = "", what[256];
	double share = d9__owners_open_share(findings->analysis, findings->owners, callback);

	if (callback->nested.depth > 1)
		snprintf(deep, sizeof(deep), ", %u loops in each other", callback->nested.depth);
	if (polled)
		snprintf(what, sizeof(what), "polls a loop inside without waiting: open for %s",
			 d9__units_ns(open_ns).text);
	else
		snprintf(what, sizeof(what), "runs a loop inside: open for %s, %s its own", d9__units_ns(open_ns).text,
			 d9__units_ns(own_ns).text);
	finding = d9__finding_add(
		findings, nested_severity(findings, callback, stall, polled), open_ns,
		polled ? "Return, and go on in the callback of what it looks "
			 "for; if it computes meanwhile, do that in "
			 "pieces, from an idle callback or a timer of 0. It "
			 "looks at a loop again and again without letting "
			 "it wait (EVLOOP_NONBLOCK, EVRUN_NOWAIT, "
			 "g_main_context_iteration(FALSE)), and keeps a CPU busy "
			 "with that."
		       : "Return, and go on in the callback of what it waits "
			 "for: a handler of the answer, of the "
			 "dialog (\"response\"), of the asynchronous call. All "
			 "that the outer loop has, and all "
			 "callbacks that are open around it, stand still until "
			 "then, and each such call inside it "
			 "adds to the stack.",
		"%.*s %s (%s of %s calls, %s in inner loops%s).", name.len, name.text, what,
		d9__units_count(callback->nested.calls).text, d9__units_count(callback->calls).text,
		d9__units_ns(callback->nested.ns).text, deep);
	d9__finding_set_callback(findings, finding, callback);
	if (share >= D9__TOLD_SHARE)
		d9__finding_set_brief(
			findings, finding, "%s a loop inside for %s, %.0f %% of the time",
			polled ? "polls" : "runs", d9__units_ns(open_ns).text, 100 * share);
	else
		d9__finding_set_brief(findings, finding, "%s", what);
	if (stall)
		add_longest(findings, finding, callback, stall);
	/* Its own time may still be too long. */
	if (polled || own_ns < D9__LONG_ALWAYS_NS)
		d9__finding_explain(findings, finding, callback);
}

/*
 * Whether the longest call of |callback| was its own for the most part: it slept for nine tenths before it ran the loop, as
 * for an answer, or it computed for three quarters and did not do that in the loop.  That is told of long and of blocked calls.
 */
static bool is_own(const struct d9__callback *callback)
{
	const struct d9__stall *stall = longest_nested(callback);

	if (!stall)
		return false;
	if (d9__stall_is_blocked(stall))
		return 9 * stall->nested_ns < stall->total_ns;
	return 3 * stall->nested_ns < stall->total_ns && !is_polled(stall);
}

void d9__check_nested_loop(struct d9__findings *findings)
{
	const struct d9__callbacks *callbacks = &findings->analysis->callbacks;

	for (size_t i = 0; i < callbacks->n; i++)
		if (callbacks->items[i]->nested.longest_ns >= NESTED_NS && !is_own(callbacks->items[i]) &&
		    !d9__finding_is_explained(findings, callbacks->items[i]))
			nested_loop(findings, callbacks->items[i]);
}
