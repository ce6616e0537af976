/* SPDX-License-Identifier: Apache-2.0 */
/* How many tasks each loop has registered, whether they ever ran or not. */

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "analyze/texts.h"

/* All zero: nothing is told. */
struct d9__population {
	struct d9__texts loops;
	uint64_t *first; /* of loop i */
	size_t n;
	uint64_t growth; /* the most that one loop ever had above its first count */
};

void d9__population_release(struct d9__population *population);

/* |loop| has |tasks| of them now.  0 or -ENOMEM. */
int d9__population_add(struct d9__population *population, const char *loop, size_t len,
		       uint64_t tasks);
