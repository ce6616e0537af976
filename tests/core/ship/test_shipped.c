/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ship/shipped.h"
#include "support/d9_test.h"

static int make_folder(char path[32])
{
	strcpy(path, "/tmp/d9_shipped.XXXXXX");
	if (!mkdtemp(path))
		return -1;
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void drop_folder(const char *path, int dir)
{
	unlinkat(dir, D9__SHIPPED_NAME, 0);
	close(dir);
	rmdir(path);
}

static void append(int dir, uint64_t index, const char *key)
{
	struct d9__shipped_line line = { .index = index, .bytes = 10, .key = key };

	CU_ASSERT_EQUAL(d9__shipped_append(dir, &line), 0);
}

static void test_shipped_list_is_read_as_it_was_written(void)
{
	struct d9__shipped shipped;
	char path[32];
	int dir = make_folder(path);

	CU_ASSERT_EQUAL(d9__shipped_read(&shipped, dir), 0);
	CU_ASSERT_EQUAL(shipped.n, 0);
	append(dir, 3, "p/a");
	append(dir, 4, "p/b");
	append(dir, 3, "p/c");
	CU_ASSERT_EQUAL(d9__shipped_read(&shipped, dir), 0);
	CU_ASSERT_EQUAL(shipped.n, 3);
	CU_ASSERT_EQUAL(shipped.bytes, 30);
	CU_ASSERT_STRING_EQUAL(d9__shipped_key(&shipped, 3), "p/c");
	CU_ASSERT_PTR_NULL(d9__shipped_key(&shipped, 5));
	d9__shipped_release(&shipped);
	drop_folder(path, dir);
}

static void test_line_that_was_cut_is_skipped_and_harms_no_other(void)
{
	static const char cut[] = "stored 7 10 0 0 0 0 p/cu";
	struct d9__shipped shipped;
	char path[32];
	int dir = make_folder(path), fd = openat(dir, D9__SHIPPED_NAME, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	CU_ASSERT_EQUAL(write(fd, cut, strlen(cut)), (ssize_t)strlen(cut));
	close(fd);
	CU_ASSERT_EQUAL(d9__shipped_read(&shipped, dir), 0);
	CU_ASSERT_EQUAL(shipped.n, 0);
	d9__shipped_release(&shipped);
	append(dir, 8, "p/d");
	CU_ASSERT_EQUAL(d9__shipped_read(&shipped, dir), 0);
	CU_ASSERT_STRING_EQUAL(d9__shipped_key(&shipped, 8), "p/d");
	d9__shipped_release(&shipped);
	drop_folder(path, dir);
}

static void test_what_was_shipped_is_not_missing(void)
{
	struct d9__shipped shipped;
	struct d9__ranges missing = { 0 };
	char path[32], out[64];
	int dir = make_folder(path);

	append(dir, 50, "p/b");
	append(dir, 42, "p/a");
	CU_ASSERT_EQUAL(d9__shipped_read(&shipped, dir), 0);
	CU_ASSERT_EQUAL(d9__shipped_missing(&shipped, "41-43,50,60-61", &missing), 0);
	d9__ranges_write(&missing, out, sizeof(out));
	CU_ASSERT_STRING_EQUAL(out, "41,43,60-61");
	d9__ranges_release(&missing);
	CU_ASSERT_EQUAL(d9__shipped_missing(&shipped, "junk", &missing), 0);
	CU_ASSERT_EQUAL(missing.n, 0);
	d9__ranges_release(&missing);
	d9__shipped_release(&shipped);
	drop_folder(path, dir);
}

static void test_gap_is_written_down_once(void)
{
	struct d9__shipped shipped;
	char path[32], out[64];
	int dir = make_folder(path);

	append(dir, 42, "p/a");
	CU_ASSERT_EQUAL(d9__shipped_gap(dir, "41-43", 1000), 0);
	CU_ASSERT_EQUAL(d9__shipped_gap(dir, "41-43", 1001), 0);
	CU_ASSERT_EQUAL(d9__shipped_gap(dir, "41-45", 1002), 0);
	CU_ASSERT_EQUAL(d9__shipped_gap(dir, "", 1003), 0);
	CU_ASSERT_EQUAL(d9__shipped_read(&shipped, dir), 0);
	CU_ASSERT_EQUAL(shipped.n, 1);
	CU_ASSERT_EQUAL_FATAL(shipped.n_gaps, 2);
	d9__ranges_write(&shipped.gaps[0].ranges, out, sizeof(out));
	CU_ASSERT_STRING_EQUAL(out, "41,43");
	CU_ASSERT_EQUAL(shipped.gaps[0].epoch_s, 1000);
	d9__ranges_write(&shipped.gaps[1].ranges, out, sizeof(out));
	CU_ASSERT_STRING_EQUAL(out, "44-45");
	d9__shipped_release(&shipped);
	drop_folder(path, dir);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "read again", test_shipped_list_is_read_as_it_was_written },
		{ "a cut line", test_line_that_was_cut_is_skipped_and_harms_no_other },
		{ "missing", test_what_was_shipped_is_not_missing },
		{ "gaps", test_gap_is_written_down_once },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("shipped", tests);
}
