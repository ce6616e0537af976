/* SPDX-License-Identifier: Apache-2.0 */
/* The loop libraries with an adapter, and how to recognise their files. */

#pragma once

#include <stdbool.h>

enum { D9__LOOP_LIBRARIES = 3 };

/* A loop library: the file and the function by which it is recognised. */
struct d9__loop_library {
	const char *name, *file, *function;
	const char *embedded; /* advice for a program that has a copy of its own */
};

extern const struct d9__loop_library d9__loop_libraries[D9__LOOP_LIBRARIES];

/* True if |path| is a file of the library |name|, or of a companion as libevent_openssl is. */
bool d9__is_file_of(const char *path, const char *name);
