/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/markup.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define REFERENCE_MAX 10 /* bytes between & and ; */

/* Behind the '>' of <|tag|...>, at or after |at|; NULL: none. */
static const char *behind_open(const char *at, const char *end, const char *tag)
{
	size_t len = strlen(tag);

	while ((at = memchr(at, '<', (size_t)(end - at)))) {
		at++;
		if ((size_t)(end - at) <= len)
			return NULL;
		if (memcmp(at, tag, len) || !strchr("> \t\r\n", at[len]) || !at[len])
			continue;
		at = memchr(at + len, '>', (size_t)(end - at) - len);
		return at ? at + 1 : NULL;
	}
	return NULL;
}

/* The '<' of </|tag|>, at or after |at|; NULL: none. */
static const char *at_close(const char *at, const char *end, const char *tag)
{
	size_t len = strlen(tag);

	for (; (at = memchr(at, '<', (size_t)(end - at))); at++) {
		if ((size_t)(end - at) < len + 3)
			return NULL;
		if (at[1] == '/' && !memcmp(at + 2, tag, len) && at[2 + len] == '>')
			return at;
	}
	return NULL;
}

bool d9__markup_next(struct d9__markup in, const char *tag, size_t *from, struct d9__markup *out)
{
	const char *end = in.text + in.len, *open, *close;

	if (*from >= in.len)
		return false;
	open = behind_open(in.text + *from, end, tag);
	close = open ? at_close(open, end, tag) : NULL;
	if (!close)
		return false;
	*out = (struct d9__markup) { open, (size_t)(close - open) };
	*from = (size_t)(close - in.text) + strlen(tag) + 3;
	return true;
}

bool d9__markup_find(struct d9__markup in, const char *tag, struct d9__markup *out)
{
	size_t from = 0;

	return d9__markup_next(in, tag, &from, out);
}

static size_t utf8(uint32_t c, char out[4])
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* Return the character that |name|, between & and ;, stands for; 0: none. */
static uint32_t referred(const char *name)
{
	static const struct {
		const char *name;
		char c;
	} known[] = { { "amp", '&' }, { "lt", '<' }, { "gt", '>' }, { "quot", '"' }, { "apos", '\'' } };
	unsigned long c;
	char *end;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcmp(name, known[i].name))
			return (uint32_t)known[i].c;
	if (name[0] != '#')
		return 0;
	c = name[1] == 'x' ? strtoul(name + 2, &end, 16) : strtoul(name + 1, &end, 10);
	if (*end || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	return (uint32_t)c;
}

/*
 * Read the reference at |at|, which is a '&', into |*c|.  Returns its length in bytes, 0: it is
 * none.
 */
static size_t reference(const char *at, const char *end, uint32_t *c)
{
	size_t most = (size_t)(end - at) < REFERENCE_MAX + 2 ? (size_t)(end - at) : REFERENCE_MAX + 2;
	const char *stop = memchr(at, ';', most);
	char name[REFERENCE_MAX + 2];

	if (!stop)
		return 0;
	memcpy(name, at + 1, (size_t)(stop - at) - 1);
	name[stop - at - 1] = '\0';
	*c = referred(name);
	return *c ? (size_t)(stop - at) + 1 : 0;
}

bool d9__markup_text(struct d9__markup in, char *out, size_t size)
{
	const char *at = in.text, *end = in.text + in.len;
	size_t n = 0;

	while (at < end) {
		uint32_t c = 0;
		size_t taken = *at == '&' ? reference(at, end, &c) : 0;
		char bytes[4] = { *at };
		size_t len = taken ? utf8(c, bytes) : 1;

		if (n + len >= size || !bytes[0]) {
			out[0] = '\0';
			return false;
		}
		memcpy(out + n, bytes, len);
		n += len;
		at += taken ? taken : 1;
	}
	out[n] = '\0';
	return true;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool d9__markup_url_decode(char *text)
{
	char *out = text;

	for (; *text; text++, out++) {
		int high, low;

		*out = *text == '+' ? ' ' : *text;
		if (*text != '%')
			continue;
		high = digit(text[1]);
		low = high < 0 ? -1 : digit(text[2]);
		if (low < 0 || (high == 0 && low == 0))
			return false;
		*out = (char)(high << 4 | low);
		text += 2;
	}
	*out = '\0';
	return true;
}
