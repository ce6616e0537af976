/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aside: our threads end for a while, so that a call that the program makes finds the process without us.
 *
 * Some calls fail, or end the process, where there is another thread: unshare(2) and setns(2) of user namespaces; the C
 * library's set*id(), which call abort() where a thread with other capabilities gets another answer.  Meanwhile the ring holds
 * what is recorded.  What the flush thread knows stays where it is, and what it has open waits in a socket: the next one goes on
 * as if it were the same.
 */

#pragma once

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

/* State of a thread before signals were blocked and cancellation was off, so that no code of the program runs on it. */
struct d9__calm {
	sigset_t signals;
	int cancel, saved_errno;
};

/* Do both and take |lock|.  False: another thread has it, perhaps the one that was interrupted here. */
bool d9__calm_lock(struct d9__calm *before, pthread_mutex_t *lock);

/* As it was before, errno too. */
void d9__calm_unlock(const struct d9__calm *before, pthread_mutex_t *lock);

/*
 * Counts, under the recorder's lock.  False after eight times in a second, for good: a server that becomes another user for each
 * request would do little else.
 */
bool d9__aside_may_go(void);

/*
 * End |thread|, the flush thread, and that of callbacks.  False: it does not come to that within a second, and it stays.  Under
 * the recorder's lock, signals blocked.
 */
bool d9__aside_go(pthread_t thread);

/* Start both again.  0 or -errno.  Likewise. */
int d9__aside_return(pthread_t *thread);

/*
 * True inside a signal handler, where no thread may be started: it may have interrupted the holder
 * of a lock that this takes.  Keeps errno; makes some system calls.
 */
bool d9__aside_in_handler(void);
