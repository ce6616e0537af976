/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Identity: calls by which a program becomes another user, or moves to another namespace.
 *
 * The C library's set*id() change all threads, and end the process where one of them gets another answer than the first: the
 * recorder's thread does once the program has kept capabilities, which only the thread has that asked.  unshare(2) and setns(2)
 * refuse user namespaces to a process with threads.  So before such a call our threads end: see record/aside.h.
 *
 * And one that counts what is mapped: see record/lock_all.h.
 */
#include "config.h"

#include <errno.h>
#include <grp.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

#include "hook/libc_calls.h"
#include "record/lock_all.h"
#include "record/recorder.h"

/* The function behind a wrapper.  The hook engine may write the same address again while other threads read it. */
#define REAL(name) __atomic_load_n(&real_##name, __ATOMIC_RELAXED)

/* The C library's calls that change all threads.  X(function, parameters, arguments) */
#define EVERY_THREAD(X)                                                                                                \
	X(setuid, (uid_t uid), (uid))                                                                                  \
	X(setgid, (gid_t gid), (gid))                                                                                  \
	X(seteuid, (uid_t uid), (uid))                                                                                 \
	X(setegid, (gid_t gid), (gid))                                                                                 \
	X(setreuid, (uid_t real, uid_t effective), (real, effective))                                                  \
	X(setregid, (gid_t real, gid_t effective), (real, effective))                                                  \
	X(setresuid, (uid_t real, uid_t effective, uid_t saved), (real, effective, saved))                             \
	X(setresgid, (gid_t real, gid_t effective, gid_t saved), (real, effective, saved))                             \
	X(setgroups, (size_t n, const gid_t *groups), (n, groups))                                                     \
	X(initgroups, (const char *user, gid_t group), (user, group))

/* And one that changes the caller alone: the next thread has what its starter has. */
#define CALLS(X)                                                                                                       \
	EVERY_THREAD(X)                                                                                                \
	X(capset, (void *header, const void *data), (header, data))

#define CALL(function, parameters, arguments)                                                                          \
	static int(*real_##function) parameters;                                                                       \
                                                                                                                       \
	static int hook_##function parameters                                                                          \
	{                                                                                                              \
		d9__recorder_step_aside();                                                                             \
		return REAL(function) arguments;                                                                       \
	}

CALLS(CALL)

static int (*real_prctl)(int option, long a, long b, long c, long d);

/* As many arguments as the kernel takes, from the same registers. */
static int hook_prctl(int option, long a, long b, long c, long d)
{
	if (option == PR_SET_KEEPCAPS || option == PR_SET_SECUREBITS)
		d9__recorder_step_aside();
	return REAL(prctl)(option, a, b, c, d);
}

/* The kernel does these for a process with one thread alone. */
#define ALONE (CLONE_NEWUSER | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM)

static int (*real_unshare)(int flags);

static int hook_unshare(int flags)
{
	if (flags & ALONE)
		d9__recorder_step_aside();
	return REAL(unshare)(flags);
}

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

static int (*real_setns)(int fd, int type);

/* A process that is entered by its pidfd tells in |type| what of it; of a namespace that may be left open. */
static int type_of(int fd, int type)
{
	int saved = errno, found = type ? type : ioctl(fd, NS_GET_NSTYPE);

	errno = saved;
	return found < 0 ? 0 : found;
}

static int hook_setns(int fd, int type)
{
	if (type_of(fd, type) & (CLONE_NEWUSER | CLONE_NEWTIME))
		d9__recorder_step_aside();
	return REAL(setns)(fd, type);
}

static int (*real_mlockall)(int flags);

static int hook_mlockall(int flags)
{
	return d9__lock_all(flags, REAL(mlockall));
}

#define HOOK(function, parameters, arguments) D9__LIBC_HOOK(function),

static const struct d9__got_hook hooks[] = {
	CALLS(HOOK) D9__LIBC_HOOK(prctl), D9__LIBC_HOOK(unshare), D9__LIBC_HOOK(setns),
	D9__LIBC_HOOK(mlockall),
};

static struct d9__got_table table = D9__LIBC_TABLE(hooks);

static void watch(void)
{
	d9__libc_watch(&table);
}

static __attribute__((constructor)) void offer(void)
{
	d9__recorder_on_start(watch);
}
