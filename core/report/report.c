/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "report/report.h"

static int compare_callbacks(const void *left, const void *right)
{
	const struct d9__callback *a = *(const struct d9__callback *const *)left;
	const struct d9__callback *b = *(const struct d9__callback *const *)right;

	if (a->durations.sum != b->durations.sum)
		return a->durations.sum > b->durations.sum ? -1 : 1;
	return strcmp(a->location, b->location);
}

static int sort_callbacks(struct d9__report *report)
{
	const struct d9__callbacks *callbacks = &report->analysis->callbacks;

	report->callbacks = calloc(callbacks->n + 1, sizeof(*report->callbacks));
	if (!report->callbacks)
		return -ENOMEM;
	/* A function that helper threads alone ran is no callback of a loop, nor is one that a loop stood still in. */
	for (size_t i = 0; i < callbacks->n; i++) {
		struct d9__callback *callback = callbacks->items[i];

		if (callback->calls || callback->spawned)
			report->callbacks[report->n_callbacks++] = callback;
	}
	qsort(report->callbacks, report->n_callbacks, sizeof(*report->callbacks),
	      compare_callbacks);
	return 0;
}

static int compare_workers(const void *left, const void *right)
{
	const struct d9__worker *a = *(const struct d9__worker *const *)left;
	const struct d9__worker *b = *(const struct d9__worker *const *)right;

	return a->id < b->id ? -1 : a->id > b->id;
}

static int sort_workers(struct d9__report *report)
{
	const struct d9__timeline *timeline = &report->analysis->timeline;

	report->workers = calloc(timeline->n + 1, sizeof(*report->workers));
	if (!report->workers)
		return -ENOMEM;
	for (size_t i = 0; i < timeline->n; i++)
		report->workers[i] = timeline->items[i];
	qsort(report->workers, timeline->n, sizeof(*report->workers), compare_workers);
	return 0;
}

/* The sum of the name that |names| has under |number|, made if it is the next; NULL: out of memory. */
static struct d9__span_name *span_name(struct d9__report *report, const char *name, uint32_t number)
{
	if (number == report->n_spans) {
		report->spans[number] = calloc(1, sizeof(**report->spans));
		if (!report->spans[number])
			return NULL;
		report->spans[number]->name = name;
		report->n_spans++;
	}
	return report->spans[number];
}

static int add_span_type(struct d9__report *report, struct d9__texts *names,
			 const struct d9__span_type *type)
{
	struct d9__span_name *span;
	uint32_t number;

	if (d9__texts_number(names, type->name, strlen(type->name), &number))
		return -ENOMEM;
	span = span_name(report, type->name, number);
	if (!span)
		return -ENOMEM;
	if (!d9__array_grow(span->types, span->n))
		return -ENOMEM;
	span->types[span->n++] = type;
	span->count += type->spans;
	span->unmatched += type->unmatched;
	span->active_ns += type->active_ns;
	span->active_in_polls_ns += type->active_in_polls_ns;
	span->idle_ns += type->idle_ns;
	d9__time_account_add(&span->time, &type->time);
	span->unclosed += type->unclosed;
	return d9__histogram_merge(&span->durations, &type->durations);
}

static int compare_spans(const void *left, const void *right)
{
	const struct d9__span_name *a = *(struct d9__span_name *const *)left;
	const struct d9__span_name *b = *(struct d9__span_name *const *)right;

	if (a->active_ns != b->active_ns)
		return a->active_ns > b->active_ns ? -1 : 1;
	return strcmp(a->name, b->name);
}

static int sum_up_spans(struct d9__report *report)
{
	const struct d9__spans *spans = &report->analysis->spans;
	struct d9__texts names = { .n = 0 };
	int err = 0;

	report->n_spans = 0;
	report->spans = calloc(spans->n + 1, sizeof(*report->spans));
	if (!report->spans)
		return -ENOMEM;
	for (size_t i = 0; i < spans->n && !err; i++)
		err = add_span_type(report, &names, spans->items[i]);
	d9__texts_release(&names);
	qsort(report->spans, report->n_spans, sizeof(*report->spans), compare_spans);
	return err;
}

int d9__report_init(struct d9__report *report, const struct d9__analysis *analysis,
		    const struct d9__findings *findings)
{
	int err;

	*report = (struct d9__report){ .analysis = analysis, .findings = findings };
	err = sort_workers(report);
	if (!err)
		err = sort_callbacks(report);
	return err ? err : sum_up_spans(report);
}

void d9__report_release(struct d9__report *report)
{
	for (size_t i = 0; i < report->n_spans; i++) {
		d9__histogram_release(&report->spans[i]->durations);
		free(report->spans[i]->types);
		free(report->spans[i]);
	}
	free(report->spans);
	free(report->callbacks);
	free(report->workers);
	*report = (struct d9__report){ 0 };
}

static int compare_counts(const void *left, const void *right)
{
	const struct d9__named_count *a = left, *b = right;

	if (a->events != b->events)
		return a->events > b->events ? -1 : 1;
	return strcmp(a->name, b->name);
}

static size_t add_counts(const struct d9__analysis *analysis, struct d9__named_count *counts,
			 struct d9__texts *names, int *err)
{
	for (size_t i = 0; i < analysis->n_counts && !*err; i++) {
		const struct d9__event_count *count = &analysis->counts[i];
		uint32_t at;

		if (!count->name)
			continue;
		*err = d9__texts_number(names, count->name, strlen(count->name), &at);
		if (*err)
			break;
		if (!counts[at].name)
			counts[at] = (struct d9__named_count){ count->name, count->kind, 0 };
		counts[at].events += count->events;
	}
	return names->n;
}

struct d9__named_count *d9__reports_counts(const struct d9__report *reports, size_t n_reports, size_t *n)
{
	struct d9__texts names = { .n = 0 };
	struct d9__named_count *counts;
	size_t most = 0;
	int err = 0;

	*n = 0;
	for (size_t i = 0; i < n_reports; i++)
		most += reports[i].analysis->n_counts;
	counts = calloc(most + 1, sizeof(*counts));
	for (size_t i = 0; counts && i < n_reports && !err; i++)
		*n = add_counts(reports[i].analysis, counts, &names, &err);
	d9__texts_release(&names);
	if (err) {
		free(counts);
		return NULL;
	}
	if (counts)
		qsort(counts, *n, sizeof(*counts), compare_counts);
	return counts;
}

static int compare_findings(const void *left, const void *right)
{
	const struct d9__report_finding *a = left, *b = right;
	int order = d9__findings_compare(a->finding, b->finding);

	if (order)
		return order;
	return a->report < b->report ? -1 : a->report > b->report;
}

struct d9__report_finding *d9__reports_findings(const struct d9__report *reports, size_t n,
						size_t *n_findings)
{
	struct d9__report_finding *all;
	size_t used = 0;

	for (size_t i = 0; i < n; i++)
		used += reports[i].findings->n;
	all = calloc(used + 1, sizeof(*all));
	*n_findings = used;
	used = 0;
	for (size_t i = 0; all && i < n; i++)
		for (size_t j = 0; j < reports[i].findings->n; j++)
			all[used++] = (struct d9__report_finding){
				&reports[i], reports[i].findings->items[j]
			};
	if (used)
		qsort(all, used, sizeof(*all), compare_findings);
	return all;
}

const struct d9__analysis *d9__reports_first(const struct d9__report *reports, size_t n)
{
	const struct d9__analysis *first = reports[0].analysis;

	for (size_t i = 1; i < n; i++) {
		const struct d9__analysis *a = reports[i].analysis;

		if (a->any_time && (!first->any_time ||
				    d9__analysis_start_ns(a) < d9__analysis_start_ns(first)))
			first = a;
	}
	return first;
}

uint64_t d9__reports_end_ns(const struct d9__report *reports, size_t n)
{
	uint64_t end_ns = 0;

	for (size_t i = 0; i < n; i++)
		if (d9__analysis_end_ns(reports[i].analysis) > end_ns)
			end_ns = d9__analysis_end_ns(reports[i].analysis);
	return end_ns;
}

size_t d9__span_origin_len(const struct d9__span_type *type)
{
	return (size_t)(type->name - type->origin) - 1;
}
