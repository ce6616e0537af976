/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Array: the one way in which arrays grow here.
 *
 *	struct d9__mark *marks = NULL;
 *	size_t n_marks = 0;
 *
 *	if (!d9__array_grow(marks, n_marks))
 *		return -ENOMEM;                         ... marks is as it was ...
 *	marks[n_marks++] = mark;
 *	...
 *	d9__free(marks);
 *
 * An array has no capacity beside it: how much is allocated follows from the number of its elements, which is at most doubled.
 * Memory comes from d9__reallocarray(), so d9__free() takes it back; in the reader and in `dial9` that is free(), too.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * Make room for the element |n| of |items|, which has |n| elements and was grown by this alone.  New elements are not
 * initialized.  False: out of memory, and |items| is as it was.
 */
#define d9__array_grow(items, n) d9__array_grow_sized(&(items), (n), sizeof(*(items)))

/*
 * Make room for |more| elements behind the first |n| of |items|, which has room for *|capacity|: for bytes that come in
 * pieces, and for arrays that are emptied and filled again.  False: out of memory, and all is as it was.
 */
#define d9__array_reserve(items, capacity, n, more) \
	d9__array_reserve_sized(&(items), (capacity), (n), (more), sizeof(*(items)))

/*
 * Make items[index] exist in |items|, which has *|n| elements and was grown by this or
 * d9__array_grow() alone: elements that are new are zero.  False: out of memory, and all is as it
 * was.
 */
#define d9__array_reach(items, n, index) \
	d9__array_reach_sized(&(items), (n), (index), sizeof(*(items)))

/* |items| points to the pointer to the first element. */
bool d9__array_grow_sized(void *items, size_t n, size_t size);
bool d9__array_reserve_sized(void *items, size_t *capacity, size_t n, size_t more, size_t size);
bool d9__array_stretch(void *items, size_t *n, size_t index, size_t size);

/* Inline, because most reach for an element that is there. */
static inline bool d9__array_reach_sized(void *items, size_t *n, size_t index, size_t size)
{
	return index < *n || d9__array_stretch(items, n, index, size);
}
