/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads a plug-in with a table of its own behind the adapter's back, unloads it and loads it again.
 *
 *	glib_host PLUGIN [--out=FILE]
 */
#include "config.h"

#include <dlfcn.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>

#include "counters.h"

static void use(const char *path)
{
	void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	unsigned long *(*start)(unsigned) = NULL;
	struct counter *counter;
	unsigned long *count;

	if (plugin)
		*(void **)&start = dlsym(plugin, "plugin_start");
	if (!start) {
		complain(dlerror(), 1, 0);
		return;
	}
	/* A callback of its own module goes by another name each time. */
	counter = counter_of("plugin", (void *)use, KIND_ELSEWHERE);
	count = start(5);
	while (g_main_context_iteration(NULL, FALSE))
		continue;
	counter->count += *count;
	dlclose(plugin);
}

int main(int argc, char **argv)
{
	const char *out = argc > 2 && !strncmp(argv[2], "--out=", 6) ? argv[2] + 6 : NULL;

	for (int i = 0; argc > 1 && i < 3; i++)
		use(argv[1]);
	return counters_write(out);
}
