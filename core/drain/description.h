/* SPDX-License-Identifier: Apache-2.0 */
/* Lead: what a segment that is made of the ring has to begin with stands in the ring itself. */

#pragma once

#include <stdint.h>

#include "segment/builder.h"

/* Flush thread only; zeros: nothing was written. */
struct d9__description {
	uint32_t metadata, modules, types; /* generations of what it was made of */
};

/* Write it again if something changed.  |note| is overwritten. */
void d9__description_refresh(struct d9__description *lead, struct d9__builder *note);
