/* SPDX-License-Identifier: Apache-2.0 */
/* The check of callbacks that kept the CPU, and with it the loop, for long. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "analyze/hot.h"
#include "findings/advice.h"
#include "findings/check_calls.h"
#include "findings/check_parts.h"
#include "text/units.h"

/* The kernel may have made calls of a callback long: at most one in so many, and so long. */
#define RARE_CALLS	 200
#define PREEMPTED_MAX_NS (20 * D9__MS_NS)

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

static void add_stall(struct d9__findings *findings, struct d9__finding *finding,
		      const struct d9__stall *stall)
{
	struct d9__evidence evidence = d9__call_evidence(stall);
	char victims[512], place[512], samples[512] = "", taken[160], left[384];

	d9__call_describe_victims(stall, victims, sizeof(victims));
	d9__call_describe_place(stall, place, sizeof(place));
	describe_rest(stall, taken, sizeof(taken));
	if (stall->on_samples + stall->off_samples)
		snprintf(samples, sizeof(samples), ", %u on-CPU and %u off-CPU samples",
			 stall->on_samples, stall->off_samples);
	/* Where no call was told that blocks. */
	if (!stall->blocked_ns && d9__stall_verdict(stall) == D9__STALL_OFF_CPU &&
	    d9__hot_left_cpu(stall->off_stack, left, sizeof(left))[0])
		snprintf(samples + strlen(samples), sizeof(samples) - strlen(samples), " in %s",
			 left);
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

	if (callback->stalls[0].ns > PREEMPTED_MAX_NS || calls * RARE_CALLS > callback->calls ||
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
	d9__finding_add_evidence(
		findings, finding, NULL,
		"the kernel took the CPU from the process %s times in this trace",
		d9__units_count(usage->growth[D9__USAGE_INVOLUNTARY_SWITCHES]).text);
}

/* Behind |told_ns|, which the sentence tells of |stall|: the whole, if that is longer, and how much
 * was preempted. */
static void describe_taken(const struct d9__stall *stall, uint64_t told_ns, char *buf, size_t size)
{
	char taken[96], whole[D9__UNITS_MAX + 32] = "";

	describe_rest(stall, taken, sizeof(taken));
	if (taken[0] && told_ns < stall->culprit_ns)
		snprintf(whole, sizeof(whole), " of its own, %s in all",
			 d9__units_ns(stall->culprit_ns).text);
	snprintf(buf, size, "%s%s", whole, taken);
}

static void set_blocks_brief(struct d9__findings *findings, struct d9__finding *finding,
			     const struct d9__callback *callback,
			     const struct d9__call_times *times, uint64_t ns)
{
	char text[256];

	snprintf(text, sizeof(text), "blocks the loop %s%s", d9__units_ns(ns).text, times->runs);
	d9__call_set_counted_brief(findings, finding, callback, times, text);
}

static void long_callback(struct d9__findings *findings, const struct d9__callback *callback)
{
	const struct d9__stall *worst = callback->stalls[0].stall;
	uint64_t limit = d9__call_limit_ns(findings, callback, worst), calls, told_ns;
	struct d9__shown_name name = d9__finding_name(callback);
	struct d9__finding *finding;
	char behind[160], taken[160], rhythm[128], caller[160];
	struct d9__call_times times;
	bool preempted, waited, starts;

	/* Time that the kernel took from it is the machine's. */
	if (callback->stalls[0].ns <= limit || all_blocked(callback, limit))
		return;
	calls = d9__histogram_above(&callback->own, limit);
	if (calls == 0)
		calls = 1;
	waited = d9__call_describe_waiting(callback, behind, sizeof(behind));
	preempted = looks_preempted(findings, callback, calls);
	starts = d9__call_is_start(findings, callback, limit);
	d9__call_describe_when(findings, callback, starts, rhythm, sizeof(rhythm));
	told_ns = preempted ? worst->culprit_ns : d9__stall_own_ns(worst);
	describe_taken(worst, told_ns, taken, sizeof(taken));
	d9__call_describe_times(callback, worst, calls, &times);
	finding = d9__finding_add(
		findings,
		preempted || starts ? D9__INFO
				    : d9__call_severity(findings, callback, worst,
							d9__stall_own_ns(worst), calls, waited),
		d9__stall_own_ns(worst),
		d9__advice_long(findings, callback, d9__stall_verdict(worst), preempted),
		"%.*s%s blocked worker %llu for %s%s%s%s (%s took over %s)%s.", name.len, name.text,
		d9__call_describe_caller(callback, caller, sizeof(caller)),
		(unsigned long long)worst->worker, d9__units_ns(told_ns).text, taken, times.runs,
		rhythm, times.whole, d9__units_ns(limit).text, behind);
	d9__finding_set_callback(findings, finding, callback);
	if (preempted)
		d9__finding_set_brief(findings, finding, "took %s%s, preempted as it seems%s",
				      d9__units_ns(told_ns).text, times.runs, times.brief);
	else
		set_blocks_brief(findings, finding, callback, &times, told_ns);
	d9__call_tell_open(findings, finding, callback, worst, told_ns, "computing");
	for (size_t i = 0; i < callback->n_stalls && i < D9__CALL_EXAMPLES; i++)
		if (callback->stalls[i].ns > limit)
			add_stall(findings, finding, callback->stalls[i].stall);
	if (!preempted && d9__finding_is_in_kernel(callback))
		d9__finding_add_evidence(
			findings, finding, NULL,
			"%s of the CPU time of its long calls is in the kernel, in system calls",
			d9__units_percent(
				(double)callback->inside.system_ns /
				(double)(callback->inside.user_ns + callback->inside.system_ns))
				.text);
	if (preempted)
		add_switches(findings, finding);
}

void d9__check_long_callback(struct d9__findings *findings)
{
	const struct d9__callbacks *callbacks = &findings->analysis->callbacks;

	for (size_t i = 0; i < callbacks->n; i++)
		if (callbacks->items[i]->n_stalls &&
		    !d9__finding_is_explained(findings, callbacks->items[i]))
			long_callback(findings, callbacks->items[i]);
}
