/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/directory.h"
#include "cli/run/followers.h"
#include "cli/run/record_directory_helper.h"
#include "segment/namespace.h"

#define FIRST_LOOK_MS 200
#define LAST_LOOK_MS  10000
#define GIVEN_MAX     4096 /* directories that one run may ask for */

struct given {
	pid_t pid;
	uid_t uid;
	char boot_id[D9__BOOT_ID_MAX];
};

struct helper {
	char variable[sizeof(D9__DIRECTORY_HELPER_VARIABLE) + 1 + D9__DIRECTORY_HELPER_TEXT];
	const char *secret; /* in |variable| */
	char dir[PATH_MAX];
	bool made, may_go;
	int dir_fd, socket, hold_fd;
	struct given *given;
	size_t n_given;
};

/* ---- giving ---- */

/*
 * Take over the directory of a process that was root and has become another user: its files become
 * that user's.
 */
static int pass_on(int fd, const struct ucred *peer)
{
	DIR *dir = fdopendir(openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	int err = dir ? 0 : -errno;

	for (struct dirent *e; !err && dir && (e = readdir(dir));)
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") &&
		    fchownat(fd, e->d_name, peer->uid, peer->gid, AT_SYMLINK_NOFOLLOW))
			err = -errno;
	if (dir)
		closedir(dir);
	return err ? err : fchown(fd, peer->uid, peer->gid) ? -errno : 0;
}

static bool is_locked(int fd)
{
	bool locked = flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;

	if (!locked)
		flock(fd, LOCK_UN);
	return locked;
}

/* The directory |name| is root's, and the process that asks holds its lock: its name and pid tell. */
static int take_over(const struct helper *helper, const char *name, const struct ucred *peer, int fds[2])
{
	struct stat st;

	fds[0] = openat(helper->dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fds[0] < 0 || fstat(fds[0], &st))
		return -errno;
	if (st.st_uid != geteuid() || peer->uid == geteuid() || atol(name + 5) != (long)peer->pid)
		return -EEXIST;
	fds[1] = openat(fds[0], ".lock", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fds[1] < 0 || !is_locked(fds[1]))
		return -EEXIST;
	return pass_on(fds[0], peer);
}

/* Pass the lock with the directory, so that a recovering process never finds it free. */
static int fill(const struct helper *helper, const char *name, const struct ucred *peer, int fds[2])
{
	struct stat st;

	fds[0] = openat(helper->dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fds[0] < 0 || fstat(fds[0], &st))
		return -errno;
	if (st.st_uid != geteuid())
		return -EPERM;
	fds[1] = openat(fds[0], ".lock", O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fds[1] < 0 || flock(fds[1], LOCK_EX | LOCK_NB))
		return -errno;
	return pass_on(fds[0], peer);
}

static int make(const struct helper *helper, const char *name, const struct ucred *peer, int fds[2])
{
	int err;

	if (mkdirat(helper->dir_fd, name, 0700))
		return errno == EEXIST ? take_over(helper, name, peer, fds) : -errno;
	err = fill(helper, name, peer, fds);
	if (err && fds[1] >= 0)
		unlinkat(fds[0], ".lock", 0);
	if (err)
		unlinkat(helper->dir_fd, name, AT_REMOVEDIR);
	return err;
}

static int give(struct helper *helper, const struct d9__directory_helper_request *request, const struct ucred *peer, int fds[2])
{
	struct stat st;
	int err;

	if (helper->n_given == GIVEN_MAX)
		return -ENOSPC;
	if (!d9__array_grow(helper->given, helper->n_given))
		return -ENOMEM;
	err = make(helper, request->boot_id, peer, fds);
	if (err)
		return err;
	/* Let the trace's owner pass through the directory without listing it. */
	if (helper->made && peer->uid != geteuid() && !fstat(helper->dir_fd, &st) && !(st.st_mode & 011))
		fchmod(helper->dir_fd, 0711);
	helper->given[helper->n_given] = (struct given) { .pid = peer->pid, .uid = peer->uid };
	memcpy(helper->given[helper->n_given++].boot_id, request->boot_id,
	       sizeof(request->boot_id));
	return 0;
}

static void answer(int to, int err, const int fds[2])
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(2 * sizeof(int))];
	} control = { .space = "" };
	struct iovec iov = { &err, sizeof(err) };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (!err) {
		control.head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(2 * sizeof(int)), .cmsg_level = SOL_SOCKET,
						 .cmsg_type = SCM_RIGHTS };
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), fds, 2 * sizeof(int));
	}
	sendmsg(to, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static bool is_request(const struct helper *helper, const struct d9__directory_helper_request *request, ssize_t n)
{
	return n == sizeof(*request) && !memcmp(request->secret, helper->secret, sizeof(request->secret)) &&
	       memchr(request->boot_id, '\0', sizeof(request->boot_id)) && d9__boot_id_valid(request->boot_id);
}

/*
 * Serve one request.  The user is the one that the kernel names (SO_PEERCRED), not one from the
 * message.
 */
static void serve(struct helper *helper)
{
	const struct timeval patience = { 0, 200000 };
	int fd = accept4(helper->socket, NULL, NULL, SOCK_CLOEXEC), fds[2] = { -1, -1 }, err;
	struct d9__directory_helper_request request;
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (fd < 0)
		return;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) &&
	    is_request(helper, &request, recv(fd, &request, sizeof(request), 0))) {
		err = give(helper, &request, &peer, fds);
		answer(fd, err, fds);
	}
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	close(fd);
}

/* ---- how long ---- */

/*
 * True if |pid| may still ask.  It will not if it has its directory and is not root, because then
 * it has no rights to give up.
 */
static bool may_ask(void *arg, pid_t pid)
{
	const struct helper *helper = arg;
	uid_t uid = d9__follower_uid(pid);

	if (uid == (uid_t)-1)
		return false;
	for (size_t i = 0; uid && i < helper->n_given; i++)
		if (helper->given[i].pid == pid && helper->given[i].uid == uid)
			return false;
	return true;
}

static void run(struct helper *helper)
{
	struct pollfd fds[] = { { .fd = helper->socket, .events = POLLIN }, { .fd = helper->hold_fd, .events = POLLIN } };
	int wait_ms = -1;

	for (;;) {
		int n = poll(fds, 2, wait_ms);

		if (n < 0 && errno != EINTR)
			return;
		if (n > 0 && fds[0].revents)
			serve(helper);
		if (n > 0 && fds[1].revents) {
			/*
			 * A byte allows to remove an empty trace directory.  The end of the pipe
			 * means that `dial9 record` has ended, or become CMD.
			 */
			if (read(helper->hold_fd, &(char){ 0 }, 1) == 1) {
				helper->may_go = true;
				continue;
			}
			fds[1].fd = -1;
			wait_ms = FIRST_LOOK_MS;
			n = 0;
		}
		if (n || wait_ms < 0)
			continue;
		if (!d9__followers_any(helper->variable, may_ask, helper))
			return;
		wait_ms = 2 * wait_ms < LAST_LOOK_MS ? 2 * wait_ms : LAST_LOOK_MS;
	}
}

/*
 * Remove the empty directory of a process that wrote nothing: the process cannot, and one that
 * called _exit(2) at once, as the parent of a daemon does, also left its lock file.
 */
static void remove_empty(const struct helper *helper, const char *name)
{
	struct d9__namespace ns;
	int dir_fd = openat(helper->dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (dir_fd >= 0 &&
	    !d9__namespace_adopt(&ns, fcntl(helper->dir_fd, F_DUPFD_CLOEXEC, 0), dir_fd, name))
		d9__namespace_close(&ns);
}

static void clean_up(const struct helper *helper)
{
	struct stat st;

	for (size_t i = 0; i < helper->n_given; i++)
		remove_empty(helper, helper->given[i].boot_id);
	/* By now it may be gone, and another run's have the name. */
	if (helper->may_go && !fstat(helper->dir_fd, &st) && st.st_nlink)
		d9__followers_remove_dir(helper->dir);
}

/* ---- the process ---- */

static void close_from(int first)
{
#ifdef SYS_close_range
	if (!syscall(SYS_close_range, (unsigned)first, ~0u, 0))
		return;
#endif
	for (int fd = getdtablesize() - 1; fd >= first; fd--)
		close(fd);
}

/* Keep our descriptors as 3 to 5 and close those that the caller of `dial9 record` left open. */
static void keep_own_descriptors(struct helper *helper)
{
	int *own[] = { &helper->dir_fd, &helper->socket, &helper->hold_fd };

	for (int i = 0; i < 3; i++)
		*own[i] = fcntl(*own[i], F_DUPFD_CLOEXEC, 10);
	for (int i = 0; i < 3; i++)
		*own[i] = dup3(*own[i], 3 + i, O_CLOEXEC);
	close_from(6);
}

/* Detach the helper from the terminal, from pipes, and from signals for its group. */
static void stand_apart(struct helper *helper)
{
	int null = open("/dev/null", O_RDWR);

	signal(SIGHUP, SIG_IGN);
	signal(SIGTERM, SIG_DFL);
	for (int fd = 0; fd < 3 && null >= 0; fd++)
		dup2(null, fd);
	keep_own_descriptors(helper);
	prctl(PR_SET_NAME, "dial9-giver");
}

static _Noreturn void become(struct helper *helper)
{
	setsid();
	if (fork() || chdir("/"))
		_exit(0);
	stand_apart(helper);
	run(helper);
	clean_up(helper);
	_exit(0);
}

static bool make_text(char text[D9__DIRECTORY_HELPER_TEXT + 1])
{
	uint8_t bytes[D9__DIRECTORY_HELPER_TEXT / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return false;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	return true;
}

static int listen_as(const char *text)
{
	struct sockaddr_un address;
	socklen_t len = d9__directory_helper_address(text, &address);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd >= 0 && !bind(fd, (struct sockaddr *)&address, len) && !listen(fd, SOMAXCONN))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static bool start(struct helper *helper, int hold[2])
{
	pid_t child = fork();

	if (child == 0) {
		close(hold[1]);
		become(helper);
	}
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	return child > 0;
}

void d9__record_directory_helper_begin(struct d9__record_directory_helper *handle, const char *dir, bool made)
{
	struct helper helper = { .made = made, .dir_fd = -1, .socket = -1 };
	int hold[2] = { -1, -1 };

	*handle = (struct d9__record_directory_helper){ .hold_fd = -1 };
	if (geteuid() || !make_text(handle->text))
		return;
	snprintf(helper.dir, sizeof(helper.dir), "%s", dir);
	snprintf(helper.variable, sizeof(helper.variable), D9__DIRECTORY_HELPER_VARIABLE "=%s", handle->text);
	helper.secret = helper.variable + sizeof(D9__DIRECTORY_HELPER_VARIABLE) + D9__DIRECTORY_HELPER_HALF;
	helper.dir_fd = d9__directory_open(dir, D9__DIRECTORY_ANY);
	helper.socket = listen_as(handle->text);
	if (helper.dir_fd >= 0 && helper.socket >= 0 && !pipe2(hold, O_CLOEXEC)) {
		helper.hold_fd = hold[0];
		if (start(&helper, hold))
			handle->hold_fd = hold[1];
		close(hold[0]);
	}
	if (handle->hold_fd < 0) {
		handle->text[0] = '\0';
		if (hold[1] >= 0)
			close(hold[1]);
	}
	if (helper.dir_fd >= 0)
		close(helper.dir_fd);
	if (helper.socket >= 0)
		close(helper.socket);
}

void d9__record_directory_helper_let_go(struct d9__record_directory_helper *handle)
{
	if (handle->hold_fd >= 0 && write(handle->hold_fd, "", 1) < 0)
		d9__record_directory_helper_end(handle); /* the helper is gone */
}

void d9__record_directory_helper_end(struct d9__record_directory_helper *handle)
{
	if (handle->hold_fd >= 0)
		close(handle->hold_fd);
	handle->hold_fd = -1;
}
