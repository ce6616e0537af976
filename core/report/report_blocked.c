/* SPDX-License-Identifier: Apache-2.0 */
/* The report's tables, and JSON, of calls that blocked inside callbacks, and of locks that they waited for. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "report/report_json.h"
#include "report/report_parts.h"
#include "text/units.h"

static void put_calls(const struct d9__blocked_site *sites, size_t n, struct d9__page *page)
{
	struct d9__grid grid = { .n_columns = 0 };
	char what[64], where[192];

	d9__grid_column(&grid, "TOTAL", false, false);
	d9__grid_column(&grid, "CALLS", false, false);
	d9__grid_column(&grid, "LONGEST", false, false);
	d9__grid_column(&grid, "CALL", true, false);
	d9__grid_column(&grid, "AT", true, true);
	for (size_t i = 0; i < n; i++) {
		const struct d9__blocked_calls *calls = &sites[i].calls;

		d9__blocked_what(calls, what, sizeof(what));
		d9__blocked_where(&sites[i], where, sizeof(where));
		d9__grid_cell(&grid, d9__units_ns(calls->total_ns).text, 0);
		d9__grid_cell(&grid, d9__units_count(calls->n).text, 0);
		d9__grid_cell(&grid, d9__units_ns(calls->longest.ns).text, 0);
		d9__grid_cell(&grid, what, 0);
		d9__grid_cell(&grid, where[0] ? where : "-", 0);
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
	struct d9__grid grid = { .n_columns = 0 };
	char where[192], holder[400];

	d9__grid_column(&grid, "LONGEST", false, false);
	d9__grid_column(&grid, "WAITS", false, false);
	d9__grid_column(&grid, "AT", true, true);
	d9__grid_column(&grid, "HELD BY", true, true);
	for (size_t i = 0; i < n; i++) {
		const struct d9__blocked_calls *calls = &sites[i].calls;

		if (!calls->held)
			continue;
		d9__blocked_where(&sites[i], where, sizeof(where));
		d9__finding_holder(report->analysis, &sites[i], holder, sizeof(holder));
		d9__grid_cell(&grid, d9__units_ns(calls->longest_held.ns).text, 0);
		d9__grid_cell(&grid, d9__units_count(calls->held).text, 0);
		d9__grid_cell(&grid, where[0] ? where : "-", 0);
		d9__grid_cell(&grid, holder, 0);
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
	put_calls(sites, shown, page);
	if (n > shown)
		d9__page_line(page, "and %s more places (--top %zu shows all)", d9__units_count(n - shown).text, n);
	if (count_held(sites, n)) {
		d9__page_section(page, "Locks");
		put_locks(report, sites, shown, page);
	}
	free(sites);
}

/* ---- JSON ---- */

static void json_callback(struct d9__json *json, const char *key, const struct d9__callback *callback)
{
	size_t len;
	const char *name = d9__callback_name(callback, &len);

	d9__json_text(json, key, name, len);
}

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
	const struct d9__blocked_calls *calls = &site->calls;

	d9__json_open(json, NULL, '{');
	d9__json_string(json, "function", calls->function);
	if (calls->fd >= 0 && !calls->several_fds)
		d9__json_i64(json, "fd", calls->fd);
	else
		d9__json_null(json, "fd");
	json_callback(json, "callback", calls->callback);
	json_frame(json, "at", site->frame);
	d9__json_u64(json, "calls", calls->n);
	d9__json_u64(json, "total_ns", calls->total_ns);
	d9__json_u64(json, "longest_ns", calls->longest.ns);
	d9__json_u64(json, "longest_at_ns", calls->longest.at_ns - d9__analysis_start_ns(a));
	d9__json_u64(json, "worker", calls->longest.worker);
	d9__json_u64(json, "task", calls->longest.task);
	d9__json_close(json, '}');
}

static void json_lock(struct d9__json *json, const struct d9__analysis *a, const struct d9__blocked_site *site)
{
	const struct d9__blocked_event *longest = &site->calls.longest_held;
	const struct d9__worker *worker = d9__samples_worker(&a->samples, longest->holder_tid);

	d9__json_open(json, NULL, '{');
	json_callback(json, "callback", site->calls.callback);
	json_frame(json, "at", site->frame);
	d9__json_u64(json, "waits", site->calls.held);
	d9__json_u64(json, "longest_ns", longest->ns);
	d9__json_u64(json, "longest_at_ns", longest->at_ns - d9__analysis_start_ns(a));
	d9__json_u64(json, "holder_tid", longest->holder_tid);
	d9__json_string(json, "holder_name", longest->holder_name[0] ? longest->holder_name : NULL);
	d9__json_u64(json, "held_ns", longest->held_ns);
	if (longest->held_cpu_ns == UINT64_MAX)
		d9__json_null(json, "held_cpu_ns");
	else
		d9__json_u64(json, "held_cpu_ns", longest->held_cpu_ns);
	if (worker)
		d9__json_u64(json, "holder_worker", worker->id);
	else
		d9__json_null(json, "holder_worker");
	if (longest->holder)
		json_callback(json, "holder_callback", longest->holder);
	else
		d9__json_null(json, "holder_callback");
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
