/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of workers, tasks, queues, spans and samples. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "findings/check_parts.h"
#include "text/units.h"

/* Fewer live tasks of one callback are no leak worth telling. */
#define LEAK_TASKS 100

/* How the load lies over workers is no accident in a loop of so many calls, watched for so long. */
#define IMBALANCE_CALLS 100
#define IMBALANCE_NS    D9__SECOND_NS

/* ---- time off the CPU ---- */

/* How often a call of |callback| was off the CPU without a BlockingCallEvent, which tells with its length. */
static uint64_t off_untold(const struct d9__callback *callback, double share)
{
	if (callback->off_samples <= callback->off_told)
		return 0;
	return d9__samples_estimate(callback->off_samples - callback->off_told, callback->switches, share);
}

/* The callback with most of them; NULL: there are no callbacks.  |*all|: how many those of all are together. */
static const struct d9__callback *most_off_samples(const struct d9__callbacks *callbacks, double share, uint64_t *all)
{
	const struct d9__callback *most = NULL;

	*all = 0;
	for (size_t i = 0; i < callbacks->n; i++) {
		*all += off_untold(callbacks->items[i], share);
		if (!most || off_untold(callbacks->items[i], share) > off_untold(most, share))
			most = callbacks->items[i];
	}
	return most;
}

void d9__check_blocking(struct d9__findings *findings)
{
	const struct d9__analysis *a = findings->analysis;
	const struct d9__samples *samples = &a->samples;
	const struct d9__stack *top = d9__samples_top_off(samples);
	double share = d9__analysis_switch_share(a);
	uint64_t untold;
	const struct d9__callback *most = most_off_samples(&a->callbacks, share, &untold);
	const char *about = share < 1 ? "about " : "";
	char measured[160] = "";
	struct d9__finding *finding;
	struct d9__shown_name name;

	if (!top || !untold || top->off <= 5)
		return;
	if (share < 1)
		snprintf(measured, sizeof(measured), ", measured in %s of the time, scaled", d9__units_percent(share).text);
	name = d9__finding_name(most);
	finding = d9__finding_add(
		findings, D9__WARNING, untold,
		"Look at the stacks of these samples for the call that waits: a callback that is taken off the CPU "
		"blocks its loop.",
		"%s callbacks were taken off the CPU while they ran, %.*s most often (%s%s times%s).",
		d9__units_count(untold).text, name.len, name.text, about, d9__units_count(off_untold(most, share)).text,
		measured);
	d9__finding_set_callback(findings, finding, most);
	d9__finding_set_brief(findings, finding, "is off the CPU while it runs, %s%s times", about,
			      d9__units_count(off_untold(most, share)).text);
	d9__finding_add_evidence(findings, finding, NULL,
				 "%s of %s off-CPU samples lie inside callbacks; the largest group with "
				 "one stack has %s%s%s",
				 d9__units_count(samples->off_in_polls).text,
				 d9__units_count(samples->off).text,
				 d9__units_count(top->off).text, top->leaf ? ", in " : "",
				 top->leaf ? top->leaf : "");
}

/* ---- queues, tasks, balance ---- */

/* The long call that ran at |ns|, or NULL. */
static const struct d9__callback *ran_at(const struct d9__stalls *stalls, uint64_t ns)
{
	for (size_t i = 0; i < stalls->n; i++) {
		const struct d9__stall *stall = stalls->items[i].stall;

		if (stall->start_ns <= ns && ns <= stall->end_ns)
			return stall->culprit;
	}
	return NULL;
}

void d9__check_queue_depth(struct d9__findings *findings)
{
	const struct d9__gauge *queue = &findings->analysis->queue;
	struct d9__finding *finding;

	if (queue->max <= 100)
		return;
	finding = d9__finding_add(
		findings,
		d9__finding_is_machine_full(findings) ? D9__INFO
		: queue->max > 1000		      ? D9__CRITICAL
						      : D9__WARNING,
		queue->max,
		"Add loops, make the callbacks cheaper, or slow the senders down: more work is "
		"handed to the loops "
		"than they pick up.",
		"%s%s pieces of work handed over by other threads were waiting for a loop.",
		/* The sample event holds no larger number. */
		queue->max == 255 ? "At least " : "Up to ", d9__units_count(queue->max).text);
	d9__finding_set_brief(findings, finding, "%s%s pieces of work wait for a loop",
			      queue->max == 255 ? "at least " : "", d9__units_count(queue->max).text);
	d9__finding_set_effect(findings, finding, ran_at(&findings->analysis->stalls, queue->max_at_ns),
			       "%s%s pieces of work waited", queue->max == 255 ? "at least " : "",
			       d9__units_count(queue->max).text);
	d9__finding_add_evidence(findings, finding,
				 &(struct d9__evidence){ .at_ns = queue->max_at_ns },
				 "the deepest of %s samples; mean %.1f",
				 d9__units_count(queue->samples).text, d9__gauge_mean(queue));
}

/* True if the trace tells of the end of a task that never ran, as it tells of its beginning. */
static bool armed_ends_are_seen(const struct d9__findings *findings)
{
	return d9__metadata_says(&findings->analysis->metadata, "armed_end", "full");
}

static void task_leak(struct d9__findings *findings, const struct d9__callback *callback,
		      enum d9__coverage ends)
{
	const char *site = d9__callback_site(callback);
	uint64_t ended;
	uint64_t left = (uint64_t)d9__tasks_left(&findings->analysis->tasks, callback, &ended);
	bool idle = 2 * (callback->spawned - callback->ran) > left;
	bool unseen = ends != D9__COVERAGE_FULL && ended == 0 && !(idle && armed_ends_are_seen(findings));
	/* Where the library makes them itself, the program's callback in which it does says more. */
	bool by_library = !site || d9__module_is_loop(site, strlen(site));
	const struct d9__callback *maker = by_library ? callback->maker : NULL;
	struct d9__shown_name made_by = d9__finding_name(maker);
	char never[160] = "";
	struct d9__finding *finding;
	struct d9__shown_name name;

	name = d9__finding_name(callback);
	if (idle)
		snprintf(never, sizeof(never), ", of which %s never ran",
			 d9__units_count(callback->spawned - callback->ran).text);
	if (unseen)
		finding = d9__finding_add(
			findings, D9__INFO, left,
			"Compare with the program's own count: not every end is visible (events that the program "
			"embeds in its own structures, watchers that are stopped), so these may have ended.",
			"New tasks of %.*s come all the time, %s so far, and none is seen to end.",
			name.len, name.text, d9__units_count(callback->spawned).text);
	else
		finding = d9__finding_add(
			findings, D9__WARNING, left,
			"Free them when they are done (event_free(), event_del(), ev_timer_stop(), "
			"g_source_destroy()); look at who calls the place where they are made.",
			"Tasks of %.*s only grow: %s%s were made, %s ended, %s are left%s.", name.len, name.text,
			/* The first few that do not run are not told. */
			idle ? "at least " : "", d9__units_count(callback->spawned).text,
			d9__units_count(ended).text, d9__units_count(left).text, never);
	d9__finding_set_callback(findings, finding,
				 callback->internal && maker && !maker->internal ? maker : callback);
	d9__finding_set_brief(findings, finding, "tasks only grow: %s made, %s %s",
			      d9__units_count(callback->spawned).text, unseen ? "none" : d9__units_count(left).text,
			      unseen ? "seen to end" : "left");
	d9__finding_add_evidence(findings, finding,
				 &(struct d9__evidence){ .callback = callback }, "made at %s%s%.*s", site ? site : "an unknown place",
				 maker ? ", in calls of " : "", maker ? made_by.len : 0, made_by.text);
}

/*
 * A task is in the trace from its first run on: those that were made at once, and run for the first
 * time one after the other, do not become more.  The loops' own counts know all.
 */
static bool is_only_late(const struct d9__analysis *a, int64_t left)
{
	return a->population.n && 2 * a->population.growth < (uint64_t)left;
}

void d9__check_task_leak(struct d9__findings *findings)
{
	const struct d9__analysis *a = findings->analysis;
	enum d9__coverage ends = d9__metadata_coverage(&a->metadata, "task_end");

	if (ends == D9__COVERAGE_NONE)
		return;
	for (size_t i = 0; i < a->callbacks.n; i++) {
		const struct d9__callback *callback = a->callbacks.items[i];
		uint64_t ended;
		int64_t left = d9__tasks_left(&a->tasks, callback, &ended);

		if (left >= LEAK_TASKS && callback->alive_curve &&
		    2 * (uint64_t)left > callback->spawned && !is_only_late(a, left) &&
		    d9__growth_curve_grows(callback->alive_curve, a->loop_last_ns, 2))
			task_leak(findings, callback, ends);
	}
}

static int compare_u64(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

/* The callback on which most time goes. */
static const struct d9__callback *dominant(const struct d9__callbacks *callbacks)
{
	const struct d9__callback *most = NULL;

	for (size_t i = 0; i < callbacks->n; i++)
		if (!most || callbacks->items[i]->durations.sum > most->durations.sum)
			most = callbacks->items[i];
	return most;
}

void d9__check_worker_imbalance(struct d9__findings *findings)
{
	const struct d9__timeline *timeline = &findings->analysis->timeline;
	const struct d9__callback *callback = dominant(&findings->analysis->callbacks);
	const struct d9__worker *busiest = NULL;
	struct d9__finding *finding;
	uint64_t *active = calloc(timeline->n + 1, sizeof(*active)), median;
	size_t n = 0;

	if (!active) {
		findings->err = -ENOMEM;
		return;
	}
	for (size_t i = 0; callback && i < timeline->n; i++) {
		const struct d9__worker *worker = timeline->items[i];

		if (!d9__callback_ran_on(callback, i))
			continue;
		active[n++] = worker->active_ns;
		if (!busiest || worker->active_ns > busiest->active_ns)
			busiest = worker;
	}
	qsort(active, n, sizeof(*active), compare_u64);
	median = n ? active[(n - 1) / 2] : 0;
	free(active);
	if (n < 2 || d9__finding_told(findings, "idle-workers") || busiest->polls < IMBALANCE_CALLS ||
	    busiest->active_ns + busiest->parked_ns < IMBALANCE_NS ||
	    d9__worker_utilisation(busiest) < 0.5 || busiest->active_ns <= 3 * median)
		return;
	finding = d9__finding_add(
		findings, D9__INFO, busiest->active_ns,
		"Spread connections or tasks more evenly over the loops.",
		"Worker %llu is awake %s of its time, over three times as long as its fellows.",
		(unsigned long long)busiest->id,
		d9__units_percent(d9__worker_utilisation(busiest)).text);
	d9__finding_set_callback(findings, finding, callback);
	d9__finding_set_brief(findings, finding, "worker %llu does over 3 times as much as its fellows",
			      (unsigned long long)busiest->id);
	d9__finding_set_effect(findings, finding, callback, "worker %llu does over 3 times as much as its fellows",
			       (unsigned long long)busiest->id);
	d9__finding_add_evidence(findings, finding,
				 &(struct d9__evidence){ .has_worker = true,
							 .worker = busiest->id,
							 .callback = callback },
				 "awake for %s; the median of the %zu workers that run the same "
				 "callback is %s",
				 d9__units_ns(busiest->active_ns).text, n,
				 d9__units_ns(median).text);
}

/* ---- spans ---- */

void d9__check_many_spans(struct d9__findings *findings)
{
	const struct d9__spans *spans = &findings->analysis->spans;

	if (spans->polls_over_20)
		d9__finding_add(findings, D9__WARNING, spans->whole_in_poll_max,
				"Do fewer pieces of work in one call of a callback: others wait for all of them.",
				"%s calls hold more than 20 whole spans each, at most %u.",
				d9__units_count(spans->polls_over_20).text,
				spans->whole_in_poll_max);
}

void d9__check_span_outlier(struct d9__findings *findings)
{
	const struct d9__spans *spans = &findings->analysis->spans;

	for (size_t i = 0; i < spans->n; i++) {
		const struct d9__span_type *type = spans->items[i];
		uint64_t p50 = d9__histogram_quantile(&type->durations, 0.5), above;
		struct d9__finding *finding;

		if (type->durations.count < 10 || type->durations.max <= D9__STALL_NS)
			continue;
		above = d9__histogram_above(&type->durations, 10 * p50);
		if (above == 0)
			continue;
		finding = d9__finding_add(
			findings, D9__INFO, above,
			"Compare the attributes of slow and fast spans.",
			"%s spans %s took over 10 times their median of %s, the longest %s.",
			d9__units_count(above).text, type->name, d9__units_ns(p50).text,
			d9__units_ns(type->durations.max).text);
		d9__finding_set_name(findings, finding, type->name, strlen(type->name));
		d9__finding_set_brief(findings, finding, "%s spans take over 10 times the median %s",
				      d9__units_count(above).text, d9__units_ns(p50).text);
	}
}

void d9__check_unmatched_spans(struct d9__findings *findings)
{
	const struct d9__spans *spans = &findings->analysis->spans;

	if (spans->unmatched)
		d9__finding_add(findings, D9__INFO, spans->unmatched,
				"Look for an exit that is missing in the program, if they did not run when the "
				"trace ended.",
				"%s of %s spans were entered and never left.",
				d9__units_count(spans->unmatched).text,
				d9__units_count(spans->finished).text);
}

void d9__check_misused_spans(struct d9__findings *findings)
{
	const struct d9__spans *spans = &findings->analysis->spans;

	if (spans->misused)
		d9__finding_add(findings, D9__INFO, spans->misused,
				"See the SpanMisuseEvents: they say which spans, when, and what was wrong.",
				"%s calls about spans came in the wrong order.",
				d9__units_count(spans->misused).text);
}

/* ---- setup ---- */

void d9__check_no_wakes(struct d9__findings *findings)
{
	const struct d9__analysis *a = findings->analysis;

	if (a->tasks.spawned && a->latency.wakes == 0 && a->timeline.n &&
	    d9__metadata_coverage(&a->metadata, "wake") == D9__COVERAGE_FULL)
		d9__finding_add(findings, D9__WARNING, 0,
				"Have the producer of this trace record wakes, or say that it cannot: without them "
				"nothing can be said about delays.",
				"Tasks were made, but no wake was recorded.");
}

/* True if a callback was not named because it is in |module|. */
static bool has_callback(const struct d9__analysis *a, const char *module)
{
	size_t len = strlen(module);

	for (size_t i = 0; i < a->callbacks.n; i++) {
		const struct d9__callback *callback = a->callbacks.items[i];

		if (!callback->function && !strncmp(callback->location, module, len) &&
		    callback->location[len] == '+')
			return true;
	}
	return false;
}

static const char *name_in(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The file with a callback, else the one with most places. */
static const struct d9__lacking_file *worst_lacking(const struct d9__analysis *a)
{
	for (size_t i = 0; i < a->n_lacking && i < D9__LACKING_MAX; i++)
		if (has_callback(a, name_in(a->lacking[i].path)))
			return &a->lacking[i];
	return &a->lacking[0];
}

void d9__check_names_missing(struct d9__findings *findings)
{
	const struct d9__analysis *a = findings->analysis;
	const struct d9__lacking_file *worst = worst_lacking(a);
	struct d9__finding *finding;
	char others[64] = "";
	const char *name;

	if (!a->n_lacking)
		return;
	name = name_in(worst->path);
	if (a->n_lacking > 1)
		snprintf(others, sizeof(others), "; %zu more file%s name nothing either",
			 a->n_lacking - 1, a->n_lacking > 2 ? "s" : "");
	finding = d9__finding_add(
		findings, has_callback(a, name) ? D9__WARNING : D9__INFO, worst->places,
		"Put the file that was recorded, or its debug file, into a directory, and give "
		"that to `dial9 "
		"symbolize --debug-dir`; or run `dial9 symbolize` where the program ran.",
		"%s %s, so %s place%s in it ha%s no name%s.", worst->path, worst->why,
		d9__units_count(worst->places).text, worst->places == 1 ? "" : "s",
		worst->places == 1 ? "s" : "ve", others);
	d9__finding_set_name(findings, finding, name, strlen(name));
	d9__finding_set_brief(findings, finding, "%s: told as %s+0x...",
			      worst->is_other ? "not the recorded file" : "not here", name);
	for (size_t i = 0; i < a->n_lacking && i < D9__LACKING_MAX; i++)
		if (&a->lacking[i] != worst)
			d9__finding_add_evidence(findings, finding, &(struct d9__evidence) { 0 },
						 "%s %s", a->lacking[i].path, a->lacking[i].why);
}

/* Whether fewer than a tenth of the different frames in |samples| have a name. */
static bool is_nameless(const struct d9__samples *samples)
{
	uint64_t frames = 0, named = 0;
	void *value;

	for (size_t place = 0; (place = d9__table_next(&samples->stacks, place, &value));) {
		const struct d9__stack *stack = value;

		for (size_t i = 0; i < stack->n; i++) {
			frames++;
			named += (stack->names && stack->names[i].known) ||
				 d9__table_find(&samples->names, stack->addresses[i]);
		}
	}
	return 10 * named < frames;
}

void d9__check_sample_setup(struct d9__findings *findings)
{
	const struct d9__samples *samples = &findings->analysis->samples;
	double depth =
		samples->stacks_on ? (double)samples->frames_on / (double)samples->stacks_on : 0;

	/*
	 * A program whose functions lie no deeper is no fault of the recording.  Ticks that a busy
	 * machine told late have no stack, and are told by the share of CPU time that samples
	 * cover.
	 */
	if (samples->stacks_on > 10 && depth < 3 && 2 * samples->whole_on < samples->stacks_on)
		d9__finding_add(findings, D9__WARNING, 0,
				"Build with -fno-omit-frame-pointer, or with unwind tables.",
				"The stacks of CPU samples are %.1f frames deep on average: they "
				"could not be unwound.",
				depth);
	if (samples->on + samples->off > 10 && is_nameless(samples))
		d9__finding_add(findings, D9__WARNING, 0,
				"Run this where the binaries are, or install the debug symbols of what has none "
				"(`dial9 symbolize` names them).",
				"Fewer than a tenth of the frames in stack samples have a name.");
	/* Our own recorder looks where callbacks are that are off the CPU, without samples. */
	if (samples->on > 10 && samples->off == 0 && !findings->analysis->off_cpu_seen &&
	    !d9__metadata_value(&findings->analysis->metadata, "dial9-c.version"))
		d9__finding_add(findings, D9__INFO, 0,
				"Record scheduler events too (kernel.perf_event_paranoid at most 1, or "
				"the stacks of callbacks that block).",
				"There are CPU samples but none of threads that were taken off the CPU: "
				"nothing tells where callbacks block.");
}
