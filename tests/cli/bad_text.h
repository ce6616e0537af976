/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts that no output may hold, listed by the tests.  make_hostile puts these into every text of
 * traces and rings, find_bad_text looks for them in what the program prints.
 */

#ifndef D9_TESTS_BAD_TEXT_H
#define D9_TESTS_BAD_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Ends of ranges, and whatever is famous. */
static const uint32_t bad_codes[] = {
	0x1b,	 0x07,	 0x0a,	 0x0d,	 0x08,	 0x09,	 0x01,	 0x1f,	 0x7f,	 0x80,	 0x85,	  0x90,
	0x9b,	 0x9d,	 0x9f,	 0xad,	 0x61c,	 0x200b, 0x200c, 0x200d, 0x200e, 0x200f,  0x2028, 0x2029,
	0x202a,	 0x202b, 0x202c, 0x202d, 0x202e, 0x2060, 0x2061, 0x2064, 0x2066, 0x2067,  0x2068, 0x2069,
	0x206f,	 0xfeff, 0xfff9, 0xfffb, 0xfdd0, 0xfffe, 0xffff, 0xe000, 0xf8ff, 0xe0001, 0xe0041, 0xe007f,
	0xf0000, 0x10ffff,
};
#define BAD_CODES (sizeof(bad_codes) / sizeof(bad_codes[0]))

static inline int is_bad(uint32_t code)
{
	return (code < 0x20 && code != '\n') || (code >= 0x7f && code < 0xa0) || code == 0xad || code == 0x61c ||
	       (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
	       (code >= 0x2060 && code <= 0x206f) || code == 0xfeff || (code >= 0xfff9 && code <= 0xfffb) ||
	       (code >= 0xfdd0 && code <= 0xfdef) || (code & 0xfffe) == 0xfffe ||
	       (code >= 0xe000 && code <= 0xf8ff) || code >= 0xe0000;
}

/* Bytes that are no UTF-8: a C1 control of Latin 1, a surrogate, a long form of ESC, what lies beyond. */
static const char *const bad_bytes[] = { "\x9b", "\xed\xa0\x80", "\xc0\x9b", "\xf4\x90\x80\x80", "\xff" };
#define BAD_BYTES (sizeof(bad_bytes) / sizeof(bad_bytes[0]))

static inline size_t put_code(uint32_t code, char *out)
{
	size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

	for (size_t i = n; n > 1 && --i > 0; code >>= 6)
		out[i] = (char)(0x80 | (code & 0x3f));
	out[0] = (char)(n == 1 ? code : (0xf00u >> n & 0xff) | code);
	return n;
}

/* Fill |out| with bad characters and bytes, beginning at number |first|; whole ones, and an end. */
static inline char *bad_text(char *out, size_t size, size_t first)
{
	size_t len = 0, n;

	for (size_t i = 0; i < BAD_CODES + BAD_BYTES; i++) {
		size_t k = (first + i) % (BAD_CODES + BAD_BYTES);
		char one[8] = "";

		if (k < BAD_CODES)
			n = put_code(bad_codes[k], one);
		else
			n = strlen(strcpy(one, bad_bytes[k - BAD_CODES]));
		if (len + n + 1 > size)
			break;
		memcpy(out + len, one, n);
		len += n;
	}
	out[len] = '\0';
	return out;
}

#endif /* D9_TESTS_BAD_TEXT_H */
