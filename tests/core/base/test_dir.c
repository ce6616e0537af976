/* SPDX-License-Identifier: Apache-2.0 */
/* Names in a directory, and lines of a file, without memory from the C library. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/dir.h"
#include "base/lines.h"
#include "core/record/scratch.h"
#include "support/d9_test.h"

#define FILES 1000 /* more than one answer of the kernel's holds */

static void test_every_name_comes_once_without_the_dots(void)
{
	bool met[FILES] = { false };
	unsigned n = 0, number;
	const char *name;
	struct d9__dir dir;

	scratch_new();
	for (unsigned i = 0; i < FILES; i++) {
		char path[PATH_MAX + 32];

		snprintf(path, sizeof(path), "%s/a-name-of-some-length-%u", scratch_dir, i);
		close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	}
	CU_ASSERT_EQUAL_FATAL(d9__dir_open(&dir, scratch_dir), 0);
	while ((name = d9__dir_next(&dir))) {
		CU_ASSERT_EQUAL_FATAL(sscanf(name, "a-name-of-some-length-%u", &number), 1);
		CU_ASSERT(number < FILES && !met[number]);
		met[number] = true;
		n++;
	}
	CU_ASSERT_EQUAL(n, FILES);
	CU_ASSERT_PTR_NULL(d9__dir_next(&dir));
	d9__dir_close(&dir);
	scratch_remove();
}

static void test_what_is_no_directory_is_refused(void)
{
	struct d9__dir dir;

	CU_ASSERT_EQUAL(d9__dir_open(&dir, "/nowhere"), -ENOENT);
	CU_ASSERT_EQUAL(d9__dir_open(&dir, "/dev/null"), -ENOTDIR);
}

static void test_lines_come_without_their_ends_and_of_a_long_one_the_begin(void)
{
	struct d9__lines lines;
	char path[PATH_MAX + 8];
	FILE *file;

	scratch_new();
	snprintf(path, sizeof(path), "%s/text", scratch_dir);
	file = fopen(path, "we");
	fprintf(file, "first\n\n%01500d\nlast", 7);
	fclose(file);
	CU_ASSERT_FATAL(d9__lines_open(&lines, path));
	CU_ASSERT(d9__lines_next(&lines));
	CU_ASSERT_STRING_EQUAL(lines.text, "first");
	CU_ASSERT(d9__lines_next(&lines));
	CU_ASSERT_STRING_EQUAL(lines.text, "");
	CU_ASSERT(d9__lines_next(&lines));
	CU_ASSERT_EQUAL(strspn(lines.text, "0"), sizeof(lines.text) - 1);
	CU_ASSERT(d9__lines_next(&lines));
	CU_ASSERT_STRING_EQUAL(lines.text, "last");
	CU_ASSERT_FALSE(d9__lines_next(&lines));
	d9__lines_close(&lines);
	CU_ASSERT_FALSE(d9__lines_open(&lines, "/nowhere"));
	scratch_remove();
}

static const CU_TestInfo tests[] = {
	{ "every name comes once, without the dots", test_every_name_comes_once_without_the_dots },
	{ "what is no directory is refused", test_what_is_no_directory_is_refused },
	{ "lines come without their ends, and of a long one the begin", test_lines_come_without_their_ends_and_of_a_long_one_the_begin },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("dir", tests);
}
