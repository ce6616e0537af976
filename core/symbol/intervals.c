/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "symbol/intervals.h"

static uint64_t at(const uint64_t *values, size_t step, size_t i)
{
	return *(const uint64_t *)(const void *)((const char *)values + i * step);
}

static int compare(const void *left, const void *right)
{
	const struct d9__interval *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->number < b->number ? -1 : 1;
}

/* Tell each root of items[low, high) the last end below it.  The depth is that of a balanced tree. */
static uint64_t note_ends(struct d9__interval *items, size_t low, size_t high)
{
	size_t middle = low + (high - low) / 2;
	uint64_t last, end;

	if (low == high)
		return 0;
	last = items[middle].end;
	end = note_ends(items, low, middle);
	last = end > last ? end : last;
	end = note_ends(items, middle + 1, high);
	items[middle].last_end = end > last ? end : last;
	return items[middle].last_end;
}

int d9__intervals_build(struct d9__intervals *intervals, const uint64_t *starts, const uint64_t *ends, size_t step,
			size_t n)
{
	struct d9__interval *items = calloc(n + 1, sizeof(*items));

	if (!items)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		items[i] = (struct d9__interval){ at(starts, step, i), at(ends, step, i), 0, i };
	if (n)
		qsort(items, n, sizeof(*items), compare);
	note_ends(items, 0, n);
	d9__intervals_release(intervals);
	intervals->items = items;
	intervals->n = n;
	return 0;
}

struct search {
	const struct d9__interval *items;
	uint64_t address;
	size_t *numbers, n, max;
};

static void search_in(struct search *search, size_t low, size_t high)
{
	size_t middle = low + (high - low) / 2;
	const struct d9__interval *root;

	/* Without intervals there are no items to point into. */
	if (low == high || search->n == search->max)
		return;
	root = &search->items[middle];
	if (root->last_end <= search->address)
		return;
	search_in(search, low, middle);
	if (root->start > search->address)
		return;
	if (search->address < root->end && search->n < search->max)
		search->numbers[search->n++] = root->number;
	search_in(search, middle + 1, high);
}

size_t d9__intervals_find(const struct d9__intervals *intervals, uint64_t address, size_t *numbers, size_t max)
{
	struct search search = { .items = intervals->items, .address = address, .numbers = numbers, .max = max };

	search_in(&search, 0, intervals->n);
	return search.n;
}

void d9__intervals_release(struct d9__intervals *intervals)
{
	free(intervals->items);
	*intervals = (struct d9__intervals){ 0 };
}
