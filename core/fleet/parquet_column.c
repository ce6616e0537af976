/* SPDX-License-Identifier: Apache-2.0 */
/* Values of a column, texts once each. */
#include "config.h"

#include "fleet/parquet_column.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "format/hash.h"

#define FIRST_BITS 8

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

static void put_slot(struct d9__parquet_values *values, size_t number)
{
	size_t mask = ((size_t)1 << values->bits) - 1, slot = values->entries[number].hash & mask;

	while (values->slots[slot])
		slot = (slot + 1) & mask;
	values->slots[slot] = (uint32_t)number + 1;
}

/* Room for one entry more. */
static int grow(struct d9__parquet_values *values)
{
	unsigned bits = values->bits ? values->bits + 1 : FIRST_BITS;
	uint32_t *slots;

	if (!d9__array_grow(values->entries, values->n_entries))
		return -ENOMEM;
	/* At most half of the slots are used. */
	if (values->bits && values->n_entries < (size_t)1 << (values->bits - 1))
		return 0;
	slots = calloc((size_t)1 << bits, sizeof(slots[0]));
	if (!slots)
		return -ENOMEM;
	free(values->slots);
	values->slots = slots;
	values->bits = bits;
	for (size_t i = 0; i < values->n_entries; i++)
		put_slot(values, i);
	return 0;
}

static bool is_entry(const struct d9__parquet_values *values, size_t number, uint64_t hash, const char *text, size_t len)
{
	const struct d9__parquet_entry *entry = &values->entries[number];

	return entry->hash == hash && entry->len == len && (!len || !memcmp(values->text.data + entry->at, text, len));
}

/* Return the number of |text|, whose hash is |hash|; SIZE_MAX: it is new. */
static size_t find(const struct d9__parquet_values *values, uint64_t hash, const char *text, size_t len)
{
	size_t mask = ((size_t)1 << values->bits) - 1, slot = hash & mask;

	if (!values->slots)
		return SIZE_MAX;
	for (; values->slots[slot]; slot = (slot + 1) & mask)
		if (is_entry(values, values->slots[slot] - 1, hash, text, len))
			return values->slots[slot] - 1;
	return SIZE_MAX;
}

int d9__parquet_values_add_text(struct d9__parquet_values *values, const char *text, size_t len)
{
	uint64_t hash = d9__hash_bytes(d9__hash_secret(), text, len);
	size_t number = find(values, hash, text, len);

	if (number != SIZE_MAX)
		return d9__parquet_values_add(values, number);
	if (grow(values))
		return -ENOMEM;
	number = values->n_entries++;
	values->entries[number] = (struct d9__parquet_entry){ hash, values->text.len, len };
	d9__bytes_put(&values->text, text, len);
	put_slot(values, number);
	return values->text.failed ? -ENOMEM : d9__parquet_values_add(values, number);
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
	if (values->slots)
		memset(values->slots, 0, sizeof(values->slots[0]) << values->bits);
}

void d9__parquet_values_release(struct d9__parquet_values *values)
{
	free(values->numbers);
	free(values->levels);
	free(values->entries);
	free(values->slots);
	d9__bytes_release(&values->text);
}
