/* SPDX-License-Identifier: Apache-2.0 */
/* Spin: a lock for a few instructions.  Nothing is called while one is held. */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#if defined(__x86_64__) || defined(__i386__)
#define D9__PAUSE() __builtin_ia32_pause()
#else
#define D9__PAUSE() atomic_signal_fence(memory_order_seq_cst)
#endif

#define D9__SPIN_TRIES 4096 /* some 100 us: longer than any holder that is not preempted */

struct d9__spin {
	_Atomic(bool) held;
};

static inline bool d9__spin_once(struct d9__spin *spin)
{
	/* acquire: pairs with the release of the holder before */
	return !atomic_load_explicit(&spin->held, memory_order_relaxed) &&
	       !atomic_exchange_explicit(&spin->held, true, memory_order_acquire);
}

/* Bounded: for hooks, which must not wait for a holder that lost its CPU. */
static inline bool d9__spin_try(struct d9__spin *spin)
{
	for (unsigned i = 0; i < D9__SPIN_TRIES; i++) {
		if (d9__spin_once(spin))
			return true;
		D9__PAUSE();
	}
	return false;
}

/* For those that may wait.  Sleeps, since yielding does not let a holder of lower priority run. */
static inline void d9__spin_lock(struct d9__spin *spin)
{
	static const struct timespec pause = { 0, 20000 };

	while (!d9__spin_try(spin))
		nanosleep(&pause, NULL);
}

static inline bool d9__spin_take(struct d9__spin *spin, bool may_wait)
{
	if (!may_wait)
		return d9__spin_try(spin);
	d9__spin_lock(spin);
	return true;
}

static inline void d9__spin_unlock(struct d9__spin *spin)
{
	atomic_store_explicit(&spin->held, false, memory_order_release);
}
