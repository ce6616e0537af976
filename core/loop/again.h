/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Again: polls of tasks that this thread has polled before, but not plainly: their wake has to be
 * written, or the open chunk is another one.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <dial9/loop.h>

#include "loop/thread_state.h"
#include "ring/slot.h"

/*
 * Begin |poll| at |ns| in the plain way after all, if only the chunk is news.  False: nothing
 * happened.
 */
bool d9__again_begin(struct d9__thread *thread, struct d9__slot *slot, struct d9_poll *poll,
		     uint64_t ns);

/* |poll| of |task|, whose callsite it names, was begun: remember what makes the next one plain. */
void d9__again_know(struct d9__thread *thread, const struct d9__slot *slot,
		    const struct d9_poll *poll, uint32_t library, struct d9__task *task);
