/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "core/record/scratch.h"
#include "segment/files.h"

static int ends[2], dir_fd;

static void *answer_all(void *arg)
{
	uint64_t created = 0;
	char peek;

	/* Blocks until there is a question. */
	while (recv(ends[0], &peek, 1, MSG_PEEK) > 0 && d9__files_answer(ends[0], dir_fd, &created) == 1)
		;
	return arg;
}

static void make_file(const char *name, const char *text)
{
	int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL, 0600);

	CU_ASSERT_EQUAL(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static bool holds(const char *name, const char *text)
{
	char found[64] = "";
	int fd = openat(dir_fd, name, O_RDONLY);

	if (fd < 0)
		return false;
	CU_ASSERT(read(fd, found, sizeof(found) - 1) >= 0);
	close(fd);
	return !strcmp(found, text);
}

static int try_open(const char *name, int flags)
{
	int fd = d9__file_open(-1, name, flags);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

static pthread_t begin(void)
{
	pthread_t thread;

	dir_fd = open(scratch_new(), O_RDONLY | O_DIRECTORY);
	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, answer_all, NULL), 0);
	d9__files_ask(ends[1]);
	return thread;
}

static void finish(pthread_t thread)
{
	d9__files_ask(-1);
	close(ends[1]);
	pthread_join(thread, NULL);
	close(ends[0]);
	close(dir_fd);
	scratch_remove();
}

static void test_what_a_recovery_needs_is_given(void)
{
	pthread_t thread = begin();
	char name[D9__FILE_NAME_MAX];
	uint64_t index = 0;
	bool active = false;
	int fd;

	CU_ASSERT_EQUAL(d9__file_newest(-1, name, &index, &active), 0);
	make_file("trace.1.bin", "one");
	make_file("trace.10.bin.zst.active", "ten");
	CU_ASSERT_EQUAL(d9__file_newest(-1, name, &index, &active), 1);
	CU_ASSERT_STRING_EQUAL(name, "trace.10.bin.zst.active");
	CU_ASSERT(index == 10 && active);
	CU_ASSERT_EQUAL(try_open(name, O_RDWR), 0);
	CU_ASSERT_EQUAL(d9__file_rename(-1, name, "trace.10.bin.zst"), 0);
	fd = d9__file_open(-1, "trace.11.bin.active", O_WRONLY | O_CREAT | O_EXCL);
	CU_ASSERT_EQUAL(write(fd, "eleven", 6), 6);
	close(fd);
	CU_ASSERT_EQUAL(d9__file_rename(-1, "trace.11.bin.active", "trace.11.bin"), 0);
	CU_ASSERT(holds("trace.10.bin.zst", "ten"));
	CU_ASSERT(holds("trace.11.bin", "eleven"));
	CU_ASSERT_EQUAL(d9__file_remove(-1, "trace.11.bin"), 0);
	finish(thread);
}

static void test_nothing_else_is_given(void)
{
	pthread_t thread = begin();

	make_file("trace.1.bin", "one");
	make_file("trace.1.bin.active", "again");
	make_file("notes", "mine");
	CU_ASSERT_EQUAL(mkfifoat(dir_fd, "trace.2.bin.active", 0600), 0);
	CU_ASSERT_EQUAL(symlinkat("notes", dir_fd, "trace.3.bin.active"), 0);

	CU_ASSERT_EQUAL(try_open("../notes", O_RDONLY), -EPERM);
	CU_ASSERT_EQUAL(try_open("notes", O_RDONLY), -EPERM);
	CU_ASSERT_EQUAL(try_open(".lock", O_WRONLY | O_CREAT | O_EXCL), -EPERM);
	CU_ASSERT_EQUAL(try_open("trace.1.bin", O_RDWR), -EPERM);
	CU_ASSERT_EQUAL(try_open("trace.1.bin", O_RDONLY | O_TRUNC), -EPERM);
	CU_ASSERT_EQUAL(try_open("trace.5.bin.active", O_RDWR | O_CREAT), -EPERM);
	CU_ASSERT_EQUAL(try_open("trace.2.bin.active", O_RDONLY), -EPERM);
	CU_ASSERT_EQUAL(try_open("trace.3.bin.active", O_RDWR), -ELOOP);
	CU_ASSERT_EQUAL(d9__file_remove(-1, "trace.1.bin"), -EPERM);
	CU_ASSERT_EQUAL(d9__file_remove(-1, "notes"), -EPERM);
	CU_ASSERT_EQUAL(d9__file_rename(-1, "trace.1.bin.active", "trace.1.bin"), -EEXIST);
	CU_ASSERT_EQUAL(d9__file_rename(-1, "trace.1.bin.active", "trace.4.bin"), -EPERM);
	CU_ASSERT_EQUAL(d9__file_rename(-1, "trace.1.bin", "notes"), -EPERM);
	CU_ASSERT(holds("trace.1.bin", "one"));
	CU_ASSERT(holds("notes", "mine"));
	finish(thread);
}

/* By our own rights, too. */
static void test_pipe_in_the_place_of_a_segment_keeps_nobody_waiting(void)
{
	dir_fd = open(scratch_new(), O_RDONLY | O_DIRECTORY);
	CU_ASSERT_EQUAL(mkfifoat(dir_fd, "trace.2.bin.active", 0600), 0);
	CU_ASSERT_EQUAL(d9__file_open(dir_fd, "trace.2.bin.active", O_RDONLY), -EPERM);
	close(dir_fd);
	scratch_remove();
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "what is needed", test_what_a_recovery_needs_is_given },
		{ "nothing else", test_nothing_else_is_given },
		{ "a pipe", test_pipe_in_the_place_of_a_segment_keeps_nobody_waiting },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("files", tests);
}
