/* SPDX-License-Identifier: Apache-2.0 */
/* Spelling: which of several names the writer of another one meant. */

#pragma once

#include <stddef.h>

/* Longer words are compared by their beginning. */
#define D9__NEAREST_MAX 63

/* Set |word|; the rest starts at 0. */
struct d9__spelling {
	const char *word;
	const char *name; /* the best so far, as it was given; NULL: none is near */
	size_t steps;     /* letters to change, add or take away */
};

/* Whether |name|, which is kept, is nearer than those before. */
void d9__spelling_try(struct d9__spelling *nearest, const char *name);
