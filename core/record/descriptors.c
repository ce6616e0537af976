/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include "record/descriptors.h"
#include "record/ring_file.h"
#include "record/sanitized.h"

#define SHARED_ABOVE 200
#define TSAN_ABOVE_MIN 512
#define TSAN_ABOVE_MAX 8192
#define FEW            32

/* Flush thread only. */
static bool own_table; /* our descriptors are not the program's */
static bool shared;    /* the contrary, found out; neither before that */
static int ring_fd;    /* > 0: the ring's */
static int tsan_above; /* under ThreadSanitizer: where ours begin */

/* Before Linux 5.9: one by one. */
static void close_each(int first, int kept)
{
	DIR *dir = opendir("/proc/thread-self/fd");

	for (struct dirent *e; dir && (e = readdir(dir));) {
		int fd = atoi(e->d_name);

		if (e->d_name[0] != '.' && fd >= first && fd != kept && fd != dirfd(dir))
			close(fd);
	}
	if (dir)
		closedir(dir);
}

/* All from |first| on but |kept|, which may be -1. */
static void close_others(int first, int kept)
{
#ifdef HAVE_CLOSE_RANGE
	bool below = kept <= first || !close_range((unsigned)first, (unsigned)kept - 1, 0);

	if (below && !close_range((unsigned)(kept < first ? first : kept + 1), ~0u, 0))
		return;
#endif
	close_each(first, kept);
}

static void null_standard_descriptors(void)
{
	for (int fd = 0; fd < 3 && !D9__SANITIZED; fd++) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);

		if (null >= 0 && null != fd) {
			dup2(null, fd);
			close(null);
		}
	}
}

/*
 * ThreadSanitizer takes equal numbers in two tables for one descriptor.  So in ours those that programs have
 * are occupied, by what its interceptors do not see.  False if the limit does not allow it.
 */
static bool may_have_other_numbers(void)
{
	struct rlimit limit;
	rlim_t half = D9__SANITIZED == 2 && !getrlimit(RLIMIT_NOFILE, &limit) ? limit.rlim_cur / 2 : 0;

	tsan_above = half < TSAN_ABOVE_MAX ? (int)half : TSAN_ABOVE_MAX;
	return D9__SANITIZED < 2 || tsan_above >= TSAN_ABOVE_MIN;
}

static void take_other_numbers(void)
{
	int fd;

	do
		fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	while (fd >= 0 && fd < tsan_above);
	if (fd >= 0)
		close(fd);
}

static int move_ring(int ring)
{
	if (ring < 0 || D9__SANITIZED == 2)
		return ring < 0 ? ring : fcntl(ring, F_DUPFD_CLOEXEC, tsan_above);
	return ring == 3 ? ring : dup2(ring, 3);
}

/* All but the ring's is left; its new number, -1 if there is none. */
static int take_into_own_table(int ring)
{
	int moved = move_ring(ring);

	/* Sanitizers report to descriptor 2. */
	for (int fd = 0; fd < 3 && !D9__SANITIZED; fd++)
		close(fd);
	close_others(3, moved);
	if (D9__SANITIZED == 2)
		take_other_numbers();
	null_standard_descriptors();
	if (moved >= 0)
		fcntl(moved, F_SETFD, FD_CLOEXEC);
	return moved;
}

int d9__descriptors_take(void)
{
	int ring = d9__ring.fd, moved = -1;

	own_table = may_have_other_numbers() && !unshare(CLONE_FILES);
	if (own_table) {
		moved = take_into_own_table(ring);
	} else {
		shared = true;
		if (ring >= 0)
			moved = fcntl(ring, F_DUPFD_CLOEXEC, SHARED_ABOVE);
	}
	if (moved < 0)
		return -1;
	ring_fd = moved;
	d9__ring_adopt_fd(moved);
	/* Locked since its creation; held for as long as we live: see d9__dead_ring_open(). */
	flock(moved, LOCK_EX | LOCK_NB);
	return ring;
}

bool d9__descriptors_are_few(void)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < FEW;
}

bool d9__descriptors_are_shared(void)
{
	return shared;
}

int d9__descriptor_place(int fd)
{
	int high = shared && fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, SHARED_ABOVE) : -1;

	if (high < 0)
		return fd;
	close(fd);
	return high;
}

void d9__descriptors_give_up_ring(void)
{
	/* A table of our own goes with us; the next recorder opens the ring by its name. */
	if (!own_table && !d9__ring.path[0])
		return;
	if (ring_fd > 0)
		close(ring_fd);
	ring_fd = 0;
	d9__ring_adopt_fd(-1);
}

bool d9__descriptors_fork_child(void)
{
	/* A table of our own was never the child's; a shared one is now. */
	bool here = !own_table;

	if (here && ring_fd > 0)
		close(ring_fd); /* or its lock would outlive the parent */
	own_table = false;
	ring_fd = 0;
	return here;
}
