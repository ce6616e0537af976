/* SPDX-License-Identifier: Apache-2.0 */
/* LEB128: unsigned integers in one to ten bytes, seven bits each, least significant first. */

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "format/wire.h"

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

/* Bytes behind a number that the functions below may look at: they take 8 bytes at a time. */
#define D9__VARINT_SLACK 8

/* Bits of |word| that end a number: the top bits of bytes without a continuation. */
static inline uint64_t d9__varint_stops(uint64_t word)
{
	return ~word & UINT64_C(0x8080808080808080);
}

/*
 * Short numbers are told from each other by branches: one column of a trace has numbers of one length, so
 * that processors foresee them and go on with what follows; a computed length they have to wait for.
 */

/*
 * Behind the number at |p|, of which at least D9__VARINT_MAX bytes exist; NULL if it does not fit 64
 * bits.
 */
static inline const uint8_t *d9__varint_pass(const uint8_t *p)
{
	uint64_t stops;

	if (*p < 0x80)
		return p + 1;
	if (p[1] < 0x80)
		return p + 2;
	if (p[2] < 0x80)
		return p + 3;
	stops = d9__varint_stops(d9__wire_get_u64(p));
	if (__builtin_expect(stops != 0, 1))
		return p + (__builtin_ctzll(stops) >> 3) + 1;
	if (p[8] < 0x80)
		return p + 9;
	return p[9] <= 1 ? p + 10 : NULL;
}

/* The number at |*p|, with slack behind; moves |*p| behind it, to NULL if it does not fit 64 bits. */
static inline uint64_t d9__varint_get(const uint8_t **p)
{
	uint64_t word = d9__wire_get_u64(*p), stops = d9__varint_stops(word), value;

	if (__builtin_expect(stops & 0x80, 1)) {
		++*p;
		return word & 0x7f;
	}
	if (stops & 0x8000) {
		*p += 2;
		return (word & 0x7f) | (word >> 1 & 0x3f80);
	}
	if (stops & 0x800000) {
		*p += 3;
		return (word & 0x7f) | (word >> 1 & 0x3f80) | (word >> 2 & 0x1fc000);
	}
	if (__builtin_expect(!stops, 0)) {
		const uint8_t *rest = *p + 8;

		value = (uint64_t)(*rest & 0x7f) << 56;
		if (*rest >= 0x80)
			value |= (uint64_t)(*++rest) << 63;
		*p = rest == *p + 9 && *rest > 1 ? NULL : rest + 1;
	} else {
		*p += (__builtin_ctzll(stops) >> 3) + 1;
		word &= stops ^ (stops - 1); /* up to the first stop bit */
		value = 0;
	}
	/* Groups of seven bits move together: by pairs, then fours, then eights. */
	word &= UINT64_C(0x7f7f7f7f7f7f7f7f);
	word = (word & UINT64_C(0x007f007f007f007f)) | (word & UINT64_C(0x7f007f007f007f00)) >> 1;
	word = (word & UINT64_C(0x00003fff00003fff)) | (word & UINT64_C(0x3fff00003fff0000)) >> 2;
	word = (word & UINT64_C(0x000000000fffffff)) | (word & UINT64_C(0x0fffffff00000000)) >> 4;
	return value | word;
}
