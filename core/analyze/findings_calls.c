/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of calls and of those who waited for them. */
#include "config.h"

#include <stdio.h>

#include "analyze/findings.h"
#include "analyze/units.h"
#include "format/utf8.h"

/* Examples under a finding. */
#define EXAMPLES 3

/* A callback that still ran when the trace ended is told from here on. */
#define RUNNING_NS D9__MS(50)

/*
 * Coarse clocks and waits in whole milliseconds make timers of idle loops late by up to three
 * clock ticks: 12 ms.
 */
#define TIMER_LATE_NS D9__MS(20)

/* Long calls of a callback that the kernel may have made so: at most one in so many, and so long. */
#define RARE_CALLS       200
#define PREEMPTED_MAX_NS D9__MS(20)

/* A wait while nothing ran on the worker is the kernel's up to here, if it took the CPU as often. */
#define PREEMPTED_WAIT_NS D9__MS(1000)

/* A timer that was overrun less often, or in a smaller part of its runs (one in ...), is none. */
#define OVERRUNS     7
#define OVERRUN_PART 4

/* printf arguments for the name of a callback. */
struct name {
	const char *text;
	int len;
};

static struct name name_of(const struct d9__callback *callback)
{
	size_t len;
	const char *text;

	if (!callback)
		return (struct name){ "nothing", 7 };
	text = d9__callback_name(callback, &len);
	return (struct name){ text, d9__precision(len) };
}

static void set_callback(struct d9__findings *findings, struct d9__finding *finding,
			 const struct d9__callback *callback)
{
	struct name name = name_of(callback);

	d9__finding_set_name(findings, finding, name.text, (size_t)name.len);
}

/* ---- long callback ---- */

static const struct d9__worker *worker_of(const struct d9__findings *findings, uint64_t id)
{
	return d9__table_find(&findings->analysis->timeline.by_id, id);
}

static uint64_t limit_of(const struct d9__findings *findings, const struct d9__stall *stall)
{
	return d9__long_call_ns(worker_of(findings, stall->worker));
}

static const char *verdict_text(enum d9__stall_verdict verdict)
{
	static const char *const texts[] = {
		[D9__STALL_UNKNOWN] = "",
		[D9__STALL_COMPUTING] = ", mostly on the CPU",
		[D9__STALL_OFF_CPU] = ", mostly off the CPU",
		[D9__STALL_MIXED] = ", partly on the CPU",
	};

	return texts[verdict];
}

static const char *long_advice(const struct d9__callback *callback,
			       enum d9__stall_verdict verdict, bool preempted)
{
	if (preempted)
		return "It took that long because the kernel ran something else in the middle, as it "
		       "seems. Fewer programs on this machine, more cores or a higher priority "
		       "help, not a change to it.";
	if (callback->internal && d9__callback_is_glib(callback))
		return "It is GLib's own, and may call yours: handlers of signals, methods of D-Bus "
		       "objects, callbacks of asynchronous calls, which cannot be told apart here. Look "
		       "at what is connected to the object; a span (dial9-span(3)) around your part "
		       "names it.";
	if (callback->internal)
		return "It is the loop library's own, and no function of yours inside it took most of the "
		       "time: look at what it does for you (large reads and writes, many headers, "
		       "name resolution), at filters, log and memory functions it calls.";
	switch (verdict) {
	case D9__STALL_COMPUTING:
		return "It computes. Cut the work into pieces that yield to the loop, or move it to a "
		       "thread; a CPU profile tells which part costs most.";
	case D9__STALL_OFF_CPU:
		return "It waits: look for a blocking call in it (sleep, file or database access, name "
		       "resolution, a lock, a synchronous request) and make it asynchronous, or "
		       "move it to a thread. If there is none, the kernel ran something else in "
		       "the middle of it (see kernel waits).";
	default:
		return "Look for a blocking call in it (sleep, file or database access, name resolution, "
		       "a lock) or for long computation; cut it into pieces, make it "
		       "asynchronous, or move it to a thread.";
	}
}

/* "3 waited behind it, up to 59 ms: event_handler 59 ms, tick 40 ms (timer)" */
static void describe_victims(const struct d9__stall *stall, char *buf, size_t size)
{
	size_t used;

	buf[0] = '\0';
	if (stall->waited == 0)
		return;
	used = (size_t)snprintf(buf, size, "; %s waited behind it:",
				d9__units_count(stall->waited).text);
	for (size_t i = 0; i < stall->n_victims && i < EXAMPLES && used < size; i++) {
		const struct d9__victim *victim = &stall->victims[i];
		struct name name = name_of(victim->callback);

		used += (size_t)snprintf(buf + used, size - used, "%s %.*s %s%s", i ? "," : "",
					 name.len, name.text, d9__units_ns(victim->delay_ns).text,
					 victim->timer ? " (timer)" : "");
	}
	if (stall->waited > EXAMPLES && used < size)
		snprintf(buf + used, size - used, ", ...");
}

/* " (inside readcb)", " (longest span inside: parse 40 ms)", ... */
static void describe_place(const struct d9__stall *stall, char *buf, size_t size)
{
	struct name outer = name_of(stall->callback);

	buf[0] = '\0';
	if (stall->culprit != stall->callback)
		snprintf(buf, size, ", called from %.*s, which took %s", outer.len, outer.text,
			 d9__units_ns(stall->total_ns).text);
	else if (stall->span)
		snprintf(buf, size, ", of which %s in the span %s",
			 d9__units_ns(stall->span_ns).text, stall->span);
}

/* " (12.0 ms of it the kernel ran something else)", if that is worth telling. */
static void describe_taken(uint64_t taken_ns, char *buf, size_t size)
{
	buf[0] = '\0';
	if (taken_ns >= D9__MS(1))
		snprintf(buf, size, " (%s of it the kernel ran something else)",
			 d9__units_ns(taken_ns).text);
}

static void add_stall(struct d9__findings *findings, struct d9__finding *finding,
		      const struct d9__stall *stall)
{
	struct d9__evidence evidence = { .at_ns = stall->start_ns,
					 .duration_ns = stall->culprit_ns,
					 .has_worker = true,
					 .worker = stall->worker,
					 .task = stall->task,
					 .callback = stall->culprit };
	char victims[512], place[512], samples[64] = "", taken[160];

	describe_victims(stall, victims, sizeof(victims));
	describe_place(stall, place, sizeof(place));
	describe_taken(stall->culprit_ns - d9__stall_own_ns(stall), taken, sizeof(taken));
	if (stall->on_samples + stall->off_samples)
		snprintf(samples, sizeof(samples), ", %u on-CPU and %u off-CPU samples",
			 stall->on_samples, stall->off_samples);
	d9__finding_add_evidence(findings, finding, &evidence, "ran for %s%s%s%s%s%s",
				 d9__units_ns(stall->culprit_ns).text, taken,
				 taken[0] ? "" : verdict_text(d9__stall_verdict(stall)), place,
				 samples, victims);
}

/* Whether all kept calls of |callback| that took over |limit| themselves slept for most of it. */
static bool all_blocked(const struct d9__callback *callback, uint64_t limit)
{
	for (size_t i = 0; i < callback->n_stalls; i++)
		if (callback->stalls[i].ns > limit &&
		    !d9__stall_is_blocked(callback->stalls[i].stall))
			return false;
	return true;
}

/*
 * Whether the kernel, and not the callback, made its few long calls long: hardly any call is, none
 * is known to have computed, and the process lost the CPU more often than that.
 */
static bool looks_preempted(const struct d9__findings *findings,
			    const struct d9__callback *callback, uint64_t limit, uint64_t calls)
{
	const struct d9__resource_usage *usage = &findings->analysis->usage;

	if (callback->stalls[0].ns <= limit)
		return true;
	if (callback->stalls[0].ns > PREEMPTED_MAX_NS ||
	    calls * RARE_CALLS > callback->calls ||
	    usage->growth[D9__USAGE_INVOLUNTARY_SWITCHES] < 2 * calls)
		return false;
	for (size_t i = 0; i < callback->n_stalls; i++)
		if (d9__stall_verdict(callback->stalls[i].stall) == D9__STALL_COMPUTING)
			return false;
	return true;
}

static void add_switches(struct d9__findings *findings, struct d9__finding *finding)
{
	const struct d9__resource_usage *usage = &findings->analysis->usage;

	d9__finding_add_evidence(findings, finding, NULL,
				 "the kernel took the CPU from the process %s times in this trace",
				 d9__units_count(usage->growth[D9__USAGE_INVOLUNTARY_SWITCHES]).text);
}

static enum d9__severity long_severity(uint64_t ns, uint64_t calls, bool waited)
{
	if (ns > D9__MS(50))
		return D9__CRITICAL;
	if (ns > D9__MS(10))
		return D9__WARNING;
	return calls >= 3 && waited ? D9__WARNING : D9__INFO;
}

/* "; others waited up to 59 ms behind it", or nothing; whether one did for long. */
static bool describe_waiting(const struct d9__callback *callback, char *buf, size_t size)
{
	uint64_t waited = 0, waited_max = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < callback->n_stalls; i++) {
		const struct d9__stall *stall = callback->stalls[i].stall;

		waited += stall->waited;
		if (stall->waited_max_ns > waited_max)
			waited_max = stall->waited_max_ns;
	}
	if (waited)
		snprintf(buf, size, "; others waited up to %s behind it",
			 d9__units_ns(waited_max).text);
	return waited_max >= D9__WAIT_EXPLAIN_NS;
}

static void add_blocked(struct d9__findings *findings, struct d9__finding *finding,
			const struct d9__stall *stall)
{
	struct d9__evidence evidence = { .at_ns = stall->start_ns,
					 .duration_ns = stall->culprit_ns,
					 .has_worker = true,
					 .worker = stall->worker,
					 .task = stall->task,
					 .callback = stall->culprit };
	char victims[512], place[512], queue[160] = "";

	describe_victims(stall, victims, sizeof(victims));
	describe_place(stall, place, sizeof(place));
	if (stall->run_queue_ns > D9__MS(1))
		snprintf(queue, sizeof(queue), ", and was ready without a CPU for %s",
			 d9__units_ns(stall->run_queue_ns).text);
	d9__finding_add_evidence(findings, finding, &evidence, "slept for %s of %s%s%s%s",
				 d9__units_ns(stall->blocked_ns).text,
				 d9__units_ns(stall->culprit_ns).text, queue, place, victims);
}

/* The call that slept longest; NULL if none slept for longer than a call may take. */
static const struct d9__stall *most_blocked(const struct d9__findings *findings,
					    const struct d9__callback *callback)
{
	const struct d9__stall *most = NULL;

	for (size_t i = 0; i < callback->n_stalls; i++) {
		const struct d9__stall *stall = callback->stalls[i].stall;

		if (d9__stall_is_blocked(stall) && stall->blocked_ns > limit_of(findings, stall) &&
		    (!most || stall->blocked_ns > most->blocked_ns))
			most = stall;
	}
	return most;
}

static void blocked_callback(struct d9__findings *findings, const struct d9__callback *callback)
{
	const struct d9__stall *most = most_blocked(findings, callback);
	struct name name = name_of(callback);
	struct d9__finding *finding;
	char behind[160];
	bool waited;

	if (!most)
		return;
	waited = describe_waiting(callback, behind, sizeof(behind));
	finding = d9__finding_add(
		findings, long_severity(most->blocked_ns, callback->blocked_calls, waited),
		most->blocked_ns,
		"It sleeps inside the callback, and its loop with it: look for poll(), select(), a "
		"blocking read, write or connect, sleep, name resolution, a lock, a database or file "
		"access, a synchronous call of GIO (..._sync(), or with an ..._async() beside it). Let the "
		"loop wait instead (an event for the answer, a timer for the pause), "
		"or move it to a thread.",
		"%.*s%s waited %s for something while worker %llu could run nothing else (%s of %s "
		"calls did, %s in all; the limit was %s)%s.",
		name.len, name.text, callback->internal ? " (the library's own callback)" : "",
		d9__units_ns(most->blocked_ns).text, (unsigned long long)most->worker,
		d9__units_count(callback->blocked_calls).text,
		d9__units_count(callback->calls).text, d9__units_ns(callback->blocked_ns).text,
		d9__units_ns(limit_of(findings, most)).text, behind);
	set_callback(findings, finding, callback);
	for (size_t i = 0; i < callback->n_stalls && i < EXAMPLES; i++)
		if (d9__stall_is_blocked(callback->stalls[i].stall))
			add_blocked(findings, finding, callback->stalls[i].stall);
}

void d9__check_blocked_callback(struct d9__findings *findings)
{
	const struct d9__callbacks *callbacks = &findings->analysis->callbacks;

	for (size_t i = 0; i < callbacks->n; i++)
		if (callbacks->items[i]->n_stalls)
			blocked_callback(findings, callbacks->items[i]);
}

/* What a call of |callback| takes: the median, or the mean of what the kernel left if that is less. */
static uint64_t usual_ns(const struct d9__callback *callback)
{
	uint64_t p50 = d9__histogram_quantile(&callback->durations, 0.5), own_ns;

	if (callback->durations.count == 0 || callback->taken_ns >= callback->durations.sum)
		return 0;
	own_ns = (callback->durations.sum - callback->taken_ns) / callback->durations.count;
	return callback->taken_ns && own_ns < p50 ? own_ns : p50;
}

static void timer_overrun(struct d9__findings *findings, const struct d9__callback *callback)
{
	const struct d9__analysis *a = findings->analysis;
	uint64_t takes_ns = usual_ns(callback), own_ns = callback->durations.sum - callback->taken_ns;
	uint64_t runs = callback->lateness.count, lasted_ns = a->loop_last_ns - a->loop_first_ns;
	struct name name = name_of(callback);
	struct d9__finding *finding;
	char period[160] = "";

	if (callback->overruns < OVERRUNS || OVERRUN_PART * callback->overruns < runs ||
	    10 * takes_ns < 9 * callback->period_ns)
		return;
	/* Where the kernel stretched all calls, the deadlines may lie further apart than the period. */
	if (callback->period_ns < takes_ns || 10 * callback->overruns < 9 * runs)
		snprintf(period, sizeof(period), "is due every %s and ",
			 d9__units_ns(callback->period_ns).text);
	finding = d9__finding_add(
		findings, 10 * own_ns >= 8 * lasted_ns ? D9__CRITICAL : D9__WARNING, own_ns,
		"It leaves the loop little time for anything else. Make the period longer than the call, "
		"or do the work in a thread. A timer that is set again at the end of its call counts "
		"from when the loop last looked at the clock: let it look again before "
		"(event_base_update_cache_time()).",
		"The timer %.*s %stakes %s each time: %s of %s runs were due before the one before had "
		"ended.",
		name.len, name.text, period, d9__units_ns(takes_ns).text, d9__units_count(callback->overruns).text,
		d9__units_count(runs).text);
	set_callback(findings, finding, callback);
	d9__finding_add_evidence(
		findings, finding, &(struct d9__evidence){ .callback = callback },
		"ran for %s of the trace's %s; %swhat it takes is the median", d9__units_ns(own_ns).text,
		d9__units_ns(lasted_ns).text,
		period[0] ? "the period is the shortest time between two deadlines, " : "");
}

void d9__check_timer_overrun(struct d9__findings *findings)
{
	const struct d9__callbacks *callbacks = &findings->analysis->callbacks;

	for (size_t i = 0; i < callbacks->n; i++)
		if (callbacks->items[i]->overruns)
			timer_overrun(findings, callbacks->items[i]);
}

/* The call of |callback| that took longest, the kernel's part included. */
static const struct d9__stall *longest(const struct d9__callback *callback)
{
	const struct d9__stall *most = callback->stalls[0].stall;

	for (size_t i = 1; i < callback->n_stalls; i++)
		if (callback->stalls[i].stall->culprit_ns > most->culprit_ns)
			most = callback->stalls[i].stall;
	return most;
}

static void long_callback(struct d9__findings *findings, const struct d9__callback *callback)
{
	const struct d9__stall *worst = callback->stalls[0].stall;
	uint64_t limit = limit_of(findings, worst), calls;
	struct name name = name_of(callback);
	struct d9__finding *finding;
	char behind[160], taken[160];
	bool preempted, waited;

	if (callback->stalls[0].ns <= limit)
		worst = longest(callback);
	if (worst->culprit_ns <= limit ||
	    (callback->stalls[0].ns > limit && all_blocked(callback, limit)))
		return;
	calls = d9__histogram_above(&callback->durations, limit);
	if (calls == 0)
		calls = 1;
	waited = describe_waiting(callback, behind, sizeof(behind));
	preempted = looks_preempted(findings, callback, limit, calls);
	describe_taken(worst->culprit_ns - d9__stall_own_ns(worst), taken, sizeof(taken));
	finding = d9__finding_add(
		findings,
		preempted ? D9__INFO : long_severity(d9__stall_own_ns(worst), calls, waited),
		d9__stall_own_ns(worst), long_advice(callback, d9__stall_verdict(worst), preempted),
		"%.*s%s blocked worker %llu for %s%s (%s of %s calls took over %s)%s.", name.len,
		name.text, callback->internal ? " (the library's own callback)" : "",
		(unsigned long long)worst->worker, d9__units_ns(worst->culprit_ns).text, taken,
		d9__units_count(calls).text, d9__units_count(callback->calls).text,
		d9__units_ns(limit).text, behind);
	set_callback(findings, finding, callback);
	for (size_t i = 0; i < callback->n_stalls && i < EXAMPLES; i++)
		if (callback->stalls[i].stall->culprit_ns > limit)
			add_stall(findings, finding, callback->stalls[i].stall);
	if (preempted)
		add_switches(findings, finding);
}

void d9__check_long_callback(struct d9__findings *findings)
{
	const struct d9__callbacks *callbacks = &findings->analysis->callbacks;

	for (size_t i = 0; i < callbacks->n; i++)
		if (callbacks->items[i]->n_stalls)
			long_callback(findings, callbacks->items[i]);
}

void d9__check_running_at_end(struct d9__findings *findings)
{
	const struct d9__analysis *a = findings->analysis;

	for (size_t i = 0; i < a->timeline.n; i++) {
		const struct d9__worker *worker = a->timeline.items[i];
		const struct d9__piece *piece = &worker->piece;
		struct d9__finding *finding;
		struct name name;
		uint64_t ns;

		if (!piece->open || a->last_ns < piece->start_ns + RUNNING_NS)
			continue;
		ns = a->last_ns - piece->start_ns;
		name = name_of(piece->task->callback);
		finding = d9__finding_add(
			findings, D9__WARNING, ns,
			"Its length is unknown, so it is in no figure. If the program hung or was killed "
			"then, this is where.",
			"%.*s was still running on worker %llu when the trace ended, for %s at least.",
			name.len, name.text, (unsigned long long)worker->id,
			d9__units_ns(ns).text);
		set_callback(findings, finding, piece->task->callback);
		d9__finding_add_evidence(findings, finding,
					 &(struct d9__evidence){ .at_ns = piece->start_ns,
								 .duration_ns = ns,
								 .has_worker = true,
								 .worker = worker->id,
								 .task = piece->task->id,
								 .callback = piece->task->callback },
					 "began and did not end");
	}
}

/* ---- waits ---- */

/* "200 calls ran meanwhile for 48 ms, most in x (180 calls, 40 ms)" */
static void describe_between(const struct d9__between *between, char *buf, size_t size)
{
	struct name longest = name_of(between->longest), most = name_of(between->most);

	if (between->calls == 0)
		snprintf(buf, size, "no callback ran on its worker meanwhile");
	else if (10 * between->longest_ns >= 9 * between->busy_ns)
		snprintf(buf, size, "%.*s ran for %s of it", longest.len, longest.text,
			 d9__units_ns(between->longest_ns).text);
	else
		snprintf(buf, size, "%s%s calls ran meanwhile for %s, %s of them %.*s (%s)",
			 between->calls >= D9__WORKER_RECENT ? "more than " : "",
			 d9__units_count(between->calls).text,
			 d9__units_ns(between->busy_ns).text,
			 d9__units_count(between->most_calls).text, most.len, most.text,
			 d9__units_ns(between->most_ns).text);
}

static void add_delay(struct d9__findings *findings, struct d9__finding *finding,
		      const struct d9__delay *delay, const char *what)
{
	struct d9__evidence evidence = { .at_ns = delay->from_ns,
					 .duration_ns = delay->ns,
					 .has_worker = true,
					 .worker = delay->worker,
					 .task = delay->task,
					 .callback = delay->callback };
	struct name name = name_of(delay->callback);
	char between[512] = "", taken[160];

	if (delay->between.known)
		describe_between(&delay->between, between, sizeof(between));
	describe_taken(delay->ns - delay->own_ns, taken, sizeof(taken));
	d9__finding_add_evidence(findings, finding, &evidence, "%.*s %s %s%s%s%s", name.len,
				 name.text, what, d9__units_ns(delay->ns).text, taken,
				 between[0] ? ": " : "", between);
}

void d9__check_backlog(struct d9__findings *findings)
{
	const struct d9__latency *latency = &findings->analysis->latency;
	const struct d9__delay *worst = &latency->backlogs[0];
	struct d9__finding *finding;
	struct name name, most;

	if (latency->n_backlogs == 0 || worst->rank_ns < D9__MS(10))
		return;
	name = name_of(worst->callback);
	most = name_of(worst->between.most);
	finding = d9__finding_add(
		findings, worst->rank_ns > D9__MS(50) ? D9__CRITICAL : D9__WARNING, worst->rank_ns,
		"No single callback is to blame: there are too many in a round. Handle fewer per round "
		"(limits on accepts and reads), use priorities, make the frequent one cheaper, or "
		"spread the work over more loops.",
		"%.*s waited %s behind a backlog of %s%s short calls, most of them of %.*s.",
		name.len, name.text, d9__units_ns(worst->ns).text,
		worst->between.calls >= D9__WORKER_RECENT ? "more than " : "",
		d9__units_count(worst->between.calls).text, most.len, most.text);
	set_callback(findings, finding, worst->between.most);
	for (size_t i = 0; i < latency->n_backlogs && i < EXAMPLES; i++)
		add_delay(findings, finding, &latency->backlogs[i], "waited");
}

/* Waits over 5 ms that were looked into and had a cause. */
static uint64_t waits_explained(const struct d9__latency *latency)
{
	return latency->behind_long + latency->behind_unfair + latency->behind_kernel +
	       latency->behind_backlog + latency->behind_several + latency->behind_nothing;
}

/* Whether waits over 5 ms have a cause that has a finding of its own. */
static bool all_told(const struct d9__findings *findings)
{
	const struct d9__latency *latency = &findings->analysis->latency;
	uint64_t told = latency->behind_long + latency->behind_unfair + latency->behind_kernel;
	uint64_t all = waits_explained(latency);

	if (d9__finding_told(findings, "backlog"))
		told += latency->behind_backlog;
	/*
	 * Its loop slept on, and nobody woke it.  And if the kernel interrupts calls, it does what is
	 * between them as well.
	 */
	if (latency->kernel_known || d9__finding_told(findings, "lost-wake"))
		told += latency->behind_nothing;

	return all && 10 * told >= 9 * all;
}

/* The timer that one task held up for longest, or NULL. */
static const struct d9__delay *latest_unfair(const struct d9__latency *latency)
{
	for (size_t i = 0; i < latency->n_busiest; i++)
		if (d9__delay_is_unfair(&latency->busiest[i]))
			return &latency->busiest[i];
	return NULL;
}

void d9__check_unfair(struct d9__findings *findings)
{
	const struct d9__latency *latency = &findings->analysis->latency;
	const struct d9__delay *worst = latency->n_unfair ? &latency->unfair[0] : NULL;
	const struct d9__delay *timer = latest_unfair(latency);
	const struct d9__task *task;
	struct d9__finding *finding;
	struct name name, one;
	char descriptor[48] = "";

	if (timer && (!worst || timer->rank_ns > worst->rank_ns))
		worst = timer;
	if (!worst || worst->rank_ns < D9__MS(10))
		return;
	name = name_of(worst->callback);
	one = name_of(worst->between.one);
	task = d9__table_find(&findings->analysis->tasks.table, worst->between.one_task);
	if (task && task->fd >= 0)
		snprintf(descriptor, sizeof(descriptor), " for descriptor %lld",
			 (long long)task->fd);
	finding = d9__finding_add(
		findings, worst->rank_ns > D9__MS(50) ? D9__CRITICAL : D9__WARNING, worst->rank_ns,
		"One task has the loop to itself while others are ready. Do a limited amount of work for "
		"it and go back to the loop: no event_active() of itself, no higher priority for "
		"what is always ready; let others have their turn.",
		"%.*s was called %s%s times%s, for %s, while %.*s waited %s for its turn.", one.len,
		one.text, worst->between.calls >= D9__WORKER_RECENT ? "over " : "",
		d9__units_count(worst->between.one_calls).text, descriptor,
		d9__units_ns(worst->between.one_ns).text, name.len, name.text,
		d9__units_ns(worst->ns).text);
	set_callback(findings, finding, worst->between.one);
	if (timer)
		add_delay(findings, finding, timer, "was late by");
	for (size_t i = 0; i < latency->n_unfair && i < EXAMPLES; i++)
		add_delay(findings, finding, &latency->unfair[i], "waited");
	d9__finding_add_evidence(findings, finding, NULL,
				 "counts from 10 ms of callbacks on, if one task had 8 calls or more, "
				 "more than half of all, and three quarters of their time");
}

/* " because x ran for 23 ms", if that took most of |ns|. */
static void describe_cause(const struct d9__between *between, uint64_t ns, char *buf, size_t size)
{
	struct name longest = name_of(between->longest), most = name_of(between->most);

	buf[0] = '\0';
	if (2 * between->longest_ns >= ns)
		snprintf(buf, size, " because %.*s ran for %s", longest.len, longest.text,
			 d9__units_ns(between->longest_ns).text);
	else if (2 * between->most_ns >= ns)
		snprintf(buf, size, " because %.*s ran %s times for %s in all", most.len, most.text,
			 d9__units_count(between->most_calls).text,
			 d9__units_ns(between->most_ns).text);
}

/* The timer that callbacks held up for longest without a finding of their own, or NULL. */
static const struct d9__delay *latest_untold(const struct d9__latency *latency)
{
	for (size_t i = 0; i < latency->n_held; i++) {
		const struct d9__delay *delay = &latency->held[i];

		if (delay->rank_ns > TIMER_LATE_NS &&
		    2 * delay->between.longest_ns < delay->rank_ns && !d9__delay_is_unfair(delay))
			return delay;
	}
	return NULL;
}

/*
 * Who is to blame: what ran meanwhile, if that took half of |delay|, or of what |held| it up; else the
 * timer itself.
 */
static const struct d9__callback *blamed(const struct d9__delay *delay, bool held)
{
	uint64_t ns = held ? delay->between.busy_ns : delay->own_ns;

	return 2 * delay->between.most_ns >= ns ? delay->between.most : delay->callback;
}

void d9__check_timer_late(struct d9__findings *findings)
{
	const struct d9__latency *latency = &findings->analysis->latency;
	const struct d9__delay *untold = latest_untold(latency);
	const struct d9__delay *worst = untold ? untold : &latency->latest[0];
	struct d9__finding *finding;
	struct name name;
	char because[256] = "", taken[160];

	if (latency->lateness.max <= TIMER_LATE_NS)
		return;
	name = name_of(worst->callback);
	/* What the kernel took has no other cause. */
	if (2 * worst->own_ns >= worst->ns)
		describe_cause(&worst->between, worst->own_ns, because, sizeof(because));
	describe_taken(worst->ns - worst->own_ns, taken, sizeof(taken));
	finding = d9__finding_add(
		findings, untold ? D9__WARNING : D9__INFO, worst->ns,
		"A timer runs when what runs before it has ended: see what ran meanwhile. If nothing "
		"did, the loop slept past the deadline (coarse clock, stale loop time after a long "
		"callback) or the kernel ran something else.",
		"The timer %.*s ran %s late%s%s (%s of %s timer runs were over 10 ms late).", name.len,
		name.text, d9__units_ns(worst->ns).text, taken, because,
		d9__units_count(latency->late_over_10ms).text,
		d9__units_count(latency->lateness.count).text);
	set_callback(findings, finding, blamed(worst, untold != NULL));
	for (size_t i = 0; untold && i < latency->n_held && i < EXAMPLES; i++)
		add_delay(findings, finding, &latency->held[i], "was late by");
	for (size_t i = 0; !untold && i < latency->n_latest && i < EXAMPLES; i++)
		add_delay(findings, finding, &latency->latest[i], "was late by");
	d9__finding_add_evidence(findings, finding, NULL,
				 "counts from %s on, as clock ticks and waits in whole milliseconds "
				 "make idle loops late by up to 12 ms; a warning if callbacks ran for "
				 "as long, and none of them half of it",
				 d9__units_ns(TIMER_LATE_NS).text);
}

static enum d9__severity delay_severity(const struct d9__findings *findings)
{
	const struct d9__latency *latency = &findings->analysis->latency;
	const struct d9__resource_usage *usage = &findings->analysis->usage;

	/* Then the cause is told already, and louder. */
	if (all_told(findings))
		return D9__INFO;
	/* Nothing ran, and threads of the process, maybe those that sent the wakes, lost their CPU. */
	if (latency->behind_nothing + latency->behind_kernel >= latency->woken_over_5ms &&
	    latency->worst_woken[0].own_ns < PREEMPTED_WAIT_NS &&
	    usage->growth[D9__USAGE_INVOLUNTARY_SWITCHES] >= latency->woken_over_5ms)
		return D9__INFO;
	/* A few while nothing ran: the kernel's doing, which must not stand before a cause. */
	if (latency->woken_over_50ms &&
	    (latency->woken_over_5ms > latency->behind_long + latency->behind_nothing ||
	     1000 * latency->behind_nothing > latency->woken))
		return D9__CRITICAL;
	if (latency->woken_over_10ms || 1000 * latency->woken_over_5ms > latency->woken)
		return D9__WARNING;
	return D9__INFO;
}

static const char *wake_delay_advice(const struct d9__findings *findings)
{
	const struct d9__latency *latency = &findings->analysis->latency;

	/* A loop that is left writes nothing until it is entered again. */
	if (latency->behind_nothing && 2 * latency->behind_nothing >= waits_explained(latency) &&
	    !d9__finding_told(findings, "lost-wake"))
		return "These callbacks were ready and nothing of the loop ran. Either the program had left its "
		       "loop and ran it again only then: see what it does between. Or the thread was not "
		       "scheduled (see kernel waits), or was not woken.";
	if (all_told(findings))
		return "They waited for what has a finding of its own: mend that.";
	return "These callbacks were ready but did not run. What ran on their worker meanwhile is the cause; if "
	       "nothing did, the thread was not scheduled (see kernel waits) or was not woken, or the program "
	       "had left its loop.";
}

void d9__check_wake_delay(struct d9__findings *findings)
{
	const struct d9__latency *latency = &findings->analysis->latency;
	const struct d9__delay *worst = &latency->worst_woken[0];
	struct d9__finding *finding;
	struct name name;

	if (latency->woken_over_5ms == 0)
		return;
	name = name_of(worst->callback);
	finding = d9__finding_add(
		findings, delay_severity(findings), worst->ns,
		wake_delay_advice(findings),
		"%s of %s waits for a turn took over 5 ms; %.*s waited longest, %s.",
		d9__units_count(latency->woken_over_5ms).text,
		d9__units_count(latency->woken).text, name.len, name.text,
		d9__units_ns(worst->own_ns).text);
	set_callback(findings, finding, worst->callback);
	d9__finding_add_evidence(findings, finding, NULL,
				 "looked into: %s behind one long call, %s behind many of one task, %s "
				 "behind several others, %s behind calls that the kernel interrupted, "
				 "%s while their worker ran little or nothing",
				 d9__units_count(latency->behind_long).text,
				 d9__units_count(latency->behind_unfair).text,
				 d9__units_count(latency->behind_backlog + latency->behind_several).text,
				 d9__units_count(latency->behind_kernel).text,
				 d9__units_count(latency->behind_nothing).text);
	for (size_t i = 0; i < latency->n_worst_woken && i < EXAMPLES; i++)
		add_delay(findings, finding, &latency->worst_woken[i], "waited");
}
