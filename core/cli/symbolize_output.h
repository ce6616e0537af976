/* SPDX-License-Identifier: Apache-2.0 */
/* A segment with rows of symbols behind it, packed as it was. */

#ifndef D9_CLI_SYMBOLIZE_OUTPUT_H
#define D9_CLI_SYMBOLIZE_OUTPUT_H

#include <stddef.h>
#include <stdint.h>

#define D9__NO_TAIL UINT64_MAX

/*
 * Where the rows begin that were put behind the segment |path| before: the offset, unpacked, of its last batch, if that
 * has rows of time 0 only and can be cut off.  D9__NO_TAIL: it ends with something else.  0, -ENOMEM, or an error of
 * reading.
 */
int d9__symbolize_tail(const char *path, uint64_t *tail);

/*
 * Write the segment |path|, without what begins at |tail|, and |rows|, one whole batch or nothing, to |output|, which
 * may be the same file and appears when it is complete.  A sealed zstd segment keeps its seek table.  0, -ENOTTY,
 * -ENOMEM, or an error of reading or writing.
 */
int d9__symbolize_write(const char *path, uint64_t tail, const void *rows, size_t len, const char *output);

#endif /* D9_CLI_SYMBOLIZE_OUTPUT_H */
