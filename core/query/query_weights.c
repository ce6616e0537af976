/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "analyze/budget.h"
#include "base/array.h"
#include "query/query_weights.h"

int d9__query_weights_add(struct d9__query_weights *weights, const struct d9__query_rows *rows,
			  const struct d9__query_weighed *sample)
{
	if (!d9__query_wants(rows, D9__QUERY_SAMPLES) &&
	    !(sample->poll && (d9__query_wants(rows, D9__QUERY_POLLS) ||
			       d9__query_wants(rows, D9__QUERY_RUNS))))
		return 0;
	if (!d9__budget_take(D9__KEPT_ROWS, 2 * sizeof(*sample)))
		return 0;
	if (!d9__array_grow(weights->items, weights->n))
		return -ENOMEM;
	weights->items[weights->n++] = *sample;
	return 0;
}

int d9__query_weights_add_off(struct d9__query_weights *weights, const struct d9__query_rows *rows,
			      struct d9__absence *absence, int64_t sample)
{
	struct d9__query_weighed item = { .sample = sample };

	if (!d9__query_wants(rows, D9__QUERY_SAMPLES) ||
	    !d9__budget_take(D9__KEPT_ROWS, 2 * sizeof(item) + sizeof(*item.off_time)))
		return 0;
	item.off_time = calloc(1, sizeof(*item.off_time));
	if (!item.off_time || !d9__array_grow(weights->items, weights->n)) {
		free(item.off_time);
		return -ENOMEM;
	}
	d9__absence_counts_in(absence, item.off_time);
	weights->items[weights->n++] = item;
	return 0;
}

void d9__query_weights_release(struct d9__query_weights *weights)
{
	for (size_t i = 0; i < weights->n; i++)
		free(weights->items[i].off_time);
	free(weights->items);
}

void d9__query_weights_between(struct d9__query_weights *weights, const struct d9__worker *worker,
			       uint64_t from_ns, uint64_t to_ns)
{
	for (size_t i = weights->n; worker && i && weights->items[i - 1].ns >= from_ns; i--)
		if (weights->items[i - 1].weight == &worker->beside.weight &&
		    weights->items[i - 1].ns <= to_ns)
			weights->items[i - 1].weight = &worker->between;
}

/* Set the time of row |id| with |stmt|, or add to it. */
static void put(struct d9__query_rows *rows, sqlite3_stmt *stmt, uint64_t ns, uint64_t id)
{
	struct d9__query_row row = { .rows = rows, .stmt = stmt, .column = 1 };

	d9__query_u64(&row, ns);
	d9__query_u64(&row, id);
	d9__query_row_done(&row);
}

/* Prepare |sql| if |table| is wanted; NULL: it is not, or an error stays in |rows|. */
static sqlite3_stmt *prepare(struct d9__query_rows *rows, enum d9__query_table table,
			     const char *sql)
{
	sqlite3_stmt *stmt = NULL;

	if (d9__query_wants(rows, table) && !rows->err)
		rows->err = d9__query_prepare(rows, &stmt, sql);
	return stmt;
}

void d9__query_weights_put(const struct d9__query_weights *weights, struct d9__query_rows *rows,
			   uint64_t period_ns, double switch_share)
{
	sqlite3_stmt *sample, *off, *poll, *run;

	if (!weights->n)
		return;
	sample = prepare(rows, D9__QUERY_SAMPLES,
			 "UPDATE \"%w\".samples SET cpu_ns = ? WHERE rowid = ?");
	off = prepare(rows, D9__QUERY_SAMPLES,
		      "UPDATE \"%w\".samples SET off_cpu_ns = ? WHERE rowid = ?");
	poll = prepare(rows, D9__QUERY_POLLS,
		       "UPDATE \"%w\".polls SET sampled_cpu_ns = ifnull(sampled_cpu_ns, 0) + ? "
		       "WHERE poll = ?");
	run = prepare(rows, D9__QUERY_RUNS,
		      "UPDATE \"%w\".runs SET sampled_cpu_ns = ifnull(sampled_cpu_ns, 0) + ? "
		      "WHERE run = ?");
	for (size_t i = 0; i < weights->n && !rows->err; i++) {
		const struct d9__query_weighed *item = &weights->items[i];
		uint64_t ns = d9__weight_ns(item->weight, 1, period_ns);

		if (item->off_time && off)
			put(rows, off, d9__off_time_ns(item->off_time, switch_share),
			    (uint64_t)item->sample);
		if (item->off_time || !period_ns)
			continue;
		if (sample && item->sample)
			put(rows, sample, ns, (uint64_t)item->sample);
		if (poll && item->poll)
			put(rows, poll, ns, item->poll);
		if (run && item->run)
			put(rows, run, ns, item->run);
	}
	sqlite3_finalize(sample);
	sqlite3_finalize(off);
	sqlite3_finalize(poll);
	sqlite3_finalize(run);
}
