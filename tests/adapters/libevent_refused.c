/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program in whose process no page may be made writable: attach tells, and everything runs as
 * it does alone.  Prints what attach returned.
 */

#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <dial9/libevent.h>

#include <event2/event.h>

__attribute__((visibility("default"))) int mprotect(void *address, size_t len, int protection)
{
	if (protection & PROT_WRITE) {
		errno = EACCES;
		return -1;
	}
	return (int)syscall(SYS_mprotect, address, len, protection);
}

static int runs;

static void count(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	runs++;
}

int main(void)
{
	struct event_base *base = event_base_new();
	struct event *event = event_new(base, -1, 0, count, NULL);
	int result = d9_event_base_attach(base);

	for (int i = 0; i < 3; i++) {
		event_active(event, EV_READ, 1);
		event_base_loop(base, EVLOOP_NONBLOCK);
	}
	event_free(event);
	event_base_free(base);
	printf("%s\n", result == -EPERM ? "-EPERM" : strerror(-result));
	return runs != 3;
}
