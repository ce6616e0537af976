/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the module at argv[1], and with it a loop library, as a plugin with RTLD_LOCAL. */

#include "config.h"

#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *module = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	int (*run)(int, char **) = NULL;

	if (module)
		*(void **)&run = dlsym(module, "every_kind_main");
	if (!run) {
		fprintf(stderr, "%s\n", dlerror());
		return 99;
	}
	return run(argc - 1, argv + 1);
}
