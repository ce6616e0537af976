/* SPDX-License-Identifier: Apache-2.0 */
/* Repeats: keys that a StringMap has more than once.  All pairs are kept; the last of a key counts. */

#pragma once

#include <stddef.h>
#include <stdint.h>

#include <dial9/reader.h>

#include "base/arena.h"

/* Add to |*repeats| how many of the |n| |pairs| have the key of an earlier one.  0 or -ENOMEM. */
int d9__repeats_count(const struct d9_text *pairs, size_t n, struct d9__arena *arena, uint64_t *repeats);
