/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time of a loop outside its callbacks: what the program's own prepare() and check() functions take, which GLib
 * calls in every round for every source.  They are patched in place, as dispatch() is; GLib's own, and
 * members that are NULL, cost nothing.
 */

#pragma once

#include <stdint.h>

#include "glib/real.h"
#include "hook/stubs.h"

/* Sums that a context keeps, two for a source; a power of 2. */
#define D9__GLIB_PHASES_MAX 64

/* The sum of one source and phase; by the loop's thread alone. */
struct d9__glib_phase {
	uint64_t key;	   /* 0: none */
	const void *function;
	uint64_t since_ns; /* when the sum began; 0: by the next call */
	uint64_t told_ns;  /* when one was written last */
	uint64_t calls, total_ns, max_ns;
};

/* The stubs that time prepare() and check() functions of the program. */
extern struct d9__stubs d9__glib_prepares, d9__glib_checks;
