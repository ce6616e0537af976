/* SPDX-License-Identifier: Apache-2.0 */
/* Where the time of loops, callbacks and spans went: what text and JSON both tell, and the table.
 */
#include "config.h"

#include <stdio.h>

#include "report/report_json.h"
#include "report/report_parts.h"
#include "text/json.h"
#include "text/units.h"

struct d9__parts d9__report_parts_of_callback(const struct d9__analysis *a,
				       const struct d9__callback *callback)
{
	return d9__time_parts_of(&callback->time, callback->durations.sum, 0, a->samples.period_ns);
}

/* How long its tasks were registered; at least as long as they ran, since a call may go on after its task ended. */
static uint64_t lives_of(const struct d9__callback *callback)
{
	uint64_t calls_ns = callback->durations.sum;

	return callback->lives_ns > calls_ns ? callback->lives_ns : calls_ns;
}

struct d9__parts d9__report_parts_of_call(const struct d9__analysis *a, const struct d9__stall *stall)
{
	return d9__time_parts_of(&stall->time, stall->total_ns, 0, a->samples.period_ns);
}

struct d9__parts d9__report_parts_of_worker(const struct d9__worker *worker)
{
	return d9__time_parts_of(&worker->time, worker->active_ns + worker->parked_ns,
			    worker->waiting_ns, 0);
}

struct d9__parts d9__report_parts_of_spans(const struct d9__analysis *a, const struct d9__span_name *span)
{
	uint64_t total_ns = span->active_ns + span->idle_ns, in_polls_ns = span->active_in_polls_ns;

	/* Of several threads at once inside the recorder knows better than the sum of their stays.
	 */
	if (in_polls_ns > span->active_ns)
		in_polls_ns = span->active_ns;
	return d9__time_parts_of(&span->time, total_ns, total_ns - in_polls_ns, a->samples.period_ns);
}

/* ---- JSON ---- */

void d9__report_json_ready(struct d9__json *json, const struct d9__analysis *a)
{
	struct d9__ready ready = d9__ready_of(a);

	d9__json_open(json, "ready", '{');
	d9__json_u64(json, "total_ns", ready.ns);
	d9__json_u64(json, "cpu_limit_ns", ready.limit_ns);
	d9__json_u64(json, "host_ns", ready.host_ns);
	d9__json_u64(json, "own_threads_ns", ready.own_ns);
	d9__json_u64(json, "others_ns", ready.others_ns);
	d9__json_u64(json, "unknown_ns", ready.unknown_ns);
	d9__json_close(json, '}');
}

/* Whether loops call |callback| itself.  Functions that a library calls inside its own callbacks have no tasks. */
static bool has_tasks(const struct d9__callback *callback)
{
	return callback->lives_ns || !callback->span;
}

static void put_tasks_time(struct d9__json *json, const struct d9__analysis *a, const struct d9__account *time,
			   uint64_t lives_ns, uint64_t calls_ns)
{
	struct d9__parts parts = d9__time_parts_of(time, lives_ns, lives_ns - calls_ns, a->samples.period_ns);

	d9__time_parts_json(json, &parts, time, true);
}

void d9__report_json_tasks_time(struct d9__json *json, const struct d9__analysis *a, const struct d9__callback *callback)
{
	if (!has_tasks(callback)) {
		d9__json_null(json, "tasks");
		return;
	}
	d9__json_open(json, "tasks", '{');
	put_tasks_time(json, a, &callback->time, lives_of(callback), callback->durations.sum);
	d9__json_close(json, '}');
}

void d9__report_json_all_tasks_time(struct d9__json *json, const struct d9__analysis *a)
{
	struct d9__account time = { 0 };
	uint64_t lives_ns = 0, calls_ns = 0;

	for (size_t i = 0; i < a->callbacks.n; i++) {
		const struct d9__callback *callback = a->callbacks.items[i];

		if (!has_tasks(callback))
			continue;
		d9__time_account_add(&time, &callback->time);
		lives_ns += lives_of(callback);
		calls_ns += callback->durations.sum;
	}
	put_tasks_time(json, a, &time, lives_ns, calls_ns);
}

static void put_gain_of(struct d9__json *json, const char *key, const struct d9__gain_of *gain)
{
	d9__json_open(json, key, '{');
	d9__json_u64(json, "before_ns", gain->before_ns);
	d9__json_u64(json, "after_ns", gain->after_ns);
	d9__json_u64(json, "after_least_ns", gain->after_least_ns);
	d9__json_close(json, '}');
}

void d9__report_json_gain(struct d9__json *json, const struct d9__finding *finding)
{
	char text[160];

	if (!finding->has_gain) {
		d9__json_null(json, "gain");
		return;
	}
	d9__json_open(json, "gain", '{');
	d9__json_string(json, "text", d9__gain_text(&finding->gain, text, sizeof(text)));
	d9__json_u64(json, "waits", finding->gain.waits);
	d9__json_u64(json, "changed", finding->gain.changed);
	put_gain_of(json, "p99", &finding->gain.p99);
	put_gain_of(json, "p999", &finding->gain.p999);
	put_gain_of(json, "longest", &finding->gain.longest);
	d9__json_close(json, '}');
}

/* ---- the table ---- */

static void put_share(struct d9__grid *grid, uint64_t ns, uint64_t total_ns, const char *mark)
{
	char text[D9__UNITS_MAX + 2];

	if (ns == 0) {
		d9__grid_cell(grid, "-", 0);
		return;
	}
	snprintf(text, sizeof(text), "%s%s", d9__units_percent((double)ns / (double)total_ns).text,
		 mark);
	d9__grid_cell(grid, text, 0);
}

static void put_row(struct d9__grid *grid, const struct d9__parts *parts, bool by_period,
		    const char *kind, const char *name)
{
	if (parts->total_ns == 0)
		return;
	d9__grid_cell(grid, d9__units_ns(parts->total_ns).text, 0);
	put_share(grid, parts->on_cpu_ns, parts->total_ns, by_period ? "*" : "");
	put_share(grid, parts->ready_ns, parts->total_ns, "");
	put_share(grid, parts->blocked_ns, parts->total_ns, "");
	put_share(grid, parts->waiting_ns, parts->total_ns, "");
	put_share(grid, parts->unknown_ns, parts->total_ns, "");
	d9__grid_cell(grid, kind, 0);
	d9__grid_cell(grid, name, 0);
}

static void put_workers(struct d9__grid *grid, const struct d9__report *report, size_t rows)
{
	for (size_t i = 0; i < report->analysis->timeline.n && i < rows; i++) {
		const struct d9__worker *worker = report->workers[i];
		const char *name = d9__analysis_worker_name(report->analysis, worker);
		struct d9__parts parts = d9__report_parts_of_worker(worker);
		char text[128];

		snprintf(text, sizeof(text), "%llu%s%s", (unsigned long long)worker->id,
			 name ? " " : "", name ? name : "");
		put_row(grid, &parts, false, "loop", text);
	}
}

/* Whether some has a mark: its parts are those of its active periods, for the most part. */
static bool put_callbacks(struct d9__grid *grid, const struct d9__report *report, size_t rows)
{
	bool any = false;

	for (size_t i = 0; i < report->n_callbacks && i < rows; i++) {
		const struct d9__callback *callback = report->callbacks[i];
		struct d9__parts parts = d9__report_parts_of_callback(report->analysis, callback);
		bool by_period = 2 * callback->time.by_period_ns > parts.total_ns;
		char text[512];

		put_row(grid, &parts, by_period, "callback",
			d9__callback_way(callback, text, sizeof(text)));
		any = any || (by_period && parts.on_cpu_ns);
	}
	return any;
}

static void put_spans(struct d9__grid *grid, const struct d9__report *report, size_t rows)
{
	for (size_t i = 0; i < report->n_spans && i < rows; i++) {
		struct d9__parts parts = d9__report_parts_of_spans(report->analysis, report->spans[i]);

		put_row(grid, &parts, false, "span", report->spans[i]->name);
	}
}

void d9__report_time(const struct d9__report *report, const struct d9__report_style *style,
		     struct d9__page *page)
{
	static const char *const titles[] = { "TIME",	 "ON CPU",  "READY",
					      "BLOCKED", "WAITING", "UNKNOWN" };
	struct d9__grid grid = { .n_columns = 0 };
	bool by_period;

	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		d9__grid_column(&grid, titles[i], false, false);
	d9__grid_column(&grid, "OF", true, false);
	d9__grid_column(&grid, "NAME", true, true);
	d9__grid_spare(&grid, (const char *const[]) { "OF", "WAITING", NULL });
	put_workers(&grid, report, style->top);
	by_period = put_callbacks(&grid, report, style->top);
	put_spans(&grid, report, style->top);
	if (grid.n_cells == 0)
		return;
	d9__page_section(page, "Where time went");
	d9__grid_print(&grid, page);
	if (by_period)
		d9__page_line(
			page,
			"* in sum: its calls are too short for readings of their own, and share "
			"those of the loop's active periods");
}
