/* SPDX-License-Identifier: Apache-2.0 */
/* The objects of a bucket that were listed. */

#pragma once

#include "serve/bucket_parts.h"

/* Note that the object |key| exists.  NULL: it is not one of ours, or out of memory. */
struct d9__bucket_item *d9__bucket_item_add(struct d9__bucket_source *source, const char *key,
					    uint64_t bytes, int64_t modified_s);
struct d9__bucket_item *d9__bucket_item_find(const struct d9__bucket_source *source,
					     const char *name);
void d9__bucket_item_free(struct d9__bucket_item *item);
