/* SPDX-License-Identifier: Apache-2.0 */
/* The check of callbacks that slept while the loop waited for them: in long calls, or in all of
 * them together. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/u64.h"
#include "findings/advice.h"
#include "findings/check_calls.h"
#include "findings/check_parts.h"
#include "findings/owners.h"
#include "text/units.h"

/* A page that comes from the disk is waited for so long at most. */
#define FAULT_NS (10 * D9__MS_NS)

/*
 * A callback that sleeps for so large a share of its loop's time is told, or for one part in so
 * many of the time awake if that is any of the whole; from the third share on it is critical.
 */
#define SLEEPS_SHARE	      0.1
#define SLEEPS_AWAKE_PART     4
#define SLEEPS_LEAST_SHARE    0.01
#define SLEEPS_CRITICAL_SHARE 0.5

/* A loop that is awake for less of its time is nearly idle: a part of that is a note. */
#define IDLE_SHARE 0.05

/*
 * Sleeps for children to start are notes up to this one, if all of them are no large share: there
 * is hardly anything else that a program could do.
 */
#define CHILD_NS (100 * D9__MS_NS)

/* Where the machine took one part in so many of the time awake, and of all of it, children had to
 * wait for a CPU, too. */
#define SHORT_AWAKE_PART 10
#define SHORT_PART	 100

/* Long sleeps are few up to so many, or if they are one in so many calls: a busy machine may have
 * made them. */
#define FEW_SLEEPS 10
#define FEW_PART   20

/* A loop stands in a lock if it has one in so many parts of all the waits for it. */
#define CONVOY_PART 20

static void add_blocked(struct d9__findings *findings, struct d9__finding *finding,
			const struct d9__stall *stall)
{
	struct d9__evidence evidence = d9__call_evidence(stall);
	char victims[512], place[512], queue[160] = "";

	d9__call_describe_victims(stall, victims, sizeof(victims));
	d9__call_describe_place(stall, place, sizeof(place));
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
		    d9__stall_slept_ns(stall) > d9__call_limit_ns(findings, callback, stall) &&
		    (!most || d9__stall_slept_ns(stall) > d9__stall_slept_ns(most)))
			most = stall;
	}
	return most;
}

/* "in fsync(7) at db_commit (svc.c:53)", "for a lock at use_index (svc.c:45), held by worker 2 in
 * flush_index (svc.c:23)," */
static void describe_blocked(const struct d9__finding_blocked *blocked, char *buf, size_t size)
{
	snprintf(buf, size, "%s %s%s%s%s", blocked->lock ? "for" : "in", blocked->place,
		 blocked->holder[0] ? ", held by " : "", blocked->holder,
		 blocked->holder[0] ? "," : "");
}

/* With the function that holds the lock, or else calls, where that leaves it short. */
static void set_blocked_brief(struct d9__findings *findings, struct d9__finding *finding,
			      const struct d9__callback *callback,
			      const struct d9__call_times *times,
			      const struct d9__finding_blocked *blocked, uint64_t ns)
{
	bool held = blocked->held_in[0];
	const char *in = held ? blocked->held_in : blocked->function;
	char begin[384], text[640], share[64];

	d9__call_describe_share(findings, callback, true, share, sizeof(share));
	snprintf(begin, sizeof(begin), "%s %s%s%s %s %s", blocked->lock ? "waits" : "blocks",
		 d9__units_ns(ns).text, times->runs, times->runs[0] ? "," : "",
		 blocked->lock ? "for" : "in", blocked->what);
	snprintf(text, sizeof(text), "%s%s%s", begin, held ? " held in " : " at ", in);
	/* The call's place stands below; the holder's only here. */
	if (!in[0] || strlen(text) > D9__CALL_BRIEF_MAX ||
	    (!held && share[0] && strlen(text) + strlen(share) > D9__CALL_SHARE_BRIEF_MAX))
		snprintf(text, sizeof(text), "%s", begin);
	d9__call_set_counted_brief(findings, finding, callback, times, text);
}

/*
 * Whether the calls of |callback| over |limit| computed for longer than they slept: then they are
 * told as long ones, and what they sleep in stands there.
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
 * Whether few calls sleep for over |limit|, all others of the |all_ns| for less together, and the
 * machine may have made them: whom they wait for had no CPU, as threads here had none, and for much
 * longer in all.
 */
static bool looks_starved(const struct d9__findings *findings, const struct d9__callback *callback,
			  const struct d9__stall *most, uint64_t limit, uint64_t calls,
			  const char *place, uint64_t all_ns)
{
	uint64_t told_ns = callback->time.blocked_ns, untold_ns = d9__u64_minus(all_ns, told_ns);
	bool few = 2 * calls <= callback->calls &&
		   (calls <= FEW_SLEEPS || FEW_PART * calls <= callback->calls);

	return few &&
	       2 * (d9__callback_slept_below_ns(callback, limit) + untold_ns) <=
		       told_ns + untold_ns &&
	       d9__finding_looks_starved(findings, most, place) &&
	       2 * callback->blocked.sum <= d9__ready_of(findings->analysis).ns;
}

static void add_starved(struct d9__findings *findings, struct d9__finding *finding)
{
	d9__finding_add_evidence(findings, finding, NULL,
				 "threads of its loops were ready without a CPU for up to %s: whom "
				 "it waited for may have been, too",
				 d9__units_ns(d9__ready_longest_ns(findings->analysis)).text);
}

/* Where no call was told that blocks: whether pages that had to come from the disk explain what
 * |stall| slept. */
static bool slept_for_pages(const struct d9__stall *stall)
{
	return d9__stall_slept_ns(stall) <= stall->time.major_faults * FAULT_NS;
}

/* The worker of which |callback| slept the largest part away. */
struct sleeping {
	const struct d9__worker *worker; /* NULL: none to speak of */
	uint64_t ns, calls;
	double share; /* of what the machine left to its loop */
	bool idle;    /* which is, nearly, and the share is small */
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
		uint64_t ns = on ? d9__owners_slept_ns(owners, on) : 0;
		double share = d9__owners_share(owners, ns);

		if (!d9__owners_tell(owners) || share <= most.share)
			continue;
		if (share < SLEEPS_SHARE &&
		    (share < SLEEPS_LEAST_SHARE || SLEEPS_AWAKE_PART * ns < owners->awake_ns))
			continue;
		most = (struct sleeping) {
			.worker = findings->analysis->timeline.items[i],
			.ns = ns,
			.calls = on->calls,
			.share = share,
			.idle = share < SLEEPS_SHARE &&
				d9__owners_share(owners, owners->awake_ns) < IDLE_SHARE,
		};
	}
	return most;
}

/* A callback that has |severity| by its longest calls has it by all of them, too. */
static enum d9__severity sleeping_severity(const struct sleeping *sleeping,
					   enum d9__severity severity)
{
	if (sleeping->share >= SLEEPS_CRITICAL_SHARE)
		return D9__CRITICAL;
	return sleeping->worker && !sleeping->idle && severity > D9__WARNING ? D9__WARNING
									     : severity;
}

/* ---- children that start ---- */

/* Sleeps of a callback until a child has loaded its program. */
struct child {
	const char *function; /* NULL: it sleeps for something else; "": which is not known */
	char place[96];	      /* "in posix_spawn()", "for a child to start" */
};

static struct child find_child(const struct d9__findings *findings,
			       const struct d9__callback *callback, const char *in)
{
	struct child child = { d9__advice_starts_child(findings, callback, in), "" };

	if (child.function && child.function[0])
		snprintf(child.place, sizeof(child.place), "in %.*s()",
			 (int)strcspn(child.function, "("), child.function);
	else if (child.function)
		snprintf(child.place, sizeof(child.place), "for a child to start");
	return child;
}

static bool is_short_of_cpu(const struct d9__owners *owners)
{
	return SHORT_AWAKE_PART * owners->taken_ns >= owners->awake_ns &&
	       SHORT_PART * owners->taken_ns >= owners->left_ns + owners->taken_ns;
}

/*
 * Whether it is only a note that |callback| waits for children to start, up to |longest_ns|: for a
 * small part of its loop's time.  On a machine where children wait for a CPU as their loop does,
 * half of its calls tell how long it would be without that.
 */
static bool is_child_note(const struct d9__findings *findings, const struct d9__callback *callback,
			  uint64_t longest_ns)
{
	uint64_t median_ns = d9__histogram_quantile(&callback->durations, 0.5);
	bool is_short = false;
	double most = 0;

	for (size_t i = 0; i < callback->n_on && i < findings->analysis->timeline.n; i++) {
		const struct d9__callback_on *on = callback->on[i];
		const struct d9__owners *owners = &findings->owners[i];
		uint64_t ns = on ? d9__owners_slept_ns(owners, on) : 0;
		double share;

		if (!ns)
			continue;
		if (is_short_of_cpu(owners)) {
			is_short = true;
			ns = d9__u64_min(ns, median_ns * on->calls);
		}
		share = d9__owners_tell(owners) ? d9__owners_share(owners, ns) : 0;
		most = share > most ? share : most;
	}
	return most < SLEEPS_SHARE && (is_short || longest_ns < CHILD_NS);
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
	enum d9__severity severity = sleeping->idle ? D9__INFO : D9__WARNING;
	struct d9__finding *finding;
	struct child child;
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
	child = find_child(findings, callback, in);
	if (child.function) {
		remedy = d9__advice_child(findings);
		if (!known)
			snprintf(place, sizeof(place), "%s", child.place);
	}
	severity = child.function && is_child_note(findings, callback, 0)
			   ? D9__INFO
			   : sleeping_severity(sleeping, severity);
	finding = d9__finding_add(
		findings, severity, sleeping->ns, remedy ? remedy : d9__advice_sleeps(false),
		"%.*s%s sleeps for %.0f %% of worker %llu's time%s%s: %s in each of %s calls, %s "
		"in all, and the loop can run nothing else meanwhile.",
		name.len, name.text, d9__call_describe_caller(callback, caller, sizeof(caller)),
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
	for (size_t i = 0; i < callback->n_stalls && i < D9__CALL_EXAMPLES; i++)
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
			    const struct d9__callback *callback, const struct d9__call_times *times,
			    uint64_t ns, const char *place)
{
	char text[384];

	snprintf(text, sizeof(text), "sleeps %s%s %.40s", d9__units_ns(ns).text, times->runs,
		 place);
	d9__call_set_counted_brief(findings, finding, callback, times, text);
}

static void blocked_callback(struct d9__findings *findings, const struct d9__callback *callback)
{
	const struct d9__stall *most = most_blocked(findings, callback);
	struct d9__shown_name name = d9__finding_name(callback);
	struct d9__finding *finding;
	const char *asleep = callback->n_asleep ? callback->asleep[0].place : "", *in = asleep,
		   *remedy;
	char behind[160], rhythm[128], caller[160], place[768] = "for something";
	struct d9__finding_blocked blocked;
	struct sleeping sleeping;
	struct child child = { .function = NULL };
	enum d9__severity severity;
	bool waited, starts, starved, pages,
		known = d9__finding_blocked_most(findings->analysis, callback, &blocked);
	struct d9__call_times times;
	uint64_t limit, calls, slept_ns;

	sleeping = find_sleeping(findings, callback);
	if (!most && sleeping.worker)
		sleeping_callback(findings, callback, &sleeping);
	if (!most)
		return;
	/* Nothing told yet of the wait that it was in when the trace ended: a look did. */
	if (most->open && !most->time.told.n &&
	    d9__call_worker(findings, most->worker)->sign.where[0]) {
		in = asleep = d9__call_worker(findings, most->worker)->sign.where;
		known = false;
	}
	slept_ns = d9__stall_slept_ns(most);
	limit = d9__call_limit_ns(findings, callback, most);
	if (computes_more(callback, limit))
		return;
	calls = d9__histogram_above(&callback->blocked, limit);
	if (calls == 0)
		calls = 1;
	/* For what the finding names, and not for what the callback happened to be in when it was
	 * looked at. */
	if (known)
		in = blocked.call;
	pages = !known && slept_for_pages(most);
	remedy = pages ? NULL : d9__advice_slept(findings, callback, in);
	if (!remedy && !pages)
		remedy = d9__advice_slept(findings, callback, asleep);
	if (!pages)
		child = find_child(findings, callback, in);
	if (child.function)
		remedy = d9__advice_child(findings);
	starts = d9__call_is_start(findings, callback, limit);
	starved = !pages && looks_starved(findings, callback, most, limit, calls, in, sleeping.ns);
	if (known)
		describe_blocked(&blocked, place, sizeof(place));
	else if (pages)
		snprintf(place, sizeof(place), "for pages from the disk");
	else if (child.function)
		snprintf(place, sizeof(place), "%s", child.place);
	else if (asleep[0])
		d9__finding_asleep(asleep, place, sizeof(place));
	d9__call_describe_when(findings, callback, starts, rhythm, sizeof(rhythm));
	waited = d9__call_describe_waiting(callback, behind, sizeof(behind));
	d9__call_describe_times(callback, most, calls, &times);
	severity = d9__call_severity(findings, callback, most, slept_ns, calls, waited);
	if (starts || starved || (child.function && is_child_note(findings, callback, slept_ns)))
		severity = D9__INFO;
	else
		severity = sleeping_severity(&sleeping, severity);
	finding = d9__finding_add(
		findings, severity, slept_ns, remedy ? remedy : d9__advice_sleeps(pages),
		"%.*s%s waited %s%s %s while worker %llu could run nothing else%s (%s"
		" did for over %s; %s in all)%s.",
		name.len, name.text, d9__call_describe_caller(callback, caller, sizeof(caller)),
		d9__units_ns(slept_ns).text, times.runs, place, (unsigned long long)most->worker,
		rhythm, times.whole, d9__units_ns(limit).text,
		d9__units_ns(callback->blocked.sum).text, behind);
	d9__finding_set_callback(findings, finding, callback);
	if (known)
		set_blocked_brief(findings, finding, callback, &times, &blocked, slept_ns);
	else
		set_slept_brief(findings, finding, callback, &times, slept_ns,
				pages || child.function || asleep[0] ? place : "inside");
	if (known)
		snprintf(place, sizeof(place), "%s %s", blocked.lock ? "waiting for" : "in",
			 blocked.what);
	else if (pages || !asleep[0])
		snprintf(place, sizeof(place), "asleep");
	d9__call_tell_open(findings, finding, callback, most, slept_ns, place);
	if (!known)
		d9__finding_add_places(findings, finding, callback);
	for (size_t i = 0; i < callback->n_stalls && i < D9__CALL_EXAMPLES; i++)
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
