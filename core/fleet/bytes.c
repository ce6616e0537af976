/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "fleet/bytes.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

void d9__bytes_release(struct d9__bytes *bytes)
{
	free(bytes->data);
	*bytes = (struct d9__bytes){ 0 };
}

/* True if there is room for |len| more. */
static bool make_room(struct d9__bytes *bytes, size_t len)
{
	bytes->failed =
		bytes->failed || !d9__array_reserve(bytes->data, &bytes->max, bytes->len, len);
	return !bytes->failed;
}

void d9__bytes_put(struct d9__bytes *bytes, const void *data, size_t len)
{
	if (!len || !make_room(bytes, len))
		return;
	memcpy(bytes->data + bytes->len, data, len);
	bytes->len += len;
}

void d9__bytes_u8(struct d9__bytes *bytes, unsigned value)
{
	unsigned char byte = (unsigned char)value;

	d9__bytes_put(bytes, &byte, 1);
}

void d9__bytes_u32(struct d9__bytes *bytes, uint32_t value)
{
	unsigned char out[4];

	for (unsigned i = 0; i < sizeof(out); i++)
		out[i] = (unsigned char)(value >> 8 * i);
	d9__bytes_put(bytes, out, sizeof(out));
}

void d9__bytes_u64(struct d9__bytes *bytes, uint64_t value)
{
	d9__bytes_u32(bytes, (uint32_t)value);
	d9__bytes_u32(bytes, (uint32_t)(value >> 32));
}

void d9__bytes_varint(struct d9__bytes *bytes, uint64_t value)
{
	unsigned char out[10];
	size_t n = 0;

	for (; value >= 0x80; value >>= 7)
		out[n++] = (unsigned char)(value | 0x80);
	out[n++] = (unsigned char)value;
	d9__bytes_put(bytes, out, n);
}
