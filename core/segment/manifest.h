/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Manifest: dump.ID.json beside the segments of a dump, read back.  drain/dump_manifest.h writes
 * it.  Flush thread.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#define D9__MANIFEST_BYTES    (48 << 10) /* at most */
#define D9__MANIFEST_SEGMENTS 64

/*
 * Read which segments the manifest |name| in |dir_fd| lists, at most D9__MANIFEST_SEGMENTS, into
 * |segments|.  |*flight|: they are no part of a trace.  Returns how many, or -errno.
 */
int d9__manifest_read(int dir_fd, const char *name, uint64_t *segments, bool *flight);
