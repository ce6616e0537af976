/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/stuck.h"

#define FUTEX_COMMAND 127u /* of its second argument, without FUTEX_PRIVATE_FLAG and the clock */

/* The kind of a call's first argument. */
enum first {
	OTHER, /* nothing to tell */
	FD,
};

/*
 * System calls that a callback may be found in, by the name that programs call them by.  Others are told
 * by their number.
 */
static const struct {
	long number;
	const char *name;
	enum first first;
} calls[] = {
	{ SYS_read, "read", FD },
	{ SYS_pread64, "pread", FD },
	{ SYS_readv, "readv", FD },
	{ SYS_preadv, "preadv", FD },
	{ SYS_write, "write", FD },
	{ SYS_pwrite64, "pwrite", FD },
	{ SYS_writev, "writev", FD },
	{ SYS_pwritev, "pwritev", FD },
	{ SYS_sendfile, "sendfile", FD },
	{ SYS_splice, "splice", FD },
	{ SYS_copy_file_range, "copy_file_range", FD },
	{ SYS_recvfrom, "recv", FD },
	{ SYS_recvmsg, "recvmsg", FD },
	{ SYS_recvmmsg, "recvmmsg", FD },
	{ SYS_sendto, "send", FD },
	{ SYS_sendmsg, "sendmsg", FD },
	{ SYS_sendmmsg, "sendmmsg", FD },
	{ SYS_connect, "connect", FD },
	{ SYS_accept, "accept", FD },
	{ SYS_accept4, "accept", FD },
	{ SYS_fsync, "fsync", FD },
	{ SYS_fdatasync, "fdatasync", FD },
	{ SYS_sync_file_range, "sync_file_range", FD },
	{ SYS_syncfs, "syncfs", FD },
	{ SYS_ftruncate, "ftruncate", FD },
	{ SYS_fallocate, "fallocate", FD },
	{ SYS_flock, "flock", FD },
	{ SYS_fcntl, "fcntl", FD },
	{ SYS_ioctl, "ioctl", FD },
	{ SYS_getdents64, "readdir", FD },
	{ SYS_close, "close", FD },
	{ SYS_epoll_pwait, "epoll_wait", FD },
	{ SYS_sync, "sync", OTHER },
	{ SYS_openat, "open", OTHER },
	{ SYS_unlinkat, "unlink", OTHER },
	{ SYS_renameat2, "rename", OTHER },
	{ SYS_mkdirat, "mkdir", OTHER },
	{ SYS_faccessat, "access", OTHER },
	{ SYS_statx, "stat", OTHER },
	{ SYS_ppoll, "poll", OTHER },
	{ SYS_pselect6, "select", OTHER },
	{ SYS_nanosleep, "nanosleep", OTHER },
	{ SYS_clock_nanosleep, "nanosleep", OTHER },
	{ SYS_rt_sigsuspend, "sigsuspend", OTHER },
	{ SYS_rt_sigtimedwait, "sigwait", OTHER },
	{ SYS_wait4, "waitpid", OTHER },
	{ SYS_waitid, "waitid", OTHER },
	{ SYS_execve, "execve", OTHER },
	{ SYS_clone, "clone", OTHER },
	{ SYS_semtimedop, "semop", OTHER },
	{ SYS_semop, "semop", OTHER },
	{ SYS_msgrcv, "msgrcv", OTHER },
	{ SYS_msgsnd, "msgsnd", OTHER },
	{ SYS_mq_timedreceive, "mq_receive", OTHER },
	{ SYS_mq_timedsend, "mq_send", OTHER },
	{ SYS_mmap, "mmap", OTHER },
	{ SYS_munmap, "munmap", OTHER },
	{ SYS_mprotect, "mprotect", OTHER },
	{ SYS_madvise, "madvise", OTHER },
	{ SYS_msync, "msync", OTHER },
	{ SYS_mremap, "mremap", OTHER },
	{ SYS_brk, "brk", OTHER },
	{ SYS_sched_yield, "sched_yield", OTHER },
	{ SYS_getrandom, "getrandom", OTHER },
	{ SYS_membarrier, "membarrier", OTHER },
	{ SYS_kill, "kill", OTHER },
#ifdef SYS_pause /* what follows older machines have beside the newer calls above */
	{ SYS_pause, "pause", OTHER },
	{ SYS_poll, "poll", OTHER },
	{ SYS_select, "select", OTHER },
	{ SYS_epoll_wait, "epoll_wait", FD },
	{ SYS_open, "open", OTHER },
	{ SYS_unlink, "unlink", OTHER },
	{ SYS_rename, "rename", OTHER },
	{ SYS_mkdir, "mkdir", OTHER },
	{ SYS_access, "access", OTHER },
	{ SYS_stat, "stat", OTHER },
	{ SYS_lstat, "lstat", OTHER },
	{ SYS_getdents, "readdir", FD },
	{ SYS_fork, "fork", OTHER },
	{ SYS_vfork, "vfork", OTHER },
#endif
#ifdef SYS_newfstatat
	{ SYS_newfstatat, "stat", OTHER },
#endif
#ifdef SYS_epoll_pwait2
	{ SYS_epoll_pwait2, "epoll_wait", FD },
#endif
#ifdef SYS_clone3
	{ SYS_clone3, "clone", OTHER },
#endif
#ifdef SYS_io_uring_enter
	{ SYS_io_uring_enter, "io_uring_enter", FD },
#endif
};

/* Of a mutex for which threads wait, in the C library, GLib and Rust. */
#define LOCK_IS_WAITED_FOR 2

/*
 * A mutex waits by FUTEX_WAIT; condition variables, semaphores and pthread_join() of the C library
 * by FUTEX_WAIT_BITSET, for the sake of their absolute times.  A GCond waits by FUTEX_WAIT too, for
 * the next change of its counter.
 */
static const char *describe_futex(uint64_t operation, uint64_t value)
{
	static const char condition[] = "futex: a condition, a semaphore or a thread";

	switch (operation & FUTEX_COMMAND) {
	case FUTEX_WAIT:
		return value == LOCK_IS_WAITED_FOR ? "futex: a lock" : condition;
	case FUTEX_LOCK_PI:
#ifdef FUTEX_LOCK_PI2
	case FUTEX_LOCK_PI2:
#endif
		return "futex: a lock";
	case FUTEX_WAIT_BITSET:
	case FUTEX_WAIT_REQUEUE_PI:
		return condition;
	default:
		return "futex";
	}
}

static void describe(long number, const uint64_t arguments[3], struct d9__stuck *out)
{
	if (number == SYS_futex) {
		snprintf(out->syscall, sizeof(out->syscall), "%s",
			 describe_futex(arguments[1], arguments[2]));
		return;
	}
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (calls[i].number != number)
			continue;
		if (calls[i].first == FD)
			out->fd = (int)arguments[0];
		if (out->fd >= 0)
			snprintf(out->syscall, sizeof(out->syscall), "%s(%d)", calls[i].name, out->fd);
		else
			snprintf(out->syscall, sizeof(out->syscall), "%s()", calls[i].name);
		return;
	}
	snprintf(out->syscall, sizeof(out->syscall), "syscall %ld", number);
}

/* "running", or "NUMBER ARGUMENTS... STACK PC", or "-1 STACK PC" outside of system calls. */
bool d9__stuck_parse(const char *line, struct d9__stuck *out)
{
	uint64_t arguments[3];
	char *end;
	long number;

	*out = (struct d9__stuck){ .running = !strncmp(line, "running", 7), .fd = -1 };
	if (out->running)
		return true;
	number = strtol(line, &end, 10);
	if (end == line || *end != ' ')
		return false;
	if (number < 0)
		return true;
	for (int i = 0; i < 3; i++) {
		line = end;
		arguments[i] = strtoull(line, &end, 16);
		if (end == line)
			return false;
	}
	describe(number, arguments, out);
	return true;
}

/* The text of |name| below |task_fd|'s TID, without a line's end; 0 or -errno. */
static int read_text(int task_fd, uint32_t tid, const char *name, char *text, size_t size)
{
	char path[32];
	ssize_t n;
	int fd, err;

	snprintf(path, sizeof(path), "%u/%s", tid, name);
	fd = openat(task_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	n = read(fd, text, size - 1);
	err = n < 0 ? -errno : 0;
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return err;
}

int d9__stuck_look(int task_fd, uint32_t tid, struct d9__stuck *out)
{
	char line[256];
	int err = read_text(task_fd, tid, "syscall", line, sizeof(line));

	*out = (struct d9__stuck){ .fd = -1 };
	if (!err && !d9__stuck_parse(line, out))
		err = -ENOTSUP;
	if (out->running)
		return err;
	/* A process that became another user may not read the one, and may read the other. */
	if (read_text(task_fd, tid, "wchan", out->wchan, sizeof(out->wchan)))
		return err;
	if (!strcmp(out->wchan, "0"))
		out->wchan[0] = '\0';
	return out->wchan[0] ? 0 : err;
}
