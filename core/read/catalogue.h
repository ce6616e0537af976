/* SPDX-License-Identifier: Apache-2.0 */
/* Catalogue: the built-in events, and which schema of a trace is one of them. */

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "format/definition.h"

/* Fill in kind, known and must of |schema|; the classify() of a set of definitions. */
void d9__catalogue_classify(struct d9_schema *schema);

/* Name |i| of all built-in events, NULL behind the last.  Some are only how such names begin: *|prefix|. */
const char *d9__catalogue_name(size_t i, bool *prefix);
