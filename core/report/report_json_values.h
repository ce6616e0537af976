/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON values: keys that several parts of the JSON report have; each goes into the array or object
 * that is open.
 */

#pragma once

#include "report/report.h"
#include "text/json.h"

/* "full", "partial" or "none". */
const char *d9__coverage_name(enum d9__coverage coverage);

void d9__report_json_quantiles(struct d9__json *json, const struct d9__histogram *h);

/* Write a moment: monotonic, since the start of the trace, wall. */
void d9__report_json_moment(struct d9__json *json, const struct d9__analysis *a, uint64_t ns);

/* Write the wall-clock time of a moment alone. */
void d9__report_json_wall(struct d9__json *json, const char *key, const struct d9__analysis *a,
		   uint64_t ns);

void d9__report_json_callback_name(struct d9__json *json, const char *key,
			    const struct d9__callback *callback);

/*
 * Write under |key| whether the hooks could see |capability|; under "recorded", whether they could
 * see |key|.
 */
void d9__report_json_coverage(struct d9__json *json, const char *key, const struct d9__analysis *a,
		       const char *capability);
void d9__report_json_recorded(struct d9__json *json, const struct d9__analysis *a, const char *key);
