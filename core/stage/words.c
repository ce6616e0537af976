/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "stage/words.h"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

/*
 * Copy the word at |*from| to |to|, terminated, and move |*from| behind it.  Returns the end in
 * |to|; NULL: |*fault| tells why.
 */
static char *copy_word(const char **from, char *to, const char **fault)
{
	const char *c = *from;
	char quote = '\0';

	for (; *c && (quote || !is_blank(*c)); c++) {
		if (quote ? *c == quote : *c == '"' || *c == '\'') {
			quote = quote ? '\0' : *c;
		} else if (*c == '\\' && (!quote || (quote == '"' && (c[1] == '"' || c[1] == '\\')))) {
			if (!*++c) {
				*fault = "nothing stands behind the backslash at its end";
				return NULL;
			}
			*to++ = *c;
		} else {
			*to++ = *c;
		}
	}
	if (quote) {
		*fault = "the quotes are not closed";
		return NULL;
	}
	*to++ = '\0';
	*from = c;
	return to;
}

char **d9__words_split(const char *text, const char **fault)
{
	size_t len = strlen(text), max = len / 2 + 2, n = 0;
	char **words = calloc(1, max * sizeof(*words) + len + 1), *to;

	if (!words) {
		*fault = "no memory";
		return NULL;
	}
	to = (char *)(words + max);
	for (;;) {
		while (is_blank(*text))
			text++;
		if (!*text)
			break;
		words[n++] = to;
		to = copy_word(&text, to, fault);
		if (!to) {
			free(words);
			return NULL;
		}
	}
	if (n && words[0][0])
		return words;
	*fault = "it names no command";
	free(words);
	return NULL;
}
