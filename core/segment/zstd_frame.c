/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <sys/types.h>
#include <unistd.h>

#include "base/read_at.h"
#include "format/wire.h"
#include "format/zstd_block.h"
#include "segment/zstd_frame.h"

#define SKIPPABLE     0x184d2a50u
#define SKIPPABLE_LEN 8
#define CHECKSUM_LEN  4

enum { BLOCK_RAW, BLOCK_RLE, BLOCK_COMPRESSED, BLOCK_RESERVED };

/* |size|: where the frames end, which may be before the file does. */
static bool read_at(int fd, uint64_t size, void *buf, size_t len, uint64_t at)
{
	return at <= size && len <= size - at && !d9__read_at(fd, buf, len, at);
}

static uint32_t get_u24(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16;
}

/* Length of the frame header, whose descriptor is |d|, behind the magic. */
static unsigned header_len(uint8_t d)
{
	static const unsigned dict[] = { 0, 1, 2, 4 }, size[] = { 0, 2, 4, 8 };
	bool single = d & 0x20;

	return 1u + !single + dict[d & 3] + (d >> 6 ? size[d >> 6] : (unsigned)single);
}

static bool look_at_blocks(int fd, uint64_t size, struct d9__zstd_frame *out)
{
	uint8_t head[D9__ZSTD_BLOCK_HEAD_LEN];
	uint64_t at = out->blocks;
	bool copies = true, any = false;

	for (;;) {
		uint32_t block, type, len;

		if (!read_at(fd, size, head, sizeof(head), at))
			return false;
		block = get_u24(head);
		type = block >> 1 & 3;
		len = type == BLOCK_RLE ? 1 : block >> 3;
		if (type == BLOCK_RESERVED || at + sizeof(head) + len > size)
			return false;
		copies &= type == BLOCK_RAW;
		any |= len != 0;
		at += sizeof(head) + len;
		out->blocks_end = at;
		if (block & 1)
			break;
	}
	out->raw = copies && any;
	if (out->checked)
		at += CHECKSUM_LEN;
	if (at > size)
		return false;
	out->end = out->blocks_end = at;
	return true;
}

bool d9__zstd_frame_look(int fd, uint64_t size, uint64_t at, struct d9__zstd_frame *out)
{
	uint8_t head[SKIPPABLE_LEN];
	uint32_t magic;

	*out = (struct d9__zstd_frame) { .begin = at, .blocks = at, .end = at, .blocks_end = at };
	if (!read_at(fd, size, head, 5, at))
		return false;
	magic = d9__wire_get_u32(head);
	if ((magic & 0xfffffff0) == SKIPPABLE) {
		if (!read_at(fd, size, head, SKIPPABLE_LEN, at) ||
		    d9__wire_get_u32(head + 4) > size - at - SKIPPABLE_LEN)
			return false;
		out->skippable = true;
		out->blocks = at + SKIPPABLE_LEN;
		out->end = out->blocks_end = out->blocks + d9__wire_get_u32(head + 4);
	} else {
		out->checked = head[4] & 4;
		out->blocks = at + 4 + header_len(head[4]);
		if (magic != ZSTD_MAGICNUMBER || !look_at_blocks(fd, size, out))
			return false;
	}
	out->whole = true;
	return true;
}
