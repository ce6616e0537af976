/* SPDX-License-Identifier: Apache-2.0 */

#pragma once

#include "query/query.h"

/* query_functions.c: percentile(VALUE, P) and the like.  0, or SQLite's error. */
int d9__query_add_functions(sqlite3 *db);
