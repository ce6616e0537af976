/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "loop/announce.h"

#include <string.h>

#include "loop/callsites.h"
#include "loop/thread_state.h"
#include "ring/names.h"
#include "segment/dump_tasks.h"

static uint32_t kind_name(uint16_t kind)
{
	static const char *const texts[] = { "io",	 "timer",     "signal", "once",
					     "deferred", "finalizer", "active", "listener",
					     "internal", "idle",      "child",	"stat",
					     "prepare",	 "check",     "embed",	"fork",
					     "cleanup",	 "async",     "custom", "periodic" };
	static _Atomic(uint32_t) names[sizeof(texts) / sizeof(texts[0])]; /* 0: not interned yet */
	uint32_t name;

	if (kind >= sizeof(texts) / sizeof(texts[0]))
		kind = D9_TASK_CUSTOM;
	name = atomic_load_explicit(&names[kind], memory_order_relaxed);
	if (!name) {
		name = d9__name_intern(texts[kind], strlen(texts[kind]));
		atomic_store_explicit(&names[kind], name, memory_order_relaxed);
	}
	return name;
}

static struct d9__task_spawn announce_of(const struct d9__task *task, const struct d9_callsite *callsite)
{
	return (struct d9__task_spawn){
		.task = atomic_load_explicit(&task->id, memory_order_relaxed),
		.loc = d9__callsite_name(callsite),
		.kind = kind_name(atomic_load_explicit(&task->kind, memory_order_relaxed)),
		.name = atomic_load_explicit(&task->name, memory_order_relaxed),
		.fd = atomic_load_explicit(&task->fd, memory_order_relaxed),
		.instrumented = !(atomic_load_explicit(&task->flags, memory_order_relaxed) &
				  D9_TASK_NO_WAKES),
		.callback = callsite ? (uint64_t)(uintptr_t)callsite->callback : 0,
		.spawn_addr = callsite ? (uint64_t)(uintptr_t)callsite->site : 0,
	};
}

void d9__spawn_spelling_learn(struct d9__spawn_spelling *all, const struct d9__slot *slot,
			      const struct d9_callsite *callsite, uint32_t made_of)
{
	struct d9__spawn_spelling *at = d9__spawn_spelling_at(all, callsite);
	const struct d9__task_spawn spawn = {
		.kind = kind_name(made_of & 0xffff),
		.fd = -1,
		.instrumented = !(made_of >> 16 & D9_TASK_NO_WAKES),
		.callback = (uint64_t)(uintptr_t)callsite->callback,
		.spawn_addr = (uint64_t)(uintptr_t)callsite->site,
	};
	uint32_t name = d9__callsite_name(callsite);
	uint32_t loc = slot->names[name], kind = slot->names[spawn.kind];
	uint8_t wire[D9__VARINT_MAX + sizeof(at->wire)] = { 0 };

	/* The spawn may have been lost. */
	if (loc >> 16 != slot->generation || kind >> 16 != slot->generation)
		return;
	at->callsite = callsite;
	at->made_of = made_of;
	at->stamp = slot->stamp;
	at->name = name;
	at->len = (uint32_t)(d9__task_spawn_put(wire, &spawn, loc & 0xffff, kind & 0xffff, 0) -
			     wire - 1);
	/* Behind the id, which is 0 here: one byte. */
	memcpy(at->wire, wire + 1, sizeof(at->wire));
}

static bool announce_spelled(const struct d9__spawn_spelling *spelling, struct d9__slot *slot,
			     uint64_t ns, const struct d9__task *task,
			     const struct d9_callsite *callsite, uint32_t made_of)
{
	uint64_t published = d9__emit_open(slot);
	uint8_t *begin, *p;

	if (!published)
		return false;
	/* Not earlier: a signal handler may have changed chunks. */
	if (!d9__spawn_spelling_fits(spelling, slot, callsite, made_of)) {
		d9__emit_cancel(slot);
		return false;
	}
	begin = d9__emit_place(slot, published);
	p = d9__emit_head_at(slot, begin, D9__EVENT_TASK_SPAWN, ns);
	p = d9__spawn_spelling_put(spelling, p,
				   atomic_load_explicit(&task->id, memory_order_relaxed),
				   atomic_load_explicit(&task->fd, memory_order_relaxed));
	d9__emit_commit(slot, published, 1, (uint64_t)(p - begin));
	return true;
}

bool d9__announce(struct d9__spawn_spelling *all, struct d9__slot *slot, uint64_t ns,
		  const struct d9__task *task, const struct d9_callsite *callsite)
{
	bool named = atomic_load_explicit(&task->name, memory_order_relaxed) != D9__NAME_EMPTY;
	uint32_t made_of =
		d9__spawn_made_of(atomic_load_explicit(&task->kind, memory_order_relaxed),
				  atomic_load_explicit(&task->flags, memory_order_relaxed));
	struct d9__task_spawn spawn;

	if (!named && announce_spelled(d9__spawn_spelling_at(all, callsite), slot, ns, task,
				       callsite, made_of))
		return true;
	spawn = announce_of(task, callsite);
	if (!d9__emit_task_spawn(slot, ns, &spawn))
		return false;
	if (!named && callsite)
		d9__spawn_spelling_learn(all, slot, callsite, made_of);
	return true;
}

/* ---- for dumps ---- */

struct each {
	d9__dump_task_fn fn;
	void *arg;
	uint32_t epoch;
};

static void tell(void *arg, const struct d9__task *task)
{
	const struct each *each = arg;
	/* acquire: pairs with the release that gave the entry its number */
	uint64_t id = atomic_load_explicit(&task->id, memory_order_acquire), polled_ns;
	struct d9__task_spawn spawn;

	if (!id || atomic_load_explicit(&task->spawned, memory_order_relaxed) != each->epoch)
		return;
	polled_ns = atomic_load_explicit(&task->polled_ns, memory_order_relaxed);
	spawn = announce_of(task, atomic_load_explicit(&task->callsite, memory_order_acquire));
	/* Acquire: if the id is unchanged after reading the fields, they belong to this task. */
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&task->id, memory_order_relaxed) == id && spawn.task == id)
		each->fn(each->arg, &spawn, polled_ns);
}

static void tell_solo(void *arg, const struct d9__thread *thread)
{
	tell(arg, &thread->solo);
}

static void each_spawned(d9__dump_task_fn fn, void *arg)
{
	struct each each = { fn, arg, atomic_load_explicit(&d9__loop_epoch, memory_order_relaxed) };

	d9__tasks_each(tell, &each);
	d9__threads_each(tell_solo, &each);
}

void d9__announce_start(void)
{
	d9__dump_tasks_provide(each_spawned);
}
