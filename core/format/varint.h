/* SPDX-License-Identifier: Apache-2.0 */
/* LEB128: unsigned integers in one to ten bytes, seven bits each, least significant first. */

#ifndef D9_FORMAT_VARINT_H
#define D9_FORMAT_VARINT_H

#include <stddef.h>
#include <stdint.h>

#define D9__VARINT_MAX 10

/*
 * Write |value| at |p| in its shortest form; |p| has room for D9__VARINT_MAX bytes.  Returns
 * the first byte behind it.  Inline, because the hot path of recording writes nothing else.
 */
static inline uint8_t *d9__varint_put(uint8_t *p, uint64_t value)
{
	while (value > 0x7f) {
		*p++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*p++ = (uint8_t)value;
	return p;
}

/* Bytes that d9__varint_put() would write. */
static inline size_t d9__varint_len(uint64_t value)
{
	return value ? (size_t)(70 - __builtin_clzll(value)) / 7 : 1;
}

#endif /* D9_FORMAT_VARINT_H */
