/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "block/call.h"

#include <errno.h>
#include <string.h>

#include "block/holders.h"
#include "block/stack.h"
#include "drain/blocking_event.h"
#include "drain/side_event.h"

static void leave_stack(struct d9__slot *slot, const struct d9__thread *thread,
			const struct d9__blocked_call *blocked, uint64_t ns)
{
	struct d9__sample_raw raw = { .worker = thread->worker,
				      .tid = thread->tid,
				      .copies = 1,
				      .source = D9__SAMPLE_OFF_CPU };
	struct d9__block_stack stack;

	d9__block_stack_take(&stack, blocked->real, blocked->caller);
	raw.n = (uint16_t)stack.n;
	raw.truncated = stack.truncated;
	d9__sample_leave(slot, &raw, stack.pcs, ns);
	d9__block_stack_release(&stack);
}

static void leave_call(struct d9__slot *slot, const struct d9__thread *thread,
		       const struct d9__blocked_call *blocked, uint64_t ns)
{
	const struct d9__lock_holder *holder = blocked->holder;
	struct d9__blocking_raw raw = { .task = d9__thread_task(thread),
					.duration_ns = blocked->ns,
					.worker = thread->worker,
					.fd = blocked->fd };

	strncpy(raw.function, blocked->function, sizeof(raw.function) - 1);
	if (holder) {
		raw.holder_task = holder->task;
		raw.holder_tid = holder->tid;
		raw.held_ns = holder->held_ns;
		raw.held_cpu_ns = holder->cpu_ns;
		raw.held_ready_ns = holder->ready_ns;
		memcpy(raw.holder_name, holder->name, sizeof(raw.holder_name));
		raw.n = (uint16_t)holder->n;
	}
	d9__blocking_leave(slot, &raw, holder ? holder->pcs : NULL, ns);
}

/* When |thread|'s innermost callback began, or when it left its loop; 0: neither is told. */
static uint64_t since(const struct d9__thread *thread)
{
	if (thread->n_frames)
		return thread->frames[thread->n_frames - 1].start_ns;
	/* Recording began anew, in a forked child too: nothing is known of the time before. */
	return thread->gate == d9__gate_word() ? thread->between.left_ns : 0;
}

void d9__block_tell(const struct d9__blocked_call *blocked)
{
	int saved = errno;
	const struct d9__thread *thread = d9__thread_peek();
	struct d9__slot *slot = d9__self.slot;
	uint64_t since_ns = thread ? since(thread) : 0, ns = blocked->begin_ns;

	/* The callback may have ended the thread's records meanwhile, or be another one's in a
	 * child. */
	if (since_ns && !(thread->odd & D9__ODD_NO_WORKER) && d9__slot_is_real(slot) &&
	    d9__gate_open(D9__GATE_LOOP)) {
		/* Stamps of threads and clocks differ by some ns: it lies in the callback. */
		if (ns < since_ns)
			ns = since_ns;
		/* Readers find the stack of a call before it. */
		leave_stack(slot, thread, blocked, ns);
		leave_call(slot, thread, blocked, ns);
	}
	errno = saved;
}
