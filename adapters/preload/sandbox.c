/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notices a seccomp filter before it is there, see record/sandbox.h: by prctl(), or by syscall(), which
 * libseccomp uses too.  Everything else goes to the next definition as it came, by a jump where the compiler
 * makes one of a call at the end.
 */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loop/loops.h"
#include "preload/sandbox.h"
#include "record/lock_all.h"
#include "record/sandbox.h"
#if WITH_GLIB
#include "glib/attach.h"
#endif
#if WITH_LIBEVENT
#include "libevent/attach.h"
#endif
#if WITH_LIBEV
#include "libev/attach.h"
#endif

static _Atomic(pid_t) self;

typedef long call_fn(long number, long a, long b, long c, long d, long e, long f);
typedef int prctl_fn(int option, long a, long b, long c, long d);

/* Constructors of others may call before ours ran. */
static void *next_definition(_Atomic(void *) *known, const char *name)
{
	void *next = atomic_load_explicit(known, memory_order_relaxed);

	if (!next) {
		next = dlsym(RTLD_NEXT, name);
		atomic_store_explicit(known, next, memory_order_relaxed);
	}
	return next;
}

/*
 * A call that cannot succeed only asks the kernel what it knows, as libseccomp does before its first filter: strict mode with
 * flags, and filters without a program.
 */
static bool makes_filter(unsigned long mode, long program)
{
	return mode == SECCOMP_SET_MODE_FILTER && program;
}

static bool is_strict(unsigned long mode, unsigned long flags, long program)
{
	return mode == SECCOMP_SET_MODE_STRICT && !flags && !program;
}

/* The trace says why there is nothing in it. */
static void forbid_loops(void)
{
	if (d9__sandbox_is_shut())
		return;
#if WITH_GLIB
	d9__glib_forbid();
#endif
#if WITH_LIBEVENT
	d9__libevent_forbid();
#endif
#if WITH_LIBEV
	d9__libev_forbid();
#endif
}

/*
 * False in a vfork() child, whose memory is its parent's, which is not asked behind a filter: it may forbid getpid().
 * There another one for this thread changes nothing.
 */
static bool enter(bool all)
{
	int saved = errno;

	if (d9__sandbox_is_shut() ? !all : getpid() != atomic_load_explicit(&self, memory_order_relaxed))
		return false;
	if (!d9__loops_any())
		forbid_loops();
	d9__sandbox_enter(all);
	errno = saved;
	return true;
}

/* Let this thread alone record nothing more, before the program bars it from reading the time (or, |calls|, from system calls). */
static bool bar(bool calls)
{
	int saved = errno;
	bool barred = false;

	if (d9__sandbox_is_shut() || getpid() == atomic_load_explicit(&self, memory_order_relaxed))
		barred = d9__sandbox_bar(calls);
	errno = saved;
	return barred;
}

static void unbar(void)
{
	int saved = errno;

	if (d9__sandbox_is_shut() || getpid() == atomic_load_explicit(&self, memory_order_relaxed))
		d9__sandbox_unbar();
	errno = saved;
}

static void know_process(void)
{
	if (d9__sandbox_is_shut())
		return;
	atomic_store_explicit(&self, getpid(), memory_order_relaxed);
}

static _Atomic(void *) next_syscall, next_prctl, next_mlockall;

void d9__preload_watch_filters(void)
{
	know_process();
	pthread_atfork(NULL, NULL, know_process);
	/* Now: the program may call first where it may not wait for the linker's lock, as in a signal handler. */
	next_definition(&next_syscall, "syscall");
	next_definition(&next_prctl, "prctl");
}

long d9__preload_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	call_fn *next = (call_fn *)next_definition(&next_syscall, "syscall");
	bool entered;
	long result;

	if (number == SYS_prctl)
		return d9__preload_prctl((int)a, b, c, d, e);
	if (number == SYS_seccomp && is_strict((unsigned long)a, (unsigned long)b, c))
		return d9__preload_prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0);
	if (number != SYS_seccomp || !makes_filter((unsigned long)a, c))
		return next(number, a, b, c, d, e, f);
	entered = enter((unsigned long)b & SECCOMP_FILTER_FLAG_TSYNC);
	result = next(number, a, b, c, d, e, f);
	if (entered && result)
		d9__sandbox_refused();
	return result;
}

/* Strict mode, or the processor's counter. */
static int bar_thread(prctl_fn *next, int option, long a, long b, long c, long d)
{
	bool strict = option == PR_SET_SECCOMP, off = strict || a == PR_TSC_SIGSEGV;
	bool barred = off && bar(strict);
	int result = next(option, a, b, c, d);

	if (off ? barred && result : !result)
		unbar();
	return result;
}

int d9__preload_prctl(int option, long a, long b, long c, long d)
{
	prctl_fn *next = (prctl_fn *)next_definition(&next_prctl, "prctl");
	bool entered;
	int result;

	if (option == PR_SET_TSC || (option == PR_SET_SECCOMP && a == SECCOMP_MODE_STRICT))
		return bar_thread(next, option, a, b, c, d);
	if (option != PR_SET_SECCOMP || (a == SECCOMP_MODE_FILTER && !b))
		return next(option, a, b, c, d);
	entered = enter(false);
	result = next(option, a, b, c, d);
	if (entered && result)
		d9__sandbox_refused();
	return result;
}

int d9__preload_mlockall(int flags)
{
	return d9__lock_all(flags, (int (*)(int))next_definition(&next_mlockall, "mlockall"));
}
