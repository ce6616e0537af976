/* SPDX-License-Identifier: Apache-2.0 */
/* The cold halves of emit_inl.h, and the events that are too rare to be inline. */
#include "config.h"

#include "ring/emit_inl.h"
#include "ring/side_ring.h"

static bool busy(const struct d9__slot *slot)
{
	return atomic_load_explicit(&slot->busy, memory_order_relaxed) != 0;
}

static void lost(const struct d9__slot *slot, enum d9__loss_cause cause, uint64_t ns)
{
	d9__loss_add((int)d9__slot_index(slot), cause, 1, ns, ns);
}

/* End an event that is not written after all. */
static void abandon(struct d9__slot *slot, enum d9__loss_cause cause, uint64_t ns)
{
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&slot->busy, 0, memory_order_relaxed);
	lost(slot, cause, ns);
}

/* The slot's next chunk does not follow the one before: a gap in the serials tells. */
static void no_chunk(struct d9__slot *slot, uint64_t ns)
{
	if (!d9__emit_published(slot))
		slot->serial++;
	abandon(slot, D9__LOSS_NO_CHUNK, ns);
}

/* False: the ring was forgotten after fork; the caller still holds the parent's slot, which is all zeros. */
static bool is_known(struct d9__slot *slot)
{
	if (slot >= d9__ring.slots && slot < d9__ring.slots + D9__SLOT_COUNT)
		return true;
	atomic_store_explicit(&slot->busy, 0, memory_order_relaxed);
	d9__self.slot = NULL;
	return false;
}

bool d9__emit_enter_busy(struct d9__slot *slot, uint64_t ns)
{
	if (is_known(slot))
		lost(slot, D9__LOSS_REENTRANT, ns);
	return false;
}

bool d9__emit_enter_slow(struct d9__slot *slot, uint64_t ns)
{
	if (!is_known(slot))
		return false;
	if (d9__chunk_room(slot, D9__EMIT_ROOM))
		return true;
	no_chunk(slot, ns);
	return false;
}

void d9__emit_missed(struct d9__slot *slot, uint32_t worker, enum d9__worker_state state,
		     uint64_t task)
{
	/* A handler's is of no account: it runs inside what the thread itself does. */
	if (d9__self.slot == slot && !busy(slot))
		d9__emit_worker(slot, worker, state, task);
}

/* Bytes up to |end| are whole frames, but not an event. */
static void publish_bytes(struct d9__slot *slot, const uint8_t *end)
{
	uint64_t published = d9__emit_published(slot);

	atomic_store_explicit(&slot->published,
			      (published >> 32 << 32) | (uint64_t)(end - slot->batch),
			      memory_order_release);
}

/* The caller made room. */
uint32_t d9__emit_name_slow(struct d9__slot *slot, uint32_t handle)
{
	const struct d9__name *name = d9__name_text(handle);
	uint8_t *p = slot->batch + (uint32_t)d9__emit_published(slot);
	uint32_t id = slot->name_count++;

	publish_bytes(slot, d9__wire_put_pool_entry(p, id, name->text, name->len));
	slot->names[handle] = (uint32_t)slot->generation << 16 | id;
	return id;
}

uint8_t *d9__emit_reset_slow(struct d9__slot *slot, uint8_t *p, uint64_t ns)
{
	struct d9__chunk_header *header =
		(struct d9__chunk_header *)(void *)(slot->batch - D9__CHUNK_HEADER);
	uint64_t first = atomic_load_explicit(&header->first_ns, memory_order_relaxed);

	/* Each batch begins here, and so does every step back: this is the least of its times. */
	if (!first || ns < first)
		atomic_store_explicit(&header->first_ns, ns, memory_order_relaxed);
	return d9__wire_put_time_reset(p, ns);
}

/* Bytes that defining |handle| takes. */
static uint32_t name_bytes(uint32_t handle)
{
	return D9__POOL_ENTRY_FRAME_LEN + d9__name_text(handle)->len;
}

uint8_t *d9__task_spawn_put(uint8_t *p, const struct d9__task_spawn *spawn, uint32_t loc, uint32_t kind,
			    uint32_t name)
{
	p = d9__wire_put_u32(d9__varint_put(p, spawn->task), loc);
	*p++ = spawn->instrumented;
	p = d9__varint_put(p, spawn->callback);
	p = d9__varint_put(p, spawn->spawn_addr);
	p = d9__wire_put_u32(p, kind);
	*p++ = spawn->fd >= 0;
	if (spawn->fd >= 0)
		p = d9__varint_put(p, (uint64_t)spawn->fd);
	*p++ = spawn->name != D9__NAME_EMPTY;
	return spawn->name != D9__NAME_EMPTY ? d9__wire_put_u32(p, name) : p;
}

bool d9__emit_task_spawn(struct d9__slot *slot, uint64_t ns, const struct d9__task_spawn *spawn)
{
	const uint32_t handles[] = { spawn->loc, spawn->kind, spawn->name };
	uint32_t ids[3] = { 0, 0, 0 }, room = 128;
	uint8_t *p;

	if (!d9__emit_enter(slot, ns))
		return false;
	for (unsigned i = 0; i < 3; i++)
		room += name_bytes(handles[i]);
	if (!d9__chunk_room(slot, room)) {
		no_chunk(slot, ns);
		return false;
	}
	for (unsigned i = 0; i < 3; i++)
		if (i < 2 || spawn->name != D9__NAME_EMPTY)
			ids[i] = d9__emit_name(slot, handles[i]);
	p = d9__emit_head(slot, D9__EVENT_TASK_SPAWN, ns);
	d9__emit_leave(slot, d9__task_spawn_put(p, spawn, ids[0], ids[1], ids[2]));
	return true;
}

void d9__emit_task_terminate(struct d9__slot *slot, uint64_t ns, uint64_t task)
{
	uint8_t *p;

	if (busy(slot)) {
		p = d9__emit_begin(slot, D9__EVENT_TASK_TERMINATE, ns, D9__VARINT_MAX);
		if (p)
			d9__emit_end(slot, d9__varint_put(p, task));
	} else if (d9__emit_enter(slot, ns)) {
		p = d9__emit_head(slot, D9__EVENT_TASK_TERMINATE, ns);
		d9__emit_leave(slot, d9__varint_put(p, task));
	}
}

void d9__emit_wake_side(struct d9__slot *slot, uint64_t ns, uint64_t waker, uint64_t woken,
			unsigned target_worker, unsigned reason)
{
	uint8_t *p = d9__side_begin(slot, D9__EVENT_WAKE, ns, 2 * D9__VARINT_MAX + 2);

	if (!p)
		return;
	p = d9__varint_put(p, waker);
	p = d9__varint_put(p, woken);
	*p++ = d9__emit_depth(target_worker);
	*p++ = (uint8_t)reason;
	d9__side_end(slot, p);
}

uint8_t *d9__emit_begin(struct d9__slot *slot, uint32_t type_id, uint64_t ns, size_t max_bytes)
{
	return d9__emit_begin_named(slot, type_id, ns, max_bytes, NULL, NULL, 0);
}

/* Write the schema of |type_id| unless this batch has it. */
static inline void define_type(struct d9__slot *slot, uint32_t type_id,
			const struct d9__type_frames *frames)
{
	uint16_t *written = d9__name_table_types(slot->names);
	uint8_t *p = slot->batch + (uint32_t)d9__emit_published(slot);

	if (type_id <= D9__EVENT_HOT_LAST || written[type_id] == slot->generation)
		return;
	publish_bytes(slot, d9__wire_put_bytes(p, frames->bytes, frames->len));
	written[type_id] = slot->generation;
}

uint8_t *d9__emit_begin_named(struct d9__slot *slot, uint32_t type_id, uint64_t ns,
			      size_t max_bytes, const uint32_t *handles, uint32_t *ids, unsigned n)
{
	const struct d9__type_frames *frames = d9__event_type_frames(type_id);
	size_t room = max_bytes;

	if (busy(slot) && n == 0 && frames)
		return d9__side_begin(slot, type_id, ns, max_bytes < UINT32_MAX ?
							 (uint32_t)max_bytes : UINT32_MAX);
	if (!d9__emit_enter(slot, ns))
		return NULL;
	for (unsigned i = 0; i < n; i++)
		room += name_bytes(handles[i]);
	if (!frames || max_bytes > D9__EMIT_MAX || room > D9__EMIT_MAX) {
		abandon(slot, D9__LOSS_TOO_BIG, ns);
		return NULL;
	}
	room += frames->len + D9__WIRE_TIME_RESET_LEN + D9__WIRE_EVENT_HEAD_LEN + 2;
	if (!d9__chunk_room(slot, (uint32_t)room)) {
		no_chunk(slot, ns);
		return NULL;
	}
	define_type(slot, type_id, frames);
	for (unsigned i = 0; i < n; i++)
		ids[i] = d9__emit_name(slot, handles[i]);
	return d9__emit_head(slot, (uint16_t)type_id, ns);
}

/* The next number for a stack in the open chunk; by slot, each its owner's. */
static uint32_t stack_id(const struct d9__slot *slot)
{
	static struct {
		uint32_t stamp, n;
	} batches[D9__SLOT_COUNT];
	uint32_t index = d9__slot_index(slot);

	if (batches[index].stamp != slot->stamp) {
		batches[index].stamp = slot->stamp;
		batches[index].n = 0;
	}
	return batches[index].n++;
}

static uint32_t define_stack(struct d9__slot *slot, const uint64_t *addresses, uint32_t n)
{
	uint8_t *p = slot->batch + (uint32_t)d9__emit_published(slot);
	uint32_t id = stack_id(slot);

	publish_bytes(slot, d9__wire_put_stack_entry(p, id, addresses, n));
	return id;
}

bool d9__emit_stack(struct d9__slot *slot, uint64_t ns, const uint64_t *addresses, uint32_t n, uint32_t more,
		    uint32_t *id)
{
	if (!d9__emit_enter(slot, ns))
		return false;
	/* The event is to be in the same batch: it begins a new one where less than D9__EMIT_ROOM is left. */
	if (!d9__chunk_room(slot, D9__POOL_ENTRY_FRAME_LEN + 8 * n + more + D9__EMIT_ROOM)) {
		no_chunk(slot, ns);
		return false;
	}
	*id = define_stack(slot, addresses, n);
	atomic_store_explicit(&slot->busy, 0, memory_order_relaxed);
	return true;
}

uint8_t *d9__emit_begin_stack(struct d9__slot *slot, uint32_t type_id, uint64_t ns, size_t max_bytes,
			      struct d9__emitted_stack *stack)
{
	const struct d9__type_frames *frames = d9__event_type_frames(type_id);
	size_t room = max_bytes + frames->len + D9__POOL_ENTRY_FRAME_LEN + 8 * (size_t)stack->n +
		      D9__WIRE_TIME_RESET_LEN + D9__WIRE_EVENT_HEAD_LEN + 2;

	if (!d9__emit_enter(slot, ns))
		return NULL;
	if (!d9__chunk_room(slot, (uint32_t)room)) {
		no_chunk(slot, ns);
		return NULL;
	}
	define_type(slot, type_id, frames);
	if (stack->stamp != slot->stamp)
		stack->id = define_stack(slot, stack->addresses, stack->n);
	stack->stamp = slot->stamp;
	return d9__emit_head(slot, (uint16_t)type_id, ns);
}

void d9__emit_end(struct d9__slot *slot, uint8_t *end)
{
	/* No open chunk: |batch| is stale, and a handler runs inside the change of chunks. */
	if (d9__emit_published(slot) && end >= slot->batch && end <= slot->batch + D9__BATCH_MAX)
		d9__emit_leave(slot, end);
	else
		d9__side_end(slot, end);
}
