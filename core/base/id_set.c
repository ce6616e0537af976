/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/id_set.h"

#include <errno.h>

#include "base/heap.h"

static uint64_t bit_of(uint64_t id)
{
	return UINT64_C(1) << (id % 64);
}

static uint64_t *word_of(struct d9__id_page *page, uint64_t id)
{
	return &page->bits[id % D9__ID_PAGE_BITS / 64];
}

static struct d9__id_page *find(struct d9__id_set *set, uint64_t number)
{
	if (!set->last || set->last->number != number)
		set->last = d9__table_find(&set->pages, number);
	return set->last;
}

static int add_page(struct d9__id_set *set, uint64_t number)
{
	struct d9__id_page *page =
		set->pages.n < D9__ID_PAGES_MAX ? d9__calloc(1, sizeof(*page)) : NULL;

	if (!page)
		return -ENOMEM;
	page->number = number;
	if (d9__table_add(&set->pages, number, page)) {
		d9__free(page);
		return -ENOMEM;
	}
	set->last = page;
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

static int each_of_page(const struct d9__id_page *page, int (*fn)(void *arg, uint64_t id),
			void *arg)
{
	uint64_t first = page->number * D9__ID_PAGE_BITS;
	int err = 0;

	for (unsigned k = 0; k < D9__ID_PAGE_BITS / 64 && !err; k++)
		err = each_of_word(page->bits[k], first + k * 64, fn, arg);
	return err;
}

int d9__id_set_each(const struct d9__id_set *set, int (*fn)(void *arg, uint64_t id), void *arg)
{
	void *page;
	int err = 0;

	for (size_t place = 0; !err && (place = d9__table_next(&set->pages, place, &page));)
		err = each_of_page(page, fn, arg);
	return err;
}

void d9__id_set_release(struct d9__id_set *set)
{
	void *page;

	for (size_t place = 0; (place = d9__table_next(&set->pages, place, &page));)
		d9__free(page);
	d9__table_release(&set->pages);
	*set = (struct d9__id_set){ 0 };
}
