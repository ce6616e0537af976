/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/sandbox.h"
#include "base/span_filter.h"
#include "ring/gate.h"

/* Closed, and not 0 as of a page that was wiped: openings are counted from 1. */
#define SHUT UINT32_C(0x100)

/* Words of the page. */
enum word { GATE, OWNED };

static _Atomic(uint32_t) closed;
static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER; /* protects the exchange below */

_Atomic(uint32_t) *_Atomic d9__gate = &closed;
_Atomic(int) d9__log_bridge = -1;
_Atomic(bool) d9__gate_running;
_Atomic(pid_t) d9__gate_owner;

/* Of a child with a recorder to come: its page was wiped. */
static void gate_own(_Atomic(uint32_t) *gate)
{
	uint32_t wiped = 0;

	atomic_store_explicit(&gate[OWNED], 1, memory_order_relaxed);
	atomic_compare_exchange_strong_explicit(&gate[GATE], &wiped, SHUT, memory_order_relaxed,
						memory_order_relaxed);
}

bool d9__gate_is_ours(void)
{
	_Atomic(uint32_t) *gate = atomic_load_explicit(&d9__gate, memory_order_relaxed);

	return gate == &closed || atomic_load_explicit(&gate[OWNED], memory_order_relaxed);
}

bool d9__gate_disown(void)
{
	_Atomic(uint32_t) *gate = atomic_load_explicit(&d9__gate, memory_order_relaxed);
	uint32_t wiped = 0;

	return !d9__gate_is_ours() &&
	       atomic_compare_exchange_strong_explicit(&gate[GATE], &wiped, SHUT, memory_order_relaxed,
						       memory_order_relaxed);
}

bool d9__gate_has_recorder(void)
{
	if (!atomic_load_explicit(&d9__gate_running, memory_order_acquire))
		return false;
	if (d9__sandbox_is_shut())
		return d9__gate_is_ours();
	return atomic_load_explicit(&d9__gate_owner, memory_order_relaxed) == getpid();
}

int d9__gate_init(void)
{
	int saved = errno, err = 0;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	pthread_mutex_lock(&init_lock);
	if (atomic_load(&d9__gate) != &closed) {
		gate_own(atomic_load(&d9__gate));
	} else {
		void *p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED) {
			err = -ENOMEM;
		} else {
			/* Refused before Linux 4.14: then the atfork handler alone does it. */
			madvise(p, page, MADV_WIPEONFORK);
			((_Atomic(uint32_t) *)p)[OWNED] = 1;
			((_Atomic(uint32_t) *)p)[GATE] = SHUT;
			D9__TSAN_RELEASE(&d9__gate);
			atomic_store(&d9__gate, (_Atomic(uint32_t) *)p);
		}
	}
	pthread_mutex_unlock(&init_lock);
	errno = saved;
	return err;
}

void d9__gate_set(uint32_t bits)
{
	static _Atomic(uint32_t) openings = SHUT >> 8;
	_Atomic(uint32_t) *gate = atomic_load(&d9__gate);

	if (gate == &closed)
		return;
	if (bits && !d9__gate_bits())
		atomic_fetch_add_explicit(&openings, 1, memory_order_relaxed);
	bits |= atomic_load_explicit(&openings, memory_order_relaxed) << 8;
	atomic_store_explicit(&gate[OWNED], 1, memory_order_relaxed);
	atomic_store_explicit(&gate[GATE], bits, memory_order_relaxed);
	d9__span_filter_follow(bits & D9__GATE_EVENT);
}
