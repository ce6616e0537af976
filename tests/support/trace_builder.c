/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "ring/event_types.h"
#include "support/trace_builder.h"

#define DELTA_MAX 0xffffffu

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "trace_builder: %s\n", what);
	exit(99);
}

void trace_bytes(struct trace *t, const void *bytes, size_t len)
{
	if (t->len + len > t->size) {
		t->size = 2 * (t->len + len) + 4096;
		t->data = realloc(t->data, t->size);
		if (!t->data)
			die("out of memory");
	}
	if (len)
		memcpy(t->data + t->len, bytes, len);
	t->len += len;
}

void trace_uint(struct trace *t, uint64_t n, size_t bytes)
{
	uint8_t buf[8];

	for (size_t i = 0; i < bytes; i++)
		buf[i] = (uint8_t)(n >> (8 * i));
	trace_bytes(t, buf, bytes);
}

void trace_varint(struct trace *t, uint64_t n)
{
	for (; n >= 0x80; n >>= 7)
		trace_uint(t, (n & 0x7f) | 0x80, 1);
	trace_uint(t, n, 1);
}

void trace_text(struct trace *t, const char *text)
{
	trace_uint(t, strlen(text), 4);
	trace_bytes(t, text, strlen(text));
}

void trace_batch(struct trace *t)
{
	trace_bytes(t, "TRC\0\1", 5);
	t->base_ns = 0;
	t->strings = t->stacks = 0;
	memset(t->n_fields, 0, sizeof(t->n_fields));
}

static void put_name(struct trace *t, const char *name, size_t len)
{
	trace_uint(t, len, 2);
	trace_bytes(t, name, len);
}

/* Where its number of fields is to go; until put_field() there are none. */
static size_t put_schema(struct trace *t, unsigned type_id, const char *name)
{
	t->n_fields[type_id] = 0;
	t->has_time[type_id] = *name != '!';
	name += *name == '!';
	trace_uint(t, 1, 1);
	trace_uint(t, type_id, 2);
	put_name(t, name, strlen(name));
	trace_uint(t, (uint64_t)t->has_time[type_id], 1);
	trace_uint(t, 0, 2);
	return t->len - 2;
}

static void put_field(struct trace *t, unsigned type_id, const char *name, size_t len, unsigned tag)
{
	put_name(t, name, len);
	trace_uint(t, tag, 1);
	t->fields[type_id][t->n_fields[type_id]++] = (char)tag;
}

void trace_schema(struct trace *t, unsigned type_id, const char *name, const char *fields)
{
	size_t count_at = put_schema(t, type_id, name);

	for (const char *p = fields; *p;) {
		const char *colon = strchr(p, ':');
		char *end;

		if (!colon)
			die("a field without a type");
		put_field(t, type_id, p, (size_t)(colon - p), (unsigned)strtoul(colon + 1, &end, 10));
		p = end + strspn(end, " ");
	}
	t->data[count_at] = (uint8_t)t->n_fields[type_id];
}

static const struct d9__schema *builtin(const char *name)
{
	for (uint32_t id = 1; id < D9__EVENT_BUILTIN_END; id++) {
		const struct d9__schema *schema = d9__builtin_schema(id);

		if (schema && strcmp(schema->name, name) == 0)
			return schema;
	}
	die(name);
}

static const struct d9__field *field_of(const struct d9__schema *schema, const char *name, size_t len)
{
	for (size_t i = 0; i < schema->field_count; i++)
		if (strncmp(schema->fields[i].name, name, len) == 0 && !schema->fields[i].name[len])
			return &schema->fields[i];
	die(name);
}

void trace_builtin(struct trace *t, unsigned type_id, const char *name)
{
	const struct d9__schema *schema = builtin(name);
	size_t count_at = put_schema(t, type_id, name), n = schema->field_count;

	/* Polls tell no wakes, unless a test names all their fields. */
	if (!strcmp(name, "PollStartEvent"))
		n--;
	for (size_t i = 0; i < n; i++)
		put_field(t, type_id, schema->fields[i].name, strlen(schema->fields[i].name), schema->fields[i].type);
	t->data[count_at] = (uint8_t)n;
}

void trace_builtin_fields(struct trace *t, unsigned type_id, const char *name, const char *fields)
{
	const struct d9__schema *schema = builtin(name);
	size_t count_at = put_schema(t, type_id, name);

	for (size_t len; (len = strcspn(fields, " ")) != 0; fields += len + strspn(fields + len, " "))
		put_field(t, type_id, fields, len, field_of(schema, fields, len)->type);
	t->data[count_at] = (uint8_t)t->n_fields[type_id];
}

void trace_annotate(struct trace *t, unsigned type_id, unsigned field, const char *key,
		    const char *value)
{
	trace_uint(t, 6, 1);
	trace_varint(t, type_id);
	trace_uint(t, 1, 2);
	trace_uint(t, field, 2);
	put_name(t, key, strlen(key));
	trace_text(t, value);
}

uint32_t trace_string(struct trace *t, const char *text)
{
	trace_uint(t, 3, 1);
	trace_uint(t, 1, 4);
	trace_uint(t, t->strings, 4);
	trace_text(t, text);
	return t->strings++;
}

uint32_t trace_stack(struct trace *t, size_t n, const uint64_t *addresses)
{
	trace_uint(t, 4, 1);
	trace_uint(t, 1, 4);
	trace_uint(t, t->stacks, 4);
	trace_uint(t, n, 4);
	for (size_t i = 0; i < n; i++)
		trace_uint(t, addresses[i], 8);
	return t->stacks++;
}

void trace_head(struct trace *t, unsigned type_id, uint64_t ns)
{
	int has_time = t->has_time[type_id];

	if (has_time && (ns < t->base_ns || ns - t->base_ns > DELTA_MAX)) {
		trace_uint(t, 5, 1);
		trace_uint(t, ns, 8);
		t->base_ns = ns;
	}
	trace_uint(t, 2, 1);
	trace_uint(t, type_id, 2);
	if (!has_time)
		return;
	trace_uint(t, ns - t->base_ns, 3);
	t->base_ns = ns;
}

static void put_f64(struct trace *t, double x)
{
	uint64_t bits;

	memcpy(&bits, &x, sizeof(bits));
	trace_uint(t, bits, 8);
}

static void put_value(struct trace *t, unsigned tag, va_list *args)
{
	switch (tag) {
	case 1:
		trace_uint(t, (uint64_t)va_arg(*args, int64_t), 8);
		break;
	case 2:
		put_f64(t, va_arg(*args, double));
		break;
	case 3:
	case 11:
		trace_uint(t, va_arg(*args, uint64_t), 1);
		break;
	case 4:
	case 5:
		trace_text(t, va_arg(*args, const char *));
		break;
	case 6:
	case 7:
	case 13:
		trace_uint(t, va_arg(*args, uint64_t), 4);
		break;
	case 9:
		trace_varint(t, va_arg(*args, uint64_t));
		break;
	case 12:
		trace_uint(t, va_arg(*args, uint64_t), 2);
		break;
	default:
		die("trace_event() does not do this type");
	}
}

void trace_event(struct trace *t, unsigned type_id, uint64_t ns, ...)
{
	va_list args;

	trace_head(t, type_id, ns);
	va_start(args, ns);
	for (size_t i = 0; i < t->n_fields[type_id]; i++) {
		unsigned tag = (unsigned char)t->fields[type_id][i];

		if (tag & 0x80) {
			int present = va_arg(args, int);

			trace_uint(t, (uint64_t)present, 1);
			if (!present)
				continue;
		}
		put_value(t, tag & 0x7f, &args);
	}
	va_end(args);
}

static void save_gzip(const struct trace *t, const char *path)
{
	gzFile file = gzopen(path, "wb");

	if (!file || gzwrite(file, t->data, (unsigned)t->len) != (int)t->len ||
	    gzclose(file) != Z_OK)
		die("cannot write gzip");
}

static void *pack_zstd(const struct trace *t, size_t *len)
{
	size_t size = ZSTD_compressBound(t->len);
	void *packed = malloc(size);

	if (!packed)
		die("out of memory");
	*len = ZSTD_compress(packed, size, t->data, t->len, 1);
	if (ZSTD_isError(*len))
		die("zstd failed");
	return packed;
}

/* As a recorder does that has no time to compress: FORMAT.md 8. */
static void *pack_raw(const struct trace *t, size_t *len)
{
	static const uint8_t head[] = { 0x28, 0xb5, 0x2f, 0xfd, 0, 0x38 }, end[] = { 1, 0, 0 };
	uint8_t *packed = malloc(t->len + t->len / 1000 + 64), *p = packed;

	if (!packed)
		die("out of memory");
	memcpy(p, head, sizeof(head));
	p += sizeof(head);
	for (size_t at = 0, n; at < t->len; at += n) {
		n = t->len - at < 65535 ? t->len - at : 65535;
		for (int shift = 0; shift < 24; shift += 8)
			*p++ = (uint8_t)(n << 3 >> shift);
		memcpy(p, t->data + at, n);
		p += n;
	}
	memcpy(p, end, sizeof(end));
	*len = (size_t)(p - packed) + sizeof(end);
	return packed;
}

void trace_save(const struct trace *t, const char *path, const char *container)
{
	void *packed = NULL;
	size_t len = t->len;
	FILE *file;

	if (!strcmp(container, "gzip")) {
		save_gzip(t, path);
		return;
	}
	if (!strcmp(container, "zstd"))
		packed = pack_zstd(t, &len);
	if (!strcmp(container, "raw"))
		packed = pack_raw(t, &len);
	file = fopen(path, "wb");
	if (!file || fwrite(packed ? packed : t->data, 1, len, file) != len || fclose(file))
		die("cannot write");
	free(packed);
}

void trace_free(struct trace *t)
{
	free(t->data);
	*t = (struct trace){ 0 };
}
