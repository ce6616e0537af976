/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of time that loops take outside of callbacks. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/hot.h"
#include "findings/check_parts.h"
#include "findings/owners.h"
#include "text/units.h"

/* Told if it takes one in so many parts of the trace, or if one call takes so long. */
#define OUTSIDE_PART 10
#define OUTSIDE_NS   (10 * D9__MS_NS)

/* A call is slow from here on. */
#define SLOW_NS (5 * D9__MS_NS)

/* A call that is so long has a check of its own. */
#define LONG_NS (10 * D9__MS_NS)

/* CPU time in the library without a callback is critical from here on. */
#define LIBRARY_NS D9__SECOND_NS

/* A trace shorter than this one says nothing about shares. */
#define LENGTH_NS (500 * D9__MS_NS)

static uint64_t length_of(const struct d9__analysis *a)
{
	return a->loop_last_ns - a->loop_first_ns;
}

/* The loop that |outside| is of, or NULL. */
static const struct d9__owners *owners_of(const struct d9__findings *findings,
					  const struct d9__outside *outside)
{
	const struct d9__worker *worker =
		d9__table_find(&findings->analysis->timeline.by_id, outside->worker);

	return worker ? &findings->owners[worker->number] : NULL;
}

/* Of the time in |phase| of |callback|'s sources, as the account has it: without what the machine
 * took. */
static uint64_t own_ns(const struct d9__findings *findings, const struct d9__callback *callback,
		       enum d9__outside_phase phase)
{
	enum d9__owner_kind kind = phase == D9__IN_CHECK ? D9__OWNER_CHECK : D9__OWNER_PREPARE;
	const struct d9__outside *outside = &callback->outside[phase];
	const struct d9__owners *owners = owners_of(findings, outside);

	for (size_t i = 0; owners && owners->taken_ns && i < owners->n; i++)
		if (owners->items[i].kind == kind && owners->items[i].callback == callback)
			return owners->items[i].ns;
	return outside->ns;
}

/* |finding| is about the function that is called in |outside|, and tells where that was found. */
static void set_function(struct d9__findings *findings, struct d9__finding *finding,
			 const struct d9__outside *outside)
{
	const struct d9__worker *worker =
		d9__table_find(&findings->analysis->timeline.by_id, outside->worker);

	d9__finding_set_name(findings, finding, outside->function, strlen(outside->function));
	if (!finding)
		return;
	finding->source = outside->source;
	if (worker)
		finding->hot = d9__hot_describe_inside(&worker->beside, outside->function);
}

static void source_time(struct d9__findings *findings, const struct d9__callback *callback,
			enum d9__outside_phase phase)
{
	const struct d9__outside *outside = &callback->outside[phase];
	uint64_t ns = own_ns(findings, callback, phase);
	const char *what = phase == D9__IN_CHECK ? "check()" : "prepare()";
	char where[300];
	uint64_t length_ns = length_of(findings->analysis);
	/* By the clock: what the machine took of all of them is in the longest, too. */
	uint64_t longest_ns =
		(uint64_t)((double)outside->max_ns * (double)ns / (double)outside->ns);
	bool large = 2 * ns > length_ns || longest_ns > 50 * D9__MS_NS;
	struct d9__shown_name name = d9__finding_name(callback);
	struct d9__finding *finding;

	if (outside->function)
		snprintf(where, sizeof(where), "%.256s(), %s", outside->function, what);
	else if (outside->place)
		snprintf(where, sizeof(where), "%.256s, %s", outside->place, what);
	else
		snprintf(where, sizeof(where), "%s", what);
	finding = d9__finding_add(
		findings, large ? D9__CRITICAL : D9__WARNING, ns,
		"Let prepare() and check() only look: compare a flag or a descriptor's revents "
		"there, and do the "
		"work in dispatch(), in pieces or in a thread. GLib calls both in each round of "
		"the loop, whether "
		"the source has anything to do or not, and all others wait meanwhile.",
		"%s of the %s lie in %s of the source %.*s, outside of all callbacks: %s calls, "
		"the longest %s.",
		d9__units_ns(ns).text, d9__units_ns(length_ns).text, where, name.len, name.text,
		d9__units_count(outside->calls).text, d9__units_ns(longest_ns).text);
	if (outside->function)
		set_function(findings, finding, outside);
	else
		d9__finding_set_callback(findings, finding, callback);
	d9__finding_set_brief(findings, finding, "%s takes %s of %s, up to %s each time", what,
			      d9__units_ns(ns).text, d9__units_ns(length_ns).text,
			      d9__units_ns(longest_ns).text);
	d9__finding_add_evidence(findings, finding,
				 &(struct d9__evidence) { .at_ns = outside->max_at_ns,
							  .has_worker = true,
							  .worker = outside->worker,
							  .task = outside->task,
							  .callback = callback },
				 "told here, %s by the clock; %s on average",
				 d9__units_ns(outside->max_ns).text,
				 d9__units_ns(outside->calls ? ns / outside->calls : 0).text);
	d9__finding_explain(findings, finding, callback);
}

/* Calls that take less on average only look. */
#define LOOK_NS (50 * D9__US_NS)

/* Whether the machine, which took a part of the loop's time, can have made slow calls of short
 * ones. */
static bool are_preempted(const struct d9__findings *findings, const struct d9__outside *outside)
{
	const struct d9__owners *owners = owners_of(findings, outside);

	if (!owners || outside->ns >= outside->calls * LOOK_NS)
		return false;
	return (double)(outside->slow * SLOW_NS) * (double)(owners->left_ns + owners->taken_ns) <=
	       (double)outside->ns * (double)owners->taken_ns;
}

/*
 * By what many calls took: one call may be long because the kernel ran something else in its middle, or because of
 * something that it does once.
 */
static bool is_often(const struct d9__findings *findings, const struct d9__outside *outside)
{
	return (outside->slow >= 3 && !are_preempted(findings, outside)) ||
	       outside->max_ns >= 200 * D9__MS_NS ||
	       (outside->calls >= 20 && outside->ns - outside->max_ns >= outside->calls * LOOK_NS);
}

/* ---- watchers that are called in each round ---- */

/*
 * Whether |owner| computes in each round, whatever the loop woke for: libev's prepare and check
 * watchers.  Where half of its calls bring data, or most are short and a few do the work, the round
 * was for that; and calls that are long by themselves are told as such.
 */
static bool works_each_round(const struct d9__owner *owner)
{
	const struct d9__callback *callback = owner->callback;

	return owner->kind == D9__OWNER_CALLBACK && callback->each_round && owner->calls &&
	       owner->ns / owner->calls < LONG_NS && 2 * owner->blocked_ns < owner->ns &&
	       2 * d9__io_useful(&owner->io) < owner->calls &&
	       2 * d9__histogram_quantile(&callback->durations, 0.5) >= owner->ns / owner->calls;
}

static void each_round(struct d9__findings *findings, const struct d9__worker *worker,
		       const struct d9__owners *owners, const struct d9__owner *owner)
{
	double share = d9__owners_share(owners, owner->ns - owner->blocked_ns);
	uint64_t mean_ns = (owner->ns - owner->blocked_ns) / owner->calls;
	struct d9__shown_name name = d9__finding_name(owner->callback);
	struct d9__finding *finding;

	finding = d9__finding_add(
		findings, share > 0.5 ? D9__CRITICAL : D9__WARNING, owner->ns,
		"Let a prepare or check watcher only look (at a flag, say), and do the work where "
		"there is some: in the callback that makes it, by a timer, or in a thread. libev "
		"calls it in each round of the loop, whatever that woke for, and all others wait "
		"meanwhile.",
		"%.*s computes in each round of worker %" PRIu64
		"'s loop and has %.0f %% of its time: %s in each of %s calls.",
		name.len, name.text, worker->id, 100 * share, d9__units_ns(mean_ns).text,
		d9__units_count(owner->calls).text);
	d9__finding_set_callback(findings, finding, owner->callback);
	d9__finding_set_brief(
		findings, finding, "computes in each round, %.0f %% of the time: %s, %s calls",
		100 * share, d9__units_ns(mean_ns).text, d9__units_count(owner->calls).text);
	d9__finding_explain(findings, finding, owner->callback);
}

static void check_each_round(struct d9__findings *findings)
{
	const struct d9__timeline *timeline = &findings->analysis->timeline;

	for (size_t i = 0; i < timeline->n; i++) {
		const struct d9__owners *owners = &findings->owners[i];

		for (size_t j = 0; j < owners->n; j++) {
			const struct d9__owner *owner = &owners->items[j];

			if (owners->left_ns >= D9__SECOND_NS && works_each_round(owner) &&
			    OUTSIDE_PART * (owner->ns - owner->blocked_ns) >= owners->left_ns)
				each_round(findings, timeline->items[i], owners, owner);
		}
	}
}

void d9__check_source_time(struct d9__findings *findings)
{
	const struct d9__callbacks *callbacks = &findings->analysis->callbacks;
	uint64_t length_ns = length_of(findings->analysis);

	for (size_t i = 0; i < callbacks->n; i++)
		for (unsigned j = 0; j < D9__OUTSIDE_PHASES; j++) {
			const struct d9__outside *outside = &callbacks->items[i]->outside[j];

			if (is_often(findings, outside) &&
			    (outside->max_ns >= OUTSIDE_NS ||
			     (length_ns >= LENGTH_NS && outside->ns * OUTSIDE_PART >= length_ns)))
				source_time(findings, callbacks->items[i], (enum d9__outside_phase)j);
		}
	check_each_round(findings);
}

/* The function that samples found |worker| in most outside of its callbacks, as long as they found
 * one. */
static const char *function_beside(const struct d9__worker *worker)
{
	struct d9__spot spot;

	return d9__hot_spots(&worker->beside, false, &spot, 1)
		       ? spot.stack->names[spot.frame].function
		       : NULL;
}

/* Whether a function of the program itself computed there: a signal handler. */
static bool is_handler(const struct d9__worker *worker)
{
	struct d9__spot spot;

	return d9__hot_spots(&worker->beside, false, &spot, 1) &&
	       d9__frame_is_program(&spot.stack->names[spot.frame]);
}

static void busy_wait(struct d9__findings *findings, const struct d9__worker *worker)
{
	struct d9__finding *finding;

	finding = d9__finding_add(
		findings, D9__WARNING, worker->busy_waits.ns,
		"Let the signal handler set a flag or write a byte and return, and do the work in a callback "
		"(evsignal_new(), ev_signal, g_unix_signal_add()): one ran here, in all likelihood, and stops the "
		"thread wherever it is. Of a program that drives GLib by itself it may also be what that does "
		"between g_main_context_query() and g_main_context_check().",
		"Worker %" PRIu64 " was on the CPU for %s inside of %s waits, up to %s in one: something ran while its "
		"loop slept.",
		worker->id, d9__units_ns(worker->busy_waits.ns).text, d9__units_count(worker->busy_waits.n).text,
		d9__units_ns(worker->busy_waits.max_ns).text);
	if (is_handler(worker)) {
		const char *function = function_beside(worker);

		d9__finding_set_name(findings, finding, function, strlen(function));
	}
	d9__finding_set_brief(findings, finding, "worker %" PRIu64 ": %s of CPU inside %s waits: a signal handler?",
			      worker->id, d9__units_ns(worker->busy_waits.ns).text,
			      d9__units_count(worker->busy_waits.n).text);
	d9__finding_add_evidence(findings, finding,
				 &(struct d9__evidence){ .at_ns = worker->busy_waits.max_at_ns,
							 .has_worker = true,
							 .worker = worker->id },
				 "the wait with most began here");
}

static void inside_library(struct d9__findings *findings, const struct d9__worker *worker)
{
	const struct d9__callback *last =
		worker->n_recent
			? worker->recent[(worker->n_recent - 1) % D9__WORKER_RECENT].callback
			: NULL;
	struct d9__shown_name name = d9__finding_name(last);
	const char *function = function_beside(worker);
	struct d9__finding *finding;

	finding = d9__finding_add(
		findings, worker->library.cpu_ns >= LIBRARY_NS ? D9__CRITICAL : D9__WARNING,
		worker->library.cpu_ns,
		"Look at what the last callback did to events that were still added: "
		"event_assign() on one, or "
		"event_add() from two threads without locks, makes its lists a ring. Else a wait "
		"over thousands of "
		"descriptors, or a signal handler, computes there.",
		"Worker %" PRIu64
		" computed for %s in its loop library and called nothing meanwhile%s%s; %.*s was "
		"called last.",
		worker->id, d9__units_ns(worker->library.cpu_ns).text, function ? ", in " : "",
		function ? function : "", name.len, name.text);
	if (function)
		d9__finding_set_name(findings, finding, function, strlen(function));
	d9__finding_set_brief(findings, finding, "%s of CPU time inside the library, after %.*s",
			      d9__units_ns(worker->library.cpu_ns).text, name.len, name.text);
	if (finding)
		finding->hot = d9__hot_describe(&worker->beside, false);
	d9__finding_add_evidence(findings, finding,
				 &(struct d9__evidence) { .at_ns = worker->library.since_ns,
							  .duration_ns = worker->library.until_ns -
									 worker->library.since_ns,
							  .has_worker = true,
							  .worker = worker->id },
				 "the newest of %s looks at it",
				 d9__units_count(worker->library.n).text);
}

void d9__check_inside_library(struct d9__findings *findings)
{
	const struct d9__analysis *a = findings->analysis;

	for (size_t i = 0; i < a->timeline.n; i++)
		if (!a->timeline.items[i]->library.n)
			d9__check_held_by_library(findings, i);
		else if (!is_handler(a->timeline.items[i]))
			inside_library(findings, a->timeline.items[i]);
}

void d9__check_busy_wait(struct d9__findings *findings)
{
	const struct d9__analysis *a = findings->analysis;

	/* A wait may hold calls that are not in the trace. */
	if (a->losses.events)
		return;
	for (size_t i = 0; i < a->timeline.n; i++) {
		const struct d9__worker *worker = a->timeline.items[i];

		if (worker->library.n && !is_handler(worker))
			continue;
		if (worker->busy_waits.max_ns >= OUTSIDE_NS ||
		    (length_of(a) >= LENGTH_NS && worker->busy_waits.ns * OUTSIDE_PART >= length_of(a)))
			busy_wait(findings, worker);
	}
}

uint64_t d9__worker_in_sources_ns(const struct d9__analysis *a, const struct d9__worker *worker,
				  enum d9__outside_phase phase)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < a->callbacks.n; i++)
		if (a->callbacks.items[i]->outside[phase].worker == worker->id)
			ns += a->callbacks.items[i]->outside[phase].ns;
	return ns;
}

uint64_t d9__worker_own_ns(const struct d9__analysis *a, const struct d9__worker *worker)
{
	uint64_t told_ns = d9__worker_busy_ns(worker), awake_ns;

	for (unsigned i = 0; i < D9__OUTSIDE_PHASES; i++)
		told_ns += d9__worker_in_sources_ns(a, worker, (enum d9__outside_phase)i);
	/* The program's own, and told as that. */
	told_ns += worker->loop_time.outside_ns;
	/* A call that goes on still is in no sum of calls. */
	if (worker->piece.open)
		told_ns += a->loop_last_ns - worker->piece.start_ns;
	/* Awake may be without a CPU, and looking for events takes CPU time too: of both the less. */
	awake_ns = worker->active_ns < worker->cpu_ns ? worker->active_ns : worker->cpu_ns;
	return awake_ns > told_ns ? awake_ns - told_ns : 0;
}

/* |worker|'s loop is asked for events again and again, and is never let wait for one. */
static void never_waits(struct d9__findings *findings, const struct d9__worker *worker)
{
	const struct d9__owners *owners = &findings->owners[worker->number];
	const struct d9__loop_time *time = &worker->loop_time;
	const struct d9__owner *library = d9__owners_find(owners, D9__OWNER_LIBRARY);
	uint64_t rounds = time->outside_n + time->outside_short_n,
		 ns = library->ns + time->outside_ns,
		 rate = d9__finding_rate(rounds, owners->left_ns);
	double share = d9__owners_share(owners, ns);
	const char *runner = d9__finding_runner(findings), *name = runner ? runner : "the program";
	struct d9__finding *finding;

	finding = d9__finding_add(
		findings, share >= 0.5 ? D9__CRITICAL : D9__WARNING, ns,
		"Let the loop wait (event_base_loop() without EVLOOP_NONBLOCK, ev_run() without "
		"EVRUN_NOWAIT, g_main_context_iteration(context, TRUE)): it comes back when there "
		"is something to do, and who asks again and again burns a CPU for that.",
		"%s asks worker %" PRIu64 "'s loop for events %s times a second and never lets it "
		"wait for one: %.0f %% of the time go into asking, %s a time.",
		name, worker->id, d9__units_count(rate).text, 100 * share,
		d9__units_ns(rounds ? ns / rounds : 0).text);
	d9__finding_set_name(findings, finding, name, strlen(name));
	d9__finding_set_brief(
		findings, finding,
		"never lets the loop wait: asks %s times a second, %.0f %% of the time",
		d9__units_count(rate).text, 100 * share);
	d9__finding_add_evidence(findings, finding,
				 &(struct d9__evidence) { .has_worker = true,
							  .worker = worker->id },
				 "%s rounds; callbacks had %s", d9__units_count(rounds).text,
				 d9__units_ns(time->callback_ns).text);
}

#define FEW_TASKS 100

static void loop_overhead(struct d9__findings *findings, const struct d9__worker *worker, uint64_t own_ns)
{
	const struct d9__analysis *a = findings->analysis;
	uint64_t length_ns = length_of(a), rounds = worker->parks ? worker->parks : 1;
	/* With few tasks there is hardly any bookkeeping. */
	bool never_waits = 100 * worker->parked_ns < length_ns && a->registered.max <= FEW_TASKS;
	struct d9__finding *finding;
	char tasks[160] = "";

	if (a->registered.max)
		snprintf(tasks, sizeof(tasks), "; up to %s tasks are registered",
			 d9__units_count(a->registered.max).text);
	finding = d9__finding_add(
		findings, 10 * own_ns > 6 * length_ns ? D9__WARNING : D9__INFO, own_ns,
		never_waits ?
		"Let the loop wait (g_main_context_iteration(context, TRUE), event_base_loop() without EVLOOP_NONBLOCK, "
		"ev_run() without EVRUN_NOWAIT): it never did, and who calls it asks again and again whether there is "
		"something to do." :
		"Register fewer timers and sources, keep them instead of making them anew, join timers that are "
		"due together: it is the loop library's own bookkeeping, which looks at all of them each round, or "
		"code between rounds that is no callback (prepare and check functions).",
		"Worker %" PRIu64 " spends %s of %s outside of callbacks, %s for each of %s rounds%s.", worker->id,
		d9__units_ns(own_ns).text, d9__units_ns(length_ns).text, d9__units_ns(own_ns / rounds).text,
		d9__units_count(rounds).text, tasks);
	d9__finding_set_brief(findings, finding, "worker %" PRIu64 ": %s of %s outside of callbacks%s", worker->id,
			      d9__units_ns(own_ns).text, d9__units_ns(length_ns).text,
			      never_waits ? ", never waits" : "");
	d9__finding_add_evidence(findings, finding,
				 &(struct d9__evidence){ .has_worker = true, .worker = worker->id },
				 "on the CPU for %s, %s of that in callbacks", d9__units_ns(worker->cpu_ns).text,
				 d9__units_ns(d9__worker_busy_ns(worker)).text);
}

void d9__check_loop_overhead(struct d9__findings *findings)
{
	static const char *const told[] = { "accept-storm", "spin",	   "wake-storm",
					    "empty-wakes",  "source-time", "inside-library",
					    "long-round",   "many-wakes" };
	const struct d9__analysis *a = findings->analysis;

	/* Callbacks that the hooks do not see may be in there, and loops that go round for nothing are told as that. */
	if (length_of(a) < LENGTH_NS || a->losses.events ||
	    d9__metadata_coverage(&a->metadata, "poll") != D9__COVERAGE_FULL)
		return;
	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++)
		if (d9__finding_told(findings, told[i]))
			return;
	for (size_t i = 0; i < a->timeline.n; i++) {
		uint64_t own_ns = d9__worker_own_ns(a, a->timeline.items[i]);

		if (d9__finding_never_waits(findings, a->timeline.items[i]))
			never_waits(findings, a->timeline.items[i]);
		else if (10 * own_ns >= 4 * length_of(a) && own_ns > 2 * d9__worker_busy_ns(a->timeline.items[i]))
			loop_overhead(findings, a->timeline.items[i], own_ns);
	}
}
