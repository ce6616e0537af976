/* SPDX-License-Identifier: Apache-2.0 */
/* Load the modules of this folder, and a table of hooks for them. */

#ifndef FAKES_H
#define FAKES_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "hook/got.h"

typedef int (*fake_fn)(int);

/* A module of this folder, by the name without `.so`. */
static inline void *fake_open(const char *name, int flags)
{
	char path[4096];
	const char *top = getenv("top_builddir");

	snprintf(path, sizeof(path), "%s/tests/core/hook/.libs/%s.so", top ? top : ".", name);
	return dlopen(path, flags);
}

static inline fake_fn fake_function(void *module, const char *name)
{
	return module ? (fake_fn)dlsym(module, name) : NULL;
}

#endif /* FAKES_H */
