/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps: the kernel's list of what is mapped into this process, and with which permissions.
 *
 *	struct d9__maps maps;
 *	struct d9__mapping mapping;
 *
 *	if (d9__maps_open(&maps)) {
 *		maps.path = path;                (only if paths are wanted, too)
 *		maps.path_size = sizeof(path);
 *		while (d9__maps_next(&maps, &mapping))
 *			... mapping ...
 *		d9__maps_close(&maps);
 *	}
 *
 * Allocates nothing.  Changes errno.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct d9__mapping {
	uintptr_t low, high;
	int prot; /* of PROT_READ, PROT_WRITE and PROT_EXEC */
};

struct d9__maps {
	int fd;
	char *path;	  /* gets each mapping's, cut if it is longer; "": it is of no file */
	size_t path_size; /* 0: paths are not wanted */
	size_t at, n;
	char bytes[1024];
};

/* False if the kernel does not show the list. */
bool d9__maps_open(struct d9__maps *maps);

/* The next mapping, by address.  False: that was the last. */
bool d9__maps_next(struct d9__maps *maps, struct d9__mapping *out);

void d9__maps_close(struct d9__maps *maps);
