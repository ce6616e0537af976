/* SPDX-License-Identifier: Apache-2.0 */
/* A trace into the tables of a query: one pass, in which the analysis of dial9 report tells what
 * the calls are. */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <sqlite3.h>

/*
 * For |command|, fill the tables in |wanted|, a bit for each, of |db| from the traces |paths|.  0; else one line
 * is on stderr, and the result is the exit status.  |*rows| receives how many rows there are.
 */
int d9__query_load(const char *command, sqlite3 *db, char **paths, uint32_t wanted, bool no_symbols, uint64_t *rows);
