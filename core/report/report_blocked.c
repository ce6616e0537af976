/* SPDX-License-Identifier: Apache-2.0 */
/* The report's tables, and JSON, of calls that blocked inside callbacks, and of locks that they waited for. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "report/report_json.h"
#include "report/report_parts.h"
#include "text/units.h"

static void put_calls(const struct d9__report *report, const struct d9__blocked_site *sites,
		      size_t n, struct d9__page *page)
{
	static const char *const headings[] = { "TOTAL", "CALLS", "LONGEST", "CALL", "AT" };
	struct d9__grid grid = { .n_columns = 0 };
	struct d9__blocked_row row;

	d9__report_cells_begin(&grid, d9__blocked_columns, headings, 5);
	for (size_t i = 0; i < n; i++) {
		d9__blocked_row(&row, report->analysis, &sites[i]);
		d9__report_cells(&grid, d9__blocked_columns, headings, 5, &row, NULL);
	}
	d9__grid_print(&grid, page);
}

static size_t count_held(const struct d9__blocked_site *sites, size_t n)
{
	size_t held = 0;

	for (size_t i = 0; i < n; i++)
		held += sites[i].calls.held != 0;
	return held;
}

static void put_locks(const struct d9__report *report, const struct d9__blocked_site *sites, size_t n,
		      struct d9__page *page)
{
	static const char *const headings[] = { "LONGEST", "WAITS", "AT", "HELD BY" };
	struct d9__grid grid = { .n_columns = 0 };
	struct d9__lock_row row;

	d9__report_cells_begin(&grid, d9__lock_columns, headings, 4);
	for (size_t i = 0; i < n; i++) {
		if (!sites[i].calls.held)
			continue;
		d9__lock_row(&row, report->analysis, &sites[i]);
		d9__report_cells(&grid, d9__lock_columns, headings, 4, &row, NULL);
	}
	d9__grid_print(&grid, page);
}

void d9__report_blocked(const struct d9__report *report, const struct d9__report_style *style, struct d9__page *page)
{
	size_t n, shown;
	struct d9__blocked_site *sites = d9__blocked_sites(&report->analysis->blocked, NULL, &n);

	if (!sites) {
		page->err = n ? -ENOMEM : page->err;
		return;
	}
	shown = n < style->top ? n : style->top;
	d9__page_section(page, "Blocking calls");
	put_calls(report, sites, shown, page);
	if (n > shown)
		d9__page_line(page, "and %s more places (--top %zu shows all)", d9__units_count(n - shown).text, n);
	if (count_held(sites, n)) {
		d9__page_section(page, "Locks");
		put_locks(report, sites, shown, page);
	}
	free(sites);
}

/* ---- JSON ---- */

static void json_frame(struct d9__json *json, const char *key, const struct d9__frame_name *frame)
{
	if (!frame) {
		d9__json_null(json, key);
		return;
	}
	d9__json_open(json, key, '{');
	d9__json_string(json, "function", frame->function);
	d9__json_string(json, "file", frame->file);
	d9__json_u64(json, "line", frame->line);
	d9__json_close(json, '}');
}

static void json_call(struct d9__json *json, const struct d9__analysis *a, const struct d9__blocked_site *site)
{
	struct d9__blocked_row row;

	d9__blocked_row(&row, a, site);
	d9__json_open(json, NULL, '{');
	d9__columns_json(json, d9__blocked_columns, NULL, &row);
	json_frame(json, "at", site->frame);
	d9__columns_json(json, d9__blocked_columns, "at", &row);
	d9__json_close(json, '}');
}

static void json_lock(struct d9__json *json, const struct d9__analysis *a, const struct d9__blocked_site *site)
{
	struct d9__lock_row row;

	d9__lock_row(&row, a, site);
	d9__json_open(json, NULL, '{');
	d9__columns_json(json, d9__lock_columns, NULL, &row);
	json_frame(json, "at", site->frame);
	d9__columns_json(json, d9__lock_columns, "at", &row);
	json_frame(json, "held_at", site->held);
	d9__json_close(json, '}');
}

int d9__report_json_blocked(struct d9__json *json, const struct d9__analysis *a)
{
	size_t n;
	struct d9__blocked_site *sites = d9__blocked_sites(&a->blocked, NULL, &n);

	if (!sites && n)
		return -ENOMEM;
	d9__json_open(json, "blocking_calls", '[');
	for (size_t i = 0; i < n; i++)
		json_call(json, a, &sites[i]);
	d9__json_close(json, ']');
	d9__json_open(json, "locks", '[');
	for (size_t i = 0; i < n; i++)
		if (sites[i].calls.held)
			json_lock(json, a, &sites[i]);
	d9__json_close(json, ']');
	free(sites);
	return 0;
}
