/* SPDX-License-Identifier: Apache-2.0 */
/* Values of a column, texts once each. */
#include "config.h"

#include "fleet/parquet_column.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"

static int make_room(struct d9__parquet_values *values)
{
	if (!values->numbers)
		values->numbers = calloc(D9__PARQUET_GROUP_ROWS, sizeof(values->numbers[0]));
	if (!values->levels && values->facts->optional)
		values->levels = calloc(D9__PARQUET_GROUP_ROWS, 1);
	return !values->numbers || (values->facts->optional && !values->levels) ? -ENOMEM : 0;
}

int d9__parquet_values_add(struct d9__parquet_values *values, uint64_t number)
{
	if (make_room(values))
		return -ENOMEM;
	values->numbers[values->n++] = number;
	if (values->levels)
		values->levels[values->rows] = 1;
	values->rows++;
	return 0;
}

/* ---- distinct texts ---- */

static bool is_entry(const struct d9__parquet_values *values, size_t number, const char *text,
		     size_t len)
{
	const struct d9__parquet_entry *entry = &values->entries[number];

	return entry->len == len && (!len || !memcmp(values->text.data + entry->at, text, len));
}

/* Append |text|.  Of two texts with one hash the table keeps the first; all is right, but longer. */
static int append_text(struct d9__parquet_values *values, bool is_known, uint64_t hash,
		       const char *text, size_t len)
{
	uintptr_t number = values->n_entries;

	if (!d9__array_grow(values->entries, values->n_entries) ||
	    (!is_known && d9__table_add(&values->by_hash, hash, (void *)(number + 1))))
		return -ENOMEM;
	values->entries[values->n_entries++] = (struct d9__parquet_entry){ values->text.len, len };
	d9__bytes_put(&values->text, text, len);
	return values->text.failed ? -ENOMEM : 0;
}

int d9__parquet_values_add_text(struct d9__parquet_values *values, const char *text, size_t len)
{
	uint64_t hash = d9__hash_bytes(d9__hash_secret(), text, len);
	uintptr_t known = (uintptr_t)d9__table_find(&values->by_hash, hash);

	if (known && is_entry(values, known - 1, text, len))
		return d9__parquet_values_add(values, known - 1);
	return append_text(values, known != 0, hash, text, len)
		       ? -ENOMEM
		       : d9__parquet_values_add(values, values->n_entries - 1);
}

int d9__parquet_values_skip(struct d9__parquet_values *values)
{
	if (make_room(values))
		return -ENOMEM;
	/* A column without levels cannot express a missing value: write an empty one. */
	if (!values->levels)
		return values->facts->type == D9__PARQUET_TEXT ? d9__parquet_values_add_text(values, "", 0) :
								 d9__parquet_values_add(values, 0);
	values->levels[values->rows++] = 0;
	return 0;
}

/* ---- begin and end ---- */

void d9__parquet_values_reset(struct d9__parquet_values *values)
{
	values->n = values->rows = values->n_entries = values->text.len = 0;
	d9__table_release(&values->by_hash);
}

void d9__parquet_values_release(struct d9__parquet_values *values)
{
	free(values->numbers);
	free(values->levels);
	free(values->entries);
	d9__table_release(&values->by_hash);
	d9__bytes_release(&values->text);
}
