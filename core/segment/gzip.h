/* SPDX-License-Identifier: Apache-2.0 */
/* Gzip: a small deflate writer, so that libz stays out of the recorded program. */

#pragma once

#include <stddef.h>
#include <stdint.h>

#define D9__GZIP_HEADER_LEN 10
#define D9__GZIP_END_LEN    10 /* an empty last block, then the trailer */

/* One gzip member that is being written.  Opaque, some 450 KiB. */
struct d9__gzip;

/* NULL if out of memory. */
struct d9__gzip *d9__gzip_new(void);
void d9__gzip_free(struct d9__gzip *gz);

/* Begin a member; writes D9__GZIP_HEADER_LEN bytes at |out|. */
void d9__gzip_begin(struct d9__gzip *gz, uint8_t *out);

/* Bytes that d9__gzip_write() may need for |len| bytes of input. */
size_t d9__gzip_bound(size_t len);

/*
 * Compress |in| to |out| and end on a whole byte, so that everything so far can be inflated.
 * Returns the bytes written.
 */
size_t d9__gzip_write(struct d9__gzip *gz, const uint8_t *in, size_t len, uint8_t *out);

/* End the member; writes D9__GZIP_END_LEN bytes at |out|. */
void d9__gzip_end(struct d9__gzip *gz, uint8_t *out);

/* What the trailer would say now, and going back to that after the output since was thrown away. */
void d9__gzip_mark(const struct d9__gzip *gz, uint32_t *crc, uint32_t *total);
void d9__gzip_rewind(struct d9__gzip *gz, uint32_t crc, uint32_t total);

/* CRC-32 of |len| bytes behind data whose CRC-32 is |crc| (0 at first). */
uint32_t d9__crc32(uint32_t crc, const uint8_t *data, size_t len);
