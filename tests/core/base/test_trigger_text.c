/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/trigger_text.h"
#include "support/d9_test.h"

#define MS UINT64_C(1000000)
#define S  (1000 * MS)

static struct d9__trigger trigger;
static struct d9__trigger_fault fault;

static bool parse(const char *text)
{
	memset(&fault, 0, sizeof(fault));
	return d9__trigger_parse(text, strlen(text), &trigger, &fault);
}

static void test_all_clauses_of_a_trigger_are_read(void)
{
	CU_ASSERT_FATAL(parse("slow-parse: poll > 50ms where callback ~ frobd+0x12* where loop ~ \"main loop\" last 30s then 10s "
			      "every 2m at most 6/h pairs host=a  team=\"b c\""));
	CU_ASSERT_STRING_EQUAL(trigger.name, "slow-parse");
	CU_ASSERT_EQUAL(trigger.kind, D9__TRIGGER_POLL);
	CU_ASSERT_EQUAL(trigger.threshold, 50 * MS);
	CU_ASSERT_EQUAL(trigger.n_matches, 2);
	CU_ASSERT_EQUAL(trigger.matches[0].subject, D9__TRIGGER_CALLBACK);
	CU_ASSERT_STRING_EQUAL(trigger.matches[0].glob, "frobd+0x12*");
	CU_ASSERT_EQUAL(trigger.matches[1].subject, D9__TRIGGER_LOOP);
	CU_ASSERT_STRING_EQUAL(trigger.matches[1].glob, "main loop");
	CU_ASSERT_EQUAL(trigger.last_ns, 30 * S);
	CU_ASSERT_EQUAL(trigger.then_ns, 10 * S);
	CU_ASSERT_EQUAL(trigger.every_ns, 120 * S);
	CU_ASSERT_EQUAL(trigger.at_most, 6);
	CU_ASSERT_EQUAL(memcmp(trigger.pairs, "host=a\0team=b c\0", 17), 0);
}

static void test_a_condition_alone_is_a_trigger_that_is_called_so(void)
{
	static const struct {
		const char *text, *name;
		enum d9__trigger_kind kind;
		uint64_t threshold;
	} all[] = {
		{ "poll > 50ms", "poll > 50ms", D9__TRIGGER_POLL, 50 * MS },
		{ "  blocked>1.5s last 1s", "blocked>1.5s", D9__TRIGGER_BLOCKED, 1500 * MS },
		{ "poll > 250us", "poll > 250us", D9__TRIGGER_POLL, MS / 4 },
		{ "lateness > 20ms", "lateness > 20ms", D9__TRIGGER_LATENESS, 20 * MS },
		{ "queue > 50 for 2s", "queue > 50", D9__TRIGGER_QUEUE, 50 },
		{ "wakes > 10000/s", "wakes > 10000/s", D9__TRIGGER_WAKES, 10000 },
		{ "polls>0/s where loop ~ main for 1s", "polls>0/s", D9__TRIGGER_POLLS, 0 },
		{ "loss > 0", "loss > 0", D9__TRIGGER_LOSS, 0 },
		{ "call", "call", D9__TRIGGER_CALL, 0 },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		CU_ASSERT(parse(all[i].text));
		CU_ASSERT_STRING_EQUAL(trigger.name, all[i].name);
		CU_ASSERT_EQUAL(trigger.kind, all[i].kind);
		CU_ASSERT_EQUAL(trigger.threshold, all[i].threshold);
	}
	CU_ASSERT(parse("poll > 1m"));
	CU_ASSERT_EQUAL(trigger.threshold, 60 * S);
	CU_ASSERT_EQUAL(trigger.last_ns, 30 * S);
	CU_ASSERT_EQUAL(trigger.then_ns, 10 * S);
	CU_ASSERT_EQUAL(trigger.every_ns, 60 * S);
	CU_ASSERT_EQUAL(trigger.at_most, 6);
}

static void test_a_mistake_is_told_with_its_column(void)
{
	static const struct {
		const char *text;
		uint32_t column;
		const char *says;
	} all[] = {
		{ "", 1, "a condition, such as poll > 50ms, is missing" },
		{ "a:", 3, "a condition, such as poll > 50ms, is missing" },
		{ "pol > 50ms", 1, "'pol' is no condition" },
		{ ": poll > 50ms", 1, "a name is missing" },
		{ "a/b: poll > 50ms", 2, "a name is of letters" },
		{ "poll", 5, "poll wants '>' behind it" },
		{ "poll < 50ms", 6, "poll wants '>' behind it" },
		{ "poll > ", 8, "a time, such as 50ms, is missing" },
		{ "poll > 50", 8, "'50' wants a unit" },
		{ "poll > 50.5", 8, "'50.5' wants a unit" },
		{ "poll > 50days", 8, "'50days' is no time" },
		{ "poll > fast", 8, "'fast' is no time" },
		{ "poll > 99999999999999999999ms", 8, "is no time" },
		{ "poll > 9999999999999999999h", 8, "is no time" },
		{ "loss > 5/s", 8, "'5/s' is no number" },
		{ "loss > ", 8, "a number is missing" },
		{ "lateness > 5", 12, "'5' wants a unit" },
		{ "queue > 5/s", 9, "'5/s' is no number" },
		{ "queue > 5ms", 9, "'5ms' is no number" },
		{ "wakes > 5", 9, "'5' wants to be a number with /s" },
		{ "polls > 5/h", 9, "'5/h' wants to be a number with /s" },
		{ "polls > /s", 9, "'/s' is no number" },
		{ "wakes > ", 9, "a number is missing" },
		{ "wakes > 99999999999999999999/s", 9, "is no number" },
		{ "wake > 5/s", 1, "'wake' is no condition: poll, lateness, blocked, queue, wakes, polls, loss or call" },
		{ "queue > 5 for", 14, "a time, such as 50ms, is missing" },
		{ "queue > 5 for 5", 15, "'5' wants a unit" },
		{ "queue > 5 for 2h", 15, "one hour at most" },
		{ "queue > 5 for 1s for 2s", 18, "'for' stands there twice" },
		{ "poll > 5ms for 1s", 12, "poll does not last: there is no for" },
		{ "blocked > 5ms for 1s", 15, "blocked does not last" },
		{ "lateness > 5ms for 1s", 16, "lateness does not last" },
		{ "loss > 5 for 1s", 10, "loss does not last" },
		{ "call for 1s", 6, "call does not last" },
		{ "queue > 5 where callback ~ x+1", 17, "queue is of loops: where wants loop" },
		{ "wakes > 5/s where thread ~ x", 19, "wakes is of loops: where wants loop" },
		{ "lateness > 5ms where callback ~ tick", 33, "not by name" },
		{ "@file", 1, "'@file' is no condition" },
		{ "call > 5", 6, "'>' is not known here" },
		{ "\xc3\xa4\xc3\xb6 > 5ms", 1, "is no condition" },
		{ "poll > 5ms wehre loop ~ x", 12, "'wehre' is not known here" },
		{ "poll > 5ms where lop ~ x", 18, "where wants loop, callback or thread" },
		{ "poll > 5ms where loop x", 23, "loop wants '~' behind it" },
		{ "poll > 5ms where callback ~ parse_*", 29, "not by name" },
		{ "poll > 5ms where loop ~", 24, "what it is to match is missing" },
		{ "poll > 5ms where loop ~ \"x", 25, "the quotes are not closed" },
		{ "loss > 5 where loop ~ x", 16, "loss is of the whole process" },
		{ "poll > 5ms last 1s last 2s", 20, "'last' stands there twice" },
		{ "poll > 5ms last 2h", 17, "a window reaches over one hour" },
		{ "poll > 5ms every 10ms", 18, "every is 1s at least" },
		{ "poll > 5ms at 6/h", 15, "at wants 'most' behind it" },
		{ "poll > 5ms at most 6", 20, "'6' wants to be a number with /h" },
		{ "poll > 5ms at most 0/h", 20, "1 to 360 times" },
		{ "poll > 5ms pairs", 17, "pairs wants KEY=VALUE" },
		{ "poll > 5ms pairs x last 1s", 18, "a pair is KEY=VALUE" },
		{ "poll > 5ms pairs =x", 18, "a pair is KEY=VALUE" },
		{ "call pairs a=\xff", 14, "a character that is none of a text" },
		{ "poll\x01 > 5ms", 5, "a character that is none of a text" },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		bool ok = parse(all[i].text);

		if (ok || fault.column != all[i].column || !strstr(fault.text, all[i].says))
			printf("'%s': column %u: %s\n", all[i].text, fault.column, fault.text);
		CU_ASSERT_FALSE(ok);
		CU_ASSERT_EQUAL(fault.column, all[i].column);
		CU_ASSERT_PTR_NOT_NULL(strstr(fault.text, all[i].says));
	}
}

static void test_what_a_name_stands_for_is_no_part_of_the_text(void)
{
	static const char text[] = "x: poll > 5ms where callback ~ \"a *\" resolved frobd+0x12a0|+0x13|libc++.so.1+0x50  "
				   "where loop ~ resolved where callback ~ b_* resolved \"my lib.so+0x1\"  last 1s";
	char plain[sizeof(text)];
	const char *first, *second;

	CU_ASSERT_FATAL(parse(text));
	CU_ASSERT_EQUAL_FATAL(trigger.n_matches, 3);
	CU_ASSERT_EQUAL(trigger.last_ns, S);
	CU_ASSERT_STRING_EQUAL(trigger.matches[0].glob, "a *");
	CU_ASSERT_EQUAL(trigger.matches[1].resolved, 0);
	first = trigger.resolved + trigger.matches[0].resolved;
	second = trigger.resolved + trigger.matches[2].resolved;
	CU_ASSERT(d9__trigger_stands_for(first, "frobd+0x12a0", 12));
	CU_ASSERT(d9__trigger_stands_for(first, "frobd+0x13", 10));
	CU_ASSERT(d9__trigger_stands_for(first, "libc++.so.1+0x50", 16));
	CU_ASSERT(d9__trigger_stands_for(second, "my lib.so+0x1", 13));
	CU_ASSERT_FALSE(d9__trigger_stands_for(first, "frobd+0x12a", 11));
	CU_ASSERT_FALSE(d9__trigger_stands_for(first, "frobd+0x12a00", 13));
	CU_ASSERT_FALSE(d9__trigger_stands_for(first, "frobd+0x50", 10));
	CU_ASSERT_FALSE(d9__trigger_stands_for(first, "frob+0x13", 9));
	CU_ASSERT_FALSE(d9__trigger_stands_for(first, "+0x13", 5));
	CU_ASSERT_FALSE(d9__trigger_stands_for(first, "frobd", 5));
	CU_ASSERT_FALSE(d9__trigger_stands_for(second, "frobd+0x13", 10));
	d9__trigger_plain(&trigger, text, strlen(text), plain, sizeof(plain));
	CU_ASSERT_STRING_EQUAL(plain, "x: poll > 5ms where callback ~ \"a *\" where loop ~ resolved where callback ~ b_* last 1s");
	d9__trigger_plain(&trigger, text, strlen(text), plain, 8);
	CU_ASSERT_STRING_EQUAL(plain, "x: poll");
	CU_ASSERT_FALSE(parse("poll > 5ms where callback ~ x resolved y"));
	CU_ASSERT_EQUAL(fault.column, 40);
	CU_ASSERT_FALSE(parse("poll > 5ms where loop ~ x resolved a+0x1"));
	CU_ASSERT_EQUAL(fault.column, 27);
	CU_ASSERT_FALSE(parse("poll > 5ms where callback ~ x resolved"));
	CU_ASSERT_EQUAL(fault.column, 39);
}

static void test_names_are_marked_where_they_may_stand(void)
{
	static const struct {
		const char *glob;
		bool is_name, is_fine_without;
	} all[] = {
		{ "parse_*", true, false }, { "*_cb", true, false },	   { "a::b", true, false },
		{ "\"f<unsigned int>\"", true, true }, { "frobd+0x12*", false, true }, { "*+0x12", false, true },
		{ "*", false, true },	    { "?*", false, true },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		char text[128];

		snprintf(text, sizeof(text), "poll > 5ms where callback ~ %s where loop ~ x", all[i].glob);
		CU_ASSERT_EQUAL(parse(text), all[i].is_fine_without);
		CU_ASSERT_FATAL(d9__trigger_parse_names(text, strlen(text), &trigger, &fault));
		CU_ASSERT_EQUAL(trigger.matches[0].is_name, all[i].is_name);
		CU_ASSERT_EQUAL(trigger.matches[0].from, 28);
		CU_ASSERT_EQUAL(trigger.matches[0].to, 28 + strlen(all[i].glob));
	}
}

static void test_no_text_is_too_long_for_its_place(void)
{
	static const char *const shapes[][2] = { { "", ": poll > 1ms" }, { "poll > 1ms where loop ~ ", "" }, { "poll > 1ms pairs a=", "" },
						 { "poll > 1ms pairs a=1 b=2 ", "=" }, { "", "" }, { "poll > ", "" } };
	char text[4 * D9__TRIGGER_TEXT], filling[sizeof(text)];

	memset(filling, 'x', sizeof(filling));
	for (int len = 1; len < 3 * D9__TRIGGER_TEXT; len += 61)
		for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
			int n = snprintf(text, sizeof(text), "%s%.*s%s", shapes[i][0], len, filling, shapes[i][1]);

			if (d9__trigger_parse(text, (size_t)n, &trigger, &fault))
				CU_ASSERT(len < D9__TRIGGER_PAIRS);
		}
}

static void test_a_list_is_separated_by_semicolons_and_lines(void)
{
	const char *list = " ;poll > 1ms ; ; # no; call\n\tcall\r\n#\nloss > 0", *one;
	static const char *const wanted[] = { "poll > 1ms ", "call\r", "loss > 0" };
	size_t len, n = 0;

	for (; d9__trigger_next(&list, &one, &len); n++) {
		CU_ASSERT_FATAL(n < 3);
		CU_ASSERT_EQUAL(len, strlen(wanted[n]));
		CU_ASSERT_EQUAL(memcmp(one, wanted[n], len), 0);
		CU_ASSERT(d9__trigger_parse(one, len, &trigger, &fault));
	}
	CU_ASSERT_EQUAL(n, 3);
}

static void test_a_condition_holds_at_once_unless_it_says_for_how_long(void)
{
	CU_ASSERT(parse("queue > 50"));
	CU_ASSERT_EQUAL(trigger.for_ns, 0);
	CU_ASSERT(parse("queue > 50 last 1s for 1.5s"));
	CU_ASSERT_EQUAL(trigger.for_ns, 1500 * MS);
	CU_ASSERT(parse("polls > 50/s pairs a=b for 1h"));
	CU_ASSERT_EQUAL(trigger.for_ns, 3600 * S);
}

static void test_a_place_in_a_file_is_a_line_and_what_is_before_it(void)
{
	const char *list = "# one\ncall\n\n  \xc3\xa4 ; poll > 1", *at = list, *one;
	uint32_t before, lines[3], columns[3], n = 0;
	size_t len;

	for (; d9__trigger_next(&at, &one, &len) && n < 3; n++) {
		lines[n] = d9__trigger_line(list, one, &before);
		columns[n] = before;
	}
	CU_ASSERT_EQUAL_FATAL(n, 3);
	CU_ASSERT_EQUAL(lines[0], 2);
	CU_ASSERT_EQUAL(columns[0], 0);
	CU_ASSERT_EQUAL(lines[1], 4);
	CU_ASSERT_EQUAL(columns[1], 2);
	CU_ASSERT_EQUAL(lines[2], 4);
	CU_ASSERT_EQUAL(columns[2], 6);
}

static bool matches(const char *glob, const char *text)
{
	return d9__trigger_glob(glob, text, strlen(text));
}

static void test_a_glob_matches_the_whole_text(void)
{
	CU_ASSERT(matches("frobd+0x12", "frobd+0x12"));
	/* A zero byte in the text is no end of the glob. */
	CU_ASSERT_FALSE(d9__trigger_glob("a\0b", "a\0b", 3));
	CU_ASSERT_FALSE(matches("frobd+0x12", "frobd+0x123"));
	CU_ASSERT_FALSE(matches("frobd+0x12", "a/frobd+0x12"));
	CU_ASSERT(matches("frobd+0x12?", "frobd+0x123"));
	CU_ASSERT(matches("*", ""));
	CU_ASSERT(matches("**", "x"));
	CU_ASSERT(matches("*a*b", "xaxbab"));
	CU_ASSERT_FALSE(matches("*a*b", "xaxba"));
	CU_ASSERT_FALSE(matches("", "x"));
	CU_ASSERT(matches("", ""));
	CU_ASSERT_FALSE(matches("?", ""));
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "all clauses of a trigger are read", test_all_clauses_of_a_trigger_are_read },
		{ "a condition alone is a trigger that is called so", test_a_condition_alone_is_a_trigger_that_is_called_so },
		{ "a mistake is told with its column", test_a_mistake_is_told_with_its_column },
		{ "what a name stands for is no part of the text", test_what_a_name_stands_for_is_no_part_of_the_text },
		{ "names are marked where they may stand", test_names_are_marked_where_they_may_stand },
		{ "no text is too long for its place", test_no_text_is_too_long_for_its_place },
		{ "a list is separated by semicolons and lines", test_a_list_is_separated_by_semicolons_and_lines },
		{ "a condition holds at once unless it says for how long",
		  test_a_condition_holds_at_once_unless_it_says_for_how_long },
		{ "a place in a file is a line, and what is before it", test_a_place_in_a_file_is_a_line_and_what_is_before_it },
		{ "a glob matches the whole text", test_a_glob_matches_the_whole_text },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("trigger_text", tests);
}
