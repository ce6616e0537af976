/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/ranges.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define CUT ",..."

/* The first range that ends at |number| or later. */
static size_t place(const struct d9__ranges *ranges, uint64_t number)
{
	size_t from = 0, to = ranges->n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (ranges->items[middle].last < number)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* Replace |n| ranges from |at| on by |range|. */
static int replace(struct d9__ranges *ranges, size_t at, size_t n, struct d9__range range)
{
	if (!n && !d9__array_grow(ranges->items, ranges->n))
		return -ENOMEM;
	memmove(ranges->items + at + 1, ranges->items + at + n, (ranges->n - at - n) * sizeof(range));
	ranges->items[at] = range;
	ranges->n = ranges->n + 1 - n;
	return 0;
}

int d9__ranges_add(struct d9__ranges *ranges, uint64_t first, uint64_t last)
{
	size_t at = place(ranges, first ? first - 1 : 0), n = 0;
	struct d9__range all = { first, last };

	if (last < first)
		return 0;
	/* Merge the ranges that it touches into it. */
	for (; at + n < ranges->n && (last == UINT64_MAX || ranges->items[at + n].first <= last + 1); n++) {
		const struct d9__range *old = &ranges->items[at + n];

		all.first = old->first < all.first ? old->first : all.first;
		all.last = old->last > all.last ? old->last : all.last;
	}
	return replace(ranges, at, n, all);
}

int d9__ranges_remove(struct d9__ranges *ranges, uint64_t first, uint64_t last)
{
	size_t at = place(ranges, first);

	while (at < ranges->n && ranges->items[at].first <= last) {
		struct d9__range *range = &ranges->items[at];
		struct d9__range rest = { last + 1, range->last };
		bool before = range->first < first, after = range->last > last;

		if (before)
			range->last = first - 1;
		if (after)
			return before ? replace(ranges, at + 1, 0, rest) : (*range = rest, 0);
		if (before) {
			at++;
			continue;
		}
		memmove(range, range + 1, (ranges->n - at - 1) * sizeof(*range));
		ranges->n--;
	}
	return 0;
}

int d9__ranges_take(struct d9__ranges *ranges, const struct d9__ranges *others)
{
	int err = 0;

	for (size_t i = 0; !err && i < others->n; i++)
		err = d9__ranges_remove(ranges, others->items[i].first, others->items[i].last);
	return err;
}

int d9__ranges_parse(struct d9__ranges *ranges, const char *text)
{
	int err = 0;

	while (!err && *text >= '0' && *text <= '9') {
		char *end;
		uint64_t first = strtoull(text, &end, 10), last = *end == '-' ? strtoull(end + 1, &end, 10) : first;

		err = d9__ranges_add(ranges, first, last);
		text = *end == ',' ? end + 1 : end;
	}
	return err;
}

bool d9__ranges_has(const struct d9__ranges *ranges, uint64_t number)
{
	size_t at = place(ranges, number);

	return at < ranges->n && ranges->items[at].first <= number;
}

uint64_t d9__ranges_count(const struct d9__ranges *ranges)
{
	uint64_t n = 0;

	for (size_t i = 0; i < ranges->n; i++) {
		uint64_t more = ranges->items[i].last - ranges->items[i].first;

		if (more >= UINT64_MAX - n)
			return UINT64_MAX;
		n += more + 1;
	}
	return n;
}

void d9__ranges_write(const struct d9__ranges *ranges, char *out, size_t size)
{
	size_t len = 0;

	out[0] = '\0';
	for (size_t i = 0; i < ranges->n; i++) {
		const struct d9__range *range = &ranges->items[i];
		char text[48];
		int more = snprintf(text, sizeof(text), "%s%" PRIu64, i ? "," : "", range->first);

		if (range->last > range->first)
			more += snprintf(text + more, sizeof(text) - (size_t)more, "-%" PRIu64, range->last);
		if (len + (size_t)more + sizeof(CUT) > size) {
			strcpy(out + len, len ? CUT : &CUT[1]);
			return;
		}
		memcpy(out + len, text, (size_t)more + 1);
		len += (size_t)more;
	}
}

void d9__ranges_release(struct d9__ranges *ranges)
{
	free(ranges->items);
	*ranges = (struct d9__ranges) { 0 };
}
