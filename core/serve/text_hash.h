/* SPDX-License-Identifier: Apache-2.0 */
/* Text hash: FNV-1a, for tables whose users compare the texts as well. */

#pragma once

#include <stddef.h>
#include <stdint.h>

#define D9__TEXT_HASH UINT64_C(0xcbf29ce484222325)

static inline uint64_t d9__hash_bytes(uint64_t hash, const void *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static inline uint64_t d9__hash_text(const char *text)
{
	uint64_t hash = D9__TEXT_HASH;

	for (; *text; text++)
		hash = d9__hash_bytes(hash, text, 1);
	return hash;
}
