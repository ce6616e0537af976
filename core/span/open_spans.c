/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "span/open_spans.h"

#include "base/span_filter.h"
#include "ring/slot.h"

/* The kernel gives memory only to the pages of it that a thread has written. */
struct d9__open_spans d9__open_spans_all[D9__SLOT_COUNT];

static void tell(const struct d9__open_span *place, uint32_t epoch, d9__living_span_fn fn,
		 void *arg)
{
	struct d9__living_span span = { .id = atomic_load_explicit(&place->id,
								   memory_order_acquire) };

	if (!span.id || atomic_load_explicit(&place->epoch, memory_order_relaxed) != epoch)
		return;
	/* acquire: pairs with d9__open_span_add(); who reads a field of the next span finds another |id| below */
	span.start_ns = atomic_load_explicit(&place->start_ns, memory_order_acquire);
	span.parent = atomic_load_explicit(&place->parent, memory_order_acquire);
	span.name = atomic_load_explicit(&place->name, memory_order_acquire);
	span.origin = atomic_load_explicit(&place->origin, memory_order_acquire);
	if (atomic_load_explicit(&place->id, memory_order_relaxed) == span.id)
		fn(arg, &span);
}

static void each_open(d9__living_span_fn fn, void *arg)
{
	uint32_t epoch = atomic_load_explicit(&d9__span_epoch, memory_order_relaxed);

	for (uint32_t i = 0; i < d9__slot_high(); i++) {
		if (!atomic_load_explicit(&d9__open_spans_all[i].used, memory_order_relaxed))
			continue;
		for (uint32_t k = 0; k < D9__OPEN_SPANS; k++)
			tell(&d9__open_spans_all[i].places[k], epoch, fn, arg);
	}
}

void d9__open_spans_start(void)
{
	d9__living_tasks_provide_spans(each_open);
}
