/* SPDX-License-Identifier: Apache-2.0 */
/* Report cells: functions with which the sections of the text report put cells, rows and lines into their tables. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/columns.h"
#include "report/report.h"
#include "text/page.h"
#include "text/units.h"

/* Columns from which a table has room for more than the essentials. */
#define D9__WIDE      100
#define D9__VERY_WIDE 140

/* A section reads |report| and its analysis |a|, and prints to |page| in |style|. */
struct d9__section {
	const struct d9__report *report;
	const struct d9__analysis *a;
	const struct d9__report_style *style;
	struct d9__page *page;
};

/* Add a column of numbers for each of |titles|, which end with NULL. */
void d9__report_cell_columns(struct d9__grid *grid, const char *const titles[]);

/*
 * Add the |n| columns of |columns| that |headings| name, and those cells of a row.  |unknown|,
 * which ends with NULL: columns that show "-", as they were not recorded; NULL: none.
 */
void d9__report_cells_begin(struct d9__grid *grid, const struct d9__column *columns,
			    const char *const headings[], size_t n);
void d9__report_cells(struct d9__grid *grid, const struct d9__column *columns,
		      const char *const headings[], size_t n, const void *row,
		      const char *const unknown[]);

void d9__report_cell(struct d9__grid *grid, struct d9__units units);
void d9__report_cell_id(struct d9__grid *grid, uint64_t id);

/* Add the cell "FUNCTION @ SITE"; where it is too long, the site is shortened first. */
void d9__report_cell_callback(struct d9__grid *grid, const struct d9__callback *callback, bool site);

/* Print "and 9,990 more WHAT" under a table that has |shown| of |all| rows. */
void d9__report_section_more(struct d9__section *c, size_t shown, size_t all, const char *what);

/* How many of |all| rows a table shows, as --top asks. */
size_t d9__report_section_shown(const struct d9__section *c, size_t all);

/* Print "LABEL: 12; p50 ..., longest ...". */
void d9__report_section_quantiles(struct d9__section *c, const char *label, const struct d9__histogram *h);

/* The report's callbacks, sorted by |compare| of pointers to two of them; for free().  NULL: -ENOMEM is in |c->page|. */
const struct d9__callback **d9__report_section_sorted(struct d9__section *c,
					       int (*compare)(const void *left, const void *right));

/* Whether the hooks could record |key|, one of d9__capability_keys. */
bool d9__report_section_records(const struct d9__section *c, const char *key);
