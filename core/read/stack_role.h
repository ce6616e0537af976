/* SPDX-License-Identifier: Apache-2.0 */
/* Stack roles: which addresses of a stack were being executed; each of the others is the return address of a call. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In user space the highest bit of no address is set. */
static inline bool d9__address_is_kernel(uint64_t address)
{
	return address >> 63;
}

/*
 * Whether the thread was at |addresses[i]| itself; the innermost comes first.  It was at the first one, and at the first
 * behind the kernel's, in the program: there an interrupt came, or a system call returns to it.
 */
static inline bool d9__address_is_executing(const uint64_t *addresses, size_t i)
{
	return !i || (d9__address_is_kernel(addresses[i - 1]) && !d9__address_is_kernel(addresses[i]));
}
