/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/store_name.h"

#include <string.h>

/* As bytes: what a locale calls a letter is none here. */
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

bool d9__is_bucket_name(const char *text)
{
	size_t len = strspn(text, LETTERS ".-_");

	return !text[len] && len >= 3 && len <= D9__BUCKET_NAME && strchr(LETTERS, text[0]) && !strstr(text, "..");
}

/* Whether a part of |prefix| is "." or "..": what stands before a store may walk them, out of the prefix or the bucket. */
static bool walks(const char *prefix)
{
	while (*prefix) {
		size_t len = strcspn(prefix, "/");

		if (len && len <= 2 && strspn(prefix, ".") >= len)
			return true;
		prefix += len + (prefix[len] == '/');
	}
	return false;
}

bool d9__is_key_prefix(const char *text)
{
	size_t len = strspn(text, LETTERS "._-=/");

	return !text[len] && len <= D9__KEY_PREFIX && text[0] != '/' && !strstr(text, "//") && !walks(text);
}
