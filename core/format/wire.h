/* SPDX-License-Identifier: Apache-2.0 */
/* Wire: the constants of TRC 1, in the order of FORMAT.md. */

#pragma once

#include <stdint.h>
#include <string.h>

/* Header: "TRC", a zero byte, the version.  It begins a file and every batch inside one. */
#define D9__WIRE_MAGIC       "TRC\0"
#define D9__WIRE_MAGIC_LEN   4
#define D9__WIRE_VERSION     1
#define D9__WIRE_HEADER_LEN  5

/* First byte of a frame.  0x54 ('T') begins a header instead. */
enum d9__wire_tag {
	D9__WIRE_SCHEMA = 0x01,
	D9__WIRE_EVENT = 0x02,
	D9__WIRE_STRING_POOL = 0x03,
	D9__WIRE_STACK_POOL = 0x04,
	D9__WIRE_TIME_RESET = 0x05,
	D9__WIRE_ANNOTATIONS = 0x06,
};

/* Set on a field type: a presence byte precedes the value. */
#define D9__WIRE_OPTIONAL 0x80

#define D9__WIRE_EVENT_HEAD_LEN  6 /* tag, type id, u24 delta */
#define D9__WIRE_TIME_RESET_LEN  9
#define D9__WIRE_DELTA_MAX       UINT32_C(0xffffff)

/* Fixed-width integers are little-endian and unaligned. */
static inline uint8_t *d9__wire_put_u16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
	return p + 2;
}

static inline uint8_t *d9__wire_put_u32(uint8_t *p, uint32_t v)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	v = __builtin_bswap32(v);
#endif
	memcpy(p, &v, sizeof(v));
	return p + sizeof(v);
}

static inline uint8_t *d9__wire_put_u64(uint8_t *p, uint64_t v)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	v = __builtin_bswap64(v);
#endif
	memcpy(p, &v, sizeof(v));
	return p + sizeof(v);
}

static inline uint16_t d9__wire_get_u16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t d9__wire_get_u24(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16;
}

static inline uint32_t d9__wire_get_u32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	v = __builtin_bswap32(v);
#endif
	return v;
}

static inline uint64_t d9__wire_get_u64(const uint8_t *p)
{
	uint64_t v;

	/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): a cursor gave the place */
	memcpy(&v, p, sizeof(v));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	v = __builtin_bswap64(v);
#endif
	return v;
}
