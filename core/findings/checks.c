/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "findings/check_parts.h"
#include "findings/checks.h"
#include "findings/owners.h"

/*
 * In order of rank: what limits the other figures, then causes before their consequences, then the
 * machine: what is said of the program counts none of what the kernel took.  What the recording
 * lacks comes last.
 */
static const struct {
	const char *name;
	enum d9__about about;
	void (*run)(struct d9__findings *findings);
} checks[] = {
	{ "nothing-recorded", D9__ABOUT_DATA, d9__check_nothing_recorded },
	{ "incomplete-data", D9__ABOUT_DATA, d9__check_incomplete_data },
	{ "degraded-hooks", D9__ABOUT_DATA, d9__check_degraded_hooks },
	{ "stopped", D9__ABOUT_TIME, d9__check_stopped },
	{ "stuck-callback", D9__ABOUT_TIME, d9__check_stuck_callback },
	{ "accept-storm", D9__ABOUT_TIME, d9__check_accept_storm },
	{ "spin", D9__ABOUT_TIME, d9__check_spin },
	{ "works-for-nothing", D9__ABOUT_TIME, d9__check_works_for_nothing },
	{ "wake-storm", D9__ABOUT_WAKES, d9__check_wake_storm },
	{ "empty-wakes", D9__ABOUT_WAKES, d9__check_empty_wakes },
	{ "lost-wake", D9__ABOUT_WAKES, d9__check_lost_wake },
	{ "source-time", D9__ABOUT_TIME, d9__check_source_time },
	{ "inside-library", D9__ABOUT_TIME, d9__check_inside_library },
	{ "busy-wait", D9__ABOUT_TIME, d9__check_busy_wait },
	{ "nested-loop", D9__ABOUT_TIME, d9__check_nested_loop },
	{ "growing-calls", D9__ABOUT_TIME, d9__check_growing_calls },
	{ "periodic-pause", D9__ABOUT_TIME, d9__check_periodic_pause },
	{ "cold-start", D9__ABOUT_TIME, d9__check_cold_start },
	{ "page-faults", D9__ABOUT_TIME, d9__check_page_faults },
	{ "blocked-callback", D9__ABOUT_TIME, d9__check_blocked_callback },
	{ "stale-clock", D9__ABOUT_TIME, d9__check_stale_clock },
	{ "timer-overrun", D9__ABOUT_TIME, d9__check_timer_overrun },
	{ "between-rounds", D9__ABOUT_TIME, d9__check_between_rounds },
	{ "sleeps-between", D9__ABOUT_TIME, d9__check_sleeps_between },
	{ "long-callback", D9__ABOUT_TIME, d9__check_long_callback },
	{ "running-at-end", D9__ABOUT_TIME, d9__check_running_at_end },
	{ "blocking", D9__ABOUT_TIME, d9__check_blocking },
	{ "helper-queue", D9__ABOUT_TIME, d9__check_helper_queue },
	{ "idle-workers", D9__ABOUT_TIME, d9__check_idle_workers },
	{ "unfair", D9__ABOUT_TIME, d9__check_unfair },
	{ "backlog", D9__ABOUT_TIME, d9__check_backlog },
	{ "long-round", D9__ABOUT_TIME, d9__check_long_round },
	{ "wake-delay", D9__ABOUT_TIME, d9__check_wake_delay },
	{ "timer-late", D9__ABOUT_TIME, d9__check_timer_late },
	{ "idle-wakes", D9__ABOUT_WAKES, d9__check_idle_wakes },
	{ "many-wakes", D9__ABOUT_WAKES, d9__check_many_wakes },
	{ "accept-queue", D9__ABOUT_TIME, d9__check_accept_queue },
	{ "queue-depth", D9__ABOUT_TIME, d9__check_queue_depth },
	{ "task-leak", D9__ABOUT_KEPT, d9__check_task_leak },
	{ "short-of-cpu", D9__ABOUT_REST, d9__check_short_of_cpu },
	{ "descriptor-growth", D9__ABOUT_KEPT, d9__check_descriptor_growth },
	{ "leak-by-site", D9__ABOUT_KEPT, d9__check_leak_by_site },
	{ "memory-growth", D9__ABOUT_KEPT, d9__check_memory_growth },
	{ "saturated", D9__ABOUT_REST, d9__check_saturated },
	{ "loop-overhead", D9__ABOUT_REST, d9__check_loop_overhead },
	{ "cpu-contention", D9__ABOUT_REST, d9__check_cpu_contention },
	{ "worker-imbalance", D9__ABOUT_TIME, d9__check_worker_imbalance },
	{ "many-spans", D9__ABOUT_REST, d9__check_many_spans },
	{ "span-outlier", D9__ABOUT_REST, d9__check_span_outlier },
	{ "unmatched-spans", D9__ABOUT_REST, d9__check_unmatched_spans },
	{ "misused-spans", D9__ABOUT_REST, d9__check_misused_spans },
	{ "adds-up", D9__ABOUT_REST, d9__check_adds_up },
	{ "elsewhere", D9__ABOUT_REST, d9__check_elsewhere },
	{ "refused-source", D9__ABOUT_RECORDING, d9__check_refused_source },
	{ "no-wakes", D9__ABOUT_RECORDING, d9__check_no_wakes },
	{ "names-missing", D9__ABOUT_RECORDING, d9__check_names_missing },
	{ "sample-setup", D9__ABOUT_RECORDING, d9__check_sample_setup },
	{ "missing-source", D9__ABOUT_RECORDING, d9__check_missing_source },
};

/*
 * Return the place of a check among findings of one severity.  Callbacks that compute share that of callbacks that sleep,
 * because neither is the consequence of the other: the longer comes first, and findings about clocks and timers behind both.
 */
static unsigned place_of(unsigned rank)
{
	if (strcmp(checks[rank].name, "long-callback") != 0)
		return rank;
	while (strcmp(checks[rank].name, "blocked-callback") != 0)
		rank--;
	return rank;
}

int d9__findings_make(struct d9__findings *findings, const struct d9__analysis *analysis)
{
	struct d9__sums sums = { .n_loops = 0 };
	int err = d9__sums_take(&sums, analysis, 0);

	findings->analysis = analysis;
	if (!err)
		findings->owners = d9__owners_make(&sums);
	d9__sums_release(&sums);
	if (err || !findings->owners)
		return -ENOMEM;
	for (unsigned i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		findings->rank = i;
		findings->place = place_of(i);
		findings->check = checks[i].name;
		findings->about = checks[i].about;
		checks[i].run(findings);
	}
	return d9__findings_finish(findings);
}
