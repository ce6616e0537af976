/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flight: the work of the flush thread for a ring that it does not empty.  Everything worth keeping has to
 * be in a chunk, so that it ages, is dumped and is recovered like what the threads recorded.
 */

#pragma once

#include <stdint.h>

#include "drain/drain.h"
#include "ring/slot.h"

/*
 * Write down in |own| what was lost since the last call.  The latest time at which anything was, or
 * 0: a window that begins behind it is complete.
 */
uint64_t d9__flight_losses(struct d9__drain *drain, struct d9__slot *own, uint64_t now_ns);
