/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"

/* Of the process before it pinned any thread; a loop that attaches may be pinned already. */
static cpu_set_t cpus_at_load;
static int have_cpus;

_Atomic(uintptr_t) d9__thread_flush;

__attribute__((constructor)) static void remember_cpus(void)
{
	have_cpus = !sched_getaffinity(0, sizeof(cpus_at_load), &cpus_at_load);
}

static void set_attributes(pthread_attr_t *attr, size_t stack)
{
	const struct sched_param param = { 0 };

	pthread_attr_setinheritsched(attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(attr, SCHED_OTHER);
	pthread_attr_setschedparam(attr, &param);
	if (stack >= (size_t)PTHREAD_STACK_MIN)
		pthread_attr_setstacksize(attr, stack);
	if (have_cpus)
		pthread_attr_setaffinity_np(attr, sizeof(cpus_at_load), &cpus_at_load);
}

int d9__thread_start(pthread_t *thread, const char *name, void *(*fn)(void *), size_t stack)
{
	pthread_attr_t attr, plain;
	sigset_t all, before;
	int err = pthread_attr_init(&attr);

	if (err)
		return -err;
	set_attributes(&attr, stack);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(thread, &attr, fn, NULL);
	if (err && !pthread_attr_init(&plain)) {
		/* The processors may have been taken away since, or the stack be too small. */
		err = pthread_create(thread, &plain, fn, NULL);
		pthread_attr_destroy(&plain);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (!err)
		pthread_setname_np(*thread, name);
	return -err;
}

#define GONE_TRIES 100000 /* of 10 us: it has nothing more to do */

void d9__thread_join(pthread_t thread, int tid)
{
	const struct timespec pause = { 0, 10000 };

	pthread_join(thread, NULL);
	for (int i = 0; i < GONE_TRIES && !syscall(SYS_tgkill, getpid(), tid, 0); i++)
		nanosleep(&pause, NULL);
}
