/* SPDX-License-Identifier: Apache-2.0 */
/* "polls", "wake_to_poll" and "timers" of the JSON report. */
#include "config.h"

#include "analyze/stalls.h"
#include "report/report_json.h"

static void put_victims(struct d9__json *json, const struct d9__stall *stall)
{
	d9__json_u64(json, "waited", stall->waited);
	d9__json_u64(json, "waited_max_ns", stall->waited_max_ns);
	d9__json_open(json, "waiters", '[');
	for (size_t i = 0; i < stall->n_victims; i++) {
		d9__json_open(json, NULL, '{');
		d9__report_json_callback_name(json, "name", stall->victims[i].callback);
		d9__json_u64(json, "task", stall->victims[i].task);
		d9__json_u64(json, "delay_ns", stall->victims[i].delay_ns);
		d9__json_bool(json, "timer", stall->victims[i].timer);
		d9__json_close(json, '}');
	}
	d9__json_close(json, ']');
}

static void put_stall(struct d9__json *json, const struct d9__analysis *a,
		      const struct d9__stall *stall)
{
	static const char *const verdicts[] = { "unknown", "computing", "off-cpu", "mixed" };
	struct d9__parts parts;

	d9__json_open(json, NULL, '{');
	d9__report_json_callback_name(json, "name", stall->culprit);
	d9__json_string(json, "location", stall->culprit->location);
	d9__report_json_callback_name(json, "poll", stall->callback);
	d9__json_u64(json, "duration_ns", stall->total_ns);
	d9__json_u64(json, "name_ns", stall->culprit_ns);
	d9__json_u64(json, "name_calls", stall->culprit_runs);
	d9__json_u64(json, "name_blocked_ns", d9__stall_slept_ns(stall));
	d9__json_u64(json, "worker", stall->worker);
	d9__json_u64(json, "task", stall->task);
	d9__report_json_moment(json, a, stall->start_ns);
	d9__json_u64(json, "pieces", stall->pieces);
	d9__json_u64(json, "on_cpu_samples", stall->on_samples);
	d9__json_u64(json, "off_cpu_samples", stall->off_samples);
	d9__json_string(json, "verdict", verdicts[d9__stall_verdict(stall)]);
	d9__json_u64(json, "blocked_ns", stall->blocked_ns);
	d9__json_u64(json, "run_queue_ns", stall->run_queue_ns);
	parts = d9__report_parts_of_call(a, stall);
	d9__time_parts_json(json, &parts, &stall->time, false);
	d9__json_string(json, "span", stall->span);
	put_victims(json, stall);
	d9__json_close(json, '}');
}

int d9__report_json_polls(struct d9__json *json, const struct d9__analysis *a)
{
	struct d9__histogram all = { 0 };
	uint64_t over_1ms = 0, over_10ms = 0, over_50ms = 0;
	int err = 0;

	for (size_t i = 0; i < a->timeline.n && !err; i++)
		err = d9__histogram_merge(&all, &a->timeline.items[i]->calls);
	for (size_t i = 0; i < a->callbacks.n; i++) {
		const struct d9__callback *callback = a->callbacks.items[i];

		if (callback->span)
			continue;
		over_1ms += callback->over_1ms;
		over_10ms += callback->over_10ms;
		over_50ms += callback->over_50ms;
	}
	d9__json_open(json, "polls", '{');
	d9__report_json_recorded(json, a, "poll");
	d9__report_json_quantiles(json, &all);
	d9__json_u64(json, "over_1ms", over_1ms);
	d9__json_u64(json, "over_10ms", over_10ms);
	d9__json_u64(json, "over_50ms", over_50ms);
	d9__json_u64(json, "with_samples", a->samples.polls);
	d9__json_u64(json, "uninstrumented", a->uninstrumented_polls);
	d9__json_open(json, "longest", '[');
	for (size_t i = 0; i < a->stalls.n; i++)
		put_stall(json, a, a->stalls.items[i].stall);
	d9__json_close(json, ']');
	d9__json_close(json, '}');
	d9__histogram_release(&all);
	return err;
}

/* ---- delays ---- */

static void put_delays(struct d9__json *json, const char *key, const struct d9__analysis *a,
		       const struct d9__delay *delays, size_t n)
{
	d9__json_open(json, key, '[');
	for (size_t i = 0; i < n; i++) {
		const struct d9__delay *delay = &delays[i];

		d9__json_open(json, NULL, '{');
		d9__report_json_callback_name(json, "name", delay->callback);
		d9__json_string(json, "location", delay->callback->location);
		d9__json_u64(json, "delay_ns", delay->ns);
		d9__json_u64(json, "task", delay->task);
		d9__json_u64(json, "waker_task", delay->waker);
		d9__json_u64(json, "worker", delay->worker);
		d9__json_string(json, "reason", d9__wake_reason_name(delay->reason));
		d9__report_json_moment(json, a, delay->from_ns);
		d9__json_u64(json, "ran_meanwhile", delay->between.calls);
		d9__json_u64(json, "ran_meanwhile_ns", delay->between.busy_ns);
		d9__report_json_callback_name(json, "longest_meanwhile", delay->between.longest);
		d9__json_u64(json, "longest_meanwhile_ns", delay->between.longest_ns);
		d9__json_close(json, '}');
	}
	d9__json_close(json, ']');
}

void d9__report_json_wakes(struct d9__json *json, const struct d9__analysis *a)
{
	const struct d9__latency *latency = &a->latency;

	d9__json_open(json, "wake_to_poll", '{');
	d9__report_json_recorded(json, a, "wake");
	d9__report_json_quantiles(json, &latency->delays);
	d9__json_u64(json, "over_100us", latency->over_100us);
	d9__json_u64(json, "over_1ms", latency->over_1ms);
	d9__json_u64(json, "over_5ms", latency->over_5ms);
	d9__json_u64(json, "over_10ms", latency->over_10ms);
	d9__json_u64(json, "over_50ms", latency->over_50ms);
	d9__json_u64(json, "wakes", latency->wakes);
	d9__json_open(json, "by_reason", '{');
	for (unsigned i = 0; i < D9__WAKE_REASONS; i++)
		if (latency->by_reason[i])
			d9__json_u64(json, d9__wake_reason_name(i), latency->by_reason[i]);
	d9__json_close(json, '}');
	d9__json_open(json, "causes", '{');
	d9__json_u64(json, "long_call", latency->behind_long);
	d9__json_u64(json, "one_task", latency->behind_unfair);
	d9__json_u64(json, "backlog", latency->behind_backlog);
	d9__json_u64(json, "several", latency->behind_several);
	d9__json_u64(json, "kernel", latency->behind_kernel);
	d9__json_u64(json, "nothing_ran", latency->behind_nothing);
	d9__json_close(json, '}');
	put_delays(json, "worst", a, latency->worst, latency->n_worst);
	put_delays(json, "backlogs", a, latency->backlogs, latency->n_backlogs);
	d9__json_close(json, '}');
}

void d9__report_json_timers(struct d9__json *json, const struct d9__analysis *a)
{
	const struct d9__latency *latency = &a->latency;
	enum d9__coverage coverage = d9__metadata_coverage(&a->metadata, "lateness");

	d9__json_open(json, "timers", '{');
	d9__json_string(json, "recorded",
			latency->reasons ? d9__coverage_name(coverage) : d9__coverage_name(D9__COVERAGE_NONE));
	d9__json_open(json, "lateness", '{');
	d9__report_json_quantiles(json, &latency->lateness);
	d9__json_close(json, '}');
	d9__json_u64(json, "over_1ms", latency->late_over_1ms);
	d9__json_u64(json, "over_10ms", latency->late_over_10ms);
	d9__json_u64(json, "over_50ms", latency->late_over_50ms);
	put_delays(json, "worst", a, latency->latest, latency->n_latest);
	d9__json_close(json, '}');
}
