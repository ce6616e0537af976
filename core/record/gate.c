/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record/gate.h"
#include "record/span_filter.h"

static _Atomic(uint32_t) closed;
static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER; /* protects the exchange below */

_Atomic(uint32_t) *_Atomic d9__gate = &closed;
_Atomic(int) d9__log_bridge = -1;

int d9__gate_init(void)
{
	int saved = errno, err = 0;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	pthread_mutex_lock(&init_lock);
	if (atomic_load(&d9__gate) == &closed) {
		void *p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED) {
			err = -ENOMEM;
		} else {
			/* Refused before Linux 4.14: then the atfork handler alone does it. */
			madvise(p, page, MADV_WIPEONFORK);
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
	static _Atomic(uint32_t) openings;
	_Atomic(uint32_t) *gate = atomic_load(&d9__gate);

	if (gate == &closed)
		return;
	if (bits && !d9__gate_bits())
		atomic_fetch_add_explicit(&openings, 1, memory_order_relaxed);
	bits |= atomic_load_explicit(&openings, memory_order_relaxed) << 8;
	atomic_store_explicit(gate, bits, memory_order_relaxed);
	d9__span_filter_follow(bits & D9__GATE_EVENT);
}
