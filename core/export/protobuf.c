/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "export/protobuf.h"

enum { VARINT = 0, LENGTH = 2 }; /* how a field is written */

#define VARINT_MAX 10

static size_t encode(unsigned char *out, uint64_t n)
{
	size_t len = 0;

	for (; n > 0x7f; n >>= 7)
		out[len++] = (unsigned char)(n | 0x80);
	out[len++] = (unsigned char)n;
	return len;
}

static void append(struct d9__protobuf *message, const void *bytes, size_t len)
{
	if (!d9__array_reserve(message->bytes, &message->max, message->len, len)) {
		message->failed = true;
		return;
	}
	if (len)
		memcpy(message->bytes + message->len, bytes, len);
	message->len += len;
}

void d9__protobuf_varint(struct d9__protobuf *message, uint64_t n)
{
	unsigned char bytes[VARINT_MAX];

	append(message, bytes, encode(bytes, n));
}

void d9__protobuf_number(struct d9__protobuf *message, unsigned field, uint64_t n)
{
	if (!n)
		return;
	d9__protobuf_varint(message, (uint64_t)field << 3 | VARINT);
	d9__protobuf_varint(message, n);
}

void d9__protobuf_bytes(struct d9__protobuf *message, unsigned field, const void *bytes, size_t len)
{
	d9__protobuf_varint(message, (uint64_t)field << 3 | LENGTH);
	d9__protobuf_varint(message, len);
	append(message, bytes, len);
}

void d9__protobuf_put(struct d9__protobuf *outer, unsigned field, struct d9__protobuf *inner)
{
	d9__protobuf_bytes(outer, field, inner->bytes, inner->len);
	outer->failed = outer->failed || inner->failed;
	inner->len = 0;
}

void d9__protobuf_write(FILE *out, unsigned field, struct d9__protobuf *inner)
{
	unsigned char head[2 * VARINT_MAX];
	size_t len = encode(head, (uint64_t)field << 3 | LENGTH);

	len += encode(head + len, inner->len);
	fwrite(head, 1, len, out);
	if (inner->len)
		fwrite(inner->bytes, 1, inner->len, out);
	inner->len = 0;
}

void d9__protobuf_release(struct d9__protobuf *message)
{
	free(message->bytes);
	*message = (struct d9__protobuf){ .bytes = NULL };
}
