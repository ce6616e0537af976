/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "loop/wire.h"
#include "base/hot.h"

#include "record/flush.h"
#include "record/pace.h"
#include "ring/emit_inl.h"
#include "ring/gate.h"

/* ---- polls ---- */

void d9__wire_close(struct d9__thread *thread, struct d9__slot *slot, uint64_t ns)
{
	if (!(thread->odd & D9__ODD_OPEN))
		return;
	d9__emit_poll_end(slot, thread->late_end_ns ? thread->late_end_ns : ns, thread->worker);
	thread->odd &= (uint8_t)~D9__ODD_OPEN;
	thread->late_end_ns = 0;
}

static void open_poll(struct d9__thread *thread, struct d9__slot *slot, uint64_t ns,
		      struct d9__frame_running *frame)
{
	d9__emit_poll_start(slot, ns, thread->worker, frame->depth, frame->task, frame->loc);
	frame->stamp = slot->stamp;
	thread->odd |= D9__ODD_OPEN;
}

void d9__wire_resume(struct d9__thread *thread, struct d9__slot *slot)
{
	struct d9__frame_running *top;
	uint64_t ns = thread->resume_ns;

	if (!ns || !thread->n_frames || thread->odd & D9__ODD_STOPPED)
		return;
	top = &thread->frames[thread->n_frames - 1];
	thread->resume_ns = 0;
	/* The wake by itself keeps readers from measuring the piece from an old wake. */
	if (d9__gate_open(D9__GATE_WAKE))
		d9__emit_wake(slot, ns, top->task, top->task, thread->worker, D9_WAKE_RESUMPTION);
	open_poll(thread, slot, ns, top);
}

/* ---- waits ---- */

/* The thread was put aside in times that no unpark and no long poll tells of. */
static __attribute__((noinline)) void tell_wait(struct d9__slot *slot, uint64_t ns,
						uint32_t worker, uint64_t from_ns,
						uint64_t wait_ns)
{
	uint8_t *p = d9__emit_begin(slot, D9__EVENT_RUN_QUEUE, ns, 3 * D9__VARINT_MAX);

	if (!p)
		return;
	p = d9__varint_put(p, worker);
	p = d9__varint_put(p, from_ns);
	p = d9__varint_put(p, wait_ns);
	d9__emit_end(slot, p);
}

D9__HOT void d9__wire_park(struct d9__thread *thread, struct d9__slot *slot, uint64_t ns)
{
	uint64_t cpu_ns = d9__cpu_time_park(&thread->cpu, ns), from_ns, wait_ns;

	wait_ns = d9__cpu_time_take_untold(&thread->cpu, &from_ns);
	if (__builtin_expect(wait_ns != 0, 0))
		tell_wait(slot, ns, thread->worker, from_ns, wait_ns);
	d9__emit_park(slot, ns, thread->worker, 0, cpu_ns, thread->tid);
	thread->odd |= D9__ODD_STOPPED;
	thread->parked = true;
	thread->park_ns = ns;
	thread->spins = 0;
}

D9__HOT void d9__wire_unpark(struct d9__thread *thread, struct d9__slot *slot, uint64_t ns)
{
	uint64_t wait_ns, cpu_ns = d9__cpu_time_unpark(&thread->cpu, ns, &wait_ns);

	d9__emit_unpark(slot, ns, thread->worker, thread->n_held, cpu_ns, wait_ns, thread->tid);
	if (__builtin_expect(ns - thread->park_ns > D9__PACE_SILENCE_NS, 0))
		d9__flush_rouse();
	thread->odd &= (uint8_t)~D9__ODD_STOPPED;
	thread->parked = false;
	thread->round_ns = ns;
	thread->unpark_stamp = slot->stamp;
	if (!thread->park_ns)
		thread->park_ns = ns;
}

/* ---- ends of tasks ---- */

/* A task that runs, and may get another piece, has not ended: its end is told when it returns. */
static __attribute__((noinline)) bool ends_later(struct d9__thread *thread, uint64_t task)
{
	for (uint32_t i = 0; i < thread->n_frames; i++) {
		if (thread->frames[i].task != task)
			continue;
		thread->frames[i].once = true;
		thread->frames[i].ended = D9__ENDED_IN(thread->epoch);
		return true;
	}
	return false;
}

void d9__wire_ended(struct d9__slot *slot, uint64_t ns, const struct d9__tasks_ended *ended)
{
	struct d9__thread *thread = d9__self.thread;

	for (unsigned i = 0; i < ended->n; i++) {
		if (d9__thread_exists(thread) && thread->n_frames &&
		    ends_later(thread, ended->ids[i]))
			continue;
		if (d9__gate_open(D9__GATE_TASK))
			d9__emit_task_terminate(slot, ns, ended->ids[i]);
	}
}

bool d9__wire_solo_ended(struct d9__thread *thread, struct d9__slot *slot, uint64_t ns,
			 uint64_t task)
{
	if (!d9__task_is(&thread->solo, task))
		return false;
	d9__wire_solo_forget(thread);
	if (slot && d9__wire_solo_is_spawned(thread) && d9__gate_open(D9__GATE_TASK))
		d9__emit_task_terminate(slot, ns, task);
	return true;
}
