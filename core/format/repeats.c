/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "format/repeats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"

static int compare(const void *left, const void *right)
{
	const struct d9_text *a = *(const struct d9_text *const *)left;
	const struct d9_text *b = *(const struct d9_text *const *)right;

	if (a->len != b->len)
		return a->len < b->len ? -1 : 1;
	return a->len ? memcmp(a->data, b->data, a->len) : 0;
}

/* By sorting: a damaged trace may have a million. */
int d9__repeats_count(const struct d9_text *pairs, size_t n, struct d9__arena *arena, uint64_t *repeats)
{
	const struct d9_text **keys;

	if (n < 2)
		return 0;
	keys = d9__arena_alloc(arena, n * sizeof(struct d9_text *));
	if (!keys)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		keys[i] = &pairs[2 * i];
	d9__sort(keys, n, sizeof(struct d9_text *), compare);
	for (size_t i = 1; i < n; i++)
		*repeats += !compare(&keys[i - 1], &keys[i]);
	return 0;
}
