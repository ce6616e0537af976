/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arguments are checked against their field and measured first, then written: what begins to be
 * written is known to fit.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "format/encoder.h"
#include "format/varint.h"
#include "record/arguments.h"
#include "ring/emit_inl.h"
#include "ring/names.h"

#define TEXT_MAX   1024
#define DEPTH_MAX  16 /* of lists in lists */

int d9__fields_check(const struct d9_field *fields, size_t n)
{
	if (n > D9__FIELDS_MAX || (n && !fields))
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		unsigned base = fields[i].type & ~D9_FIELD_OPTIONAL;

		if (!fields[i].name || base < D9_FIELD_I64 || base > D9_FIELD_MAP)
			return -EINVAL;
	}
	return 0;
}

uint8_t d9__field_wire_type(unsigned type)
{
	if ((type & ~D9_FIELD_OPTIONAL) == D9_FIELD_POOLED_STACK)
		type = D9_FIELD_STACK | (type & D9_FIELD_OPTIONAL);
	return (uint8_t)type;
}

/* ---- measuring and checking ---- */

/* Cut before a character rather than inside it. */
static size_t cut_at(const char *text, size_t len, size_t max)
{
	if (len <= max)
		return len;
	for (len = max; len && max - len < 4 && ((unsigned char)text[len] & 0xc0) == 0x80; len--)
		;
	return len;
}

static size_t cut(const char *text, size_t len)
{
	return cut_at(text, len, TEXT_MAX);
}

static bool is_integer(const struct d9_arg *arg, uint64_t max)
{
	switch (arg->kind) {
	case D9_ARG_U64:
		return arg->u.u64 <= max;
	case D9_ARG_I64:
		return arg->u.i64 >= 0 && (uint64_t)arg->u.i64 <= max;
	case D9_ARG_BOOL:
		return max == 1;
	default:
		return false;
	}
}

static bool is_signed(const struct d9_arg *arg)
{
	return arg->kind == D9_ARG_I64 || (arg->kind == D9_ARG_U64 && arg->u.u64 <= INT64_MAX);
}

static bool is_text(const struct d9_arg *arg)
{
	if (arg->kind == D9_ARG_NAME)
		return arg->u.name.handle <= D9__NAME_OTHER ||
		       arg->u.name.handle < d9__name_count();
	return arg->kind == D9_ARG_TEXT && (arg->u.of.data || !arg->u.of.n);
}

static size_t text_len(const struct d9_arg *arg)
{
	const struct d9__name *name;

	if (arg->kind == D9_ARG_TEXT)
		return cut(arg->u.of.data, arg->u.of.n);
	name = d9__name_text(arg->u.name.handle);
	return cut(name->text, name->len);
}

static bool has_data(const struct d9_arg *arg, enum d9_arg_kind kind)
{
	return arg->kind == kind && (arg->u.of.data || !arg->u.of.n) &&
	       arg->u.of.n <= D9__EMIT_MAX;
}

/* The wire type of an element of a list or map, 0 if there is none. */
static uint8_t element_type(const struct d9_arg *arg)
{
	switch (arg->kind) {
	case D9_ARG_U64:
		return D9_FIELD_VARINT;
	case D9_ARG_I64:
		return arg->u.i64 < 0 ? D9_FIELD_I64 : D9_FIELD_VARINT;
	case D9_ARG_F64:
		return D9_FIELD_F64;
	case D9_ARG_BOOL:
		return D9_FIELD_BOOL;
	case D9_ARG_TEXT:
	case D9_ARG_NAME: /* pooled ids inside containers stay unresolved in other tools */
		return D9_FIELD_STRING;
	case D9_ARG_BYTES:
		return D9_FIELD_BYTES;
	case D9_ARG_STACK:
		return D9_FIELD_STACK;
	case D9_ARG_LIST:
		return D9_FIELD_LIST;
	case D9_ARG_MAP:
		return D9_FIELD_MAP;
	case D9_ARG_STRING_MAP:
		return D9_FIELD_STRING_MAP;
	case D9_ARG_ABSENT:
		break;
	}
	return 0;
}

static long measure(uint8_t type, const struct d9_arg *arg, unsigned depth);

static long measure_items(const struct d9_arg *arg, size_t n, unsigned depth)
{
	const struct d9_arg *items = arg->u.of.data;
	long total = 4;

	if (depth >= DEPTH_MAX)
		return -EINVAL;
	for (size_t i = 0; i < n && total <= (long)D9__EMIT_MAX; i++) {
		uint8_t type = element_type(&items[i]);
		long size = type ? measure(type, &items[i], depth + 1) : -EINVAL;

		if (size < 0)
			return size;
		total += 1 + size;
	}
	return total;
}

static long measure_string_map(const struct d9_arg *arg)
{
	const char *const *texts = arg->u.of.data;
	long total = 4;

	for (size_t i = 0; i < 2 * arg->u.of.n && total <= (long)D9__EMIT_MAX; i++) {
		if (!texts[i])
			return -EINVAL;
		total += 4 + (long)cut(texts[i], strlen(texts[i]));
	}
	return total;
}

static long measure(uint8_t type, const struct d9_arg *arg, unsigned depth)
{
	switch (type) {
	case D9_FIELD_VARINT:
		return is_integer(arg, UINT64_MAX) ? D9__VARINT_MAX : -EINVAL;
	case D9_FIELD_U8:
		return is_integer(arg, UINT8_MAX) ? 1 : -EINVAL;
	case D9_FIELD_U16:
		return is_integer(arg, UINT16_MAX) ? 2 : -EINVAL;
	case D9_FIELD_U32:
		return is_integer(arg, UINT32_MAX) ? 4 : -EINVAL;
	case D9_FIELD_BOOL:
		return is_integer(arg, 1) ? 1 : -EINVAL;
	case D9_FIELD_I64:
		return is_signed(arg) ? 8 : -EINVAL;
	case D9_FIELD_F64:
		return arg->kind == D9_ARG_F64 ? 8 : -EINVAL;
	case D9_FIELD_STRING:
		return is_text(arg) ? 4 + (long)text_len(arg) : -EINVAL;
	case D9_FIELD_POOLED_STRING:
		return is_text(arg) ? 4 : -EINVAL;
	case D9_FIELD_BYTES:
		return has_data(arg, D9_ARG_BYTES) ? 4 + (long)arg->u.of.n : -EINVAL;
	case D9_FIELD_STACK:
		return has_data(arg, D9_ARG_STACK) ? 4 + 8 * (long)arg->u.of.n : -EINVAL;
	case D9_FIELD_LIST:
		return has_data(arg, D9_ARG_LIST) ? measure_items(arg, arg->u.of.n, depth) :
						    -EINVAL;
	case D9_FIELD_MAP:
		return has_data(arg, D9_ARG_MAP) ? measure_items(arg, 2 * arg->u.of.n, depth) :
						   -EINVAL;
	case D9_FIELD_STRING_MAP:
		return has_data(arg, D9_ARG_STRING_MAP) ? measure_string_map(arg) : -EINVAL;
	}
	return -EINVAL;
}

/* ---- writing ---- */

static uint64_t integer_of(const struct d9_arg *arg)
{
	return arg->kind == D9_ARG_U64 ? arg->u.u64 :
	       arg->kind == D9_ARG_BOOL ? arg->u.boolean : (uint64_t)arg->u.i64;
}

static uint8_t *put_text(uint8_t *p, const struct d9_arg *arg)
{
	const char *text = arg->kind == D9_ARG_NAME ? d9__name_text(arg->u.name.handle)->text :
			   arg->u.of.n ? arg->u.of.data : "";

	return d9__wire_put_text(p, text, text_len(arg));
}

static uint8_t *put(uint8_t *p, uint8_t type, const struct d9_arg *arg);

static uint8_t *put_items(uint8_t *p, const struct d9_arg *arg, size_t n)
{
	const struct d9_arg *items = arg->u.of.data;

	p = d9__wire_put_u32(p, (uint32_t)arg->u.of.n);
	for (size_t i = 0; i < n; i++) {
		uint8_t type = element_type(&items[i]);

		*p++ = type;
		p = put(p, type, &items[i]);
	}
	return p;
}

static uint8_t *put_string_map(uint8_t *p, const struct d9_arg *arg)
{
	const char *const *texts = arg->u.of.data;

	p = d9__wire_put_u32(p, (uint32_t)arg->u.of.n);
	for (size_t i = 0; i < 2 * arg->u.of.n; i++)
		p = d9__wire_put_text(p, texts[i], cut(texts[i], strlen(texts[i])));
	return p;
}

static uint8_t *put_stack(uint8_t *p, const struct d9_arg *arg)
{
	const uint64_t *addresses = arg->u.of.data;

	p = d9__wire_put_u32(p, (uint32_t)arg->u.of.n);
	for (size_t i = 0; i < arg->u.of.n; i++)
		p = d9__wire_put_u64(p, addresses[i]);
	return p;
}

static uint8_t *put_f64(uint8_t *p, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return d9__wire_put_u64(p, bits);
}

static uint8_t *put(uint8_t *p, uint8_t type, const struct d9_arg *arg)
{
	switch (type) {
	case D9_FIELD_VARINT:
		return d9__varint_put(p, integer_of(arg));
	case D9_FIELD_BOOL:
	case D9_FIELD_U8:
		*p++ = (uint8_t)integer_of(arg);
		return p;
	case D9_FIELD_U16:
		return d9__wire_put_u16(p, (uint16_t)integer_of(arg));
	case D9_FIELD_U32:
		return d9__wire_put_u32(p, (uint32_t)integer_of(arg));
	case D9_FIELD_I64:
		return d9__wire_put_u64(p, integer_of(arg));
	case D9_FIELD_F64:
		return put_f64(p, arg->u.f64);
	case D9_FIELD_STRING:
		return put_text(p, arg);
	case D9_FIELD_BYTES:
		return d9__wire_put_text(p, arg->u.of.n ? arg->u.of.data : "", arg->u.of.n);
	case D9_FIELD_STACK:
		return put_stack(p, arg);
	case D9_FIELD_LIST:
		return put_items(p, arg, arg->u.of.n);
	case D9_FIELD_MAP:
		return put_items(p, arg, 2 * arg->u.of.n);
	case D9_FIELD_STRING_MAP:
		return put_string_map(p, arg);
	}
	return p;
}

long d9__arg_measure(uint8_t type, const struct d9_arg *arg)
{
	return measure(type, arg, 0);
}

uint8_t *d9__arg_put(uint8_t *p, uint8_t type, const struct d9_arg *arg)
{
	return put(p, type, arg);
}

struct d9_arg d9__arg_cut(const struct d9_arg *arg, size_t max)
{
	const char *text = arg->kind == D9_ARG_NAME ? d9__name_text(arg->u.name.handle)->text :
						      arg->u.of.data;

	return d9_text(text, cut_at(text, text_len(arg), max));
}

uint32_t d9__arg_name(const struct d9_arg *arg)
{
	if (arg->kind == D9_ARG_NAME)
		return arg->u.name.handle;
	return arg->u.of.n ? d9__name_intern(arg->u.of.data, arg->u.of.n) : D9__NAME_EMPTY;
}
