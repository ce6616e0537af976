/* SPDX-License-Identifier: Apache-2.0 */
/* What the statements are in SQL, and the spans that their queries are recorded as. */
#ifndef METRICS_STATEMENTS_H
#define METRICS_STATEMENTS_H

#include <dial9/span.h>

#include "database.h"

struct statement_text {
	const char *name; /* in PostgreSQL */
	const char *sql;
	int n_parameters;
};

extern const struct statement_text statement_texts[N_STATEMENTS];

/* One site for each statement, so that a report tells them apart; field 0 is the number of rows. */
extern struct d9_span_site statement_spans[N_STATEMENTS];

#endif
