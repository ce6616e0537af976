/* SPDX-License-Identifier: Apache-2.0 */
/* Where functions begin, by their names. */

#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The functions that a glob matches, as a trigger lists them: "frobd+0x12a0|+0x1300|libx.so.1+0x50". */
struct d9__entries {
	char *text; /* owned; "" if there are none, or too many */
	size_t n;   /* how many there are */
	size_t n_first; /* of them, in the first file */
	bool stripped;  /* the first file has no symbols, and nor does a debug file of it */
};

/*
 * Look through the symbols of the |n| files |paths|, and of their debug files where these are found, for functions whose
 * name matches |glob|: the plain name, and in C++ the one with its scope and without parameters, as reports have it.
 * |max|: more of them are counted only.  What cannot be read has none.  0 or -ENOMEM; release |out| then, too.
 */
int d9__entries_find(const char *const *paths, size_t n, const char *glob, size_t max, struct d9__entries *out);

void d9__entries_release(struct d9__entries *entries);
