/* SPDX-License-Identifier: Apache-2.0 */
/* Section of the text report: where threads were, by stack samples. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/hot_threads.h"
#include "report/report_cells.h"
#include "report/report_parts.h"

/* "worker-1 4711", and which loops' thread it is. */
static void cell_thread(struct d9__grid *grid, const struct d9__hot_thread *thread)
{
	char text[96];

	snprintf(text, sizeof(text), "%s%s%u", thread->name, thread->name[0] ? " " : "", thread->tid);
	if (thread->worker)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), ", worker %" PRIu64, thread->worker->id);
	d9__grid_cell(grid, text, 0);
}

static void cell_function(struct d9__grid *grid, const struct d9__hot_function *function)
{
	const struct d9__frame_name *frame = &function->frame;
	char place[512] = "", *text;

	if (frame->file && frame->line)
		snprintf(place, sizeof(place), " %s:%u", frame->file, frame->line);
	else if (frame->file || frame->module)
		snprintf(place, sizeof(place), " (%s)", frame->file ? frame->file : frame->module);
	if (asprintf(&text, "%s%s%s%s", frame->function ? frame->function : "(no name)", place,
		     function->inside ? ", in " : "", function->inside ? function->inside : "") < 0) {
		grid->failed = true;
		return;
	}
	d9__grid_cell(grid, text, frame->function ? strlen(frame->function) : 0);
	free(text);
}

/* "~12.3 ms": for the most part an estimate. */
static void cell_time(struct d9__grid *grid, const struct d9__hot_function *function)
{
	char text[D9__UNITS_MAX + 2];

	snprintf(text, sizeof(text), "%s%s", 2 * function->about_ns > function->ns ? "~" : "",
		 d9__units_ns(function->ns).text);
	d9__grid_cell(grid, text, 0);
}

/* The CPU time of |n| functions. */
static uint64_t total_ns(const struct d9__hot_function *functions, size_t n)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < n; i++)
		ns += functions[i].ns;
	return ns;
}

/* Whether the time of samples is known, and not only how many they are. */
static bool is_timed(const struct d9__analysis *a, bool off_cpu)
{
	return off_cpu ? d9__off_time_ns(&a->samples.off_time, d9__analysis_switch_share(a)) > 0
		       : a->samples.period_ns > 0;
}

/* A callback that no sample met. */
static void cell_lonely(struct d9__grid *grid, const struct d9__callback *callback)
{
	char way[512], text[540];

	d9__grid_cell(grid, "", 0);
	d9__callback_way(callback, way, sizeof(way));
	snprintf(text, sizeof(text), "%s [no stack]", way);
	d9__grid_cell(grid, text, strlen(way));
}

/* |all|: of all functions, time if the trace tells it, else samples. */
static void function_row(const struct d9__section *c, struct d9__grid *grid,
			 const struct d9__hot_function *function, bool off_cpu, uint64_t all)
{
	bool timed = is_timed(c->a, off_cpu);

	if (timed)
		cell_time(grid, function);
	if (!timed || off_cpu)
		d9__report_cell(grid, d9__units_count(function->n));
	d9__report_cell(grid, d9__units_percent((double)(timed ? function->ns : function->n) /
						(double)(all ? all : 1)));
	if (function->callback) {
		cell_lonely(grid, function->callback);
		return;
	}
	cell_thread(grid, function->thread);
	cell_function(grid, function);
}

/* ": calls that blocked, switches": what samples off the CPU are of, as far as the trace tells. */
static void describe_off_cpu(const struct d9__analysis *a, char *buf, size_t size)
{
	const char *blocking = d9__metadata_value(&a->metadata, "source.blocking");
	bool blocked = blocking && !strncmp(blocking, "on", 2);

	snprintf(buf, size, "%s%s", blocked ? ": calls that blocked" : "",
		 d9__analysis_switch_share(a) == 1 ? "" : blocked ? ", switches" : ": switches");
}

static void threads_title(struct d9__section *c, bool off_cpu)
{
	char title[160], of[96] = "";

	if (off_cpu)
		describe_off_cpu(c->a, of, sizeof(of));
	snprintf(title, sizeof(title), "Where threads %s the CPU, by samples%s", off_cpu ? "left" : "were on", of);
	d9__page_section(c->page, title);
}

/* Columns of the time, if it is known, and of how often; and the share, of the time if it is known.
 */
static void add_columns(struct d9__grid *grid, const struct d9__analysis *a, bool off_cpu)
{
	bool timed = is_timed(a, off_cpu);

	if (timed)
		d9__grid_column(grid, off_cpu ? "TIME" : "CPU", false, false);
	if (off_cpu || !timed)
		d9__grid_column(grid,
				timed						 ? "TIMES"
				: off_cpu && d9__analysis_switch_share(a) != 1 ? "ABOUT"
									 : "SAMPLES",
				false, false);
	d9__grid_column(grid, "SHARE", false, false);
	d9__grid_column(grid, "THREAD", true, false);
	d9__grid_column(grid, "FUNCTION", true, true);
}

/* "switches: 1,000 measured in 1 % of the time, scaled to 100,000" */
static void tell_scale(struct d9__section *c)
{
	const struct d9__samples *samples = &c->a->samples;
	double share = d9__analysis_switch_share(c->a);

	if (share < 1)
		d9__page_line(c->page, "switches: %s measured in %s of the time, scaled to %s",
			      d9__units_count(samples->switches).text, d9__units_percent(share).text,
			      d9__units_count(d9__samples_estimate(samples->switches, samples->switches, share)).text);
}

static void threads_table(struct d9__section *c, bool off_cpu, size_t rows)
{
	const struct d9__table *threads = &c->a->samples.threads;
	size_t n;
	struct d9__hot_function *functions =
		off_cpu ? d9__hot_functions_off(threads, d9__analysis_switch_share(c->a), &n)
			: d9__hot_functions_on(threads, &c->a->callbacks, c->a->samples.period_ns,
					       &n);
	struct d9__grid grid = { .n_columns = 0 };
	uint64_t all =
		off_cpu ? d9__off_cpu_estimated(c->a, c->a->samples.off, c->a->samples.switches)
			: c->a->samples.on;

	if (!functions) {
		c->page->err = -ENOMEM;
		return;
	}
	if (is_timed(c->a, off_cpu))
		all = total_ns(functions, n);
	if (n)
		threads_title(c, off_cpu);
	if (n && off_cpu)
		tell_scale(c);
	add_columns(&grid, c->a, off_cpu);
	for (size_t i = 0; i < n && i < rows; i++)
		function_row(c, &grid, &functions[i], off_cpu, all);
	d9__grid_print(&grid, c->page);
	d9__report_section_more(c, rows < n ? rows : n, n, "functions");
	free(functions);
}

void d9__report_threads(const struct d9__report *report, const struct d9__report_style *style, struct d9__page *page,
			size_t rows)
{
	threads_table(&(struct d9__section){ report, report->analysis, style, page }, false, rows);
}

void d9__report_section_samples(struct d9__section *c)
{
	const struct d9__samples *samples = &c->a->samples;

	if (samples->on + samples->off == 0)
		return;
	d9__page_section(c->page, "Stack samples");
	d9__page_line(c->page, "%s on the CPU (%s in callbacks), %s off the CPU (%s in callbacks)",
			d9__units_count(samples->on).text,
			d9__units_count(samples->on_in_polls).text,
			d9__units_count(samples->off).text,
			d9__units_count(samples->off_in_polls).text);
	threads_table(c, false, c->style->top);
	threads_table(c, true, c->style->top);
}
