/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks that the program makes: of coroutines, fibers, green threads. */

#ifndef DIAL9_STACK_H
#define DIAL9_STACK_H

#include <stddef.h>

#include <dial9/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * dial9 walks call stacks where it samples them.  It knows the bounds of the stacks of threads.  On a stack that it does
 * not know it copies 16 KiB by a system call, which costs 1 us, and what lies further out is missing.  A program that
 * makes stacks can tell their bounds:
 *
 *	void *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
 *
 *	d9_stack_register(stack, size);
 *	...  makecontext(), swapcontext(), as often as you like
 *	d9_stack_unregister(stack);
 *	munmap(stack, size);
 *
 * Rules for both:
 * - Any thread, before a recorder is started and after it is stopped as well; in signal handlers they must not be
 *   called.  They take a lock for a moment.  errno is unchanged.
 * - They cost some microseconds with thousands of stacks: register a stack when you make it, not at each switch.
 * - In a forked child the stacks of before the fork stay registered.
 */

/**
 * The |size| bytes from |low| on, the lowest address, are a stack, until d9_stack_unregister().  All of them have to be
 * readable while a thread runs on it: leave guard pages out.  Again for the same |low|: with the new |size|.
 *
 * 0; -EINVAL: |low| is NULL, or there is no such range; -EEXIST: it overlaps another one; -ENOSPC: 4096 are registered, and
 * this one is walked as if it were not registered.
 */
D9_API int d9_stack_register(const void *low, size_t size);

/**
 * |low| is a stack no longer.  Before its memory is given back: a thread that is sampled on another stack at the same
 * place would be walked by the old bounds.  0; -ENOENT: it was not registered.
 */
D9_API int d9_stack_unregister(const void *low);

#ifdef __cplusplus
}
#endif

#endif /* DIAL9_STACK_H */
