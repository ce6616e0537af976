/* SPDX-License-Identifier: Apache-2.0 */
/* A source for segment readers that gives bytes from memory in pieces of a chosen size. */

#ifndef D9_TEST_MEMORY_SOURCE_H
#define D9_TEST_MEMORY_SOURCE_H

#include <string.h>

#include "read/segment_reader.h"

struct memory_source {
	const uint8_t *bytes;
	size_t len, at, piece;
};

static inline ssize_t memory_source_read(void *context, void *buf, size_t len)
{
	struct memory_source *source = context;
	size_t n = source->len - source->at;

	n = n < len ? n : len;
	n = n < source->piece ? n : source->piece;
	memcpy(buf, source->bytes + source->at, n);
	source->at += n;
	return (ssize_t)n;
}

/* |known|: the reader is told how much there is, as of a plain file. */
static inline struct d9__byte_source memory_source(struct memory_source *source, bool known)
{
	return (struct d9__byte_source) { memory_source_read, source,
				     known ? source->len : UINT64_MAX };
}

#endif /* D9_TEST_MEMORY_SOURCE_H */
