/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes: a buffer that grows.  After the first failure it takes nothing more, and says so at the end. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero is empty. */
struct d9__bytes {
	unsigned char *data;
	size_t len, max;
	bool failed; /* out of memory */
};

void d9__bytes_release(struct d9__bytes *bytes);

void d9__bytes_put(struct d9__bytes *bytes, const void *data, size_t len);
void d9__bytes_u8(struct d9__bytes *bytes, unsigned value);

/* Little-endian. */
void d9__bytes_u32(struct d9__bytes *bytes, uint32_t value);
void d9__bytes_u64(struct d9__bytes *bytes, uint64_t value);

/* Seven bits a byte, the lowest first. */
void d9__bytes_varint(struct d9__bytes *bytes, uint64_t value);
