/* SPDX-License-Identifier: Apache-2.0 */
/* Encoder: values -> frames, in a range of the caller that is known to be large enough. */

#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "format/varint.h"
#include "format/wire.h"

#define D9__POOL_ENTRY_FRAME_LEN 13u /* a one-entry string pool frame without its text */

/* Each returns the first byte behind what it wrote. */

static inline uint8_t *d9__wire_put_header(uint8_t *p)
{
	memcpy(p, D9__WIRE_MAGIC, D9__WIRE_MAGIC_LEN);
	p[D9__WIRE_MAGIC_LEN] = D9__WIRE_VERSION;
	return p + D9__WIRE_HEADER_LEN;
}

static inline uint8_t *d9__wire_put_time_reset(uint8_t *p, uint64_t ns)
{
	*p = D9__WIRE_TIME_RESET;
	return d9__wire_put_u64(p + 1, ns);
}

/* |delta| <= D9__WIRE_DELTA_MAX.  Writes 8 bytes, of which the last two are the caller's. */
static inline uint8_t *d9__wire_put_event_head(uint8_t *p, uint16_t type_id, uint32_t delta)
{
	d9__wire_put_u64(p, D9__WIRE_EVENT | (uint64_t)type_id << 8 | (uint64_t)delta << 24);
	return p + D9__WIRE_EVENT_HEAD_LEN;
}

static inline uint8_t *d9__wire_put_bytes(uint8_t *p, const void *bytes, size_t len)
{
	/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): of nothing there is no place */
	memcpy(p, bytes, len);
	return p + len;
}

/* String and Bytes: u32 length, then the bytes. */
static inline uint8_t *d9__wire_put_text(uint8_t *p, const char *text, size_t len)
{
	return d9__wire_put_bytes(d9__wire_put_u32(p, (uint32_t)len), text, len);
}

/* A string pool frame with one entry. */
static inline uint8_t *d9__wire_put_pool_entry(uint8_t *p, uint32_t id, const char *text, size_t len)
{
	*p++ = D9__WIRE_STRING_POOL;
	p = d9__wire_put_u32(p, 1);
	p = d9__wire_put_u32(p, id);
	return d9__wire_put_text(p, text, len);
}

/* A stack pool frame with one entry; leaf first. */
static inline uint8_t *d9__wire_put_stack_entry(uint8_t *p, uint32_t id, const uint64_t *addrs,
						uint32_t count)
{
	*p++ = D9__WIRE_STACK_POOL;
	p = d9__wire_put_u32(p, 1);
	p = d9__wire_put_u32(p, id);
	p = d9__wire_put_u32(p, count);
	for (uint32_t i = 0; i < count; i++)
		p = d9__wire_put_u64(p, addrs[i]);
	return p;
}
