/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8: what texts in a trace are meant to be. */

#pragma once

#include <stddef.h>

/* Length of the valid UTF-8 character at |text|, 0 if there is none within |len|. */
static inline size_t d9__utf8_len(const char *text, size_t len)
{
	const unsigned char *p = (const unsigned char *)text;
	unsigned low = 0x80, high = 0xbf;
	size_t n;

	if (!len)
		return 0;
	if (p[0] < 0x80)
		return 1;
	n = p[0] >= 0xc2 && p[0] <= 0xdf ? 2 : (p[0] & 0xf0) == 0xe0 ? 3
	    : p[0] >= 0xf0 && p[0] <= 0xf4 ? 4 : 0;
	if (!n || n > len)
		return 0;
	/* The second byte rules out overlong forms, surrogates and what lies above U+10FFFF. */
	if (p[0] == 0xe0)
		low = 0xa0;
	else if (p[0] == 0xed)
		high = 0x9f;
	else if (p[0] == 0xf0)
		low = 0x90;
	else if (p[0] == 0xf4)
		high = 0x8f;
	if (p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

/* Of a longer text only so much is printed, because lengths of printf(3) are int. */
#define D9__PRECISION_MAX (1 << 20)

/* |len| for "%.*s". */
static inline int d9__precision(size_t len)
{
	return len < D9__PRECISION_MAX ? (int)len : D9__PRECISION_MAX;
}
