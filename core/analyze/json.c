/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "analyze/json.h"

/* Length of the UTF-8 character at |text|, 0 if it is none. */
static size_t character(const unsigned char *text, size_t len)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = text[0] < 0x80 ? 1 : text[0] < 0xc2 ? 0 : text[0] < 0xe0 ? 2
								  : text[0] < 0xf0 ? 3
								  : text[0] < 0xf5 ? 4 : 0;
	uint32_t point;

	if (n <= 1)
		return n;
	if (n > len)
		return 0;
	point = text[0] & (0xffu >> (n + 1));
	for (size_t i = 1; i < n; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		point = point << 6 | (text[i] & 0x3fu);
	}
	if (point < least[n] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
		return 0;
	return n;
}

static void write_text(FILE *out, const char *text, size_t len)
{
	const unsigned char *bytes = (const unsigned char *)text;

	putc('"', out);
	for (size_t i = 0; i < len;) {
		size_t n = character(bytes + i, len - i);

		if (n == 0)
			fputs("\\ufffd", out);
		else if (bytes[i] == '"' || bytes[i] == '\\')
			fprintf(out, "\\%c", bytes[i]);
		else if (bytes[i] < 0x20 || bytes[i] == 0x7f)
			fprintf(out, "\\u%04x", bytes[i]);
		else
			fwrite(bytes + i, 1, n, out);
		i += n ? n : 1;
	}
	putc('"', out);
}

static void new_line(struct d9__json *json)
{
	putc('\n', json->out);
	for (unsigned i = 0; i < json->depth; i++)
		fputs("  ", json->out);
}

static void begin_element(struct d9__json *json, const char *key)
{
	if (json->filled)
		putc(',', json->out);
	json->filled = true;
	if (json->depth)
		new_line(json);
	if (key) {
		write_text(json->out, key, strlen(key));
		fputs(": ", json->out);
	}
}

void d9__json_open(struct d9__json *json, const char *key, char bracket)
{
	begin_element(json, key);
	putc(bracket, json->out);
	json->depth++;
	json->filled = false;
}

void d9__json_close(struct d9__json *json, char bracket)
{
	json->depth--;
	if (json->filled)
		new_line(json);
	putc(bracket, json->out);
	json->filled = true;
	if (json->depth == 0)
		putc('\n', json->out);
}

void d9__json_text(struct d9__json *json, const char *key, const char *text, size_t len)
{
	begin_element(json, key);
	write_text(json->out, text, len);
}

void d9__json_string(struct d9__json *json, const char *key, const char *text)
{
	if (text)
		d9__json_text(json, key, text, strlen(text));
	else
		d9__json_null(json, key);
}

void d9__json_u64(struct d9__json *json, const char *key, uint64_t value)
{
	begin_element(json, key);
	fprintf(json->out, "%" PRIu64, value);
}

void d9__json_i64(struct d9__json *json, const char *key, int64_t value)
{
	begin_element(json, key);
	fprintf(json->out, "%" PRId64, value);
}

void d9__json_double(struct d9__json *json, const char *key, double value)
{
	begin_element(json, key);
	fprintf(json->out, "%.6f", value);
}

void d9__json_bool(struct d9__json *json, const char *key, bool value)
{
	begin_element(json, key);
	fputs(value ? "true" : "false", json->out);
}

void d9__json_null(struct d9__json *json, const char *key)
{
	begin_element(json, key);
	fputs("null", json->out);
}
