/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/sandbox.h"
#include "base/thread.h"
#include "record/last_thread.h"
#include "ring/gate.h"
#include "segment/metadata.h"
#include "segment/user_callbacks.h"

/* Programs end soon after their main thread or go on for days: the longer it was, the more rarely it is asked. */
#define PAUSE_MIN_NS 10000000
#define PAUSE_MAX_NS 200000000
#define DEADLINE_MS  1000

static void (*end_recorder)(uint32_t deadline_ms); /* set before one runs */
static pthread_key_t key; /* its value is set in the main thread alone */
static bool key_works;
static _Atomic(bool) main_left, begun, bare;
static _Atomic(int) *main_tid; /* the kernel's to clear at the main thread's end, in memory that stays; or NULL */

/* False: /proc does not tell. */
static bool count_threads(unsigned long *n, bool *main_ended)
{
	struct d9__proc_stat stat;

	if (!d9__proc_stat_read(&stat, 0) || !d9__proc_status(0, "Threads:", n, 1))
		return false;
	/* The process's state is that of its first thread, which stays as a zombie. */
	*main_ended = stat.state == 'Z';
	return true;
}

void d9__last_thread_on_end(void (*end)(uint32_t deadline_ms))
{
	end_recorder = end;
}

/* It may be away for a while. */
static unsigned is_flushing(void)
{
	return atomic_load_explicit(&d9__thread_flush, memory_order_relaxed) != 0;
}

/* Nobody but the main thread's remains, this thread, the flush thread and that of callbacks. */
static bool all_have_left(void)
{
	bool main_ended = false;
	unsigned long n = 0;

	if (count_threads(&n, &main_ended))
		return main_ended && n <= 2 + is_flushing() + (unsigned)d9__user_callbacks_running();
	/* A recording that is cut short, and says so, is better than a program that does not end. */
	d9__metadata_set("recorder.ended",
			 "when the main thread left: /proc does not tell when others do");
	return true;
}

/* Return what the main thread ended with, as wait(2) tells it. */
static int status_of_main(void)
{
	struct d9__proc_stat stat;

	return d9__proc_stat_read(&stat, 0) ? (int)d9__proc_stat_field(&stat, D9__STAT_EXIT) : 0;
}

/*
 * The kernel takes the last thread's end for the process's; strict seccomp kills the thread alone.  libc is not asked: it did not
 * see the end.
 */
static void end_as_main(void)
{
	int status = status_of_main(), signal = status & 0x7f;
	struct sigaction usual = { .sa_handler = SIG_DFL };
	sigset_t set;

	sigemptyset(&set);
	if (signal) {
		sigaction(signal, &usual, NULL);
		sigaddset(&set, signal);
		pthread_sigmask(SIG_UNBLOCK, &set, NULL);
		syscall(SYS_kill, getpid(), signal);
	}
	syscall(SYS_exit, status >> 8 & 0xff);
}

static void *keep(void *unused)
{
	struct timespec pause = { 0, PAUSE_MIN_NS };
	bool runs;

	(void)unused;
	while ((runs = d9__gate_has_recorder()) && !all_have_left()) {
		nanosleep(&pause, NULL);
		if (pause.tv_nsec < PAUSE_MAX_NS)
			pause.tv_nsec += pause.tv_nsec / 4;
	}
	if (runs)
		end_recorder(DEADLINE_MS);
	if (runs && atomic_load(&bare))
		end_as_main();
	/* release: one of a later recorder comes behind it */
	atomic_store_explicit(&begun, false, memory_order_release);
	return NULL;
}

void d9__last_thread_start(void)
{
	bool runs = d9__gate_has_recorder();
	int saved = errno;
	pthread_t thread;

	/* seq_cst: who starts a recorder and the main thread that leaves do not miss each other */
	if (!runs || !atomic_load(&main_left) || atomic_exchange(&begun, true))
		return;
	/* Exit handlers may run on it: a stack as the program's threads have. */
	if (!d9__thread_start(&thread, "dial9-keeper", keep, 0)) {
		pthread_detach(thread);
	} else {
		atomic_store(&begun, false);
		end_recorder(DEADLINE_MS);
	}
	errno = saved;
}

/* The main thread ends, but not by exit().  In a sandbox the flush thread begins what follows. */
static void leave(void *unused)
{
	(void)unused;
	atomic_store(&main_left, true);
	if (!d9__sandbox_is_shut())
		d9__last_thread_start();
}

void d9__last_thread_look(void)
{
	if (!atomic_load(&main_left) && main_tid && !atomic_load_explicit(main_tid, memory_order_relaxed)) {
		atomic_store(&bare, true);
		atomic_store(&main_left, true);
	}
	d9__last_thread_start();
}

void d9__last_thread_fork_child(void)
{
	if (!key_works || !pthread_getspecific(key))
		main_tid = NULL; /* its stack may go with it */
	atomic_store(&main_left, false);
	atomic_store(&begun, false);
	atomic_store(&bare, false);
	if (key_works)
		pthread_setspecific(key, &key);
}

__attribute__((constructor)) static void find_main_thread(void)
{
	key_works = !pthread_key_create(&key, leave);
	if (syscall(SYS_gettid) != getpid())
		return;
	if (key_works)
		pthread_setspecific(key, &key);
	if (prctl(PR_GET_TID_ADDRESS, &main_tid, 0, 0, 0))
		main_tid = NULL;
}
