/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of how long calls lie in time: at first only, longer and longer, in a rhythm. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "analyze/shape.h"
#include "analyze/stalls.h"
#include "findings/advice.h"
#include "findings/check_parts.h"
#include "findings/owners.h"
#include "text/units.h"

/* The long calls of a callback are few: one in so many. */
#define FEW_PART 4

static enum d9__severity severity_of(uint64_t ns)
{
	if (ns > 50 * D9__MS_NS)
		return D9__CRITICAL;
	return ns > 10 * D9__MS_NS ? D9__WARNING : D9__INFO;
}

/* ---- slow at first ---- */

/* Shorter ones are no more than a program's start, if they come then. */
static enum d9__severity cold_severity(const struct d9__analysis *a, const struct d9__callback *callback,
				       const struct d9__cold *cold)
{
	const struct d9__callback_stall *first = &callback->stalls[0];
	bool starts = callback->n_stalls &&
		      d9__analysis_is_start(a, first->stall->start_ns, first->stall->start_ns + first->ns, false);

	return cold->slowest_ns > (starts ? 20 : 10) * D9__MS_NS ? D9__WARNING : D9__INFO;
}

/* Whether its later calls sleep for longer in all than the first ones took: that is what it does.
 */
static bool sleeps_on(const struct d9__callback *callback, const struct d9__cold *cold)
{
	return 2 * d9__callback_slept_below_ns(callback, cold->later_max_ns) >
	       callback->time.blocked_ns;
}

static void cold_start(struct d9__findings *findings, const struct d9__callback *callback,
		       const struct d9__cold *cold)
{
	struct d9__shown_name name = d9__finding_name(callback);
	struct d9__finding *finding;
	char when[160] = "in its first call";
	bool starved;

	if (cold->first_calls > 1)
		snprintf(when, sizeof(when), "among its first %s calls", d9__units_count(cold->first_calls).text);
	starved = callback->n_stalls && d9__finding_looks_starved(findings, callback->stalls[0].stall,
							      callback->n_asleep ? callback->asleep[0].place : "");
	finding = d9__finding_add(
		findings, starved ? D9__INFO : cold_severity(findings->analysis, callback, cold), cold->slowest_ns,
		"Set up what it needs before the loop runs, or call it once yourself before you take requests: it "
		"does so in its first calls (a table, a connection, a library, name resolution, memory that was "
		"never touched), and who comes first waits for it. It is no slow callback otherwise.",
		"%.*s is slow only at first: up to %s %s, at most %s in the %s after.", name.len, name.text,
		d9__units_ns(cold->slowest_ns).text, when, d9__units_ns(cold->later_max_ns).text,
		d9__units_count(cold->later_calls).text);
	d9__finding_set_callback(findings, finding, callback);
	d9__finding_set_brief(findings, finding, "is slow only at first: %s, later at most %s",
			      d9__units_ns(cold->slowest_ns).text, d9__units_ns(cold->later_max_ns).text);
	for (size_t i = 0; i < callback->n_stalls && i < 3; i++) {
		const struct d9__stall *stall = callback->stalls[i].stall;

		if (2 * callback->stalls[i].ns < cold->slowest_ns)
			break;
		d9__finding_add_evidence(findings, finding,
					 &(struct d9__evidence){ .at_ns = stall->start_ns,
								 .duration_ns = stall->culprit_ns,
								 .has_worker = true,
								 .worker = stall->worker,
								 .task = stall->task,
								 .callback = callback },
					 "took %s; a call takes %s later", d9__units_ns(callback->stalls[i].ns).text,
					 d9__units_ns(cold->later_ns).text);
	}
	d9__finding_explain(findings, finding, callback);
}

void d9__check_cold_start(struct d9__findings *findings)
{
	const struct d9__callbacks *callbacks = &findings->analysis->callbacks;
	struct d9__cold cold;

	for (size_t i = 0; i < callbacks->n; i++)
		if (!callbacks->items[i]->internal &&
		    !d9__finding_is_explained(findings, callbacks->items[i]) &&
		    d9__shape_is_cold(callbacks->items[i]->shape, &cold) &&
		    cold.later_max_ns < D9__LONG_ALWAYS_NS &&
		    !sleeps_on(callbacks->items[i], &cold))
			cold_start(findings, callbacks->items[i], &cold);
}

/* ---- longer and longer ---- */

/* However short each call is yet: of so much of a loop's time it is told as a warning. */
#define GROWING_SHARE 0.1

static bool has_much(const struct d9__findings *findings, const struct d9__callback *callback)
{
	for (size_t i = 0; i < findings->analysis->timeline.n; i++) {
		const struct d9__owners *owners = &findings->owners[i];

		for (size_t j = 0; j < owners->n && owners->left_ns >= D9__SECOND_NS; j++)
			if (owners->items[j].callback == callback &&
			    d9__owners_share(owners, owners->items[j].ns) >= GROWING_SHARE)
				return true;
	}
	return false;
}

static enum d9__severity growing_severity(const struct d9__findings *findings,
					  const struct d9__callback *callback,
					  const struct d9__growth *growth)
{
	enum d9__severity by_length = growth->to_ns > 5 * D9__MS_NS
					      ? severity_of(growth->to_ns + 10 * D9__MS_NS)
					      : D9__INFO;

	return by_length == D9__INFO && has_much(findings, callback) ? D9__WARNING : by_length;
}

static void growing_calls(struct d9__findings *findings, const struct d9__callback *callback,
			  const struct d9__growth *growth)
{
	/* From the middle of the first eighth to that of the last. */
	uint64_t each_ns = (growth->to_ns - growth->from_ns) * 8 / (7 * growth->calls);
	struct d9__shown_name name = d9__finding_name(callback);
	struct d9__finding *finding;

	finding = d9__finding_add(
		findings, growing_severity(findings, callback, growth), growth->to_ns,
		"Keep short what it goes through from end to end, look up instead of searching, "
		"grow buffers by "
		"doubling: something gets longer with each call, as a list or table that is only "
		"added to, a "
		"search without an index, a string or buffer that is copied to be made longer.",
		"%.*s takes longer with each call: %s at first, %s at last, %s more each time over "
		"%s calls.",
		name.len, name.text, d9__units_ns(growth->from_ns).text,
		d9__units_ns(growth->to_ns).text, d9__units_ns(each_ns).text,
		d9__units_count(growth->calls).text);
	d9__finding_set_callback(findings, finding, callback);
	d9__finding_set_brief(findings, finding, "takes longer with each call: %s to %s in %s calls",
			      d9__units_ns(growth->from_ns).text, d9__units_ns(growth->to_ns).text,
			      d9__units_count(growth->calls).text);
	if (callback->n_stalls && callback->stalls[0].stall->culprit_runs == 1) {
		const struct d9__stall *stall = callback->stalls[0].stall;

		d9__finding_add_evidence(findings, finding,
					 &(struct d9__evidence){ .at_ns = stall->start_ns,
								 .duration_ns = stall->culprit_ns,
								 .has_worker = true,
								 .worker = stall->worker,
								 .task = stall->task,
								 .callback = callback },
					 "the longest took %s", d9__units_ns(callback->stalls[0].ns).text);
	}
	d9__finding_add_evidence(findings, finding, NULL,
				 "compared by eighths of its calls, each by what the calls took themselves: all "
				 "rise, and the last is over three times the first");
	d9__finding_explain(findings, finding, callback);
}

void d9__check_growing_calls(struct d9__findings *findings)
{
	const struct d9__callbacks *callbacks = &findings->analysis->callbacks;
	struct d9__growth growth;

	for (size_t i = 0; i < callbacks->n; i++)
		if (!callbacks->items[i]->internal && d9__shape_grows(callbacks->items[i]->shape, &growth))
			growing_calls(findings, callbacks->items[i], &growth);
}

/* ---- in a rhythm ---- */

static void find_rhythms(struct d9__findings *findings)
{
	findings->rhythms = d9__rhythms_find(&findings->analysis->pauses, &findings->n_rhythms);
	if (!findings->rhythms && findings->n_rhythms) {
		findings->n_rhythms = 0;
		findings->err = -ENOMEM;
	}
}

/* "every 1.05 s", "every 100th call of it, about every 1.05 s" */
static void describe_period(const struct d9__rhythm *rhythm, char *buf, size_t size)
{
	if (rhythm->each_calls)
		snprintf(buf, size, "every %s calls of it, which is every %s",
			 d9__units_count(rhythm->each_calls).text, d9__units_ns(rhythm->period_ns).text);
	else
		snprintf(buf, size, "every %s", d9__units_ns(rhythm->period_ns).text);
}

static const struct d9__callback *most_of(const struct d9__rhythm *rhythm)
{
	size_t most = 0;

	for (size_t i = 1; i < rhythm->n_callbacks; i++)
		if (rhythm->callback_ns[i] > rhythm->callback_ns[most])
			most = i;
	return rhythm->callbacks[most];
}

/* Of a rhythm in which several take turns, one that has a part now and then has none itself. */
void d9__finding_rhythm(const struct d9__findings *findings, const struct d9__callback *callback, char *buf,
			size_t size)
{
	const struct d9__rhythm *rhythm = d9__rhythm_of(findings->rhythms, findings->n_rhythms, callback);

	buf[0] = '\0';
	if (rhythm && most_of(rhythm) == callback)
		snprintf(buf, size, ", every %s", d9__units_ns(rhythm->period_ns).text);
}

/* "on_read (240 ms), on_write (180 ms)" */
static void describe_callbacks(const struct d9__rhythm *rhythm, char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < rhythm->n_callbacks && used < size; i++) {
		struct d9__shown_name name = d9__finding_name(rhythm->callbacks[i]);

		used += (size_t)snprintf(buf + used, size - used, "%s%.*s (%s)", i ? ", " : "", name.len,
					 name.text, d9__units_ns(rhythm->callback_ns[i]).text);
	}
}

static void periodic_pause(struct d9__findings *findings, const struct d9__rhythm *rhythm)
{
	const struct d9__callback *most = most_of(rhythm);
	bool several = rhythm->n_callbacks > 1;
	struct d9__finding *finding;
	char period[256], in[512];

	describe_period(rhythm, period, sizeof(period));
	describe_callbacks(rhythm, in, sizeof(in));
	finding = d9__finding_add(
		findings, severity_of(rhythm->pause_ns), rhythm->pause_ns * rhythm->times,
		several ? "Do what comes over each of them when its time has come in small pieces, from a timer of "
			  "its own, or in a thread: housekeeping, statistics, garbage collection, a cache or a log "
			  "that is written out, by whichever callback comes first. Look for a clock that they look "
			  "at or a count that they share."
			: "Do in small pieces, or in a thread, what it does now and then (housekeeping, "
			  "statistics, garbage collection, a table that is made larger, a cache or a log that is "
			  "written out): most of its calls are short, and that makes the few long.",
		"Worker %" PRIu64 " stands still for %s %s, %s times, in %s.", rhythm->worker,
		d9__units_ns(rhythm->pause_ns).text, period, d9__units_count(rhythm->times).text, in);
	d9__finding_set_callback(findings, finding, most);
	if (several)
		d9__finding_set_brief(findings, finding, "and %zu more pause the loop %s every %s",
				      rhythm->n_callbacks - 1, d9__units_ns(rhythm->pause_ns).text,
				      d9__units_ns(rhythm->period_ns).text);
	else
		d9__finding_set_brief(findings, finding, "pauses the loop %s every %s",
				      d9__units_ns(rhythm->pause_ns).text, d9__units_ns(rhythm->period_ns).text);
	d9__finding_add_evidence(findings, finding,
				 &(struct d9__evidence){ .at_ns = rhythm->longest_at_ns,
							 .duration_ns = rhythm->longest_ns,
							 .has_worker = true,
							 .worker = rhythm->worker,
							 .task = rhythm->task },
				 "the longest call of them took %s", d9__units_ns(rhythm->longest_ns).text);
	d9__finding_add_evidence(findings, finding,
				 &(struct d9__evidence){ .at_ns = rhythm->first_ns,
							 .has_worker = true,
							 .worker = rhythm->worker },
				 "the first of them; counts if calls of over 5 ms come at least four times, each "
				 "%s after the one before, give or take an eighth",
				 d9__units_ns(rhythm->period_ns).text);
	for (size_t i = 0; i < rhythm->n_callbacks; i++)
		d9__finding_explain(findings, finding, rhythm->callbacks[i]);
}

/*
 * Whether its callbacks have other calls than one for each pause, or several in each: such as take long one after the
 * other, each in every call, are long callbacks that come in turns.
 */
static bool is_shared(const struct d9__rhythm *rhythm)
{
	uint64_t calls = 0;

	for (size_t i = 0; i < rhythm->n_callbacks; i++)
		calls += rhythm->callbacks[i]->calls;
	return 2 * rhythm->times <= calls;
}

/*
 * Whether something is done now and then that most calls do not do.  A timer that always takes as
 * long, a callback of which every second call does, one that sleeps, and one of which many calls
 * come in a row have findings of their own, and their period is told there.
 */
static bool is_housekeeping(const struct d9__rhythm *rhythm)
{
	const struct d9__callback *callback = most_of(rhythm);
	uint64_t most_ns = 0, all_ns = 0;

	for (size_t i = 0; i < rhythm->n_callbacks; i++) {
		all_ns += rhythm->callback_ns[i];
		if (rhythm->callback_ns[i] > most_ns)
			most_ns = rhythm->callback_ns[i];
	}
	/* Three quarters are one callback's: another one was met by chance. */
	if (4 * most_ns < 3 * all_ns)
		return is_shared(rhythm);
	return rhythm->stands_out && FEW_PART * rhythm->times <= callback->calls &&
	       2 * callback->blocked.count < rhythm->times && 2 * callback->bursts < rhythm->times;
}

void d9__check_periodic_pause(struct d9__findings *findings)
{
	find_rhythms(findings);
	for (size_t i = 0; i < findings->n_rhythms; i++) {
		const struct d9__rhythm *rhythm = &findings->rhythms[i];

		if (is_housekeeping(rhythm) &&
		    !d9__finding_is_explained(findings, most_of(rhythm)) &&
		    !d9__advice_asks_again(most_of(rhythm)))
			periodic_pause(findings, rhythm);
	}
}
