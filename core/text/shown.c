/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "base/utf8.h"
#include "text/shown.h"

/*
 * Characters that are never written: Unicode's controls, its Default_Ignorable_Code_Point (no width:
 * bidirectional controls, joiners, fillers, variation selectors, tags), separators of lines, private
 * use, code points that are no characters, and planes in which none has been assigned.  Ascending.
 */
static const struct {
	uint32_t first, last;
} unshown[] = {
	{ 0x7f, 0x9f },	      { 0xad, 0xad },	    { 0x34f, 0x34f },	  { 0x61c, 0x61c },
	{ 0x115f, 0x1160 },   { 0x17b4, 0x17b5 },   { 0x180b, 0x180f },	  { 0x200b, 0x200f },
	{ 0x2028, 0x202e },   { 0x2060, 0x206f },   { 0x3164, 0x3164 },	  { 0xe000, 0xf8ff },
	{ 0xfdd0, 0xfdef },   { 0xfe00, 0xfe0f },   { 0xfeff, 0xfeff },	  { 0xffa0, 0xffa0 },
	{ 0xfff0, 0xfffb },   { 0xfffe, 0xffff },   { 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a },
	{ 0x1fffe, 0x1ffff }, { 0x2fffe, 0x2ffff }, { 0x3fffe, 0x10ffff },
};

static bool is_shown(uint32_t code)
{
	size_t low = 0, high = sizeof(unshown) / sizeof(unshown[0]);

	if (code < 0x7f)
		return code >= ' ';
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (unshown[middle].last < code)
			low = middle + 1;
		else
			high = middle;
	}
	return low == sizeof(unshown) / sizeof(unshown[0]) || code < unshown[low].first;
}

/* The code point of |n| bytes of valid UTF-8. */
static uint32_t decode(const char *text, size_t n)
{
	uint32_t code = (unsigned char)text[0];

	if (n > 1)
		code &= 0x7fu >> n;
	for (size_t i = 1; i < n; i++)
		code = code << 6 | ((unsigned char)text[i] & 0x3f);
	return code;
}

static void set_escape(struct d9__shown *shown)
{
	static const char controls[] = "\bb\tt\nn\ff\rr";
	const char *control = shown->code && shown->code < ' ' ? strchr(controls, (int)shown->code) : NULL;
	uint32_t above = shown->code - 0x10000;
	int n;

	if (control)
		n = snprintf(shown->escape, sizeof(shown->escape), "\\%c", control[1]);
	else if (shown->code < 0x10000)
		n = snprintf(shown->escape, sizeof(shown->escape), "\\u%04x", shown->code & 0xffff);
	else
		n = snprintf(shown->escape, sizeof(shown->escape), "\\u%04x\\u%04x",
			     0xd800 | (above >> 10 & 0x3ff), 0xdc00 | (above & 0x3ff));
	shown->text = shown->escape;
	shown->len = (size_t)n;
	shown->escaped = true;
}

void d9__shown_next(struct d9__shown *shown, const char *text, size_t len)
{
	size_t n = d9__utf8_len(text, len);

	*shown = (struct d9__shown){ .text = "\xef\xbf\xbd", .len = 3, .taken = 1, .code = 0xfffd };
	if (!n)
		return;
	shown->code = decode(text, n);
	shown->taken = n;
	if (is_shown(shown->code)) {
		shown->text = text;
		shown->len = n;
	} else {
		set_escape(shown);
	}
}

void d9__shown_write(FILE *out, const char *text, size_t len)
{
	struct d9__shown shown;

	for (; len; text += shown.taken, len -= shown.taken) {
		d9__shown_next(&shown, text, len);
		fwrite(shown.text, 1, shown.len, out);
	}
}
