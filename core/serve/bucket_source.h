/* SPDX-License-Identifier: Apache-2.0 */

#pragma once

#include "serve/source.h"

/*
 * The part of the bucket of |options| whose keys begin with |prefix| and a slash, or with "" all of
 * it.  What is fetched lies in |folder|, a directory that is taken, whose path is |folder_path|.  0
 * with |*out|, and |why| tells what is wrong with the store if that may pass, else ""; or -errno
 * with one line in |why|.
 */
int d9__bucket_source(const struct d9__bucket_options *options, const char *prefix, int folder,
		      const char *folder_path, struct d9__segment_source *out, const char **name,
		      char *why, size_t why_size);
