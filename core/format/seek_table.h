/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seek table ends a sealed zstd segment, as a skippable frame that every zstd reader ignores:
 *
 *     0   u32  0x184d2a5d
 *     4   u32  length of what follows: 40 n + 16
 *     8   n entries of 40 bytes: u64 offset in the file, u32 length there, u32 length unpacked,
 *         u64 first and u64 last time in ns, u64 number of events
 *         (clock, metadata and modules not counted)
 *     ..  u64 length of everything unpacked, u32 n, u32 0x6b733964 ("d9sk")
 *
 * So the last 16 bytes of the file tell whether there is a table and where it begins.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/wire.h"

#define D9__SEEK_FRAME_MAGIC UINT32_C(0x184d2a5d)
#define D9__SEEK_TABLE_MAGIC UINT32_C(0x6b733964)
#define D9__SEEK_HEAD_LEN    8
#define D9__SEEK_ENTRY_LEN   40
#define D9__SEEK_FOOTER_LEN  16

struct d9__seek_entry {
	uint64_t offset;
	uint32_t packed_len, len;
	uint64_t first_ns, last_ns, events;
};

/* Where the table of a file lies. */
struct d9__seek_place {
	uint64_t at;	   /* its frame; the entries follow its head */
	uint64_t unpacked; /* bytes that all frames have */
	uint32_t n;
};

/* True if |footer|, the last bytes of a file of |size| bytes, ends a table that lies within the
 * file. */
static inline bool d9__seek_footer_get(const uint8_t footer[D9__SEEK_FOOTER_LEN], uint64_t size,
				       struct d9__seek_place *out)
{
	uint64_t len;

	out->unpacked = d9__wire_get_u64(footer);
	out->n = d9__wire_get_u32(footer + 8);
	len = D9__SEEK_HEAD_LEN + (uint64_t)out->n * D9__SEEK_ENTRY_LEN + D9__SEEK_FOOTER_LEN;
	out->at = size - len;
	return d9__wire_get_u32(footer + 12) == D9__SEEK_TABLE_MAGIC && len <= size;
}

/* True if |head| begins the table at |place|. */
static inline bool d9__seek_head_fits(const uint8_t head[D9__SEEK_HEAD_LEN],
				      const struct d9__seek_place *place)
{
	return d9__wire_get_u32(head) == D9__SEEK_FRAME_MAGIC &&
	       d9__wire_get_u32(head + 4) ==
		       (uint64_t)place->n * D9__SEEK_ENTRY_LEN + D9__SEEK_FOOTER_LEN;
}

static inline struct d9__seek_entry d9__seek_entry_get(const uint8_t *entries, uint32_t i)
{
	const uint8_t *p = entries + (size_t)i * D9__SEEK_ENTRY_LEN;

	return (struct d9__seek_entry) { .offset = d9__wire_get_u64(p),
					 .packed_len = d9__wire_get_u32(p + 8),
					 .len = d9__wire_get_u32(p + 12),
					 .first_ns = d9__wire_get_u64(p + 16),
					 .last_ns = d9__wire_get_u64(p + 24),
					 .events = d9__wire_get_u64(p + 32) };
}

/* These three return what follows. */
static inline uint8_t *d9__seek_head_put(uint8_t *p, uint32_t n)
{
	return d9__wire_put_u32(d9__wire_put_u32(p, D9__SEEK_FRAME_MAGIC),
				n * D9__SEEK_ENTRY_LEN + D9__SEEK_FOOTER_LEN);
}

static inline uint8_t *d9__seek_entry_put(uint8_t *p, const struct d9__seek_entry *entry)
{
	p = d9__wire_put_u64(p, entry->offset);
	p = d9__wire_put_u32(p, entry->packed_len);
	p = d9__wire_put_u32(p, entry->len);
	p = d9__wire_put_u64(p, entry->first_ns);
	p = d9__wire_put_u64(p, entry->last_ns);
	return d9__wire_put_u64(p, entry->events);
}

static inline uint8_t *d9__seek_footer_put(uint8_t *p, uint32_t n, uint64_t unpacked)
{
	return d9__wire_put_u32(d9__wire_put_u32(d9__wire_put_u64(p, unpacked), n),
				D9__SEEK_TABLE_MAGIC);
}
