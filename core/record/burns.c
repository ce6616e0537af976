/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/thread.h"
#include "base/time.h"
#include "record/burns.h"
#include "record/open_calls.h"
#include "ring/ring_file.h"
#include "ring/slot.h"

#define QUIET_NS  (100 * D9__MS_NS) /* without a stamp: workers that are busy cost nothing */
#define WINDOW_NS (200 * D9__MS_NS) /* between two readings of a clock */
#define EVERY_NS  (950 * D9__MS_NS) /* a tick that comes a bit early is the one of this second */

/* One for each slot.  Flush thread only. */
static struct watch {
	uint64_t since_ns;	    /* of the slot's latest stamp, when the clock was read first */
	uint64_t looked_ns, used_ns; /* latest reading */
	uint64_t told_ns;
	struct d9__burnt burnt; /* and not told yet */
} watched[D9__SLOT_COUNT];

static void begin(struct watch *watch, const struct d9__open_call *call, uint64_t now_ns)
{
	watch->since_ns = call->since_ns;
	watch->looked_ns = now_ns;
	watch->used_ns = d9__thread_used_ns(call->tid);
	/* Else it waits for the end of a second that has begun. */
	if (now_ns - watch->told_ns > 2 * D9__SECOND_NS)
		watch->burnt = (struct d9__burnt){ 0 };
}

/* Read the clock of the thread of |call|: whether it used more than half of the time. */
static bool burns(struct watch *watch, const struct d9__open_call *call, uint64_t now_ns)
{
	uint64_t used_ns = d9__thread_used_ns(call->tid), before_ns = watch->used_ns;
	uint64_t wall_ns = now_ns - watch->looked_ns;

	watch->looked_ns = now_ns;
	watch->used_ns = used_ns;
	if (used_ns < before_ns || used_ns - before_ns <= wall_ns / 2)
		return false;
	watch->burnt.cpu_ns += used_ns - before_ns;
	watch->burnt.wall_ns += wall_ns;
	return true;
}

static void tell(struct d9__open_calls *calls, struct watch *watch, struct d9__open_call *call,
		 uint64_t now_ns)
{
	struct d9__slot *own = d9__slot_self();

	if (own)
		d9__open_calls_tell_library(calls, call, own, now_ns, watch->burnt);
	watch->told_ns = now_ns;
	watch->burnt = (struct d9__burnt){ 0 };
}

static void look_at(struct d9__open_calls *calls, uint32_t slot, uint64_t now_ns)
{
	struct watch *watch = &watched[slot];
	struct d9__open_call call;
	bool parked = d9__open_calls_of(slot, D9__WORKER_PARKED, &call);

	if (!parked && !d9__open_calls_of(slot, D9__WORKER_RUNNING, &call))
		return;
	if (call.since_ns + QUIET_NS > now_ns)
		return;
	if (call.since_ns != watch->since_ns || watch->looked_ns > now_ns) {
		begin(watch, &call, now_ns);
		return;
	}
	if (now_ns - watch->looked_ns < WINDOW_NS || !burns(watch, &call, now_ns))
		return;
	if (!parked && !d9__open_calls_in_library(&call))
		watch->burnt = (struct d9__burnt){ 0 };
	else if (now_ns - watch->told_ns >= EVERY_NS)
		tell(calls, watch, &call, now_ns);
}

void d9__burns_look(struct d9__open_calls *calls, uint64_t now_ns)
{
	for (uint32_t i = 0; i < d9__slot_high(); i++)
		look_at(calls, i, now_ns);
}
