/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loaded before a server: the next call that sends something on a socket takes 800 ms when there is a file $STALL, which is
 * removed first.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* Not a pipe, by which threads wake each other. */
static void stall(int fd)
{
	static const char *path;
	socklen_t len = sizeof(int);
	int type;

	if ((!path && !(path = getenv("STALL"))) || getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len))
		return;
	if (!unlink(path))
		nanosleep(&(struct timespec){ 0, 800000000 }, NULL);
}

#pragma GCC visibility push(default)

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	stall(fd);
	return NEXT(sendmsg)(fd, message, flags);
}

ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
	stall(fd);
	return NEXT(send)(fd, bytes, len, flags);
}

ssize_t write(int fd, const void *bytes, size_t len)
{
	stall(fd);
	return NEXT(write)(fd, bytes, len);
}

ssize_t writev(int fd, const struct iovec *parts, int n)
{
	stall(fd);
	return NEXT(writev)(fd, parts, n);
}
