/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Check of the machine: whether the process got the CPU when it wanted it, and who had it meanwhile.  One
 * finding, as it is one cause, whatever showed it.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/u64.h"
#include "findings/check_parts.h"
#include "findings/owners.h"
#include "text/units.h"

/* Told from here on: so many waits of over 1 ms for a CPU, or so long in callbacks; or by share. */
#define SHORT_WAITS 3
#define SHORT_NS    (10 * D9__MS_NS)

/*
 * A warning where loops were ready without a CPU for so large a share of their time, and for one
 * part in so many of that in which they wanted one; in traces too short for shares, where it was so
 * long.
 */
#define WARNING_SHARE 0.01
#define WARNING_PART  10
#define LEAST_NS      D9__SECOND_NS
#define WARNING_NS    (50 * D9__MS_NS)

/*
 * Of the CPUs that it may use, in percent: then its own threads compete with each other; so they do
 * from the lower one on where other threads of its own waited for a CPU for as long as its loops.
 */
#define OWN_PERCENT	    75
#define OWN_WAITING_PERCENT 50

/* A neighbour is told from this share of the loops' time on, for which they waited behind it. */
#define NEIGHBOUR_SHARE 0.1

/* Signs that there were too few CPUs, of all workers. */
struct shortage {
	uint64_t waits, measured; /* wake-ups that waited over 1 ms for a CPU, of all that were measured */
	uint64_t wait_ns, max_ns, max_at_ns, max_worker;
	uint64_t taken_ns; /* from running callbacks */
	const struct d9__callback *most_taken;
	uint64_t busy_ns;
	double cores; /* that the process used, and may use; 0: unknown */
	double cpus;
	bool threads_wait; /* those that run no loops, as long as those that do */
	uint64_t ready_ns, awake_ns, left_ns; /* as the accounts of loops have them */
	double own_part; /* of it, by threads of the program that are bound to a loop's CPUs */
	const struct d9__neighbour *neighbour; /* the one with most of that */
};

static void add_worker(struct shortage *s, const struct d9__worker *worker)
{
	s->waits += worker->waits_over_1ms;
	s->measured += worker->wait_measured;
	s->wait_ns += worker->wait_sum_ns;
	s->busy_ns += d9__worker_busy_ns(worker);
	if (worker->waits.max <= s->max_ns)
		return;
	s->max_ns = worker->waits.max;
	s->max_at_ns = worker->wait_max_at_ns;
	s->max_worker = worker->id;
}

static struct shortage measure(const struct d9__analysis *a)
{
	const char *cpus = d9__metadata_value(&a->metadata, "process.available_parallelism");
	struct shortage s = {
		.cores = d9__usage_cores(&a->usage),
		.cpus = cpus ? strtod(cpus, NULL) : 0,
		.threads_wait = a->machine.counters[D9__MACHINE_RUNQUEUE_NS].growth >
				2 * a->machine.ready_ns,
		.own_part = d9__bound_part(&a->timeline),
		.neighbour = d9__bound_worst(&a->bound),
	};

	for (size_t i = 0; i < a->timeline.n; i++)
		add_worker(&s, a->timeline.items[i]);
	for (size_t i = 0; i < a->callbacks.n; i++) {
		const struct d9__callback *callback = a->callbacks.items[i];

		s.taken_ns += callback->taken_ns;
		if (callback->taken_ns > (s.most_taken ? s.most_taken->taken_ns : 0))
			s.most_taken = callback;
	}
	return s;
}

/* Preempted is who has used up its turn: the next comes some milliseconds later. */
#define TURN_NS (4 * D9__MS_NS)

static uint64_t growth(const struct d9__analysis *a, enum d9__machine_counter counter)
{
	return a->machine.counters[counter].growth;
}

bool d9__finding_is_machine_full(const struct d9__findings *findings)
{
	uint64_t taken_ns = 0, awake_ns = 0;

	for (size_t i = 0; i < findings->analysis->timeline.n; i++) {
		taken_ns += findings->owners[i].taken_ns;
		awake_ns += findings->owners[i].awake_ns;
	}
	return taken_ns > awake_ns;
}

uint64_t d9__delay_preempted_ns(const struct d9__analysis *a, const struct d9__delay *delay)
{
	uint64_t most_ns = TURN_NS * a->usage.growth[D9__USAGE_INVOLUNTARY_SWITCHES];

	if (a->machine.counters[D9__MACHINE_RUNQUEUE_NS].known)
		most_ns = growth(a, D9__MACHINE_RUNQUEUE_NS);
	most_ns += growth(a, D9__MACHINE_THROTTLED_NS);
	return delay->shared_ns < most_ns ? delay->shared_ns : most_ns;
}

static bool is_own(const struct shortage *s)
{
	int percent = s->threads_wait ? OWN_WAITING_PERCENT : OWN_PERCENT;

	return s->cpus > 0 && 100 * s->cores >= percent * s->cpus;
}

/* |ns| of |*left|, or all that is left; takes it. */
static uint64_t take(uint64_t *left, uint64_t ns)
{
	uint64_t taken = ns < *left ? ns : *left;

	*left -= taken;
	return taken;
}

static struct d9__ready ready_of(const struct d9__analysis *a, const struct shortage *s)
{
	uint64_t unsampled_ns = s->wait_ns + s->taken_ns, left_ns = take(&unsampled_ns, a->machine.ready_ns);
	struct d9__ready ready = { .ns = left_ns + unsampled_ns };

	ready.limit_ns = take(&left_ns, growth(a, D9__MACHINE_THROTTLED_NS));
	ready.host_ns = take(&left_ns, growth(a, D9__MACHINE_STEAL_NS));
	if (is_own(s)) {
		ready.own_ns = left_ns + unsampled_ns;
	} else {
		uint64_t own_ns = (uint64_t)(s->own_part * (double)(left_ns + unsampled_ns));
		uint64_t sampled_ns = take(&left_ns, own_ns);

		ready.own_ns = sampled_ns + take(&unsampled_ns, own_ns - sampled_ns);
		ready.others_ns = left_ns;
		ready.unknown_ns = unsampled_ns;
	}
	return ready;
}

struct d9__ready d9__ready_of(const struct d9__analysis *a)
{
	struct shortage s = measure(a);

	return ready_of(a, &s);
}

uint64_t d9__ready_longest_ns(const struct d9__analysis *a)
{
	uint64_t longest_ns = 0;

	for (size_t i = 0; i < a->timeline.n; i++)
		if (a->timeline.items[i]->waits.max > longest_ns)
			longest_ns = a->timeline.items[i]->waits.max;
	for (size_t i = 0; i < a->stalls.n; i++)
		if (a->stalls.items[i].stall->run_queue_ns > longest_ns)
			longest_ns = a->stalls.items[i].stall->run_queue_ns;
	return longest_ns;
}

/* Whether the limit of its cgroup made for most of it. */
static bool is_limit(const struct d9__analysis *a)
{
	return growth(a, D9__MACHINE_THROTTLED_NS) >= SHORT_NS &&
	       2 * growth(a, D9__MACHINE_THROTTLED_NS) >= a->machine.ready_ns;
}

/* Where most of the CPU time went that loops lacked: to other programs, if nothing else is known. */
enum taker { BY_LIMIT, BY_NEIGHBOUR, BY_ITSELF, BY_HOST, BY_OTHERS };

/* The share of the loops' time in which they were ready without a CPU, 0 to 1. */
static double ready_share(const struct shortage *s)
{
	uint64_t all_ns = s->ready_ns + s->left_ns;

	return all_ns ? (double)s->ready_ns / (double)all_ns : 0;
}

/*
 * Whether the program bound a thread of its own to the CPUs of a loop, where it has others: most of
 * what the loop waited for one it waited behind that, or as much as a sleep in callbacks would be
 * told for, however much other programs took beside it.
 */
static bool is_neighbour(const struct shortage *s)
{
	return s->neighbour && s->neighbour->cpus.n < s->cpus &&
	       (2 * s->own_part >= 1 || s->own_part * ready_share(s) >= NEIGHBOUR_SHARE);
}

static enum taker taker_of(const struct d9__analysis *a, const struct shortage *s)
{
	if (is_limit(a))
		return BY_LIMIT;
	if (is_neighbour(s))
		return BY_NEIGHBOUR;
	if (is_own(s) || 2 * s->own_part >= 1)
		return BY_ITSELF;
	return 2 * growth(a, D9__MACHINE_STEAL_NS) > s->wait_ns + s->taken_ns ? BY_HOST : BY_OTHERS;
}

static const char *advice_of(enum taker taker)
{
	switch (taker) {
	case BY_LIMIT:
		return "Raise the CPU limit of its cgroup (container, service), or let fewer threads compute at "
		       "once: all stop when it is used up. Times of callbacks in this report are longer than they "
		       "would be.";
	case BY_NEIGHBOUR:
		return "Bind the loop's thread and the other one to different CPUs, or bind "
		       "neither (sched_setaffinity(), pthread_setaffinity_np(), taskset): the "
		       "kernel then runs the loop where a CPU is free. A thread inherits the CPUs "
		       "of the one that makes it.";
	case BY_ITSELF:
		return "Let fewer of the process's own threads compute at once, give the loops' threads a higher "
		       "priority, or more CPUs to the process: they want more than it has.";
	case BY_HOST:
		return "Give this virtual machine a larger share of its host, or fewer neighbours: the host runs "
		       "others on its CPUs. Times of callbacks in this report are longer than they would be.";
	default:
		return "Run fewer programs on this machine, give it more CPUs, or this one a "
		       "higher priority: others had "
		       "the CPUs. Times of callbacks in this report are longer than they would be.";
	}
}

static enum d9__severity severity_of(const struct d9__analysis *a, const struct shortage *s)
{
	uint64_t lost_ns = s->wait_ns + s->taken_ns + growth(a, D9__MACHINE_THROTTLED_NS);

	if (s->left_ns >= LEAST_NS)
		return ready_share(s) >= WARNING_SHARE &&
				       WARNING_PART * s->ready_ns >= s->ready_ns + s->awake_ns
			       ? D9__WARNING
			       : D9__INFO;
	if (s->max_ns > 10 * D9__MS_NS && s->waits >= SHORT_WAITS && 100 * s->waits >= s->measured)
		return D9__WARNING;
	return lost_ns >= WARNING_NS && WARNING_PART * lost_ns >= s->busy_ns ? D9__WARNING : D9__INFO;
}

static void add_counters(struct d9__findings *findings, struct d9__finding *finding)
{
	const struct d9__analysis *a = findings->analysis;

	if (growth(a, D9__MACHINE_THROTTLED))
		d9__finding_add_evidence(findings, finding, NULL, "its cgroup's CPU limit stopped it %s times, for %s",
					 d9__units_count(growth(a, D9__MACHINE_THROTTLED)).text,
					 d9__units_ns(growth(a, D9__MACHINE_THROTTLED_NS)).text);
	if (growth(a, D9__MACHINE_STEAL_NS) >= 10 * D9__MS_NS)
		d9__finding_add_evidence(findings, finding, NULL,
					 "the host ran other machines for %s on the CPUs of this one",
					 d9__units_ns(growth(a, D9__MACHINE_STEAL_NS)).text);
	if (growth(a, D9__MACHINE_RUNQUEUE_NS) >= 10 * D9__MS_NS)
		d9__finding_add_evidence(findings, finding, NULL,
					 "all threads of the process together waited on the run queue for %s",
					 d9__units_ns(growth(a, D9__MACHINE_RUNQUEUE_NS)).text);
	if (a->usage.growth[D9__USAGE_INVOLUNTARY_SWITCHES])
		d9__finding_add_evidence(findings, finding, NULL, "the process was preempted %s times",
					 d9__units_count(a->usage.growth[D9__USAGE_INVOLUNTARY_SWITCHES]).text);
}

/* "indexer (tid 12)" */
static const char *name_neighbour(const struct d9__neighbour *neighbour, char *buf, size_t size)
{
	snprintf(buf, size, "%s (tid %u)",
		 neighbour->name[0] ? neighbour->name : "a thread without a name", neighbour->tid);
	return buf;
}

/* "97 % of that behind the program's thread indexer (tid 12)" */
static const char *describe_neighbours(const struct d9__analysis *a, const struct shortage *s,
				       char *buf, size_t size)
{
	char name[64];

	snprintf(buf, size, "%.0f %% of that behind the program's thread %s%s", 100 * s->own_part,
		 name_neighbour(s->neighbour, name, sizeof(name)),
		 a->bound.n_neighbours > 1 ? " and others" : "");
	return buf;
}

static void add_neighbours(struct d9__findings *findings, struct d9__finding *finding)
{
	const struct d9__bound *bound = &findings->analysis->bound;

	for (size_t i = 0; i < bound->n_neighbours; i++) {
		const struct d9__neighbour *neighbour = &bound->neighbours[i];
		char name[64];

		if (neighbour->ns >= D9__MS_NS)
			d9__finding_add_evidence(
				findings, finding, NULL,
				"%s may run on CPU %s as the loop's thread (tid %u), "
				"which waited %s behind it",
				name_neighbour(neighbour, name, sizeof(name)), neighbour->cpus.text,
				neighbour->loop_tid, d9__units_ns(neighbour->ns).text);
	}
}

static void add_shortage(struct d9__findings *findings, struct d9__finding *finding,
			 const struct shortage *s, enum taker taker)
{
	static const char *const words[] = {
		[BY_LIMIT] = "it was allowed no more",
		[BY_NEIGHBOUR] = "its own threads compete for those of the loop",
		[BY_ITSELF] = "its own threads compete",
		[BY_HOST] = "it was others that had the rest",
		[BY_OTHERS] = "it was others that had the rest",
	};
	struct d9__shown_name name = d9__finding_name(s->most_taken);

	if (s->max_ns >= D9__MS_NS)
		d9__finding_add_evidence(findings, finding,
					 &(struct d9__evidence){ .at_ns = s->max_at_ns,
								 .duration_ns = s->max_ns,
								 .has_worker = true,
								 .worker = s->max_worker },
					 "waited %s for a CPU after it woke; %s of %s measured wake-ups waited over 1 ms",
					 d9__units_ns(s->max_ns).text, d9__units_count(s->waits).text,
					 d9__units_count(s->measured).text);
	if (s->taken_ns >= D9__MS_NS)
		d9__finding_add_evidence(findings, finding,
					 &(struct d9__evidence){ .callback = s->most_taken },
					 "callbacks were preempted for %s in all, %.*s most (%s)",
					 d9__units_ns(s->taken_ns).text, name.len, name.text,
					 d9__units_ns(s->most_taken->taken_ns).text);
	if (s->cpus > 0 && s->cores > 0)
		d9__finding_add_evidence(findings, finding, NULL,
					 "the process kept %.2f CPUs busy on average, of the %.0f "
					 "that it may use: %s",
					 s->cores, s->cpus, words[taker]);
	if (s->neighbour && (taker == BY_NEIGHBOUR || taker == BY_ITSELF))
		add_neighbours(findings, finding);
}

/* Name those that had the CPU, as far as that is known. */
static void add_takers(struct d9__findings *findings, struct d9__finding *finding, const struct shortage *s)
{
	struct d9__ready ready = ready_of(findings->analysis, s);
	const struct {
		uint64_t ns;
		const char *what;
	} takers[] = {
		{ ready.limit_ns, "in which its cgroup's CPU limit held it" },
		{ ready.host_ns, "at most in which the host ran other machines" },
		{ ready.own_ns, "in which other threads of the process had the CPUs" },
		{ ready.others_ns, "in which other programs had them" },
		{ ready.unknown_ns, "of which that is not known" },
	};
	char text[400] = "";
	size_t used = 0;

	if (ready.limit_ns + ready.host_ns < D9__MS_NS)
		return;
	for (size_t i = 0; i < sizeof(takers) / sizeof(takers[0]) && used < sizeof(text); i++)
		if (takers[i].ns >= D9__MS_NS)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s %s", used ? ", " : "",
						 d9__units_ns(takers[i].ns).text, takers[i].what);
	d9__finding_add_evidence(findings, finding, NULL, "ready without a CPU for %s: %s",
				 d9__units_ns(ready.ns).text, text);
}

/* "ready threads waited 20 ms for one, up to 5 ms, and running callbacks were preempted for 7 ms", or one half. */
static const char *describe_shortage(const struct shortage *s, char *buf, size_t size)
{
	char waits[256] = "", taken[256] = "";

	if (s->wait_ns)
		snprintf(waits, sizeof(waits), "ready threads waited %s for one, up to %s",
			 d9__units_ns(s->wait_ns).text, d9__units_ns(s->max_ns).text);
	if (s->taken_ns || !s->wait_ns)
		snprintf(taken, sizeof(taken), "running callbacks were preempted for %s",
			 d9__units_ns(s->taken_ns).text);
	snprintf(buf, size, "%s%s%s", waits, waits[0] && taken[0] ? ", and " : "", taken);
	return buf;
}

/* "loops were ready without one for 21 % of the time, as other programs had it": how much, and why.
 */
static const char *describe_ready(const struct d9__analysis *a, const struct shortage *s,
				  enum taker taker, char *buf, size_t size)
{
	static const char *const causes[] = { [BY_LIMIT] = "",
					      [BY_NEIGHBOUR] = "",
					      [BY_ITSELF] = "",
					      [BY_HOST] = ", as the host ran other machines",
					      [BY_OTHERS] = ", as other programs had it" };
	char figure[128], behind[128];

	if (taker == BY_LIMIT) {
		snprintf(buf, size, "stopped for %s, %s times",
			 d9__units_ns(growth(a, D9__MACHINE_THROTTLED_NS)).text,
			 d9__units_count(growth(a, D9__MACHINE_THROTTLED)).text);
		return buf;
	}
	if (ready_share(s) >= WARNING_SHARE)
		snprintf(figure, sizeof(figure), "%.0f %% of the time", 100 * ready_share(s));
	else
		snprintf(figure, sizeof(figure), "%s", d9__units_ns(ready_of(a, s).ns).text);
	snprintf(buf, size, "loops were ready without one for %s%s", figure, causes[taker]);
	if (taker == BY_NEIGHBOUR)
		snprintf(buf, size, "loops were ready without one for %s, %s", figure,
			 describe_neighbours(a, s, behind, sizeof(behind)));
	return buf;
}

/* The first screen has the loop's thread, and which one has its CPU. */
static void name_loop(struct d9__findings *findings, struct d9__finding *finding,
		      const struct shortage *s)
{
	const struct d9__analysis *a = findings->analysis;
	const struct d9__neighbour *neighbour = s->neighbour;
	const char *loop = NULL;
	char behind[128];

	for (size_t i = 0; i < a->timeline.n && !loop; i++)
		if (a->timeline.items[i]->tid == neighbour->loop_tid)
			loop = d9__analysis_worker_name(a, a->timeline.items[i]);
	if (loop)
		d9__finding_set_name(findings, finding, loop, strlen(loop));
	d9__finding_set_brief(findings, finding, "waits for CPU %s for %.0f %% of the time, %s",
			      neighbour->cpus.text, 100 * ready_share(s),
			      describe_neighbours(a, s, behind, sizeof(behind)));
}

void d9__check_short_of_cpu(struct d9__findings *findings)
{
	const struct d9__analysis *a = findings->analysis;
	struct shortage s = measure(a);
	uint64_t throttled_ns = growth(a, D9__MACHINE_THROTTLED_NS);
	struct d9__finding *finding;
	enum taker taker;
	char text[512], ready[256];

	for (size_t i = 0; i < a->timeline.n; i++) {
		s.ready_ns += findings->owners[i].taken_ns;
		s.awake_ns += findings->owners[i].awake_ns;
		s.left_ns += findings->owners[i].left_ns;
	}
	taker = taker_of(a, &s);
	if (s.waits < SHORT_WAITS && s.taken_ns < SHORT_NS && throttled_ns < SHORT_NS &&
	    (s.ready_ns + s.left_ns < LEAST_NS || ready_share(&s) < WARNING_SHARE))
		return;
	finding = d9__finding_add(
		findings, severity_of(a, &s), s.wait_ns + s.taken_ns + throttled_ns,
		advice_of(taker), "%s: %s; %s.",
		taker == BY_LIMIT	? "The limit of its cgroup left the process short of CPU"
		: taker == BY_NEIGHBOUR ? "A loop shares its CPU with other threads of the program"
		: taker == BY_ITSELF	? "The process has more work than CPUs"
					: "The machine was short of CPU",
		describe_ready(a, &s, taker, ready, sizeof(ready)),
		describe_shortage(&s, text, sizeof(text)));
	if (taker == BY_NEIGHBOUR)
		name_loop(findings, finding, &s);
	else if (taker == BY_ITSELF)
		d9__finding_set_brief(findings, finding, "its own threads compete for %.0f CPUs", s.cpus);
	else
		d9__finding_set_machine(findings, finding, "short of CPU%s: %s",
					taker == BY_LIMIT ? " by its cgroup's limit" : "", ready);
	add_shortage(findings, finding, &s, taker);
	add_takers(findings, finding, &s);
	add_counters(findings, finding);
}

/* Time awake without a CPU is told from this part of the loop's on, one in so many. */
#define OFF_PART 100

static bool is_off_cpu(const struct d9__worker *worker)
{
	uint64_t off_ns = d9__u64_minus(worker->active_ns, worker->cpu_ns);

	return worker->cpu_seen && worker->active_periods > 10 &&
	       10 * worker->starved_periods > worker->active_periods &&
	       OFF_PART * off_ns >= d9__loop_time_total_ns(&worker->loop_time);
}

/*
 * Without figures of the kernel a thread that was awake and not on the CPU either slept in a callback or had to
 * wait: a finding of its own only where neither is told.
 */
void d9__check_cpu_contention(struct d9__findings *findings)
{
	const struct d9__timeline *timeline = &findings->analysis->timeline;

	if (findings->analysis->off_cpu_seen || d9__finding_told(findings, "short-of-cpu"))
		return;
	for (size_t i = 0; i < timeline->n; i++) {
		const struct d9__worker *worker = timeline->items[i];
		struct d9__finding *finding;

		if (!is_off_cpu(worker))
			continue;
		finding = d9__finding_add(
			findings, D9__WARNING, worker->starved_periods,
			"Look for callbacks that block (see long callbacks that waited), or for other threads that "
			"compete for the CPU: the trace does not tell which.",
			"Worker %llu was awake but off the CPU: %s of %s awake periods lasted over 1 ms "
			"and used less than half of it.",
			(unsigned long long)worker->id,
			d9__units_count(worker->starved_periods).text,
			d9__units_count(worker->active_periods).text);
		d9__finding_set_brief(findings, finding, "worker %llu was awake but off the CPU",
				      (unsigned long long)worker->id);
		d9__finding_add_evidence(findings, finding,
					 &(struct d9__evidence){ .has_worker = true,
								 .worker = worker->id },
					 "awake for %s, on the CPU for %s of it",
					 d9__units_ns(worker->active_ns).text,
					 d9__units_ns(worker->cpu_ns).text);
	}
}

/* Critical from here on. */
#define STOPPED_CRITICAL_NS D9__SECOND_NS

static void stopped(struct d9__findings *findings)
{
	const struct d9__analysis *a = findings->analysis;
	const char *times = a->stopped.n == 1 ? "" : d9__units_count(a->stopped.n).text;
	struct d9__finding *finding;

	finding = d9__finding_add(
		findings, a->stopped.ns >= STOPPED_CRITICAL_NS ? D9__CRITICAL : D9__WARNING,
		a->stopped.ns,
		"Look outside of the program for who stopped it then: kill -STOP, a debugger, "
		"docker pause, a "
		"frozen cgroup, a paused virtual machine. No callback is to blame for what was "
		"late.",
		"The whole process stood still for %s%s%s%s: no thread of it ran.",
		d9__units_ns(a->stopped.ns).text, *times ? ", " : "", times,
		*times ? " times" : "");
	d9__finding_set_name(findings, finding, "process", strlen("process"));
	d9__finding_set_brief(findings, finding, "was stopped from outside for %s%s%s%s",
			      d9__units_ns(a->stopped.ns).text, *times ? ", " : "", times,
			      *times ? " times" : "");
	d9__finding_add_evidence(findings, finding,
				 &(struct d9__evidence) { .at_ns = a->stopped.longest_at_ns,
							  .duration_ns = a->stopped.longest_ns },
				 "the longest; what fell into it is in no callback's account");
}

static void suspended(struct d9__findings *findings)
{
	const struct d9__analysis *a = findings->analysis;
	struct d9__finding *finding;

	finding = d9__finding_add(
		findings, D9__INFO, a->stopped.suspended_ns,
		"Nothing here counts that time: clocks that measure it stand still meanwhile.",
		"The machine was suspended for %s.", d9__units_ns(a->stopped.suspended_ns).text);
	d9__finding_set_brief(findings, finding, "the machine was suspended for %s",
			      d9__units_ns(a->stopped.suspended_ns).text);
}

void d9__check_stopped(struct d9__findings *findings)
{
	if (findings->analysis->stopped.n)
		stopped(findings);
	if (findings->analysis->stopped.suspended_ns)
		suspended(findings);
}
