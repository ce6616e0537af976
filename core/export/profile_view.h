/* SPDX-License-Identifier: Apache-2.0 */
/* View: the frames of a stack that are shown.  The recorder's are not, and below a wanted callback
 * none is. */

#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "export/profile.h"

struct d9__profile_view {
	bool hidden[D9__PROFILE_FRAMES]; /* frame i is not shown */
	size_t n;			 /* frames from here on are not shown either */
	bool rooted;			 /* frame n - 1, the outermost, was called by the loop */
	bool named; /* and it is the callback's own function: else that has no frame */
};

/* Set |view| for |stack| of |profile|. */
void d9__profile_view(struct d9__profile *profile, const struct d9__profile_stack *stack,
		      struct d9__profile_view *view);
