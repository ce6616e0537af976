/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How text that others wrote is shown: names in traces and rings, paths, arguments.  A terminal obeys
 * control characters, reorders what stands behind a bidirectional override, and shows nothing for
 * characters of no width, so that two names look alike.  None of these is ever written: what stands
 * for one is its JSON escape, "\u202e", in JSON and on terminals alike, and the character of
 * replacement, U+FFFD, for a byte that is not UTF-8.  All that prints such text comes here.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* One character, and what is written for it. */
struct d9__shown {
	const char *text; /* points into the text, or to |escape| */
	size_t len;       /* bytes of it */
	size_t taken;     /* bytes of the text that it stands for, at least 1 */
	uint32_t code;    /* code point, U+FFFD for a byte that is not UTF-8 */
	bool escaped;     /* it is an escape: as many columns as bytes */
	char escape[13];
};

/* The first character of |len| > 0 bytes of |text|. */
void d9__shown_next(struct d9__shown *shown, const char *text, size_t len);

/* Write |text| so.  Errors stay in |out|: see ferror(3). */
void d9__shown_write(FILE *out, const char *text, size_t len);
