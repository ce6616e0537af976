/* SPDX-License-Identifier: Apache-2.0 */
/* JIT map: what a language's runtime wrote to /tmp/perf-PID.map, "START SIZE NAME" a line, numbers in hex. */

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "symbol/intervals.h"

struct d9__jit_function {
	uint64_t start, end;
	const char *name; /* inside |text| */
};

/* All zero is empty. */
struct d9__jit_map {
	char *text;
	struct d9__jit_function *functions; /* as they were written */
	size_t n;
	struct d9__intervals index;
};

#define D9__JIT_MAP_MAX ((size_t)16 << 20) /* bytes */

/*
 * Read |path|, and forget what was read before.  0, -ELOOP if it is a link, -EBADMSG if it is no file, -EFBIG,
 * -ENOMEM, or an error of open(2) or read(2).
 */
int d9__jit_map_read(struct d9__jit_map *map, const char *path);

/*
 * Read the map from |text|, |len| bytes of malloc(3), of which there is one more for an end; |text| is the map's, also
 * after an error.  Lines that are none are passed over.  0 or -ENOMEM.
 */
int d9__jit_map_parse(struct d9__jit_map *map, char *text, size_t len);

/* The function at |address|, of several the one that was written last; NULL: none. */
const char *d9__jit_map_find(const struct d9__jit_map *map, uint64_t address);

void d9__jit_map_release(struct d9__jit_map *map);
