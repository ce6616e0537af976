/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "support/d9_test.h"
#include "text/json.h"
#include "text/page.h"
#include "text/units.h"

/* The text written so far. */
struct sink {
	FILE *out;
	char *text;
	size_t len;
};

static void open_sink(struct sink *sink)
{
	*sink = (struct sink){ .text = NULL };
	sink->out = open_memstream(&sink->text, &sink->len);
	CU_ASSERT_PTR_NOT_NULL_FATAL(sink->out);
}

static void expect(struct sink *sink, const char *text)
{
	fclose(sink->out);
	CU_ASSERT_STRING_EQUAL(sink->text, text);
	free(sink->text);
}

static void expect_short(const char *text, size_t keep, size_t columns, const char *expected)
{
	struct d9__page page = { .utf8 = true };
	char *found = d9__page_shorten(&page, text, keep, columns);

	CU_ASSERT_STRING_EQUAL(found, expected);
	free(found);
}

static void test_long_names_are_shortened_in_the_middle(void)
{
	expect_short("abcdefghij", 0, 10, "abcdefghij");
	expect_short("abcdefghijk", 0, 10, "abcd...ijk");
	expect_short("abcdefghijk", 0, 3, "abc");
	expect_short("\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f""abcdef", 0, 7,
		     "\xc3\xa4\xc3\xb6...ef");
}

static void test_wide_characters_take_two_columns_and_are_never_halved(void)
{
	struct d9__page page = { .utf8 = true };

	/* U+51E6 U+7406, and an "e" with an accent of its own. */
	CU_ASSERT_EQUAL(d9__page_columns(&page, "\xe5\x87\xa6\xe7\x90\x86_x"), 6);
	CU_ASSERT_EQUAL(d9__page_columns(&page, "e\xcc\x81"), 1);
	expect_short("\xe5\x87\xa6\xe7\x90\x86_x", 0, 6, "\xe5\x87\xa6\xe7\x90\x86_x");
	expect_short("\xe5\x87\xa6\xe7\x90\x86\xe5\x87\xa6\xe7\x90\x86", 0, 7,
		     "\xe5\x87\xa6...\xe7\x90\x86");
	expect_short("\xe5\x87\xa6\xe7\x90\x86\xe5\x87\xa6\xe7\x90\x86", 0, 6,
		     "\xe5\x87\xa6...");
}

static void test_function_is_spared_before_its_site(void)
{
	expect_short("handler @ connection_new server.c:712", 7, 30,
		     "handler @ connect...rver.c:712");
	expect_short("handler @ connection_new server.c:712", 7, 15, "handler");
	expect_short("handler_of_all @ connection_new server.c:712", 14, 10, "hand...all");
}

static void test_remark_in_parentheses_gives_way_before_the_name_in_front_of_it(void)
{
	expect_short("show (1.19 s in loops) @ main dialog.c:712", 22, 30,
		     "show (1.19 s in loops)");
	expect_short("on_order (1.19 s in loops) @ main dialog.c:712", 26, 15, "on_order");
	expect_short("on_order (1.19 s in loops) @ main dialog.c:712", 26, 7, "on...er");
}

static void test_paragraph_is_broken_at_spaces(void)
{
	struct sink sink;
	struct d9__page page = { .width = 20 };

	open_sink(&sink);
	page.out = sink.out;
	d9__page_wrap(&page, "one two three four five six", 0, 4);

	expect(&sink, "one two three four\n    five six\n");
}

static void test_number_and_its_unit_stay_together(void)
{
	struct sink sink;
	struct d9__page page = { .width = 20 };

	open_sink(&sink);
	page.out = sink.out;
	d9__page_wrap(&page, "waited for up to 136 ms, 3 times", 0, 2);

	expect(&sink, "waited for up to\n  136 ms, 3 times\n");
}

static void test_control_characters_never_reach_the_terminal(void)
{
	struct sink sink;
	struct d9__page page = { .width = 80, .utf8 = true };

	open_sink(&sink);
	page.out = sink.out;
	d9__page_put(&page, D9__PLAIN, "a\033[31m\x07 \xff \xc2\x9b \xe2\x80\xae \xc3\xa9");

	expect(&sink, "a\\u001b[31m\\u0007 \xef\xbf\xbd \\u009b \\u202e \xc3\xa9");
}

static void test_what_the_locale_has_not_is_a_question_mark(void)
{
	struct sink sink;
	struct d9__page page = { .width = 80 };

	open_sink(&sink);
	page.out = sink.out;
	d9__page_put(&page, D9__PLAIN, "\xc3\xa9 \xff \xc2\x9b");

	expect(&sink, "? ? \\u009b");
}

static void test_escapes_count_as_the_columns_that_they_take(void)
{
	struct d9__page page = { .utf8 = true };

	CU_ASSERT_EQUAL(d9__page_columns(&page, "a\xe2\x80\xae_"), 8);
	expect_short("abc\xe2\x80\xae\xe2\x80\xae", 0, 12, "abc...");
}

static void test_colours_appear_only_when_wanted(void)
{
	struct sink sink;
	struct d9__page page = { .width = 80, .color = true };

	open_sink(&sink);
	page.out = sink.out;
	d9__page_put(&page, D9__BOLD, "x");
	page.color = false;
	d9__page_put(&page, D9__BOLD, "y");

	expect(&sink, "\033[1mx\033[0my");
}

static void test_table_fits_its_width_by_its_flexible_column(void)
{
	struct sink sink;
	struct d9__page page = { .width = 24 };
	struct d9__grid grid = { .n_columns = 0 };

	open_sink(&sink);
	page.out = sink.out;
	d9__grid_column(&grid, "N", false, false);
	d9__grid_column(&grid, "NAME", true, true);
	d9__grid_cell(&grid, "5", 0);
	d9__grid_cell(&grid, "short", 0);
	d9__grid_cell(&grid, "12", 0);
	d9__grid_cell(&grid, "a_name_of_twenty_two_x", 0);
	d9__grid_print(&grid, &page);

	expect(&sink, "   N  NAME\n   5  short\n  12  a_name_o...y_two_x\n");
}

static void test_json_escapes_what_json_must(void)
{
	struct sink sink;
	struct d9__json json = { .out = NULL };

	open_sink(&sink);
	json.out = sink.out;
	d9__json_open(&json, NULL, '{');
	d9__json_string(&json, "k\"", "a\\\n\xff\xc3\xa9\xed\xa0\x80");
	d9__json_open(&json, "e", '[');
	d9__json_close(&json, ']');
	d9__json_u64(&json, "n", UINT64_MAX);
	d9__json_string(&json, "z", NULL);
	d9__json_close(&json, '}');

	expect(&sink, "{\n  \"k\\\"\": \"a\\\\\\n\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\",\n"
		      "  \"e\": [],\n  \"n\": 18446744073709551615,\n  \"z\": null\n}\n");
}

static void test_numbers_have_three_digits_and_a_unit(void)
{
	CU_ASSERT_STRING_EQUAL(d9__units_ns(0).text, "0 ns");
	CU_ASSERT_STRING_EQUAL(d9__units_ns(999).text, "999 ns");
	CU_ASSERT_STRING_EQUAL(d9__units_ns(12345).text, "12.3 us");
	CU_ASSERT_STRING_EQUAL(d9__units_ns(999999).text, "1.00 ms");
	CU_ASSERT_STRING_EQUAL(d9__units_ns(UINT64_C(50280303)).text, "50.3 ms");
	CU_ASSERT_STRING_EQUAL(d9__units_ns(UINT64_C(123456789012)).text, "123 s");
	CU_ASSERT_STRING_EQUAL(d9__units_count(1234567).text, "1,234,567");
	CU_ASSERT_STRING_EQUAL(d9__units_count(100).text, "100");
	CU_ASSERT_STRING_EQUAL(d9__units_bytes(1 << 20).text, "1.00 MiB");
	CU_ASSERT_STRING_EQUAL(d9__units_offset(2000000000, 1999000000).text, "-0.001000 s");
	CU_ASSERT_STRING_EQUAL(d9__units_wall(UINT64_C(1778867710175979825)).text,
			       "2026-05-15T17:55:10.175979825Z");
	CU_ASSERT_STRING_EQUAL(d9__units_wall(0).text, "");
}

static const CU_TestInfo tests[] = {
	{ "a remark in parentheses gives way before the name in front of it",
	  test_remark_in_parentheses_gives_way_before_the_name_in_front_of_it },
	{ "long names are shortened in the middle", test_long_names_are_shortened_in_the_middle },
	{ "wide characters take two columns, and are never halved",
	  test_wide_characters_take_two_columns_and_are_never_halved },
	{ "function is spared before its site", test_function_is_spared_before_its_site },
	{ "paragraph is broken at spaces", test_paragraph_is_broken_at_spaces },
	{ "number and its unit stay together", test_number_and_its_unit_stay_together },
	{ "control characters never reach the terminal",
	  test_control_characters_never_reach_the_terminal },
	{ "what the locale has not is a question mark",
	  test_what_the_locale_has_not_is_a_question_mark },
	{ "escapes count as the columns that they take",
	  test_escapes_count_as_the_columns_that_they_take },
	{ "colours appear only when wanted", test_colours_appear_only_when_wanted },
	{ "table fits its width by its flexible column",
	  test_table_fits_its_width_by_its_flexible_column },
	{ "JSON escapes what JSON must", test_json_escapes_what_json_must },
	{ "numbers have three digits and a unit", test_numbers_have_three_digits_and_a_unit },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	setlocale(LC_CTYPE, "C.UTF-8");
	return d9_test_main("page", tests);
}
