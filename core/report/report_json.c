/* SPDX-License-Identifier: Apache-2.0 */
/* The shape is described in core/doc/REPORT-JSON.md: change both, and D9__REPORT_VERSION. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "analyze/hot_threads.h"
#include "report/columns.h"
#include "report/report.h"
#include "report/report_heap.h"
#include "report/report_idle.h"
#include "findings/owners.h"
#include "report/report_json.h"
#include "report/report_parts.h"
#include "text/json.h"
#include "text/units.h"

static void put_capabilities(struct d9__json *json, const struct d9__analysis *a)
{
	d9__json_open(json, "recorded", '{');
	for (size_t i = 0; i < D9__CAPABILITIES; i++)
		d9__report_json_coverage(json, d9__capability_keys[i], a, d9__capability_keys[i]);
	d9__json_close(json, '}');
	d9__json_open(json, "degraded", '[');
	d9__report_json_degraded(json, a);
	d9__json_close(json, ']');
}

void d9__report_json_degraded(struct d9__json *json, const struct d9__analysis *a)
{
	const char *loop;
	size_t len;

	for (size_t i = 0; i < a->metadata.n; i++) {
		const struct d9__metadata_entry *entry = &a->metadata.items[i];

		if (!d9__metadata_key_is(entry->key, "loop.", ".degraded", &loop, &len) ||
		    !entry->value[0])
			continue;
		d9__json_open(json, NULL, '{');
		d9__json_text(json, "loop", loop, len);
		d9__json_string(json, "reasons", entry->value);
		d9__json_u64(json, "process", a->process);
		d9__json_close(json, '}');
	}
}

/* ---- workers ---- */

static void put_kernel_waits(struct d9__json *json, const struct d9__worker *worker)
{
	d9__json_open(json, "kernel_waits", '{');
	d9__json_u64(json, "measured", worker->wait_measured);
	d9__json_u64(json, "over_100ns", worker->waits_over_100ns);
	d9__json_u64(json, "over_1ms", worker->waits_over_1ms);
	d9__report_json_quantiles(json, &worker->waits);
	d9__json_close(json, '}');
}

/* The CPU time that a sample of one stratum stands for. */
static void put_weight(struct d9__json *json, const char *key, const struct d9__weight *weight)
{
	d9__json_open(json, key, '{');
	d9__json_u64(json, "samples", weight->samples);
	d9__json_u64(json, "cpu_ns", weight->cpu_ns);
	d9__json_double(json, "sample_ns", weight->sample_ns);
	d9__json_bool(json, "about", weight->about);
	d9__json_bool(json, "few_samples", weight->few);
	d9__json_bool(json, "lonely", weight->lonely);
	d9__json_close(json, '}');
}

static void put_worker_samples(struct d9__json *json, const struct d9__analysis *a, const struct d9__worker *worker)
{
	d9__json_open(json, "samples", '{');
	d9__json_u64(json, "on_cpu", worker->on_samples);
	d9__json_u64(json, "off_cpu", worker->off_samples);
	d9__json_u64(json, "off_cpu_estimated",
		     d9__off_cpu_estimated(a, worker->off_samples, worker->switches));
	d9__json_u64(json, "polls_with_on_cpu", worker->polls_with_on);
	d9__json_u64(json, "polls_with_off_cpu", worker->polls_with_off);
	put_weight(json, "rounds", &worker->beside.weight);
	put_weight(json, "between", &worker->between);
	put_weight(json, "waits", &worker->waiting);
	d9__json_close(json, '}');
}

void d9__report_json_worker(struct d9__json *json, const struct d9__report *report,
			    const struct d9__worker *worker)
{
	const struct d9__analysis *a = report->analysis;
	struct d9__parts parts = d9__report_parts_of_worker(worker);
	struct d9__worker_row row;

	d9__worker_row(&row, a, worker);
	d9__json_open(json, NULL, '{');
	d9__columns_json(json, d9__worker_columns, NULL, &row);
	d9__time_parts_json(json, &parts, &worker->time, true);
	d9__report_json_account(json, report->analysis, worker,
				&report->findings->owners[worker->number]);
	put_kernel_waits(json, worker);
	put_worker_samples(json, a, worker);
	d9__json_close(json, '}');
}

/* ---- callbacks ---- */

void d9__report_json_callback(struct d9__json *json, const struct d9__analysis *a,
		       const struct d9__callback *callback)
{
	struct d9__parts parts = d9__report_parts_of_callback(a, callback);
	struct d9__callback_row row;

	d9__callback_row(&row, a, callback);
	d9__json_open(json, NULL, '{');
	d9__columns_json(json, d9__callback_columns, NULL, &row);
	d9__time_parts_json(json, &parts, &callback->time, false);
	d9__report_json_tasks_time(json, a, callback);
	d9__json_open(json, "loops_inside", '{');
	d9__json_u64(json, "calls", callback->nested.calls);
	d9__json_u64(json, "ns", callback->nested.ns);
	d9__json_u64(json, "parked_ns", callback->nested.parked_ns);
	d9__json_u64(json, "longest_open_ns", callback->nested.longest_ns);
	d9__json_u64(json, "depth", callback->nested.depth);
	d9__json_close(json, '}');
	d9__columns_json(json, d9__callback_columns, "loops_inside", &row);
	put_weight(json, "sampled", &callback->weight);
	d9__json_open(json, "delays", '{');
	d9__report_json_quantiles(json, &callback->delays);
	d9__json_close(json, '}');
	d9__json_open(json, "lateness", '{');
	d9__report_json_quantiles(json, &callback->lateness);
	d9__json_close(json, '}');
	d9__json_close(json, '}');
}

/* ---- the rest ---- */

static void put_gauge(struct d9__json *json, const char *key, const struct d9__gauge *gauge)
{
	d9__json_open(json, key, '{');
	d9__json_u64(json, "samples", gauge->samples);
	d9__json_u64(json, "max", gauge->max);
	d9__json_double(json, "mean", d9__gauge_mean(gauge));
	d9__json_u64(json, "last", gauge->last);
	d9__json_close(json, '}');
}

static void put_queues(struct d9__json *json, const struct d9__analysis *a)
{
	uint64_t max = 0, sum = 0, polls = 0;

	for (size_t i = 0; i < a->timeline.n; i++) {
		const struct d9__worker *worker = a->timeline.items[i];

		max = worker->local_max > max ? worker->local_max : max;
		sum += worker->local_sum;
		polls += worker->polls;
	}
	d9__json_open(json, "queues", '{');
	put_gauge(json, "global", &a->queue);
	d9__json_open(json, "local", '{');
	d9__report_json_recorded(json, a, "depth");
	d9__json_u64(json, "samples", polls);
	d9__json_u64(json, "max", max);
	d9__json_u64(json, "sum", sum);
	d9__json_double(json, "mean", polls ? (double)sum / (double)polls : 0);
	d9__json_close(json, '}');
	put_gauge(json, "registered_tasks", &a->registered);
	d9__json_close(json, '}');
}

static void put_tasks(struct d9__json *json, const struct d9__analysis *a)
{
	struct d9__tasks_row row = d9__tasks_row(&a->tasks);

	d9__json_open(json, "tasks", '{');
	d9__report_json_recorded(json, a, "task_end");
	d9__columns_json(json, d9__tasks_columns, "recorded", &row);
	d9__report_json_all_tasks_time(json, a);
	d9__json_close(json, '}');
}

static void put_span(struct d9__json *json, const struct d9__analysis *a, const struct d9__span_name *span)
{
	struct d9__parts parts = d9__report_parts_of_spans(a, span);

	d9__json_open(json, NULL, '{');
	d9__columns_json(json, d9__span_name_columns, NULL, span);
	d9__time_parts_json(json, &parts, &span->time, true);
	d9__report_json_quantiles(json, &span->durations);
	d9__json_open(json, "origins", '[');
	for (size_t i = 0; i < span->n; i++) {
		struct d9__span_origin_row row = d9__span_origin_row(span->types[i]);

		d9__json_open(json, NULL, '{');
		d9__columns_json(json, d9__span_origin_columns, NULL, &row);
		d9__report_json_quantiles(json, &row.type->durations);
		d9__columns_json(json, d9__span_origin_columns, "*quantiles*", &row);
		d9__json_close(json, '}');
	}
	d9__json_close(json, ']');
	d9__json_close(json, '}');
}

static void put_thread(struct d9__json *json, const struct d9__analysis *a, const struct d9__hot_thread *thread,
		       const struct d9__hot_function *functions, size_t n)
{
	struct d9__thread_row row = d9__thread_row(a, thread);

	d9__json_open(json, NULL, '{');
	d9__columns_json(json, d9__thread_columns, NULL, &row);
	d9__json_open(json, "functions", '[');
	for (size_t i = 0; i < n; i++) {
		if (functions[i].thread != thread)
			continue;
		d9__json_open(json, NULL, '{');
		d9__columns_json(json, d9__hot_function_columns, NULL, &functions[i]);
		d9__json_close(json, '}');
	}
	d9__json_close(json, ']');
	d9__json_close(json, '}');
}

static void put_threads(struct d9__json *json, const struct d9__analysis *a)
{
	const struct d9__table *threads = &a->samples.threads;
	size_t n;
	struct d9__hot_function *functions =
		d9__hot_functions_on(threads, NULL, a->samples.period_ns, &n);
	struct d9__hot_thread **sorted = d9__hot_threads_sorted(threads);

	d9__json_open(json, "threads", '[');
	for (size_t i = 0; functions && sorted && i < threads->n; i++)
		put_thread(json, a, sorted[i], functions, n);
	d9__json_close(json, ']');
	free(functions);
	free(sorted);
}

static void put_samples(struct d9__json *json, const struct d9__analysis *a)
{
	struct d9__samples_row row = d9__samples_row(a);

	d9__json_open(json, "samples", '{');
	d9__columns_json(json, d9__samples_columns, NULL, &row);
	put_threads(json, a);
	d9__json_close(json, '}');
}

static void put_usage(struct d9__json *json, const struct d9__resource_usage *usage)
{
	static const char *const names[D9__USAGE_FIELDS] = {
		"user_ns",      "system_ns",      "max_rss_bytes",
		"minor_faults", "major_faults",   "block_inputs",
		"block_outputs", "voluntary_switches", "involuntary_switches",
	};

	if (usage->samples == 0) {
		d9__json_null(json, "usage");
		return;
	}
	d9__json_open(json, "usage", '{');
	d9__json_u64(json, "samples", usage->samples);
	d9__json_double(json, "cores_mean", d9__usage_cores(usage));
	d9__json_double(json, "cores_max", usage->cores_max);
	for (unsigned i = 0; i < D9__USAGE_FIELDS; i++)
		d9__json_u64(json, names[i], usage->growth[i]);
	d9__json_close(json, '}');
}

static void put_evidence(struct d9__json *json, const struct d9__analysis *a,
			 const struct d9__evidence *evidence)
{
	d9__json_open(json, NULL, '{');
	d9__json_string(json, "text", evidence->text);
	if (evidence->at_ns)
		d9__report_json_moment(json, a, evidence->at_ns);
	if (evidence->duration_ns)
		d9__json_u64(json, "duration_ns", evidence->duration_ns);
	if (evidence->has_worker)
		d9__json_u64(json, "worker", evidence->worker);
	if (evidence->task)
		d9__json_u64(json, "task", evidence->task);
	if (evidence->callback) {
		d9__report_json_callback_name(json, "name", evidence->callback);
		d9__json_string(json, "location", evidence->callback->location);
		d9__json_string(json, "source", evidence->callback->source);
		d9__json_string(json, "site", d9__callback_site(evidence->callback));
	}
	d9__json_close(json, '}');
}

/* Write the keys that findings and their effects both have; the object stays open. */
static void begin_finding(struct d9__json *json, const struct d9__analysis *a, const struct d9__finding *finding)
{
	d9__json_open(json, NULL, '{');
	d9__json_string(json, "check", finding->check);
	d9__json_string(json, "severity", d9__severity_name(finding->severity));
	d9__json_string(json, "message", finding->message);
	d9__json_string(json, "name", finding->name);
	d9__json_open(json, "evidence", '[');
	for (size_t i = 0; i < finding->n_evidence; i++)
		put_evidence(json, a, &finding->evidence[i]);
	d9__json_close(json, ']');
}

void d9__report_json_finding(struct d9__json *json, const struct d9__analysis *a,
		      const struct d9__finding *finding)
{
	begin_finding(json, a, finding);
	d9__json_u64(json, "process", a->process);
	d9__json_string(json, "brief", finding->brief);
	d9__json_string(json, "figure", finding->figure);
	d9__json_string(json, "source", finding->source);
	d9__json_string(json, "about", finding->machine ? "machine" : "program");
	d9__json_u64(json, "task", finding->task);
	d9__json_open(json, "effects", '[');
	for (size_t i = 0; i < finding->n_effects; i++) {
		begin_finding(json, a, finding->effects[i]);
		d9__json_string(json, "effect", finding->effects[i]->effect);
		d9__json_close(json, '}');
	}
	d9__json_close(json, ']');
	d9__json_string(json, "time", finding->time);
	d9__json_string(json, "on_cpu", finding->hot);
	d9__report_json_gain(json, finding);
	d9__json_string(json, "blocked", finding->blocked);
	d9__json_string(json, "advice", finding->advice);
	d9__json_close(json, '}');
}

int d9__report_json_all(struct d9__json *json, const struct d9__report *report)
{
	const struct d9__analysis *a = report->analysis;
	int err;

	put_capabilities(json, a);
	d9__json_open(json, "findings", '[');
	for (size_t i = 0; i < report->findings->n; i++)
		d9__report_json_finding(json, a, report->findings->items[i]);
	d9__json_close(json, ']');
	d9__json_open(json, "workers", '[');
	for (size_t i = 0; i < a->timeline.n; i++)
		d9__report_json_worker(json, report, report->workers[i]);
	d9__json_close(json, ']');
	d9__json_open(json, "callbacks", '[');
	for (size_t i = 0; i < report->n_callbacks; i++)
		d9__report_json_callback(json, a, report->callbacks[i]);
	d9__json_close(json, ']');
	err = d9__report_json_polls(json, a);
	d9__report_json_wakes(json, a);
	d9__report_json_timers(json, a);
	put_queues(json, a);
	put_tasks(json, a);
	d9__json_open(json, "spans", '[');
	for (size_t i = 0; i < report->n_spans; i++)
		put_span(json, a, report->spans[i]);
	d9__json_close(json, ']');
	if (!err)
		err = d9__report_json_blocked(json, a);
	put_samples(json, a);
	if (!err)
		err = d9__report_json_idle(json, &a->idle);
	err = err ? err : d9__report_json_heap(json, a);
	d9__report_json_ready(json, a);
	put_usage(json, &a->usage);
	return err;
}
