/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/d9_test.h"
#include "symbol/jit_map.h"

static int parse(struct d9__jit_map *map, const char *text)
{
	char *copy = malloc(strlen(text) + 1);

	strcpy(copy, text);
	return d9__jit_map_parse(map, copy, strlen(text));
}

static void test_function_that_was_written_last_counts(void)
{
	struct d9__jit_map map = { 0 };

	CU_ASSERT_EQUAL(parse(&map, "1000 100 old\n2000 10 other one\n1080 20 new\n0x3000 8 prefixed"), 0);

	CU_ASSERT_STRING_EQUAL(d9__jit_map_find(&map, 0x1000), "old");
	CU_ASSERT_STRING_EQUAL(d9__jit_map_find(&map, 0x1090), "new");
	CU_ASSERT_STRING_EQUAL(d9__jit_map_find(&map, 0x10a0), "old");
	CU_ASSERT_STRING_EQUAL(d9__jit_map_find(&map, 0x200f), "other one");
	CU_ASSERT_STRING_EQUAL(d9__jit_map_find(&map, 0x3007), "prefixed");
	CU_ASSERT_PTR_NULL(d9__jit_map_find(&map, 0x1100));
	d9__jit_map_release(&map);
}

static void test_lines_that_are_none_are_passed_over(void)
{
	struct d9__jit_map map = { 0 };

	CU_ASSERT_EQUAL(parse(&map, "\n\n1000\n1000 10\n1000 10 \n-5 10 x\n10000000000000000 1 long\n"
				    "1000 0 empty\nzz 1 x\nffffffffffffff00 ffff end\n"), 0);

	CU_ASSERT_EQUAL(map.n, 1);
	CU_ASSERT_STRING_EQUAL(d9__jit_map_find(&map, 0xffffffffffffff80), "end");
	CU_ASSERT_EQUAL(parse(&map, ""), 0);
	CU_ASSERT_PTR_NULL(d9__jit_map_find(&map, 0x1000));
	d9__jit_map_release(&map);
}

static void test_links_and_large_files_are_not_read(void)
{
	char dir[] = "/tmp/dial9-jit.XXXXXX";
	struct d9__jit_map map = { 0 };
	int fd;

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	CU_ASSERT_EQUAL_FATAL(chdir(dir), 0);
	fd = open("map", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CU_ASSERT_EQUAL(write(fd, "1 1 f\n", 6), 6);
	CU_ASSERT_EQUAL(d9__jit_map_read(&map, "map"), 0);
	CU_ASSERT_EQUAL(map.n, 1);
	CU_ASSERT_EQUAL(symlink("map", "link"), 0);
	CU_ASSERT_EQUAL(d9__jit_map_read(&map, "link"), -ELOOP);
	CU_ASSERT_EQUAL(mkfifo("pipe", 0600), 0);
	CU_ASSERT_EQUAL(d9__jit_map_read(&map, "pipe"), -EBADMSG);
	CU_ASSERT_EQUAL(ftruncate(fd, (off_t)D9__JIT_MAP_MAX + 1), 0);
	CU_ASSERT_EQUAL(d9__jit_map_read(&map, "map"), -EFBIG);
	CU_ASSERT_EQUAL(d9__jit_map_read(&map, "none"), -ENOENT);
	close(fd);
	unlink("map");
	unlink("link");
	unlink("pipe");
	CU_ASSERT_EQUAL(chdir("/"), 0);
	rmdir(dir);
	d9__jit_map_release(&map);
}

static const CU_TestInfo tests[] = {
	{ "function that was written last counts", test_function_that_was_written_last_counts },
	{ "lines that are none are passed over", test_lines_that_are_none_are_passed_over },
	{ "links and large files are not read", test_links_and_large_files_are_not_read },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("jit_map", tests);
}
