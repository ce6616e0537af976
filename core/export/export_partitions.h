/* SPDX-License-Identifier: Apache-2.0 */
/* The fleet's tables of one segment as Parquet files, for query engines. */

#pragma once

#include <stdint.h>

#include "fleet/parquet_file.h"

struct d9__partitions {
	const char *folder;
	const char *key;  /* of the segment in a store; NULL: use the name of its file */
	uint64_t slow_ns; /* longer calls are told one by one */
};

/*
 * Write the fleet's tables of the one segment |paths|, each at its place below the folder.  Returns
 * an exit status, after a line on stderr.
 */
int d9__export_partitions(char **paths, const struct d9__partitions *options);

/* Make the folders of |path|, as far as they are missing.  0 or -errno. */
int d9__export_folders(const char *path);

/* Print that |path| could not be written.  Returns the exit status. */
int d9__export_explain(const char *path, int err);
