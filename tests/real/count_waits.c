/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A preload library of its own that counts what libevent or GLib asks of the kernel: waits that may block
 * (timeout not zero) and waits that only look.  A thread that waited for libevent or libev and ends has
 * gone to wait for good.  The two counters live in the file $COUNT_WAITS.PID, mapped and shared, so a
 * killed process has counted too.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

struct counters {
	_Atomic(uint64_t) blocking, looking;
};

static struct counters nowhere;
static struct counters *counters = &nowhere;
static int (*real_epoll_wait)(int, struct epoll_event *, int, int);
static int (*real_poll)(struct pollfd *, nfds_t, int);
static int (*real_ppoll)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);

static pthread_key_t waited;

static void count_end(void *unused)
{
	(void)unused;
	atomic_fetch_add(&counters->blocking, 1);
}

static void open_counters(void)
{
	const char *prefix = getenv("COUNT_WAITS");
	char path[4096];
	int fd;
	void *map;

	counters = &nowhere;
	if (!prefix)
		return;
	snprintf(path, sizeof(path), "%s.%ld", prefix, (long)getpid());
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	if (ftruncate(fd, sizeof(struct counters)) == 0) {
		map = mmap(NULL, sizeof(struct counters), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (map != MAP_FAILED)
			counters = map;
	}
	close(fd);
}

__attribute__((constructor)) static void start(void)
{
	real_epoll_wait = (int (*)(int, struct epoll_event *, int, int))dlsym(RTLD_NEXT, "epoll_wait");
	real_poll = (int (*)(struct pollfd *, nfds_t, int))dlsym(RTLD_NEXT, "poll");
	real_ppoll = (int (*)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *))dlsym(
		RTLD_NEXT, "ppoll");
	pthread_key_create(&waited, count_end);
	open_counters();
	pthread_atfork(NULL, NULL, open_counters);
}

__attribute__((visibility("default"))) int epoll_wait(int epfd, struct epoll_event *events, int max,
						     int timeout)
{
	atomic_fetch_add(timeout ? &counters->blocking : &counters->looking, 1);
	pthread_setspecific(waited, counters);
	return real_epoll_wait(epfd, events, max, timeout);
}

/* Others poll, too: only what the loop libraries ask for, by way of our hooks or not, is a wait. */
static void count_of_loop(const void *caller, int looks)
{
	Dl_info info;

	if (dladdr(caller, &info) &&
	    (strstr(info.dli_fname, "/libevent") || strstr(info.dli_fname, "/libglib-2.0") ||
	     strstr(info.dli_fname, "/libdial9-glib")))
		atomic_fetch_add(looks ? &counters->looking : &counters->blocking, 1);
}

__attribute__((visibility("default"))) int poll(struct pollfd *fds, nfds_t n, int timeout)
{
	count_of_loop(__builtin_return_address(0), timeout == 0);
	return real_poll(fds, n, timeout);
}

/* GLib's waits since 2.82, where the program has no poll function of its own. */
__attribute__((visibility("default"))) int ppoll(struct pollfd *fds, nfds_t n,
						 const struct timespec *timeout,
						 const sigset_t *mask)
{
	count_of_loop(__builtin_return_address(0),
		      timeout && timeout->tv_sec == 0 && timeout->tv_nsec == 0);
	return real_ppoll(fds, n, timeout, mask);
}
