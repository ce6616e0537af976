/* SPDX-License-Identifier: Apache-2.0 */

#pragma once

#include "serve/archive.h"
#include "serve/archive_parts.h"

/* Callbacks, spans and stacks of the segments in |scope|, as d9__archive_map(); aggregate.c tells
 * their shapes. */
char *d9__archive_callbacks(struct d9__archive *archive, const struct d9__archive_scope *scope,
			    size_t *len);
char *d9__archive_spans(struct d9__archive *archive, const struct d9__archive_scope *scope,
			size_t *len);
char *d9__archive_stacks(struct d9__archive *archive, const struct d9__archive_scope *scope,
			 size_t *len);

bool d9__archive_is_wanted(const struct d9__archive_scope *scope, const struct d9__archived *said);
