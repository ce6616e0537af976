/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of `dial9 doctor`, each with its result and how to mend it. */

#pragma once

#include <stddef.h>

#include "cli/loop_libraries.h"

#define D9__CHECKS_MAX 32

enum d9__check_result {
	D9__CHECK_OK,
	D9__CHECK_WARN, /* recording works, with less */
	D9__CHECK_FAIL,
};

struct d9__check {
	const char *name;
	enum d9__check_result result;
	char text[768];
	char advice[384]; /* empty if nothing is to be done */
};

struct d9__doctor {
	struct d9__check checks[D9__CHECKS_MAX];
	size_t n;
};

/* Note a result with printf(3)'s text; too long a text is cut. */
void d9__doctor_note(struct d9__doctor *doctor, const char *name, enum d9__check_result result,
		     const char *format, ...) __attribute__((format(printf, 4, 5)));

/* How to mend the latest. */
void d9__doctor_advise(struct d9__doctor *doctor, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The files of one loop library that CMD of `dial9 doctor -- CMD` uses. */
struct d9__loop_use {
	const char *library; /* "libevent", "libev", "glib" */
	char files[4096];    /* that it maps, as for LD_PRELOAD, in the loader's order; or empty */
};

struct d9__loop_uses {
	struct d9__loop_use list[D9__LOOP_LIBRARIES];
};
