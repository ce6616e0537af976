/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report_cells.h"

void d9__report_cell_columns(struct d9__grid *grid, const char *const titles[])
{
	for (; *titles; titles++)
		d9__grid_column(grid, *titles, false, false);
}

void d9__report_cells_begin(struct d9__grid *grid, const struct d9__column *columns,
			    const char *const headings[], size_t n)
{
	for (; n; headings++, n--) {
		enum d9__column_unit unit = d9__column_headed(columns, *headings)->unit;

		d9__grid_column(grid, *headings, unit >= D9__AS_TEXT, unit == D9__AS_NAME);
	}
}

static struct d9__units units_of(enum d9__column_unit unit, const struct d9__value *value)
{
	struct d9__units text;

	switch (unit) {
	case D9__AS_NS:
		return d9__units_ns(value->n);
	case D9__AS_BYTES:
		return d9__units_bytes(value->n);
	case D9__AS_COUNT:
		return d9__units_count(value->n);
	case D9__AS_SHARE:
		return d9__units_percent(value->share);
	default:
		snprintf(text.text, sizeof(text.text), "%" PRIu64, value->n);
		return text;
	}
}

void d9__report_cells(struct d9__grid *grid, const struct d9__column *columns,
		      const char *const headings[], size_t n, const void *row,
		      const char *const unknown[])
{
	for (; n; headings++, n--) {
		const struct d9__column *column = d9__column_headed(columns, *headings);
		struct d9__value value = d9__column_value(column, row);

		for (size_t i = 0; unknown && unknown[i]; i++)
			value.is &= strcmp(unknown[i], *headings) != 0;
		if (!value.is)
			d9__grid_cell(grid, column->unit == D9__AS_TEXT ? "" : "-", 0);
		else if (value.text)
			d9__grid_cell(grid, value.text, 0);
		else
			d9__report_cell(grid, units_of(column->unit, &value));
	}
}

void d9__report_cell(struct d9__grid *grid, struct d9__units units)
{
	d9__grid_cell(grid, units.text, 0);
}

void d9__report_cell_id(struct d9__grid *grid, uint64_t id)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, id);
	d9__grid_cell(grid, text, 0);
}

void d9__report_cell_callback(struct d9__grid *grid, const struct d9__callback *callback, bool site)
{
	char name[512];
	size_t len = strlen(d9__callback_way(callback, name, sizeof(name)));
	const char *at = site ? d9__callback_site(callback) : NULL;
	char loops[D9__UNITS_MAX + 32] = "";
	char *text;

	if (callback->nested.calls)
		snprintf(loops, sizeof(loops), " (%s in loops)", d9__units_ns(callback->nested.ns).text);
	if (asprintf(&text, "%s%s%s%s", name, loops, at ? " @ " : "", at ? at : "") < 0) {
		grid->failed = true;
		return;
	}
	/* The name stays whole as long as it can. */
	d9__grid_cell(grid, text, at ? len + strlen(loops) : loops[0] ? len : 0);
	free(text);
}

void d9__report_section_more(struct d9__section *c, size_t shown, size_t all, const char *what)
{
	if (all > shown)
		d9__page_line(c->page, "and %s more %s (--top %zu shows all)",
				d9__units_count(all - shown).text, what, all);
}

size_t d9__report_section_shown(const struct d9__section *c, size_t all)
{
	return all < c->style->top ? all : c->style->top;
}

void d9__report_section_quantiles(struct d9__section *c, const char *label, const struct d9__histogram *h)
{
	d9__page_line(c->page, "%s: %s; p50 %s, p90 %s, p99 %s, longest %s", label,
			d9__units_count(h->count).text,
			d9__units_ns(d9__histogram_quantile(h, 0.5)).text,
			d9__units_ns(d9__histogram_quantile(h, 0.9)).text,
			d9__units_ns(d9__histogram_quantile(h, 0.99)).text,
			d9__units_ns(h->max).text);
}

const struct d9__callback **d9__report_section_sorted(struct d9__section *c,
					       int (*compare)(const void *left, const void *right))
{
	size_t n = c->report->n_callbacks;
	const struct d9__callback **sorted = calloc(n + 1, sizeof(*sorted));

	if (!sorted) {
		c->page->err = -ENOMEM;
		return NULL;
	}
	memcpy(sorted, c->report->callbacks, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare);
	return sorted;
}

bool d9__report_section_records(const struct d9__section *c, const char *key)
{
	return d9__metadata_coverage(&c->a->metadata, key) != D9__COVERAGE_NONE;
}
