/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread that is to be unwound says of itself, as the recorder's loop threads do. */

#ifndef D9_TESTS_SAMPLE_OWN_STACK_H
#define D9_TESTS_SAMPLE_OWN_STACK_H

#include <pthread.h>
#include <unistd.h>

#include "sample/unwind.h"

/* Set the bounds of the calling thread's stack, and its process. */
static inline void own_stack(struct d9__unwind_thread *thread)
{
	pthread_attr_t attr;
	void *low;
	size_t size;

	pthread_getattr_np(pthread_self(), &attr);
	pthread_attr_getstack(&attr, &low, &size);
	pthread_attr_destroy(&attr);
	thread->low = (uintptr_t)low;
	thread->high = thread->low + size;
	thread->pid = getpid();
}

#endif /* D9_TESTS_SAMPLE_OWN_STACK_H */
