/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "analyze/own_frames.h"

static bool begins(const char *text, const char *prefix)
{
	return text && !strncmp(text, prefix, strlen(prefix));
}

enum d9__frame_class d9__frame_class_of(const char *module, const char *function)
{
	static const char *const systems[] = { "libc.so",    "libc-",	 "ld-linux", "linux-vdso",
					       "libpthread", "librt.so", "[" };

	if (begins(function, "d9__hook_") ||
	    (begins(module, "libdial9") && begins(function, "hook_")))
		return D9__FRAME_HOOK;
	/* A program that was linked with the recorder has it in its own file. */
	if (begins(module, "libdial9") || begins(function, "d9__"))
		return D9__FRAME_OURS;
	for (size_t i = 0; i < sizeof(systems) / sizeof(systems[0]); i++)
		if (begins(module, systems[i]))
			return D9__FRAME_SYSTEM;
	return D9__FRAME_OTHER;
}

size_t d9__own_frames(const enum d9__frame_class *frames, size_t n)
{
	size_t i = 0;

	while (i < n && frames[i] == D9__FRAME_SYSTEM)
		i++;
	if (i == n || !d9__frame_class_is_ours(frames[i]) || (i && frames[i] == D9__FRAME_HOOK))
		return 0;
	while (i < n && d9__frame_class_is_ours(frames[i]))
		i++;
	return i;
}

void d9__own_frames_hide(const enum d9__frame_class *frames, size_t n, size_t own, bool *hidden)
{
	bool any = false;

	for (size_t i = 0; i < n; i++) {
		hidden[i] = i < own || d9__frame_class_is_ours(frames[i]);
		any = any || !hidden[i];
	}
	if (!any)
		memset(hidden, 0, n * sizeof(*hidden));
}
