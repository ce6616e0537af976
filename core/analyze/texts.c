/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "analyze/texts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/budget.h"
#include "base/array.h"
#include "base/hash.h"

#define FIRST_BITS 6
#define TEXT_BYTES 48 /* that a text takes besides its own */

static size_t mask_of(unsigned bits)
{
	return ((size_t)1 << bits) - 1;
}

void d9__texts_release(struct d9__texts *texts)
{
	for (size_t i = 0; i < texts->n; i++)
		free(texts->items[i]);
	free(texts->items);
	free(texts->lens);
	free(texts->slots);
	d9__budget_give(texts->bytes);
	*texts = (struct d9__texts) { .others = texts->others,
				      .kind = texts->kind,
				      .each = texts->each };
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
