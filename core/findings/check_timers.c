/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of timers: they run before their time, or are due again before they end. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "analyze/stale.h"
#include "findings/check_parts.h"
#include "text/units.h"

/* Told louder if so many ran early, and one in so many of the timer's runs. */
#define STALE_WARNING 3
#define STALE_PART    20

/* A timer that was overrun less often, or in a smaller part of its runs (one in ...), is none. */
#define OVERRUNS     7
#define OVERRUN_PART 4

/* How much too early it was due. */
static uint64_t early_ns(const struct d9__stale_timers *stale)
{
	return stale->lag_ns < stale->timeout_ns ? stale->lag_ns : stale->timeout_ns;
}

static enum d9__severity stale_severity(const struct d9__stale_timers *stale)
{
	bool often = STALE_PART * stale->early >= stale->timer->lateness.count;

	if (often && early_ns(stale) > 50 * D9__MS_NS)
		return D9__CRITICAL;
	if (stale->between.busy_ns >= D9__STALE_ALWAYS_NS)
		return D9__WARNING;
	return often && stale->early >= STALE_WARNING ? D9__WARNING : D9__INFO;
}

/* "handle_request had run for 8.9 ms", "12 calls had run for 9.9 ms, 11 of them x (9 ms)" */
static void describe_lag(const struct d9__between *between, char *buf, size_t size)
{
	struct d9__shown_name most = d9__finding_name(between->most);

	if (between->calls == between->most_calls && between->calls == 1)
		snprintf(buf, size, "%.*s had run for %s", most.len, most.text,
			 d9__units_ns(between->most_ns).text);
	else
		snprintf(buf, size, "%s calls had run for %s, %s of them %.*s (%s)",
			 d9__units_count(between->calls).text, d9__units_ns(between->busy_ns).text,
			 d9__units_count(between->most_calls).text, most.len, most.text,
			 d9__units_ns(between->most_ns).text);
}

/* Of so many timers that were set between rounds one in so many ran early: that is no accident. */
#define BETWEEN_EARLY 3
#define BETWEEN_PART  2

/* The machine may have put the thread aside before it set some of them. */
static enum d9__severity between_severity(const struct d9__stale_timers *stale)
{
	if (stale->early < BETWEEN_EARLY ||
	    BETWEEN_PART * stale->early < stale->timer->lateness.count)
		return D9__INFO;
	return early_ns(stale) > 50 * D9__MS_NS ? D9__CRITICAL : D9__WARNING;
}

/* The program set timers between two rounds of |worker|'s loop: it is named by where it did. */
static void stale_between(struct d9__findings *findings, const struct d9__worker *worker)
{
	static const char unknown[] = "work between rounds";
	const struct d9__stale_timers *stale = worker->stale;
	struct d9__shown_name timer = d9__finding_name(stale->timer);
	const char *site = stale->timer->site ? stale->timer->site : unknown;
	size_t len = stale->timer->site ? strcspn(site, " ") : strlen(site);
	struct d9__finding *finding;

	finding = d9__finding_add(
		findings, between_severity(stale), early_ns(stale),
		"Have the loop look at the clock before the timer is set "
		"(event_base_update_cache_time(), "
		"ev_now_update()): between two runs it stands still, and timers count from then.",
		"%.*s sets the timer %.*s between two rounds of the loop, by a clock that is %s "
		"old: it was "
		"due %s after it was set, not %s (%s of %s such timers ran early).",
		(int)len, site, timer.len, timer.text, d9__units_ns(stale->lag_ns).text,
		d9__units_ns(stale->timeout_ns - early_ns(stale)).text,
		d9__units_ns(stale->timeout_ns).text, d9__units_count(stale->early).text,
		d9__units_count(stale->armed).text);
	d9__finding_set_name(findings, finding, site, len);
	d9__finding_set_brief(findings, finding, "sets %.*s by a clock that is %s old", timer.len,
			      timer.text, d9__units_ns(stale->lag_ns).text);
	d9__finding_add_evidence(findings, finding,
				 &(struct d9__evidence) { .at_ns = stale->armed_ns,
							  .has_worker = true,
							  .worker = stale->worker,
							  .task = stale->task },
				 "set when the loop had looked at the clock %s before",
				 d9__units_ns(stale->lag_ns).text);
}

static void stale_clock(struct d9__findings *findings, const struct d9__callback *armer)
{
	const struct d9__stale_timers *stale = armer->stale;
	struct d9__finding *finding;
	struct d9__shown_name name = d9__finding_name(armer);
	struct d9__shown_name timer = d9__finding_name(stale->timer);
	char lag[512];

	describe_lag(&stale->between, lag, sizeof(lag));
	finding = d9__finding_add(
		findings, stale_severity(stale), early_ns(stale),
		"Have the loop look at the clock before the timer is set (event_base_update_cache_time(), "
		"ev_now_update()), set the timer before the work, or do the work in pieces: the loop looks once a "
		"round, and timers count from then.",
		"%.*s sets the timer %.*s by a clock that is %s old: it was due %s after it was set, not %s (%s of %s "
		"such timers ran early).",
		name.len, name.text, timer.len, timer.text, d9__units_ns(stale->lag_ns).text,
		d9__units_ns(stale->timeout_ns - early_ns(stale)).text,
		d9__units_ns(stale->timeout_ns).text, d9__units_count(stale->early).text,
		d9__units_count(stale->armed).text);
	d9__finding_set_callback(findings, finding, armer);
	d9__finding_set_brief(findings, finding, "sets %.*s by a clock that is %s old", timer.len, timer.text,
			      d9__units_ns(stale->lag_ns).text);
	d9__finding_add_evidence(findings, finding,
				 &(struct d9__evidence){ .at_ns = stale->armed_ns,
							 .has_worker = true,
							 .worker = stale->worker,
							 .task = stale->task,
							 .callback = armer },
				 "set when the loop had looked at the clock %s before; since then %s",
				 d9__units_ns(stale->lag_ns).text, lag);
	d9__finding_add_evidence(findings, finding, NULL,
				 "early: by a quarter of what was asked for and 3 ms that callbacks "
				 "ran; a warning if %d timers were, and one in %d of the timer's runs, "
				 "or if callbacks had run for 100 ms",
				 STALE_WARNING, STALE_PART);
}

void d9__check_stale_clock(struct d9__findings *findings)
{
	const struct d9__callbacks *callbacks = &findings->analysis->callbacks;
	const struct d9__timeline *timeline = &findings->analysis->timeline;

	for (size_t i = 0; i < timeline->n; i++)
		if (timeline->items[i]->stale && timeline->items[i]->stale->early)
			stale_between(findings, timeline->items[i]);
	for (size_t i = 0; i < callbacks->n; i++)
		if (callbacks->items[i]->stale && callbacks->items[i]->stale->early)
			stale_clock(findings, callbacks->items[i]);
}

/*
 * The usual length of a call of |callback|: the median, or the mean of what the kernel left if that
 * is less.
 */
static uint64_t usual_ns(const struct d9__callback *callback)
{
	uint64_t p50 = d9__histogram_quantile(&callback->durations, 0.5), own_ns;

	if (callback->durations.count == 0 || callback->taken_ns >= callback->durations.sum)
		return 0;
	own_ns = (callback->durations.sum - callback->taken_ns) / callback->durations.count;
	return callback->taken_ns && own_ns < p50 ? own_ns : p50;
}

/*
 * Whether the shortest time between two deadlines of |callback| is its timer's period.  Where the
 * kernel stretched all calls, they may lie further apart; a timer that is set again by each call
 * has deadlines that lie a call apart; and libev counts a period that was missed from the call that
 * was late.
 */
static bool is_period_known(const struct d9__analysis *a, const struct d9__callback *callback,
			    uint64_t takes_ns)
{
	return !d9__metadata_is_only(&a->metadata, "libev") &&
	       ((callback->period_ns < takes_ns &&
		 10 * callback->period_ns < 9 * callback->durations.min) ||
		10 * callback->overruns < 9 * callback->lateness.count);
}

static void timer_overrun(struct d9__findings *findings, const struct d9__callback *callback)
{
	const struct d9__analysis *a = findings->analysis;
	uint64_t takes_ns = usual_ns(callback),
		 own_ns = callback->durations.sum - callback->taken_ns;
	bool known = is_period_known(a, callback, takes_ns);
	uint64_t runs = callback->lateness.count, lasted_ns = a->loop_last_ns - a->loop_first_ns;
	struct d9__shown_name name = d9__finding_name(callback);
	struct d9__finding *finding;
	char period[160] = "";

	if (callback->overruns < OVERRUNS || OVERRUN_PART * callback->overruns < runs ||
	    10 * takes_ns < 9 * callback->period_ns)
		return;
	if (known)
		snprintf(period, sizeof(period), "is due every %s and ",
			 d9__units_ns(callback->period_ns).text);
	finding = d9__finding_add(
		findings, 10 * own_ns >= 8 * lasted_ns ? D9__CRITICAL : D9__WARNING, own_ns,
		"Make the period longer than the call, or do the work in a thread: it leaves the "
		"loop little time for anything else. A timer that is set again at the end of its "
		"call counts from when the loop last looked at the clock: let it look again before "
		"(event_base_update_cache_time()).",
		"The timer %.*s %stakes %s each time: %s of %s runs were due before the one before "
		"had ended.",
		name.len, name.text, period, d9__units_ns(takes_ns).text,
		d9__units_count(callback->overruns).text, d9__units_count(runs).text);
	d9__finding_set_callback(findings, finding, callback);
	if (known)
		d9__finding_set_brief(findings, finding, "takes %s each time and is due every %s",
				      d9__units_ns(takes_ns).text,
				      d9__units_ns(callback->period_ns).text);
	else
		d9__finding_set_brief(findings, finding,
				      "takes %s each time, and is due again before it ends",
				      d9__units_ns(takes_ns).text);
	/* Of itself: where it sleeps, if that is known, is why it takes so long. */
	d9__finding_set_effect(findings, finding, callback, "it %s",
			       finding && finding->brief ? finding->brief : "");
	d9__finding_add_evidence(findings, finding, &(struct d9__evidence) { .callback = callback },
				 "ran for %s of the trace's %s; %swhat it takes is the median",
				 d9__units_ns(own_ns).text, d9__units_ns(lasted_ns).text,
				 known ? "the period is the shortest time between two deadlines, "
				       : "");
}

void d9__check_timer_overrun(struct d9__findings *findings)
{
	const struct d9__callbacks *callbacks = &findings->analysis->callbacks;

	for (size_t i = 0; i < callbacks->n; i++)
		if (callbacks->items[i]->overruns)
			timer_overrun(findings, callbacks->items[i]);
}
