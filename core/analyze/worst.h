/* SPDX-License-Identifier: Apache-2.0 */
/* The few largest of many: a bounded list, kept sorted. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Make room for an item of value |value| in |items|, |*n| of at most |max| items of |size| bytes
 * that begin with their value as uint64_t, largest first.  Returns where to write the item, or
 * NULL if it is not among the largest.  |*evicted| tells whether the smallest fell out; it was
 * copied to |out| if that is not NULL.  Of equal values the earlier stays ahead.
 */
static inline void *d9__worst_place(void *items, size_t *n, size_t max, size_t size, uint64_t value,
				    void *out, bool *evicted)
{
	char *base = items;
	size_t i = *n;
	uint64_t other;

	*evicted = false;
	while (i > 0) {
		memcpy(&other, base + (i - 1) * size, sizeof(other));
		if (other >= value)
			break;
		i--;
	}
	if (i == max)
		return NULL;
	if (*n == max) {
		*evicted = true;
		if (out)
			memcpy(out, base + (max - 1) * size, size);
	} else {
		++*n;
	}
	memmove(base + (i + 1) * size, base + i * size, (*n - i - 1) * size);
	return base + i * size;
}
