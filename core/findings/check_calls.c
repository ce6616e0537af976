/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of calls: long and blocked ones. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "findings/advice.h"
#include "findings/check_parts.h"
#include "findings/hold.h"
#include "findings/owners.h"
#include "text/units.h"

/* Examples under a finding. */
#define EXAMPLES 3

#define BRIEF_MAX 55
/* With a share of the time. */
#define SHARE_BRIEF_MAX 58

/* Long calls of a callback that the kernel may have made so: at most one in so many, and so long. */
#define RARE_CALLS       200
#define PREEMPTED_MAX_NS (20 * D9__MS_NS)

/* Calls that count as a program's start take so long at most. */
#define START_NS (500 * D9__MS_NS)

/* A page that comes from the disk is waited for so long at most. */
#define FAULT_NS (10 * D9__MS_NS)

/*
 * A callback that sleeps for so large a share of its loop's time is told, or for one part in so
 * many of the time awake if that is any of the whole; from the third share on it is critical.  Of
 * less time no share is told.
 */
#define SLEEPS_SHARE	      0.1
#define SLEEPS_AWAKE_PART     4
#define SLEEPS_LEAST_SHARE    0.01
#define SLEEPS_CRITICAL_SHARE 0.5
#define SHARE_LEAST_NS	      D9__SECOND_NS

/* Long sleeps are few up to so many, or if they are one in so many calls: a busy machine may have
 * made them. */
#define FEW_SLEEPS 10
#define FEW_PART   20

/* A loop stands in a lock if it has one in so many parts of all the waits for it. */
#define CONVOY_PART 20

/* ---- long callback ---- */

static const struct d9__worker *worker_of(const struct d9__findings *findings, uint64_t id)
{
	return d9__table_find(&findings->analysis->timeline.by_id, id);
}

/* From here on a call is long, as |stall| is, a call of |callback| or one that it lies in. */
static uint64_t limit_of(const struct d9__findings *findings, const struct d9__callback *callback,
			 const struct d9__stall *stall)
{
	return d9__hold_limit_ns(findings, worker_of(findings, stall->worker), callback);
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

/* " (the library's own callback)", " (called by D-Bus method call)", or "" for the program's own. */
static const char *describe_caller(const struct d9__callback *callback, char *buf, size_t size)
{
	size_t len;
	const char *name = d9__callback_name(callback, &len);

	if (callback->inner)
		snprintf(buf, size, " (called by %.*s)", d9__precision(len), name);
	else
		snprintf(buf, size, "%s", callback->internal ? " (the library's own callback)" : "");
	return buf;
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
		struct d9__shown_name name = d9__finding_name(victim->callback);

		used += (size_t)snprintf(buf + used, size - used, "%s %.*s %s%s", i ? "," : "",
					 name.len, name.text, d9__units_ns(victim->delay_ns).text,
					 victim->timer ? " (timer)" : "");
	}
	if (stall->waited > EXAMPLES && used < size)
		snprintf(buf + used, size - used, ", ...");
}

/* " in 23 calls" where the library made so many in the one call of |stall|, or nothing. */
static void describe_runs(const struct d9__stall *stall, char *buf, size_t size)
{
	buf[0] = '\0';
	if (stall->culprit_runs > 1)
		snprintf(buf, size, " in %s calls", d9__units_count(stall->culprit_runs).text);
}

/* ", called from bufferevent read, which took 41 ms", ", of which 40 ms in the span parse", ... */
static void describe_place(const struct d9__stall *stall, char *buf, size_t size)
{
	struct d9__shown_name outer = d9__finding_name(stall->callback);
	char runs[D9__UNITS_MAX + 16];

	buf[0] = '\0';
	describe_runs(stall, runs, sizeof(runs));
	if (stall->culprit != stall->callback)
		snprintf(buf, size, "%s, called from %.*s, which took %s", runs, outer.len,
			 outer.text, d9__units_ns(stall->total_ns).text);
	else if (stall->span)
		snprintf(buf, size, ", of which %s in the span %s",
			 d9__units_ns(stall->span_ns).text, stall->span);
}

/* Of what |stall| took, how much was none of its own: " (3 ms preempted)"; where that is not known,
 * it says so. */
static void describe_rest(const struct d9__stall *stall, char *buf, size_t size)
{
	uint64_t rest_ns = stall->culprit_ns - d9__stall_own_ns(stall);

	d9__finding_taken(rest_ns, buf, size);
	if (buf[0] && stall->unread_ns)
		snprintf(buf, size, " (of %s it is not known whether it had a CPU)",
			 d9__units_ns(rest_ns).text);
}

/* The call of |callback| that had not ended when the trace did; NULL: none of its longest. */
static const struct d9__stall *open_call(const struct d9__callback *callback)
{
	for (size_t i = 0; i < callback->n_stalls; i++)
		if (callback->stalls[i].stall->open)
			return callback->stalls[i].stall;
	return NULL;
}

/* Tell of the call of |callback| that had not ended; if it is |told|, which the finding is about,
 * in front of all. */
static void tell_open(struct d9__findings *findings, struct d9__finding *finding,
		      const struct d9__callback *callback, const struct d9__stall *told,
		      uint64_t ns, const char *how)
{
	const struct d9__stall *stall = open_call(callback);

	if (!finding || !stall)
		return;
	d9__finding_append(findings, finding, "%s had not ended after %s, when the trace did.",
			   stall == told ? "That call" : "A call of it",
			   d9__units_ns(stall->end_ns - stall->start_ns).text);
	if (stall == told)
		d9__finding_set_brief(findings, finding, "open at the end, %.40s for %s at least",
				      how, d9__units_ns(ns).text);
}

/*
 * " in 23 calls" and ", 3 of 40 calls": |n| calls of |callback| are as long as |stall|.  Where some
 * of them are several in a row that its library made in one of its own, ", 3 times".
 */
struct times {
	uint64_t n;
	char runs[D9__UNITS_MAX + 16], brief[2 * D9__UNITS_MAX + 32], whole[2 * D9__UNITS_MAX + 64];
};

static void describe_times(const struct d9__callback *callback, const struct d9__stall *stall,
			   uint64_t n, struct times *out)
{
	char often[D9__UNITS_MAX + 16];

	out->n = n;
	describe_runs(stall, out->runs, sizeof(out->runs));
	if (callback->bursts) {
		snprintf(often, sizeof(often), "%s times", d9__units_count(n).text);
		snprintf(out->brief, sizeof(out->brief), ", %s", n > 1 ? often : "once");
		snprintf(out->whole, sizeof(out->whole), "%s a call, or several in a row,",
			 n > 1 ? often : "once");
	} else {
		snprintf(out->brief, sizeof(out->brief), ", %s of %s calls",
			 d9__units_count(n).text, d9__units_count(callback->calls).text);
		snprintf(out->whole, sizeof(out->whole), "%s of %s calls", d9__units_count(n).text,
			 d9__units_count(callback->calls).text);
	}
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
	describe_rest(stall, taken, sizeof(taken));
	if (stall->on_samples + stall->off_samples)
		snprintf(samples, sizeof(samples), ", %u on-CPU and %u off-CPU samples",
			 stall->on_samples, stall->off_samples);
	d9__finding_add_evidence(findings, finding, &evidence, "ran for %s%s%s%s%s%s%s",
				 d9__units_ns(stall->culprit_ns).text,
				 stall->open ? " at least, and had not ended" : "", taken,
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
			    const struct d9__callback *callback, uint64_t calls)
{
	const struct d9__resource_usage *usage = &findings->analysis->usage;

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

	/* It is asked now and then: a short trace holds no difference. */
	if (usage->growth[D9__USAGE_INVOLUNTARY_SWITCHES] == 0)
		return;
	d9__finding_add_evidence(findings, finding, NULL,
				 "the kernel took the CPU from the process %s times in this trace",
				 d9__units_count(usage->growth[D9__USAGE_INVOLUNTARY_SWITCHES]).text);
}

/* |calls| of |callback| are as long as |stall|, which held its loop for |ns|. */
static enum d9__severity long_severity(const struct d9__findings *findings,
				       const struct d9__callback *callback,
				       const struct d9__stall *stall, uint64_t ns, uint64_t calls,
				       bool waited)
{
	return d9__hold_severity(findings,
				 &(struct d9__hold) { .worker = worker_of(findings, stall->worker),
						      .ns = ns,
						      .n = calls,
						      .behind_ns = callback->behind_ns,
						      .waited = waited });
}

/*
 * Whether all calls of |callback| over |limit| came while the program started, and none was a pause
 * that a client notices then: that is information.
 */
static bool is_start(const struct d9__findings *findings, const struct d9__callback *callback, uint64_t limit)
{
	bool any = false;

	if (d9__histogram_above(&callback->own, limit) > callback->n_stalls)
		return false;
	for (size_t i = 0; i < callback->n_stalls; i++) {
		const struct d9__stall *stall = callback->stalls[i].stall;
		uint64_t ns = callback->stalls[i].ns;

		any |= ns > limit;
		if (ns > limit &&
		    (ns > START_NS || !d9__analysis_is_start(findings->analysis, stall->start_ns, stall->start_ns + ns,
							     stall->waited_max_ns >= D9__WAIT_EXPLAIN_NS)))
			return false;
	}
	return any;
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

/* ", every 1.05 s", ", while the program started", or nothing. */
static void describe_when(const struct d9__findings *findings, const struct d9__callback *callback, bool starts,
			  char *buf, size_t size)
{
	if (starts)
		snprintf(buf, size, ", while the program started");
	else
		d9__finding_rhythm(findings, callback, buf, size);
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
	if (stall->run_queue_ns > D9__MS_NS)
		snprintf(queue, sizeof(queue), ", and waited on the run queue for %s",
			 d9__units_ns(stall->run_queue_ns).text);
	d9__finding_add_evidence(
		findings, finding, &evidence, "slept for %s of %s%s%s%s%s",
		d9__units_ns(d9__stall_slept_ns(stall)).text, d9__units_ns(stall->culprit_ns).text,
		stall->open ? " at least, and had not ended" : "", queue, place, victims);
}

/* The call that slept longest; NULL if none slept for longer than a call may take. */
static const struct d9__stall *most_blocked(const struct d9__findings *findings,
					    const struct d9__callback *callback)
{
	const struct d9__stall *most = NULL;

	for (size_t i = 0; i < callback->n_stalls; i++) {
		const struct d9__stall *stall = callback->stalls[i].stall;

		if (d9__stall_is_blocked(stall) &&
		    d9__stall_slept_ns(stall) > limit_of(findings, callback, stall) &&
		    (!most || d9__stall_slept_ns(stall) > d9__stall_slept_ns(most)))
			most = stall;
	}
	return most;
}

/* "in fsync(7) at db_commit (svc.c:53)", "for a lock at use_index (svc.c:45), held by worker 2 in flush_index (svc.c:23)," */
static void describe_blocked(const struct d9__finding_blocked *blocked, char *buf, size_t size)
{
	snprintf(buf, size, "%s %s%s%s%s", blocked->lock ? "for" : "in", blocked->place,
		 blocked->holder[0] ? ", held by " : "", blocked->holder, blocked->holder[0] ? "," : "");
}

/* ", 87 % of the time in all", where |callback| has much of its loop's time; else nothing. */
static void describe_share(const struct d9__findings *findings, const struct d9__callback *callback,
			   bool in_all, char *buf, size_t size)
{
	double share = d9__owners_share_of(findings->analysis, findings->owners, callback);

	buf[0] = '\0';
	if (share >= D9__TOLD_SHARE)
		snprintf(buf, size, ", %.0f %% of the time%s", 100 * share,
			 in_all ? " in all" : "");
}

/*
 * |text|, which |calls| of |callback| did; and how much of its loop's time it has: few long calls
 * would belie that, and give way to it.
 */
static void set_counted_brief(struct d9__findings *findings, struct d9__finding *finding,
			      const struct d9__callback *callback, const struct times *times,
			      const char *text)
{
	bool few = 2 * times->n < callback->calls;
	char share[64], both[320];

	describe_share(findings, callback, false, share, sizeof(share));
	snprintf(both, sizeof(both), "%s%s", times->brief, share);
	if (share[0] && (few || strlen(text) + strlen(both) > SHARE_BRIEF_MAX))
		describe_share(findings, callback, few, both, sizeof(both));
	else if (!share[0] && strlen(text) + strlen(times->brief) > BRIEF_MAX)
		both[0] = '\0';
	d9__finding_set_brief(findings, finding, "%s%s", text, both);
}

/* With the function that holds the lock, or else calls, where that leaves it short. */
static void set_blocked_brief(struct d9__findings *findings, struct d9__finding *finding,
			      const struct d9__callback *callback, const struct times *times,
			      const struct d9__finding_blocked *blocked, uint64_t ns)
{
	bool held = blocked->held_in[0];
	const char *in = held ? blocked->held_in : blocked->function;
	char begin[384], text[640], share[64];

	describe_share(findings, callback, true, share, sizeof(share));
	snprintf(begin, sizeof(begin), "%s %s%s%s %s %s", blocked->lock ? "waits" : "blocks",
		 d9__units_ns(ns).text, times->runs, times->runs[0] ? "," : "",
		 blocked->lock ? "for" : "in", blocked->what);
	snprintf(text, sizeof(text), "%s%s%s", begin, held ? " held in " : " at ", in);
	/* The call's place stands below; the holder's only here. */
	if (!in[0] || strlen(text) > BRIEF_MAX ||
	    (!held && share[0] && strlen(text) + strlen(share) > SHARE_BRIEF_MAX))
		snprintf(text, sizeof(text), "%s", begin);
	set_counted_brief(findings, finding, callback, times, text);
}

/*
 * Whether the calls of |callback| over |limit| computed for longer than they slept: then they are told as long ones, and
 * what they sleep in stands there.
 */
static bool computes_more(const struct d9__callback *callback, uint64_t limit)
{
	uint64_t own_ns = 0, blocked_ns = 0;

	for (size_t i = 0; i < callback->n_stalls; i++) {
		const struct d9__stall *stall = callback->stalls[i].stall;

		if (callback->stalls[i].ns <= limit)
			continue;
		own_ns += d9__stall_own_ns(stall);
		blocked_ns += d9__stall_slept_ns(stall);
	}
	return own_ns > 2 * blocked_ns;
}

/*
 * Whether few calls sleep for over |limit|, all others for less together, and the machine may have
 * made them: whom they wait for had no CPU, as threads here had none, and for much longer in all.
 */
static bool looks_starved(const struct d9__findings *findings, const struct d9__callback *callback,
			  const struct d9__stall *most, uint64_t limit, uint64_t calls,
			  const char *place)
{
	bool few = 2 * calls <= callback->calls &&
		   (calls <= FEW_SLEEPS || FEW_PART * calls <= callback->calls);

	return few &&
	       2 * d9__callback_slept_below_ns(callback, limit) <= callback->time.blocked_ns &&
	       d9__finding_looks_starved(findings, most, place) &&
	       2 * callback->blocked.sum <= d9__ready_of(findings->analysis).ns;
}

static void add_starved(struct d9__findings *findings, struct d9__finding *finding)
{
	d9__finding_add_evidence(findings, finding, NULL,
				 "threads of its loops were ready without a CPU for up to %s: whom it waited for may have "
				 "been, too", d9__units_ns(d9__ready_longest_ns(findings->analysis)).text);
}

/* Where no call was told that blocks: whether pages that had to come from the disk explain what |stall| slept. */
static bool slept_for_pages(const struct d9__stall *stall)
{
	return d9__stall_slept_ns(stall) <= stall->time.major_faults * FAULT_NS;
}

/* The worker of which |callback| slept the largest part away. */
struct sleeping {
	const struct d9__worker *worker; /* NULL: none to speak of */
	uint64_t ns, calls;
	double share; /* of what the machine left to its loop */
};

/*
 * Whether a loop sleeps for so large a part of its time in |callback| that it matters however short
 * each call is: by what the machine left to it, or by the time that it was awake at all.
 */
static struct sleeping find_sleeping(const struct d9__findings *findings,
				     const struct d9__callback *callback)
{
	struct sleeping most = { .worker = NULL };

	for (size_t i = 0; i < callback->n_on && i < findings->analysis->timeline.n; i++) {
		const struct d9__callback_on *on = callback->on[i];
		const struct d9__owners *owners = &findings->owners[i];
		uint64_t ns = on ? on->time.blocked_ns : 0;
		double share = d9__owners_share(owners, ns);

		if (owners->left_ns < SHARE_LEAST_NS || share <= most.share)
			continue;
		if (share < SLEEPS_SHARE &&
		    (share < SLEEPS_LEAST_SHARE || SLEEPS_AWAKE_PART * ns < owners->awake_ns))
			continue;
		most = (struct sleeping) { findings->analysis->timeline.items[i], ns, on->calls,
					   share };
	}
	return most;
}

/* A callback that has |severity| by its longest calls has it by all of them, too. */
static enum d9__severity sleeping_severity(const struct sleeping *sleeping,
					   enum d9__severity severity)
{
	if (sleeping->share >= SLEEPS_CRITICAL_SHARE)
		return D9__CRITICAL;
	return sleeping->worker && severity > D9__WARNING ? D9__WARNING : severity;
}

/* No call slept for long, and all of them together did. */
static void sleeping_callback(struct d9__findings *findings, const struct d9__callback *callback,
			      const struct sleeping *sleeping)
{
	const char *asleep = callback->n_asleep ? callback->asleep[0].place : "", *in = asleep,
		   *remedy;
	struct d9__finding_blocked blocked;
	bool known = d9__finding_blocked_most(findings->analysis, callback, &blocked);
	struct d9__shown_name name = d9__finding_name(callback);
	struct d9__finding *finding;
	char caller[160], place[768] = "";
	uint64_t each_ns = sleeping->ns / sleeping->calls;

	if (known) {
		in = blocked.call;
		describe_blocked(&blocked, place, sizeof(place));
	} else if (callback->n_asleep) {
		d9__finding_asleep(asleep, place, sizeof(place));
	}
	/* Short ones are in what the longer ones, which were told, are in. */
	if (!in[0] && callback->time.told.n)
		in = callback->time.told.in[0].function;
	remedy = d9__advice_slept(findings, callback, in);
	finding = d9__finding_add(
		findings, sleeping_severity(sleeping, D9__WARNING), sleeping->ns,
		remedy ? remedy : d9__advice_sleeps(false),
		"%.*s%s sleeps for %.0f %% of worker %llu's time%s%s: %s in each of %s calls, %s "
		"in all, and the loop can run "
		"nothing else meanwhile.",
		name.len, name.text, describe_caller(callback, caller, sizeof(caller)),
		100 * sleeping->share, (unsigned long long)sleeping->worker->id,
		place[0] ? ", " : "", place, d9__units_ns(each_ns).text,
		d9__units_count(sleeping->calls).text, d9__units_ns(sleeping->ns).text);
	d9__finding_set_callback(findings, finding, callback);
	d9__finding_set_brief(findings, finding,
			      "sleeps %.0f %% of the loop's time, %s each, %s calls",
			      100 * sleeping->share, d9__units_ns(each_ns).text,
			      d9__units_count(sleeping->calls).text);
	if (!known)
		d9__finding_add_places(findings, finding, callback);
	for (size_t i = 0; i < callback->n_stalls && i < EXAMPLES; i++)
		if (d9__stall_is_blocked(callback->stalls[i].stall))
			add_blocked(findings, finding, callback->stalls[i].stall);
	d9__finding_explain(findings, finding, callback);
}

/* A lock in which several loops stand: tell which, and keep who held it, for other callbacks that
 * wait for it. */
static void add_convoy(struct d9__findings *findings, struct d9__finding *finding,
		       const struct d9__callback *callback,
		       const struct d9__finding_blocked *blocked)
{
	const struct d9__analysis *a = findings->analysis;
	char loops[256] = "";
	size_t n = 0;

	if (!finding || !blocked->lock)
		return;
	snprintf(finding->held_in, sizeof(finding->held_in), "%s", blocked->held_in);
	for (size_t i = 0; i < callback->n_on && i < a->timeline.n; i++) {
		const struct d9__callback_on *on = callback->on[i];
		size_t used = strlen(loops);

		if (!on || CONVOY_PART * on->time.blocked_ns < callback->time.blocked_ns)
			continue;
		snprintf(loops + used, sizeof(loops) - used, "%s%llu", n++ ? ", " : "",
			 (unsigned long long)a->timeline.items[i]->id);
	}
	if (n > 1)
		d9__finding_append(findings, finding, "%zu loops stand in it: workers %s.", n,
				   loops);
}

static void set_slept_brief(struct d9__findings *findings, struct d9__finding *finding,
			    const struct d9__callback *callback, const struct times *times,
			    uint64_t ns, const char *place)
{
	char text[384];

	snprintf(text, sizeof(text), "sleeps %s%s %.40s", d9__units_ns(ns).text, times->runs, place);
	set_counted_brief(findings, finding, callback, times, text);
}

static void blocked_callback(struct d9__findings *findings, const struct d9__callback *callback)
{
	const struct d9__stall *most = most_blocked(findings, callback);
	struct d9__shown_name name = d9__finding_name(callback);
	struct d9__finding *finding;
	const char *asleep = callback->n_asleep ? callback->asleep[0].place : "", *in = asleep, *remedy;
	char behind[160], rhythm[128], caller[160], place[768] = "for something";
	struct d9__finding_blocked blocked;
	struct sleeping sleeping;
	bool waited, starts, starved, pages, known = d9__finding_blocked_most(findings->analysis, callback, &blocked);
	struct times times;
	uint64_t limit, calls, slept_ns;

	sleeping = find_sleeping(findings, callback);
	if (!most && sleeping.worker)
		sleeping_callback(findings, callback, &sleeping);
	if (!most)
		return;
	/* Nothing told yet of the wait that it was in when the trace ended: a look did. */
	if (most->open && !most->time.told.n && worker_of(findings, most->worker)->sign.where[0]) {
		in = asleep = worker_of(findings, most->worker)->sign.where;
		known = false;
	}
	slept_ns = d9__stall_slept_ns(most);
	limit = limit_of(findings, callback, most);
	if (computes_more(callback, limit))
		return;
	calls = d9__histogram_above(&callback->blocked, limit);
	if (calls == 0)
		calls = 1;
	/* For what the finding names, and not for what the callback happened to be in when it was looked at. */
	if (known)
		in = blocked.call;
	pages = !known && slept_for_pages(most);
	remedy = pages ? NULL : d9__advice_slept(findings, callback, in);
	if (!remedy && !pages)
		remedy = d9__advice_slept(findings, callback, asleep);
	starts = is_start(findings, callback, limit);
	starved = !pages && looks_starved(findings, callback, most, limit, calls, in);
	if (known)
		describe_blocked(&blocked, place, sizeof(place));
	else if (pages)
		snprintf(place, sizeof(place), "for pages from the disk");
	else if (asleep[0])
		d9__finding_asleep(asleep, place, sizeof(place));
	describe_when(findings, callback, starts, rhythm, sizeof(rhythm));
	waited = describe_waiting(callback, behind, sizeof(behind));
	describe_times(callback, most, calls, &times);
	finding = d9__finding_add(
		findings,
		starts || starved
			? D9__INFO
			: sleeping_severity(&sleeping, long_severity(findings, callback, most,
								     slept_ns, calls, waited)),
		slept_ns, remedy ? remedy : d9__advice_sleeps(pages),
		"%.*s%s waited %s%s %s while worker %llu could run nothing else%s (%s"
		" did for over %s; %s in all)%s.",
		name.len, name.text, describe_caller(callback, caller, sizeof(caller)),
		d9__units_ns(slept_ns).text, times.runs, place, (unsigned long long)most->worker,
		rhythm, times.whole, d9__units_ns(limit).text,
		d9__units_ns(callback->blocked.sum).text, behind);
	d9__finding_set_callback(findings, finding, callback);
	if (known)
		set_blocked_brief(findings, finding, callback, &times, &blocked, slept_ns);
	else
		set_slept_brief(findings, finding, callback, &times, slept_ns,
				pages || asleep[0] ? place : "inside");
	if (known)
		snprintf(place, sizeof(place), "%s %s", blocked.lock ? "waiting for" : "in",
			 blocked.what);
	else if (pages || !asleep[0])
		snprintf(place, sizeof(place), "asleep");
	tell_open(findings, finding, callback, most, slept_ns, place);
	if (!known)
		d9__finding_add_places(findings, finding, callback);
	for (size_t i = 0; i < callback->n_stalls && i < EXAMPLES; i++)
		if (d9__stall_is_blocked(callback->stalls[i].stall))
			add_blocked(findings, finding, callback->stalls[i].stall);
	if (known)
		add_convoy(findings, finding, callback, &blocked);
	if (starved)
		add_starved(findings, finding);
	d9__finding_explain(findings, finding, callback);
}

void d9__check_blocked_callback(struct d9__findings *findings)
{
	const struct d9__callbacks *callbacks = &findings->analysis->callbacks;

	for (size_t i = 0; i < callbacks->n; i++)
		if (!d9__finding_is_explained(findings, callbacks->items[i]))
			blocked_callback(findings, callbacks->items[i]);
}

/* Behind |told_ns|, which the sentence tells of |stall|: the whole, if that is longer, and how much was preempted. */
static void describe_taken(const struct d9__stall *stall, uint64_t told_ns, char *buf, size_t size)
{
	char taken[96], whole[D9__UNITS_MAX + 32] = "";

	describe_rest(stall, taken, sizeof(taken));
	if (taken[0] && told_ns < stall->culprit_ns)
		snprintf(whole, sizeof(whole), " of its own, %s in all", d9__units_ns(stall->culprit_ns).text);
	snprintf(buf, size, "%s%s", whole, taken);
}

static void set_blocks_brief(struct d9__findings *findings, struct d9__finding *finding,
			     const struct d9__callback *callback, const struct times *times,
			     uint64_t ns)
{
	char text[256];

	snprintf(text, sizeof(text), "blocks the loop %s%s", d9__units_ns(ns).text, times->runs);
	set_counted_brief(findings, finding, callback, times, text);
}

static void long_callback(struct d9__findings *findings, const struct d9__callback *callback)
{
	const struct d9__stall *worst = callback->stalls[0].stall;
	uint64_t limit = limit_of(findings, callback, worst), calls, told_ns;
	struct d9__shown_name name = d9__finding_name(callback);
	struct d9__finding *finding;
	char behind[160], taken[160], rhythm[128], caller[160];
	struct times times;
	bool preempted, waited, starts;

	/* Time that the kernel took from it is the machine's. */
	if (callback->stalls[0].ns <= limit || all_blocked(callback, limit))
		return;
	calls = d9__histogram_above(&callback->own, limit);
	if (calls == 0)
		calls = 1;
	waited = describe_waiting(callback, behind, sizeof(behind));
	preempted = looks_preempted(findings, callback, calls);
	starts = is_start(findings, callback, limit);
	describe_when(findings, callback, starts, rhythm, sizeof(rhythm));
	told_ns = preempted ? worst->culprit_ns : d9__stall_own_ns(worst);
	describe_taken(worst, told_ns, taken, sizeof(taken));
	describe_times(callback, worst, calls, &times);
	finding = d9__finding_add(
		findings,
		preempted || starts ? D9__INFO
				    : long_severity(findings, callback, worst,
						    d9__stall_own_ns(worst), calls, waited),
		d9__stall_own_ns(worst),
		d9__advice_long(findings, callback, d9__stall_verdict(worst), preempted),
		"%.*s%s blocked worker %llu for %s%s%s%s (%s took over %s)%s.", name.len, name.text,
		describe_caller(callback, caller, sizeof(caller)),
		(unsigned long long)worst->worker, d9__units_ns(told_ns).text, taken, times.runs,
		rhythm, times.whole, d9__units_ns(limit).text, behind);
	d9__finding_set_callback(findings, finding, callback);
	if (preempted)
		d9__finding_set_brief(findings, finding, "took %s%s, preempted as it seems%s",
				      d9__units_ns(told_ns).text, times.runs, times.brief);
	else
		set_blocks_brief(findings, finding, callback, &times, told_ns);
	tell_open(findings, finding, callback, worst, told_ns, "computing");
	for (size_t i = 0; i < callback->n_stalls && i < EXAMPLES; i++)
		if (callback->stalls[i].ns > limit)
			add_stall(findings, finding, callback->stalls[i].stall);
	if (!preempted && d9__finding_is_in_kernel(callback))
		d9__finding_add_evidence(findings, finding, NULL,
					 "%s of the CPU time of its long calls is in the kernel, in system calls",
					 d9__units_percent((double)callback->inside.system_ns /
							   (double)(callback->inside.user_ns +
								    callback->inside.system_ns)).text);
	if (preempted)
		add_switches(findings, finding);
}

void d9__check_long_callback(struct d9__findings *findings)
{
	const struct d9__callbacks *callbacks = &findings->analysis->callbacks;

	for (size_t i = 0; i < callbacks->n; i++)
		if (callbacks->items[i]->n_stalls && !d9__finding_is_explained(findings, callbacks->items[i]))
			long_callback(findings, callbacks->items[i]);
}
