/* SPDX-License-Identifier: Apache-2.0 */
#include "statements.h"

/* Names are always taken in one order, so that no two can wait for each other. */
#define STORE_SQL                                                                                  \
	"WITH new AS (INSERT INTO samples (name, value)"                                           \
	"  SELECT * FROM unnest($1::text[], $2::float8[]) RETURNING name, value)"                  \
	" INSERT INTO totals AS t (name, samples, sum)"                                            \
	"  SELECT name, count(*), sum(value) FROM new GROUP BY name ORDER BY name"                 \
	" ON CONFLICT (name) DO UPDATE"                                                            \
	"  SET samples = t.samples + excluded.samples, sum = t.sum + excluded.sum"
#define ALL_SQL	 "SELECT id, value FROM samples WHERE name = $1 ORDER BY id DESC"
#define LOCK_SQL "SELECT name FROM totals ORDER BY name FOR UPDATE"

const struct statement_text statement_texts[N_STATEMENTS] = {
	[STORE_SAMPLES] = { "store_samples", STORE_SQL, 2 },
	[LATEST_SAMPLES] = { "latest_samples", ALL_SQL " LIMIT $2::integer", 2 },
	[ALL_SAMPLES] = { "all_samples", ALL_SQL, 1 },
	[BEGIN_REBALANCE] = { "begin_rebalance", "BEGIN", 0 },
	[LOCK_TOTALS] = { "lock_totals", LOCK_SQL, 0 },
	[COMMIT_REBALANCE] = { "commit_rebalance", "COMMIT", 0 },
};

static const struct d9_field query_fields[] = { { "rows", D9_FIELD_VARINT, NULL, NULL } };

#define QUERY_SPAN(text) D9_SPAN_SITE_WITH(D9_SPAN_INFO, "database", text, query_fields)
struct d9_span_site statement_spans[N_STATEMENTS] = {
	[STORE_SAMPLES] = QUERY_SPAN("query: store samples"),
	[LATEST_SAMPLES] = QUERY_SPAN("query: latest samples"),
	[ALL_SAMPLES] = QUERY_SPAN("query: all samples"),
	[BEGIN_REBALANCE] = QUERY_SPAN("query: begin"),
	[LOCK_TOTALS] = QUERY_SPAN("query: lock totals"),
	[COMMIT_REBALANCE] = QUERY_SPAN("query: commit"),
};
