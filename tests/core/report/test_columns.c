/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/columns.h"
#include "support/d9_test.h"

/* Each array, and the part of REPORT-JSON.md with its keys. */
static const struct {
	const struct d9__column *columns;
	const char *part;
} tables[] = {
	{ d9__segment_columns, "\n### `files[]`\n" },
	{ d9__quantile_columns, "\n| key of *quantiles* |" },
	{ d9__worker_columns, "\n## `workers[]`\n" },
	{ d9__callback_columns, "\n## `callbacks[]`\n" },
	{ d9__tasks_columns, "\n## `tasks`\n" },
	{ d9__task_columns, "" },
	{ d9__span_name_columns, "\n## `spans[]`\n" },
	{ d9__span_origin_columns, "\n### `origins[]`\n" },
	{ d9__span_columns, "" },
	{ d9__samples_columns, "\n## `samples`\n" },
	{ d9__thread_columns, "\n### `threads[]`\n" },
	{ d9__hot_function_columns, "\n### `functions[]`\n" },
	{ d9__sample_columns, "" },
	{ d9__blocked_columns, "\n## `blocking_calls[]`\n" },
	{ d9__lock_columns, "\n## `locks[]`\n" },
	{ d9__blocking_columns, "" },
};
#define TABLES (sizeof(tables) / sizeof(tables[0]))

static char document[256 * 1024];

static void read_document(void)
{
	const char *top = getenv("top_srcdir");
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/core/doc/REPORT-JSON.md", top ? top : ".");
	file = fopen(path, "r");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	document[fread(document, 1, sizeof(document) - 1, file)] = '\0';
	fclose(file);
}

/* Whether |part| of the document has a line of |column|'s key, in |quote|s, that begins with its
 * meaning. */
static bool is_in(const char *part, const char *quote, const char *behind,
		  const struct d9__column *column)
{
	const char *at = strstr(document, part),
		   *end = at ? strstr(at + strlen(part), "\n##") : NULL;
	char wanted[512];

	snprintf(wanted, sizeof(wanted), "\n| %s%s%s%s | %s", quote, column->key, behind, quote,
		 column->meaning ? column->meaning : "");
	at = at ? strstr(at, wanted) : NULL;
	return at && (!end || at < end);
}

static bool is_told(const char *part, const struct d9__column *column)
{
	if (*column->key == '*')
		return is_in(part, "", "", column);
	return is_in(part, "`", "", column) ||
	       (column->unit == D9__AS_OBJECT && is_in(part, "`", "[]", column));
}

static void test_each_key_is_in_the_document_with_its_meaning(void)
{
	read_document();
	for (size_t i = 0; i < TABLES; i++)
		for (const struct d9__column *at = tables[i].columns; d9__column_is(at); at++)
			if (at->key && !is_told(tables[i].part, at)) {
				printf("\n%s: `%s` | %s", tables[i].part, at->key,
				       at->meaning ? at->meaning : "");
				CU_FAIL("a key, or its meaning, is not in REPORT-JSON.md");
			}
}

static bool are_same(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

static void test_no_name_stands_for_two_columns(void)
{
	for (size_t i = 0; i < TABLES; i++)
		for (const struct d9__column *at = tables[i].columns; d9__column_is(at); at++)
			for (const struct d9__column *other = at + 1; d9__column_is(other); other++)
				CU_ASSERT(!are_same(at->key, other->key) &&
					  !are_same(at->sql, other->sql) &&
					  !are_same(at->heading, other->heading));
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "each key is in the document with its meaning",
		  test_each_key_is_in_the_document_with_its_meaning },
		{ "no name stands for two columns", test_no_name_stands_for_two_columns },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("columns", tests);
}
