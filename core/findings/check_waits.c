/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of waits for a turn: behind backlogs and unfair neighbours, of timers, and all others. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "findings/check_parts.h"
#include "findings/owners.h"
#include "text/units.h"

/* Events that are ready and not called for so long are told, and critical. */
#define STARVED_NS	    (100 * D9__MS_NS)
#define STARVED_CRITICAL_NS (500 * D9__MS_NS)

/* One task has the loop from here on; and from there on, where that is half of all that the loop
 * does. */
#define UNFAIR_NS	(10 * D9__MS_NS)
#define UNFAIR_OFTEN_NS (5 * D9__MS_NS)

/* So many waits are no accident. */
#define OFTEN 3

/* Examples under a finding. */
#define EXAMPLES 3

/*
 * Coarse clocks and waits in whole milliseconds make timers of idle loops late by up to three
 * clock ticks: 12 ms.
 */
#define TIMER_LATE_NS (20 * D9__MS_NS)

/* Behind callbacks for so long it is a warning even if there is another. */
#define TIMER_VERY_LATE_NS (100 * D9__MS_NS)

/* A wait while nothing ran on the worker is the kernel's up to here, if it took the CPU as often. */
#define PREEMPTED_WAIT_NS D9__SECOND_NS

/* Many descriptors that close at once, as those of a server's clients do when it is restarted: so
 * long, and no longer. */
#define BURST_NS   D9__SECOND_NS
#define BURST_PART 3
#define BURST_MIN  20

/* "200", "1,204" of a round, "more than 256" where they were not counted. */
static struct d9__units calls_text(const struct d9__between *between)
{
	struct d9__units text = d9__units_count(between->round_calls ? between->round_calls : between->calls), more;

	if (between->calls < D9__WORKER_RECENT || between->round_calls)
		return text;
	snprintf(more.text, sizeof(more.text), "more than %.60s", text.text);
	return more;
}

/* "200 calls ran meanwhile for 48 ms, most in x (180 calls, 40 ms)" */
static void describe_between(const struct d9__between *between, char *buf, size_t size)
{
	struct d9__shown_name longest = d9__finding_name(between->longest), most = d9__finding_name(between->most);

	if (between->calls == 0)
		snprintf(buf, size, "no callback ran on its worker meanwhile");
	else if (10 * between->longest_ns >= 9 * between->busy_ns)
		snprintf(buf, size, "%.*s ran for %s of it", longest.len, longest.text,
			 d9__units_ns(between->longest_ns).text);
	else
		snprintf(buf, size, "%s calls ran meanwhile for %s, %s of %s %.*s (%s)", calls_text(between).text,
			 d9__units_ns(between->round_calls ? between->round_ns : between->busy_ns).text,
			 d9__units_count(between->most_calls).text,
			 between->calls < D9__WORKER_RECENT ? "them" : "the last 256", most.len, most.text,
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
	struct d9__shown_name name = d9__finding_name(delay->callback);
	char between[512] = "", taken[160];

	if (delay->between.known)
		describe_between(&delay->between, between, sizeof(between));
	d9__finding_taken(delay->ns - delay->own_ns, taken, sizeof(taken));
	d9__finding_add_evidence(findings, finding, &evidence, "%.*s %s %s%s%s%s", name.len,
				 name.text, what, d9__units_ns(delay->ns).text, taken,
				 between[0] ? ": " : "", between);
}

/*
 * The length by which |delay| is judged, without what calls lost to the machine that are too short
 * to tell it.
 */
static uint64_t own_rank_ns(const struct d9__analysis *a, const struct d9__delay *delay)
{
	uint64_t preempted_ns = d9__delay_preempted_ns(a, delay);

	return preempted_ns < delay->rank_ns ? delay->rank_ns - preempted_ns : 0;
}

/* The worst of |items| by that, or NULL. */
static const struct d9__delay *longest_own(const struct d9__analysis *a, const struct d9__delay *items, size_t n)
{
	const struct d9__delay *worst = NULL;

	for (size_t i = 0; i < n; i++)
		if (!worst || own_rank_ns(a, &items[i]) > own_rank_ns(a, worst))
			worst = &items[i];
	return worst;
}

static bool is_start(const struct d9__analysis *a, const struct d9__delay *delay)
{
	return d9__analysis_is_start(a, delay->start_ns, delay->start_ns, false);
}

/*
 * Whether all waits of the trace lie in one burst, and half as many tasks ended then as waited, or
 * more: there is one for each of many descriptors that closed at once, and no callback is to blame.
 */
static bool is_burst(const struct d9__analysis *a)
{
	const struct d9__latency *latency = &a->latency;
	uint64_t ns = latency->waited_to_ns - latency->waited_from_ns;

	return latency->woken_over_5ms >= BURST_MIN && ns <= BURST_NS &&
	       BURST_PART * ns <= a->loop_last_ns - a->loop_first_ns &&
	       2 * latency->closed >= latency->woken_over_5ms;
}

/* The longest wait behind a backlog; those of a program's start count where there are no others. */
static const struct d9__delay *worst_backlog(const struct d9__analysis *a, bool *starts)
{
	const struct d9__latency *latency = &a->latency;
	const struct d9__delay *worst = longest_own(a, latency->backlogs, latency->n_backlogs);

	*starts = worst && is_start(a, worst);
	for (size_t i = 0; i < latency->n_backlogs && *starts; i++)
		*starts = is_start(a, &latency->backlogs[i]);
	if (*starts && own_rank_ns(a, &latency->latest_backlog) >= 10 * D9__MS_NS &&
	    !is_start(a, &latency->latest_backlog)) {
		*starts = false;
		worst = &latency->latest_backlog;
	}
	return worst;
}

void d9__check_backlog(struct d9__findings *findings)
{
	const struct d9__latency *latency = &findings->analysis->latency;
	bool starts, burst;
	const struct d9__delay *worst = worst_backlog(findings->analysis, &starts);
	uint64_t own_ns = worst ? own_rank_ns(findings->analysis, worst) : 0;
	struct d9__finding *finding;
	struct d9__shown_name name, most;
	char taken[96];

	if (own_ns < 10 * D9__MS_NS || d9__finding_is_endless(findings, worst->between.most))
		return;
	burst = is_burst(findings->analysis);
	d9__finding_taken(worst->ns > own_ns ? worst->ns - own_ns : 0, taken, sizeof(taken));
	name = d9__finding_name(worst->callback);
	most = d9__finding_name(worst->between.most);
	finding = d9__finding_add(
		findings,
		starts || burst		  ? D9__INFO
		: own_ns > 50 * D9__MS_NS ? D9__CRITICAL
					  : D9__WARNING,
		own_ns,
		"Handle fewer per round (limits on accepts and reads), use priorities, make the "
		"frequent one "
		"cheaper, or spread the work over more loops: no single call is to blame, there "
		"are too many in a "
		"round.",
		"%.*s waited %s%s behind a backlog of %s short calls, most of them of %.*s%s.",
		name.len, name.text, d9__units_ns(worst->ns).text, taken,
		calls_text(&worst->between).text, most.len, most.text,
		starts	? ", while the program started"
		: burst ? ": a burst of descriptors that closed at once, each of them called once"
			: "");
	d9__finding_set_callback(findings, finding, worst->between.most);
	d9__finding_set_brief(findings, finding,
			      burst ? "one burst of %s calls, as many closed at once: %s"
				    : "short calls, %s in a row, hold the loop %s",
			      calls_text(&worst->between).text, d9__units_ns(own_ns).text);
	d9__finding_set_effect(findings, finding, worst->between.most, "%.*s waited %s behind %s calls", name.len,
			       name.text, d9__units_ns(own_ns).text, calls_text(&worst->between).text);
	for (size_t i = 0; i < latency->n_backlogs && i < EXAMPLES; i++)
		add_delay(findings, finding, &latency->backlogs[i], "waited");
	if (worst->rank_ns - own_ns >= D9__MS_NS)
		d9__finding_add_evidence(findings, finding, NULL,
					 "the thread was off the CPU for %s of the longest of these waits, which all "
					 "its calls share: it is not counted",
					 d9__units_ns(worst->rank_ns - own_ns).text);
}

/* Waits over 5 ms that were examined and had a cause. */
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
	 * Its loop slept on, and no thread woke it.  And if the kernel interrupts calls, it does
	 * what is between them as well.
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

static const char own_turn[] =
	"Do a limited amount of work for it and go back to the loop: one task has the loop to "
	"itself while others are ready. No event_active() of itself, no higher priority for what "
	"is "
	"always ready; let others have their turn.";

/* Others are ready all the time, and are not called. */
static void starved(struct d9__findings *findings, const struct d9__worker *worker)
{
	const struct d9__starved *starved = &worker->starved;
	uint64_t ns = starved->to_ns - starved->from_ns;
	struct d9__shown_name name = d9__finding_name(starved->by);
	struct d9__finding *finding;

	finding = d9__finding_add(
		findings, ns >= STARVED_CRITICAL_NS ? D9__CRITICAL : D9__WARNING, ns, own_turn,
		"Events of a lower priority, %s and more at a time, were ready on worker %" PRIu64
		" for %s and not called, while %.*s and its like were called %s times in %s "
		"rounds.",
		d9__units_count(starved->waiting).text, worker->id, d9__units_ns(ns).text, name.len,
		name.text, d9__units_count(starved->calls).text,
		d9__units_count(starved->rounds).text);
	d9__finding_set_callback(findings, finding, starved->by);
	d9__finding_set_brief(findings, finding,
			      "has the loop to itself for %s, while others are ready",
			      d9__units_ns(ns).text);
	d9__finding_add_evidence(findings, finding,
				 &(struct d9__evidence) { .at_ns = starved->from_ns,
							  .duration_ns = ns,
							  .has_worker = true,
							  .worker = worker->id,
							  .callback = starved->by },
				 "no round left the queue empty; which events wait in it is told "
				 "when they are called");
}

/* Whether events that wait for |callback| to let them have their turn are told. */
static bool check_starved(struct d9__findings *findings, const struct d9__callback *callback)
{
	const struct d9__analysis *a = findings->analysis;
	bool told = false;

	for (size_t i = 0; i < a->timeline.n; i++) {
		const struct d9__starved *now = &a->timeline.items[i]->starved;

		if (now->to_ns - now->from_ns < STARVED_NS || a->losses.events)
			continue;
		starved(findings, a->timeline.items[i]);
		told |= now->by == callback;
	}
	return told;
}

/*
 * A burst that goes on until a time, and not until its work is done, gets less of a busy machine:
 * its share of what the loop did is the same there.
 */
static bool is_long_unfair(const struct d9__findings *findings, const struct d9__delay *worst)
{
	const struct d9__worker *worker =
		d9__table_find(&findings->analysis->timeline.by_id, worst->worker);
	bool often = worker && 2 * worker->unfair.ns >= findings->owners[worker->number].awake_ns;

	return own_rank_ns(findings->analysis, worst) >= (often ? UNFAIR_OFTEN_NS : UNFAIR_NS);
}

void d9__check_unfair(struct d9__findings *findings)
{
	const struct d9__latency *latency = &findings->analysis->latency;
	const struct d9__delay *worst = longest_own(findings->analysis, latency->unfair, latency->n_unfair);
	const struct d9__delay *timer = latest_unfair(latency);
	const struct d9__traced_task *task;
	struct d9__finding *finding;
	struct d9__shown_name name, one;
	char descriptor[48] = "";
	bool more;

	if (timer && (!worst || timer->rank_ns > worst->rank_ns))
		worst = timer;
	if (check_starved(findings, worst ? worst->between.one : NULL) || !worst ||
	    !is_long_unfair(findings, worst) ||
	    d9__finding_is_endless(findings, worst->between.one))
		return;
	name = d9__finding_name(worst->callback);
	one = d9__finding_name(worst->between.one);
	more = worst->between.calls >= D9__WORKER_RECENT; /* than a worker remembers */
	task = d9__table_find(&findings->analysis->tasks.table, worst->between.one_task);
	if (task && task->fd >= 0)
		snprintf(descriptor, sizeof(descriptor), " for descriptor %lld",
			 (long long)task->fd);
	finding = d9__finding_add(
		findings, worst->rank_ns > 50 * D9__MS_NS ? D9__CRITICAL : D9__WARNING,
		worst->rank_ns, own_turn,
		"%.*s was called %s%s times%s, for %s%s, while %.*s waited %s for its turn.",
		one.len, one.text, more ? "over " : "",
		d9__units_count(worst->between.one_calls).text, descriptor, more ? "about " : "",
		d9__units_ns(d9__delay_one_ns(worst)).text, name.len, name.text,
		d9__units_ns(worst->ns).text);
	d9__finding_set_callback(findings, finding, worst->between.one);
	d9__finding_set_brief(findings, finding,
			      more ? "has the loop to itself for %s, over %s calls"
				   : "has the loop to itself for %s, %s calls in a row",
			      d9__units_ns(d9__delay_one_ns(worst)).text,
			      d9__units_count(worst->between.one_calls).text);
	if (timer)
		add_delay(findings, finding, timer, "was late by");
	for (size_t i = 0; i < latency->n_unfair && i < EXAMPLES; i++)
		add_delay(findings, finding, &latency->unfair[i], "waited");
	d9__finding_add_evidence(
		findings, finding, NULL,
		"counts from 10 ms of callbacks on, or 5 ms where such waits are half of "
		"what the loop does, if one task had 8 calls or more, more than half of "
		"all, and three quarters of their time");
}

/* " because x ran for 23 ms", if that took most of |ns|. */
static void describe_cause(const struct d9__between *between, uint64_t ns, char *buf, size_t size)
{
	struct d9__shown_name longest = d9__finding_name(between->longest), most = d9__finding_name(between->most);

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
static const struct d9__delay *latest_untold(const struct d9__analysis *a)
{
	const struct d9__latency *latency = &a->latency;

	for (size_t i = 0; i < latency->n_held; i++) {
		const struct d9__delay *delay = &latency->held[i];

		if (own_rank_ns(a, delay) > TIMER_LATE_NS &&
		    2 * delay->between.longest_ns < delay->rank_ns && !d9__delay_is_unfair(delay))
			return delay;
	}
	return NULL;
}

/*
 * The timer that the program made latest: one that was later still because the machine had the CPU tells of the
 * machine.  If the program made none late, that one.
 */
static const struct d9__delay *latest_own(const struct d9__analysis *a)
{
	const struct d9__latency *latency = &a->latency;
	const struct d9__delay *worst = &latency->latest[0];
	uint64_t worst_ns = TIMER_LATE_NS;

	for (size_t i = 0; i < latency->n_latest + latency->n_held; i++) {
		const struct d9__delay *delay =
			i < latency->n_latest ? &latency->latest[i] : &latency->held[i - latency->n_latest];
		uint64_t preempted_ns = d9__delay_preempted_ns(a, delay);

		if (delay->own_ns > worst_ns + preempted_ns) {
			worst = delay;
			worst_ns = delay->own_ns - preempted_ns;
		}
	}
	return worst;
}

/*
 * The callback to blame: the one that ran meanwhile, if it took half of |ns|, or the worst of long
 * calls; else NULL.
 */
static const struct d9__callback *blamed(const struct d9__between *between, uint64_t ns)
{
	if (2 * between->longest_ns >= ns || 2 * between->long_ns >= ns)
		return between->longest;
	return 2 * between->most_ns >= ns ? between->most : NULL;
}

/* Whether what |culprit| does is worth a note only: then what follows from it is, too. */
static bool is_noted(const struct d9__findings *findings, const struct d9__callback *culprit)
{
	for (size_t i = 0; i < findings->n_explained; i++)
		if (findings->explained[i].callback == culprit)
			return findings->explained[i].finding && findings->explained[i].finding->severity == D9__INFO;
	return false;
}

/* |worst| is behind what has no finding of its own, if it is |untold|, and mostly behind |culprit|. */
static enum d9__severity late_severity(const struct d9__findings *findings, const struct d9__delay *worst,
				       const struct d9__delay *untold, const struct d9__callback *culprit)
{
	if (untold)
		return D9__WARNING;
	return culprit && worst->own_ns >= TIMER_VERY_LATE_NS && !is_noted(findings, culprit) ? D9__WARNING : D9__INFO;
}

/* " while the program was between two rounds of its loop", as far as that is known, or that no
 * cause is recorded. */
static void describe_outside(const struct d9__analysis *a, const struct d9__delay *delay, char *buf,
			     size_t size)
{
	const struct d9__worker *worker = d9__table_find(&a->timeline.by_id, delay->worker);
	uint64_t at_ns = worker ? worker->loop_time.outside_max_at_ns : 0;

	if (worker && worker->loop_time.outside_max_ns >= D9__WAIT_EXPLAIN_NS &&
	    at_ns < delay->start_ns && at_ns + worker->loop_time.outside_max_ns > delay->from_ns)
		snprintf(buf, size, " while the program was between two rounds of its loop");
	else
		snprintf(buf, size, ", cause not recorded");
}

void d9__check_timer_late(struct d9__findings *findings)
{
	const struct d9__latency *latency = &findings->analysis->latency;
	const struct d9__delay *untold = latest_untold(findings->analysis);
	const struct d9__delay *worst = untold ? untold : latest_own(findings->analysis);
	const struct d9__callback *culprit = NULL;
	struct d9__finding *finding;
	struct d9__shown_name name;
	bool held = worst != &latency->latest[0], own, unexplained;
	char because[256] = "", taken[160];

	if (latency->lateness.max <= TIMER_LATE_NS)
		return;
	name = d9__finding_name(worst->callback);
	/* Time that the kernel took has no other cause. */
	own = 2 * worst->own_ns >= worst->ns || worst->own_ns > TIMER_LATE_NS;
	if (untold || own)
		culprit = blamed(&worst->between, untold ? worst->between.busy_ns : worst->own_ns);
	if (own)
		describe_cause(&worst->between, worst->own_ns, because, sizeof(because));
	unexplained = own && !culprit && worst->own_ns > TIMER_LATE_NS;
	if (unexplained && !because[0])
		describe_outside(findings->analysis, worst, because, sizeof(because));
	d9__finding_taken(worst->ns - worst->own_ns, taken, sizeof(taken));
	finding = d9__finding_add(
		findings, late_severity(findings, worst, untold, culprit), worst->ns,
		"See what ran meanwhile: a timer runs when what runs before it has ended. If nothing did, the loop "
		"slept past the deadline (coarse clock, stale loop time after a long callback) or the kernel ran "
		"something else.",
		"The timer %.*s ran %s late%s%s (%s of %s timer runs were over 10 ms late).", name.len,
		name.text, d9__units_ns(worst->ns).text, taken, because,
		d9__units_count(latency->late_over_10ms).text,
		d9__units_count(latency->lateness.count).text);
	d9__finding_set_callback(findings, finding, culprit ? culprit : worst->callback);
	d9__finding_set_brief(findings, finding, "%s%.*s%s up to %s late", culprit ? "makes " : "",
			      culprit ? name.len : 0, name.text, culprit ? "" : "runs",
			      d9__units_ns(worst->ns).text);
	/* Time that nothing explains is not the machine's. */
	if (!unexplained)
		d9__finding_set_effect(findings, finding, culprit, "%.*s up to %s late", name.len,
				       name.text, d9__units_ns(worst->ns).text);
	for (size_t i = 0; held && i < latency->n_held && i < EXAMPLES; i++)
		add_delay(findings, finding, &latency->held[i], "was late by");
	for (size_t i = 0; !held && i < latency->n_latest && i < EXAMPLES; i++)
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
	if (all_told(findings) || is_burst(findings->analysis))
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
	if (latency->woken_over_10ms)
		return D9__WARNING;
	/* Short ones are what a machine makes that has no CPU for its loops. */
	return 1000 * latency->woken_over_5ms > latency->woken &&
			       latency->woken_over_5ms >= OFTEN &&
			       !d9__finding_is_machine_full(findings)
		       ? D9__WARNING
		       : D9__INFO;
}

static const char *wake_delay_advice(const struct d9__findings *findings)
{
	const struct d9__latency *latency = &findings->analysis->latency;

	/* A loop that is left writes nothing until it is entered again. */
	if (latency->behind_nothing && 2 * latency->behind_nothing >= waits_explained(latency) &&
	    !d9__finding_told(findings, "lost-wake"))
		return "See what the program does between two runs of its loop, if it leaves it: these callbacks "
		       "were ready, and nothing of the loop ran until it was entered again. Else the thread was "
		       "not scheduled (see short of CPU), or was not woken.";
	if (all_told(findings))
		return "Mend what has a finding of its own: that is what they waited for.";
	return "See what ran on their worker meanwhile: these callbacks were ready and did not run. If nothing "
	       "did, the thread was not scheduled (see short of CPU) or was not woken, or the program had left its "
	       "loop.";
}

void d9__check_wake_delay(struct d9__findings *findings)
{
	const struct d9__latency *latency = &findings->analysis->latency;
	const struct d9__delay *worst = &latency->worst_woken[0];
	struct d9__finding *finding;
	struct d9__shown_name name;

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
	d9__finding_set_brief(findings, finding, "waits up to %s for its turn; %s waits over 5 ms",
			      d9__units_ns(worst->own_ns).text, d9__units_count(latency->woken_over_5ms).text);
	d9__finding_set_effect(findings, finding,
			       all_told(findings) ? blamed(&worst->between, worst->own_ns) : NULL,
			       "%s wait%s over 5 ms", d9__units_count(latency->woken_over_5ms).text,
			       latency->woken_over_5ms == 1 ? "" : "s");
	d9__finding_add_evidence(findings, finding, NULL,
				 "of all over 5 ms that were examined, what the kernel took included: %s behind one long call, %s behind many of one task, %s "
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
