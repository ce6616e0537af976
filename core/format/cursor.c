/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "format/cursor.h"

int d9__cursor_varint_slow(struct d9__cursor *cursor, uint64_t *out)
{
	size_t left = d9__cursor_left(cursor);
	uint64_t value = 0;

	for (unsigned i = 0; i < D9__VARINT_MAX; i++) {
		uint8_t byte;

		if (i >= left) {
			cursor->missing = 1;
			return 0;
		}
		byte = cursor->p[i];
		/* The tenth byte holds bit 63 and nothing else. */
		if (i == D9__VARINT_MAX - 1 && byte > 1)
			return -EBADMSG;
		value |= (uint64_t)(byte & 0x7f) << (7 * i);
		if (byte < 0x80) {
			cursor->p += i + 1;
			*out = value;
			return 1;
		}
	}
	return -EBADMSG;
}

bool d9__cursor_blob(struct d9__cursor *cursor, const uint8_t **out, uint32_t *len)
{
	return d9__cursor_u32(cursor, len) && d9__cursor_take(cursor, *len, out);
}
