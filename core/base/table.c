/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/table.h"

#include <errno.h>
#include <stdbool.h>

#include "base/hash.h"
#include "base/heap.h"

#define FIRST_BITS 6

static size_t place_of(const struct d9__table *table, uint64_t key)
{
	return (size_t)(d9__hash_u64(table->secret, key) >> (64 - table->bits));
}

static size_t mask_of(unsigned bits)
{
	return ((size_t)1 << bits) - 1;
}

void d9__table_release(struct d9__table *table)
{
	d9__free(table->entries);
	*table = (struct d9__table){ 0 };
}

/* The entry of |key|, or the free one where it belongs.  The table has free entries. */
static inline struct d9__table_entry *entry_of(const struct d9__table *table, uint64_t key)
{
	size_t mask = mask_of(table->bits), i = place_of(table, key);

	while (table->entries[i].value && table->entries[i].key != key)
		i = (i + 1) & mask;
	return &table->entries[i];
}

void *d9__table_find(const struct d9__table *table, uint64_t key)
{
	return table->entries ? entry_of(table, key)->value : NULL;
}

static int grow_table(struct d9__table *table)
{
	struct d9__table bigger = {
		.bits = table->entries ? table->bits + 1 : FIRST_BITS,
		.secret = d9__hash_secret(),
	};
	size_t n = table->entries ? mask_of(table->bits) + 1 : 0;

	bigger.entries = d9__calloc((size_t)1 << bigger.bits, sizeof(*bigger.entries));
	if (!bigger.entries)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (table->entries[i].value)
			*entry_of(&bigger, table->entries[i].key) = table->entries[i];
	bigger.n = table->n;
	d9__free(table->entries);
	*table = bigger;
	return 0;
}

int d9__table_add(struct d9__table *table, uint64_t key, void *value)
{
	bool full = !table->entries || table->n >= (mask_of(table->bits) + 1) / 4 * 3;

	if (full && grow_table(table))
		return -ENOMEM;
	*entry_of(table, key) = (struct d9__table_entry){ key, value };
	table->n++;
	return 0;
}

void d9__table_remove(struct d9__table *table, uint64_t key)
{
	struct d9__table_entry *entry = table->entries ? entry_of(table, key) : NULL;
	size_t mask = table->entries ? mask_of(table->bits) : 0, hole, i;

	if (!entry || !entry->value)
		return;
	table->n--;
	/* Close the gap, because searches that passed over this entry have to go on. */
	hole = i = (size_t)(entry - table->entries);
	for (;;) {
		size_t home;

		i = (i + 1) & mask;
		if (!table->entries[i].value)
			break;
		home = place_of(table, table->entries[i].key);
		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		table->entries[hole] = table->entries[i];
		hole = i;
	}
	table->entries[hole].value = NULL;
}

size_t d9__table_next(const struct d9__table *table, size_t place, void **value)
{
	size_t n = table->entries ? mask_of(table->bits) + 1 : 0;

	for (; place < n; place++) {
		if (!table->entries[place].value)
			continue;
		*value = table->entries[place].value;
		return place + 1;
	}
	return 0;
}
