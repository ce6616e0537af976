/* SPDX-License-Identifier: Apache-2.0 */
/* Which texts may name a bucket of an object store, and the beginning of keys in it: they become parts of addresses. */

#pragma once

#include <stdbool.h>

#define D9__BUCKET_NAME 63  /* bytes at most */
#define D9__KEY_PREFIX	256 /* likewise */

/* 3 to 63 of A-Z a-z 0-9 . _ -, beginning with a letter or a digit, and without "..". */
bool d9__is_bucket_name(const char *text);

/* Parts of A-Z a-z 0-9 . _ - = between single slashes, none of them "." or ".."; one may stand behind the last.  "" is none, and fine. */
bool d9__is_key_prefix(const char *text);
