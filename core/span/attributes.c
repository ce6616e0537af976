/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdbool.h>
#include <string.h>

#include "format/encoder.h"
#include "format/varint.h"
#include "ring/names.h"
#include "span/attributes.h"

#define NUMBER_MAX 32u /* bytes of a number as text */

/* ---- numbers ---- */

static size_t put_u64(char *buf, uint64_t value)
{
	char digits[20];
	size_t n = 0;

	do
		digits[n++] = (char)('0' + value % 10);
	while (value /= 10);
	for (size_t i = 0; i < n; i++)
		buf[i] = digits[n - 1 - i];
	return n;
}

static size_t put_i64(char *buf, int64_t value)
{
	if (value >= 0)
		return put_u64(buf, (uint64_t)value);
	*buf = '-';
	return 1 + put_u64(buf + 1, 0 - (uint64_t)value);
}

/* 0 <= |value| < 1e15, six places behind the point, without zeros at the end. */
static size_t put_fixed(char *buf, double value)
{
	uint64_t whole = (uint64_t)value;
	uint64_t part = (uint64_t)((value - (double)whole) * 1e6 + 0.5);
	size_t n;

	whole += part == 1000000;
	part %= 1000000;
	n = put_u64(buf, whole);
	if (!part)
		return n;
	/* A leading one keeps the zeros behind the point. */
	put_u64(buf + n, 1000000 + part);
	buf[n] = '.';
	for (n += 7; buf[n - 1] == '0'; n--)
		;
	return n;
}

/* The C library's would need the locale, and may allocate. */
size_t d9__attribute_f64(char *buf, double value)
{
	const char *word = value != value ? "nan" : value > 1.7976931348623157e308 ? "inf" : NULL;
	int exponent = 0;
	size_t n;

	if (value < 0) {
		*buf = '-';
		return 1 + d9__attribute_f64(buf + 1, -value);
	}
	if (word) {
		memcpy(buf, word, 3);
		return 3;
	}
	if (value == 0 || (value >= 1e-3 && value < 1e15))
		return put_fixed(buf, value);
	while (value >= 10) {
		value /= 10;
		exponent++;
	}
	while (value < 1) {
		value *= 10;
		exponent--;
	}
	n = put_fixed(buf, value);
	buf[n++] = 'e';
	return n + put_i64(buf + n, exponent);
}

/* ---- values ---- */

static uint64_t read_u64(const uint8_t *bytes, size_t n)
{
	uint64_t value = 0;

	for (size_t i = 0; i < n; i++)
		value |= (uint64_t)bytes[i] << 8 * i;
	return value;
}

/* Written by d9__varint_put(). */
static uint64_t read_varint(const uint8_t *bytes)
{
	uint64_t value = 0;
	unsigned shift = 0;

	for (; *bytes & 0x80; bytes++, shift += 7)
		value |= (uint64_t)(*bytes & 0x7f) << shift;
	return value | (uint64_t)*bytes << shift;
}

static size_t format_f64(char *buf, const uint8_t *bytes)
{
	uint64_t bits = read_u64(bytes, 8);
	double value;

	memcpy(&value, &bits, sizeof(value));
	return d9__attribute_f64(buf, value);
}

/* A value as text. */
struct text {
	const char *data;
	size_t len;
	char buf[NUMBER_MAX];
};

/* False: there is no value, or none that is told as text. */
static bool format(const struct d9__span_state *span, unsigned field, struct text *text)
{
	const uint8_t *bytes = span->values + span->at[field];
	const struct d9__name *name;

	if (!*bytes++)
		return false;
	text->data = text->buf;
	switch (span->type->fields[field].type) {
	case D9__FIELD_VARINT:
		text->len = put_u64(text->buf, read_varint(bytes));
		return true;
	case D9__FIELD_U8:
		text->len = put_u64(text->buf, *bytes);
		return true;
	case D9__FIELD_U16:
		text->len = put_u64(text->buf, read_u64(bytes, 2));
		return true;
	case D9__FIELD_U32:
		text->len = put_u64(text->buf, read_u64(bytes, 4));
		return true;
	case D9__FIELD_I64:
		text->len = put_i64(text->buf, (int64_t)read_u64(bytes, 8));
		return true;
	case D9__FIELD_F64:
		text->len = format_f64(text->buf, bytes);
		return true;
	case D9__FIELD_BOOL:
		text->data = *bytes ? "true" : "false";
		text->len = strlen(text->data);
		return true;
	case D9__FIELD_STRING:
		text->data = (const char *)bytes + 4;
		text->len = read_u64(bytes, 4);
		return true;
	case D9__FIELD_POOLED_STRING:
		name = d9__name_text((uint32_t)read_u64(bytes, 4));
		text->data = name->text;
		text->len = name->len;
		return true;
	default:
		return false;
	}
}

size_t d9__attributes_bytes(const struct d9__span_state *span)
{
	size_t bytes = 4;
	struct text text;

	for (unsigned i = 0; i < span->type->n_fields; i++)
		if (format(span, i, &text))
			bytes += 8 + strlen(span->type->fields[i].name) + text.len;
	return bytes;
}

uint8_t *d9__attributes_put(uint8_t *p, const struct d9__span_state *span)
{
	uint8_t *count = p;
	uint32_t n = 0;
	struct text text;

	p += 4;
	for (unsigned i = 0; i < span->type->n_fields; i++) {
		const char *key = span->type->fields[i].name;

		if (!format(span, i, &text))
			continue;
		p = d9__wire_put_text(p, key, strlen(key));
		p = d9__wire_put_text(p, text.data, text.len);
		n++;
	}
	d9__wire_put_u32(count, n);
	return p;
}
