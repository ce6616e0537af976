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
#include "ring/event_types.h"
#include "ring/gate.h"
#include "span/span_events.h"

#define LIBRARIES 4

/* "SpanCall:libevent" and its like: one type per library, the name is a pooled string.  0: none can
 * be had. */
static uint32_t call_type_of(uint32_t library)
{
	static _Atomic(uint32_t) types[LIBRARIES];
	uint32_t type = atomic_load_explicit(&types[library], memory_order_relaxed);
	int id;

	if (__builtin_expect(type != 0, 1))
		return type;
	id = d9__span_call_register(d9__library_name(library));
	if (id < 0)
		return 0;
	/* Another thread may have stored the same one, because equal types have one id. */
	atomic_store_explicit(&types[library], (uint32_t)id, memory_order_relaxed);
	return (uint32_t)id;
}

/* "SpanEnter:libevent" and "SpanExit:libevent": for events of the old kind. */
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

static uint32_t library_of(const struct d9__thread *thread)
{
	return thread->frames[thread->n_frames - 1].library % LIBRARIES;
}

/* ---- events of the old kind ---- */

static bool write_enter(struct d9__thread *thread, struct d9__slot *slot, uint64_t parent,
			const struct d9__stacked_span *item)
{
	struct d9__span_state state = { .type = type_of(library_of(thread)),
					.id = atomic_load_explicit(&item->id, memory_order_relaxed),
					.parent = parent,
					.name = item->name };

	return state.type && d9__span_write_enter(slot, item->enter_ns, thread->worker, &state);
}

static void write_end(struct d9__thread *thread, struct d9__slot *slot, uint64_t ns,
		      uint64_t parent, const struct d9__span_call *call)
{
	const struct d9__span_times times = { .start_ns = call->start_ns,
					      .first_ns = call->start_ns,
					      .active_ns = ns - call->start_ns };
	struct d9__span_state state = { .type = type_of(library_of(thread)),
					.id = call->id,
					.parent = parent,
					.name = call->name };

	if (!state.type)
		return;
	d9__span_write_exit(slot, ns, thread->worker, &state);
	d9__span_write_close(slot, ns, &state, &times);
}

/* ---- calls ---- */

void d9_loop_span_enter(struct d9_loop_span *span, const struct d9_callsite *callsite)
{
	struct d9__thread *thread = d9__thread_peek();
	struct d9__slot *slot = find_slot(thread);
	struct d9__stacked_span *item;
	struct d9__span_stack *entered;
	uint64_t parent = 0, id;
	int saved = errno;
	uint32_t name;

	span->d9__opaque[0] = 0;
	if (!slot)
		return;
	entered = entered_of(slot);
	d9__wire_resume(thread, slot);
	if (d9__old_events())
		parent = d9__span_stack_current(entered, thread);
	id = d9__span_stack_new_id(entered);
	name = d9__callsite_name(callsite);
	item = d9__span_stack_push(entered, thread, id, d9__slot_now(slot));
	if (item) {
		item->name = name;
		item->written = item->adapter = true;
		span->d9__opaque[0] = id;
		span->d9__opaque[1] = name;
	}
	if (item && d9__old_events() && !write_enter(thread, slot, parent, item)) {
		d9__span_stack_pop(entered, item);
		span->d9__opaque[0] = 0;
	}
	errno = saved;
}

void d9_loop_span_exit(struct d9_loop_span *span)
{
	struct d9__thread *thread = d9__thread_peek();
	struct d9__slot *slot = span->d9__opaque[0] ? find_slot(thread) : NULL;
	struct d9__span_call call = { .id = span->d9__opaque[0] };
	struct d9__stacked_span *item;
	struct d9__span_stack *entered;
	uint64_t ns;
	bool told;

	span->d9__opaque[0] = 0;
	if (!slot)
		return;
	entered = entered_of(slot);
	item = d9__span_stack_find(entered, call.id);
	if (!item)
		return;
	call.start_ns = item->enter_ns;
	call.name = (uint32_t)span->d9__opaque[1];
	told = atomic_load_explicit(&item->told, memory_order_relaxed);
	d9__span_stack_pop_call(entered, item);
	d9__wire_resume(thread, slot);
	ns = d9__slot_now(slot);
	if (d9__old_events()) {
		write_end(thread, slot, ns, d9__span_stack_current(entered, thread), &call);
		return;
	}
	call.type = call_type_of(library_of(thread));
	call.id = told ? call.id : 0;
	if (call.type)
		d9__span_write_call(slot, ns, thread->worker, &call);
}
