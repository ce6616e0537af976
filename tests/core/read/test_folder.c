/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "read/folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/d9_test.h"

static void test_numbers_in_names_compare_as_numbers(void)
{
	static const char *const ascending[] = { "a",
						 "trace.",
						 "trace.0.bin",
						 "trace.9.bin",
						 "trace.10.bin",
						 "trace.10.bin.active",
						 "trace.18446744073709551616.bin",
						 "tracf" };

	for (size_t i = 1; i < sizeof(ascending) / sizeof(ascending[0]); i++) {
		CU_ASSERT(d9__folder_compare(ascending[i - 1], ascending[i]) < 0);
		CU_ASSERT(d9__folder_compare(ascending[i], ascending[i - 1]) > 0);
	}
	CU_ASSERT_EQUAL(d9__folder_compare("trace.7.bin", "trace.7.bin"), 0);
	CU_ASSERT(d9__folder_compare("trace.07", "trace.7") != 0);
}

/* Make |names| in a new directory; those that end with a slash are directories. */
static char *make_tree(const char *const *names, size_t n)
{
	static char dir[] = "test_folder.XXXXXX";
	char path[400];

	strcpy(dir, "test_folder.XXXXXX");
	CU_ASSERT_FATAL(mkdtemp(dir) != NULL);
	for (size_t i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		if (path[strlen(path) - 1] == '/')
			CU_ASSERT_EQUAL(mkdir(path, 0700), 0)
		else
			fclose(fopen(path, "w"));
	}
	return dir;
}

static void remove_tree(const char *dir, const char *const *names, size_t n)
{
	char path[400];

	for (size_t i = n; i-- > 0;) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		remove(path);
	}
	CU_ASSERT_EQUAL(rmdir(dir), 0);
}

static void check_listed(const char *dir, const char *const *expected, size_t n)
{
	struct d9__folder folder = { 0 };

	CU_ASSERT_EQUAL(d9__folder_list(&folder, dir), 0);
	CU_ASSERT_EQUAL(folder.n, n);
	for (size_t i = 0; i < n && i < folder.n; i++)
		CU_ASSERT_STRING_EQUAL(folder.paths[i] + strlen(dir) + 1, expected[i]);
	d9__folder_release(&folder);
}

static void test_folder_lists_segments_and_those_of_its_folders_in_order(void)
{
	static const char *const names[] = { "b/",
					     "a/",
					     "a/deep/",
					     "trace.2.bin",
					     "trace.10.bin",
					     "a/trace.1.bin.zst",
					     "b/trace.0.bin",
					     "a/deep/trace.0.bin" };
	static const char *const expected[] = { "trace.2.bin", "trace.10.bin", "a/trace.1.bin.zst",
						"a/deep/trace.0.bin", "b/trace.0.bin" };
	char *dir = make_tree(names, 8);

	check_listed(dir, expected, 5);
	remove_tree(dir, names, 8);
}

static void test_folder_is_searched_four_levels_deep_and_deep_down_for_names_of_segments(void)
{
	static const char *const names[] = { "site/",
					     "site/host/",
					     "site/host/boot/",
					     "site/host/boot/day/",
					     "site/host/boot/day/more/",
					     "notes",
					     "site/notes",
					     "site/host/notes",
					     "site/host/trace.0.bin",
					     "site/host/boot/trace.1.bin.zst",
					     "site/host/boot/day/trace.2.bin.gz",
					     "site/host/boot/day/more/trace.3.bin" };
	static const char *const expected[] = { "notes", "site/notes", "site/host/trace.0.bin",
						"site/host/boot/trace.1.bin.zst",
						"site/host/boot/day/trace.2.bin.gz" };
	char *dir = make_tree(names, 12);

	check_listed(dir, expected, 5);
	remove_tree(dir, names, 12);
}

static void test_folder_follows_links_to_folders_at_the_top_alone(void)
{
	static const char *const names[] = { "other/", "other/boot/", "other/boot/trace.0.bin", "root/", "root/a/",
					     "root/a/trace.1.bin" };
	static const char *const expected[] = { "a/trace.1.bin", "link/boot/trace.0.bin" };
	char *dir = make_tree(names, 6), root[100], link[200], loop[200];

	snprintf(root, sizeof(root), "%s/root", dir);
	snprintf(link, sizeof(link), "%s/link", root);
	snprintf(loop, sizeof(loop), "%s/a/loop", root);
	CU_ASSERT_EQUAL(symlink("../other", link), 0);
	CU_ASSERT_EQUAL(symlink("..", loop), 0);
	check_listed(root, expected, 2);
	unlink(link);
	unlink(loop);
	remove_tree(dir, names, 6);
}

static void test_folder_with_too_many_folders_is_refused(void)
{
	struct d9__folder folder = { 0 };
	char *dir = make_tree(NULL, 0), path[400];

	for (unsigned i = 0; i <= D9__FOLDER_MAX; i++) {
		snprintf(path, sizeof(path), "%s/%u", dir, i);
		CU_ASSERT_EQUAL_FATAL(mkdir(path, 0700), 0);
	}
	CU_ASSERT_EQUAL(d9__folder_list(&folder, dir), -EFBIG);
	d9__folder_release(&folder);
	for (unsigned i = 0; i <= D9__FOLDER_MAX; i++) {
		snprintf(path, sizeof(path), "%s/%u", dir, i);
		rmdir(path);
	}
	CU_ASSERT_EQUAL(rmdir(dir), 0);
}

static void test_folder_lists_a_segment_once_while_it_is_being_packed(void)
{
	static const char *const names[] = { "trace.1.bin",
					     "trace.1.bin.gz",
					     "trace.2.bin.zst",
					     "trace.2.bin.zst.active",
					     "trace.3.bin.gz",
					     "trace.11.bin",
					     "trace.12.bin.zst.active" };
	static const char *const expected[] = { "trace.1.bin", "trace.2.bin.zst", "trace.3.bin.gz",
						"trace.11.bin", "trace.12.bin.zst.active" };
	char *dir = make_tree(names, 7);

	check_listed(dir, expected, 5);
	remove_tree(dir, names, 7);
}

static void test_folder_that_is_none_is_an_error(void)
{
	struct d9__folder folder = { 0 };

	CU_ASSERT_EQUAL(d9__folder_list(&folder, "no such folder"), -ENOENT);
	CU_ASSERT_EQUAL(folder.n, 0);
	d9__folder_release(&folder);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "numbers in names compare as numbers", test_numbers_in_names_compare_as_numbers },
		{ "lists segments and those of its folders in order",
		  test_folder_lists_segments_and_those_of_its_folders_in_order },
		{ "is searched four levels deep, and deep down for names of segments",
		  test_folder_is_searched_four_levels_deep_and_deep_down_for_names_of_segments },
		{ "follows links to folders at the top alone",
		  test_folder_follows_links_to_folders_at_the_top_alone },
		{ "with too many folders is refused", test_folder_with_too_many_folders_is_refused },
		{ "lists a segment once while it is being packed",
		  test_folder_lists_a_segment_once_while_it_is_being_packed },
		{ "that is none is an error", test_folder_that_is_none_is_an_error },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("folder", tests);
}
