/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/memory_limit.h"
#include "support/d9_test.h"

static void test_texts_of_cgroups_are_bytes_or_no_limit(void)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} texts[] = {
		{ "67108864\n", 67108864 }, { "0\n", 0 }, { "4096", 4096 },
		{ "max\n", UINT64_MAX }, { "", UINT64_MAX }, { "9223372036854771712\n", UINT64_MAX },
		{ "12 monkeys\n", UINT64_MAX }, { "-1\n", UINT64_MAX },
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		CU_ASSERT_EQUAL(d9__cgroup_parse_memory(texts[i].text), texts[i].bytes);
}

/* In a child: a limit stays. */
static int look_below(rlim_t bytes)
{
	struct rlimit limit = { bytes, bytes };
	struct d9__memory_limit found;

	if (setrlimit(RLIMIT_AS, &limit))
		return 2;
	found = d9__memory_limit();
	return found.bytes <= bytes / 4 && found.what ? 0 : 1;
}

static void test_a_quarter_of_the_address_space_that_is_left_is_the_most(void)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(look_below((rlim_t)1 << 47)); /* a sanitizer's shadow takes most of it */
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT(WIFEXITED(status));
	CU_ASSERT_EQUAL(WEXITSTATUS(status), 0);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "texts of cgroups are bytes or no limit", test_texts_of_cgroups_are_bytes_or_no_limit },
		{ "a quarter of the address space that is left is the most",
		  test_a_quarter_of_the_address_space_that_is_left_is_the_most },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("memory_limit", tests);
}
