/* SPDX-License-Identifier: Apache-2.0 */

#pragma once

#include "query/query.h"

/* query_shell.c: ask until the end of standard input, with a prompt if that is a terminal.  The
 * exit status. */
int d9__query_shell(struct d9__query *query, struct d9__query_options *options);
