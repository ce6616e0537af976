/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call: what a wrapper does around a call of the C library that may block.
 *
 * Where no loop waits for the thread that is one look; else two stamps.  A wrapper keeps nothing
 * between them but these locals: a thread that is cancelled in the call, or left by a longjmp() out
 * of a signal handler, leaves nothing behind. Async-signal-safe, as the functions are that are
 * wrapped.
 */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <dial9/export.h>

#include "loop/adapter.h"
#include "loop/thread_state.h"
#include "record/recorder.h"
#include "record/sampling.h"
#include "ring/clock.h"
#include "ring/gate.h"
#include "ring/slot.h"

/* The function behind a wrapper.  The hook engine may write the same address again while other
 * threads read it. */
#define D9__BLOCK_REAL(word) __atomic_load_n(&(word), __ATOMIC_RELAXED)

/*
 * True if this thread holds a loop up: a callback runs, and not the wait of a loop that it runs; or
 * the thread has left the loop that it goes round by itself.
 */
static inline bool d9__block_is_inside(void)
{
	const struct d9__thread *thread = d9__self.thread;

	if (__builtin_expect(!d9__thread_exists(thread), 1))
		return false;
	if (thread->n_frames)
		return thread->stage != D9__STAGE_BACKEND;
	return thread->stage == D9__STAGE_OUTSIDE && thread->between.left_ns;
}

/* A stamp that leaves the slot alone: a vfork() child shares it with its parent. */
static inline uint64_t d9__block_now(const struct d9__slot *slot)
{
	uint64_t base_ns, ticks;

	if (__builtin_expect(slot->clock != D9__CLOCK_TICKS, 0))
		return d9__clock_mono_ns();
	base_ns = slot->base_ns;
	ticks = d9__clock_ticks() - slot->base_ticks;
	/* A signal handler may have replaced the conversion meanwhile. */
	if (__builtin_expect(
		    ticks >= atomic_load_explicit(&d9__clock_hot.valid, memory_order_relaxed) ||
			    slot->base_ns != base_ns,
		    0))
		return d9__clock_mono_ns();
	return base_ns + (ticks * slot->mult >> D9__CLOCK_SHIFT);
}

/* Start the recorder, if it waits for a call of the program.  Not in forked children, most of which
 * call a few and end. */
static inline void d9__block_start_pending(void)
{
	if (__builtin_expect(atomic_load_explicit(&d9__recorder_pending, memory_order_relaxed) ==
				     D9__PENDING_START,
			     0))
		d9__recorder_do_pending();
}

/* The stamp before a call that is timed; 0: it is not. */
static inline uint64_t d9__block_begin(void)
{
	const struct d9__slot *slot;

	d9__block_start_pending();
	if (__builtin_expect(!d9__block_is_inside(), 1))
		return 0;
	slot = d9__self.slot;
	if (!d9__slot_is_real(slot) || !d9__gate_open(D9__GATE_LOOP) ||
	    !atomic_load_explicit(&d9__sampling.blocking, memory_order_relaxed))
		return 0;
	return d9__block_now(slot);
}

/* True if the call that is over is to be counted.  Threads without a loop do not count. */
static inline bool d9__block_counts(void)
{
	return d9__thread_exists(d9__self.thread) &&
	       atomic_load_explicit(&d9__sampling.io, memory_order_relaxed);
}

/* How long the call took that began at |begin_ns|, if that is to be told; else 0. */
static inline uint64_t d9__block_long_ns(uint64_t begin_ns)
{
	const struct d9__slot *slot = d9__self.slot;
	uint64_t ns;

	if (__builtin_expect(!d9__slot_is_real(slot), 0))
		return 0;
	ns = d9__block_now(slot) - begin_ns;
	return __builtin_expect(ns >= D9__BLOCKING_NS && ns <= INT64_MAX, 0) ? ns : 0;
}

/* The call that began at |begin_ns| is over: tell it if it was long. */
#define D9__BLOCK_END(begin_ns_, function_, real_, fd_)                                            \
	do {                                                                                       \
		uint64_t long_ns_ = d9__block_long_ns(begin_ns_);                                  \
                                                                                                   \
		if (__builtin_expect(long_ns_ != 0, 0))                                            \
			d9__block_tell(&(struct d9__blocked_call) {                                \
				.function = (function_),                                           \
				.real = (const void *)(real_),                                     \
				.caller = __builtin_return_address(0),                             \
				.fd = (fd_),                                                       \
				.begin_ns = (begin_ns_),                                           \
				.ns = long_ns_,                                                    \
			});                                                                        \
	} while (0)

/* A call of |label|, by the name |function|; |fd|: its descriptor, or -1. */
#define D9__BLOCK_CALL(type, function, label, fd, params, ...)                                     \
	static type(*real_##function) params;                                                      \
                                                                                                   \
	static type hook_##function params                                                         \
	{                                                                                          \
		uint64_t begin_ns = d9__block_begin();                                             \
		type result;                                                                       \
                                                                                                   \
		if (__builtin_expect(!begin_ns, 1))                                                \
			return D9__BLOCK_REAL(real_##function)(__VA_ARGS__);                       \
		result = D9__BLOCK_REAL(real_##function)(__VA_ARGS__);                             \
		D9__BLOCK_END(begin_ns, label, D9__BLOCK_REAL(real_##function), fd);               \
		return result;                                                                     \
	}
