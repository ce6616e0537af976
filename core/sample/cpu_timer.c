/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sample/cpu_timer.h"

#include "base/thread.h"
#include "base/time.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/*
 * By system calls: the C library's timers of threads would start a thread of its own, and it knows no clock of a thread
 * that is not told by its pthread_t.
 */
int d9__cpu_timer_start(uint32_t tid, int signal, int value, uint64_t first_ns, uint64_t period_ns)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = signal };
	struct itimerspec every = { d9__timespec_of(period_ns), d9__timespec_of(first_ns) };
	int timer;

	event.sigev_value.sival_int = value;
	event.sigev_notify_thread_id = (int)tid;
	if (syscall(SYS_timer_create, d9__thread_cpu_clock(tid), &event, &timer))
		return -errno;
	if (syscall(SYS_timer_settime, timer, 0, &every, NULL)) {
		int err = -errno;

		d9__cpu_timer_stop(timer);
		return err;
	}
	return timer;
}

void d9__cpu_timer_stop(int timer)
{
	syscall(SYS_timer_delete, timer);
}

#define LIBC_SIGNAL 32

static bool has(uint64_t signals, int signal)
{
	return signals >> (signal - 1) & 1;
}

static void read_file(uint32_t tid, const char *name, char *text, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%u/%s", tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, size - 1);
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
}

/* While a thread waits for signals there the kernel takes them out of those that it blocks. */
static bool waits_for_signals(uint32_t tid)
{
	char text[256], *end;

	read_file(tid, "syscall", text, sizeof(text));
	return strtol(text, &end, 10) == SYS_rt_sigtimedwait && end > text;
}

/* A program cannot block the C library's own signal; that one does while it starts a thread, and valgrind always. */
bool d9__cpu_timer_is_blocked(uint32_t tid, int signal)
{
	char text[4096];
	const char *mask;
	uint64_t blocked;

	/* Behind the mask, too: one that began to wait between the two. */
	if (waits_for_signals(tid))
		return true;
	read_file(tid, "status", text, sizeof(text));
	if (waits_for_signals(tid))
		return true;
	mask = strstr(text, "\nSigBlk:");
	blocked = mask ? strtoull(mask + strlen("\nSigBlk:"), NULL, 16) : 0;
	return has(blocked, signal) && !has(blocked, LIBC_SIGNAL);
}

uint64_t d9__cpu_timer_used_ns(uint32_t tid)
{
	return d9__thread_used_ns(tid);
}
