/* SPDX-License-Identifier: Apache-2.0 */

#pragma once

#include "serve/archive.h"

/*
 * Return all segments that changed after |since|, a version that an earlier answer told, or 0: as
 * JSON in new memory, terminated.  NULL: out of memory.  Its shape is told in archive_json.c.
 */
char *d9__archive_map(struct d9__archive *archive, uint64_t since, size_t *len);
