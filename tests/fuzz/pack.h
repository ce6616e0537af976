/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pack: what a fuzzer found worth keeping, many small inputs in one file.  Each is its length, a
 * little-endian 32-bit number, and its bytes.
 */

#ifndef D9_FUZZ_PACK_H
#define D9_FUZZ_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACK_HEAD 4

/* An input in a pack that is in memory.  Start with all zero. */
struct pack_item {
	const uint8_t *bytes;
	size_t len, next; /* where the one behind it begins */
};

/* The next input of |pack|; false at the end. */
static inline bool pack_next(const uint8_t *pack, size_t size, struct pack_item *item)
{
	const uint8_t *head = pack + item->next;

	if (size - item->next < PACK_HEAD)
		return false;
	item->len = head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
	if (size - item->next - PACK_HEAD < item->len)
		return false;
	item->bytes = head + PACK_HEAD;
	item->next += PACK_HEAD + item->len;
	return true;
}

#endif /* D9_FUZZ_PACK_H */
