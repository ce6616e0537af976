/* SPDX-License-Identifier: Apache-2.0 */
/* What the sections of the text report share: what each needs, and cells of their tables. */

#ifndef D9_ANALYZE_REPORT_CELLS_H
#define D9_ANALYZE_REPORT_CELLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/page.h"
#include "analyze/report.h"
#include "analyze/units.h"

/* Columns from which a table has room for more than the essentials. */
#define D9__WIDE      100
#define D9__VERY_WIDE 140

/* What each section needs. */
struct d9__section {
	const struct d9__report *report;
	const struct d9__analysis *a;
	const struct d9__report_style *style;
	struct d9__page *page;
};

/* Columns of numbers called |titles|, up to NULL. */
void d9__cell_columns(struct d9__grid *grid, const char *const titles[]);

void d9__cell(struct d9__grid *grid, struct d9__units units);
void d9__cell_id(struct d9__grid *grid, uint64_t id);

/* "function @ site", shortened in the site first. */
void d9__cell_callback(struct d9__grid *grid, const struct d9__callback *callback, bool site);

/* "and 9,990 more" under a table that was cut. */
void d9__section_more(struct d9__section *c, size_t shown, size_t all, const char *what);

/* How many of |all| rows a table has. */
size_t d9__section_shown(const struct d9__section *c, size_t all);

/* "LABEL: 12 calls; p50 ..." */
void d9__section_quantiles(struct d9__section *c, const char *label, const struct d9__histogram *h);

/* Whether the hooks could see |key|. */
bool d9__section_records(const struct d9__section *c, const char *key);

/* ---- sections in files of their own ---- */

void d9__section_waits(struct d9__section *c);
void d9__section_timers(struct d9__section *c);
void d9__section_samples(struct d9__section *c);

#endif /* D9_ANALYZE_REPORT_CELLS_H */
