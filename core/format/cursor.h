/* SPDX-License-Identifier: Apache-2.0 */
/* Cursor: a position in bytes of a foreign trace; the only code that advances one. */

#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/varint.h"
#include "format/wire.h"

/*
 * Every function returns false, and moves nothing that matters, if the bytes do not suffice;
 * |missing| then says how many more the claim needs at the least.  Callers that fail start over
 * from a copy they kept.
 */
struct d9__cursor {
	const uint8_t *p;   /* p <= end */
	const uint8_t *end;
	uint64_t missing;   /* valid after a failure */
};

static inline size_t d9__cursor_left(const struct d9__cursor *cursor)
{
	return (size_t)(cursor->end - cursor->p);
}

/* |n| things of at least |size| bytes each still fit.  Cannot overflow: n < 2^32, size <= 8. */
static inline bool d9__cursor_holds(struct d9__cursor *cursor, uint32_t n, uint32_t size)
{
	uint64_t claim = (uint64_t)n * size;

	if (__builtin_expect(claim <= d9__cursor_left(cursor), 1))
		return true;
	cursor->missing = claim - d9__cursor_left(cursor);
	return false;
}

/* Pass |len| bytes.  |*out| is where they begin. */
static inline bool d9__cursor_take(struct d9__cursor *cursor, uint64_t len, const uint8_t **out)
{
	if (__builtin_expect(len > d9__cursor_left(cursor), 0)) {
		cursor->missing = len - d9__cursor_left(cursor);
		return false;
	}
	*out = cursor->p;
	cursor->p += len;
	return true;
}

static inline bool d9__cursor_skip(struct d9__cursor *cursor, uint64_t len)
{
	const uint8_t *ignored;

	return d9__cursor_take(cursor, len, &ignored);
}

static inline bool d9__cursor_u8(struct d9__cursor *cursor, uint8_t *out)
{
	const uint8_t *p;

	if (!d9__cursor_take(cursor, 1, &p))
		return false;
	*out = *p;
	return true;
}

static inline bool d9__cursor_u16(struct d9__cursor *cursor, uint16_t *out)
{
	const uint8_t *p;

	if (!d9__cursor_take(cursor, 2, &p))
		return false;
	*out = d9__wire_get_u16(p);
	return true;
}

static inline bool d9__cursor_u24(struct d9__cursor *cursor, uint32_t *out)
{
	const uint8_t *p;

	if (!d9__cursor_take(cursor, 3, &p))
		return false;
	*out = d9__wire_get_u24(p);
	return true;
}

static inline bool d9__cursor_u32(struct d9__cursor *cursor, uint32_t *out)
{
	const uint8_t *p;

	if (!d9__cursor_take(cursor, 4, &p))
		return false;
	*out = d9__wire_get_u32(p);
	return true;
}

static inline bool d9__cursor_u64(struct d9__cursor *cursor, uint64_t *out)
{
	const uint8_t *p;

	if (!d9__cursor_take(cursor, 8, &p))
		return false;
	*out = d9__wire_get_u64(p);
	return true;
}

/* d9__cursor_varint() where another number may not fit. */
int d9__cursor_varint_slow(struct d9__cursor *cursor, uint64_t *out);

/* A LEB128 number.  1, 0 if the bytes do not suffice, -EBADMSG if it does not fit 64 bits. */
static inline int d9__cursor_varint(struct d9__cursor *cursor, uint64_t *out)
{
	const uint8_t *p = cursor->p;
	uint64_t value;

	if (__builtin_expect(d9__cursor_left(cursor) < D9__VARINT_MAX, 0))
		return d9__cursor_varint_slow(cursor, out);
	value = d9__varint_get(&p);
	if (__builtin_expect(!p, 0))
		return -EBADMSG;
	cursor->p = p;
	*out = value;
	return 1;
}

/* Pass a u32 length and as many bytes. */
bool d9__cursor_blob(struct d9__cursor *cursor, const uint8_t **out, uint32_t *len);
