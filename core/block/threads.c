/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads: the program makes one.
 *
 * Where all threads are sampled, the flush thread is told that there is one more to look for in
 * /proc: else one that lives for less than a second may never be found.  Nothing of the call is
 * changed, and nothing runs on the new thread.
 */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <threads.h>

#include "block/call.h"
#include "block/threads.h"
#include "hook/libc_calls.h"
#include "record/flush.h"
#include "sample/sampled_threads.h"

/* It wakes the flush thread once until that has looked, which it does every 5 ms at most. */
static void tell(void)
{
	if (!atomic_load_explicit(&d9__sampling.all_threads, memory_order_relaxed) ||
	    atomic_load_explicit(&d9__sampling.thread_made, memory_order_relaxed))
		return;
	/* release: pairs with the acquire of the flush thread, which finds the thread then */
	if (!atomic_exchange_explicit(&d9__sampling.thread_made, true, memory_order_acq_rel))
		d9__flush_wake();
}

#define MAKER(function, parameters, ...)                                                           \
	static int(*real_##function) parameters;                                                   \
                                                                                                   \
	static int hook_##function parameters                                                      \
	{                                                                                          \
		int result;                                                                        \
                                                                                                   \
		d9__block_start_pending();                                                         \
		result = D9__BLOCK_REAL(real_##function)(__VA_ARGS__);                             \
		tell();                                                                            \
		return result;                                                                     \
	}

MAKER(pthread_create,
      (pthread_t * thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg), thread,
      attr, start, arg)
MAKER(thrd_create, (thrd_t * thread, thrd_start_t start, void *arg), thread, start, arg)

static const struct d9__got_hook hooks[] = { D9__LIBC_HOOK(pthread_create),
					     D9__LIBC_HOOK(thrd_create) };

static struct d9__got_table table = D9__LIBC_TABLE(hooks);

void d9__block_watch_threads(void)
{
	d9__libc_watch(&table);
}

__attribute__((constructor)) static void offer(void)
{
	d9__sampled_watch = d9__block_watch_threads;
}
