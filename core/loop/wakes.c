/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "loop/adapter.h"
#include "base/hot.h"
#include "loop/wakes.h"

#include <errno.h>
#include <string.h>

#include "loop/callsites.h"
#include "loop/loops.h"
#include "loop/polls.h"
#include "loop/wire.h"
#include "record/triggers.h"
#include "ring/clock.h"
#include "ring/emit_inl.h"
#include "ring/gate.h"

#define NO_WORKER 255u /* of a waker */

/* struct d9_wake_cell: word 0 is state, worker and whether it counts as handed over. */
enum cell_state { CELL_EMPTY, CELL_FILLING, CELL_FULL };

#define CELL_WORKER(word) ((uint32_t)((word) >> 8) & 0xff)
#define CELL_HANDED	  (UINT64_C(1) << 16)

static uint32_t worker_of(const struct d9__thread *thread)
{
	bool told = thread && !(thread->odd & D9__ODD_NO_WORKER) && thread->worker < NO_WORKER;

	return told ? thread->worker : NO_WORKER;
}

/* True if another thread runs |loop| now. */
static bool is_remote(const struct d9__thread *thread, struct d9_loop *loop)
{
	struct d9__thread *owner = atomic_load_explicit(&loop->owner, memory_order_relaxed);

	return owner && owner != thread;
}

static enum d9_wake_reason reason_here(const struct d9__thread *thread, bool remote)
{
	if (remote)
		return D9_WAKE_CROSS_THREAD;
	if (!thread)
		return D9_WAKE_ACTIVE;
	if (thread->stage == D9__STAGE_BACKEND)
		return D9_WAKE_FD;
	if (thread->stage == D9__STAGE_FRESH)
		return D9_WAKE_TIMER;
	return thread->n_frames || thread->stage == D9__STAGE_OUTSIDE ? D9_WAKE_ACTIVE
								      : D9_WAKE_DEFERRED;
}

/* Whichever callback may be running. */
static inline bool is_by_kernel(enum d9_wake_reason reason)
{
	return reason == D9_WAKE_FD || reason == D9_WAKE_TIMER || reason == D9_WAKE_SIGNAL;
}

/* ---- written at once, behind the unpark, or with the poll ---- */

/* To be told in its poll by a value whose stamp is known at the end of the wait. */
static inline bool hold(struct d9__thread *thread, struct d9__task *task,
			enum d9_wake_reason reason)
{
	if (__builtin_expect(thread->n_held == D9__HELD_MAX, 0))
		return false;
	thread->held[thread->n_held++] = task;
	atomic_store_explicit(
		&task->woken,
		thread->found ^ D9_WAKE_FD ^
			(reason == D9_WAKE_FD ? D9_WAKE_FD : reason | D9__WOKEN_BY_NONE),
		memory_order_relaxed);
	return true;
}

/* Of own threads, as it was before polls told it.  Afterwards they do not, unless it is to be told
 * twice. */
static __attribute__((noinline, cold)) void tell_old(struct d9__thread *thread,
						     struct d9__slot *slot, struct d9__task *task,
						     uint64_t ns, uint64_t waker)
{
	uint32_t woken = atomic_load_explicit(&task->woken, memory_order_relaxed);

	d9__emit_wake(slot, ns, waker, atomic_load_explicit(&task->id, memory_order_relaxed),
		      thread->worker, D9__WOKEN_REASON(woken));
	if (d9__old_events() != D9__OLD_EVENTS_TOO)
		atomic_store_explicit(&task->woken, D9__WOKEN_TOLD, memory_order_relaxed);
}

/* Another thread may have ended it, and begun another in its entry. */
static inline bool is_held(const struct d9__task *task, uint32_t found)
{
	uint32_t woken = atomic_load_explicit(&task->woken, memory_order_relaxed);

	return D9__WOKEN_WHY(woken ^ found) == (woken ^ found);
}

D9__HOT void d9__wakes_forget(struct d9__thread *thread)
{
	while (thread->n_held) {
		struct d9__task *task = thread->held[--thread->n_held];

		if (is_held(task, thread->found))
			atomic_store_explicit(&task->woken, 0, memory_order_relaxed);
	}
}

D9__HOT void d9__wakes_found(struct d9__thread *thread, struct d9__slot *slot, uint64_t ns)
{
	struct d9__task **held = thread->held, **end = held + thread->n_held;
	uint32_t found = thread->found;

	thread->n_held = 0;
	for (; held < end; held++)
		if (is_held(*held, found))
			atomic_store_explicit(&(*held)->polled_ns, ns, memory_order_relaxed);
	if (__builtin_expect(d9__old_events() == 0, 1))
		return;
	for (held = thread->held; held < end; held++)
		if (is_held(*held, found))
			tell_old(thread, slot, *held, ns, 0);
}

/* Describe the wake by what this thread does; a wait's own wakes get the stamp of its end. */
static void describe(struct d9__thread *thread, bool remote, enum d9_wake_reason reason,
		     const struct d9_waker *waker, struct d9__wake *wake)
{
	bool in_backend = thread && thread->stage == D9__STAGE_BACKEND && !remote;

	wake->reason = reason ? reason : reason_here(thread, remote);
	if (waker) {
		*wake = (struct d9__wake) { waker->ns, waker->task_id, waker->worker,
					    wake->reason };
		return;
	}
	wake->ns = 0;
	wake->waker = in_backend || !thread ? 0 : d9__thread_task(thread);
	if (is_by_kernel(wake->reason))
		wake->waker = 0;
	wake->worker = worker_of(thread);
}

/*
 * Is the stamp of a wait's end that of what it reported, which is told now?  Only right behind it: not
 * after any other stamp.  A wait without timeout wrote none: the first that is told finds when it ended.
 */
static inline bool is_of_wait(const struct d9__thread *thread, const struct d9__slot *slot)
{
	return thread->stage == D9__STAGE_FRESH && thread->round_ns == slot->last_ns;
}

static uint64_t stamp(struct d9__thread *thread, struct d9__slot *slot, uint32_t reason)
{
	bool fresh = thread && thread->stage == D9__STAGE_FRESH && reason == D9_WAKE_FD;

	if (!fresh)
		return d9__slot_now(slot);
	if (!is_of_wait(thread, slot)) {
		thread->round_ns = d9__slot_now(slot);
		thread->unpark_stamp = 0;
	}
	return thread->round_ns;
}

/*
 * Leave a wake at |ns|, |last_ns| being the stamp before, for its poll to tell, if that can: who
 * reads finds the waker by the time, among the polls of the same batch.
 */
static inline __attribute__((always_inline)) bool
leave_for_poll(struct d9__thread *thread, struct d9__slot *slot, struct d9__task *task,
	       enum d9_wake_reason reason, uint64_t ns, uint64_t last_ns)
{
	const struct d9__frame_running *top;
	uint32_t why = reason;

	if (!is_by_kernel(reason)) {
		if (ns <= last_ns)
			return false;
		if (thread->odd & D9__ODD_OPEN) {
			if (!thread->n_frames)
				return false;
			top = &thread->frames[thread->n_frames - 1];
			if (top->stamp != slot->stamp)
				return false;
			atomic_store_explicit(&task->waker_task, top->task, memory_order_relaxed);
		} else if (thread->n_frames) {
			return false;
		} else {
			why |= D9__WOKEN_BY_NONE;
		}
	}
	atomic_store_explicit(&task->polled_ns, ns, memory_order_relaxed);
	atomic_store_explicit(&task->woken,
			      slot->stamp << 16 | D9__WOKEN_WORKER(thread->found) << 8 | why,
			      memory_order_relaxed);
	return true;
}

/* Its spawn is in the trace: the wake can be written.  False: it has to wait for the poll. */
static bool write_now(struct d9__thread *thread, struct d9__slot *slot, uint64_t task,
		      struct d9__wake *wake)
{
	if (wake->reason == D9_WAKE_TIMER)
		return false;
	if (!wake->ns)
		wake->ns = stamp(thread, slot, wake->reason);
	if (thread && thread->resume_ns && wake->waker == d9__thread_task(thread))
		d9__wire_resume(thread, slot);
	d9__emit_wake(slot, wake->ns, wake->waker, task, wake->worker, wake->reason);
	return true;
}

/* With |*fills| a new entry's wake is FILLING; it becomes false if there is no new entry. */
static struct d9__task *obtain(struct d9__slot *slot, struct d9_loop *loop, uint64_t key,
			       uint32_t epoch, bool *fills)
{
	struct d9__tasks_ended ended = { .n = 0, .fills = *fills };
	struct d9__task *task = NULL;
	int saved = errno;

	d9__tasks_obtain(loop, key, NULL, epoch, &task, &ended);
	*fills = ended.fills;
	if (ended.n)
		d9__wire_ended(slot, d9__slot_now(slot), &ended);
	errno = saved;
	return task;
}

static bool is_usable(const struct d9__task *task)
{
	return task && atomic_load_explicit(&task->spawned, memory_order_relaxed) != D9__TASK_STALE;
}

struct d9__task *d9__wakes_task(struct d9__thread *thread, struct d9__slot *slot,
				struct d9_loop *loop, uint64_t key, uint32_t epoch)
{
	uint32_t library = atomic_load_explicit(&loop->library, memory_order_relaxed);
	struct d9__task *task = d9__polls_task(thread, library, key);
	bool fills = false;

	return is_usable(task) ? task : obtain(slot, loop, key, epoch, &fills);
}

/* Not if another thread ended it, and perhaps began another in its entry.  Else its id. */
static uint64_t id_of(const struct d9__task *task, uint64_t key)
{
	uint64_t id = atomic_load_explicit(&task->id, memory_order_acquire);

	return atomic_load_explicit(&task->key, memory_order_relaxed) == key ? id : 0;
}

static void take_back(struct d9__task *task)
{
	uint32_t filling = D9__WAKE_FILLING;

	atomic_compare_exchange_strong_explicit(&task->wake, &filling, D9__WAKE_NONE,
						memory_order_release, memory_order_relaxed);
}

static void fill(struct d9__thread *thread, struct d9__slot *slot, struct d9__task *task, uint64_t id,
		 bool spawned, uint32_t flags, struct d9__wake *wake)
{
	uint32_t state = D9__WAKE_WRITTEN;

	if (!spawned || !write_now(thread, slot, id, wake)) {
		if (!wake->ns)
			wake->ns = d9__slot_now(slot);
		atomic_store_explicit(&task->waker_task, wake->waker, memory_order_relaxed);
		atomic_store_explicit(&task->waker_ns, wake->ns, memory_order_relaxed);
		atomic_store_explicit(&task->waker_worker, wake->worker, memory_order_relaxed);
		state = D9__WAKE_HELD;
	}
	/* release: pairs with the acquire of d9__wakes_take() */
	atomic_store_explicit(&task->wake, state | wake->reason << 8 | flags, memory_order_release);
}

/* By the thread that will poll it, which has described it in |wake|.  False: it is to be written or
 * held. */
static bool may_leave(struct d9__thread *thread, struct d9__slot *slot, struct d9__task *task,
		      struct d9__wake *wake)
{
	uint64_t last_ns = slot->last_ns;

	if (wake->ns || wake->reason == D9_WAKE_UNKNOWN || wake->reason == D9_WAKE_TIMER ||
	    wake->reason > D9_WAKE_RESUMPTION || wake->worker == NO_WORKER)
		return false;
	if (thread->stage == D9__STAGE_BACKEND &&
	    hold(thread, task, (enum d9_wake_reason)wake->reason))
		return true;
	if (thread->resume_ns)
		return false;
	wake->ns = stamp(thread, slot, wake->reason);
	if (!leave_for_poll(thread, slot, task, (enum d9_wake_reason)wake->reason, wake->ns,
			    last_ns))
		return false;
	if (d9__old_events())
		tell_old(thread, slot, task, wake->ns, wake->waker);
	return true;
}

/* False: the next poll was announced before. */
static bool may_fill(struct d9__task *task)
{
	uint32_t none = D9__WAKE_NONE;

	return !atomic_load_explicit(&task->woken, memory_order_relaxed) &&
	       atomic_compare_exchange_strong_explicit(&task->wake, &none, D9__WAKE_FILLING,
						       memory_order_acquire, memory_order_relaxed);
}

/* True if this thread will poll the task that it wakes. */
static bool is_own(const struct d9__thread *thread, struct d9_loop *loop)
{
	return thread && thread->gate == d9__gate_word() &&
	       atomic_load_explicit(&loop->owner, memory_order_relaxed) == thread;
}

/* |at| is the place of |key|, or NULL.  False: none is free. */
static bool put_early(const struct d9__thread *thread, struct d9__slot *slot,
		      struct d9__early_set *set, struct d9__early_wake *at,
		      const struct d9_loop *loop, uint64_t key, struct d9__wake *wake)
{
	if (!at && !(at = d9__early_free(set, thread->waits)))
		return false;
	if (!wake->ns)
		wake->ns = d9__slot_now(slot);
	at->key = key;
	at->ns = wake->ns;
	at->waker = wake->waker;
	at->round = atomic_load_explicit(&loop->round, memory_order_relaxed);
	at->wait = thread->waits;
	at->worker = (uint8_t)wake->worker;
	at->reason = (uint8_t)wake->reason;
	return true;
}

static int wake_task(struct d9__thread *thread, struct d9__slot *slot, struct d9_loop *loop,
		     uint64_t key, struct d9__task *task, struct d9__wake *wake, bool remote,
		     bool own)
{
	uint32_t epoch = atomic_load_explicit(&d9__loop_epoch, memory_order_relaxed);
	bool fills = true, spawned;
	uint32_t flags = 0;
	uint64_t id;

	if (is_usable(task))
		fills = false;
	else
		task = obtain(slot, loop, key, epoch, &fills);
	if (!task || (!fills && !may_fill(task)))
		return 0;
	if (!(id = id_of(task, key))) {
		take_back(task);
		return 0;
	}
	spawned = atomic_load_explicit(&task->spawned, memory_order_relaxed) == epoch;
	if (own && spawned && may_leave(thread, slot, task, wake)) {
		take_back(task);
		return 1;
	}
	if (remote) {
		atomic_fetch_add_explicit(&loop->handed, 1, memory_order_relaxed);
		flags = D9__WAKE_HANDED;
	}
	fill(thread, slot, task, id, spawned, flags, wake);
	/* A thread that ended it meanwhile may have seen no wake. */
	if (remote && id_of(task, key) != id)
		d9__task_unhand(task, loop);
	return 1;
}

static __attribute__((noinline)) int wake(struct d9_loop *loop, uint64_t key,
					  enum d9_wake_reason reason, const struct d9_waker *waker)
{
	uint32_t library = atomic_load_explicit(&loop->library, memory_order_relaxed);
	struct d9__early_set *set = NULL;
	struct d9__early_wake *early = NULL;
	struct d9__thread *thread;
	struct d9__slot *slot;
	struct d9__task *task;
	struct d9__wake wake;
	bool remote;

	if (!(slot = d9__slot_self()))
		return 0;
	thread = d9__thread_peek();
	if (is_own(thread, loop)) {
		set = d9__early_set(&thread->early, key);
		early = d9__early_find(set, key);
		if (early && d9__early_is(early, loop))
			return 0;
	}
	task = d9__polls_task(thread, library, key);
	remote = !set && is_remote(thread, loop);
	describe(thread, remote, reason, waker, &wake);
	if (!task && set && put_early(thread, slot, set, early, loop, key, &wake))
		return 1;
	return wake_task(thread, slot, loop, key, task, &wake, remote, set != NULL);
}

static inline bool stamp_fd(struct d9__thread *thread, struct d9__slot *slot, uint64_t *ns)
{
	if (is_of_wait(thread, slot)) {
		*ns = thread->round_ns;
		return true;
	}
	if (!d9__slot_try_now(slot, ns))
		return false;
	if (thread->stage == D9__STAGE_FRESH) {
		thread->round_ns = *ns;
		thread->unpark_stamp = 0;
	}
	return true;
}

/*
 * The usual wake: by this thread, of a task it has polled before, and which has |identity| if that is
 * not 0.  Calls nothing.  Below 0: nothing happened.  Else as d9_wake().
 */
static inline __attribute__((always_inline)) int wake_plain(struct d9_loop *loop, uint64_t key,
							    uint64_t identity,
							    enum d9_wake_reason reason)
{
	struct d9__thread *thread = d9__self.thread;
	struct d9__slot *slot = d9__self.slot;
	const struct d9__cached_task *cached;
	uint64_t last_ns, ns;

	if (!d9__thread_exists(thread) || !d9__slot_is_real(slot) || thread->resume_ns ||
	    thread->odd & D9__ODD_NO_WORKER ||
	    atomic_load_explicit(&loop->owner, memory_order_relaxed) != thread)
		return -1;
	cached = d9__task_cache_get(&thread->cache, key);
	if (!cached || cached->loop != loop ||
	    !d9__task_is(cached->task, cached->emit.id) ||
	    atomic_load_explicit(&cached->task->spawned, memory_order_relaxed) != thread->epoch ||
	    (identity &&
	     atomic_load_explicit(&cached->task->identity, memory_order_relaxed) != identity))
		return -1;
	if (atomic_load_explicit(&cached->task->wakes, memory_order_relaxed))
		return 0;
	if (thread->stage == D9__STAGE_BACKEND)
		return reason == D9_WAKE_FD && hold(thread, cached->task, reason) ? 1 : -1;
	last_ns = slot->last_ns;
	if (d9__old_events() ||
	    !(reason == D9_WAKE_FD ? stamp_fd(thread, slot, &ns) : d9__slot_try_now(slot, &ns)) ||
	    !leave_for_poll(thread, slot, cached->task, reason, ns, last_ns))
		return -1;
	return 1;
}

/* Of its own: here the reason is known when it is compiled. */
static __attribute__((noinline)) D9__HOT int wake_fd(struct d9_loop *loop, uint64_t key)
{
	int done = wake_plain(loop, key, 0, D9_WAKE_FD);

	return done >= 0 ? done : wake(loop, key, D9_WAKE_FD, NULL);
}

#define PLAIN_REASONS                                                                              \
	(1u << D9_WAKE_ACTIVE | 1u << D9_WAKE_DEFERRED | 1u << D9_WAKE_INTERNAL |                  \
	 1u << D9_WAKE_RESUMPTION)

D9__HOT int d9_wake(struct d9_loop *loop, uint64_t key, enum d9_wake_reason reason,
		    const struct d9_waker *waker)
{
	int done = -1;

	if (!d9__gate_open(D9__GATE_WAKE) || !loop)
		return 0;
	if (waker)
		return wake(loop, key, reason, waker);
	if (reason == D9_WAKE_FD)
		return wake_fd(loop, key);
	/* A timer's wake waits for its poll; those of other threads are written at once. */
	if ((uint32_t)reason < 32 && PLAIN_REASONS >> reason & 1) {
		if (is_by_kernel(reason))
			__builtin_unreachable();
		done = wake_plain(loop, key, 0, reason);
	}
	return done >= 0 ? done : wake(loop, key, reason, waker);
}

D9__HOT bool d9__wake_known(struct d9_loop *loop, uint64_t key, uint64_t identity)
{
	return wake_plain(loop, key, identity, D9_WAKE_ACTIVE) >= 0;
}

D9__HOT bool d9__wake_known_fd(struct d9_loop *loop, uint64_t key, uint64_t identity)
{
	return wake_plain(loop, key, identity, D9_WAKE_FD) >= 0;
}

/* Take the wake that the table holds.  True: one was written already. */
static bool take_held(const struct d9__thread *thread, struct d9__task *task,
		      struct d9_loop *loop, struct d9__wake *wake)
{
	uint32_t word = atomic_load_explicit(&task->wake, memory_order_acquire);
	uint32_t woken = atomic_load_explicit(&task->woken, memory_order_relaxed);
	bool told = woken == D9__WOKEN_TOLD || (!woken && D9__WAKE_STATE(word) == D9__WAKE_WRITTEN);

	*wake = (struct d9__wake) { .ns = 0 };
	if (woken && !told) {
		wake->ns = atomic_load_explicit(&task->polled_ns, memory_order_relaxed);
		wake->worker = D9__WOKEN_WORKER(woken);
		wake->reason = D9__WOKEN_REASON(woken);
		if (!is_by_kernel(wake->reason) && !(woken & D9__WOKEN_BY_NONE))
			wake->waker = atomic_load_explicit(&task->waker_task, memory_order_relaxed);
		wake->chunk = D9__WOKEN_CHUNK(woken);
		wake->fits = wake->worker == D9__WOKEN_WORKER(thread->found);
		wake->left = true;
		wake->told = d9__old_events();
	} else if (!told && D9__WAKE_STATE(word) == D9__WAKE_HELD) {
		wake->ns = atomic_load_explicit(&task->waker_ns, memory_order_relaxed);
		wake->waker = atomic_load_explicit(&task->waker_task, memory_order_relaxed);
		wake->worker = atomic_load_explicit(&task->waker_worker, memory_order_relaxed);
		wake->reason = D9__WAKE_REASON(word);
	}
	atomic_store_explicit(&task->woken, 0, memory_order_relaxed);
	if (D9__WAKE_STATE(word) < D9__WAKE_HELD)
		return told;
	if (word & D9__WAKE_HANDED)
		atomic_fetch_sub_explicit(&loop->handed, 1, memory_order_relaxed);
	/* release: the next filler may overwrite what was read above */
	atomic_store_explicit(&task->wake, D9__WAKE_NONE, memory_order_release);
	return told;
}

/* |wake| was long before |ns|, where its poll begins, or is behind it. */
static __attribute__((noinline, cold)) void settle_odd(const struct d9__thread *thread, const struct d9__task *task,
						       const struct d9_poll *poll, uint64_t ns, struct d9__wake *wake)
{
	const struct d9_callsite *callsite = poll->task.callsite;

	if (wake->ns > ns) {
		wake->ns = ns;
		return;
	}
	if (!wake->ns || wake->reason != D9_WAKE_TIMER)
		return;
	if (!callsite && task)
		callsite = atomic_load_explicit(&task->callsite, memory_order_acquire);
	d9__triggers_late(ns, ns - wake->ns,
			  &(struct d9__trigger_place){
				  .task = task ? atomic_load_explicit(&task->id, memory_order_relaxed) : 0,
				  .loc = d9__callsite_name(callsite),
				  .worker = thread->worker });
}

/* One that no d9_wake() announced: of what the latest wait found. */
static void describe_by_poll(struct d9__thread *thread, const struct d9_poll *poll, uint64_t ns,
			     struct d9__wake *wake)
{
	if (!thread->round_ns) {
		thread->round_ns = ns;
		thread->unpark_stamp = 0;
	}
	wake->ns = thread->round_ns;
	wake->worker = thread->worker;
	wake->reason = poll->reason;
	wake->fits = poll->reason == D9_WAKE_INTERNAL && thread->unpark_stamp && !poll->ready_ns;
}

void d9__wakes_take(struct d9__thread *thread, struct d9__task *task, const struct d9_poll *poll,
		    uint64_t ns, struct d9__wake *wake)
{
	struct d9__early_wake early = d9__early_take(&thread->early, poll->task.key, poll->loop);
	bool woken = task && take_held(thread, task, poll->loop, wake);

	if (!task || (!woken && !wake->ns))
		*wake = (struct d9__wake) { .ns = early.ns,
					    .waker = early.waker,
					    .worker = early.worker,
					    .reason = early.reason };
	/* The wake was only assumed to be a timer; the adapter now tells the real reason. */
	if (wake->reason == D9_WAKE_TIMER && poll->reason)
		wake->reason = poll->reason;
	if (!woken && !wake->ns && (poll->ready_ns || poll->reason))
		describe_by_poll(thread, poll, ns, wake);
	/* A moment of its own has what this thread has woken. */
	if (poll->ready_ns && wake->ns && !wake->left)
		wake->ns = poll->ready_ns;
	/* The kernel's, whichever polls there were. */
	if ((wake->reason == D9_WAKE_FD || wake->reason == D9_WAKE_SIGNAL) && !wake->waker)
		wake->fits = wake->worker == thread->worker;
	if (__builtin_expect(ns - wake->ns > atomic_load_explicit(&d9__triggers_late_ns, memory_order_relaxed), 0))
		settle_odd(thread, task, poll, ns, wake);
}

uint64_t d9__wakes_tell(const struct d9__thread *thread, const struct d9__slot *slot, uint64_t ns,
			struct d9__wake *wake)
{
	uint64_t value = (ns - wake->ns) << 4 | wake->reason;
	uint32_t old = d9__old_events();

	if (!wake->ns || old == D9__OLD_EVENTS || !d9__gate_open(D9__GATE_WAKE) ||
	    (wake->waker && wake->chunk != (slot->stamp & 0xffff)))
		return 0;
	if (wake->reason == D9_WAKE_FD && wake->ns == thread->round_ns &&
	    thread->unpark_stamp == slot->stamp)
		value = D9__WAKE_OF_UNPARK;
	else if (value == D9__WAKE_OF_UNPARK)
		return 0;
	if (!old || wake->told)
		wake->ns = 0;
	return value;
}

/* ---- tasks that stay ready behind their poll, as idle sources do ---- */

static void stays_ready(struct d9__thread *thread, struct d9__task *task, uint64_t ns)
{
	atomic_store_explicit(&task->polled_ns, ns, memory_order_relaxed);
	atomic_store_explicit(&task->woken,
			      D9__WOKEN(d9__self.slot->stamp, thread->worker,
					D9_WAKE_DEFERRED | D9__WOKEN_BY_NONE),
			      memory_order_relaxed);
	if (d9__old_events())
		tell_old(thread, d9__self.slot, task, ns, 0);
}

/* The stamp of the poll that ended last, if nothing was recorded since; else 0. */
static uint64_t latest_end(const struct d9__thread *thread)
{
	struct d9__slot *slot = d9__self.slot;

	return thread && d9__slot_is_real(slot) && thread->shared_ns == slot->last_ns
		       ? thread->shared_ns
		       : 0;
}

void d9__wakes_ready_again(struct d9_loop *loop, uint64_t key)
{
	struct d9__thread *thread = d9__thread_peek();
	const struct d9__cached_task *cached;
	uint64_t ns = latest_end(thread);

	if (!d9__gate_open(D9__GATE_WAKE) || !ns || thread->resume_ns ||
	    thread->odd & D9__ODD_NO_WORKER)
		return;
	cached = d9__task_cache_get(&thread->cache, key);
	if (!cached || cached->loop != loop || !d9__task_is(cached->task, cached->emit.id) ||
	    atomic_load_explicit(&cached->task->spawned, memory_order_relaxed) != thread->epoch ||
	    atomic_load_explicit(&loop->owner, memory_order_relaxed) != thread ||
	    atomic_load_explicit(&cached->task->wakes, memory_order_relaxed))
		return;
	stays_ready(thread, cached->task, ns);
}

/* ---- wakers and cells ---- */

static uint64_t task_of(const struct d9__thread *thread)
{
	return thread ? d9__thread_task(thread) : 0;
}

void d9_waker_self(struct d9_waker *waker)
{
	struct d9__thread *thread = d9__thread_peek();

	waker->task_id = task_of(thread);
	waker->ns = d9__clock_mono_ns();
	waker->worker = worker_of(thread);
}

int d9_wake_cell_fill(struct d9_wake_cell *cell, struct d9_loop *loop)
{
	struct d9__thread *thread = d9__thread_peek();
	uint64_t empty = CELL_EMPTY, word = CELL_FULL;

	if (!d9__gate_open(D9__GATE_WAKE))
		return 0;
	/* acquire: pairs with the release in d9_wake_cell_take() */
	if (!__atomic_compare_exchange_n(&cell->d9__opaque[0], &empty, CELL_FILLING, 0,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return 0;
	if (loop && is_remote(thread, loop)) {
		atomic_fetch_add_explicit(&loop->handed, 1, memory_order_relaxed);
		word |= CELL_HANDED;
	}
	word |= (uint64_t)worker_of(thread) << 8;
	__atomic_store_n(&cell->d9__opaque[1], task_of(thread), __ATOMIC_RELAXED);
	__atomic_store_n(&cell->d9__opaque[2], d9__clock_mono_ns(), __ATOMIC_RELAXED);
	/* release: pairs with the acquire in d9_wake_cell_take() */
	__atomic_store_n(&cell->d9__opaque[0], word, __ATOMIC_RELEASE);
	return 1;
}

int d9_wake_cell_take(struct d9_wake_cell *cell, struct d9_loop *loop, struct d9_waker *waker)
{
	uint64_t word = __atomic_load_n(&cell->d9__opaque[0], __ATOMIC_ACQUIRE);

	if ((word & 0xff) != CELL_FULL)
		return 0;
	waker->task_id = __atomic_load_n(&cell->d9__opaque[1], __ATOMIC_RELAXED);
	waker->ns = __atomic_load_n(&cell->d9__opaque[2], __ATOMIC_RELAXED);
	waker->worker = CELL_WORKER(word);
	__atomic_store_n(&cell->d9__opaque[0], CELL_EMPTY, __ATOMIC_RELEASE);
	if (loop && word & CELL_HANDED)
		atomic_fetch_sub_explicit(&loop->handed, 1, memory_order_relaxed);
	return 1;
}
