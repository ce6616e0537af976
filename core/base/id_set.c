/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/id_set.h"

#include <errno.h>
#include <stdlib.h>

#include "base/heap.h"

#define CAPACITY_MIN 64

static uint64_t bit_of(uint64_t id)
{
	return UINT64_C(1) << (id % 64);
}

static uint64_t *word_of(struct d9__id_page *page, uint64_t id)
{
	return &page->bits[id % D9__ID_PAGE_BITS / 64];
}

/* Where page |number| is, or belongs. */
static struct d9__id_page **place_of(struct d9__id_page **pages, size_t capacity, uint64_t number)
{
	uint64_t mixed = number * UINT64_C(0x9e3779b97f4a7c15);
	size_t at = (size_t)(mixed >> 32) & (capacity - 1);

	while (pages[at] && pages[at]->number != number)
		at = (at + 1) & (capacity - 1);
	return &pages[at];
}

static struct d9__id_page *find(struct d9__id_set *set, uint64_t number)
{
	if (set->last && set->last->number == number)
		return set->last;
	if (!set->capacity)
		return NULL;
	set->last = *place_of(set->pages, set->capacity, number);
	return set->last;
}

static int grow(struct d9__id_set *set)
{
	size_t capacity = set->capacity ? 2 * set->capacity : CAPACITY_MIN;
	struct d9__id_page **pages;

	if (2 * set->n_pages < set->capacity)
		return 0;
	if (set->n_pages >= D9__ID_PAGES_MAX)
		return -ENOMEM;
	pages = d9__calloc(capacity, sizeof(*pages));
	if (!pages)
		return -ENOMEM;
	for (size_t i = 0; i < set->capacity; i++)
		if (set->pages[i])
			*place_of(pages, capacity, set->pages[i]->number) = set->pages[i];
	d9__free(set->pages);
	set->pages = pages;
	set->capacity = capacity;
	return 0;
}

static int add_page(struct d9__id_set *set, uint64_t number)
{
	struct d9__id_page *page;
	int err = grow(set);

	if (err)
		return err;
	page = d9__calloc(1, sizeof(*page));
	if (!page)
		return -ENOMEM;
	page->number = number;
	*place_of(set->pages, set->capacity, number) = set->last = page;
	set->n_pages++;
	return 0;
}

int d9__id_set_add(struct d9__id_set *set, uint64_t id)
{
	uint64_t *word;

	if (!find(set, id / D9__ID_PAGE_BITS)) {
		int err = add_page(set, id / D9__ID_PAGE_BITS);

		if (err)
			return err;
	}
	word = word_of(set->last, id);
	set->n += !(*word & bit_of(id));
	*word |= bit_of(id);
	return 0;
}

bool d9__id_set_has(struct d9__id_set *set, uint64_t id)
{
	struct d9__id_page *page = find(set, id / D9__ID_PAGE_BITS);

	return page && *word_of(page, id) & bit_of(id);
}

bool d9__id_set_remove(struct d9__id_set *set, uint64_t id)
{
	if (!d9__id_set_has(set, id))
		return false;
	*word_of(set->last, id) &= ~bit_of(id);
	set->n--;
	return true;
}

static int each_of_word(uint64_t word, uint64_t first, int (*fn)(void *arg, uint64_t id), void *arg)
{
	int err = 0;

	for (; word && !err; word &= word - 1)
		err = fn(arg, first + (uint64_t)__builtin_ctzll(word));
	return err;
}

int d9__id_set_each(const struct d9__id_set *set, int (*fn)(void *arg, uint64_t id), void *arg)
{
	int err = 0;

	for (size_t i = 0; i < set->capacity && !err; i++) {
		const struct d9__id_page *page = set->pages[i];

		for (unsigned k = 0; page && k < D9__ID_PAGE_BITS / 64 && !err; k++)
			err = each_of_word(page->bits[k], page->number * D9__ID_PAGE_BITS + k * 64, fn,
					   arg);
	}
	return err;
}

void d9__id_set_release(struct d9__id_set *set)
{
	for (size_t i = 0; i < set->capacity; i++)
		d9__free(set->pages[i]);
	d9__free(set->pages);
	*set = (struct d9__id_set){ 0 };
}
