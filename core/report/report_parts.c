/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/report_parts.h"
#include "text/units.h"

const char *d9__report_program(const struct d9__analysis *a)
{
	const char *service = d9__metadata_value(&a->metadata, "service");

	return service ? service : "";
}

const char *d9__report_pid(const struct d9__analysis *a)
{
	const char *pid = d9__metadata_value(&a->metadata, "pid");

	if (!pid && !a->processes)
		return "";
	return pid ? pid : d9__process_label(&a->processes->items[a->process]);
}

bool d9__report_tells_hooks(const struct d9__metadata *metadata)
{
	const char *middle;
	size_t len;

	for (size_t i = 0; i < metadata->n; i++)
		if (d9__metadata_key_is(metadata->items[i].key, "loop.", ".capabilities", &middle,
					&len))
			return true;
	return false;
}

/* ---- several processes ---- */

/* The worst first: the gravest findings, then the busiest. */
static int compare_ranked(const void *left, const void *right)
{
	const struct d9__ranked_process *a = left, *b = right;
	const struct d9__findings *x = a->report->findings, *y = b->report->findings;

	for (unsigned i = 0; i < D9__INFO; i++)
		if (x->by_severity[i] != y->by_severity[i])
			return x->by_severity[i] > y->by_severity[i] ? -1 : 1;
	if (a->busy_ns != b->busy_ns)
		return a->busy_ns > b->busy_ns ? -1 : 1;
	if (!a->busy_ns && a->sampled_ns != b->sampled_ns)
		return a->sampled_ns > b->sampled_ns ? -1 : 1;
	return a->report < b->report ? -1 : a->report > b->report;
}

struct d9__ranked_process *d9__report_rank(const struct d9__report_all *all)
{
	struct d9__ranked_process *ranked = calloc(all->n, sizeof(*ranked));

	for (size_t i = 0; ranked && i < all->n; i++) {
		const struct d9__timeline *timeline = &all->reports[i].analysis->timeline;
		const struct d9__samples *samples = &all->reports[i].analysis->samples;

		ranked[i].sampled_ns = samples->on * samples->period_ns;
		ranked[i].report = &all->reports[i];
		for (size_t j = 0; j < timeline->n; j++) {
			const struct d9__worker *worker = timeline->items[j];

			ranked[i].calls += worker->polls - worker->resumptions;
			ranked[i].busy_ns += worker->poll_ns;
		}
	}
	if (ranked)
		qsort(ranked, all->n, sizeof(*ranked), compare_ranked);
	else
		all->page->err = -ENOMEM;
	return ranked;
}

/* Whether a loop ran in any of them: else samples are all that there is. */
static bool any_loop(const struct d9__report_all *all)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->reports[i].analysis->timeline.n)
			return true;
	return false;
}

static void process_row(const struct d9__report_all *all, struct d9__grid *grid,
			const struct d9__ranked_process *ranked)
{
	const struct d9__analysis *a = ranked->report->analysis;
	const char *pid = d9__metadata_value(&a->metadata, "pid");
	const size_t *by_severity = ranked->report->findings->by_severity;
	uint64_t start_ns = d9__analysis_start_ns(a);
	static const char *const names[D9__SEVERITIES] = { "critical", "warning", "note" };
	char findings[64] = "-";
	unsigned worst = 0;

	while (worst < D9__SEVERITIES && !by_severity[worst])
		worst++;
	if (worst < D9__SEVERITIES)
		snprintf(findings, sizeof(findings), "%zu %s%s", by_severity[worst], names[worst],
			 worst == D9__CRITICAL || by_severity[worst] == 1 ? "" : "s");
	d9__grid_cell(grid, pid ? pid : "-", 0);
	d9__grid_cell(grid, d9__report_program(a), 0);
	d9__grid_cell(grid, d9__units_offset(d9__analysis_start_ns(all->first), start_ns).text, 0);
	d9__grid_cell(grid, d9__units_ns(d9__analysis_end_ns(a) - start_ns).text, 0);
	if (any_loop(all)) {
		d9__grid_cell(grid, d9__units_count(ranked->calls).text, 0);
		d9__grid_cell(grid, d9__units_ns(ranked->busy_ns).text, 0);
	} else {
		d9__grid_cell(grid, d9__units_ns(ranked->sampled_ns).text, 0);
	}
	d9__grid_cell(grid, findings, 0);
	d9__grid_cell(grid, a->processes->items[a->process].folder, 0);
}

void d9__report_processes(const struct d9__report_all *all, const struct d9__ranked_process *ranked,
			  size_t rows)
{
	struct d9__grid grid = { .n_columns = 0 };

	d9__page_section(all->page, "Processes, worst first");
	d9__grid_column(&grid, "PID", false, false);
	d9__grid_column(&grid, "PROGRAM", true, false);
	d9__grid_column(&grid, "FROM", false, false);
	d9__grid_column(&grid, "LENGTH", false, false);
	if (any_loop(all))
		d9__grid_column(&grid, "CALLS", false, false);
	d9__grid_column(&grid, any_loop(all) ? "IN CALLS" : "CPU", false, false);
	d9__grid_column(&grid, "FINDINGS", false, false);
	d9__grid_column(&grid, "TRACE", true, true);
	d9__grid_spare(&grid, (const char *const[]){ "FROM", "CALLS", "LENGTH", "PROGRAM", NULL });
	for (size_t i = 0; i < all->n && i < rows; i++)
		process_row(all, &grid, &ranked[i]);
	d9__grid_print(&grid, all->page);
	if (rows < all->n)
		d9__page_line(all->page, "and %zu more processes (-v shows all)", all->n - rows);
}
