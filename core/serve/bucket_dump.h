/* SPDX-License-Identifier: Apache-2.0 */
/* The segments of a dump in a bucket. */

#pragma once

#include "serve/bucket_parts.h"

/* Find the segments of the dump |id|.  False: wait for an answer, which pumps the lists again. */
bool d9__bucket_dump_step(struct d9__bucket_source *source, const char *id);
bool d9__bucket_is_of_dump(void *context, const char *id, const char *name);
void d9__bucket_free_dumps(struct d9__bucket_source *source);
