/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "record/ring_file.h"
#include "record/sampling.h"

struct d9__sampling d9__sampling;
struct d9__slot_stack d9__slot_stacks[D9__SLOT_COUNT];

void d9__sampling_set_memory(uint64_t rate, bool live_set, uint64_t seed)
{
	atomic_store_explicit(&d9__sampling.memory_live_set, live_set, memory_order_relaxed);
	atomic_store_explicit(&d9__sampling.memory_seed, seed, memory_order_relaxed);
	atomic_store_explicit(&d9__sampling.memory_rate, rate, memory_order_relaxed);
}
