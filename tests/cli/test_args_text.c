/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "support/d9_test.h"

#include "cli/cmd.h"
#include "text/text.h"
#include "tool/args.h"

/* main.c, which is not linked here, prints; a test only wants to know. */
static int complaints;

int d9__cmd_fail(const char *command, const char *format, ...)
{
	(void)command;
	(void)format;
	complaints++;
	return D9__EXIT_USAGE;
}

static uint64_t duration_of(const char *text)
{
	uint64_t ns;

	return d9__parse_duration_ns(text, &ns) ? ns : UINT64_MAX;
}

static void test_duration_with_unit_is_exact_nanoseconds(void)
{
	CU_ASSERT_EQUAL(duration_of("5ns"), 5);
	CU_ASSERT_EQUAL(duration_of("10us"), 10000);
	CU_ASSERT_EQUAL(duration_of("250ms"), 250000000);
	CU_ASSERT_EQUAL(duration_of("0.1s"), 100000000);
	CU_ASSERT_EQUAL(duration_of("1.5"), 1500000000);
	CU_ASSERT_EQUAL(duration_of("1.000000001s"), 1000000001);
	CU_ASSERT_EQUAL(duration_of("1.5m"), UINT64_C(90000000000));
	CU_ASSERT_EQUAL(duration_of("2h"), UINT64_C(7200000000000));
}

static void test_duration_that_is_none_is_refused(void)
{
	static const char *const bad[] = { "", "s", "1 s", "-1s", "1e3", "1.s", ".5s", "1parsec",
					   "18446744073709551616", "99999999999h", "0x10" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_EQUAL(duration_of(bad[i]), UINT64_MAX);
}

static void test_size_with_unit_is_in_powers_of_1024(void)
{
	uint64_t bytes;

	CU_ASSERT_TRUE(d9__parse_bytes("64K", &bytes) && bytes == 65536);
	CU_ASSERT_TRUE(d9__parse_bytes("1.5MiB", &bytes) && bytes == 1572864);
	CU_ASSERT_TRUE(d9__parse_bytes("7", &bytes) && bytes == 7);
	CU_ASSERT_FALSE(d9__parse_bytes("7X", &bytes));
}

static const struct d9__opt opts[] = {
	{ 'o', "output", "DIR", "a value" },
	{ 256, "flag", NULL, "a flag" },
	{ 0, NULL, NULL, NULL },
};

/* argv is writable in a program. */
#define WORD(text) ((char[]){ text })

static const struct d9__usage usage = { "test", "", "", opts, .stop_at_operand = true };

static void test_options_end_at_the_first_operand_if_told_so(void)
{
	char *argv[] = { WORD("test"), WORD("--flag"), WORD("-oX"), WORD("cmd"),
			 WORD("--flag"), NULL };
	struct d9__args args = { .usage = &usage, .argc = 5, .argv = argv };

	CU_ASSERT_EQUAL(d9__args_next(&args), 256);
	CU_ASSERT_EQUAL(d9__args_next(&args), 'o');
	CU_ASSERT_STRING_EQUAL(args.value, "X");
	CU_ASSERT_EQUAL(d9__args_next(&args), D9__ARGS_END);
	CU_ASSERT_EQUAL(args.first, 3);
}

static void test_second_walk_starts_over(void)
{
	char *argv[] = { WORD("test"), WORD("--output=Y"), NULL };
	struct d9__args first = { .usage = &usage, .argc = 2, .argv = argv }, second = first;

	CU_ASSERT_EQUAL(d9__args_next(&first), 'o');
	CU_ASSERT_EQUAL(d9__args_next(&second), 'o');
	CU_ASSERT_EQUAL(d9__args_next(&second), D9__ARGS_END);
}

static void test_unknown_option_is_one_complaint(void)
{
	char *argv[] = { WORD("test"), WORD("--unknown"), NULL };
	struct d9__args args = { .usage = &usage, .argc = 2, .argv = argv };

	complaints = 0;
	CU_ASSERT_EQUAL(d9__args_next(&args), D9__ARGS_ERROR);
	CU_ASSERT_EQUAL(complaints, 1);
}

static struct d9__text_out out;

/* Return |text| as JSON writes it, terminated. */
static const char *json_of(const char *text, size_t len)
{
	d9__text_init(&out, -1);
	d9__text_json(&out, text, len);
	out.data[out.len] = '\0';
	return out.data;
}

static void test_json_text_that_is_utf8_stays(void)
{
	CU_ASSERT_STRING_EQUAL(json_of("", 0), "\"\"");
	CU_ASSERT_STRING_EQUAL(json_of("a/b", 3), "\"a/b\"");
	CU_ASSERT_STRING_EQUAL(json_of("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9),
			       "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
	CU_ASSERT_STRING_EQUAL(json_of("\"\\\n\0\x7f", 5), "\"\\\"\\\\\\n\\u0000\\u007f\"");
}

static void test_json_text_that_is_not_utf8_is_replaced(void)
{
#define REPLACED "\xef\xbf\xbd"
	CU_ASSERT_STRING_EQUAL(json_of("a\xffz", 3), "\"a" REPLACED "z\"");
	CU_ASSERT_STRING_EQUAL(json_of("\xc3", 1), "\"" REPLACED "\"");
	CU_ASSERT_STRING_EQUAL(json_of("\xc0\x80", 2), "\"" REPLACED REPLACED "\"");
	CU_ASSERT_STRING_EQUAL(json_of("\xed\xa0\x80", 3), "\"" REPLACED REPLACED REPLACED "\"");
	CU_ASSERT_STRING_EQUAL(json_of("\xf4\x90\x80\x80", 4),
			       "\"" REPLACED REPLACED REPLACED REPLACED "\"");
}

static void test_numbers_are_written_to_their_last_digit(void)
{
	d9__text_init(&out, -1);
	d9__text_u64(&out, UINT64_MAX);
	d9__text_char(&out, ' ');
	d9__text_i64(&out, INT64_MIN);
	d9__text_char(&out, ' ');
	d9__text_hex(&out, 0);
	d9__text_char(&out, ' ');
	d9__text_f64(&out, 0.1);
	d9__text_char(&out, ' ');
	d9__text_f64(&out, 1.0 / 3);
	d9__text_char(&out, ' ');
	d9__text_u64(&out, 100);
	out.data[out.len] = '\0';

	CU_ASSERT_STRING_EQUAL(out.data, "18446744073709551615 -9223372036854775808 0x0 0.1 "
					 "0.3333333333333333 100");
}

static void test_durations_for_people_have_three_digits(void)
{
	char buf[D9__DURATION_LEN];

	CU_ASSERT_STRING_EQUAL(d9__duration_text(0, buf), "0 ns");
	CU_ASSERT_STRING_EQUAL(d9__duration_text(999, buf), "999 ns");
	CU_ASSERT_STRING_EQUAL(d9__duration_text(1500, buf), "1.50 us");
	CU_ASSERT_STRING_EQUAL(d9__duration_text(999499, buf), "999 us");
	CU_ASSERT_STRING_EQUAL(d9__duration_text(999999, buf), "1.00 ms");
	CU_ASSERT_STRING_EQUAL(d9__duration_text(12345678, buf), "12.3 ms");
	CU_ASSERT_STRING_EQUAL(d9__duration_text(UINT64_C(3600000000000), buf), "3600 s");
}

static const CU_TestInfo tests[] = {
	{ "duration with unit is exact nanoseconds",
	  test_duration_with_unit_is_exact_nanoseconds },
	{ "duration that is none is refused", test_duration_that_is_none_is_refused },
	{ "size with unit is in powers of 1024", test_size_with_unit_is_in_powers_of_1024 },
	{ "options end at the first operand if told so",
	  test_options_end_at_the_first_operand_if_told_so },
	{ "second walk starts over", test_second_walk_starts_over },
	{ "unknown option is one complaint", test_unknown_option_is_one_complaint },
	{ "json text that is utf8 stays", test_json_text_that_is_utf8_stays },
	{ "json text that is not utf8 is replaced", test_json_text_that_is_not_utf8_is_replaced },
	{ "numbers are written to their last digit",
	  test_numbers_are_written_to_their_last_digit },
	{ "durations for people have three digits", test_durations_for_people_have_three_digits },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("args and text", tests);
}
