/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdatomic.h>

#include "ring/silence.h"

/* One for each slot. */
static struct {
	_Atomic(uint64_t) before_ns, after_ns;
} silences[D9__SLOT_COUNT];

/* Slots lie side by side, so that these are places of their own. */
static unsigned place_of(const struct d9__slot *slot)
{
	return (unsigned)((uintptr_t)slot / sizeof(*slot) % D9__SLOT_COUNT);
}

void d9__silence_end(const struct d9__slot *slot, uint64_t ns)
{
	unsigned i = place_of(slot);

	atomic_store_explicit(&silences[i].before_ns, slot->last_ns, memory_order_relaxed);
	/* release: who sees this sees the one above */
	atomic_store_explicit(&silences[i].after_ns, ns, memory_order_release);
}

struct d9__silence d9__silence_of(const struct d9__slot *slot)
{
	unsigned i = place_of(slot);
	struct d9__silence silence;

	silence.after_ns = atomic_load_explicit(&silences[i].after_ns, memory_order_acquire);
	silence.before_ns = atomic_load_explicit(&silences[i].before_ns, memory_order_relaxed);
	return silence;
}
