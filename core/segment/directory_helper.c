/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "segment/directory_helper.h"

#define NAME_TRIES 8

socklen_t d9__directory_helper_address(const char *giver, struct sockaddr_un *out)
{
	static const char prefix[] = "\0dial9-";
	size_t n = sizeof(prefix) - 1;

	if (!giver || strlen(giver) != D9__DIRECTORY_HELPER_TEXT)
		return 0;
	*out = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(out->sun_path, prefix, n);
	memcpy(out->sun_path + n, giver, D9__DIRECTORY_HELPER_HALF);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + D9__DIRECTORY_HELPER_HALF);
}

/* Every user sees the address of one that lives, and may take it when that has ended. */
static bool is_of_root(int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) && peer.uid == 0;
}

static int connect_to(const char *giver)
{
	const struct timeval patience = { 1, 0 };
	struct sockaddr_un address;
	socklen_t len = d9__directory_helper_address(giver, &address);
	int fd, err;

	if (!len)
		return -EINVAL;
	fd = d9__descriptor_place(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	err = connect(fd, (struct sockaddr *)&address, len) ? -errno : is_of_root(fd) ? 0 : -EPERM;
	if (!err)
		return fd;
	close(fd);
	return err;
}

/* Two descriptors and 0, or -errno.  Where there is room for one alone, one alone comes. */
static int receive(int from, int fds[2])
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(2 * sizeof(int))];
	} control;
	int answer;
	struct iovec iov = { &answer, sizeof(answer) };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	const struct cmsghdr *head;
	size_t came;
	ssize_t n;

	do
		n = recvmsg(from, &message, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n != sizeof(answer))
		return n < 0 ? -errno : -ECONNRESET;
	head = CMSG_FIRSTHDR(&message);
	came = head && head->cmsg_type == SCM_RIGHTS ? (head->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
	if (came)
		memcpy(fds, CMSG_DATA(head), came * sizeof(int));
	if (!answer && came == 2)
		return 0;
	while (came)
		close(fds[--came]);
	return answer ? answer : -EBADMSG;
}

static int ask(const char *giver, const char *boot_id, int fds[2])
{
	struct d9__directory_helper_request request = { .boot_id = "" };
	int fd = connect_to(giver), err = 0;

	if (fd < 0)
		return fd;
	memcpy(request.secret, giver + D9__DIRECTORY_HELPER_HALF, D9__DIRECTORY_HELPER_HALF);
	snprintf(request.boot_id, sizeof(request.boot_id), "%s", boot_id);
	if (send(fd, &request, sizeof(request), MSG_NOSIGNAL) != sizeof(request))
		err = -errno;
	else
		err = receive(fd, fds);
	close(fd);
	return err;
}

int d9__directory_helper_ask(const char *giver, struct d9__namespace *ns, const char *trace_dir, uint64_t clock)
{
	char boot_id[D9__BOOT_ID_MAX];
	int fds[2], err;

	memcpy(boot_id, ns->boot_id, sizeof(boot_id));
	err = ask(giver, boot_id, fds);
	for (int i = 0; err == -EEXIST && ns->dir_fd < 0 && i < NAME_TRIES; i++) {
		d9__boot_id_make(boot_id, ++clock, (long)getpid());
		err = ask(giver, boot_id, fds);
	}
	if (err)
		return err;
	memcpy(ns->boot_id, boot_id, sizeof(boot_id));
	d9__namespace_take(ns, trace_dir, d9__descriptor_place(fds[0]), d9__descriptor_place(fds[1]));
	return 0;
}
