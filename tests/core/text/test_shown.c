/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "support/d9_test.h"
#include "text/shown.h"

static size_t encode(uint32_t code, char *out)
{
	size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

	for (size_t i = n; n > 1 && --i > 0; code >>= 6)
		out[i] = (char)(0x80 | (code & 0x3f));
	out[0] = (char)(n == 1 ? code : (0xf00u >> n & 0xff) | code);
	return n;
}

/* Characters that no terminal may get: it obeys them, reorders the line, or does not show them. */
static bool is_harmful(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0xad || code == 0x61c ||
	       (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
	       (code >= 0x2060 && code <= 0x206f) || code == 0xfeff || (code & 0xfffe) == 0xfffe ||
	       (code >= 0xe000 && code <= 0xf8ff) || code >= 0xe0000;
}

/* The code point that |escape|, as JSON has it, stands for. */
static uint32_t unescape(const char *escape, size_t len)
{
	static const char names[] = "bfnrt", codes[] = "\b\f\n\r\t";
	unsigned long high, low;

	if (len == 2)
		return (uint32_t)codes[strchr(names, escape[1]) - names];
	high = strtoul(escape + 2, NULL, 16);
	if (len == 6)
		return (uint32_t)high;
	low = strtoul(escape + 8, NULL, 16);
	return (uint32_t)(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00));
}

static void test_every_character_is_itself_or_a_harmless_escape_of_it(void)
{
	unsigned wrong = 0, harmful = 0;

	for (uint32_t code = 0; code <= 0x10ffff; code++) {
		struct d9__shown shown;
		char text[4];
		size_t n;

		if (code >= 0xd800 && code <= 0xdfff)
			continue;
		n = encode(code, text);
		d9__shown_next(&shown, text, n);
		wrong += shown.code != code || shown.taken != n;
		harmful += is_harmful(code) && !shown.escaped;
		if (!shown.escaped)
			wrong += shown.len != n || memcmp(shown.text, text, n) != 0;
		else
			wrong += unescape(shown.text, shown.len) != code;
	}

	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_EQUAL(harmful, 0);
}

static void test_words_of_many_languages_are_shown_as_they_are(void)
{
	static const char text[] = "gr\xc3\xbc\xc3\x9f dich, \xe5\x87\xa6\xe7\x90\x86, \xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d, "
				   "e\xcc\x81, \xf0\x9f\x90\xa2";
	char *out = NULL;
	size_t len;
	FILE *file = open_memstream(&out, &len);

	d9__shown_write(file, text, strlen(text));
	fclose(file);

	CU_ASSERT_STRING_EQUAL(out, text);
	free(out);
}

static void test_each_byte_that_is_no_text_is_one_replacement(void)
{
	static const char *const broken[] = { "\xff", "\xc2", "\xe0\x80\x9b", "\xed\xa0\x80", "\xf4\x90\x80\x80" };

	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		struct d9__shown shown;

		d9__shown_next(&shown, broken[i], strlen(broken[i]));
		CU_ASSERT_EQUAL(shown.taken, 1);
		CU_ASSERT_EQUAL(shown.len, 3);
		CU_ASSERT_EQUAL(memcmp(shown.text, "\xef\xbf\xbd", 3), 0);
	}
}

static CU_TestInfo tests[] = {
	{ "every character is itself or a harmless escape of it",
	  test_every_character_is_itself_or_a_harmless_escape_of_it },
	{ "words of many languages are shown as they are", test_words_of_many_languages_are_shown_as_they_are },
	{ "each byte that is no text is one replacement", test_each_byte_that_is_no_text_is_one_replacement },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("shown", tests);
}
