/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of what programs do between two rounds of a loop that they drive themselves. */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "analyze/hot.h"
#include "base/u64.h"
#include "findings/advice.h"
#include "findings/check_parts.h"
#include "findings/hold.h"
#include "findings/owners.h"
#include "text/units.h"

/* Told if one such time holds the loop for long, or all of them are so large a part of its time. */
#define SHARE	   0.1
#define MOST_SHARE 0.5

/* A program that starts may look into its loop now and then for so long. */
#define START_NS (500 * D9__MS_NS)

/* Of so much time it is told how often a loop is asked, whatever the machine takes. */
#define LEFT_NS (250 * D9__MS_NS)

/* A loop that is asked for events so many times a second, and never waits, is asked for nothing. */
#define ASKED_RATE 1000

/* Functions that are told apart. */
#define FUNCTIONS_MAX 16

/* ---- by samples: which function it was ---- */

static bool is_same(const struct d9__frame_name *a, const struct d9__frame_name *b)
{
	return a->function == b->function && a->file == b->file;
}

/*
 * The program's function that runs the loop, as far as any sample found a thread in one: the first
 * of its own outside of the recorder's hook.  NULL: not known.
 */
static const struct d9__frame_name *runner_in(const struct d9__stack *stack)
{
	size_t i = stack->n;

	while (i && !d9__frame_is_ours(&stack->names[i - 1]))
		i--;
	for (; i && i < stack->n; i++)
		if (d9__frame_is_program(&stack->names[i]))
			return &stack->names[i];
	return NULL;
}

static const struct d9__frame_name *find_runner(const struct d9__analysis *a)
{
	const struct d9__frame_name *runner = NULL;
	const struct d9__stack *most = NULL;
	void *item;

	for (size_t place = 0; (place = d9__table_next(&a->samples.stacks, place, &item));) {
		const struct d9__stack *stack = item;
		const struct d9__frame_name *found = stack->names ? runner_in(stack) : NULL;

		if (!found || (most && (stack->on < most->on ||
					(stack->on == most->on && stack->number > most->number))))
			continue;
		most = stack;
		runner = found;
	}
	return runner;
}

/*
 * The function that |runner| had called, in |stack|, which a thread outside of its loop had;
 * without a runner the program's outermost below main().
 */
static const struct d9__frame_name *called_by(const struct d9__stack *stack,
					      const struct d9__frame_name *runner)
{
	const struct d9__frame_name *below = NULL;

	for (size_t i = 0; i < stack->n; i++) {
		const struct d9__frame_name *frame = &stack->names[i];

		if (d9__frame_is_ours(frame))
			return NULL;
		if (runner ? is_same(frame, runner) : !strcmp(frame->function, "main"))
			return below ? below : frame;
		/* The C library's entry into the program does no work, and what has no name tells
		 * less than what it called. */
		if (d9__frame_is_program(frame) && strcmp(frame->function, "_start") &&
		    (frame->known || !below))
			below = frame;
	}
	return below;
}

/*
 * The name of |frame|: of functions that were inlined into another, that one's, unless it runs the
 * loop.
 */
static const char *name_called(const struct d9__frame_name *frame,
			       const struct d9__frame_name *runner)
{
	const char *outermost = frame->outermost;

	return !outermost || !strcmp(outermost, "main") ||
			       (runner && !strcmp(outermost, runner->function))
		       ? frame->function
		       : outermost;
}

struct counted {
	const char *name;
	uint64_t n;
};

/* The function of the program in which |worker| was found most often between rounds; NULL: too few
 * samples. */
static const char *find_function(const struct d9__analysis *a, const struct d9__worker *worker)
{
	const struct d9__frame_name *runner = find_runner(a);
	struct counted counted[FUNCTIONS_MAX], *most = NULL;
	const struct d9__stack *stack;
	size_t n = 0, place = 0, i;
	uint64_t on;

	while (worker->beside.hot && (stack = d9__hot_next(worker->beside.hot, &place, &on))) {
		const struct d9__frame_name *frame = stack->names ? called_by(stack, runner) : NULL;
		const char *name = frame ? name_called(frame, runner) : NULL;

		if (!name || !on)
			continue;
		for (i = 0; i < n && strcmp(counted[i].name, name) != 0; i++)
			;
		if (i == FUNCTIONS_MAX)
			continue;
		if (i == n)
			counted[n++] = (struct counted) { name, 0 };
		counted[i].n += on;
		if (!most || counted[i].n > most->n ||
		    (counted[i].n == most->n && strcmp(counted[i].name, most->name) < 0))
			most = &counted[i];
	}
	return most && most->n >= D9__HOT_FEW ? most->name : NULL;
}

const char *d9__finding_runner(const struct d9__findings *findings)
{
	const struct d9__frame_name *runner = find_runner(findings->analysis);

	return runner ? name_called(runner, NULL) : NULL;
}

/* ---- the check ---- */

bool d9__finding_never_waits(const struct d9__findings *findings, const struct d9__worker *worker)
{
	const struct d9__owners *owners = &findings->owners[worker->number];
	const struct d9__owner *library = d9__owners_find(owners, D9__OWNER_LIBRARY);
	const struct d9__loop_time *time = &worker->loop_time;
	uint64_t rounds = time->outside_n + time->outside_short_n;

	return owners->left_ns >= LEFT_NS && 10 * owners->asleep_ns < owners->left_ns &&
	       library && library->ns >= time->outside_ns &&
	       d9__finding_rate(rounds, owners->left_ns) >= ASKED_RATE;
}

static struct d9__hold hold_of(const struct d9__worker *worker)
{
	return (struct d9__hold) { .worker = worker,
				   .ns = worker->loop_time.outside_max_ns,
				   .n = worker->loop_time.outside_n };
}

/* Whether it did so only while it started. */
static bool is_start(const struct d9__analysis *a, const struct d9__worker *worker)
{
	const struct d9__loop_time *time = &worker->loop_time;

	return time->outside_ns <= START_NS &&
	       d9__analysis_is_start(a, time->outside_first_ns, time->outside_last_ns, false);
}

static enum d9__severity severity_of(const struct d9__findings *findings,
				     const struct d9__worker *worker, double share)
{
	struct d9__hold hold = hold_of(worker);

	if (share >= MOST_SHARE)
		return D9__CRITICAL;
	if (is_start(findings->analysis, worker))
		return D9__INFO;
	return share >= SHARE && hold.ns < D9__HOLD_ALWAYS_NS ? D9__WARNING
							      : d9__hold_severity(findings, &hold);
}

static void between_rounds(struct d9__findings *findings, const struct d9__worker *worker,
			   const struct d9__owners *owners)
{
	const char *function = find_function(findings->analysis, worker);
	const struct d9__loop_time *time = &worker->loop_time;
	const char *name = function ? function : "work between rounds";
	double share = d9__owners_share(owners, time->outside_ns);
	struct d9__finding *finding;

	finding = d9__finding_add(
		findings, severity_of(findings, worker, share), time->outside_ns,
		"Do it in a callback in small pieces, or in a thread: between two rounds of the "
		"loop nothing is "
		"served. A round ends where event_base_loop(), ev_run() or "
		"g_main_context_iteration() returns.",
		"%s holds worker %" PRIu64
		"'s loop between its rounds: %s in all, %.0f %% of the time, up to %s at "
		"once.",
		name, worker->id, d9__units_ns(time->outside_ns).text, 100 * share,
		d9__units_ns(time->outside_max_ns).text);
	d9__finding_set_name(findings, finding, name, strlen(name));
	if (time->outside_max_ns < D9__MS_NS)
		d9__finding_set_brief(findings, finding,
				      "works between rounds for %.0f %% of the time, each time "
				      "under 1 ms",
				      100 * share);
	else
		d9__finding_set_brief(findings, finding,
				      "holds the loop %s between rounds, %.0f %% of the time",
				      d9__units_ns(time->outside_max_ns).text, 100 * share);
	if (finding)
		finding->hot = d9__hot_describe(&worker->beside, false);
	d9__finding_add_evidence(findings, finding,
				 &(struct d9__evidence) { .at_ns = time->outside_max_at_ns,
							  .duration_ns = time->outside_max_ns,
							  .has_worker = true,
							  .worker = worker->id },
				 "the longest; %s took a millisecond and more",
				 d9__units_count(time->outside_n).text);
}

/*
 * Whether callbacks surely waited for how the thread slept there: timers had been due, or more
 * than one piece came together.  One alone may have ended a poll() that the program has itself, on
 * what the loop watches.
 */
static bool are_waited_for(const struct d9__worker *worker, const struct d9__owners *owners)
{
	const struct d9__returns *returns = &worker->returns;

	return d9__worker_was_missed(worker) &&
	       (2 * returns->late >= returns->found || 2 * returns->calls >= 3 * returns->found ||
		2 * d9__io_useful(&owners->io) >= 3 * returns->found);
}

/*
 * Whether the thread sleeps there for longer than it works: it waits by itself, around its loop.
 * Where the machine explains most of what no reading does, it was ready instead.
 */
static bool sleeps_outside(const struct d9__loop_time *time, const struct d9__owners *owners)
{
	uint64_t taken_ns = d9__u64_minus(owners->taken_ns, time->outside_ready_ns);

	return 2 * owners->machine_part < 1 && 2 * taken_ns < time->outside_asleep_ns &&
	       time->outside_ns < time->outside_asleep_ns;
}

void d9__check_between_rounds(struct d9__findings *findings)
{
	const struct d9__analysis *a = findings->analysis;

	for (size_t i = 0; i < a->timeline.n; i++) {
		const struct d9__worker *worker = a->timeline.items[i];
		const struct d9__loop_time *time = &worker->loop_time;
		const struct d9__owners *owners = &findings->owners[i];
		struct d9__hold hold = hold_of(worker);

		if (!time->outside_ns ||
		    (time->outside_max_ns < D9__LONG_ALWAYS_NS &&
		     d9__finding_never_waits(findings, worker)) ||
		    (sleeps_outside(time, owners) && !are_waited_for(worker, owners)))
			continue;
		if (d9__hold_is_long(findings, &hold) ||
		    (owners->left_ns >= D9__SECOND_NS &&
		     d9__owners_share(owners, time->outside_ns) >= SHARE))
			between_rounds(findings, worker, owners);
	}
}

/* Callbacks waited for naps that |worker|'s thread takes between rounds, or waits of its own. */
static void naps_between(struct d9__findings *findings, const struct d9__worker *worker,
			 const struct d9__owners *owners)
{
	static const char name[] = "sleep between rounds";
	const struct d9__returns *returns = &worker->returns;
	uint64_t ns = worker->loop_time.outside_asleep_ns, mean_ns = d9__returns_mean_ns(returns);
	double share = d9__owners_share(owners, ns);
	struct d9__finding *finding;
	struct d9__finding_blocked blocked;
	bool known = d9__finding_blocked_most(findings->analysis, &worker->beside, &blocked);

	finding = d9__finding_add(
		findings,
		!are_waited_for(worker, owners)		    ? D9__INFO
		: returns->longest_ns >= D9__HOLD_ALWAYS_NS ? D9__CRITICAL
							    : D9__WARNING,
		ns,
		"Wait in the loop, not beside it: let it watch the descriptor that is read or "
		"waited "
		"for there, or set a timer for the nap and let the loop wait until then. Between "
		"two rounds nothing is served, so that callbacks that are ready meanwhile wait for "
		"the end of the sleep. If it is a poll() of the loop's own descriptors, and ends "
		"with them, none does.",
		"Worker %" PRIu64
		"'s thread sleeps between its loop's rounds, outside of it%s%s: %s in all, %.0f %% "
		"of the time, %s each time, up to %s. Callbacks were ready in %s of %s times when "
		"it came back.",
		worker->id, known ? ", in " : "", known ? blocked.place : "", d9__units_ns(ns).text,
		100 * share, d9__units_ns(mean_ns).text, d9__units_ns(returns->longest_ns).text,
		d9__units_count(returns->found).text, d9__units_count(returns->n).text);
	d9__finding_set_name(findings, finding, name, strlen(name));
	d9__finding_set_brief(
		findings, finding, "%s outside of the loop, up to %s at once, %.0f %% of the time",
		d9__units_ns(ns).text, d9__units_ns(returns->longest_ns).text, 100 * share);
	if (finding)
		finding->blocked = d9__finding_blocked(findings->analysis, &worker->beside);
	d9__finding_add_evidence(findings, finding,
				 &(struct d9__evidence) { .at_ns = returns->longest_at_ns,
							  .duration_ns = returns->longest_ns,
							  .has_worker = true,
							  .worker = worker->id },
				 "the longest; callbacks were ready behind %s of %s",
				 d9__units_count(returns->found).text,
				 d9__units_count(returns->n).text);
}

/* Its thread waits in naps or waits of its own: of more work than sleep the work is told. */
static bool naps(const struct d9__worker *worker, const struct d9__owners *owners)
{
	const struct d9__loop_time *time = &worker->loop_time;

	return d9__worker_was_missed(worker) && time->outside_asleep_ns > time->outside_ns &&
	       d9__owners_share(owners, time->outside_asleep_ns) >= SHARE;
}

/*
 * How long |worker|'s thread slept between rounds in calls that are no wait for the loop's sake,
 * while callbacks waited.
 */
static uint64_t held_ns(const struct d9__owners *owners)
{
	const struct d9__owner *between = d9__owners_find(owners, D9__OWNER_BETWEEN);

	return between ? between->blocked_ns : 0;
}

/* |worker|'s thread calls functions between rounds that block. */
static void blocks_between(struct d9__findings *findings, const struct d9__worker *worker,
			   const struct d9__owners *owners, uint64_t ns)
{
	const struct d9__outside_calls *calls = &worker->outside_calls;
	const struct d9__returns *returns = &worker->returns;
	uint64_t mean_ns = calls->n ? calls->ns / calls->n : 0;
	double share = d9__owners_share(owners, ns);
	const char *advice = NULL, *name = "sleep between rounds";
	struct d9__finding_blocked blocked = { .place = "" };
	struct d9__finding *finding;

	if (d9__finding_blocked_most(findings->analysis, &worker->beside, &blocked)) {
		advice = d9__advice_slept(findings, &worker->beside, blocked.call);
		if (blocked.function[0])
			name = blocked.function;
	}
	finding = d9__finding_add(
		findings,
		share >= MOST_SHARE || returns->held_longest_ns >= D9__HOLD_ALWAYS_NS ? D9__CRITICAL
										      : D9__WARNING,
		ns, advice ? advice : d9__advice_sleeps(false),
		"%s sleeps between two rounds of worker %" PRIu64
		"'s loop%s%s: %s in all, %.0f %% of the time, %s in each of %s calls. Nothing is "
		"served meanwhile: callbacks were ready in %s of %s times when it came back, once "
		"behind %s.",
		name, worker->id, blocked.place[0] ? ", in " : "", blocked.place,
		d9__units_ns(ns).text, 100 * share, d9__units_ns(mean_ns).text,
		d9__units_count(calls->n).text, d9__units_count(returns->held_found).text,
		d9__units_count(returns->held).text, d9__units_ns(returns->held_longest_ns).text);
	d9__finding_set_name(findings, finding, name, strlen(name));
	d9__finding_set_brief(
		findings, finding, "sleeps between rounds, %.0f %% of the time, %s each, %s calls",
		100 * share, d9__units_ns(mean_ns).text, d9__units_count(calls->n).text);
	if (finding)
		finding->blocked = d9__finding_blocked(findings->analysis, &worker->beside);
	d9__finding_add_evidence(
		findings, finding,
		&(struct d9__evidence) { .at_ns = blocked.at_ns,
					 .duration_ns = blocked.ns,
					 .has_worker = true,
					 .worker = worker->id },
		"the longest; callbacks were ready behind %s of %s times outside of the loop in "
		"which it slept",
		d9__units_count(returns->held_found).text, d9__units_count(returns->held).text);
}

void d9__check_sleeps_between(struct d9__findings *findings)
{
	const struct d9__analysis *a = findings->analysis;

	for (size_t i = 0; i < a->timeline.n; i++) {
		const struct d9__worker *worker = a->timeline.items[i];
		const struct d9__owners *owners = &findings->owners[i];
		uint64_t ns = held_ns(owners);

		if (d9__owners_share(owners, ns) >= SHARE ||
		    (ns && worker->returns.held_longest_ns >= D9__HOLD_ALWAYS_NS))
			blocks_between(findings, worker, owners, ns);
		else if (owners->left_ns >= D9__SECOND_NS && naps(worker, owners))
			naps_between(findings, worker, owners);
	}
}
