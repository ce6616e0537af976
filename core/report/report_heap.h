/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations in reports. */

#pragma once

#include "analyze/analysis.h"
#include "text/json.h"
#include "text/page.h"

/* The section: sums, and tables of sites, at most |rows| each.  Nothing where nothing was sampled. */
void d9__report_heap(const struct d9__analysis *analysis, size_t rows, struct d9__page *page);

/* "memory": the same for programs, all sites; null where nothing was sampled.  0 or -ENOMEM. */
int d9__report_json_heap(struct d9__json *json, const struct d9__analysis *analysis);
