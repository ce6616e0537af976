/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/record/fixture.h"
#include "core/record/scratch.h"
#include "ring/ring_view.h"

#define RINGS 1000

static unsigned pauses;

int nanosleep(const struct timespec *time, struct timespec *left)
{
	(void)time;
	(void)left;
	pauses++;
	return 0;
}

/* A ring whose page of health has |sequence|. */
static struct d9__ring_view make_ring(uint32_t sequence)
{
	char path[PATH_MAX + 8];
	struct d9__ring_view view = { .size = D9__RING_CHUNKS_AT, .pid = INT_MAX };

	snprintf(path, sizeof(path), "%s/ring", scratch_new());
	view.fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	CU_ASSERT_FATAL(view.fd >= 0);
	CU_ASSERT_EQUAL(ftruncate(view.fd, (off_t)view.size), 0);
	CU_ASSERT_EQUAL(pwrite(view.fd, &sequence, sizeof(sequence), D9__RING_HEALTH_AT), (ssize_t)sizeof(sequence));
	return view;
}

static void test_rings_that_never_settle_are_waited_for_all_together(void)
{
	static struct d9__ring_look look;
	struct d9__ring_view torn = make_ring(1), whole = make_ring(2);

	for (unsigned i = 0; i < RINGS; i++) {
		CU_ASSERT_EQUAL(d9__ring_view_look(&torn, &look), 0);
		CU_ASSERT(look.torn);
	}
	/* A thousand, and a tenth of the milliseconds that this takes; not 38 for each. */
	CU_ASSERT(pauses > 100 && pauses < 10000);

	CU_ASSERT_EQUAL(d9__ring_view_look(&whole, &look), 0);
	CU_ASSERT(!look.torn);
	d9__ring_view_close(&torn);
	d9__ring_view_close(&whole);
}

static void test_file_that_is_too_short_is_cut_or_just_being_made(void)
{
	char path[PATH_MAX + 8];
	struct d9__ring_view view;
	int fd;

	snprintf(path, sizeof(path), "%s/ring", scratch_new());
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(d9__ring_view_open(&view, AT_FDCWD, path), -ENODATA);
	/* As its recorder does before it writes. */
	CU_ASSERT_EQUAL(flock(fd, LOCK_EX | LOCK_NB), 0);
	CU_ASSERT_EQUAL(d9__ring_view_open(&view, AT_FDCWD, path), -EAGAIN);
	close(fd);
}

/* Copies the ring's file into one that another process has left. */
static int leave_ring(const char *path)
{
	struct d9__ring_header header = *d9__ring.header;
	struct stat st;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	header.start_time--;
	CU_ASSERT_FATAL(fd >= 0 && !fstat(d9__ring.fd, &st));
	CU_ASSERT_EQUAL(ftruncate(fd, st.st_size), 0);
	CU_ASSERT_EQUAL(pwrite(fd, &header, sizeof(header), 0), (ssize_t)sizeof(header));
	return fd;
}

static void test_ring_of_another_that_a_recorder_saves_is_not_taken_for_its_own(void)
{
	char path[PATH_MAX + 8];
	struct d9__ring_view view;
	struct stat own, found;
	int fd, first = open("/dev/null", O_RDONLY | O_CLOEXEC);

	fixture_ring(8);
	snprintf(path, sizeof(path), "%s/ring", scratch_new());
	fd = leave_ring(path);
	/* Below that of its own. */
	CU_ASSERT_EQUAL(dup3(fd, first, O_CLOEXEC), first);
	CU_ASSERT_EQUAL(prctl(PR_SET_NAME, "dial9-flush"), 0);
	CU_ASSERT_EQUAL_FATAL(d9__ring_view_of_process(&view, getpid()), 0);
	CU_ASSERT_EQUAL(fstat(d9__ring.fd, &own), 0);
	CU_ASSERT_EQUAL(fstat(view.fd, &found), 0);
	CU_ASSERT(own.st_dev == found.st_dev && own.st_ino == found.st_ino);
	d9__ring_view_close(&view);
	close(first);
	close(fd);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		{ "rings that never settle are waited for all together",
		  test_rings_that_never_settle_are_waited_for_all_together },
		{ "file that is too short is cut, or just being made",
		  test_file_that_is_too_short_is_cut_or_just_being_made },
		{ "ring of another that a recorder saves is not taken for its own",
		  test_ring_of_another_that_a_recorder_saves_is_not_taken_for_its_own },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("ring_view", tests);
}
