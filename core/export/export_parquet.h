/* SPDX-License-Identifier: Apache-2.0 */
/* Parquet: the tables of `dial9 query` as files. */

#pragma once

/*
 * Write all tables of `dial9 query` of the traces |paths| as files in the directory |folder|, which
 * is made if it is missing.  Returns an exit status, after a line on stderr.
 */
int d9__export_tables(char **paths, const char *folder);
