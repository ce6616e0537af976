/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts and ends of one task's polls, written as loop/poll.h writes those of a task it knows: what
 * nearly all events of a loop are.
 */

#ifndef D9_BENCH_PLAIN_EVENTS_H
#define D9_BENCH_PLAIN_EVENTS_H

#include <stdbool.h>

#include "ring/emit_inl.h"

#define PLAIN_TASK 300u

/* One per thread. */
struct plain_events {
	struct d9__slot *slot;
	uint32_t loc; /* handle of the task's name */
	uint32_t stamp; /* of the chunk for which |task| is spelled; 0: none */
	struct d9__emit_task task;
};

/* The first one in a chunk. */
static __attribute__((noinline)) void plain_start_and_spell(struct plain_events *events,
							     uint64_t ns)
{
	struct d9__slot *slot = events->slot;
	uint8_t *end;

	d9__emit_poll_start(slot, ns, 0, 1, PLAIN_TASK, events->loc);
	end = d9__varint_put(events->task.wire, PLAIN_TASK);
	end = d9__wire_put_u32(end, slot->names[events->loc] & 0xffff);
	events->task.id = PLAIN_TASK;
	events->task.start_len = (uint8_t)(D9__EMIT_PLAIN_HEAD_LEN + (end - events->task.wire));
	events->stamp = slot->stamp;
}

static inline void plain_start(struct plain_events *events, uint64_t ns)
{
	struct d9__slot *slot = events->slot;
	uint64_t published = d9__emit_open_at(slot, ns);

	if (__builtin_expect(published && events->stamp == slot->stamp, 1)) {
		size_t len = d9__put_poll_start(slot, d9__emit_place(slot, published),
						&(struct d9__poll_start) { .ns = ns,
									   .of = d9__emit_plain_of(0),
									   .depth = 1,
									   .spelled = &events->task },
						true);

		slot->worker_state = D9__WORKER_POLLING;
		slot->task = PLAIN_TASK;
		d9__emit_commit(slot, published, 1, len);
		return;
	}
	if (published)
		d9__emit_cancel(slot);
	plain_start_and_spell(events, ns);
}

static inline void plain_end(struct plain_events *events, uint64_t ns)
{
	uint64_t published = d9__emit_open_at(events->slot, ns);

	uint8_t *begin = d9__emit_place(events->slot, published);

	if (__builtin_expect(!published, 0)) {
		d9__emit_poll_end(events->slot, ns, 0);
		return;
	}
	events->slot->worker_state = D9__WORKER_RUNNING;
	d9__emit_commit(events->slot, published, 1,
			(uint64_t)(d9__put_poll_end(events->slot, begin, ns, d9__emit_plain_of(0), true) - begin));
}

/* With a stamp of its own; every second one is an end. */
static inline void plain_event(struct plain_events *events, bool end)
{
	uint64_t ns = d9__slot_now(events->slot);

	if (end)
		plain_end(events, ns);
	else
		plain_start(events, ns);
}

#endif /* D9_BENCH_PLAIN_EVENTS_H */
