/* SPDX-License-Identifier: Apache-2.0 */
/* Our drain, in the place of libev's: it calls the program's callbacks. */

#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "libev/records.h"

/* Callbacks of libev's own that were run, and places of events that had been cleared. */
extern _Atomic(uint32_t) d9__libev_internal, d9__libev_cancelled;

/* Do what ev_invoke_pending() does.  |record| NULL: nothing is recorded. */
void d9__libev_drain(struct ev_loop *loop, struct d9__libev_record *record);
