/* SPDX-License-Identifier: Apache-2.0 */
/* Each name that begins or ends a poll, with the transaction of poll.h in it, and what makes the
 * next one plain. */
#include "config.h"

#include "loop/poll.h"
#include "base/hot.h"

#include "loop/adapter.h"
#include "loop/polls.h"
#include "record/recorder.h"

/* ---- begin ---- */

/* A forked child begins with its gate closed, so that a living one pays nothing. */
static inline bool is_child_pending(void)
{
	/* relaxed: as in d9__recorder_child_check() */
	return atomic_load_explicit(&d9__recorder_pending, memory_order_relaxed) != 0;
}

/* Nothing but three loads while recording is off. */
D9__HOT void d9_poll_begin(struct d9_poll *poll)
{
	uint32_t gate = d9__gate_word();

	if (__builtin_expect(gate & D9__GATE_LOOP, 1)) {
		if (__builtin_expect(poll->task.flags & D9_TASK_RUNS_ONCE ||
					     !d9__poll_open(poll, gate, D9__POLL_PLAIN),
				     0))
			d9__polls_begin(poll, gate);
		return;
	}
	poll->task_id = 0;
	if (__builtin_expect(is_child_pending(), 0))
		d9__poll_begin_other(poll);
}

D9__HOT bool d9__poll_begin_known(struct d9_poll *poll)
{
	uint32_t gate = d9__gate_word();

	return __builtin_expect(gate & D9__GATE_LOOP, 1) &&
	       __builtin_expect(d9__poll_open(poll, gate, D9__POLL_PLAIN), 1);
}

static __attribute__((noinline)) bool open_woken(struct d9_poll *poll, uint32_t gate)
{
	return d9__poll_open(poll, gate, D9__POLL_WOKEN);
}

D9__HOT bool d9__poll_begin_woken(struct d9_poll *poll)
{
	uint32_t gate = d9__gate_word();

	return __builtin_expect(gate & D9__GATE_LOOP, 1) &&
	       (d9__poll_open(poll, gate, D9__POLL_SAYS) || open_woken(poll, gate));
}

D9__HOT void d9__poll_begin_once(struct d9_poll *poll)
{
	if (!d9__poll_open(poll, d9__gate_word(), D9__POLL_ONCE))
		d9_poll_begin(poll);
}

/* ---- end ---- */

D9__HOT void d9_poll_end(struct d9_poll *poll)
{
	if (__builtin_expect(!poll->task_id, 0))
		return;
	if (__builtin_expect(!d9__poll_close(poll, d9__gate_word(), D9__POLL_PLAIN), 0))
		d9__polls_end(poll);
}

D9__HOT void d9__poll_end_ready(struct d9_poll *poll)
{
	uint32_t gate = d9__gate_word();

	if (__builtin_expect(!poll->task_id, 0) ||
	    (gate & D9__GATE_WAKE && !d9__old_events() &&
	     __builtin_expect(d9__poll_close(poll, gate, D9__POLL_READY), 1)))
		return;
	d9_poll_end(poll);
	d9__wakes_ready_again(poll->loop, poll->task.key);
}

D9__HOT void d9__poll_end_once(struct d9_poll *poll)
{
	uint32_t gate = d9__gate_word();

	if (!poll->task_id || ((gate & D9__GATES_OF_ONCE) == D9__GATES_OF_ONCE &&
			       d9__poll_close(poll, gate, D9__POLL_ONCE)))
		return;
	d9_poll_end(poll);
}
