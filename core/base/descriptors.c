/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/dir.h"
#include "base/sanitized.h"

#define SHARED_ABOVE 200
#define TSAN_ABOVE_MIN 512
#define TSAN_ABOVE_MAX 8192
#define FEW            32
#define PARCEL_MAX     253 /* of the kernel's, for one message */
#define PARCEL_NUMBERS 1024

/* Flush thread only. */
static bool own_table; /* our descriptors are not the program's */
static bool shared;    /* the contrary, found out; neither before that */
static int ring_fd;    /* > 0: the ring's */
static int tsan_above; /* under ThreadSanitizer: where ours begin */

/*
 * Descriptors on their way from one flush thread to the next.  The flush thread has it, or while there is
 * none, the thread that holds the recorder's lock.
 */
static struct {
	int fd; /* > 0: in the program's table */
	ino_t inode;
	struct sockaddr_un address;
	socklen_t address_len;
	uint8_t nonce[16]; /* every user may send to the address */
	int numbers[PARCEL_MAX];
	unsigned n;
} parcel;

/* Before Linux 5.9: one by one. */
static void close_each(int first, int kept)
{
	struct d9__dir dir;
	const char *name;

	if (d9__dir_open(&dir, "/proc/thread-self/fd"))
		return;
	while ((name = d9__dir_next(&dir))) {
		int fd = atoi(name);

		if (fd >= first && fd != kept && fd != dir.fd)
			close(fd);
	}
	d9__dir_close(&dir);
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

/* All but |kept| is left.  Sanitizers report to descriptor 2. */
static void empty_table(int kept)
{
	for (int fd = 0; fd < 3 && !D9__SANITIZED; fd++)
		close(fd);
	close_others(3, kept);
	if (D9__SANITIZED == 2)
		take_other_numbers();
	null_standard_descriptors();
}

/* Close every descriptor in our own table except the ring's.  Returns its new number, or -1 without a ring. */
static int take_into_own_table(int ring)
{
	int moved = move_ring(ring);

	empty_table(moved);
	if (moved >= 0)
		fcntl(moved, F_SETFD, FD_CLOEXEC);
	return moved;
}

int d9__descriptors_take(int ring)
{
	int moved = -1;

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
	/* Locked since its creation; held for as long as we live: see d9__dead_ring_open(). */
	flock(moved, LOCK_EX | LOCK_NB);
	return moved;
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

bool d9__descriptors_give_up_ring(bool is_named)
{
	/* A table of our own goes with us; the next recorder opens the ring by its name. */
	if (!own_table && !is_named)
		return false;
	if (ring_fd > 0)
		close(ring_fd);
	ring_fd = 0;
	return true;
}

/* ---- from one flush thread to the next ---- */

static int open_parcel(void)
{
	struct sockaddr_un any = { .sun_family = AF_UNIX };
	int low = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), fd;

	if (low < 0)
		return -errno;
	fd = fcntl(low, F_DUPFD_CLOEXEC, SHARED_ABOVE);
	close(low);
	parcel.address_len = sizeof(parcel.address);
	/* A name of the kernel's choice, in no file system. */
	if (fd >= 0 && !bind(fd, (const struct sockaddr *)&any, sizeof(any.sun_family)) &&
	    !getsockname(fd, (struct sockaddr *)&parcel.address, &parcel.address_len))
		return fd;
	if (fd >= 0)
		close(fd);
	return -EMFILE;
}

int d9__descriptors_expect(void)
{
	struct stat st;

	if (!own_table)
		return 0;
	parcel.fd = open_parcel();
	if (parcel.fd > 0 && !fstat(parcel.fd, &st) &&
	    getrandom(parcel.nonce, sizeof(parcel.nonce), GRND_NONBLOCK) == sizeof(parcel.nonce)) {
		parcel.inode = st.st_ino;
		return 0;
	}
	if (parcel.fd > 0)
		close(parcel.fd);
	parcel.fd = 0;
	return -EMFILE;
}

/* The program may have closed it, and have another one of that number. */
static bool is_parcel(int fd)
{
	struct stat st;

	return fd > 0 && !fstat(fd, &st) && S_ISSOCK(st.st_mode) && st.st_ino == parcel.inode;
}

void d9__descriptors_expect_none(void)
{
	if (is_parcel(parcel.fd))
		close(parcel.fd);
	parcel.fd = 0;
}

/* False: there are more than go into one message. */
static bool list_own(void)
{
	int first = D9__SANITIZED == 2 ? tsan_above : 3;

	parcel.n = 0;
	for (int fd = first; fd < first + PARCEL_NUMBERS; fd++) {
		if (fcntl(fd, F_GETFD) < 0)
			continue;
		if (parcel.n == PARCEL_MAX)
			return false;
		parcel.numbers[parcel.n++] = fd;
	}
	return true;
}

union rights {
	struct cmsghdr head;
	char space[CMSG_SPACE(PARCEL_MAX * sizeof(int))];
};

bool d9__descriptors_send(void)
{
	struct iovec iov = { parcel.nonce, sizeof(parcel.nonce) };
	struct msghdr message = { .msg_name = &parcel.address, .msg_namelen = parcel.address_len, .msg_iov = &iov,
				  .msg_iovlen = 1 };
	union rights rights;
	bool sent;
	int fd;

	if (!own_table)
		return true;
	if (!list_own() || (fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) < 0)
		return false;
	if (parcel.n) {
		memset(&rights, 0, sizeof(rights));
		rights.head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(parcel.n * sizeof(int)), .cmsg_level = SOL_SOCKET,
						.cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(&rights.head), parcel.numbers, parcel.n * sizeof(int));
		message.msg_control = &rights;
		message.msg_controllen = CMSG_SPACE(parcel.n * sizeof(int));
	}
	sent = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof(parcel.nonce);
	close(fd);
	return sent;
}

/*
 * They came at the lowest numbers that were free, in ascending order of those that they had, so none of these is below: from
 * the last on each one's is free.
 */
static bool renumber(const int *came, size_t n)
{
	bool all = n == parcel.n;

	while (n-- > 0) {
		if (came[n] == parcel.numbers[n])
			continue;
		all &= all && dup3(came[n], parcel.numbers[n], O_CLOEXEC) >= 0;
		close(came[n]);
	}
	return all;
}

/* True if it was ours. */
static bool open_one(int fd, bool *all)
{
	uint8_t nonce[sizeof(parcel.nonce)];
	struct iovec iov = { nonce, sizeof(nonce) };
	union rights rights;
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &rights,
				  .msg_controllen = sizeof(rights) };
	ssize_t len = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	const struct cmsghdr *head = len < 0 ? NULL : CMSG_FIRSTHDR(&message);
	int came[PARCEL_MAX];
	size_t n = head && head->cmsg_type == SCM_RIGHTS ? (head->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;

	*all = false;
	if (n)
		memcpy(came, CMSG_DATA(head), n * sizeof(int));
	if (len == (ssize_t)sizeof(nonce) && !memcmp(nonce, parcel.nonce, sizeof(nonce))) {
		*all = renumber(came, n);
		return true;
	}
	while (n-- > 0)
		close(came[n]);
	return len < 0;
}

/* In a table that has nothing but the socket |fd|. */
static bool open_all(int fd)
{
	bool all = false;

	while (!open_one(fd, &all))
		continue;
	return all;
}

int d9__descriptors_receive(void)
{
	int socket = is_parcel(parcel.fd) ? parcel.fd : -1;
	bool all;

	if (!own_table)
		return 0;
	if (unshare(CLONE_FILES))
		return -errno;
	empty_table(socket);
	all = socket > 0 && open_all(socket);
	if (socket > 0)
		close(socket);
	if (all)
		return 0;
	ring_fd = 0;
	return -ENOENT;
}

bool d9__descriptors_fork_child(void)
{
	d9__descriptors_expect_none();
	/* A table of our own was never the child's; a shared one is now. */
	bool here = !own_table;

	if (here && ring_fd > 0)
		close(ring_fd); /* or its lock would outlive the parent */
	own_table = false;
	ring_fd = 0;
	return here;
}
