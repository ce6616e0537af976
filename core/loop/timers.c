/* SPDX-License-Identifier: Apache-2.0 */
/* Timers that were armed by a clock which stood still. */
#include "config.h"

#include <stdatomic.h>

#include <dial9/loop.h>

#include "format/schema.h"
#include "loop/loops.h"
#include "loop/thread_state.h"
#include "loop/wakes.h"
#include "loop/wire.h"
#include "ring/emit_inl.h"
#include "ring/gate.h"

static int stale_timer_type(void)
{
	static const struct d9__field fields[] = {
		{ .name = "worker_id", .type = D9__FIELD_VARINT },
		{ .name = "task_id", .type = D9__FIELD_VARINT },
		{ .name = "timeout_ns", .type = D9__FIELD_VARINT, .unit = "ns" },
		{ .name = "due_ns", .type = D9__FIELD_VARINT },
	};
	static const struct d9__schema schema = { "StaleTimerEvent", fields,
						  sizeof(fields) / sizeof(fields[0]), NULL, 0 };
	static _Atomic(int) type; /* 0: not registered yet */
	int id = atomic_load_explicit(&type, memory_order_relaxed);

	if (!id) {
		id = d9__schema_register(&schema);
		atomic_store_explicit(&type, id, memory_order_relaxed);
	}
	return id;
}

void d9_timer_stale(struct d9_loop *loop, uint64_t key, uint64_t timeout_ns, uint64_t due_ns)
{
	uint32_t epoch = atomic_load_explicit(&d9__loop_epoch, memory_order_relaxed);
	struct d9__thread *thread = d9__thread_peek();
	struct d9__task *task;
	struct d9__slot *slot;
	int type;
	uint8_t *p;

	if (!loop || !d9__gate_open(D9__GATE_WAKE) || !thread ||
	    thread->odd & (D9__ODD_NO_WORKER | D9__ODD_STOPPED) || !(slot = d9__slot_self()))
		return;
	task = d9__wakes_task(thread, slot, loop, key, epoch);
	type = stale_timer_type();
	if (!task || type < 0)
		return;
	d9__wire_resume(thread, slot);
	p = d9__emit_begin(slot, (uint32_t)type, d9__slot_now(slot), 4 * D9__VARINT_MAX);
	if (!p)
		return;
	p = d9__varint_put(p, thread->worker);
	p = d9__varint_put(p, atomic_load_explicit(&task->id, memory_order_relaxed));
	p = d9__varint_put(p, timeout_ns);
	p = d9__varint_put(p, due_ns);
	d9__emit_end(slot, p);
}
