/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/array.h"

#include <stdint.h>
#include <string.h>

#include "base/heap.h"

#define FIRST 8 /* elements; a power of two */

/* Whatever |items| points to, a pointer to an object is copied as its bytes. */
static bool resize(void *items, size_t n, size_t size)
{
	void *block;

	memcpy(&block, items, sizeof(block));
	block = d9__reallocarray(block, n, size);
	if (!block)
		return false;
	memcpy(items, &block, sizeof(block));
	return true;
}

bool d9__array_grow_sized(void *items, size_t n, size_t size)
{
	/* Between two powers of two there is room, because the array was doubled at the lower one. */
	if (n && (n < FIRST || (n & (n - 1))))
		return true;
	return resize(items, n ? n : FIRST / 2, 2 * size);
}

/* The number of elements for which an array of |n| has room. */
static size_t room_of(size_t n)
{
	size_t room = n ? FIRST : 0;

	while (room < n)
		room = room > SIZE_MAX / 2 ? SIZE_MAX : 2 * room;
	return room;
}

bool d9__array_stretch(void *items, size_t *n, size_t index, size_t size)
{
	char *block;

	if (index >= room_of(*n) && !resize(items, room_of(index + 1), size))
		return false;
	memcpy(&block, items, sizeof(block));
	memset(block + *n * size, 0, (index + 1 - *n) * size);
	*n = index + 1;
	return true;
}

bool d9__array_reserve_sized(void *items, size_t *capacity, size_t n, size_t more, size_t size)
{
	size_t wanted = *capacity ? *capacity : FIRST;

	if (more <= *capacity - n)
		return true;
	while (wanted - n < more)
		if (__builtin_mul_overflow(wanted, 2, &wanted))
			return false;
	if (!resize(items, wanted, size))
		return false;
	*capacity = wanted;
	return true;
}
