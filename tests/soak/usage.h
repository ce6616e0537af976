/* SPDX-License-Identifier: Apache-2.0 */
/* Usage: memory, descriptors and disk of this process, second by second: they must not grow. */

#ifndef D9_SOAK_USAGE_H
#define D9_SOAK_USAGE_H

#include <stddef.h>
#include <stdint.h>

struct series {
	uint64_t *values;
	size_t n, capacity;
};

struct usage {
	struct series resident, descriptors, disk;
};

/* Take a sample; |dir| is what is counted as disk. */
void usage_sample(struct usage *usage, const char *dir);

/* The largest of the values from |from| to |to|, both parts of the whole from 0 to 1. */
uint64_t series_most(const struct series *series, double from, double to);

void usage_release(struct usage *usage);

#endif /* D9_SOAK_USAGE_H */
