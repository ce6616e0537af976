/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/directory.h"
#include "core/record/scratch.h"

#define OTHER 65534

static const char *in_scratch(const char *name)
{
	static char path[2][2 * PATH_MAX];
	static unsigned turn;

	turn ^= 1;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", scratch_dir, name);
	return path[turn];
}

static void make_dir(const char *name, mode_t mode, uid_t owner)
{
	CU_ASSERT_EQUAL_FATAL(mkdir(in_scratch(name), 0700), 0);
	CU_ASSERT_EQUAL_FATAL(chmod(in_scratch(name), mode), 0);
	CU_ASSERT(!owner || !chown(in_scratch(name), owner, owner));
}

static void make_link(const char *name, const char *target, uid_t owner)
{
	CU_ASSERT_EQUAL_FATAL(symlink(target, in_scratch(name)), 0);
	CU_ASSERT(!owner || !lchown(in_scratch(name), owner, owner));
}

static mode_t mode_of(const char *name)
{
	struct stat st;

	return stat(in_scratch(name), &st) ? 0 : st.st_mode & 07777;
}

/* 0 if it could be opened, else why not. */
static int try(const char *name, unsigned flags)
{
	int fd = d9__directory_open(in_scratch(name), flags);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

static bool is_same(const char *name, const char *other)
{
	struct stat x, y;
	int fd = d9__directory_open(in_scratch(name), D9__DIRECTORY_ANY);
	bool same = fd >= 0 && !fstat(fd, &x) && !stat(in_scratch(other), &y) && x.st_ino == y.st_ino;

	if (fd >= 0)
		close(fd);
	return same;
}

/* As root, who alone can make what belongs to others. */
static bool have_others(void)
{
	scratch_new();
	chmod(scratch_dir, 0755);
	if (!geteuid())
		return true;
	printf("not root, who alone can make what belongs to another user\n");
	return false;
}

static void test_what_is_missing_on_the_way_is_made_for_us_alone(void)
{
	mode_t before = umask(0);

	scratch_new();
	CU_ASSERT_EQUAL(try("a/b/c", 0), -ENOENT);
	CU_ASSERT_EQUAL(try("a//b/./c/", D9__DIRECTORY_MAKE), 0);
	umask(before);
	CU_ASSERT_EQUAL(mode_of("a"), 0700);
	CU_ASSERT_EQUAL(mode_of("a/b"), 0700);
	CU_ASSERT_EQUAL(mode_of("a/b/c"), 0700);
	CU_ASSERT(is_same("a/b/../b/c", "a/b/c"));
	CU_ASSERT_EQUAL(try("a/b/c", D9__DIRECTORY_PRIVATE), 0);
}

static void test_links_of_ours_are_followed_in_directories_of_ours(void)
{
	scratch_new();
	make_dir("real", 0700, 0);
	make_dir("open", 0777, 0);
	make_link("absolute", in_scratch("real"), 0);
	make_link("relative", "./absolute", 0);
	make_link("dangling", "real/new", 0);
	make_link("loop", "loop", 0);
	make_link("open/link", "../real", 0);

	CU_ASSERT(is_same("relative", "real"));
	CU_ASSERT_EQUAL(try("dangling/below", D9__DIRECTORY_MAKE), 0);
	CU_ASSERT_EQUAL(mode_of("real/new/below"), 0700);
	CU_ASSERT_EQUAL(try("loop", D9__DIRECTORY_MAKE), -ELOOP);
	/* Strangers can give it the name of another. */
	CU_ASSERT_EQUAL(try("open/link", 0), -ELOOP);
	CU_ASSERT_EQUAL(d9__directory_enter(AT_FDCWD, in_scratch("relative"), 0), -ENOTDIR);
}

static void test_files_and_pipes_are_no_directories(void)
{
	scratch_new();
	CU_ASSERT_EQUAL(mkfifo(in_scratch("pipe"), 0600), 0);
	CU_ASSERT_EQUAL(close(open(in_scratch("file"), O_CREAT | O_WRONLY, 0600)), 0);
	CU_ASSERT_EQUAL(try("pipe", D9__DIRECTORY_MAKE), -ENOTDIR);
	CU_ASSERT_EQUAL(try("file/below", D9__DIRECTORY_MAKE), -ENOTDIR);
}

static void test_directory_that_others_may_write_to_is_refused(void)
{
	scratch_new();
	make_dir("group", 0720, 0);
	make_dir("world", 0777, 0);
	make_dir("tmp", 01777, 0);
	make_dir("seen", 0755, 0);

	CU_ASSERT_EQUAL(try("group", 0), -EPERM);
	CU_ASSERT_EQUAL(try("world", 0), -EPERM);
	CU_ASSERT_EQUAL(try("world", D9__DIRECTORY_SHARED), -EPERM);
	CU_ASSERT_EQUAL(try("tmp", 0), -EPERM);
	CU_ASSERT_EQUAL(try("tmp", D9__DIRECTORY_SHARED), 0);
	CU_ASSERT_EQUAL(try("seen", 0), 0);
	CU_ASSERT_EQUAL(try("seen", D9__DIRECTORY_PRIVATE), -EPERM);
	CU_ASSERT_EQUAL(try("world", D9__DIRECTORY_ANY), 0);
}

static void test_links_of_others_are_not_followed_and_their_directories_not_taken(void)
{
	if (!have_others())
		return;
	make_dir("ours", 0700, 0);
	make_dir("tmp", 01777, 0);
	make_dir("theirs", 0777, OTHER);
	make_link("tmp/traces", in_scratch("ours"), OTHER);
	make_link("theirs/link", in_scratch("ours"), 0);
	make_dir("theirs/traces", 0700, OTHER);

	CU_ASSERT_EQUAL(try("tmp/traces", D9__DIRECTORY_MAKE), -ELOOP);
	CU_ASSERT_EQUAL(try("tmp/traces/below", D9__DIRECTORY_MAKE), -ELOOP);
	/* It is root's, and moved there by who owns the directory. */
	CU_ASSERT_EQUAL(try("theirs/link", 0), -ELOOP);
	CU_ASSERT_EQUAL(try("theirs/traces", D9__DIRECTORY_MAKE), -EPERM);
	CU_ASSERT_EQUAL(try("theirs", 0), -EPERM);
	CU_ASSERT_EQUAL(try("theirs/own", D9__DIRECTORY_MAKE), 0);
	CU_ASSERT_EQUAL(mode_of("theirs/own"), 0700);
}

/* Return the result of |fn|, run as the other user, 0 to 255. */
static int as_other(int (*fn)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		_exit(setgid(OTHER) || setuid(OTHER) ? 254 : fn());
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static int enter_by_roots_link(void)
{
	return -try("home/me/traces", D9__DIRECTORY_MAKE);
}

static int enter_by_strangers_link(void)
{
	return -try("tmp/traces", D9__DIRECTORY_MAKE);
}

static void test_links_of_root_are_followed_by_all(void)
{
	if (!have_others())
		return;
	make_dir("disk", 0755, 0);
	make_dir("disk/me", 0700, OTHER);
	make_link("home", "disk", 0);
	make_dir("tmp", 01777, 0);
	make_link("tmp/traces", "../disk/me", 1234);

	CU_ASSERT_EQUAL(as_other(enter_by_roots_link), 0);
	CU_ASSERT_EQUAL(mode_of("disk/me/traces"), 0700);
	CU_ASSERT_EQUAL(as_other(enter_by_strangers_link), ELOOP);
}

/* In a directory of its own the other user makes |x| now a directory, now a link, as fast as it can. */
static void flip(void)
{
	const char *x = in_scratch("theirs/x"), *link = in_scratch("theirs/link");

	if (setgid(OTHER) || setuid(OTHER))
		_exit(1);
	while (!renameat2(AT_FDCWD, x, AT_FDCWD, link, RENAME_EXCHANGE))
		;
	_exit(2);
}

static void test_name_that_changes_between_directory_and_link_leads_nowhere(void)
{
	unsigned entered = 0;
	int status = 0;
	pid_t pid;

	if (!have_others())
		return;
	make_dir("precious", 0700, 0);
	make_dir("theirs", 0777, OTHER);
	make_dir("theirs/x", 0777, OTHER);
	make_link("theirs/link", "../precious", OTHER);
	pid = fork();
	if (!pid)
		flip();
	for (int i = 0; i < 20000; i++) {
		int fd = d9__directory_open(in_scratch("theirs/x/traces"), D9__DIRECTORY_MAKE);

		entered += fd >= 0;
		if (fd >= 0)
			close(fd);
	}
	kill(pid, SIGKILL);
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT(WIFSIGNALED(status));
	CU_ASSERT(entered > 0);
	CU_ASSERT_EQUAL(access(in_scratch("precious/traces"), F_OK), -1);
	scratch_remove();
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "missing ones are made 0700", test_what_is_missing_on_the_way_is_made_for_us_alone },
		{ "our links", test_links_of_ours_are_followed_in_directories_of_ours },
		{ "files and pipes", test_files_and_pipes_are_no_directories },
		{ "writable by others", test_directory_that_others_may_write_to_is_refused },
		{ "others'", test_links_of_others_are_not_followed_and_their_directories_not_taken },
		{ "root's links", test_links_of_root_are_followed_by_all },
		{ "a race", test_name_that_changes_between_directory_and_link_leads_nowhere },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("directory", tests);
}
