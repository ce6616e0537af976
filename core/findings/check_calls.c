/* SPDX-License-Identifier: Apache-2.0 */
/* Calls in findings: the judgement and the words that the checks of long and of blocked callbacks
 * share. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "findings/check_calls.h"
#include "findings/check_parts.h"
#include "findings/hold.h"
#include "findings/owners.h"
#include "text/units.h"

/* Calls that count as a program's start take so long at most. */
#define START_NS (500 * D9__MS_NS)

const struct d9__worker *d9__call_worker(const struct d9__findings *findings, uint64_t id)
{
	return d9__table_find(&findings->analysis->timeline.by_id, id);
}

uint64_t d9__call_limit_ns(const struct d9__findings *findings, const struct d9__callback *callback,
			   const struct d9__stall *stall)
{
	return d9__hold_limit_ns(findings, d9__call_worker(findings, stall->worker), callback);
}

const char *d9__call_describe_caller(const struct d9__callback *callback, char *buf, size_t size)
{
	size_t len;
	const char *name = d9__callback_name(callback, &len);

	if (callback->inner)
		snprintf(buf, size, " (called by %.*s)", d9__precision(len), name);
	else
		snprintf(buf, size, "%s",
			 callback->internal ? " (the library's own callback)" : "");
	return buf;
}

void d9__call_describe_victims(const struct d9__stall *stall, char *buf, size_t size)
{
	size_t used;

	buf[0] = '\0';
	if (stall->waited == 0)
		return;
	used = (size_t)snprintf(buf, size,
				"; %s waited behind it:", d9__units_count(stall->waited).text);
	for (size_t i = 0; i < stall->n_victims && i < D9__CALL_EXAMPLES && used < size; i++) {
		const struct d9__victim *victim = &stall->victims[i];
		struct d9__shown_name name = d9__finding_name(victim->callback);

		used += (size_t)snprintf(buf + used, size - used, "%s %.*s %s%s", i ? "," : "",
					 name.len, name.text, d9__units_ns(victim->delay_ns).text,
					 victim->timer ? " (timer)" : "");
	}
	if (stall->waited > D9__CALL_EXAMPLES && used < size)
		snprintf(buf + used, size - used, ", ...");
}

/* " in 23 calls" where the library made so many in the one call of |stall|, or nothing. */
static void describe_runs(const struct d9__stall *stall, char *buf, size_t size)
{
	buf[0] = '\0';
	if (stall->culprit_runs > 1)
		snprintf(buf, size, " in %s calls", d9__units_count(stall->culprit_runs).text);
}

void d9__call_describe_place(const struct d9__stall *stall, char *buf, size_t size)
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

/* The call of |callback| that had not ended when the trace did; NULL: none of its longest. */
static const struct d9__stall *open_call(const struct d9__callback *callback)
{
	for (size_t i = 0; i < callback->n_stalls; i++)
		if (callback->stalls[i].stall->open)
			return callback->stalls[i].stall;
	return NULL;
}

void d9__call_tell_open(struct d9__findings *findings, struct d9__finding *finding,
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

void d9__call_describe_times(const struct d9__callback *callback, const struct d9__stall *stall,
			     uint64_t n, struct d9__call_times *out)
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

enum d9__severity d9__call_severity(const struct d9__findings *findings,
				    const struct d9__callback *callback,
				    const struct d9__stall *stall, uint64_t ns, uint64_t calls,
				    bool waited)
{
	return d9__hold_severity(
		findings, &(struct d9__hold) { .worker = d9__call_worker(findings, stall->worker),
					       .ns = ns,
					       .n = calls,
					       .behind_ns = callback->behind_ns,
					       .waited = waited });
}

bool d9__call_is_start(const struct d9__findings *findings, const struct d9__callback *callback,
		       uint64_t limit)
{
	bool any = false;

	if (d9__histogram_above(&callback->own, limit) > callback->n_stalls)
		return false;
	for (size_t i = 0; i < callback->n_stalls; i++) {
		const struct d9__stall *stall = callback->stalls[i].stall;
		uint64_t ns = callback->stalls[i].ns;

		any |= ns > limit;
		if (ns > limit &&
		    (ns > START_NS ||
		     !d9__analysis_is_start(findings->analysis, stall->start_ns,
					    stall->start_ns + ns,
					    stall->waited_max_ns >= D9__WAIT_EXPLAIN_NS)))
			return false;
	}
	return any;
}

bool d9__call_describe_waiting(const struct d9__callback *callback, char *buf, size_t size)
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

void d9__call_describe_when(const struct d9__findings *findings,
			    const struct d9__callback *callback, bool starts, char *buf,
			    size_t size)
{
	if (starts)
		snprintf(buf, size, ", while the program started");
	else
		d9__finding_rhythm(findings, callback, buf, size);
}

void d9__call_describe_share(const struct d9__findings *findings,
			     const struct d9__callback *callback, bool in_all, char *buf,
			     size_t size)
{
	double share = d9__owners_share_of(findings->analysis, findings->owners, callback);

	buf[0] = '\0';
	if (share >= D9__TOLD_SHARE)
		snprintf(buf, size, ", %.0f %% of the time%s", 100 * share,
			 in_all ? " in all" : "");
}

void d9__call_set_counted_brief(struct d9__findings *findings, struct d9__finding *finding,
				const struct d9__callback *callback,
				const struct d9__call_times *times, const char *text)
{
	bool few = 2 * times->n < callback->calls;
	char share[64], both[320];

	d9__call_describe_share(findings, callback, false, share, sizeof(share));
	snprintf(both, sizeof(both), "%s%s", times->brief, share);
	if (share[0] && (few || strlen(text) + strlen(both) > D9__CALL_SHARE_BRIEF_MAX))
		d9__call_describe_share(findings, callback, few, both, sizeof(both));
	else if (!share[0] && strlen(text) + strlen(times->brief) > D9__CALL_BRIEF_MAX)
		both[0] = '\0';
	d9__finding_set_brief(findings, finding, "%s%s", text, both);
}
