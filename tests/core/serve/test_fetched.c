/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "serve/fetched.h"
#include "support/d9_test.h"

static char folder[] = "/tmp/d9-fetched.XXXXXX";

static struct d9__fetched *new_fetched(uint64_t bytes_max)
{
	strcpy(folder + strlen(folder) - 6, "XXXXXX");
	if (!mkdtemp(folder))
		return NULL;
	return d9__fetched_new(open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), folder, bytes_max);
}

static void end(struct d9__fetched *fetched)
{
	char command[64];

	d9__fetched_free(fetched);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	CU_ASSERT_EQUAL(system(command), 0);
}

/* Keep |bytes| under |name|, as if it was used |ago| seconds ago. */
static void keep(struct d9__fetched *fetched, const char *name, size_t bytes, long ago)
{
	struct timespec times[2];
	char unfinished[D9__FETCHED_NAME];
	int fd = d9__fetched_begin(fetched, unfinished);

	CU_ASSERT_TRUE_FATAL(fd >= 0);
	clock_gettime(CLOCK_REALTIME, &times[0]);
	times[0].tv_sec -= ago;
	times[1] = times[0];
	CU_ASSERT_EQUAL(ftruncate(fd, (off_t)bytes), 0);
	CU_ASSERT_EQUAL(futimens(fd, times), 0);
	close(fd);
	CU_ASSERT_EQUAL(d9__fetched_keep(fetched, unfinished, name), 0);
}

static bool is_there(struct d9__fetched *fetched, const char *name)
{
	char *path = d9__fetched_path(fetched, name);
	bool there = path && !access(path, F_OK);

	free(path);
	return there;
}

static void test_files_are_the_users_alone(void)
{
	struct d9__fetched *fetched = new_fetched(1000);
	struct stat st;
	int fd;

	CU_ASSERT_PTR_NOT_NULL_FATAL(fetched);
	keep(fetched, "a", 10, 0);
	fd = d9__fetched_open(fetched, "a");
	CU_ASSERT_TRUE_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(fstat(fd, &st), 0);
	CU_ASSERT_EQUAL(st.st_mode & 0777, 0600);
	close(fd);
	end(fetched);
}

static void test_what_was_used_longest_ago_goes_first(void)
{
	struct d9__fetched *fetched = new_fetched(1000);

	CU_ASSERT_PTR_NOT_NULL_FATAL(fetched);
	keep(fetched, "old", 400, 300);
	keep(fetched, "older", 400, 400);
	close(d9__fetched_open(fetched, "older"));
	keep(fetched, "new", 400, 0);
	CU_ASSERT_FALSE(is_there(fetched, "old"));
	CU_ASSERT_TRUE(is_there(fetched, "older"));
	CU_ASSERT_TRUE(is_there(fetched, "new"));
	end(fetched);
}

static void test_what_has_just_come_stays_even_alone(void)
{
	struct d9__fetched *fetched = new_fetched(1000);

	CU_ASSERT_PTR_NOT_NULL_FATAL(fetched);
	keep(fetched, "small", 10, 100);
	keep(fetched, "large", 5000, 200);
	CU_ASSERT_FALSE(is_there(fetched, "small"));
	CU_ASSERT_TRUE(is_there(fetched, "large"));
	end(fetched);
}

static void test_a_link_is_not_opened(void)
{
	struct d9__fetched *fetched = new_fetched(1000);
	char *path;

	CU_ASSERT_PTR_NOT_NULL_FATAL(fetched);
	path = d9__fetched_path(fetched, "a");
	CU_ASSERT_EQUAL(symlink("/etc/passwd", path), 0);
	CU_ASSERT_EQUAL(d9__fetched_open(fetched, "a"), -ELOOP);
	free(path);
	end(fetched);
}

static void test_what_came_to_nothing_leaves_nothing(void)
{
	struct d9__fetched *fetched = new_fetched(1000);
	char unfinished[D9__FETCHED_NAME];
	int fd;

	CU_ASSERT_PTR_NOT_NULL_FATAL(fetched);
	fd = d9__fetched_begin(fetched, unfinished);
	CU_ASSERT_TRUE_FATAL(fd >= 0);
	close(fd);
	d9__fetched_drop(fetched, unfinished);
	CU_ASSERT_FALSE(is_there(fetched, unfinished));
	end(fetched);
}

static void test_names_are_sums_of_what_they_stand_for(void)
{
	char one[D9__FETCHED_NAME], other[D9__FETCHED_NAME];

	d9__fetched_name("../../etc/passwd", ".bin", one);
	d9__fetched_name("../../etc/passwe", ".bin", other);
	CU_ASSERT_EQUAL(strspn(one, "0123456789abcdef"), 40);
	CU_ASSERT_STRING_EQUAL(one + 40, ".bin");
	CU_ASSERT_STRING_NOT_EQUAL(one, other);
}

static const CU_TestInfo tests[] = {
	{ "files are the user's alone", test_files_are_the_users_alone },
	{ "what was used longest ago goes first", test_what_was_used_longest_ago_goes_first },
	{ "what has just come stays even alone", test_what_has_just_come_stays_even_alone },
	{ "a link is not opened", test_a_link_is_not_opened },
	{ "what came to nothing leaves nothing", test_what_came_to_nothing_leaves_nothing },
	{ "names are sums of what they stand for", test_names_are_sums_of_what_they_stand_for },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	return d9_test_main("fetched", tests);
}
