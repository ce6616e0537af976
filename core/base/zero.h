/* SPDX-License-Identifier: Apache-2.0 */

#pragma once

#include <stddef.h>
#include <string.h>

/*
 * Zero |n| bytes at |bytes| on a hot path.  Where the compiler knows |n|, it puts "rep stos" in the
 * place of memset(), which takes 13 ns for 300 bytes, and not 5.
 */
static inline void d9__zero(void *bytes, size_t n)
{
	__asm__("" : "+r"(n));
	memset(bytes, 0, n);
}
