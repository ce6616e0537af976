/* SPDX-License-Identifier: Apache-2.0 */
/* Description: the ring holds what a segment that is made of it has to begin with. */

#pragma once

#include <stdint.h>

#include "segment/builder.h"

/* Flush thread only; zeros: nothing was written. */
struct d9__description {
	uint32_t metadata, modules, types; /* generations of what it was made of */
};

/* Write it again if something changed.  |note| is overwritten. */
void d9__description_refresh(struct d9__description *description, struct d9__builder *note);
