/* SPDX-License-Identifier: Apache-2.0 */
/* Ship status: what of each process is stored, what waits, and what the store refused. */

#pragma once

#include <stdbool.h>

#include "ship/tree.h"

/* Print it.  The exit status of `dial9 ship`. */
int d9__ship_status(const struct d9__ship_tree *tree, bool json);
