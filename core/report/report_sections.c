/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "report/report_cells.h"
#include "report/report_heap.h"
#include "report/report_idle.h"
#include "report/report_parts.h"
#include "text/units.h"

/* ---- workers ---- */

static void put_workers(struct d9__section *c)
{
	static const char *const headings[] = { "ID",	 "NAME",  "BUSY",   "CALLS",
						"PARKS", "AWAKE", "PARKED", "ON CPU" };
	static const char *const of_calls[] = { "P99", "LONGEST" }, *const of_thread[] = { "TID" };
	static const char *const of_parks[] = { "BUSY", "PARKS", "AWAKE", "PARKED", NULL };
	const struct d9__timeline *timeline = &c->a->timeline;
	size_t n = d9__report_section_shown(c, timeline->n);
	bool parks = d9__report_section_records(c, "park"), wide = c->page->width >= D9__WIDE;
	struct d9__grid grid = { .n_columns = 0 };

	if (n == 0)
		return;
	d9__page_section(c->page, "Workers");
	d9__report_cells_begin(&grid, d9__worker_columns, headings, 8);
	d9__report_cells_begin(&grid, d9__quantile_columns, of_calls, wide ? 2 : 0);
	d9__report_cells_begin(&grid, d9__worker_columns, of_thread, wide);
	d9__grid_spare(&grid, (const char *const[]){ "AWAKE", "PARKED", "PARKS", "ON CPU", NULL });
	for (size_t i = 0; i < n; i++) {
		const struct d9__worker *worker = c->report->workers[i];
		struct d9__quantiles calls = d9__quantiles_of(&worker->calls);
		struct d9__worker_row row;

		d9__worker_row(&row, c->a, worker);
		d9__report_cells(&grid, d9__worker_columns, headings, 8, &row,
				 parks && worker->active_ns + worker->parked_ns ? NULL : of_parks);
		d9__report_cells(&grid, d9__quantile_columns, of_calls, wide ? 2 : 0, &calls, NULL);
		d9__report_cells(&grid, d9__worker_columns, of_thread, wide, &row, NULL);
	}
	d9__grid_print(&grid, c->page);
	d9__report_section_more(c, n, timeline->n, "workers");
}

/* ---- callbacks ---- */

static uint64_t sum_of_calls(const struct d9__analysis *a)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < a->timeline.n; i++)
		ns += a->timeline.items[i]->calls.sum;
	return ns;
}

/*
 * Whether the kernel stretched some of the first |n| callbacks by a twentieth or more: findings tell the
 * callback's own time, tables what passed.
 */
static bool were_preempted(const struct d9__section *c, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (c->report->callbacks[i]->taken_ns > c->report->callbacks[i]->durations.sum / 20)
			return true;
	return false;
}

static void callbacks_table(struct d9__section *c, size_t rows)
{
	static const char *const headings[] = { "TOTAL",   "CALLS", "P50", "P99",
						"LONGEST", "SHARE", "KIND" };
	static const char *const places[] = { "SOURCE", "MADE AT" };
	size_t n = c->report->n_callbacks < rows ? c->report->n_callbacks : rows;
	size_t shown = c->page->width < D9__WIDE ? 5 : 7;
	size_t told = c->page->width < D9__VERY_WIDE ? 0 : 2;
	struct d9__grid grid = { .n_columns = 0 };
	uint64_t all_ns = sum_of_calls(c->a);
	struct d9__callback_row row;

	if (n == 0)
		return;
	d9__page_section(c->page, were_preempted(c, n) ? "Callbacks by time, preempted included"
						       : "Callbacks by total time");
	d9__report_cells_begin(&grid, d9__callback_columns, headings, shown);
	d9__grid_column(&grid, "CALLBACK", true, true);
	d9__report_cells_begin(&grid, d9__callback_columns, places, told);
	d9__grid_spare(&grid, (const char *const[]){ "P50", "P99", NULL });
	for (size_t i = 0; i < n; i++) {
		d9__callback_row(&row, c->a, c->report->callbacks[i]);
		row.share = all_ns ? (double)row.calls.sum_ns / (double)all_ns : 0;
		d9__report_cells(&grid, d9__callback_columns, headings, shown, &row, NULL);
		d9__report_cell_callback(&grid, row.callback, !told);
		d9__report_cells(&grid, d9__callback_columns, places, told, &row, NULL);
	}
	d9__grid_print(&grid, c->page);
	d9__report_section_more(c, n, c->report->n_callbacks, "callbacks");
}

static void put_callbacks(struct d9__section *c)
{
	callbacks_table(c, c->style->top);
}

void d9__report_callbacks(const struct d9__report *report, const struct d9__report_style *style,
			  struct d9__page *page, size_t rows)
{
	callbacks_table(&(struct d9__section){ report, report->analysis, style, page }, rows);
}

/* Most of the time it could have run, and others did. */
static bool was_held(const struct d9__stall *stall)
{
	return 2 * stall->run_queue_ns >= stall->total_ns;
}

static const char *time_of(const struct d9__stall *stall)
{
	static const char *const verdicts[] = { "-", "on CPU", "off CPU", "mixed" };

	if (was_held(stall))
		return "preempted";
	return verdicts[d9__stall_verdict(stall)];
}

static void put_longest(struct d9__section *c)
{
	size_t n = d9__report_section_shown(c, c->a->stalls.n);
	struct d9__grid grid = { .n_columns = 0 };
	bool held = false, several = false;

	if (n == 0)
		return;
	for (size_t i = 0; i < n; i++)
		several |= c->a->stalls.items[i].stall->culprit_runs > 1;
	d9__page_section(c->page, "Longest calls");
	d9__report_cell_columns(&grid, (const char *const[]){ "TOOK", "AT", "WORKER", NULL });
	d9__grid_column(&grid, "TIME", true, false);
	d9__grid_column(&grid, "WAITED", false, false);
	if (several)
		d9__grid_column(&grid, "CALLS", false, false);
	d9__grid_column(&grid, "CALLBACK", true, true);
	d9__grid_spare(&grid, (const char *const[]){ "WAITED", "WORKER", "AT", NULL });
	for (size_t i = 0; i < n; i++) {
		const struct d9__stall *stall = c->a->stalls.items[i].stall;

		d9__report_cell(&grid, d9__units_ns(stall->culprit_ns));
		d9__report_cell(&grid, d9__units_offset(d9__analysis_start_ns(c->a), stall->start_ns));
		d9__report_cell_id(&grid, stall->worker);
		d9__grid_cell(&grid, time_of(stall), 0);
		d9__report_cell(&grid, d9__units_count(stall->waited));
		if (several)
			d9__report_cell(&grid, d9__units_count(stall->culprit_runs));
		d9__report_cell_callback(&grid, stall->culprit, true);
		held |= was_held(stall);
	}
	d9__grid_print(&grid, c->page);
	if (held)
		d9__page_line(c->page, "preempted: for half of the time or more it was ready to run, and other "
				       "threads had the CPUs, or a CPU limit held it back");
	if (several)
		d9__page_line(c->page, "CALLS: so many, which one call of a library made in a row");
}

static void put_queues(struct d9__section *c)
{
	const struct d9__timeline *timeline = &c->a->timeline;
	const struct d9__gauge *queue = &c->a->queue, *registered = &c->a->registered;
	unsigned local = 0;

	for (size_t i = 0; i < timeline->n; i++)
		if (timeline->items[i]->local_max > local)
			local = timeline->items[i]->local_max;
	d9__page_section(c->page, "Queues");
	if (d9__report_section_records(c, "depth"))
		d9__page_line(c->page, "ready callbacks in a round: %u%s at most", local,
				local == 255 ? " or more" : "");
	else
		d9__page_line(c->page, "ready callbacks in a round: not recorded");
	if (queue->samples)
		d9__page_line(c->page,
				"handed over by other threads: %" PRIu64 "%s at most, %.2f on average",
				queue->max, queue->max == 255 ? " or more" : "",
				d9__gauge_mean(queue));
	if (registered->samples)
		d9__page_line(c->page, "registered tasks of a loop: %" PRIu64 " at most",
				registered->max);
}

/* ---- tasks ---- */

static int compare_alive(const void *left, const void *right)
{
	const struct d9__callback *a = *(const struct d9__callback *const *)left;
	const struct d9__callback *b = *(const struct d9__callback *const *)right;

	if (a->peak_alive != b->peak_alive)
		return a->peak_alive > b->peak_alive ? -1 : 1;
	return a->spawned > b->spawned ? -1 : a->spawned < b->spawned;
}

static void put_task_makers(struct d9__section *c)
{
	static const char *const headings[] = { "PEAK", "AT END", "MADE", "ENDED" };
	size_t all = c->report->n_callbacks, n = d9__report_section_shown(c, all), with = 0;
	const struct d9__callback **sorted = d9__report_section_sorted(c, compare_alive);
	struct d9__grid grid = { .n_columns = 0 };
	struct d9__callback_row row;

	if (!sorted)
		return;
	d9__report_cells_begin(&grid, d9__callback_columns, headings, 4);
	d9__grid_column(&grid, "CALLBACK", true, true);
	d9__grid_spare(&grid, (const char *const[]){ "ENDED", "PEAK", NULL });
	for (size_t i = 0; i < all; i++) {
		if (!sorted[i]->spawned || with++ >= n)
			continue;
		d9__callback_row(&row, c->a, sorted[i]);
		d9__report_cells(&grid, d9__callback_columns, headings, 4, &row, NULL);
		d9__report_cell_callback(&grid, sorted[i], true);
	}
	d9__grid_print(&grid, c->page);
	d9__report_section_more(c, n, with, "callbacks");
	free(sorted);
}

static void put_tasks(struct d9__section *c)
{
	const struct d9__tasks *tasks = &c->a->tasks;
	struct d9__tasks_row row = d9__tasks_row(tasks);

	if (tasks->spawned + tasks->at_start == 0)
		return;
	d9__page_section(c->page, "Tasks");
	d9__page_line(c->page,
		      "%s made, %s ended, %s before the trace; at most %s at once, %s at the end",
		      d9__units_count(tasks->spawned).text, d9__units_count(tasks->ended).text,
		      d9__units_count(tasks->at_start).text,
		      d9__units_count((uint64_t)row.peak).text,
		      d9__units_count((uint64_t)row.at_end).text);
	if (d9__metadata_coverage(&c->a->metadata, "task_end") != D9__COVERAGE_FULL)
		d9__page_line(c->page, "some ends are not visible: dial9 info tells what the hooks see");
	put_task_makers(c);
}

/* ---- the process ---- */

static void put_kernel_waits(struct d9__section *c)
{
	const struct d9__timeline *timeline = &c->a->timeline;
	struct d9__grid grid = { .n_columns = 0 };
	size_t n = 0;

	d9__report_cell_columns(&grid, (const char *const[]){ "WORKER", "LONGEST", "P50",
						     "ABOVE 0", "OVER 1 MS", NULL });
	d9__grid_spare(&grid, (const char *const[]){ "ABOVE 0", "P50", NULL });
	for (size_t i = 0; i < timeline->n; i++) {
		const struct d9__worker *worker = timeline->items[i];

		if (worker->waits.count == 0 || n++ >= c->style->top)
			continue;
		d9__report_cell_id(&grid, worker->id);
		d9__report_cell(&grid, d9__units_ns(worker->waits.max));
		d9__report_cell(&grid, d9__units_ns(d9__histogram_quantile(&worker->waits, 0.5)));
		d9__report_cell(&grid, d9__units_count(worker->waits.count));
		d9__report_cell(&grid, d9__units_count(worker->waits_over_1ms));
	}
	if (n)
		d9__page_section(c->page, "Waits for a CPU after a wake-up (run queue)");
	d9__grid_print(&grid, c->page);
}

static void put_usage(struct d9__section *c)
{
	const struct d9__resource_usage *usage = &c->a->usage;
	const uint64_t *growth = usage->growth;
	const char *parallelism =
		d9__metadata_value(&c->a->metadata, "process.available_parallelism");

	if (usage->samples < 2)
		return;
	d9__page_section(c->page, "Process");
	d9__page_line(c->page,
			"CPU %.2f cores on average, %.2f at most%s%s; user %s, system %s",
			d9__usage_cores(usage), usage->cores_max, parallelism ? ", of " : "",
			parallelism ? parallelism : "", d9__units_ns(growth[D9__USAGE_USER_NS]).text,
			d9__units_ns(growth[D9__USAGE_SYSTEM_NS]).text);
	d9__page_line(c->page,
			"memory %s at most; page faults %s minor, %s major; switches %s voluntary, %s "
			"forced",
			d9__units_bytes(growth[D9__USAGE_MAX_RSS_BYTES]).text,
			d9__units_count(growth[D9__USAGE_MINOR_FAULTS]).text,
			d9__units_count(growth[D9__USAGE_MAJOR_FAULTS]).text,
			d9__units_count(growth[D9__USAGE_VOLUNTARY_SWITCHES]).text,
			d9__units_count(growth[D9__USAGE_INVOLUNTARY_SWITCHES]).text);
}

static void put_blocking(struct d9__section *c)
{
	d9__report_blocked(c->report, c->style, c->page);
}

static void put_idle(struct d9__section *c)
{
	d9__report_idle(&c->a->idle, c->style->top, c->page);
}

static void put_spans(struct d9__section *c)
{
	static const char *const headings[] = { "BUSY", "IDLE", "COUNT" }, *const name[] = {
		"NAME"
	};
	static const char *const of_spans[] = { "P50", "P99", "LONGEST" };
	size_t n = d9__report_section_shown(c, c->report->n_spans);
	struct d9__grid grid = { .n_columns = 0 };

	if (n == 0)
		return;
	d9__page_section(c->page, "Spans");
	d9__report_cells_begin(&grid, d9__span_name_columns, headings, 3);
	d9__report_cells_begin(&grid, d9__quantile_columns, of_spans, 3);
	d9__report_cells_begin(&grid, d9__span_name_columns, name, 1);
	d9__grid_spare(&grid, (const char *const[]){ "IDLE", "P50", "P99", NULL });
	for (size_t i = 0; i < n; i++) {
		const struct d9__span_name *span = c->report->spans[i];
		struct d9__quantiles lengths = d9__quantiles_of(&span->durations);

		d9__report_cells(&grid, d9__span_name_columns, headings, 3, span, NULL);
		d9__report_cells(&grid, d9__quantile_columns, of_spans, 3, &lengths, NULL);
		d9__report_cells(&grid, d9__span_name_columns, name, 1, span, NULL);
	}
	d9__grid_print(&grid, c->page);
	d9__report_section_more(c, n, c->report->n_spans, "span names");
}

static void put_custom_events(struct d9__section *c)
{
	size_t all, with = 0;
	struct d9__named_count *counts = d9__reports_counts(c->report, 1, &all);
	struct d9__grid grid = { .n_columns = 0 };

	if (!counts) {
		c->page->err = -ENOMEM;
		return;
	}
	d9__grid_column(&grid, "COUNT", false, false);
	d9__grid_column(&grid, "EVENT", true, true);
	for (size_t i = 0; i < all; i++) {
		if (counts[i].kind != D9_EVENT_CUSTOM || with++ >= c->style->top)
			continue;
		d9__report_cell(&grid, d9__units_count(counts[i].events));
		d9__grid_cell(&grid, counts[i].name, 0);
	}
	if (with)
		d9__page_section(c->page, "Events of the program, and of adapters");
	d9__grid_print(&grid, c->page);
	d9__report_section_more(c, d9__report_section_shown(c, with), with, "names");
	free(counts);
}

/* ---- by name ---- */

static void put_memory(struct d9__section *c)
{
	d9__report_heap(c->a, c->style->top, c->page);
}

static void put_time(struct d9__section *c)
{
	d9__report_time(c->report, c->style, c->page);
}

static void put_process(struct d9__section *c)
{
	put_kernel_waits(c);
	put_usage(c);
}

/*
 * Bit i is section i.  The first two are printed where all processes are known, in report_text.c.
 */
static const struct {
	const char *name;
	bool of_loops; /* nothing to say without one */
	void (*put)(struct d9__section *c);
} sections[] = {
	{ "data", false, NULL },
	{ "findings", false, NULL },
	{ "workers", true, put_workers },
	{ "callbacks", true, put_callbacks },
	{ "time", true, put_time },
	{ "longest", true, put_longest },
	{ "wakes", true, d9__report_section_waits },
	{ "timers", true, d9__report_section_timers },
	{ "queues", true, put_queues },
	{ "tasks", false, put_tasks },
	{ "process", false, put_process },
	{ "blocking", true, put_blocking },
	{ "samples", false, d9__report_section_samples },
	{ "idle", false, put_idle },
	{ "memory", false, put_memory },
	{ "spans", false, put_spans },
	{ "events", false, put_custom_events },
};
#define SECTIONS (sizeof(sections) / sizeof(sections[0]))

unsigned d9__report_section(const char *name)
{
	for (size_t i = 0; i < SECTIONS; i++)
		if (!strcmp(sections[i].name, name))
			return 1u << i;
	return 0;
}

const char *d9__report_section_name(size_t i)
{
	return i < SECTIONS ? sections[i].name : NULL;
}

/* Section |i|, which was asked for: that it is empty is an answer. */
static void put_named(struct d9__section *c, size_t i)
{
	FILE *out = c->page->out;
	char *text = NULL;
	size_t size = 0;

	c->page->out = open_memstream(&text, &size);
	if (!c->page->out) {
		c->page->out = out;
		c->page->err = -ENOMEM;
		return;
	}
	if (c->a->timeline.n || !sections[i].of_loops)
		sections[i].put(c);
	if (fclose(c->page->out))
		c->page->err = -ENOMEM;
	c->page->out = out;
	if (size)
		fwrite(text, 1, size, out);
	else
		d9__page_printf(c->page, "%s: nothing of it in this trace\n", sections[i].name);
	free(text);
}

void d9__report_sections(const struct d9__report *report, const struct d9__report_style *style,
			 struct d9__page *page)
{
	struct d9__section c = { report, report->analysis, style, page };

	for (size_t i = 0; i < SECTIONS; i++) {
		if (!sections[i].put)
			continue;
		if (style->sections & 1u << i)
			put_named(&c, i);
		else if (!style->sections && (c.a->timeline.n || !sections[i].of_loops))
			sections[i].put(&c);
	}
}
