/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "fleet/thrift.h"

#include <string.h>

static uint64_t zigzag(int64_t value)
{
	return (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
}

/*
 * Write a field's id as the distance to the one before, which is always small enough for the short
 * form.
 */
static void put_field(struct d9__thrift *thrift, int id, enum d9__thrift_type type)
{
	int *last = &thrift->last[thrift->depth];

	d9__bytes_u8(thrift->out, (unsigned)(id - *last) << 4 | type);
	*last = id;
}

void d9__thrift_bool(struct d9__thrift *thrift, int id, bool value)
{
	put_field(thrift, id, value ? D9__THRIFT_TRUE : D9__THRIFT_FALSE);
}

void d9__thrift_i16(struct d9__thrift *thrift, int id, int value)
{
	put_field(thrift, id, D9__THRIFT_I16);
	d9__bytes_varint(thrift->out, zigzag(value));
}

void d9__thrift_i32(struct d9__thrift *thrift, int id, int32_t value)
{
	put_field(thrift, id, D9__THRIFT_I32);
	d9__bytes_varint(thrift->out, zigzag(value));
}

void d9__thrift_i64(struct d9__thrift *thrift, int id, int64_t value)
{
	put_field(thrift, id, D9__THRIFT_I64);
	d9__bytes_varint(thrift->out, zigzag(value));
}

void d9__thrift_binary(struct d9__thrift *thrift, int id, const void *data, size_t len)
{
	put_field(thrift, id, D9__THRIFT_BINARY);
	d9__bytes_varint(thrift->out, len);
	d9__bytes_put(thrift->out, data, len);
}

void d9__thrift_text(struct d9__thrift *thrift, int id, const char *text)
{
	d9__thrift_binary(thrift, id, text, strlen(text));
}

void d9__thrift_list(struct d9__thrift *thrift, int id, enum d9__thrift_type type, size_t n)
{
	put_field(thrift, id, D9__THRIFT_LIST);
	if (n < 15) {
		d9__bytes_u8(thrift->out, (unsigned)n << 4 | type);
		return;
	}
	d9__bytes_u8(thrift->out, 0xf0 | type);
	d9__bytes_varint(thrift->out, n);
}

void d9__thrift_item_i32(struct d9__thrift *thrift, int32_t value)
{
	d9__bytes_varint(thrift->out, zigzag(value));
}

void d9__thrift_item_text(struct d9__thrift *thrift, const char *text)
{
	size_t len = strlen(text);

	d9__bytes_varint(thrift->out, len);
	d9__bytes_put(thrift->out, text, len);
}

void d9__thrift_begin(struct d9__thrift *thrift, int id)
{
	if (id)
		put_field(thrift, id, D9__THRIFT_STRUCT);
	thrift->last[++thrift->depth] = 0;
}

void d9__thrift_end(struct d9__thrift *thrift)
{
	d9__bytes_u8(thrift->out, 0);
	thrift->depth--;
}

void d9__thrift_stop(struct d9__thrift *thrift)
{
	d9__bytes_u8(thrift->out, 0);
}
