/* SPDX-License-Identifier: Apache-2.0 */
/* Sections of the text report: callbacks that were ready and waited to run, and timers that ran late. */
#include "config.h"

#include <stdlib.h>

#include "report/report_cells.h"
#include "report/report_parts.h"

static int compare_delays(const void *left, const void *right)
{
	const struct d9__callback *a = *(const struct d9__callback *const *)left;
	const struct d9__callback *b = *(const struct d9__callback *const *)right;

	return a->delays.max > b->delays.max ? -1 : a->delays.max < b->delays.max;
}

static int compare_lateness(const void *left, const void *right)
{
	const struct d9__callback *a = *(const struct d9__callback *const *)left;
	const struct d9__callback *b = *(const struct d9__callback *const *)right;

	return a->lateness.max > b->lateness.max ? -1 : a->lateness.max < b->lateness.max;
}

/* The callbacks that waited longest (|late|: timers that ran latest). */
static void put_waiters(struct d9__section *c, bool late)
{
	static const char *const headings[] = { "LONGEST", "P99", "P50", "CALLS" };
	size_t all = c->report->n_callbacks, n = d9__report_section_shown(c, all), with = 0;
	const struct d9__callback **sorted = d9__report_section_sorted(c, late ? compare_lateness : compare_delays);
	struct d9__grid grid = { .n_columns = 0 };
	struct d9__quantiles quantiles;

	if (!sorted)
		return;
	d9__report_cells_begin(&grid, d9__quantile_columns, headings, 4);
	d9__grid_column(&grid, "CALLBACK", true, true);
	d9__grid_spare(&grid, (const char *const[]){ "P50", "P99", NULL });
	for (size_t i = 0; i < all; i++) {
		const struct d9__histogram *h = late ? &sorted[i]->lateness : &sorted[i]->delays;

		if (!h->count || with++ >= n)
			continue;
		quantiles = d9__quantiles_of(h);
		d9__report_cells(&grid, d9__quantile_columns, headings, 4, &quantiles, NULL);
		d9__report_cell_callback(&grid, sorted[i], true);
	}
	d9__grid_print(&grid, c->page);
	d9__report_section_more(c, n, with, "callbacks");
	free(sorted);
}

void d9__report_section_waits(struct d9__section *c)
{
	const struct d9__latency *latency = &c->a->latency;

	d9__page_section(c->page, "Waits from ready to running");
	if (!d9__report_section_records(c, "wake")) {
		d9__page_line(c->page, "not recorded");
		return;
	}
	if (latency->delays.count == 0) {
		d9__page_line(c->page, "none: %s wakes",
				d9__units_count(latency->wakes).text);
		return;
	}
	d9__report_section_quantiles(c, "waits", &latency->delays);
	d9__page_line(c->page, "over 100 us: %s, over 1 ms: %s, over 5 ms: %s, over 50 ms: %s",
			d9__units_count(latency->over_100us).text,
			d9__units_count(latency->over_1ms).text,
			d9__units_count(latency->over_5ms).text,
			d9__units_count(latency->over_50ms).text);
	put_waiters(c, false);
}

void d9__report_section_timers(struct d9__section *c)
{
	const struct d9__latency *latency = &c->a->latency;

	d9__page_section(c->page, "Timers");
	if (!d9__report_section_records(c, "lateness") || !latency->reasons) {
		d9__page_line(c->page, "lateness is not recorded");
		return;
	}
	if (latency->lateness.count == 0) {
		d9__page_line(c->page, "none ran");
		return;
	}
	d9__report_section_quantiles(c, "late by", &latency->lateness);
	put_waiters(c, true);
}
