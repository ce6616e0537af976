/* SPDX-License-Identifier: Apache-2.0 */
/* Id set: numbers that were given out one after the other, so that many lie side by side. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/table.h"

#define D9__ID_PAGE_BITS  2048u
#define D9__ID_PAGES_MAX  (1u << 17) /* 32 MiB of them */

struct d9__id_page {
	uint64_t number; /* of its first id / D9__ID_PAGE_BITS */
	uint64_t bits[D9__ID_PAGE_BITS / 64];
};

/* All zero is empty.  One thread. */
struct d9__id_set {
	struct d9__table pages;	  /* struct d9__id_page by number; owned */
	struct d9__id_page *last; /* looked at last */
	uint64_t n;
};

/* 0, also if it was in it before; -ENOMEM, also for more than D9__ID_PAGES_MAX pages. */
int d9__id_set_add(struct d9__id_set *set, uint64_t id);

bool d9__id_set_has(struct d9__id_set *set, uint64_t id);

/* Take |id| out.  Whether it was in it. */
bool d9__id_set_remove(struct d9__id_set *set, uint64_t id);

/* Call |fn| for each, in no particular order.  The first error of |fn| ends it and is returned. */
int d9__id_set_each(const struct d9__id_set *set, int (*fn)(void *arg, uint64_t id), void *arg);

void d9__id_set_release(struct d9__id_set *set);
