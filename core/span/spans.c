/* SPDX-License-Identifier: Apache-2.0 */
/* User callbacks that a library's callback calls, as spans inside its poll. */
#include "config.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <dial9/loop.h>

#include "base/heap.h"
#include "loop/callsites.h"
#include "loop/loops.h"
#include "loop/span_stack.h"
#include "loop/wire.h"
#include "ring/gate.h"
#include "span/span_events.h"

#define LIBRARIES 4

/* "SpanEnter:libevent" and its like: one type per library, the name is a pooled string. */
static const struct d9__span_event_type *type_of(uint32_t library)
{
	static _Atomic(struct d9__span_event_type *) types[LIBRARIES];
	struct d9__span_event_type *none = NULL, *type;

	/* acquire: pairs with the exchange below */
	type = atomic_load_explicit(&types[library], memory_order_acquire);
	if (type)
		return type;
	type = d9__calloc(1, sizeof(*type));
	if (!type || d9__span_type_register(type, d9__library_name(library), NULL, 0)) {
		d9__free(type);
		return NULL;
	}
	if (atomic_compare_exchange_strong_explicit(&types[library], &none, type,
						    memory_order_acq_rel, memory_order_acquire))
		return type;
	d9__free(type);
	return none;
}

/* Where a poll runs on this thread, in a trace that says so; else NULL. */
static struct d9__slot *find_slot(const struct d9__thread *thread)
{
	if (!d9__gate_open(D9__GATE_LOOP) || !thread || !thread->n_frames ||
	    thread->odd & D9__ODD_STOPPED)
		return NULL;
	return d9__slot_self();
}

static struct d9__span_stack *entered_of(struct d9__slot *slot)
{
	return d9__span_stack_of(slot, d9__gate_word() >> 8);
}

void d9_loop_span_enter(struct d9_loop_span *span, const struct d9_callsite *callsite)
{
	struct d9__thread *thread = d9__thread_peek();
	struct d9__slot *slot = find_slot(thread);
	struct d9__span_state state = { .id = 0 };
	struct d9__stacked_span *item;
	struct d9__span_stack *entered;
	int saved = errno;
	uint64_t ns;

	span->d9__opaque[0] = 0;
	if (!slot)
		return;
	entered = entered_of(slot);
	d9__wire_resume(thread, slot);
	ns = d9__slot_now(slot);
	state.type = type_of(thread->frames[thread->n_frames - 1].library % LIBRARIES);
	state.id = d9__span_stack_new_id(entered);
	state.parent = d9__span_stack_current(entered, thread);
	state.name = d9__callsite_name(callsite);
	item = state.type ? d9__span_stack_push(entered, thread, state.id, ns) : NULL;
	if (item && d9__span_write_enter(slot, ns, thread->worker, &state)) {
		item->name = state.name;
		item->written = item->adapter = true;
		span->d9__opaque[0] = state.id;
		span->d9__opaque[1] = state.name;
	} else if (item) {
		d9__span_stack_pop(entered, item);
	}
	errno = saved;
}

static void write_end(struct d9__thread *thread, struct d9__slot *slot,
		      const struct d9__span_state *state, uint64_t start_ns)
{
	uint64_t ns = d9__slot_now(slot);
	const struct d9__span_times times = { .start_ns = start_ns,
					      .first_ns = start_ns,
					      .active_ns = ns - start_ns };

	d9__span_write_exit(slot, ns, thread->worker, state);
	d9__span_write_close(slot, ns, state, &times);
}

void d9_loop_span_exit(struct d9_loop_span *span)
{
	struct d9__thread *thread = d9__thread_peek();
	struct d9__slot *slot = span->d9__opaque[0] ? find_slot(thread) : NULL;
	struct d9__span_state state = { .id = span->d9__opaque[0] };
	struct d9__stacked_span *item;
	struct d9__span_stack *entered;
	uint64_t start_ns;

	span->d9__opaque[0] = 0;
	if (!slot)
		return;
	entered = entered_of(slot);
	item = d9__span_stack_find(entered, state.id);
	if (!item)
		return;
	start_ns = item->enter_ns;
	state.name = (uint32_t)span->d9__opaque[1];
	d9__span_stack_pop_call(entered, item);
	state.type = type_of(thread->frames[thread->n_frames - 1].library % LIBRARIES);
	if (!state.type)
		return;
	state.parent = d9__span_stack_current(entered, thread);
	d9__wire_resume(thread, slot);
	write_end(thread, slot, &state, start_ns);
}
