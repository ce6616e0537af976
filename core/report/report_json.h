/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of the JSON report, of one process each. */

#pragma once

#include "report/report.h"
#include "report/report_json_values.h"
#include "text/json.h"

#define D9__CAPABILITIES 8
extern const char *const d9__capability_keys[D9__CAPABILITIES];

/* Elements and keys of the array or object that is open. */
void d9__report_json_process(struct d9__json *json, const struct d9__analysis *a);
/* The triggers that fired, an object each. */
void d9__report_json_fired(struct d9__json *json, const struct d9__analysis *a);

void d9__report_json_files(struct d9__json *json, const struct d9__analysis *a);
void d9__report_json_degraded(struct d9__json *json, const struct d9__analysis *a);
void d9__report_json_worker(struct d9__json *json, const struct d9__report *report,
			    const struct d9__worker *worker);
void d9__report_json_callback(struct d9__json *json, const struct d9__analysis *a,
		       const struct d9__callback *callback);
void d9__report_json_finding(struct d9__json *json, const struct d9__analysis *a,
		      const struct d9__finding *finding);

/* Whole keys: "polls", 0 or -ENOMEM; "wake_to_poll"; "timers". */
int d9__report_json_polls(struct d9__json *json, const struct d9__analysis *a);
void d9__report_json_wakes(struct d9__json *json, const struct d9__analysis *a);
void d9__report_json_timers(struct d9__json *json, const struct d9__analysis *a);

/* Whole keys: "loss", "metadata", "trace", and all that follows "trace".  0 or -ENOMEM. */
void d9__report_json_loss(struct d9__json *json, const struct d9__trace_losses *losses);
void d9__report_json_metadata(struct d9__json *json, const struct d9__metadata *metadata);
/* Events by name, over |n| processes; and all that "trace" says of one.  0 or -ENOMEM. */
int d9__report_json_events(struct d9__json *json, const struct d9__report *reports, size_t n);
int d9__report_json_trace(struct d9__json *json, const struct d9__report *report);
int d9__report_json_all(struct d9__json *json, const struct d9__report *report);
