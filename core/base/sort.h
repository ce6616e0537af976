/* SPDX-License-Identifier: Apache-2.0 */
/* Sort: qsort() without memory, which the C library's takes from malloc() for larger arrays. */

#pragma once

#include <stddef.h>

/* Parameters as qsort()'s.  What compares equal comes in any order.  What is in order already is only looked at. */
void d9__sort(void *items, size_t n, size_t size, int (*compare)(const void *left, const void *right));
