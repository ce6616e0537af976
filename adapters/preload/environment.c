/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/environment.h"
#include "preload/environment.h"

static bool is_off(const char *text)
{
	static const char *const words[] = { "0", "f", "false", "n", "no", "off" };

	for (size_t i = 0; text && i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcasecmp(text, words[i]) == 0)
			return true;
	}
	return false;
}

static const char *file_of(const char *path, size_t len)
{
	const char *slash = memrchr(path, '/', len);

	return slash ? slash + 1 : path;
}

/* By file name: the entry may say $LIB where the loader says which folder that is. */
static bool is_own_entry(const char *entry, size_t len)
{
	static const char memory[] = "libdial9-memory.so";
	Dl_info own;

	if (!dladdr((void *)d9__environment_take_out, &own) || !own.dli_fname)
		return false;
	const char *file = file_of(entry, len);
	const char *own_file = file_of(own.dli_fname, strlen(own.dli_fname));
	size_t file_len = (size_t)(entry + len - file);
	if (file_len >= strlen(memory) && memcmp(file, memory, strlen(memory)) == 0)
		return true;
	return file_len == strlen(own_file) && memcmp(file, own_file, file_len) == 0;
}

/* In place: the others keep their order and their separators. */
static void remove_preload_entry(void)
{
	char *list = d9__environment_get("LD_PRELOAD"), *entry = list;

	while (entry && *entry) {
		size_t len = strcspn(entry, " :"), gap = entry[len] != '\0';

		if (is_own_entry(entry, len))
			memmove(entry, entry + len + gap, strlen(entry + len + gap) + 1);
		else
			entry += len + gap;
	}
	if (!list)
		return;
	for (size_t len = strlen(list); len > 0 && strchr(" :", list[len - 1]); len--)
		list[len - 1] = '\0';
	if (!*list)
		unsetenv("LD_PRELOAD");
}

void d9__environment_take_out(void)
{
	if (!is_off(d9__environment_get("DIAL9_FOLLOW")))
		return;
	remove_preload_entry();
	d9__environment_take();
}
