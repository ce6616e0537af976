/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdatomic.h>
#include <stddef.h>

#include "record/source.h"

#define TICKS_MAX 32

/* Lists only grow, at their head: release by who adds, acquire by the flush thread. */
static _Atomic(struct d9__source *) sources;
static _Atomic(void (*)(void)) ticks[TICKS_MAX];

void d9__source_add(struct d9__source *source)
{
	struct d9__source *head = atomic_load_explicit(&sources, memory_order_acquire);

	for (struct d9__source *s = head; s; s = s->next)
		if (s == source)
			return;
	do
		source->next = head;
	while (!atomic_compare_exchange_weak_explicit(&sources, &head, source,
						      memory_order_release, memory_order_acquire));
}

void d9__tick_add(void (*fn)(void))
{
	for (size_t i = 0; i < TICKS_MAX; i++) {
		void (*none)(void) = NULL;

		if (atomic_compare_exchange_strong_explicit(&ticks[i], &none, fn,
							    memory_order_acq_rel,
							    memory_order_acquire) ||
		    none == fn)
			return;
	}
}

static _Atomic(void (*)(void)) on_open_call;

void d9__open_call_add(void (*fn)(void))
{
	atomic_store_explicit(&on_open_call, fn, memory_order_release);
}

void d9__open_call_run(void)
{
	void (*fn)(void) = atomic_load_explicit(&on_open_call, memory_order_acquire);

	if (fn)
		fn();
}

uint64_t d9__sources_run(struct d9__slot *slot, uint64_t now_ns, uint64_t tick_ns)
{
	uint64_t next = UINT64_MAX;

	for (struct d9__source *s = atomic_load_explicit(&sources, memory_order_acquire); s;
	     s = s->next) {
		uint64_t period_ns = atomic_load_explicit(&s->period_ns, memory_order_relaxed);

		if (!period_ns)
			continue;
		if (now_ns >= s->due_ns) {
			s->sample(s, slot, now_ns);
			/* Keep the raster unless a whole period was missed. */
			s->due_ns += period_ns;
			if (s->due_ns <= now_ns)
				s->due_ns = now_ns + period_ns;
		}
		if (s->due_ns < next && period_ns < tick_ns)
			next = s->due_ns;
	}
	return next;
}

void d9__sources_end(struct d9__slot *slot, uint64_t now_ns)
{
	for (struct d9__source *s = atomic_load_explicit(&sources, memory_order_acquire); s; s = s->next)
		if (atomic_load_explicit(&s->period_ns, memory_order_relaxed))
			s->sample(s, slot, now_ns);
}

void d9__ticks_run(void)
{
	for (size_t i = 0; i < TICKS_MAX; i++) {
		void (*fn)(void) = atomic_load_explicit(&ticks[i], memory_order_acquire);

		if (fn)
			fn();
	}
}
