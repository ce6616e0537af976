/* SPDX-License-Identifier: Apache-2.0 */
/*
 * find_bad_text [FILE...]: 1 and a line if one of them, or standard input, holds a character that a terminal
 * obeys, reorders by or does not show.  The program's own colours are none.
 */
#include "config.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/bad_text.h"

static const char *const colours[] = { "\033[0m", "\033[1m", "\033[1;31m", "\033[1;33m", "\033[36m", "\033[1;36m",
				       "\033[2m" };

static size_t colour_len(const unsigned char *text, size_t len)
{
	for (size_t i = 0; i < sizeof(colours) / sizeof(colours[0]); i++) {
		size_t n = strlen(colours[i]);

		if (n <= len && !memcmp(text, colours[i], n))
			return n;
	}
	return 0;
}

/* Bytes of the character at |text|, or 0 if it is no UTF-8. */
static size_t read_code(const unsigned char *text, size_t len, uint32_t *code)
{
	size_t n = *text < 0x80 ? 1 : *text >= 0xf0 ? 4 : *text >= 0xe0 ? 3 : *text >= 0xc0 ? 2 : 0;
	char again[4];

	if (!n || n > len)
		return 0;
	*code = n == 1 ? *text : *text & (0x7fu >> n);
	for (size_t i = 1; i < n; i++)
		*code = *code << 6 | (text[i] & 0x3f);
	/* Anything but the one right form comes out otherwise. */
	if (*code > 0x10ffff || (*code >= 0xd800 && *code <= 0xdfff) || put_code(*code, again) != n ||
	    memcmp(again, text, n) != 0)
		return 0;
	return n;
}

static bool is_clean(const char *name, const unsigned char *text, size_t len)
{
	for (size_t i = 0, n; i < len; i += n) {
		uint32_t code = 0;

		n = colour_len(text + i, len - i);
		if (n)
			continue;
		n = read_code(text + i, len - i, &code);
		if (n && !is_bad(code))
			continue;
		printf("%s: at byte %zu: %s %x\n", name, i, n ? "character" : "byte", n ? code : text[i]);
		return false;
	}
	return true;
}

static bool check(const char *name, FILE *file)
{
	unsigned char *text = NULL;
	size_t len = 0, size = 0, got;
	bool clean;

	if (!file) {
		perror(name);
		return false;
	}
	do {
		size = 2 * len + 65536;
		text = realloc(text, size);
		if (!text)
			abort();
		got = fread(text + len, 1, size - len, file);
		len += got;
	} while (got);
	clean = is_clean(name, text, len);
	free(text);
	fclose(file);
	return clean;
}

int main(int argc, char **argv)
{
	bool clean = true;

	if (argc == 1)
		clean = check("standard input", stdin);
	for (int i = 1; i < argc; i++)
		clean = check(argv[i], fopen(argv[i], "r")) && clean;
	return !clean;
}
