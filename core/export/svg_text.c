/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "export/svg_text.h"
#include "text/shown.h"

#define LEAST 3 /* fewer characters are no name */

static void put_character(FILE *out, const struct d9__shown *shown)
{
	if (shown->code == '<')
		fputs("&lt;", out);
	else if (shown->code == '>')
		fputs("&gt;", out);
	else if (shown->code == '&')
		fputs("&amp;", out);
	else if (shown->code == '"')
		fputs("&quot;", out);
	else
		fwrite(shown->text, 1, shown->len, out);
}

void d9__svg_text(FILE *out, const char *text)
{
	struct d9__shown shown;

	for (size_t len = strlen(text); len; text += shown.taken, len -= shown.taken) {
		d9__shown_next(&shown, text, len);
		put_character(out, &shown);
	}
}

/* Escapes take as many columns as bytes, all else one. */
static size_t columns_of(const struct d9__shown *shown)
{
	return shown->escaped ? shown->len : 1;
}

/* How many columns |text| takes, up to |max| + 1. */
static size_t count_columns(const char *text, size_t max)
{
	struct d9__shown shown;
	size_t n = 0;

	for (size_t len = strlen(text); len && n <= max; text += shown.taken, len -= shown.taken) {
		d9__shown_next(&shown, text, len);
		n += columns_of(&shown);
	}
	return n;
}

void d9__svg_text_fitting(FILE *out, const char *text, size_t max)
{
	size_t n = 0, len = strlen(text);
	struct d9__shown shown;

	if (max < LEAST)
		return;
	if (count_columns(text, max) <= max) {
		d9__svg_text(out, text);
		return;
	}
	for (; len; text += shown.taken, len -= shown.taken) {
		d9__shown_next(&shown, text, len);
		n += columns_of(&shown);
		if (n > max - 2)
			break;
		put_character(out, &shown);
	}
	fputs("..", out);
}
