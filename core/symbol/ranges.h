/* SPDX-License-Identifier: Apache-2.0 */
/* Which of many ranges of addresses holds one: the last where several do. */

#ifndef D9_SYMBOL_RANGES_H
#define D9_SYMBOL_RANGES_H

#include <stddef.h>
#include <stdint.h>

/* All zero is empty. */
struct d9__ranges {
	uint64_t *points; /* where a range begins or ends, ascending, each once */
	uint32_t *owners; /* of what is between a point and the next: number + 1 of a range, or 0 */
	size_t n;
};

/*
 * Make it of |n| ranges, whose starts and ends (the first byte behind) stand every |step| bytes from |starts|
 * and |ends| on.  O(n log n).  0 or -ENOMEM, then it is as before.
 */
int d9__ranges_build(struct d9__ranges *ranges, const uint64_t *starts, const uint64_t *ends, size_t step, size_t n);

/* The range that holds |address|, the last if several do; SIZE_MAX: none. */
size_t d9__ranges_find(const struct d9__ranges *ranges, uint64_t address);

void d9__ranges_release(struct d9__ranges *ranges);

#endif /* D9_SYMBOL_RANGES_H */
