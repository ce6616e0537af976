/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Markup: the few elements that are needed from a store's answers.  This is no XML parser: it finds
 * an element by its name and never reads outside of the bytes, which are not to be trusted.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Bytes inside of an element; borrowed from the document. */
struct d9__markup {
	const char *text;
	size_t len;
};

/*
 * The content of the first <|tag|> in |in| behind its first |*from| bytes, up to the next </|tag|>;
 * |*from| moves behind that.  Attributes of the tag are passed over.
 */
bool d9__markup_next(struct d9__markup in, const char *tag, size_t *from, struct d9__markup *out);

/* As d9__markup_next(), from the beginning. */
bool d9__markup_find(struct d9__markup in, const char *tag, struct d9__markup *out);

/*
 * Copy |in| with its references (&amp; &#60; &#x3c;) replaced, terminated; a part that is no
 * reference stays as it is.  False: it does not fit into |size| bytes, or has a zero byte; |out| is
 * empty then.
 */
bool d9__markup_text(struct d9__markup in, char *out, size_t size);

/* The text with %XX and "+" replaced, in place; false: a wrong or a zero byte. */
bool d9__markup_url_decode(char *text);
