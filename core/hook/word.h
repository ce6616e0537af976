/* SPDX-License-Identifier: Apache-2.0 */
/* One word of a loaded module's data: can it be written, and write it. */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <dial9/export.h>

enum d9__word_access { D9__WORD_READ_ONLY, D9__WORD_WRITABLE, D9__WORD_UNKNOWN };

/*
 * Can the page of |word| be written?  Asked of the kernel: no fault, no change, whatever other
 * threads do to the word.  Any lock may be held.  Changes errno.
 */
enum d9__word_access d9__word_access(uintptr_t *word);

/*
 * Store |value| in |word|.  A page that is read-only is made writable meanwhile if |may_protect|,
 * which takes the patch lock: not under a loop library's.  Its permissions are as before then,
 * execution included.  No errno is changed.
 *
 * @return 0, -EPERM if the page is read-only and stays so
 */
D9_API int d9__word_store(uintptr_t *word, uintptr_t value, bool may_protect);
