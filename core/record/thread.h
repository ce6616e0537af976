/* SPDX-License-Identifier: Apache-2.0 */
/* Thread: background threads that the recorded program does not notice. */

#ifndef D9_RECORD_THREAD_H
#define D9_RECORD_THREAD_H

#include <pthread.h>
#include <stddef.h>

/*
 * Start |fn| on a thread called |name|: all signals blocked, SCHED_OTHER whatever the caller's policy,
 * the processors that the process had when we were loaded, |stack| bytes of stack (0: the default).
 * 0 or -errno.
 */
int d9__thread_start(pthread_t *thread, const char *name, void *(*fn)(void *), size_t stack);

/*
 * The flush thread's descriptors: where it has to share the program's table, they go to numbers that
 * programs do not expect to get.  |fd| moved there, or |fd| itself.
 */
void d9__descriptors_are_shared(void);
int d9__descriptor_place(int fd);

#endif /* D9_RECORD_THREAD_H */
