/* SPDX-License-Identifier: Apache-2.0 */
/* "trace" of the JSON report: the files that were read, their events and losses, and the metadata in them. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "report/columns.h"
#include "report/report_json.h"

int d9__report_json_events(struct d9__json *json, const struct d9__report *reports, size_t n)
{
	struct d9__named_count *counts = d9__reports_counts(reports, n, &n);

	if (!counts)
		return -ENOMEM;
	d9__json_open(json, "events", '{');
	for (size_t i = 0; i < n; i++)
		d9__json_u64(json, counts[i].name, counts[i].events);
	d9__json_close(json, '}');
	free(counts);
	return 0;
}

void d9__report_json_loss(struct d9__json *json, const struct d9__trace_losses *losses)
{
	d9__json_open(json, "loss", '{');
	for (size_t i = 0; i < losses->n; i++)
		d9__json_u64(json, losses->items[i].cause[0] ? losses->items[i].cause : "unknown",
			     losses->items[i].events);
	d9__json_close(json, '}');
}

void d9__report_json_files(struct d9__json *json, const struct d9__analysis *a)
{
	for (size_t i = 0; i < a->n_segments; i++) {
		struct d9__segment_row row = d9__segment_row(a, i);

		d9__json_open(json, NULL, '{');
		d9__columns_json(json, d9__segment_columns, NULL, &row);
		d9__json_close(json, '}');
	}
}

void d9__report_json_metadata(struct d9__json *json, const struct d9__metadata *metadata)
{
	d9__json_open(json, "metadata", '{');
	for (size_t i = 0; i < metadata->n; i++)
		d9__json_string(json, metadata->items[i].key, metadata->items[i].value);
	d9__json_close(json, '}');
}

void d9__report_json_process(struct d9__json *json, const struct d9__analysis *a)
{
	d9__json_u64(json, "number", a->process);
	d9__json_string(json, "boot_id", d9__metadata_value(&a->metadata, "boot_id"));
	d9__json_string(json, "folder",
			a->processes ? a->processes->items[a->process].folder : NULL);
	d9__json_bool(json, "killed", d9__analysis_was_killed(a));
}

void d9__report_json_fired(struct d9__json *json, const struct d9__analysis *a)
{
	for (size_t i = 0; i < a->fired.n && i < D9__FIRED_MAX; i++) {
		const struct d9__fire *fire = &a->fired.items[i];
		char measure[128];

		d9__fired_measure(fire, &a->metadata, measure, sizeof(measure));
		d9__json_open(json, NULL, '{');
		d9__json_string(json, "trigger", fire->trigger);
		d9__json_string(json, "text", d9__fired_text(fire, &a->metadata));
		d9__json_string(json, "dump_id", fire->dump_id);
		d9__json_u64(json, "process", a->process);
		d9__json_u64(json, "time_ns", fire->ns);
		d9__report_json_wall(json, "time_wall", a, fire->ns);
		d9__json_u64(json, "value", fire->value);
		d9__json_u64(json, "threshold", fire->threshold);
		d9__json_string(json, "measure", measure[0] ? measure : NULL);
		d9__json_u64(json, "task", fire->task);
		if (fire->worker)
			d9__json_u64(json, "worker", fire->worker->id);
		else
			d9__json_null(json, "worker");
		d9__json_string(json, "callback", fire->callback ? fire->callback->location : NULL);
		d9__json_close(json, '}');
	}
}

int d9__report_json_trace(struct d9__json *json, const struct d9__report *report)
{
	const struct d9__analysis *a = report->analysis;
	uint64_t start_ns = d9__analysis_start_ns(a), end_ns = d9__analysis_end_ns(a);
	int err;

	d9__json_open(json, "trace", '{');
	d9__json_u64(json, "start_ns", start_ns);
	d9__json_u64(json, "end_ns", end_ns);
	d9__json_u64(json, "duration_ns", end_ns - start_ns);
	d9__report_json_wall(json, "start_wall", a, start_ns);
	if (a->has_wall)
		d9__json_i64(json, "wall_offset_ns", (int64_t)(a->anchor_wall_ns - a->anchor_ns));
	else
		d9__json_null(json, "wall_offset_ns");
	d9__json_u64(json, "segments", a->n_segments);
	d9__json_u64(json, "total_events", a->events);
	err = d9__report_json_events(json, report, 1);
	d9__report_json_loss(json, &a->losses);
	d9__json_u64(json, "lost_events", a->losses.events);
	d9__json_u64(json, "dropped_allocs", a->losses.dropped_allocs);
	d9__json_u64(json, "dropped_frees", a->losses.dropped_frees);
	d9__json_open(json, "fired", '[');
	d9__report_json_fired(json, a);
	d9__json_close(json, ']');
	d9__json_open(json, "files", '[');
	d9__report_json_files(json, a);
	d9__json_close(json, ']');
	d9__report_json_metadata(json, &a->metadata);
	d9__json_open(json, "processes", '[');
	d9__json_open(json, NULL, '{');
	d9__report_json_process(json, a);
	d9__report_json_metadata(json, &a->metadata);
	d9__json_close(json, '}');
	d9__json_close(json, ']');
	d9__json_close(json, '}');
	return err;
}

const char *const d9__capability_keys[D9__CAPABILITIES] = {
	"poll", "park", "wake", "spawn", "depth", "lateness", "task_end", "task",
};
