/* SPDX-License-Identifier: Apache-2.0 */
/* The names of libc's that the preload library exports, to learn of seccomp filters, and of memory that is to be locked. */

#pragma once

#include <dial9/export.h>

/* In the constructor. */
void d9__preload_watch_filters(void);

/*
 * libc declares them with variable arguments; these take as many as the kernel does, from the same registers.
 * Seven arguments are those of a call that can be left by a jump: system calls that return twice do no harm.
 */
D9_API long d9__preload_syscall(long number, long a, long b, long c, long d, long e, long f) __asm__("syscall");
D9_API int d9__preload_prctl(int option, long a, long b, long c, long d) __asm__("prctl");

/* Also before there is a recorder: the tables that it would use count as well.  See record/lock_all.h. */
D9_API int d9__preload_mlockall(int flags) __asm__("mlockall");
