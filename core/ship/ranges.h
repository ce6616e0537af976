/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges: a set of numbers of segments, as the recorder, keys and lists write it: "41-57,60". */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct d9__range {
	uint64_t first, last; /* both belong to it */
};

/* All zero is empty. */
struct d9__ranges {
	struct d9__range *items; /* ascending, with a gap between each two; owned */
	size_t n;
};

/* Put the numbers |first| to |last| in, or take them out.  0 or -ENOMEM. */
int d9__ranges_add(struct d9__ranges *ranges, uint64_t first, uint64_t last);
int d9__ranges_remove(struct d9__ranges *ranges, uint64_t first, uint64_t last);

/* Remove the numbers of |others|.  0 or -ENOMEM. */
int d9__ranges_take(struct d9__ranges *ranges, const struct d9__ranges *others);

/* Add the ranges in |text|, up to the first that is not one.  0 or -ENOMEM. */
int d9__ranges_parse(struct d9__ranges *ranges, const char *text);

bool d9__ranges_has(const struct d9__ranges *ranges, uint64_t number);

/* How many numbers there are; UINT64_MAX: that many or more. */
uint64_t d9__ranges_count(const struct d9__ranges *ranges);

/* Write them in |size| bytes, 8 at least.  Where there is no room for all, the text ends in "...". */
void d9__ranges_write(const struct d9__ranges *ranges, char *out, size_t size);

void d9__ranges_release(struct d9__ranges *ranges);
