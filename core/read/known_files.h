/* SPDX-License-Identifier: Apache-2.0 */
/* Known files: whether a segment is already part of the trace, by another name or the same. */

#pragma once

#include "base/table.h"
#include "read/input.h"

/* Remember |input| in |files|, unless it is a pipe.  1, 0 if it is known already, -ENOMEM. */
int d9__known_files_add(struct d9__table *files, const struct d9__input *input);
