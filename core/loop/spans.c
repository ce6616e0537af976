/* SPDX-License-Identifier: Apache-2.0 */
/* User callbacks that a library's callback calls, as spans inside its poll. */
#include "config.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

#include <dial9/loop.h>

#include "format/schema.h"
#include "loop/callsites.h"
#include "loop/loops.h"
#include "loop/polls.h"
#include "loop/thread_state.h"
#include "record/emit_inl.h"
#include "record/gate.h"

#define LIBRARIES 4

static _Atomic(uint64_t) last_span;

/* "SpanEnter:libevent" and its like: one schema per library, the name is a pooled string. */
static int register_type(const char *what, uint32_t library, const struct d9__field *fields,
			 uint16_t n)
{
	char name[32];

	snprintf(name, sizeof(name), "%s:%s", what, d9__library_name(library));
	return d9__schema_register(&(struct d9__schema){ name, fields, n });
}

static int enter_type(uint32_t library)
{
	static const struct d9__field fields[] = {
		{ .name = "worker_id", .type = D9__FIELD_VARINT },
		{ .name = "span_id", .type = D9__FIELD_VARINT },
		{ .name = "parent_span_id", .type = D9__FIELD_VARINT | D9__WIRE_OPTIONAL },
		{ .name = "span_name", .type = D9__FIELD_POOLED_STRING },
	};
	static _Atomic(int) types[LIBRARIES];
	int type = atomic_load_explicit(&types[library], memory_order_relaxed);

	if (!type) {
		type = register_type("SpanEnter", library, fields, 4);
		atomic_store_explicit(&types[library], type, memory_order_relaxed);
	}
	return type;
}

static int exit_type(uint32_t library)
{
	static const struct d9__field fields[] = {
		{ .name = "worker_id", .type = D9__FIELD_VARINT },
		{ .name = "span_id", .type = D9__FIELD_VARINT },
		{ .name = "span_name", .type = D9__FIELD_POOLED_STRING },
	};
	static _Atomic(int) types[LIBRARIES];
	int type = atomic_load_explicit(&types[library], memory_order_relaxed);

	if (!type) {
		type = register_type("SpanExit", library, fields, 3);
		atomic_store_explicit(&types[library], type, memory_order_relaxed);
	}
	return type;
}

static uint32_t running_library(const struct d9__thread *thread)
{
	return thread->frames[thread->n_frames - 1].library % LIBRARIES;
}

static bool write_enter(struct d9__thread *thread, struct d9__slot *slot, uint64_t ns,
			const struct d9__span *span)
{
	int type = enter_type(running_library(thread));
	uint32_t id;
	uint8_t *p;

	if (type <= 0)
		return false;
	p = d9__emit_begin_named(slot, (uint32_t)type, ns, 5 + 3 * D9__VARINT_MAX, &span->name, &id,
				 1);
	if (!p)
		return false;
	p = d9__varint_put(p, thread->worker);
	p = d9__varint_put(p, span->id);
	*p++ = thread->n_spans > 0;
	if (thread->n_spans)
		p = d9__varint_put(p, thread->spans[thread->n_spans - 1].id);
	p = d9__wire_put_u32(p, id);
	d9__emit_end(slot, p);
	return true;
}

static void write_exit(struct d9__thread *thread, struct d9__slot *slot, uint64_t ns,
		       const struct d9__span *span)
{
	int type = exit_type(running_library(thread));
	uint32_t id;
	uint8_t *p;

	p = type <= 0 ? NULL
		      : d9__emit_begin_named(slot, (uint32_t)type, ns, 4 + 2 * D9__VARINT_MAX,
					     &span->name, &id, 1);
	if (!p)
		return;
	p = d9__varint_put(p, thread->worker);
	p = d9__varint_put(p, span->id);
	p = d9__wire_put_u32(p, id);
	d9__emit_end(slot, p);
	p = d9__emit_begin(slot, D9__EVENT_SPAN_CLOSE, ns, D9__VARINT_MAX);
	if (!p)
		return;
	p = d9__varint_put(p, span->id);
	d9__emit_end(slot, p);
}

/* Spans of callbacks that were left without their exit are no parents. */
static void drop_dead(struct d9__thread *thread)
{
	while (thread->n_spans && thread->spans[thread->n_spans - 1].frames > thread->n_frames)
		thread->n_spans--;
}

void d9_loop_span_enter(struct d9_loop_span *span, const struct d9_callsite *callsite)
{
	struct d9__thread *thread = d9__thread_peek();
	struct d9__span new;
	struct d9__slot *slot;
	uint64_t ns;
	int saved = errno;

	span->d9__opaque[0] = 0;
	if (!d9__gate_open(D9__GATE_LOOP) || !thread || !thread->n_frames ||
	    thread->odd & D9__ODD_STOPPED || !(slot = d9__slot_self()))
		return;
	drop_dead(thread);
	if (thread->n_spans == D9__SPANS_MAX)
		return;
	d9__polls_resume(thread, slot);
	ns = d9__slot_now(slot);
	new.id = atomic_fetch_add_explicit(&last_span, 1, memory_order_relaxed) + 1;
	new.name = d9__callsite_name(callsite);
	new.frames = thread->n_frames;
	if (write_enter(thread, slot, ns, &new)) {
		thread->spans[thread->n_spans++] = new;
		span->d9__opaque[0] = new.id;
	}
	errno = saved;
}

void d9_loop_span_exit(struct d9_loop_span *span)
{
	struct d9__thread *thread = d9__thread_peek();
	uint64_t id = span->d9__opaque[0];
	struct d9__slot *slot;
	uint32_t i;

	span->d9__opaque[0] = 0;
	if (!id || !thread)
		return;
	for (i = thread->n_spans; i && thread->spans[i - 1].id != id; i--)
		;
	if (!i)
		return;
	thread->n_spans = i - 1;
	if (!d9__gate_open(D9__GATE_LOOP) || !thread->n_frames || !(slot = d9__slot_self()))
		return;
	d9__polls_resume(thread, slot);
	write_exit(thread, slot, d9__slot_now(slot), &thread->spans[i - 1]);
}
