/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <dial9/error.h>

#include "base/mapped.h"
#include "base/sanitized.h"
#include "base/time.h"
#include "drain/side_event.h"
#include "record/sampling.h"
#include "ring/clock.h"
#include "ring/gate.h"
#include "ring/slot.h"
#include "sample/cpu_sampler.h"
#include "sample/cpu_signal.h"
#include "sample/cpu_timer.h"
#include "sample/sampled_threads.h"
#include "sample/unwind.h"

#define CREDITED_NS (D9__SECOND_NS / 20) /* of CPU time, at most, to one stack: what ran before is not known */
#define EXPECTED    50u		     /* samples: if none of so many came, the thread does not get its signals */

#define FILTER "a filter of system calls (seccomp), such as containers and systemd have, has to allow it"

_Static_assert(D9__SAMPLED_MAX <= 0x10000, "an index fits below");

/*
 * The state of a sampled thread, by its index.  Made by the flush thread, and never freed: a signal may be on its way.  While
 * |timer| runs, the thread's handler uses what is not marked otherwise.
 */
struct sampled {
	_Atomic(uint32_t) tid; /* 0: no thread is sampled here; a signal may come late */
	_Atomic(int) timer; /* -1: none */
	uint32_t stack_copies; /* of a sample, at most */
	uint32_t checked_tid;	       /* flush thread, like the next two: */
	uint64_t cpu_ns, taken_before; /* at the latest check that found samples */
	uint32_t blocked_tid; /* flush thread, like the next one: who blocks the signal */
	uint64_t blocked_ns; /* when that was first seen */
	_Atomic(bool) stopped; /* by the thread itself, which blocks the signal; it may be sampled again */
	_Atomic(uint32_t) left_tid; /* the thread that did so, until it is sampled again, ... */
	_Atomic(uint64_t) left_ns;  /* ... and the CPU time that it had used by then, and the flush thread has told since */
	struct d9__slot *slot, *sink; /* the thread's own, NULL: it has none; where samples go */
	volatile sig_atomic_t inside;
	_Atomic(uint32_t) owed; /* periods that a new thread had used before it got its timer, which
				   its first sample stands for */
	_Atomic(uint64_t) taken;
	_Atomic(unsigned) newest; /* release: of |names|, the other is for the next name */
	char names[2][16];
	uint64_t pcs[D9__UNWIND_MAX];
	struct d9__unwind_thread unwind;
};

static _Atomic(struct sampled *) all[D9__SAMPLED_MAX];

/* Flush thread. */
static struct {
	pid_t pid;
	int signal; /* 0: none was chosen yet */
	uint32_t hz;
	uint64_t second_ns;
	bool off; /* for good: the program has the signal, or no handler may run any more */
	char said[192];
} self;

static _Atomic(uint32_t) high;	/* records that may have a timer; flush thread writes */
static _Atomic(bool) forbidden; /* no handler may run any more */

/* Threads that no handler may run on. */
#define BARRED_MAX 32
static _Atomic(uint32_t) barred[BARRED_MAX];

/* Counts the calls by which threads block the signal: the flush thread, which looks at one, knows that it may be late. */
static _Atomic(uint32_t) n_blocked;

/* ---- the handler ---- */

static struct sampled *sampled_of(const siginfo_t *info)
{
	uint32_t index = (uint32_t)info->si_value.sival_int & 0xffffu;

	if (!d9__cpu_signal_is_sample(info) || index >= D9__SAMPLED_MAX)
		return NULL;
	return atomic_load_explicit(&all[index], memory_order_relaxed);
}

static uint32_t tid_of(const struct sampled *thread)
{
	return atomic_load_explicit(&thread->tid, memory_order_relaxed);
}

static void set_tid(struct sampled *thread, uint32_t tid)
{
	atomic_store_explicit(&thread->tid, tid, memory_order_relaxed);
}

/* A thread of loops at its end has given its slot back. */
static bool is_whole(const struct sampled *thread)
{
	uint64_t owner;

	if (!thread->slot)
		return true;
	owner = atomic_load_explicit(&thread->slot->owner, memory_order_relaxed);

	return owner == ((uint64_t)D9__SLOT_TAKEN << 32 | tid_of(thread));
}

static void take_sample(struct sampled *thread, const siginfo_t *info, const void *context)
{
	uint32_t periods = 1 + atomic_exchange_explicit(&thread->owed, 0, memory_order_relaxed) +
			   (info->si_overrun > 0 ? (uint32_t)info->si_overrun : 0);
	uint32_t nowhere = periods > thread->stack_copies ? periods - thread->stack_copies : 0;
	struct d9__sample_raw raw = { .worker = thread->slot ? thread->slot->worker : D9__SAMPLE_NO_WORKER,
				      .tid = tid_of(thread) };
	struct d9__registers registers;
	struct d9__unwound unwound;

	d9__registers_of(&registers, context);
	unwound = d9__unwind(&thread->unwind, &registers, thread->pcs, D9__UNWIND_MAX);
	raw.copies = periods - nowhere;
	raw.nowhere = nowhere < D9__SAMPLE_COPIES_MAX ? nowhere : D9__SAMPLE_COPIES_MAX;
	raw.truncated = unwound.truncated;
	raw.n = (uint16_t)unwound.n;
	memcpy(raw.thread_name, thread->names[atomic_load_explicit(&thread->newest, memory_order_acquire)],
	       sizeof(raw.thread_name));
	d9__sample_leave(thread->sink, &raw, thread->pcs, d9__clock_mono_ns());
	atomic_fetch_add_explicit(&thread->taken, periods, memory_order_relaxed);
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
	int saved = errno;
	struct sampled *thread = sampled_of(info);

	D9__TSAN_ACQUIRE(thread);
	if (!thread) {
		d9__cpu_signal_pass_on(signal);
	} else if (!thread->inside && d9__gate_open(D9__GATE_EVENT) && is_whole(thread)) {
		thread->inside = 1;
		atomic_signal_fence(memory_order_seq_cst);
		take_sample(thread, info, context);
		atomic_signal_fence(memory_order_seq_cst);
		thread->inside = 0;
	}
	errno = saved;
}

/* ---- threads ---- */

static void say(const char *state)
{
	snprintf(self.said, sizeof(self.said), "%s", state);
}

static void say_error(const char *what, int err)
{
	char text[sizeof(self.said)];

	snprintf(text, sizeof(text), "off: %s: %s%s", what, d9_strerror(err),
		 err == -EPERM || err == -ENOSYS ? "; " FILTER : "");
	say(text);
}

static void say_left_out(void)
{
	char text[sizeof(self.said)];

	snprintf(text, sizeof(text), "on; but %u threads are left out: there are more than %u", d9__sampled_left_out(),
		 (unsigned)(D9__SAMPLED_MAX - D9__SLOT_COUNT));
	say(text);
}

static struct sampled *record_of(uint32_t index)
{
	struct sampled *thread = atomic_load_explicit(&all[index], memory_order_relaxed);

	if (thread)
		return thread;
	thread = d9__map(sizeof(*thread));
	if (!thread)
		return NULL;
	atomic_init(&thread->timer, -1);
	atomic_store_explicit(&all[index], thread, memory_order_release);
	return thread;
}

static void set_name(struct sampled *thread, const char *name)
{
	unsigned newest = atomic_load_explicit(&thread->newest, memory_order_relaxed);

	if (!strcmp(thread->names[newest], name))
		return;
	snprintf(thread->names[!newest], sizeof(thread->names[0]), "%s", name);
	atomic_store_explicit(&thread->newest, !newest, memory_order_release);
}

static void stop_timer(struct sampled *thread)
{
	int timer = atomic_exchange_explicit(&thread->timer, -1, memory_order_acq_rel);

	if (timer >= 0)
		d9__cpu_timer_stop(timer);
}

static void stop_all(void)
{
	for (uint32_t i = 0; i < D9__SAMPLED_MAX; i++) {
		struct sampled *thread = atomic_load_explicit(&all[i], memory_order_acquire);

		if (thread)
			stop_timer(thread);
	}
}

/* A sample without a stack of |periods| that the thread used: of those it is known how many they
 * were, not where they went. */
static void tell_nowhere(struct sampled *thread, uint32_t tid, uint64_t periods)
{
	struct d9__sample_raw raw = { .worker = D9__SAMPLE_NO_WORKER, .tid = tid };

	if (thread->slot)
		raw.worker = __atomic_load_n(&thread->slot->worker, __ATOMIC_RELAXED);
	raw.nowhere = periods < D9__SAMPLE_COPIES_MAX ? (uint32_t)periods : D9__SAMPLE_COPIES_MAX;
	snprintf(raw.thread_name, sizeof(raw.thread_name), "%s", thread->names[thread->newest]);
	d9__sample_leave(thread->sink, &raw, thread->pcs, d9__clock_mono_ns());
}

static void let_go(struct sampled *thread)
{
	uint32_t owed;

	stop_timer(thread);
	owed = atomic_exchange_explicit(&thread->owed, 0, memory_order_relaxed);
	if (owed && tid_of(thread))
		tell_nowhere(thread, tid_of(thread), owed);
	set_tid(thread, 0);
}

static void say_blocked(uint32_t tid)
{
	char text[96];

	snprintf(text, sizeof(text), "on; but thread %u blocks the signal", tid);
	say(text);
}

/*
 * A sanitizer's runtime blocks signals too while it starts a thread, so who does it for a moment is not told; but a program
 * that ends soon, and has no other thread, has told why it has no samples.
 */
static void found_blocked(struct sampled *thread, uint32_t tid)
{
	uint64_t now_ns = d9__clock_mono_ns();

	if (thread->blocked_tid != tid) {
		thread->blocked_tid = tid;
		thread->blocked_ns = now_ns;
	}
	if (!self.said[0] || now_ns - thread->blocked_ns >= D9__SECOND_NS / 2)
		say_blocked(tid);
}

static bool is_barred(uint32_t tid)
{
	for (unsigned i = 0; i < BARRED_MAX; i++)
		if (atomic_load(&barred[i]) == tid)
			return true;
	return false;
}

/* The handler's data of the thread |tid|. */
static void prepare(struct sampled *thread, uint32_t index, uint32_t tid, struct d9__slot *own)
{
	uint64_t period_ns = D9__SECOND_NS / self.hz;

	thread->slot = d9__sampled_slot(index);
	thread->sink = own;
	thread->stack_copies = period_ns < CREDITED_NS ? (uint32_t)(CREDITED_NS / period_ns) : 1;
	thread->unwind.low = thread->slot ? atomic_load_explicit(&d9__slot_stacks[index].low, memory_order_relaxed) : 0;
	thread->unwind.high = thread->slot ? atomic_load_explicit(&d9__slot_stacks[index].high, memory_order_relaxed) : 0;
	thread->unwind.pid = self.pid;
	set_name(thread, d9__sampled_name(index));
	set_tid(thread, tid);
	if (atomic_load_explicit(&high, memory_order_relaxed) <= index)
		atomic_store(&high, index + 1);
}

/*
 * How much more CPU time the thread may use until its first sample: to anywhere in a period, else
 * threads that live for less than some periods have too few samples.  A new thread's periods begin
 * at its start; what it has used of them is owed.
 */
static uint64_t first_of(struct sampled *thread, uint32_t index, uint64_t period_ns)
{
	uint64_t first_ns = 1 + (period_ns * (tid_of(thread) * 0x9e3779b1u) >> 32);
	uint64_t used_ns = d9__sampled_is_new(index) ? d9__cpu_timer_used_ns(tid_of(thread)) : 0;
	uint64_t owed = used_ns < first_ns ? 0 : 1 + (used_ns - first_ns) / period_ns;

	atomic_store_explicit(&thread->owed,
			      owed < D9__SAMPLE_COPIES_MAX ? (uint32_t)owed : D9__SAMPLE_COPIES_MAX,
			      memory_order_relaxed);
	return first_ns + owed * period_ns - used_ns;
}

/* The program does not take the signal away meanwhile: what comes by it before would meet the program's action. */
static int start_timer(struct sampled *thread, uint32_t index)
{
	uint64_t period_ns = D9__SECOND_NS / self.hz, first_ns = first_of(thread, index, period_ns);
	int timer = -EINVAL;

	/* The first signal comes behind this; a checker of threads knows nothing of timers. */
	D9__TSAN_RELEASE(thread);
	d9__cpu_signal_lock();
	if (d9__cpu_signal_is(self.signal) && !is_barred(tid_of(thread)))
		timer = d9__cpu_timer_start(tid_of(thread), self.signal,
					    (int)(D9__CPU_SIGNAL_MAGIC | index), first_ns,
					    period_ns);
	if (timer >= 0)
		atomic_store(&thread->timer, timer);
	d9__cpu_signal_unlock();
	return timer;
}

/* Of the CPU time of a thread that has blocked the signal it is known how much it was, not where it went. */
static void tell_blocked(struct sampled *thread, uint32_t tid)
{
	uint64_t left_ns = atomic_load_explicit(&thread->left_ns, memory_order_relaxed);
	uint64_t used_ns, periods, period_ns = D9__SECOND_NS / self.hz;

	if (atomic_load(&thread->left_tid) != tid)
		return;
	used_ns = d9__cpu_timer_used_ns(tid);
	periods = used_ns > left_ns ? (used_ns - left_ns) / period_ns : 0;
	if (!periods)
		return;
	tell_nowhere(thread, tid, periods);
	atomic_fetch_add_explicit(&thread->left_ns, periods * period_ns, memory_order_relaxed);
}

static void sample_thread(uint32_t index, uint32_t tid, struct d9__slot *own)
{
	struct sampled *thread = record_of(index);
	uint32_t before = atomic_load(&n_blocked);
	int timer;

	if (!thread)
		return;
	let_go(thread);
	if (is_barred(tid))
		return;
	/* The handler could only make it by system calls; without one this thread is tried again at the next tick. */
	if (!d9__side_make(own))
		return;
	prepare(thread, index, tid, own);
	/* It may read its signals by signalfd(2) or sigwait(3), and ours with them.  The next tick looks again. */
	if (d9__cpu_timer_is_blocked(tid, self.signal)) {
		tell_blocked(thread, tid);
		let_go(thread);
		found_blocked(thread, tid);
		return;
	}
	tell_blocked(thread, tid);
	atomic_store(&thread->left_tid, 0);
	thread->blocked_tid = 0;
	timer = start_timer(thread, index);
	if (timer >= 0)
		say("on");
	else if (timer == -EAGAIN)
		say("off: no more signals may be queued (ulimit -i)");
	else if (timer != -EINVAL && timer != -ESRCH)
		say_error("timer_create()", timer);
	/* d9__cpu_sampler_end() may not have seen it, nor d9__cpu_sampler_block(). */
	if (atomic_load(&forbidden) || (atomic_load(&n_blocked) != before && d9__cpu_timer_is_blocked(tid, self.signal)))
		let_go(thread);
}

static void follow_threads(struct d9__slot *own)
{
	for (uint32_t i = 0; i < d9__sampled_high(); i++) {
		struct sampled *thread = atomic_load_explicit(&all[i], memory_order_relaxed);
		uint32_t tid = d9__sampled_tid(i);

		if (tid && (!thread || tid_of(thread) != tid ||
			    atomic_exchange_explicit(&thread->stopped, false, memory_order_relaxed)))
			sample_thread(i, tid, own);
		else if (tid)
			set_name(thread, d9__sampled_name(i));
		else if (thread && tid_of(thread))
			let_go(thread);
	}
}

/* Whether |thread| has used CPU time for EXPECTED samples since the latest check, and none came. */
static bool gets_none(struct sampled *thread)
{
	uint64_t used_ns = d9__cpu_timer_used_ns(tid_of(thread));
	uint64_t taken = atomic_load_explicit(&thread->taken, memory_order_relaxed);
	bool none = thread->taken_before == taken;

	if (tid_of(thread) != thread->checked_tid || !none) {
		thread->checked_tid = tid_of(thread);
		thread->cpu_ns = used_ns;
		thread->taken_before = taken;
		return false;
	}
	return used_ns > thread->cpu_ns && used_ns - thread->cpu_ns > EXPECTED * (D9__SECOND_NS / self.hz);
}

/* Whether the kernel refused to show a stack whose bounds are not known. */
static bool are_cut(void)
{
	for (uint32_t i = 0; i < atomic_load_explicit(&high, memory_order_relaxed); i++) {
		const struct sampled *thread = atomic_load_explicit(&all[i], memory_order_relaxed);

		if (thread && atomic_load_explicit(&thread->unwind.refused, memory_order_relaxed))
			return true;
	}
	return false;
}

/* A signal that a thread blocks waits, and then stands for all that it missed; but who blocks it for ever is not seen. */
static void check_signals(void)
{
	for (uint32_t i = 0; i < atomic_load_explicit(&high, memory_order_relaxed); i++) {
		struct sampled *thread = atomic_load_explicit(&all[i], memory_order_relaxed);

		if (!thread || atomic_load_explicit(&thread->timer, memory_order_relaxed) < 0 || !gets_none(thread))
			continue;
		say_blocked(tid_of(thread));
		return;
	}
	if (are_cut())
		say("on; but stacks of threads without a loop have one frame, because process_vm_readv() is refused; " FILTER);
	else if (d9__sampled_left_out())
		say_left_out();
	else if (!strncmp(self.said, "on;", 3))
		say("on");
}

/* ---- ticks ---- */

void d9__cpu_sampler_forget(void)
{
	for (uint32_t i = 0; i < atomic_load_explicit(&high, memory_order_relaxed); i++) {
		struct sampled *thread = atomic_load_explicit(&all[i], memory_order_relaxed);

		if (thread) {
			atomic_store_explicit(&thread->timer, -1, memory_order_relaxed);
			set_tid(thread, 0);
			/* Its thread may have been in the handler, and is not here. */
			thread->inside = 0;
			thread->unwind.version = 0;
		}
	}
	atomic_store(&high, 0);
	self.pid = getpid();
	if (!d9__cpu_signal_fork_child())
		self.signal = 0;
}

/* The program may have taken it in calls that are seen: then there is another one. */
static bool take_signal(void)
{
	self.signal = d9__cpu_signal_take(on_signal, stop_all);
	if (self.signal > 0)
		return true;
	say("off: the program uses the signals that samples could come by");
	self.signal = 0;
	self.off = true;
	return false;
}

/* Whether there is a signal for us. */
static bool has_signal(void)
{
	bool given = false;

	if (self.off)
		return false;
	if (atomic_load(&forbidden)) {
		say("off: the program limited its system calls (seccomp), and returning from a signal is one");
		self.off = true;
		return false;
	}
	if (!self.signal || d9__cpu_signal_is_ours(self.signal, &given))
		return self.signal || take_signal();
	if (given) {
		d9__cpu_sampler_rest();
		return take_signal();
	}
	say("off: the program has taken over the signal");
	self.off = true;
	return false;
}

static void once_a_second(void)
{
	uint64_t now_ns = d9__clock_mono_ns();

	/* A program that ends within a second has told what was refused. */
	if (now_ns - self.second_ns < D9__SECOND_NS && !(!strcmp(self.said, "on") && are_cut()))
		return;
	self.second_ns = now_ns;
	check_signals();
}

void d9__cpu_sampler_tick(struct d9__slot *own, uint32_t hz, char *state, size_t size)
{
	self.hz = hz;
	once_a_second();
	if (has_signal())
		follow_threads(own);
	else
		d9__cpu_sampler_rest();
	snprintf(state, size, "%s", self.said);
}

void d9__cpu_sampler_rest(void)
{
	for (uint32_t i = 0; i < atomic_load_explicit(&high, memory_order_relaxed); i++) {
		struct sampled *thread = atomic_load_explicit(&all[i], memory_order_relaxed);

		if (thread)
			let_go(thread);
	}
	atomic_store(&high, 0);
}

void d9__cpu_sampler_end(void)
{
	atomic_store(&forbidden, true);
	stop_all();
}

/* The record of the thread |tid|, or NULL. */
static struct sampled *find(uint32_t tid)
{
	for (uint32_t i = 0; i < atomic_load(&high); i++) {
		struct sampled *thread = atomic_load_explicit(&all[i], memory_order_acquire);

		if (thread && tid_of(thread) == tid)
			return thread;
	}
	return NULL;
}

void d9__cpu_sampler_leave(void)
{
	int saved = errno;
	uint32_t tid = atomic_load(&high) ? (uint32_t)syscall(SYS_gettid) : 0;
	struct sampled *thread = tid ? find(tid) : NULL;

	if (thread && atomic_load(&thread->timer) >= 0) {
		stop_timer(thread);
		atomic_store(&thread->left_ns, d9__cpu_timer_used_ns(tid));
		atomic_store(&thread->left_tid, tid);
		atomic_store(&thread->stopped, true);
	}
	errno = saved;
}

/* One that no place is left for ends sampling. */
static void put_barred(uint32_t from, uint32_t to)
{
	for (unsigned i = 0; i < BARRED_MAX; i++) {
		uint32_t found = from;

		if (atomic_compare_exchange_strong(&barred[i], &found, to))
			return;
	}
	if (to)
		d9__cpu_sampler_end();
}

/* Nobody gives it a timer meanwhile. */
void d9__cpu_sampler_bar(bool bar)
{
	uint32_t tid = (uint32_t)syscall(SYS_gettid);
	sigset_t signals, before;

	sigfillset(&signals);
	pthread_sigmask(SIG_SETMASK, &signals, &before);
	d9__cpu_signal_lock();
	put_barred(bar ? 0 : tid, bar ? tid : 0);
	d9__cpu_sampler_leave();
	d9__cpu_signal_unlock();
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void d9__cpu_sampler_blocked(void)
{
	atomic_fetch_add(&n_blocked, 1);
	d9__cpu_sampler_leave();
}
