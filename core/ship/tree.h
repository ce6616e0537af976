/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tree: the files to ship below directories, by the process that wrote them: sealed segments and
 * closed dumps.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/kept_dump.h"

struct d9__ship_segment {
	char *path; /* owned */
	uint64_t index;
	size_t of;	 /* number of its process */
	char *dumps;	 /* ids of those that list it, by commas; NULL: none; owned */
};

/* A directory BOOT_ID. */
struct d9__ship_process {
	char *path; /* owned */
	char boot_id[32];
	struct d9__ship_segment *segments; /* by index; owned */
	size_t n_segments;
	struct d9__kept_dump *dumps; /* those that are closed, or failed; owned */
	size_t n_dumps;
};

/* All zero is empty. */
struct d9__ship_tree {
	struct d9__ship_process *processes;
	size_t n;
	size_t n_refused; /* directories that are not to be entered */
	void (*tell)(void *context, const char *path,
		     const char *what); /* tells a fault of |path|; may be NULL */
	void *context;
};

/*
 * Add the files below |path|: a process's directory, a trace directory, or one of trace
 * directories; or a segment.  0, -ENOMEM, or an error of opendir(3).
 */
int d9__ship_tree_add(struct d9__ship_tree *tree, const char *path);

void d9__ship_tree_release(struct d9__ship_tree *tree);
