/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "fleet/segment_tables.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/time.h"
#include "report/report.h"

#define MINUTE_US INT64_C(60000000)

/* The columns that begin every row of every table. */
#define WHO { "host", D9__PARQUET_TEXT, true }, { "boot_id", D9__PARQUET_TEXT, true }

/* When, of tables that go by minutes. */
#define WHEN { "minute", D9__PARQUET_TIME, false }, { "hour", D9__PARQUET_I64, false }

static const struct d9__parquet_column callbacks_columns[] = {
	WHO, WHEN,
	{ "callback", D9__PARQUET_TEXT, false },
	{ "site", D9__PARQUET_TEXT, true },
	{ "polls", D9__PARQUET_I64, false },
	{ "busy_ns", D9__PARQUET_I64, false },
	{ "max_ns", D9__PARQUET_I64, false },
	{ "lost", D9__PARQUET_I64, false },
	{ "hist", D9__PARQUET_TEXT, false },
};

static const struct d9__parquet_column slow_polls_columns[] = {
	WHO, WHEN,
	{ "ts", D9__PARQUET_TIME, false },
	{ "start_ns", D9__PARQUET_I64, false },
	{ "dur_ns", D9__PARQUET_I64, false },
	{ "cpu_ns", D9__PARQUET_I64, true },
	{ "blocked_ns", D9__PARQUET_I64, true },
	{ "ready_ns", D9__PARQUET_I64, true },
	{ "worker", D9__PARQUET_I64, false },
	{ "task", D9__PARQUET_I64, true },
	{ "callback", D9__PARQUET_TEXT, false },
	{ "site", D9__PARQUET_TEXT, true },
	{ "segment", D9__PARQUET_TEXT, false },
};

static const struct d9__parquet_column loops_columns[] = {
	WHO, WHEN,
	{ "worker", D9__PARQUET_I64, false },
	{ "loop", D9__PARQUET_TEXT, true },
	{ "tid", D9__PARQUET_I64, false },
	{ "polls", D9__PARQUET_I64, false },
	{ "parks", D9__PARQUET_I64, false },
	{ "busy_ns", D9__PARQUET_I64, false },
	{ "late_p99_ns", D9__PARQUET_I64, true },
	{ "late_max_ns", D9__PARQUET_I64, true },
	{ "queue_max", D9__PARQUET_I64, false },
	{ "wakes", D9__PARQUET_I64, false },
};

static const struct d9__parquet_column segments_columns[] = {
	WHO, WHEN,
	{ "key", D9__PARQUET_TEXT, false },
	{ "ts", D9__PARQUET_TIME, false },
	{ "last_ts", D9__PARQUET_TIME, false },
	{ "first_ns", D9__PARQUET_I64, false },
	{ "last_ns", D9__PARQUET_I64, false },
	{ "wall_offset_ns", D9__PARQUET_I64, false },
	{ "bytes", D9__PARQUET_I64, false },
	{ "events", D9__PARQUET_I64, false },
	{ "lost", D9__PARQUET_I64, false },
	{ "missing", D9__PARQUET_TEXT, true },
	{ "worst_ns", D9__PARQUET_I64, false },
	{ "complete", D9__PARQUET_BOOL, false },
};

static const struct d9__parquet_column stacks_columns[] = {
	WHO,
	{ "stack", D9__PARQUET_TEXT, false },
	{ "leaf", D9__PARQUET_TEXT, false },
	{ "frames", D9__PARQUET_I64, false },
	{ "folded", D9__PARQUET_TEXT, false },
};

static const struct d9__parquet_column samples_columns[] = {
	WHO, WHEN,
	{ "source", D9__PARQUET_TEXT, false },
	{ "thread", D9__PARQUET_TEXT, true },
	{ "callback", D9__PARQUET_TEXT, true },
	{ "site", D9__PARQUET_TEXT, true },
	{ "stack", D9__PARQUET_TEXT, true },
	{ "samples", D9__PARQUET_I64, false },
	{ "cpu_ns", D9__PARQUET_I64, true },
};

/* ---- values ---- */

static void put_text(struct d9__parquet *file, const char *text)
{
	if (text)
		d9__parquet_string(file, text);
	else
		d9__parquet_null(file);
}

/* Write |value|, or the largest signed number if it is larger, as only a damaged trace has it. */
static void put_u64(struct d9__parquet *file, uint64_t value)
{
	d9__parquet_i64(file, value > INT64_MAX ? INT64_MAX : (int64_t)value);
}

static void put_known(struct d9__parquet *file, bool known, uint64_t value)
{
	if (known)
		put_u64(file, value);
	else
		d9__parquet_null(file);
}

static void put_who(struct d9__parquet *file, const struct d9__segment_contents *segment)
{
	put_text(file, segment->place.host);
	put_text(file, segment->place.boot_id);
}

static void put_when(struct d9__parquet *file, uint32_t minute)
{
	d9__parquet_i64(file, minute * MINUTE_US);
	d9__parquet_i64(file, minute / 60 % 24);
}

static uint64_t wall_ns(const struct d9__segment_contents *segment, uint64_t ns)
{
	return ns + segment->rows.to_wall_ns;
}

static void put_ts(struct d9__parquet *file, const struct d9__segment_contents *segment, uint64_t ns)
{
	put_u64(file, wall_ns(segment, ns) / 1000);
}

static uint32_t minute_of(const struct d9__segment_contents *segment, uint64_t ns)
{
	return (uint32_t)(wall_ns(segment, ns) / (60 * D9__SECOND_NS));
}

static void put_callback(struct d9__parquet *file, const struct d9__callback *callback)
{
	size_t len;
	const char *name = d9__callback_name(callback, &len);

	d9__parquet_text(file, name, len);
	put_text(file, d9__callback_site(callback));
}

/* ---- tables ---- */

/* "20:3,21:1": of calls of 2^20 ns and less than twice that there were 3. */
static void put_histogram(struct d9__parquet *file, const uint64_t by_power[D9__POWERS])
{
	char text[D9__POWERS * 24];
	size_t len = 0;

	for (unsigned i = 0; i < D9__POWERS; i++)
		if (by_power[i])
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%u:%" PRIu64, len ? "," : "", i, by_power[i]);
	d9__parquet_text(file, text, len);
}

static void put_callbacks(const struct d9__segment_contents *segment, struct d9__parquet *file)
{
	const struct d9__calls_row *items = segment->rows.calls.items;

	for (size_t i = 0; i < segment->rows.calls.n; i++) {
		put_who(file, segment);
		put_when(file, items[i].minute);
		put_callback(file, items[i].callback);
		put_u64(file, items[i].polls);
		put_u64(file, items[i].busy_ns);
		put_u64(file, items[i].max_ns);
		put_u64(file, items[i].lost);
		put_histogram(file, items[i].by_power);
		d9__parquet_row(file);
	}
}

static void put_slow_polls(const struct d9__segment_contents *segment, struct d9__parquet *file)
{
	const struct d9__slow_row *items = segment->rows.slow.items;

	for (size_t i = 0; i < segment->rows.slow.n; i++) {
		const struct d9__slow_row *row = &items[i];
		bool known = row->blocked_ns != UINT64_MAX;
		uint64_t off_ns = known ? row->blocked_ns + row->ready_ns : 0;

		put_who(file, segment);
		put_when(file, minute_of(segment, row->start_ns));
		put_ts(file, segment, row->start_ns);
		put_u64(file, row->start_ns);
		put_u64(file, row->ns);
		put_known(file, known, row->ns > off_ns ? row->ns - off_ns : 0);
		put_known(file, known, row->blocked_ns);
		put_known(file, known, row->ready_ns);
		put_u64(file, row->worker);
		put_known(file, row->task, row->task);
		put_callback(file, row->callback);
		d9__parquet_string(file, segment->place.key);
		d9__parquet_row(file);
	}
}

static void put_loops(const struct d9__segment_contents *segment, struct d9__parquet *file)
{
	const struct d9__loop_row *items = segment->rows.loops.items;

	for (size_t i = 0; i < segment->rows.loops.n; i++) {
		const struct d9__loop_row *row = &items[i];

		put_who(file, segment);
		put_when(file, row->minute);
		put_u64(file, row->worker->id);
		put_text(file, d9__analysis_worker_name(segment->rows.analysis, row->worker));
		put_u64(file, row->worker->tid);
		put_u64(file, row->polls);
		put_u64(file, row->parks);
		put_u64(file, row->busy_ns);
		put_known(file, row->late.count, d9__histogram_quantile(&row->late, 0.99));
		put_known(file, row->late.count, row->late.max);
		put_u64(file, row->queue_max);
		put_u64(file, row->wakes);
		d9__parquet_row(file);
	}
}

static uint64_t worst_ns(const struct d9__segment_rows *rows)
{
	const struct d9__calls_row *items = rows->calls.items;
	uint64_t worst = 0;

	for (size_t i = 0; i < rows->calls.n; i++)
		worst = items[i].max_ns > worst ? items[i].max_ns : worst;
	return worst;
}

static void put_segments(const struct d9__segment_contents *segment, struct d9__parquet *file)
{
	const struct d9__analysis *a = segment->rows.analysis;

	for (size_t i = 0; i < a->n_segments; i++) {
		const struct d9__segment_fact *fact = &a->segments[i];

		put_who(file, segment);
		put_when(file, minute_of(segment, fact->first_ns));
		d9__parquet_string(file, segment->place.key);
		put_ts(file, segment, fact->first_ns);
		put_ts(file, segment, fact->last_ns);
		put_u64(file, fact->first_ns);
		put_u64(file, fact->last_ns);
		d9__parquet_i64(file, (int64_t)segment->rows.to_wall_ns);
		put_u64(file, fact->stored_bytes);
		put_u64(file, fact->events);
		put_u64(file, a->losses.events);
		put_text(file, d9__metadata_value(&a->metadata, "segment.evicted"));
		put_u64(file, worst_ns(&segment->rows));
		d9__parquet_bool(file, !fact->err && !fact->truncated && !fact->active);
		d9__parquet_row(file);
	}
}

static void put_stacks(const struct d9__segment_contents *segment, struct d9__parquet *file)
{
	for (size_t i = 0; i < segment->stacks.n; i++) {
		const struct d9__named_stack *stack = &segment->stacks.items[i];

		put_who(file, segment);
		d9__parquet_string(file, stack->id);
		d9__parquet_string(file, stack->leaf);
		put_u64(file, stack->frames);
		d9__parquet_string(file, stack->folded);
		d9__parquet_row(file);
	}
}

static void put_samples(const struct d9__segment_contents *segment, struct d9__parquet *file)
{
	const struct d9__segment_stacks *stacks = &segment->stacks;
	const struct d9__sample_row *items = segment->rows.samples.items;
	uint64_t period_ns = segment->rows.analysis->samples.period_ns;

	for (size_t i = 0; i < segment->rows.samples.n; i++) {
		const struct d9__sample_row *row = &items[i];

		put_who(file, segment);
		put_when(file, row->minute);
		d9__parquet_string(file, row->off_cpu ? "off-cpu" : "on-cpu");
		put_text(file, row->thread ? segment->rows.threads.items[row->thread - 1] : NULL);
		if (row->callback) {
			put_callback(file, row->callback);
		} else {
			d9__parquet_null(file);
			d9__parquet_null(file);
		}
		put_text(file, row->stack ? stacks->items[row->stack - 1].id : NULL);
		put_u64(file, row->samples);
		put_known(file, !row->off_cpu && period_ns,
			  d9__weight_ns(row->weight, row->samples, period_ns));
		d9__parquet_row(file);
	}
}

#define TABLE(name) { #name, name##_columns, sizeof(name##_columns) / sizeof(name##_columns[0]), put_##name }

const struct d9__segment_table d9__segment_tables[D9__SEGMENT_TABLES] = {
	TABLE(callbacks), TABLE(slow_polls), TABLE(loops), TABLE(segments), TABLE(stacks), TABLE(samples),
};

/* ---- files ---- */

int d9__segment_table_write(const struct d9__segment_table *table, const struct d9__segment_contents *segment,
			    d9__parquet_write *write, void *context)
{
	const struct {
		const char *key, *value;
	} pairs[] = { { "dial9.table", table->name },	       { "dial9.schema", "1" },
		      { "dial9.service", segment->place.service }, { "dial9.host", segment->place.host },
		      { "dial9.boot_id", segment->place.boot_id }, { "dial9.segment", segment->place.key } };
	struct d9__parquet *file;
	int err = d9__parquet_open(table->columns, table->n, write, context, &file);

	if (err)
		return err;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		if (pairs[i].value)
			d9__parquet_metadata(file, pairs[i].key, pairs[i].value);
	table->put(segment, file);
	return d9__parquet_close(file);
}
