/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <ctype.h>
#include <string.h>

#include "cli/loop_libraries.h"

const struct d9__loop_library d9__loop_libraries[D9__LOOP_LIBRARIES] = {
	{ "libevent", "libevent", "event_base_loop",
	  "link libdial9-libevent into it with the --wrap flags: dial9-libevent(3)" },
	{ "libev", "libev", "ev_run",
	  "build the copy with <dial9/ev-embed.h>: dial9-libev(3); or link the shared library" },
	{ "glib", "libglib-2.0", "g_main_context_iteration", "link it with the shared GLib" },
};

bool d9__is_file_of(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
	size_t len = strlen(name);

	return !strncmp(file, name, len) && !isalnum((unsigned char)file[len]);
}
