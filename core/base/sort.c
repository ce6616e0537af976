/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/sort.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define PIECE 64 /* bytes that are exchanged at once */

struct array {
	char *items;
	size_t size;
	int (*compare)(const void *left, const void *right);
};

static void exchange(char *a, char *b, size_t size)
{
	char piece[PIECE];

	for (size_t at = 0, len; at < size; at += len) {
		len = size - at < PIECE ? size - at : PIECE;
		memcpy(piece, a + at, len);
		memcpy(a + at, b + at, len);
		memcpy(b + at, piece, len);
	}
}

static bool is_less(const struct array *array, size_t i, size_t j)
{
	return array->compare(array->items + i * array->size, array->items + j * array->size) < 0;
}

/* Below |top|, all that is below an item of the heap [0, n) is not greater than it: let it be so of |top|, too. */
static void sink(const struct array *array, size_t top, size_t n)
{
	for (size_t child; (child = 2 * top + 1) < n; top = child) {
		if (child + 1 < n && is_less(array, child, child + 1))
			child++;
		if (!is_less(array, top, child))
			return;
		exchange(array->items + top * array->size, array->items + child * array->size, array->size);
	}
}

static bool is_sorted(const struct array *array, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (is_less(array, i, i - 1))
			return false;
	return true;
}

void d9__sort(void *items, size_t n, size_t size, int (*compare)(const void *left, const void *right))
{
	struct array array = { items, size, compare };

	if (is_sorted(&array, n))
		return;
	for (size_t top = n / 2; top-- > 0;)
		sink(&array, top, n);
	for (size_t last = n - 1; last > 0; last--) {
		exchange(array.items, array.items + last * size, size);
		sink(&array, 0, last);
	}
}
