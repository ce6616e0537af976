/* SPDX-License-Identifier: Apache-2.0 */
#include "statements.h"

const struct statement_text statement_texts[N_STATEMENTS] = {
	[STORE_SAMPLES] = { "store_samples",
			    "WITH new AS (INSERT INTO samples (name, value)"
			    "  SELECT * FROM unnest($1::text[], $2::float8[]) RETURNING name, value)"
			    " INSERT INTO totals AS t (name, samples, sum)"
			    "  SELECT name, count(*), sum(value) FROM new GROUP BY name"
			    "  ORDER BY name" /* always in this order: no two can wait for each other */
			    " ON CONFLICT (name) DO UPDATE"
			    "  SET samples = t.samples + excluded.samples, sum = t.sum + excluded.sum",
			    2 },
	[LATEST_SAMPLES] = { "latest_samples",
			     "SELECT id, value FROM samples WHERE name = $1 ORDER BY id DESC"
			     " LIMIT $2::integer",
			     2 },
	[ALL_SAMPLES] = { "all_samples",
			  "SELECT id, value FROM samples WHERE name = $1 ORDER BY id DESC", 1 },
	[BEGIN_REBALANCE] = { "begin_rebalance", "BEGIN", 0 },
	[LOCK_TOTALS] = { "lock_totals", "SELECT name FROM totals ORDER BY name FOR UPDATE", 0 },
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
