/* SPDX-License-Identifier: Apache-2.0 */
/* A trace as tables of Parquet files, for engines: whole traces by the tables of `dial9 query`, segments by the fleet's. */

#pragma once

#include <stdint.h>

#include "fleet/parquet_file.h"

/*
 * Write all tables of `dial9 query` of the traces |paths| as files in the directory |folder|, which
 * is made if it is missing.  Returns an exit status, after a line on stderr.
 */
int d9__export_tables(char **paths, const char *folder);

struct d9__partitions {
	const char *folder;
	const char *key;  /* of the segment in a store; NULL: use the name of its file */
	uint64_t slow_ns; /* longer calls are told one by one */
};

/* The fleet's tables of the one segment |paths|, likewise, each at its place below the folder. */
int d9__export_partitions(char **paths, const struct d9__partitions *options);

/* Make the folders of |path|, as far as they are missing.  0 or -errno. */
int d9__export_folders(const char *path);

/* A line on stderr, that |path| could not be written.  The exit status. */
int d9__export_explain(const char *path, int err);
