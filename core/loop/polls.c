/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "loop/polls.h"
#include "base/hot.h"

#include <errno.h>
#include <string.h>

#include "base/time.h"
#include "loop/accept_queues.h"
#include "loop/adapter.h"
#include "loop/again.h"
#include "loop/announce.h"
#include "loop/between.h"
#include "loop/callsites.h"
#include "loop/loops.h"
#include "loop/poll.h"
#include "loop/samples.h"
#include "loop/wakes.h"
#include "loop/wire.h"
#include "loop/workers.h"
#include "record/flush.h"
#include "record/pace.h"
#include "record/recorder.h"
#include "ring/clock.h"
#include "ring/emit_inl.h"
#include "ring/gate.h"
#include "ring/names.h"

#define SPIN_PARK_NS (100 * D9__MS_NS) /* a loop that never waits gets a park this often */
#define SPIN_CHECK   64u		 /* waits without timeout between looks at the clock */

static _Atomic(uint64_t) abandoned;

uint64_t d9__polls_abandoned(void)
{
	return atomic_load_explicit(&abandoned, memory_order_relaxed);
}

/*
 * Recording was off: the trace's last word on this worker is old.  What it did meanwhile is not
 * known and must not look busy.
 */
static void write_gap(struct d9__thread *thread, struct d9__slot *slot, uint64_t last_ns)
{
	thread->shared_ns = thread->resume_ns = 0;
	memset(&thread->early, 0, sizeof(thread->early));
	if (thread->odd & D9__ODD_STOPPED)
		return;
	/* The poll in which recording was switched off ended after it. */
	if (thread->late_end_ns > last_ns)
		last_ns = thread->late_end_ns;
	d9__wire_close(thread, slot, last_ns);
	d9__wire_park(thread, slot, last_ns);
}

static void set_gate(struct d9__thread *thread, uint32_t gate)
{
	thread->gate = gate;
	thread->odd &= (uint8_t)~D9__ODD_WAITS;
	if (gate & D9__GATE_ARM)
		thread->odd |= D9__ODD_WAITS;
}

/* Write a gap if recording was off since this thread's latest record, which is of |last_ns|. */
static inline void see_gate(struct d9__thread *thread, struct d9__slot *slot, uint32_t gate,
			    uint64_t last_ns)
{
	if (__builtin_expect(thread->gate == gate, 1))
		return;
	if (thread->gate)
		write_gap(thread, slot, last_ns);
	set_gate(thread, gate);
}

_Static_assert(D9__LONG_POLL_NS == D9__CPU_LONG_NS, "what is asked of polls that are not plain begins there");

/* Since when |frame| has been running without a loop inside it. */
static uint64_t began(const struct d9__thread *thread, const struct d9__frame_running *frame)
{
	return frame->start_ns > thread->cpu.unpark_ns ? frame->start_ns : thread->cpu.unpark_ns;
}

/* Write how long the callback was off the CPU, and fire the trigger that waits for so long a poll. */
static void examine_long_poll(struct d9__thread *thread, struct d9__slot *slot, uint64_t ns,
			      const struct d9__frame_running *frame)
{
	uint64_t took_ns = ns - began(thread, frame);
	struct d9__cpu_off off;

	if (ns - frame->start_ns > D9__CPU_LONG_NS &&
	    d9__cpu_time_long_poll(&thread->cpu, ns, ns - frame->start_ns, &off))
		d9__samples_off_cpu(slot, ns, thread->worker, frame->task, &off);
	if (took_ns > atomic_load_explicit(&d9__triggers_poll_ns, memory_order_relaxed))
		d9__triggers_poll(ns, took_ns, &(struct d9__trigger_place){ .task = frame->task, .loc = frame->loc,
									    .worker = thread->worker });
}

/* The callback goes on to run a loop: by its end the figures of this piece would be gone, the wait's among them. */
static __attribute__((noinline)) void examine_piece(struct d9__thread *thread, struct d9__slot *slot, uint64_t ns)
{
	const struct d9__frame_running *top = &thread->frames[thread->n_frames - 1];

	if (ns - began(thread, top) > atomic_load_explicit(&d9__long_poll_ns, memory_order_relaxed))
		examine_long_poll(thread, slot, ns, top);
}

D9__HOT bool d9__polls_settle(struct d9__thread *thread, struct d9__slot *slot, uint64_t ns)
{
	if (thread->odd & D9__ODD_NO_WORKER && (thread->refused || !d9__thread_make(thread->loop))) {
		d9__loss_add(-1, D9__LOSS_NO_SLOT, 1, ns, ns);
		return false;
	}
	if (thread->odd & D9__ODD_OPEN) {
		d9__wire_close(thread, slot, ns);
		if (thread->n_frames)
			examine_piece(thread, slot, ns);
	}
	if (thread->odd & D9__ODD_STOPPED)
		d9__wire_unpark(thread, slot, ns);
	return true;
}

/* ---- frames and runs ---- */

static void pop_frame(struct d9__thread *thread)
{
	struct d9__frame_running *frame = &thread->frames[--thread->n_frames];

	frame->once = false;
	frame->ended = 0;
	if (!thread->n_frames)
		thread->odd &= (uint8_t)~D9__ODD_FRAMES;
}

/* That of |frame|, which is none of the thread's any more. */
static void end_task(struct d9__thread *thread, struct d9__slot *slot, uint64_t ns,
		     const struct d9__frame_running *frame)
{
	struct d9__tasks_ended ended = { .n = 0 };

	if (frame->ended) {
		/* A forked child's trace does not know it. */
		if (slot && frame->ended == D9__ENDED_IN(thread->epoch) && d9__gate_open(D9__GATE_TASK))
			d9__emit_task_terminate(slot, ns, frame->task);
		return;
	}
	if (d9__wire_solo_ended(thread, slot, ns, frame->task))
		return;
	d9__tasks_remove(frame->library, frame->key, frame->task, thread->epoch, &ended);
	if (slot)
		d9__wire_ended(slot, ns, &ended);
}

static void abandon_frame(struct d9__thread *thread, struct d9__slot *slot, uint64_t ns)
{
	struct d9__frame_running frame = thread->frames[thread->n_frames - 1];

	d9__wire_close(thread, slot, ns);
	pop_frame(thread);
	if (frame.once)
		end_task(thread, slot, ns, &frame);
	else
		d9__wire_solo_ended(thread, slot, ns, frame.task);
	thread->resume_ns = 0;
	atomic_fetch_add_explicit(&abandoned, 1, memory_order_relaxed);
}

/* Below |limit|, and comparable: coroutines have stacks of their own. */
static bool is_dead(const struct d9__thread *thread, uintptr_t address, uintptr_t limit)
{
	return address < limit && d9__thread_on_stack(thread, address) &&
	       d9__thread_on_stack(thread, limit);
}

/* Forget frames and runs below |limit|: a longjmp() left them. */
static void drop_below(struct d9__thread *thread, struct d9__slot *slot, uintptr_t limit, uint64_t ns)
{
	while (thread->n_frames && is_dead(thread, thread->frames[thread->n_frames - 1].address, limit))
		abandon_frame(thread, slot, ns);
	while (thread->n_runs && is_dead(thread, thread->runs[thread->n_runs - 1].address, limit))
		thread->n_runs--;
}

/*
 * Drop every frame below our caller's stack frame.  Frames of the caller itself may be in any order, so
 * they stay.
 */
static __attribute__((noinline)) void drop_deeper(struct d9__thread *thread, struct d9__slot *slot, uint64_t ns)
{
	drop_below(thread, slot, (uintptr_t)__builtin_frame_address(0), ns);
}

/* Forget the run at |address|, if it is there, and those inside.  How many callbacks it runs in. */
static uint32_t forget_run(struct d9__thread *thread, uintptr_t address)
{
	for (uint32_t i = thread->n_runs; i > 0; i--)
		if (thread->runs[i - 1].address == address) {
			thread->n_runs = i - 1;
			return thread->runs[i - 1].n_frames;
		}
	return thread->n_frames;
}

/* The run at |address|, which is over, ran in |outer| callbacks: those it began a longjmp() left. */
static void drop_inner(struct d9__thread *thread, struct d9__slot *slot, uintptr_t address, uint32_t outer,
		       uint64_t ns)
{
	while (thread->n_frames > outer && d9__thread_on_stack(thread, address) &&
	       d9__thread_on_stack(thread, thread->frames[thread->n_frames - 1].address))
		abandon_frame(thread, slot, ns);
}

/* The outermost loop waits: callbacks on stacks of coroutines cannot come back into it. */
static void drop_foreign(struct d9__thread *thread, struct d9__slot *slot, uint64_t ns)
{
	while (thread->n_frames && thread->n_runs <= 1 && thread->stack_high &&
	       !d9__thread_on_stack(thread, thread->frames[thread->n_frames - 1].address))
		abandon_frame(thread, slot, ns);
}

/* ---- entry and exit ---- */

/* A forked child begins here: its gate is closed, so that a living one pays nothing. */
static uint32_t gate_of_child(void)
{
	d9__recorder_child_check();
	return d9__gate_word();
}

/* The gate's word, or 0 if loops are not recorded. */
static inline uint32_t open_gate(void)
{
	uint32_t gate = d9__gate_word();

	if (__builtin_expect(!(gate & D9__GATE_LOOP), 0))
		gate = gate_of_child();
	return gate & D9__GATE_LOOP ? gate : 0;
}

/* Do all that waits for a moment in which a loop holds no lock, and return open_gate(). */
static inline uint32_t open_gate_calmly(void)
{
	d9__recorder_pending_check();
	return open_gate();
}

static inline bool is_recording(void)
{
	return open_gate() != 0;
}

/* For the flush thread, which tells of callbacks that wait for loops of their own. */
static void note_around(const struct d9__thread *thread, struct d9__slot *slot)
{
	slot->around = thread->n_runs && thread->runs[thread->n_runs - 1].n_frames;
}

static inline void become_owner(struct d9__thread *thread, struct d9_loop *loop)
{
	if (atomic_load_explicit(&loop->owner, memory_order_relaxed) != thread)
		atomic_store_explicit(&loop->owner, thread, memory_order_relaxed);
	thread->loop = loop;
}

/* Here no lock of the loop library is held. */
static void publish_worker(struct d9__thread *thread)
{
	int saved = errno;

	thread->refused = false;
	d9__workers_publish();
	errno = saved;
}

/* A run begins that is not recorded: nothing tells until when the thread was outside. */
static __attribute__((noinline)) void miss_entry(void)
{
	struct d9__thread *thread = d9__thread_peek();

	if (thread)
		thread->between.left_ns = 0;
}

void d9_loop_enter(struct d9_loop *loop, struct d9_loop_run *run)
{
	uintptr_t address = (uintptr_t)run;
	struct d9__thread *thread;
	struct d9__slot *slot;
	uint64_t last_ns, ns;
	uint32_t gate;

	run->d9__opaque[0] = 0;
	if (!loop || !(gate = open_gate_calmly()) || !(thread = d9__thread_self(loop)) ||
	    !(slot = d9__slot_self())) {
		miss_entry();
		return;
	}
	publish_worker(thread);
	last_ns = slot->last_ns;
	ns = d9__slot_now(slot);
	see_gate(thread, slot, gate, last_ns);
	d9__between_end(thread, slot, ns);
	/* One at this very address was left by a longjmp(). */
	drop_inner(thread, slot, address, forget_run(thread, address), ns);
	drop_deeper(thread, slot, ns);
	become_owner(thread, loop);
	thread->shared_ns = 0;
	thread->stage = D9__STAGE_ROUND;
	if (thread->n_runs < D9__RUNS_MAX)
		thread->runs[thread->n_runs++] = (struct d9__run) { address, loop, thread->n_frames };
	note_around(thread, slot);
	run->d9__opaque[0] = 1;
	if (!thread->n_frames)
		d9__polls_settle(thread, slot, ns);
}

/* The innermost of |outer| callbacks, which ran the run at |address|, goes on. */
static void continue_outer(struct d9__thread *thread, uintptr_t address, uint32_t outer)
{
	struct d9__slot *slot;
	uint64_t ns;

	if (!is_recording() || !(slot = d9__slot_self()))
		return;
	ns = d9__slot_now(slot);
	drop_inner(thread, slot, address, outer, ns);
	note_around(thread, slot);
	if (!thread->n_frames || thread->odd & (D9__ODD_OPEN | D9__ODD_NO_WORKER))
		return;
	if (thread->odd & D9__ODD_STOPPED)
		d9__wire_unpark(thread, slot, ns);
	thread->resume_ns = ns;
	d9__wire_resume(thread, slot);
}

void d9_loop_leave(struct d9_loop_run *run)
{
	uintptr_t address = (uintptr_t)run;
	struct d9__thread *thread = d9__thread_peek();
	uint64_t poll_ns;
	uint32_t outer;

	if (!run->d9__opaque[0] || !thread)
		return;
	run->d9__opaque[0] = 0;
	outer = forget_run(thread, address);
	poll_ns = thread->shared_ns;
	thread->shared_ns = 0;
	thread->stage = thread->n_runs ? D9__STAGE_ROUND : D9__STAGE_OUTSIDE;
	if (thread->n_frames)
		continue_outer(thread, address, outer);
	else if (!thread->n_runs)
		d9__between_begin(thread, poll_ns);
}

/* ---- rounds, which programs may go round by themselves ---- */

void d9__loop_round_begin(void)
{
	struct d9__thread *thread = d9__thread_peek();
	struct d9__slot *slot = d9__self.slot;

	if (!thread || thread->stage != D9__STAGE_OUTSIDE)
		return;
	if (thread->between.left_ns && thread->gate == d9__gate_word() && d9__slot_is_real(slot))
		d9__between_end(thread, slot, d9__slot_now(slot));
	thread->between.left_ns = 0;
	thread->stage = D9__STAGE_ROUND;
}

/* No trace has a worker that neither ran nor waited; a run would have begun with an unpark. */
static void begin_worker(struct d9__thread *thread)
{
	bool stopped = (thread->odd & (D9__ODD_STOPPED | D9__ODD_NO_WORKER)) == D9__ODD_STOPPED;
	uint32_t gate = open_gate();
	struct d9__slot *slot;

	if (stopped && gate && thread->gate == gate && (slot = d9__slot_self()))
		d9__polls_settle(thread, slot, d9__slot_now(slot));
}

void d9__loop_round_end(void)
{
	struct d9__thread *thread = d9__thread_peek();

	if (!thread || thread->n_frames || thread->n_runs || thread->stage == D9__STAGE_BACKEND)
		return;
	thread->stage = D9__STAGE_OUTSIDE;
	if (__builtin_expect(thread->odd & D9__ODD_STOPPED, 0))
		begin_worker(thread);
	d9__between_begin(thread, thread->shared_ns);
}

/* ---- waits ---- */

/* A wait without timeout is no park, but readers need one now and then to know the CPU time. */
static bool is_spin_park_due(struct d9__thread *thread, struct d9__slot *slot)
{
	if (++thread->spins % SPIN_CHECK == 0)
		d9__slot_now(slot);
	return slot->last_ns - thread->park_ns >= SPIN_PARK_NS;
}

static D9__HOT void park_at(struct d9__thread *thread, struct d9__slot *slot, uint64_t ns)
{
	if (thread->n_frames) {
		drop_deeper(thread, slot, ns);
		drop_foreign(thread, slot, ns);
	}
	thread->resume_ns = 0;
	if (!d9__polls_settle(thread, slot, ns))
		return;
	d9__wire_park(thread, slot, ns);
}

/* No loop waits for long while a task is ready: early wakes that no poll took are void. */
static void count_wait(struct d9__thread *thread, struct d9_loop *loop)
{
	uint32_t round = atomic_load_explicit(&loop->round, memory_order_relaxed);

	atomic_store_explicit(&loop->round, round + 1, memory_order_relaxed);
	thread->waits++;
}

D9__HOT void d9_loop_park(struct d9_loop *loop, int64_t timeout_ns)
{
	struct d9__thread *thread;
	struct d9__slot *slot;
	uint64_t last_ns;
	uint32_t gate;

	if (!loop || !(gate = open_gate_calmly()) || !(thread = d9__thread_self(loop)) ||
	    !(slot = d9__slot_self()))
		return;
	last_ns = slot->last_ns;
	become_owner(thread, loop);
	thread->shared_ns = 0;
	d9__wakes_forget(thread);
	thread->found = D9__WOKEN(slot->stamp, thread->worker, D9_WAKE_FD);
	thread->stage = D9__STAGE_BACKEND;
	see_gate(thread, slot, gate, last_ns);
	if (timeout_ns == 0 && !is_spin_park_due(thread, slot))
		return;
	if (timeout_ns)
		count_wait(thread, loop);
	park_at(thread, slot, d9__slot_now(slot));
}

/* Behind a wait: the callback that runs the loop would go on from here. */
static void hold_resumption(struct d9__thread *thread, uint64_t ns)
{
	if (thread->n_frames && !(thread->odd & D9__ODD_OPEN))
		thread->resume_ns = ns;
}

D9__HOT void d9_loop_unpark(struct d9_loop *loop)
{
	struct d9__thread *thread = d9__thread_peek();
	struct d9__slot *slot;
	uint64_t ns = 0;

	if (!thread || thread->stage != D9__STAGE_BACKEND)
		return;
	thread->stage = D9__STAGE_FRESH;
	thread->shared_ns = 0;
	if (!loop || !is_recording() || !(slot = d9__slot_self())) {
		d9__wakes_forget(thread);
		return;
	}
	if (thread->parked) {
		ns = d9__slot_now(slot);
		if (__builtin_expect(thread->gate != d9__gate_word(), 0))
			set_gate(thread, d9__gate_word());
		d9__wire_unpark(thread, slot, ns);
		hold_resumption(thread, ns);
		if (__builtin_expect(thread->gate & D9__GATE_LISTEN, 0))
			d9__accept_queues_ask(loop, thread->worker, slot, ns);
	} else {
		thread->unpark_stamp = 0;
		thread->round_ns = 0; /* who needs it looks at the clock, or is the first to run */
	}
	if (thread->n_held)
		d9__wakes_found(thread, slot, ns ? ns : d9__slot_now(slot));
}

void d9_loop_parked(struct d9_loop *loop, uint64_t since_ns)
{
	struct d9__thread *thread;
	struct d9__slot *slot;
	uint64_t last_ns, ns;
	uint32_t gate;

	if (!loop || !(gate = open_gate_calmly()) || !(thread = d9__thread_self(loop)) ||
	    !(slot = d9__slot_self()))
		return;
	last_ns = slot->last_ns;
	ns = d9__slot_now(slot);
	see_gate(thread, slot, gate, last_ns);
	become_owner(thread, loop);
	thread->shared_ns = 0;
	thread->stage = D9__STAGE_FRESH;
	/* Not before what this thread recorded since. */
	if (since_ns < last_ns)
		since_ns = last_ns;
	/* Wakes of meanwhile are not void: the loop's round stays. */
	thread->waits++;
	park_at(thread, slot, since_ns < ns ? since_ns : ns);
	if (!thread->parked)
		return;
	d9__wire_unpark(thread, slot, ns);
	hold_resumption(thread, ns);
}

/* ---- polls ---- */

/*
 * |gate| is what the caller found: who is about to write a poll tells its task, also where recording is switched
 * off this moment.  Lost, it is told again at the next poll.
 */
static void write_spawn(struct d9__thread *thread, struct d9__slot *slot, uint32_t gate, struct d9__task *task,
			const struct d9_callsite *callsite, uint64_t ns)
{
	if (gate & D9__GATE_TASK && !d9__announce(thread->spellings, slot, ns, task, callsite))
		return;
	atomic_store_explicit(&task->spawned, thread->epoch, memory_order_relaxed);
}

static bool is_spawned(const struct d9__thread *thread, const struct d9__task *task)
{
	return atomic_load_explicit(&task->spawned, memory_order_relaxed) == thread->epoch;
}

bool d9__polls_task_tell(struct d9_loop *loop, struct d9__task *task)
{
	const struct d9_callsite *callsite =
		atomic_load_explicit(&task->callsite, memory_order_acquire);
	struct d9__thread *thread = d9__thread_peek();
	uint32_t gate = d9__gate_word();
	struct d9__slot *slot;

	/* The loop's thread alone writes spawns: another one may be just about to. */
	if (!callsite || !(gate & D9__GATE_LOOP) || !thread ||
	    atomic_load_explicit(&loop->owner, memory_order_relaxed) != thread)
		return false;
	if (is_spawned(thread, task))
		return true;
	if (!(slot = d9__slot_self()))
		return false;
	d9__wire_resume(thread, slot);
	write_spawn(thread, slot, gate, task, callsite, d9__slot_now(slot));
	return is_spawned(thread, task);
}

void d9__polls_task_armed(struct d9_loop *loop, struct d9__task *task)
{
	if (d9__tasks_is_crowd(loop, task))
		d9__polls_task_tell(loop, task);
}

static bool is_current(const struct d9__thread *thread, const struct d9__task *task,
		       const struct d9_poll *poll)
{
	uint64_t identity = atomic_load_explicit(&task->identity, memory_order_relaxed);

	return is_spawned(thread, task) &&
	       (identity == poll->task.identity || !poll->task.identity);
}

/* Return what PollStart, which follows at once, tells of |wake|; what it cannot tell is written
 * before it. */
static uint64_t tell_wake(struct d9__thread *thread, struct d9__slot *slot, uint64_t ns,
			  uint64_t task, struct d9__wake *wake)
{
	uint64_t value = 0;

	/* In the chunk that it is told for. */
	if (wake->fits && d9__emit_make_room(slot, ns))
		value = d9__wakes_in_poll(thread, slot, ns, wake);
	if (wake->ns && d9__gate_open(D9__GATE_WAKE))
		d9__emit_wake(slot, wake->ns, wake->waker, task, wake->worker, wake->reason);
	return value;
}

/* First poll of a task, or of what its object has become.  NULL: the table is full or busy. */
static struct d9__task *obtain_task(struct d9__thread *thread, struct d9__slot *slot,
				    struct d9_poll *poll, uint64_t ns)
{
	struct d9__tasks_ended ended = { .n = 0 };
	struct d9__task *task = NULL;
	int saved = errno;

	if (!d9__tasks_obtain(poll->loop, poll->task.key, &poll->task, thread->epoch, &task,
			      &ended) &&
	    poll->task.name && !atomic_load_explicit(&task->name, memory_order_relaxed))
		atomic_store_explicit(
			&task->name, d9__name_intern(poll->task.name, strnlen(poll->task.name, 63)),
			memory_order_relaxed);
	if (poll->task.fd >= 0 && d9__gate_word() & D9__GATE_LISTEN)
		d9__accept_queues_watch(poll->loop, poll->task.fd);
	d9__wire_ended(slot, ns, &ended);
	errno = saved;
	return task;
}

static const struct d9_callsite *callsite_of(const struct d9__task *task,
					     const struct d9_poll *poll)
{
	return poll->task.callsite ? poll->task.callsite
				   : atomic_load_explicit(&task->callsite, memory_order_acquire);
}

/* The first poll of a task, of what its object has become, or with a |wake| to tell. */
static bool announce_slow(struct d9__thread *thread, struct d9__slot *slot, struct d9_poll *poll,
			  uint64_t ns, struct d9__task **task, struct d9__wake *wake)
{
	const struct d9_callsite *callsite;

	if (!*task || !is_current(thread, *task, poll)) {
		*task = obtain_task(thread, slot, poll, ns);
		if (!*task)
			return false;
	}
	callsite = callsite_of(*task, poll);
	d9__wakes_take(thread, *task, poll, ns, wake);
	if (!is_spawned(thread, *task))
		write_spawn(thread, slot, thread->gate, *task, callsite, wake->ns ? wake->ns : ns);
	return true;
}

static bool make_ready(struct d9__thread *thread, struct d9__slot *slot, struct d9_poll *poll,
		       uint64_t ns)
{
	if (thread->n_frames)
		drop_below(thread, slot, (uintptr_t)poll + 1, ns);
	thread->resume_ns = 0;
	thread->loop = poll->loop;
	return d9__polls_settle(thread, slot, ns) && thread->n_frames < D9__FRAMES_MAX;
}

/* Write PollStart and push its frame. */
static inline void start_poll(struct d9__thread *thread, struct d9__slot *slot,
			      struct d9_poll *poll, uint32_t library, uint64_t ns,
			      const struct d9__task *task, struct d9__wake *wake)
{
	uint64_t id = atomic_load_explicit(&task->id, memory_order_relaxed);
	uint64_t told = tell_wake(thread, slot, ns, id, wake);
	uint32_t loc = d9__callsite_name(callsite_of(task, poll)), depth = poll->depth;
	uint16_t outer = thread->n_frames;

	d9__poll_push_rest(&thread->frames[outer], poll, library);
	d9__poll_push(thread, poll, thread->odd & (D9__ODD_WIDE | D9__ODD_WAITS), outer, ns, id,
		      loc, 0);
	d9__emit_poll_woken(slot, ns, thread->worker, depth, id, loc, told);
	thread->frames[outer].stamp = slot->stamp;
}

void d9__polls_begin(struct d9_poll *poll, uint32_t gate)
{
	struct d9__thread *thread;
	struct d9__slot *slot;
	struct d9__task *task;
	struct d9__wake wake = { .ns = 0 };
	uint64_t last_ns, ns;
	uint32_t library;

	poll->task_id = 0;
	if (!(gate & D9__GATE_LOOP) || !poll->loop || !(thread = d9__thread_self(poll->loop)) ||
	    !(slot = d9__slot_self()))
		return;
	last_ns = slot->last_ns;
	ns = d9__poll_is_shared(thread, slot, poll) ? last_ns : d9__slot_now(slot);
	see_gate(thread, slot, gate, last_ns);
	if (thread->odd && !make_ready(thread, slot, poll, ns))
		return;
	/* The stamp or a new chunk alone may have kept it from the short way. */
	if (!thread->odd && d9__again_begin(thread, slot, poll, ns))
		return;
	become_owner(thread, poll->loop);
	library = atomic_load_explicit(&poll->loop->library, memory_order_relaxed);
	if (thread->odd & D9__ODD_WAITS)
		d9__waits_end(thread, slot, library, poll->task.key, ns);
	task = d9__polls_task(thread, library, poll->task.key);
	if ((!task || !is_current(thread, task, poll) || d9__wakes_matter(task, poll)) &&
	    !announce_slow(thread, slot, poll, ns, &task, &wake))
		return;
	atomic_store_explicit(&task->polled_ns, ns, memory_order_relaxed);
	start_poll(thread, slot, poll, library, ns, task, &wake);
	if (poll->task.callsite)
		d9__again_know(thread, slot, poll, library, task);
}

void d9__poll_begin_other(struct d9_poll *poll)
{
	d9__polls_begin(poll, open_gate());
}

/* Pop what lies above the frame of |poll|.  False: it has none. */
static bool find_frame(struct d9__thread *thread, struct d9__slot *slot, uint64_t ns,
		       const struct d9_poll *poll)
{
	uint32_t i = thread->n_frames;

	while (i && thread->frames[i - 1].address != (uintptr_t)poll)
		i--;
	if (!i)
		return false;
	while (thread->n_frames > i) {
		if (slot)
			abandon_frame(thread, slot, ns);
		else
			pop_frame(thread);
	}
	return true;
}

/* Recording is off: remember when the open poll ended. */
static void end_unrecorded(struct d9__thread *thread, const struct d9_poll *poll)
{
	struct d9__frame_running frame;

	if (!find_frame(thread, NULL, 0, poll))
		return;
	frame = thread->frames[thread->n_frames - 1];
	if (thread->odd & D9__ODD_OPEN && !thread->late_end_ns)
		thread->late_end_ns = d9__clock_mono_ns();
	thread->resume_ns = thread->shared_ns = 0;
	pop_frame(thread);
	if (thread->n_frames) /* its open piece is none of its own */
		thread->frames[thread->n_frames - 1].stamp = 0;
	if (frame.once)
		end_task(thread, NULL, 0, &frame);
}

/* The last piece of the top frame ends. */
static void end_piece(struct d9__thread *thread, struct d9__slot *slot, uint64_t ns)
{
	if (thread->resume_ns && thread->resume_ns != ns)
		d9__wire_resume(thread, slot);
	thread->resume_ns = 0;
	d9__wire_close(thread, slot, ns);
}

/* All but the usual: nested, split, left over, once, or switched off and on meanwhile. */
static __attribute__((noinline)) void end_slow(struct d9__thread *thread, struct d9__slot *slot,
					       uint64_t ns, const struct d9_poll *poll)
{
	struct d9__frame_running frame;

	if (!thread->n_frames || !find_frame(thread, slot, ns, poll))
		return;
	frame = thread->frames[thread->n_frames - 1];
	end_piece(thread, slot, ns);
	if (thread->odd & D9__ODD_WAITS)
		d9__waits_begin(thread, &frame, ns);
	if (ns - frame.start_ns > atomic_load_explicit(&d9__long_poll_ns, memory_order_relaxed))
		examine_long_poll(thread, slot, ns, &frame);
	pop_frame(thread);
	if (frame.once)
		end_task(thread, slot, ns, &frame);
	set_gate(thread, d9__gate_word());
	thread->shared_ns = poll->flags & D9_POLL_BREAKS_BATCH ? 0 : ns;
	hold_resumption(thread, ns);
}

void d9__polls_end(struct d9_poll *poll)
{
	uint32_t gate = d9__gate_word();
	struct d9__thread *thread;
	struct d9__slot *slot;
	uint64_t ns;

	if (!(thread = d9__thread_peek()))
		return;
	poll->task_id = 0;
	if (__builtin_expect(!(gate & D9__GATE_LOOP), 0) || !(slot = d9__slot_self())) {
		end_unrecorded(thread, poll);
		return;
	}
	ns = d9__slot_now(slot);
	if (__builtin_expect(!d9__poll_is_plain(thread, poll, gate, ns, D9__POLL_PLAIN), 0)) {
		end_slow(thread, slot, ns, poll);
		return;
	}
	d9__emit_poll_end(slot, ns, thread->worker);
	d9__poll_pop(thread, poll, ns);
}

void d9__polls_thread_exit(void)
{
	struct d9__thread *thread = d9__thread_peek();
	struct d9__slot *slot;

	d9__self.thread = D9__THREAD_GONE;
	if (!thread)
		return;
	/* Even while recording is off: the id's next holder begins with an Unpark. */
	if (!(thread->odd & (D9__ODD_NO_WORKER | D9__ODD_STOPPED)) && (slot = d9__slot_self())) {
		uint64_t last_ns = slot->last_ns;
		bool open = d9__gate_open(D9__GATE_LOOP);
		uint64_t ns = open ? d9__slot_now(slot) : last_ns;

		if (open)
			d9__between_tell_rest(thread, slot, ns);
		d9__wire_close(thread, slot, ns);
		d9__wire_park(thread, slot, ns);
	}
	d9__thread_free(thread);
}
