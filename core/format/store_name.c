/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "format/store_name.h"

#include <string.h>

/* As bytes: what a locale calls a letter is none here. */
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

bool d9__is_bucket_name(const char *text)
{
	size_t len = strspn(text, LETTERS ".-_");

	return !text[len] && len >= 3 && len <= D9__BUCKET_NAME && strchr(LETTERS, text[0]) && !strstr(text, "..");
}

bool d9__is_key_prefix(const char *text)
{
	size_t len = strspn(text, LETTERS "._-=/");

	return !text[len] && len <= D9__KEY_PREFIX && text[0] != '/' && !strstr(text, "//");
}
