/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "loop/again.h"

#include "loop/callsites.h"
#include "loop/poll.h"

/* Spell the name as the open chunk knows it, if it does, and the worker's latest event is in it. */
static void spell(const struct d9__thread *thread, const struct d9__slot *slot,
		  struct d9__cached_task *cached)
{
	uint32_t word = slot->names[cached->name];
	uint8_t *end;

	if (word >> 16 != slot->generation || slot->worker != thread->worker)
		return;
	end = d9__wire_put_u32(cached->emit.wire + d9__emit_id_len(&cached->emit), word & 0xffff);
	*end = 0; /* no wake */
	cached->stamp = slot->stamp;
}

void d9__again_know(struct d9__thread *thread, const struct d9__slot *slot,
		    const struct d9_poll *poll, uint32_t library, struct d9__task *task)
{
	struct d9__cached_task *cached =
		d9__task_cache_put(&thread->cache, library, poll->task.key, task);

	cached->loop = poll->loop;
	cached->callsite = poll->task.callsite;
	cached->name = d9__callsite_name(poll->task.callsite);
	spell(thread, slot, cached);
}

bool d9__again_begin(struct d9__thread *thread, struct d9__slot *slot, struct d9_poll *poll,
		     uint64_t ns)
{
	struct d9__cached_task *cached = d9__task_cache_get(&thread->cache, poll->task.key);

	if (!d9__poll_is_of(thread, cached, poll) ||
	    !d9__poll_is_same(thread, cached, cached->task, poll) ||
	    poll->task.flags & D9_TASK_RUNS_ONCE)
		return false;
	/* The open chunk may be another than at the task's latest poll, and know the name already.
	 */
	if (cached->stamp != slot->stamp)
		spell(thread, slot, cached);
	return d9__poll_open_at(thread, slot, poll, ns, D9__POLL_PLAIN) ||
	       d9__poll_open_at(thread, slot, poll, ns, D9__POLL_WOKEN);
}
