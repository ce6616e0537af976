/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report_parts.h"

/* Where what stands at the right edge ends at most: further away the eye loses the line. */
#define EDGE_MAX 110

size_t d9__report_edge(const struct d9__page *page)
{
	return page->width < EDGE_MAX ? page->width : EDGE_MAX;
}

/*
 * Return the part of |text| that fits in |columns|: whole sentences if they fill half of it, else
 * up to the end of a clause, best outside of parentheses, else of a word.  NULL: out of memory.
 */
static char *shorten_prose(const char *text, size_t columns)
{
	size_t sentence = 0, clause = 0, inner = 0, word = 0, depth = 0, cut;
	char *out;

	if (strlen(text) <= columns)
		return strdup(text);
	for (size_t i = 0; i < columns && text[i]; i++) {
		bool ends = text[i + 1] == ' ';

		depth += text[i] == '(';
		depth -= text[i] == ')' && depth;
		if (text[i] == '.' && ends)
			sentence = i + 1;
		else if (strchr(",;:", text[i]) && ends && i + strlen("...") <= columns)
			*(depth ? &inner : &clause) = i;
		else if (text[i] == ' ' && i + strlen("...") <= columns)
			word = i;
	}
	if (2 * sentence >= columns)
		return strndup(text, sentence);
	cut = 2 * clause >= columns ? clause : 2 * inner >= columns ? inner : word;
	/* A sentence's end needs no other. */
	if (cut && text[cut - 1] == '.')
		return strndup(text, cut);
	return asprintf(&out, "%.*s...", (int)cut, text) < 0 ? NULL : out;
}

void d9__report_put_labelled(struct d9__page *page, const char *label, const char *text, bool whole)
{
	char *fitting = whole ? strdup(text)
			      : shorten_prose(text, d9__report_edge(page) - D9__REPORT_INDENT);

	d9__page_put(page, D9__FAINT, label);
	if (fitting)
		d9__page_wrap(page, fitting, D9__REPORT_INDENT, D9__REPORT_INDENT);
	else
		page->err = -ENOMEM;
	free(fitting);
}
