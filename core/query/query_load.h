/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fill a query's tables from a trace in one pass, with the calls as the analysis of `dial9 report`
 * has them.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "query/query_rows.h"

/*
 * For |command|, fill |target|'s tables from the traces |paths|.  |*rows| gets the number of rows.
 * Returns 0, or an exit status after a line on stderr.
 */
int d9__query_load(const char *command, const struct d9__query_target *target, char **paths,
		   bool no_symbols, uint64_t *rows);
