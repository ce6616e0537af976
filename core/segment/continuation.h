/* SPDX-License-Identifier: Apache-2.0 */
/* Continuation: the rest of a batch whose beginning was written, as a batch that decodes alone. */

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "segment/builder.h"
#include "segment/walk.h"

/*
 * Build in |out| the batch that continues behind |batch|[0, taken): everything defined so far, the
 * time, then [taken, len), where wakes that polls tell by what was taken are told anew.  0,
 * -EBADMSG or -ENOMEM.  |*end|, if it is not NULL, says a length of |out|'s: it becomes how much of
 * |batch| that is, frames being whole, or |taken|.
 */
int d9__continuation(struct d9__walker *walker, const uint8_t *batch, uint32_t taken, uint32_t len,
		     struct d9__builder *out, uint32_t *end);
