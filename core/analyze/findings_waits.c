/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of waits for a turn: behind backlogs and unfair neighbours, of timers, and all others. */
#include "config.h"

#include <stdio.h>

#include "analyze/findings.h"
#include "analyze/units.h"

/* Examples under a finding. */
#define EXAMPLES 3

/*
 * Coarse clocks and waits in whole milliseconds make timers of idle loops late by up to three
 * clock ticks: 12 ms.
 */
#define TIMER_LATE_NS D9__MS(20)

/* A wait while nothing ran on the worker is the kernel's up to here, if it took the CPU as often. */
#define PREEMPTED_WAIT_NS D9__MS(1000)

/* "200 calls ran meanwhile for 48 ms, most in x (180 calls, 40 ms)" */
static void describe_between(const struct d9__between *between, char *buf, size_t size)
{
	struct d9__name longest = d9__finding_name(between->longest), most = d9__finding_name(between->most);

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
	struct d9__name name = d9__finding_name(delay->callback);
	char between[512] = "", taken[160];

	if (delay->between.known)
		describe_between(&delay->between, between, sizeof(between));
	d9__finding_taken(delay->ns - delay->own_ns, taken, sizeof(taken));
	d9__finding_add_evidence(findings, finding, &evidence, "%.*s %s %s%s%s%s", name.len,
				 name.text, what, d9__units_ns(delay->ns).text, taken,
				 between[0] ? ": " : "", between);
}

void d9__check_backlog(struct d9__findings *findings)
{
	const struct d9__latency *latency = &findings->analysis->latency;
	const struct d9__delay *worst = &latency->backlogs[0];
	struct d9__finding *finding;
	struct d9__name name, most;

	if (latency->n_backlogs == 0 || worst->rank_ns < D9__MS(10))
		return;
	name = d9__finding_name(worst->callback);
	most = d9__finding_name(worst->between.most);
	finding = d9__finding_add(
		findings, worst->rank_ns > D9__MS(50) ? D9__CRITICAL : D9__WARNING, worst->rank_ns,
		"No single callback is to blame: there are too many in a round. Handle fewer per round "
		"(limits on accepts and reads), use priorities, make the frequent one cheaper, or "
		"spread the work over more loops.",
		"%.*s waited %s behind a backlog of %s%s short calls, most of them of %.*s.",
		name.len, name.text, d9__units_ns(worst->ns).text,
		worst->between.calls >= D9__WORKER_RECENT ? "more than " : "",
		d9__units_count(worst->between.calls).text, most.len, most.text);
	d9__finding_set_callback(findings, finding, worst->between.most);
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
	struct d9__name name, one;
	char descriptor[48] = "";

	if (timer && (!worst || timer->rank_ns > worst->rank_ns))
		worst = timer;
	if (!worst || worst->rank_ns < D9__MS(10))
		return;
	name = d9__finding_name(worst->callback);
	one = d9__finding_name(worst->between.one);
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
	d9__finding_set_callback(findings, finding, worst->between.one);
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
	struct d9__name longest = d9__finding_name(between->longest), most = d9__finding_name(between->most);

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
	struct d9__name name;
	char because[256] = "", taken[160];

	if (latency->lateness.max <= TIMER_LATE_NS)
		return;
	name = d9__finding_name(worst->callback);
	/* What the kernel took has no other cause. */
	if (2 * worst->own_ns >= worst->ns)
		describe_cause(&worst->between, worst->own_ns, because, sizeof(because));
	d9__finding_taken(worst->ns - worst->own_ns, taken, sizeof(taken));
	finding = d9__finding_add(
		findings, untold ? D9__WARNING : D9__INFO, worst->ns,
		"A timer runs when what runs before it has ended: see what ran meanwhile. If nothing "
		"did, the loop slept past the deadline (coarse clock, stale loop time after a long "
		"callback) or the kernel ran something else.",
		"The timer %.*s ran %s late%s%s (%s of %s timer runs were over 10 ms late).", name.len,
		name.text, d9__units_ns(worst->ns).text, taken, because,
		d9__units_count(latency->late_over_10ms).text,
		d9__units_count(latency->lateness.count).text);
	d9__finding_set_callback(findings, finding, blamed(worst, untold != NULL));
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
	struct d9__name name;

	if (latency->woken_over_5ms == 0)
		return;
	name = d9__finding_name(worst->callback);
	finding = d9__finding_add(
		findings, delay_severity(findings), worst->ns,
		wake_delay_advice(findings),
		"%s of %s waits for a turn took over 5 ms; %.*s waited longest, %s.",
		d9__units_count(latency->woken_over_5ms).text,
		d9__units_count(latency->woken).text, name.len, name.text,
		d9__units_ns(worst->own_ns).text);
	d9__finding_set_callback(findings, finding, worst->callback);
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
