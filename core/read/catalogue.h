/* SPDX-License-Identifier: Apache-2.0 */
/* Catalogue: the built-in events, and which schema of a trace is one of them. */

#ifndef D9_READ_CATALOGUE_H
#define D9_READ_CATALOGUE_H

#include "format/definition.h"

/* Fill in kind, known and must of |schema|; the classify() of a set of definitions. */
void d9__catalogue_classify(struct d9_schema *schema);

#endif /* D9_READ_CATALOGUE_H */
