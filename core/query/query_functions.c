/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that SQLite lacks and questions about time need. */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "query/query.h"
#include "query/query_functions.h"

/* The values of a group. */
struct values {
	double *items;
	size_t n, capacity;
	double percent;
	bool failed;
};

static void add_value(sqlite3_context *context, int n, sqlite3_value **args)
{
	struct values *values = sqlite3_aggregate_context(context, sizeof(*values));

	(void)n;
	if (!values || values->failed || sqlite3_value_type(args[0]) == SQLITE_NULL)
		return;
	values->percent = sqlite3_value_double(args[1]);
	if (values->n == values->capacity) {
		size_t capacity = values->capacity ? 2 * values->capacity : 64;
		/* SQLite's own, so that its limit of memory holds. */
		double *bigger = sqlite3_realloc64(values->items, capacity * sizeof(*bigger));

		values->failed = !bigger;
		if (!bigger)
			return;
		values->items = bigger;
		values->capacity = capacity;
	}
	values->items[values->n++] = sqlite3_value_double(args[0]);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void give_percentile(sqlite3_context *context)
{
	struct values *values = sqlite3_aggregate_context(context, 0);
	size_t rank;

	if (values && values->failed) {
		sqlite3_result_error_nomem(context);
	} else if (!values || !values->n) {
		sqlite3_result_null(context);
	} else if (!(values->percent >= 0 && values->percent <= 100)) {
		sqlite3_result_error(context, "percentile(VALUE, P) takes a P of 0 to 100", -1);
	} else {
		/* Nearest rank, as in dial9 report; 99.9 / 100 * 1000 would be above 999. */
		qsort(values->items, values->n, sizeof(*values->items), compare);
		rank = (size_t)ceil(values->percent * (double)values->n / 100);
		sqlite3_result_double(context, values->items[rank ? rank - 1 : 0]);
	}
	if (values)
		sqlite3_free(values->items);
}

int d9__query_add_functions(sqlite3 *db)
{
	return sqlite3_create_function_v2(db, "percentile", 2,
					  SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
					  NULL, NULL, add_value, give_percentile, NULL);
}
