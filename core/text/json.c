/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "text/json.h"
#include "text/shown.h"

static void write_text(FILE *out, const char *text, size_t len)
{
	struct d9__shown shown;

	putc('"', out);
	for (; len; text += shown.taken, len -= shown.taken) {
		d9__shown_next(&shown, text, len);
		if (shown.code == '"' || shown.code == '\\')
			putc('\\', out);
		fwrite(shown.text, 1, shown.len, out);
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
