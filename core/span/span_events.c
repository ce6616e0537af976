/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "span/span_events.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ring/emit_inl.h"
#include "span/attributes.h"

#define BASE_FIELDS_MAX D9__SPAN_ENTER_FIELDS
#define NAME_MAX	1024

#define ENTER_BYTES (5u * D9__VARINT_MAX + 1 + 4 + 4)
#define CLOSE_BYTES (9u * D9__VARINT_MAX + 8 + 4 * 4)

/* ---- types ---- */

static const struct d9__field exit_fields[] = {
	{ .name = "worker_id", .type = D9__FIELD_VARINT },
	{ .name = "span_id", .type = D9__FIELD_VARINT },
	{ .name = "span_name", .type = D9__FIELD_POOLED_STRING },
	{ .name = "span_instance_id", .type = D9__FIELD_VARINT },
	{ .name = "tid", .type = D9__FIELD_U32 },
};

static int register_one(const char *what, const char *origin, const struct d9__field *base,
			uint16_t n_base, const struct d9__field *fields, uint16_t n)
{
	struct d9__field all[BASE_FIELDS_MAX + D9__SPAN_VALUES_MAX];
	char name[NAME_MAX];

	memcpy(all, base, n_base * sizeof(*base));
	for (uint16_t i = 0; i < n; i++) {
		all[n_base + i] = fields[i];
		all[n_base + i].type |= D9__WIRE_OPTIONAL;
	}
	if (snprintf(name, sizeof(name), "%s:%s", what, origin) >= (int)sizeof(name))
		return -E2BIG;
	return d9__schema_register(
		&(struct d9__schema) { name, all, (uint16_t)(n_base + n), NULL, 0 });
}

int d9__span_type_register(struct d9__span_event_type *type, const char *origin,
			   const struct d9__field *fields, uint16_t n)
{
	int enter = register_one("SpanEnter", origin, d9__span_enter_fields, D9__SPAN_ENTER_FIELDS,
				 fields, n);
	int exit = enter < 0 ? enter : register_one("SpanExit", origin, exit_fields, 5, fields, n);

	if (exit < 0)
		return exit;
	type->n_fields = n;
	for (uint16_t i = 0; i < n; i++) {
		type->fields[i].name = fields[i].name;
		type->fields[i].type = fields[i].type & 0x7f;
		if (type->fields[i].type == D9__FIELD_POOLED_STRING)
			type->pooled |= (uint16_t)(1u << i);
	}
	type->enter = (uint32_t)enter;
	type->exit = (uint32_t)exit;
	return 0;
}

/* Spans of later readers of the original, which know what one event tells by its roles. */
int d9__span_call_register(const char *library)
{
	static const struct d9__field fields[] = {
		{ .name = "worker_id", .type = D9__FIELD_VARINT },
		{ .name = "span_name", .type = D9__FIELD_POOLED_STRING },
		{ .name = "duration_ns", .type = D9__FIELD_VARINT, .unit = "ns" },
		{ .name = "span_instance_id", .type = D9__FIELD_VARINT | D9__WIRE_OPTIONAL },
	};
	static const struct d9__annotation roles[] = {
		{ 0, "dial9.role", "tokio.worker_id" },
		{ 1, "dial9.role", "span.name" },
		{ 2, "dial9.role", "span.duration" },
		{ 2, "dial9.span.type", "callback" },
	};
	char name[NAME_MAX];

	snprintf(name, sizeof(name), "SpanCall:%s", library);
	return d9__schema_register(&(struct d9__schema) { name, fields, 4, roles, 4 });
}

/* ---- enter and exit ---- */

/* The names of one event: its own and those among the values. */
struct names {
	unsigned n;
	uint32_t handles[1 + D9__SPAN_VALUES_MAX];
	uint32_t ids[1 + D9__SPAN_VALUES_MAX];
};

/* Bit by bit: the fields that hold a name now. */
static uint32_t named_fields(const struct d9__span_state *span)
{
	uint32_t named = 0;

	for (uint32_t left = span->type->pooled; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctz(left);

		if (span->values[span->at[i]])
			named |= 1u << i;
	}
	return named;
}

static void find_names(struct names *names, const struct d9__span_state *span, uint32_t named)
{
	names->handles[0] = span->name;
	names->n = 1;
	for (; named; named &= named - 1) {
		const uint8_t *hole = span->values + span->at[__builtin_ctz(named)] + 1;

		memcpy(&names->handles[names->n++], hole, 4);
	}
}

/*
 * The usual case, without a call: the chunk has room and knows the type and all names.  NULL: it
 * does not, or the event is lost, which |*lost| tells.
 */
D9__EMIT_PLAIN uint8_t *begin_plain(struct d9__slot *slot, uint32_t type, uint64_t ns,
				    struct names *names, bool *lost)
{
	bool known;

	*lost = !d9__emit_enter(slot, ns);
	if (*lost)
		return NULL;
	known = d9__name_table_types(slot->names)[type] == slot->generation;
	for (unsigned i = 0; i < names->n; i++) {
		uint32_t word = slot->names[names->handles[i]];

		known &= word >> 16 == slot->generation;
		names->ids[i] = word & 0xffff;
	}
	if (known)
		return d9__emit_head(slot, (uint16_t)type, ns);
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&slot->busy, 0, memory_order_relaxed);
	return NULL;
}

static_assert(ENTER_BYTES + 256 + D9__WIRE_TIME_RESET_LEN + D9__WIRE_EVENT_HEAD_LEN <= D9__EMIT_ROOM,
	      "begin_plain() has made room for it");

static inline uint8_t *put_values(uint8_t *p, const struct d9__span_state *span, uint32_t named,
				  const struct names *names)
{
	size_t len = span->type->n_fields ? span->at[span->type->n_fields] : 0;

	if (!len)
		return p;
	memcpy(p, span->values, len);
	for (unsigned i = 1; named; named &= named - 1, i++)
		d9__wire_put_u32(p + span->at[__builtin_ctz(named)] + 1, names->ids[i]);
	return p + len;
}

D9__EMIT_PLAIN bool write(struct d9__slot *slot, uint64_t ns, uint32_t worker,
			  const struct d9__span_state *span, bool is_enter)
{
	uint32_t type = is_enter ? span->type->enter : span->type->exit;
	uint32_t named = named_fields(span);
	struct names names;
	bool plain, lost;
	uint8_t *p;

	find_names(&names, span, named);
	p = begin_plain(slot, type, ns, &names, &lost);
	plain = p != NULL;
	if (!p && !lost)
		p = d9__emit_begin_named(slot, type, ns,
					 ENTER_BYTES + (span->type->n_fields ?
								span->at[span->type->n_fields] : 0u),
					 names.handles, names.ids, names.n);
	if (!p)
		return false;
	p = d9__varint_put(p, worker);
	p = d9__varint_put(p, span->id);
	if (is_enter) {
		*p++ = span->parent != 0;
		if (span->parent)
			p = d9__varint_put(p, span->parent);
	}
	p = d9__wire_put_u32(p, names.ids[0]);
	p = d9__varint_put(p, span->id);
	p = d9__wire_put_u32(p, d9__slot_tid(slot));
	p = put_values(p, span, named, &names);
	if (plain)
		d9__emit_leave(slot, p);
	else
		d9__emit_end(slot, p);
	return true;
}

bool d9__span_write_enter(struct d9__slot *slot, uint64_t ns, uint32_t worker,
			  const struct d9__span_state *span)
{
	return write(slot, ns, worker, span, true);
}

bool d9__span_write_exit(struct d9__slot *slot, uint64_t ns, uint32_t worker,
			 const struct d9__span_state *span)
{
	return write(slot, ns, worker, span, false);
}

/* ---- calls ---- */

#define CALL_BYTES (3u * D9__VARINT_MAX + 4 + 1)

bool d9__span_write_call(struct d9__slot *slot, uint64_t ns, uint32_t worker,
			 const struct d9__span_call *call)
{
	struct names names;
	bool plain, lost;
	uint8_t *p;

	names.n = 1;
	names.handles[0] = call->name;
	p = begin_plain(slot, call->type, ns, &names, &lost);
	plain = p != NULL;
	if (!p && !lost)
		p = d9__emit_begin_named(slot, call->type, ns, CALL_BYTES, names.handles, names.ids,
					 1);
	if (!p)
		return false;
	p = d9__varint_put(p, worker);
	p = d9__wire_put_u32(p, names.ids[0]);
	p = d9__varint_put(p, ns - call->start_ns);
	*p++ = call->id != 0;
	if (call->id)
		p = d9__varint_put(p, call->id);
	if (plain)
		d9__emit_leave(slot, p);
	else
		d9__emit_end(slot, p);
	return true;
}

/* ---- close ---- */

static uint8_t *put_optional(uint8_t *p, uint64_t value)
{
	*p++ = value != 0;
	return value ? d9__varint_put(p, value) : p;
}

static uint8_t *put_optional_name(uint8_t *p, uint32_t handle, uint32_t id)
{
	*p++ = handle != D9__NAME_EMPTY;
	return handle != D9__NAME_EMPTY ? d9__wire_put_u32(p, id) : p;
}

bool d9__span_write_close(struct d9__slot *slot, uint64_t ns, const struct d9__span_state *span,
			  const struct d9__span_times *times)
{
	const struct d9__span_event_type *type = span->type;
	const uint32_t handles[] = { span->name, type->target, type->file, type->level };
	uint32_t ids[4];
	uint8_t *p = d9__emit_begin_named(slot, D9__EVENT_SPAN_CLOSE, ns,
					  CLOSE_BYTES + d9__attributes_bytes(span), handles, ids, 4);

	if (!p)
		return false;
	p = d9__varint_put(p, span->id);
	p = d9__varint_put(p, span->id);
	p = d9__varint_put(p, times->start_ns);
	p = d9__wire_put_u32(p, ids[0]);
	p = put_optional(p, times->first_ns);
	p = d9__varint_put(p, times->active_ns);
	p = put_optional_name(p, type->target, ids[1]);
	p = put_optional_name(p, type->file, ids[2]);
	p = put_optional(p, type->line);
	p = put_optional_name(p, type->level, ids[3]);
	p = put_optional(p, span->parent);
	p = d9__attributes_put(p, span);
	p = put_optional(p, times->unbalanced);
	d9__emit_end(slot, p);
	return true;
}

void d9__span_write_misuse(struct d9__slot *slot, uint64_t ns, uint32_t worker, uint64_t id,
			   uint32_t name, uint32_t mistake)
{
	const uint32_t handles[] = { name, mistake };
	uint32_t ids[2];
	uint8_t *p = d9__emit_begin_named(slot, D9__EVENT_SPAN_MISUSE, ns,
					  2 * D9__VARINT_MAX + 2 * 4, handles, ids, 2);

	if (!p)
		return;
	p = d9__varint_put(p, worker);
	p = d9__varint_put(p, id);
	p = d9__wire_put_u32(p, ids[0]);
	p = d9__wire_put_u32(p, ids[1]);
	d9__emit_end(slot, p);
}
