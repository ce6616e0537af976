/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which module was mapped at an address at a time.  Modules are loaded and unloaded, and another one may come to the
 * same place: each stay of a module has a beginning and an end.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/texts.h"
#include "symbol/intervals.h"

struct d9__stay {
	uint64_t base;	     /* load bias: file address = address - base */
	uint64_t start, end; /* addresses */
	uint64_t from_ns;    /* first told of; it was loaded a moment before */
	uint64_t to_ns;	     /* unloaded; UINT64_MAX: not that anybody knows */
	uint32_t binary;     /* whatever its user tells binaries apart by */
};

/* All zero is empty.  Not thread-safe. */
struct d9__module_map {
	struct d9__stay *stays;
	size_t n;
	struct d9__texts keys;	 /* of modules: all of a stay but its times */
	uint32_t *latest;	 /* stay of the module with that number */
	size_t n_latest;
	struct d9__intervals index; /* of the first |n_indexed| stays */
	size_t n_indexed;
};

/*
 * The module |stay| is loaded at |stay->from_ns|, or, if |unloaded|, was until then.  Each segment tells the same
 * again, which changes nothing.  0 or -ENOMEM.
 */
int d9__module_map_learn(struct d9__module_map *map, const struct d9__stay *stay, bool unloaded);

/*
 * The stay that held |address| at |ns|: the latest that had begun and not ended; else, for modules are told of a
 * moment after they are loaded, the next to begin; else the last to end.  NULL: there was none.
 */
const struct d9__stay *d9__module_map_find(struct d9__module_map *map, uint64_t address, uint64_t ns);

void d9__module_map_release(struct d9__module_map *map);
