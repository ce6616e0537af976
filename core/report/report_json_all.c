/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON report as a whole: of one process, or of several beside each other and summed up. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/budget.h"
#include "report/report_json.h"
#include "text/units.h"

struct all {
	const struct d9__report *reports;
	size_t n;
	struct d9__json *json;
};

/* ---- trace ---- */

static void put_losses(struct all *all)
{
	struct d9__trace_losses sum = { .n = 0 };

	for (size_t i = 0; i < all->n; i++) {
		const struct d9__trace_losses *losses = &all->reports[i].analysis->losses;

		for (size_t j = 0; j < losses->n; j++)
			d9__losses_add(&sum, losses->items[j].cause, strlen(losses->items[j].cause),
				       &losses->items[j]);
		sum.dropped_allocs += losses->dropped_allocs;
		sum.dropped_frees += losses->dropped_frees;
	}
	d9__report_json_loss(all->json, &sum);
	d9__json_u64(all->json, "lost_events", sum.events);
	d9__json_u64(all->json, "dropped_allocs", sum.dropped_allocs);
	d9__json_u64(all->json, "dropped_frees", sum.dropped_frees);
}

/* Write the metadata that all processes have alike. */
static void put_common_metadata(struct all *all)
{
	const struct d9__metadata *first = &all->reports[0].analysis->metadata;

	d9__json_open(all->json, "metadata", '{');
	for (size_t i = 0; i < first->n; i++) {
		const char *key = first->items[i].key, *value = first->items[i].value;
		size_t alike = 1;

		while (alike < all->n) {
			const char *other =
				d9__metadata_value(&all->reports[alike].analysis->metadata, key);

			if (!other || strcmp(other, value))
				break;
			alike++;
		}
		if (alike == all->n)
			d9__json_string(all->json, key, value);
	}
	d9__json_close(all->json, '}');
}

static void put_span_of_time(struct all *all)
{
	const struct d9__analysis *first = d9__reports_first(all->reports, all->n);
	uint64_t start_ns = d9__analysis_start_ns(first);
	uint64_t end_ns = d9__reports_end_ns(all->reports, all->n);
	struct d9__units wall = d9__units_wall(d9__analysis_wall_ns(first, start_ns));

	d9__json_u64(all->json, "start_ns", start_ns);
	d9__json_u64(all->json, "end_ns", end_ns);
	d9__json_u64(all->json, "duration_ns", end_ns - start_ns);
	d9__json_string(all->json, "start_wall", wall.text[0] ? wall.text : NULL);
	if (first->has_wall)
		d9__json_i64(all->json, "wall_offset_ns",
			     (int64_t)(first->anchor_wall_ns - first->anchor_ns));
	else
		d9__json_null(all->json, "wall_offset_ns");
}

static int put_trace(struct all *all)
{
	uint64_t segments = 0, events = 0;
	int err;

	for (size_t i = 0; i < all->n; i++) {
		segments += all->reports[i].analysis->n_segments;
		events += all->reports[i].analysis->events;
	}
	d9__json_open(all->json, "trace", '{');
	put_span_of_time(all);
	d9__json_u64(all->json, "segments", segments);
	d9__json_u64(all->json, "total_events", events);
	err = d9__report_json_events(all->json, all->reports, all->n);
	put_losses(all);
	d9__json_open(all->json, "fired", '[');
	for (size_t i = 0; i < all->n; i++)
		d9__report_json_fired(all->json, all->reports[i].analysis);
	d9__json_close(all->json, ']');
	d9__json_open(all->json, "files", '[');
	for (size_t i = 0; i < all->n; i++)
		d9__report_json_files(all->json, all->reports[i].analysis);
	d9__json_close(all->json, ']');
	put_common_metadata(all);
	d9__json_open(all->json, "processes", '[');
	for (size_t i = 0; i < all->n; i++) {
		d9__json_open(all->json, NULL, '{');
		d9__report_json_process(all->json, all->reports[i].analysis);
		d9__report_json_metadata(all->json, &all->reports[i].analysis->metadata);
		d9__json_close(all->json, '}');
	}
	d9__json_close(all->json, ']');
	d9__json_close(all->json, '}');
	return err;
}

/* ---- what is summed up or put side by side ---- */

static enum d9__coverage coverage_of(struct all *all, const char *key)
{
	size_t full = 0, none = 0;

	for (size_t i = 0; i < all->n; i++) {
		enum d9__coverage coverage =
			d9__metadata_coverage(&all->reports[i].analysis->metadata, key);

		full += coverage == D9__COVERAGE_FULL;
		none += coverage == D9__COVERAGE_NONE;
	}
	if (full == all->n)
		return D9__COVERAGE_FULL;
	return none == all->n ? D9__COVERAGE_NONE : D9__COVERAGE_PARTIAL;
}

static void put_capabilities(struct all *all)
{
	d9__json_open(all->json, "recorded", '{');
	for (size_t i = 0; i < D9__CAPABILITIES; i++)
		d9__json_string(all->json, d9__capability_keys[i],
				d9__coverage_name(coverage_of(all, d9__capability_keys[i])));
	d9__json_close(all->json, '}');
	d9__json_open(all->json, "degraded", '[');
	for (size_t i = 0; i < all->n; i++)
		d9__report_json_degraded(all->json, all->reports[i].analysis);
	d9__json_close(all->json, ']');
}

static int put_findings(struct all *all)
{
	size_t n;
	struct d9__report_finding *sorted = d9__reports_findings(all->reports, all->n, &n);

	if (!sorted)
		return -ENOMEM;
	d9__json_open(all->json, "findings", '[');
	for (size_t i = 0; i < n; i++)
		d9__report_json_finding(all->json, sorted[i].report->analysis, sorted[i].finding);
	d9__json_close(all->json, ']');
	free(sorted);
	return 0;
}

static void put_workers(struct all *all)
{
	d9__json_open(all->json, "workers", '[');
	for (size_t i = 0; i < all->n; i++)
		for (size_t j = 0; j < all->reports[i].analysis->timeline.n; j++)
			d9__report_json_worker(all->json, &all->reports[i],
					       all->reports[i].workers[j]);
	d9__json_close(all->json, ']');
}

struct callback_of {
	const struct d9__analysis *analysis;
	const struct d9__callback *callback;
};

static int compare_callbacks(const void *left, const void *right)
{
	const struct callback_of *a = left, *b = right;
	uint64_t x = a->callback->durations.sum, y = b->callback->durations.sum;

	if (x != y)
		return x > y ? -1 : 1;
	if (a->analysis->process != b->analysis->process)
		return a->analysis->process < b->analysis->process ? -1 : 1;
	return strcmp(a->callback->location, b->callback->location);
}

static int put_callbacks(struct all *all)
{
	struct callback_of *sorted;
	size_t n = 0, used = 0;

	for (size_t i = 0; i < all->n; i++)
		n += all->reports[i].n_callbacks;
	sorted = calloc(n + 1, sizeof(*sorted));
	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < all->n; i++)
		for (size_t j = 0; j < all->reports[i].n_callbacks; j++)
			sorted[used++] = (struct callback_of){ all->reports[i].analysis,
							       all->reports[i].callbacks[j] };
	qsort(sorted, used, sizeof(*sorted), compare_callbacks);
	d9__json_open(all->json, "callbacks", '[');
	for (size_t i = 0; i < used; i++)
		d9__report_json_callback(all->json, sorted[i].analysis, sorted[i].callback);
	d9__json_close(all->json, ']');
	free(sorted);
	return 0;
}

/* The histogram |get| picks of each process, added up, as quantiles into what is open. */
static int put_sum(struct all *all, const struct d9__histogram *(*get)(const struct d9__analysis *))
{
	struct d9__histogram sum = { 0 };
	int err = 0;

	for (size_t i = 0; i < all->n && !err; i++)
		err = d9__histogram_merge(&sum, get(all->reports[i].analysis));
	d9__report_json_quantiles(all->json, &sum);
	d9__histogram_release(&sum);
	return err;
}

static const struct d9__histogram *delays_of(const struct d9__analysis *a)
{
	return &a->latency.delays;
}

static const struct d9__histogram *lateness_of(const struct d9__analysis *a)
{
	return &a->latency.lateness;
}

static int put_waits(struct all *all)
{
	int err;

	d9__json_open(all->json, "wake_to_poll", '{');
	d9__json_string(all->json, "recorded", d9__coverage_name(coverage_of(all, "wake")));
	err = put_sum(all, delays_of);
	d9__json_close(all->json, '}');
	d9__json_open(all->json, "timers", '{');
	d9__json_string(all->json, "recorded", d9__coverage_name(coverage_of(all, "lateness")));
	d9__json_open(all->json, "lateness", '{');
	if (!err)
		err = put_sum(all, lateness_of);
	d9__json_close(all->json, '}');
	d9__json_close(all->json, '}');
	return err;
}

static int put_processes(struct all *all)
{
	int err = 0;

	d9__json_open(all->json, "processes", '[');
	for (size_t i = 0; i < all->n && !err; i++) {
		d9__json_open(all->json, NULL, '{');
		d9__report_json_process(all->json, all->reports[i].analysis);
		err = d9__report_json_trace(all->json, &all->reports[i]);
		if (!err)
			err = d9__report_json_all(all->json, &all->reports[i]);
		d9__json_close(all->json, '}');
	}
	d9__json_close(all->json, ']');
	return err;
}

static int put_all(struct all *all)
{
	int err = put_trace(all);

	put_capabilities(all);
	if (!err)
		err = put_findings(all);
	put_workers(all);
	if (!err)
		err = put_callbacks(all);
	if (!err)
		err = put_waits(all);
	return err ? err : put_processes(all);
}

int d9__report_json(const struct d9__report *reports, size_t n, const struct d9__report_more *more,
		    FILE *out)
{
	struct d9__json json = { .out = out };
	struct all all = { reports, n, &json };
	int err;

	d9__json_open(&json, NULL, '{');
	d9__json_u64(&json, "version", D9__REPORT_VERSION);
	d9__json_double(&json, "quantile_error", D9__HISTOGRAM_ERROR);
	d9__budget_json(&json);
	if (n == 1) {
		err = d9__report_json_trace(&json, &reports[0]);
		if (!err)
			err = d9__report_json_all(&json, &reports[0]);
	} else {
		err = put_all(&all);
	}
	if (!err && more)
		more->put(more->context, &json);
	d9__json_close(&json, '}');
	return err;
}
