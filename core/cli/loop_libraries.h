/* SPDX-License-Identifier: Apache-2.0 */
/* The loop libraries that there are adapters for, as files tell them. */

#pragma once

#include <stdbool.h>

enum { D9__LOOP_LIBRARIES = 3 };

/* How each is known: by what its adapter looks for, and by what runs its loop. */
struct d9__loop_library {
	const char *name, *file, *function;
	const char *embedded; /* what to do where a program has a copy of its own */
};

extern const struct d9__loop_library d9__loop_libraries[D9__LOOP_LIBRARIES];

/* Whether |path| is a file of the library |name|, or of a companion as libevent_openssl is. */
bool d9__is_file_of(const char *path, const char *name);
