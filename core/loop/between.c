/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "loop/between.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "format/schema.h"
#include "ring/emit_inl.h"
#include "ring/names.h"

/* ---- writing ---- */

/* Its number, as long as the process lasts; below 0: no memory. */
static int source_time_type(void)
{
	static const struct d9__field fields[] = {
		{ .name = "worker_id", .type = D9__FIELD_VARINT },
		{ .name = "task_id", .type = D9__FIELD_VARINT },
		{ .name = "phase", .type = D9__FIELD_POOLED_STRING },
		{ .name = "calls", .type = D9__FIELD_VARINT },
		{ .name = "total_ns", .type = D9__FIELD_VARINT, .unit = "ns" },
		{ .name = "max_ns", .type = D9__FIELD_VARINT, .unit = "ns" },
		{ .name = "function", .type = D9__FIELD_POOLED_STRING },
		{ .name = "address", .type = D9__FIELD_VARINT },
	};
	static const struct d9__schema schema = { "SourceTimeEvent", fields,
						  sizeof(fields) / sizeof(fields[0]), NULL, 0 };
	static _Atomic(int) type; /* 0: not registered yet */
	int id = atomic_load_explicit(&type, memory_order_relaxed);

	if (!id) {
		id = d9__schema_register(&schema);
		atomic_store_explicit(&type, id, memory_order_relaxed);
	}
	return id;
}

static void write_sum(struct d9__thread *thread, struct d9__slot *slot, uint64_t ns)
{
	static const char phase[] = "between";
	const struct d9__between_rounds *between = &thread->between;
	const uint32_t handles[] = { d9__name_intern(phase, sizeof(phase) - 1), D9__NAME_EMPTY };
	int saved = errno, type = source_time_type();
	uint32_t ids[2];
	uint8_t *p;

	errno = saved;
	if (type < 0)
		return;
	p = d9__emit_begin_named(slot, (uint32_t)type, ns, 6 * D9__VARINT_MAX + 8, handles, ids, 2);
	if (!p)
		return;
	p = d9__varint_put(p, thread->worker);
	p = d9__varint_put(p, 0);
	p = d9__wire_put_u32(p, ids[0]);
	p = d9__varint_put(p, between->calls);
	p = d9__varint_put(p, between->total_ns);
	p = d9__varint_put(p, between->max_ns);
	p = d9__wire_put_u32(p, ids[1]);
	p = d9__varint_put(p, 0);
	d9__emit_end(slot, p);
}

static void write_one(const struct d9__thread *thread, struct d9__slot *slot, uint64_t from_ns,
		      uint64_t to_ns)
{
	uint8_t *p = d9__emit_begin(slot, D9__EVENT_LOOP_OUTSIDE, to_ns, 3 * D9__VARINT_MAX);

	if (!p)
		return;
	p = d9__varint_put(p, thread->worker);
	p = d9__varint_put(p, from_ns);
	p = d9__varint_put(p, to_ns);
	d9__emit_end(slot, p);
}

/* ---- coming back ---- */

void d9__between_tell(struct d9__thread *thread, struct d9__slot *slot, uint64_t from_ns,
		      uint64_t ns)
{
	struct d9__between_rounds *between = &thread->between;

	/* It was moved to a slot whose clock is behind. */
	if (ns < from_ns)
		return;
	if (ns - from_ns >= D9__BETWEEN_TELL_NS) {
		write_one(thread, slot, from_ns, ns);
	} else {
		if (!between->calls)
			between->since_ns = from_ns;
		d9__between_add(between, ns - from_ns);
	}
	if (between->calls && ns - between->since_ns >= D9__BETWEEN_EVERY_NS)
		d9__between_tell_rest(thread, slot, ns);
}

void d9__between_tell_rest(struct d9__thread *thread, struct d9__slot *slot, uint64_t ns)
{
	if (thread->between.calls)
		write_sum(thread, slot, ns);
	memset(&thread->between, 0, sizeof(thread->between));
}
