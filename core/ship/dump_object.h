/* SPDX-License-Identifier: Apache-2.0 */
/* Dump object: the manifest of a dump as it goes to the store, after its segments. */

#pragma once

#include "analyze/kept_dump.h"

/*
 * The manifest of |dump| with "keys", where its segments are stored, and "missing", the names of those that never will be; the
 * caller frees |*text|.  0; -EAGAIN: one of them is still here; or -errno.
 */
int d9__dump_object_make(const char *dir, const struct d9__kept_dump *dump, char **text);

/* Mark the dump as stored: rename its manifest in |dir| to dump.ID.done.  0 or -errno. */
int d9__dump_object_done(const char *dir, const char *id);
