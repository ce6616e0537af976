/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "read/known_files.h"

#include "support/d9_test.h"

#define MANY 200000 /* comparing each with all before takes a minute */

static struct d9__input input(uint64_t ino)
{
	return (struct d9__input){ .dev = 7, .ino = (ino_t)ino };
}

static void test_file_is_known_by_its_device_number_and_offset(void)
{
	struct d9__table files = { 0 };
	struct d9__input file = input(1), other = file;

	CU_ASSERT_EQUAL(d9__known_files_add(&files, &file), 1);
	CU_ASSERT_EQUAL(d9__known_files_add(&files, &file), 0);
	other.dev++;
	CU_ASSERT_EQUAL(d9__known_files_add(&files, &other), 1);
	other = file;
	other.base = 512;
	CU_ASSERT_EQUAL(d9__known_files_add(&files, &other), 1);
	d9__table_release(&files);
}

static void test_pipe_is_never_known(void)
{
	struct d9__table files = { 0 };
	struct d9__input pipe = input(1);

	pipe.pipe = true;
	CU_ASSERT_EQUAL(d9__known_files_add(&files, &pipe), 1);
	CU_ASSERT_EQUAL(d9__known_files_add(&files, &pipe), 1);
	d9__table_release(&files);
}

static void test_many_files_are_all_known(void)
{
	struct d9__table files = { 0 };
	unsigned added = 0, again = 0;

	for (uint64_t ino = 1; ino <= MANY; ino++) {
		struct d9__input file = input(ino);

		added += d9__known_files_add(&files, &file) == 1;
	}
	for (uint64_t ino = 1; ino <= MANY; ino++) {
		struct d9__input file = input(ino);

		again += d9__known_files_add(&files, &file) == 1;
	}

	CU_ASSERT_EQUAL(added, MANY);
	CU_ASSERT_EQUAL(again, 0);
	d9__table_release(&files);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "a file is known by its device, number and offset",
		  test_file_is_known_by_its_device_number_and_offset },
		{ "a pipe is never known", test_pipe_is_never_known },
		{ "of many all are known", test_many_files_are_all_known },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("known_files", tests);
}
