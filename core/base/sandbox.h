/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandbox: whether the program has forbidden itself system calls, and with that us.
 * record/sandbox.h sets it.
 */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include <dial9/export.h>

extern D9_API _Atomic(bool) d9__sandbox_shut;

/* True: threads of the program must make no system call for us. */
static inline bool d9__sandbox_is_shut(void)
{
	return atomic_load_explicit(&d9__sandbox_shut, memory_order_relaxed);
}
