/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/sandbox.h"
#include "base/time.h"
#include "record/flush.h"
#include "record/flush_wait.h"
#include "record/pace.h"
#include "record/sampling.h"
#include "ring/ring_file.h"

#define WAITING_SAMPLES 10

static _Atomic(int) sleeping; /* exchange: at most one wake-up per sleep */
static _Atomic(int) resting;  /* the same of a long sleep, from which loops that wake rouse it */

static long futex(_Atomic(uint32_t) *word, int op, uint32_t value, const struct timespec *timeout)
{
	return syscall(SYS_futex, word, op, value, timeout, NULL, 0);
}

void d9__flush_wake(void)
{
	int saved = errno;

	if (!d9__ring.base || d9__sandbox_is_shut())
		return;
	atomic_fetch_add_explicit(&d9__ring.control->futex, 1, memory_order_release);
	futex(&d9__ring.control->futex, FUTEX_WAKE, 1, NULL);
	errno = saved;
}

void d9__flush_wake_once(void)
{
	if (atomic_exchange_explicit(&sleeping, 0, memory_order_acq_rel))
		d9__flush_wake();
}

void d9__flush_rouse(void)
{
	if (atomic_exchange_explicit(&resting, 0, memory_order_acq_rel))
		d9__flush_wake();
}

uint32_t d9__flush_wait_seen(void)
{
	return atomic_load_explicit(&d9__ring.control->futex, memory_order_acquire);
}

void d9__flush_wait(uint32_t seen, uint64_t wait_ns)
{
	const struct timespec timeout = d9__timespec_of(wait_ns);

	if (atomic_load_explicit(&d9__flush.stop, memory_order_acquire))
		return;
	atomic_store_explicit(&sleeping, 1, memory_order_release);
	futex(&d9__ring.control->futex, FUTEX_WAIT, seen, &timeout);
	atomic_store_explicit(&sleeping, 0, memory_order_release);
}

uint64_t d9__flush_wait_most(bool active)
{
	uint32_t hz = atomic_load_explicit(&d9__sampling.cpu_hz, memory_order_relaxed);

	if (!hz ||
	    !(active || atomic_load_explicit(&d9__sampling.all_threads, memory_order_relaxed)))
		return UINT64_MAX;
	return WAITING_SAMPLES * D9__SECOND_NS / hz;
}

uint64_t d9__flush_wait_long(uint32_t seen, uint64_t wait_ns)
{
	if (wait_ns <= D9__PACE_TICK_NS) {
		wait_ns = wait_ns < D9__MS_NS ? D9__MS_NS : wait_ns;
		d9__flush_wait(seen, wait_ns);
		return wait_ns;
	}
	atomic_store_explicit(&resting, 1, memory_order_release);
	d9__flush_wait(seen, wait_ns);
	/* Roused: by then it is known which call is a long one. */
	if (!atomic_exchange_explicit(&resting, 0, memory_order_acq_rel))
		d9__flush_wait(d9__flush_wait_seen(), D9__PACE_LOOK_NS);
	return wait_ns + D9__PACE_LOOK_NS;
}

void d9__flush_wait_fork_child(void)
{
	atomic_store_explicit(&sleeping, 0, memory_order_relaxed);
}
