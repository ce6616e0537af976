/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/findings.h"
#include "analyze/units.h"
#include "format/utf8.h"

/*
 * In order of rank: what limits the other figures, then causes before their consequences, then the
 * machine: what is said of the program counts none of what the kernel took.
 */
static const struct {
	const char *name;
	bool first;
	void (*run)(struct d9__findings *findings);
} checks[] = {
	{ "nothing-recorded", true, d9__check_nothing_recorded },
	{ "incomplete-data", true, d9__check_incomplete_data },
	{ "degraded-hooks", true, d9__check_degraded_hooks },
	{ "accept-storm", false, d9__check_accept_storm },
	{ "spin", false, d9__check_spin },
	{ "wake-storm", false, d9__check_wake_storm },
	{ "empty-wakes", false, d9__check_empty_wakes },
	{ "lost-wake", false, d9__check_lost_wake },
	{ "blocked-callback", false, d9__check_blocked_callback },
	{ "stale-clock", false, d9__check_stale_clock },
	{ "timer-overrun", false, d9__check_timer_overrun },
	{ "long-callback", false, d9__check_long_callback },
	{ "running-at-end", false, d9__check_running_at_end },
	{ "blocking", false, d9__check_blocking },
	{ "helper-queue", false, d9__check_helper_queue },
	{ "unfair", false, d9__check_unfair },
	{ "backlog", false, d9__check_backlog },
	{ "long-round", false, d9__check_long_round },
	{ "wake-delay", false, d9__check_wake_delay },
	{ "timer-late", false, d9__check_timer_late },
	{ "idle-wakes", false, d9__check_idle_wakes },
	{ "queue-depth", false, d9__check_queue_depth },
	{ "task-leak", false, d9__check_task_leak },
	{ "kernel-wait", false, d9__check_kernel_wait },
	{ "cpu-contention", false, d9__check_cpu_contention },
	{ "worker-imbalance", false, d9__check_worker_imbalance },
	{ "many-spans", false, d9__check_many_spans },
	{ "span-outlier", false, d9__check_span_outlier },
	{ "unmatched-spans", false, d9__check_unmatched_spans },
	{ "misused-spans", false, d9__check_misused_spans },
	{ "no-wakes", false, d9__check_no_wakes },
	{ "sample-setup", false, d9__check_sample_setup },
};

const char *d9__severity_name(enum d9__severity severity)
{
	static const char *const names[D9__SEVERITIES] = { "critical", "warning", "info" };

	return names[severity];
}

uint64_t d9__long_call_ns(const struct d9__worker *worker)
{
	uint64_t ns = 3 * d9__histogram_quantile(&worker->calls, 0.99);

	if (ns < D9__STALL_NS)
		return D9__STALL_NS;
	return ns < D9__LONG_ALWAYS_NS ? ns : D9__LONG_ALWAYS_NS;
}

static struct d9__finding *append(struct d9__findings *findings)
{
	struct d9__finding **items =
		realloc(findings->items, (findings->n + 1) * sizeof(*items));
	struct d9__finding *finding = items ? calloc(1, sizeof(*finding)) : NULL;

	if (items)
		findings->items = items;
	if (!finding) {
		findings->err = -ENOMEM;
		return NULL;
	}
	findings->items[findings->n++] = finding;
	return finding;
}

struct d9__finding *d9__finding_add(struct d9__findings *findings, enum d9__severity severity,
				    uint64_t impact, const char *advice, const char *format, ...)
{
	struct d9__finding *finding = append(findings);
	va_list args;

	if (!finding)
		return NULL;
	finding->check = findings->check;
	finding->rank = findings->rank;
	finding->first = findings->first;
	finding->severity = severity;
	finding->impact = impact;
	finding->advice = advice;
	findings->by_severity[severity]++;
	va_start(args, format);
	if (vasprintf(&finding->message, format, args) < 0) {
		finding->message = NULL;
		findings->err = -ENOMEM;
	}
	va_end(args);
	return finding;
}

void d9__finding_set_name(struct d9__findings *findings, struct d9__finding *finding,
			  const char *name, size_t len)
{
	if (!finding)
		return;
	finding->name = strndup(name, len);
	if (!finding->name)
		findings->err = -ENOMEM;
}

struct d9__name d9__finding_name(const struct d9__callback *callback)
{
	const char *text = "nothing";
	size_t len = strlen(text);

	if (callback)
		text = d9__callback_name(callback, &len);
	return (struct d9__name){ text, d9__precision(len) };
}

void d9__finding_set_callback(struct d9__findings *findings, struct d9__finding *finding,
			      const struct d9__callback *callback)
{
	struct d9__name name = d9__finding_name(callback);

	d9__finding_set_name(findings, finding, name.text, (size_t)name.len);
}

void d9__finding_taken(uint64_t taken_ns, char *buf, size_t size)
{
	buf[0] = '\0';
	if (taken_ns >= D9__MS(1))
		snprintf(buf, size, " (%s of it the kernel ran something else)",
			 d9__units_ns(taken_ns).text);
}

void d9__finding_add_evidence(struct d9__findings *findings, struct d9__finding *finding,
			      const struct d9__evidence *evidence, const char *format, ...)
{
	struct d9__evidence *place;
	va_list args;

	if (!finding || finding->n_evidence == D9__EVIDENCE_MAX)
		return;
	place = &finding->evidence[finding->n_evidence++];
	*place = evidence ? *evidence : (struct d9__evidence){ 0 };
	va_start(args, format);
	if (vasprintf(&place->text, format, args) < 0) {
		place->text = NULL;
		findings->err = -ENOMEM;
	}
	va_end(args);
}

bool d9__finding_told(const struct d9__findings *findings, const char *check)
{
	for (size_t i = 0; i < findings->n; i++)
		if (!strcmp(findings->items[i]->check, check))
			return true;
	return false;
}

int d9__findings_compare(const struct d9__finding *a, const struct d9__finding *b)
{
	if (a->first != b->first)
		return a->first ? -1 : 1;
	if (a->severity != b->severity)
		return a->severity < b->severity ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->impact != b->impact)
		return a->impact > b->impact ? -1 : 1;
	return strcmp(a->message ? a->message : "", b->message ? b->message : "");
}

static int compare(const void *left, const void *right)
{
	return d9__findings_compare(*(struct d9__finding *const *)left,
				    *(struct d9__finding *const *)right);
}

int d9__findings_make(struct d9__findings *findings, const struct d9__analysis *analysis)
{
	findings->analysis = analysis;
	for (unsigned i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		findings->rank = i;
		findings->check = checks[i].name;
		findings->first = checks[i].first;
		checks[i].run(findings);
	}
	if (findings->n)
		qsort(findings->items, findings->n, sizeof(*findings->items), compare);
	return findings->err;
}

void d9__findings_release(struct d9__findings *findings)
{
	for (size_t i = 0; i < findings->n; i++) {
		struct d9__finding *finding = findings->items[i];

		for (size_t j = 0; j < finding->n_evidence; j++)
			free(finding->evidence[j].text);
		free(finding->message);
		free(finding->name);
		free(finding);
	}
	free(findings->items);
	*findings = (struct d9__findings){ 0 };
}
