/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/table.h"

#include "analyze/budget.h"
#include "base/array.h"
#include "format/hash.h"

#define FIRST_BITS 6
#define TEXT_BYTES 48 /* that a text takes besides its own */

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
	free(table->entries);
	*table = (struct d9__table){ 0 };
}

/* The entry of |key|, or the free one where it belongs.  The table has free entries. */
static struct d9__table_entry *entry_of(const struct d9__table *table, uint64_t key)
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
	struct d9__table bigger = { .bits = table->entries ? table->bits + 1 : FIRST_BITS,
				    .secret = d9__hash_secret() };
	size_t n = table->entries ? mask_of(table->bits) + 1 : 0;

	bigger.entries = calloc((size_t)1 << bigger.bits, sizeof(*bigger.entries));
	if (!bigger.entries)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (table->entries[i].value)
			*entry_of(&bigger, table->entries[i].key) = table->entries[i];
	bigger.n = table->n;
	free(table->entries);
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

void d9__texts_release(struct d9__texts *texts)
{
	for (size_t i = 0; i < texts->n; i++)
		free(texts->items[i]);
	free(texts->items);
	free(texts->lens);
	free(texts->slots);
	d9__budget_give(texts->bytes);
	*texts = (struct d9__texts){ .others = texts->others, .kind = texts->kind, .each = texts->each };
}

static uint32_t *slot_of(const struct d9__texts *texts, const char *text, size_t len)
{
	size_t mask = mask_of(texts->bits), i;

	i = (size_t)(d9__hash_bytes(texts->secret, text, len) >> (64 - texts->bits));

	for (; texts->slots[i]; i = (i + 1) & mask) {
		uint32_t number = texts->slots[i] - 1;

		if (texts->lens[number] == len && !memcmp(texts->items[number], text, len))
			break;
	}
	return &texts->slots[i];
}

static int grow_texts(struct d9__texts *texts)
{
	unsigned bits = texts->slots ? texts->bits + 1 : FIRST_BITS;
	uint32_t *slots = calloc((size_t)1 << bits, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	free(texts->slots);
	texts->slots = slots;
	texts->bits = bits;
	texts->secret = d9__hash_secret();
	for (size_t i = 0; i < texts->n; i++)
		*slot_of(texts, texts->items[i], texts->lens[i]) = (uint32_t)i + 1;
	return 0;
}

bool d9__texts_find(const struct d9__texts *texts, const char *text, size_t len, uint32_t *number)
{
	uint32_t *slot;

	if (!texts->slots)
		return false;
	slot = slot_of(texts, text, len < D9__TEXT_MAX ? len : D9__TEXT_MAX);
	*number = *slot - 1;
	return *slot != 0;
}

/* Append |text|, whose slot is |slot|. */
static int append_text(struct d9__texts *texts, uint32_t *slot, const char *text, size_t len)
{
	char *copy = malloc(len + 1);

	if (!copy || !d9__array_grow(texts->items, texts->n) ||
	    !d9__array_grow(texts->lens, texts->n)) {
		free(copy);
		return -ENOMEM;
	}
	if (len)
		memcpy(copy, text, len);
	copy[len] = '\0';
	texts->items[texts->n] = copy;
	texts->lens[texts->n] = len;
	*slot = (uint32_t)++texts->n;
	return 0;
}

/* The number of what stands for all that are left out. */
static int number_others(struct d9__texts *texts, uint32_t *number)
{
	const char *others = texts->others ? texts->others : "(left out)";
	uint32_t *slot;

	if (!texts->full) {
		slot = slot_of(texts, others, strlen(others));
		if (!*slot && append_text(texts, slot, others, strlen(others)))
			return -ENOMEM;
		texts->full = true;
		texts->others_number = *slot - 1;
	}
	*number = texts->others_number;
	return 0;
}

int d9__texts_number(struct d9__texts *texts, const char *text, size_t len, uint32_t *number)
{
	uint32_t *slot;
	size_t bytes;

	if (len > D9__TEXT_MAX) {
		d9__budget_leave_out(D9__KEPT_ENDS, 1);
		len = D9__TEXT_MAX;
	}
	if ((!texts->slots || 2 * texts->n == mask_of(texts->bits) + 1) && grow_texts(texts))
		return -ENOMEM;
	slot = slot_of(texts, text, len);
	if (!*slot) {
		bytes = len + TEXT_BYTES + texts->each;
		if (!d9__budget_take((enum d9__kept)texts->kind, bytes))
			return number_others(texts, number);
		texts->bytes += bytes;
		if (append_text(texts, slot, text, len))
			return -ENOMEM;
	}
	*number = *slot - 1;
	return 0;
}
