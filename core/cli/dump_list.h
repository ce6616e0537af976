/* SPDX-License-Identifier: Apache-2.0 */
/* Dump list: the dumps below directories, by time, and how they are told. */

#pragma once

#include <stddef.h>

#include "analyze/kept_dump.h"
#include "text/text.h"

/* A file with a manifest's name that is not a readable manifest. */
struct d9__no_manifest {
	char *path, *why; /* owned */
};

/* All zero is empty. */
struct d9__dump_list {
	struct d9__kept_dump *dumps; /* the latest last */
	size_t n;
	struct d9__no_manifest *broken;
	size_t n_broken;
};

/*
 * Add the dumps below the directory |path|, or that of the manifest |path|.  0, -ENOMEM, an error of stat(2), or one of
 * d9__folder_list().
 */
int d9__dump_list_add(struct d9__dump_list *list, const char *path);

void d9__dump_list_release(struct d9__dump_list *list);

/* Write the dumps: a line each on a wide terminal, else two, and notes below. */
void d9__dump_list_text(struct d9__text_out *out, const struct d9__dump_list *list);

/* One JSON object to standard output. */
void d9__dump_list_json(const struct d9__dump_list *list);
