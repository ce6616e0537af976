/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All ends cut the address space into pieces.  The last range takes its pieces first, then the one before it
 * takes what is left of its own, and so on; |next| leads over what is taken, so that each piece is met once.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/ranges.h"

static uint64_t at(const uint64_t *values, size_t step, size_t i)
{
	return *(const uint64_t *)((const char *)values + i * step);
}

static int compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

/* How many of the points are not above |address|. */
static size_t points_up_to(const struct d9__ranges *ranges, uint64_t address)
{
	size_t low = 0, high = ranges->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ranges->points[middle] <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The first piece from |i| on that nobody took. */
static uint32_t first_free(uint32_t *next, uint32_t i)
{
	while (next[i] != i) {
		next[i] = next[next[i]];
		i = next[i];
	}
	return i;
}

static void take_pieces(struct d9__ranges *ranges, uint32_t *next, uint64_t start, uint64_t end, uint32_t owner)
{
	size_t from, to;

	if (end <= start)
		return;
	from = points_up_to(ranges, start) - 1;
	to = points_up_to(ranges, end) - 1;
	for (uint32_t i = first_free(next, (uint32_t)from); i < to; i = first_free(next, i)) {
		ranges->owners[i] = owner;
		next[i] = i + 1;
	}
}

int d9__ranges_build(struct d9__ranges *ranges, const uint64_t *starts, const uint64_t *ends, size_t step, size_t n)
{
	struct d9__ranges new = { .points = malloc((2 * n + 1) * sizeof(*new.points)),
				  .owners = calloc(2 * n + 1, sizeof(*new.owners)) };
	uint32_t *next = malloc((2 * n + 1) * sizeof(*next));

	if (!new.points || !new.owners || !next) {
		free(next);
		d9__ranges_release(&new);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		new.points[2 * i] = at(starts, step, i);
		new.points[2 * i + 1] = at(ends, step, i);
	}
	qsort(new.points, 2 * n, sizeof(*new.points), compare);
	for (size_t i = 0; i < 2 * n; i++)
		if (!new.n || new.points[new.n - 1] != new.points[i])
			new.points[new.n++] = new.points[i];
	for (size_t i = 0; i <= new.n; i++)
		next[i] = (uint32_t)i;
	for (size_t i = n; i-- > 0;)
		take_pieces(&new, next, at(starts, step, i), at(ends, step, i), (uint32_t)i + 1);
	free(next);
	d9__ranges_release(ranges);
	*ranges = new;
	return 0;
}

size_t d9__ranges_find(const struct d9__ranges *ranges, uint64_t address)
{
	size_t i = points_up_to(ranges, address);

	return i && ranges->owners[i - 1] ? ranges->owners[i - 1] - 1 : SIZE_MAX;
}

void d9__ranges_release(struct d9__ranges *ranges)
{
	free(ranges->points);
	free(ranges->owners);
	*ranges = (struct d9__ranges){ 0 };
}
