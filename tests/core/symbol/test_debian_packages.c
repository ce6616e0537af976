/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/d9_test.h"
#include "symbol/debian_packages.h"

static void put(const char *name, const char *text)
{
	FILE *out = fopen(name, "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	fputs(text, out);
	fclose(out);
}

static void test_package_is_that_of_the_file_with_or_without_usr(void)
{
	static const char *const files[] = { "/usr/lib/x/libc.so.6", "/lib/x/libev.so.4", "/opt/none",
					     "/usr/lib/x/libev.so.4" };
	char dir[] = "/tmp/dial9-dpkg.XXXXXX", *packages[4];

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	CU_ASSERT_EQUAL_FATAL(chdir(dir), 0);
	put("libc6:amd64.list", "/.\n/lib\n/lib/x/libc.so.6\n");
	put("libev4.list", "/.\n/usr/lib/x/libev.so.4");
	put("libev4.md5sums", "/opt/none\n");
	CU_ASSERT_EQUAL(d9__debian_debug_packages(dir, files, 4, packages), 0);
	CU_ASSERT_STRING_EQUAL(packages[0], "libc6-dbg");
	CU_ASSERT_STRING_EQUAL(packages[1], "libev4-dbgsym");
	CU_ASSERT_PTR_NULL(packages[2]);
	CU_ASSERT_STRING_EQUAL(packages[3], "libev4-dbgsym");
	for (size_t i = 0; i < 4; i++)
		free(packages[i]);
	unlink("libc6:amd64.list");
	unlink("libev4.list");
	unlink("libev4.md5sums");
	CU_ASSERT_EQUAL(chdir("/"), 0);
	rmdir(dir);
	CU_ASSERT_EQUAL(d9__debian_debug_packages(dir, files, 4, packages), 0);
	CU_ASSERT_PTR_NULL(packages[0]);
}

static const CU_TestInfo tests[] = {
	{ "package is that of the file with or without usr", test_package_is_that_of_the_file_with_or_without_usr },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("debian_packages", tests);
}
