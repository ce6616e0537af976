/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "drain/blocking_event.h"
#include "format/encoder.h"
#include "ring/emit_inl.h"
#include "ring/event_types.h"
#include "ring/names.h"

#define EVENT_MAX  384 /* with its schema and the names */
#define FIELDS_MAX (8 * D9__VARINT_MAX + 4 + 1 + 4 + 1 + 4 + 1 + 4 + 3)

static_assert(sizeof(struct d9__blocking_raw) == 112, "addresses are aligned, and follow at once");
static_assert(sizeof(struct d9__blocking_raw) + 8 * D9__BLOCKING_FRAMES_MAX <= D9__SIDE_PAYLOAD_MAX, "it fits");

bool d9__blocking_leave(struct d9__slot *slot, const struct d9__blocking_raw *raw, const uint64_t *pcs, uint64_t ns)
{
	return d9__side_put(slot, D9__EVENT_BLOCKING_CALL, ns, raw, sizeof(*raw), raw->n ? pcs : raw->pcs, 8u * raw->n);
}

static const struct d9__blocking_raw *raw_of(const struct d9__side_record *record)
{
	return (const struct d9__blocking_raw *)(const void *)record->payload;
}

bool d9__blocking_is_sound(const struct d9__side_record *record)
{
	const struct d9__blocking_raw *raw = raw_of(record);

	return record->len >= sizeof(*raw) && raw->n <= D9__BLOCKING_FRAMES_MAX &&
	       record->len == sizeof(*raw) + 8u * raw->n &&
	       memchr(raw->function, '\0', sizeof(raw->function)) &&
	       memchr(raw->holder_name, '\0', sizeof(raw->holder_name));
}

static uint8_t *put_optional(uint8_t *p, bool present, uint64_t value)
{
	*p++ = present;
	return present ? d9__varint_put(p, value) : p;
}

static bool has_name(const struct d9__blocking_raw *raw)
{
	return raw->holder_tid && raw->holder_name[0];
}

static uint8_t *put_fields(uint8_t *p, const struct d9__blocking_raw *raw, uint32_t name,
			   uint32_t holder_name, uint32_t stack)
{
	p = d9__varint_put(d9__varint_put(p, raw->worker), raw->task);
	p = d9__wire_put_u32(p, name);
	*p++ = raw->fd >= 0;
	if (raw->fd >= 0)
		p = d9__varint_put(p, (uint32_t)raw->fd);
	p = d9__varint_put(p, raw->duration_ns);
	p = d9__varint_put(d9__wire_put_u32(p, raw->holder_tid), raw->holder_task);
	*p++ = raw->n != 0;
	if (raw->n)
		p = d9__wire_put_u32(p, stack);
	*p++ = has_name(raw);
	if (has_name(raw))
		p = d9__wire_put_u32(p, holder_name);
	p = put_optional(p, raw->holder_tid != 0, raw->held_ns);
	p = put_optional(p, raw->holder_tid && raw->held_cpu_ns != UINT64_MAX, raw->held_cpu_ns);
	return put_optional(p, raw->holder_tid && raw->held_ready_ns != UINT64_MAX,
			    raw->held_ready_ns);
}

static uint32_t name_of(const char *text)
{
	return d9__name_intern(text, strlen(text));
}

void d9__blocking_build(struct d9__builder *b, const struct d9__side_record *record)
{
	const struct d9__blocking_raw *raw = raw_of(record);
	uint32_t stack = 0, name, holder_name = 0;
	uint8_t *p;

	/* A batch has room for more names than there are functions; what made up more is not ours. */
	if (b->n_names + 1 >= D9__BUILDER_NAMES)
		return;
	if (raw->n)
		stack = d9__builder_stack(b, raw->pcs, raw->n);
	name = d9__builder_name(b, d9__name_text(name_of(raw->function))->text);
	if (has_name(raw))
		holder_name = d9__builder_name(b, d9__name_text(name_of(raw->holder_name))->text);
	p = d9__builder_event(b, D9__EVENT_BLOCKING_CALL, record->ns, FIELDS_MAX);
	if (p)
		d9__builder_end(b, put_fields(p, raw, name, holder_name, stack));
}

void d9__blocking_emit(struct d9__slot *own, const struct d9__side_record *record)
{
	const struct d9__blocking_raw *raw = raw_of(record);
	const uint32_t handles[] = { name_of(raw->function),
				     has_name(raw) ? name_of(raw->holder_name) : 0 };
	uint32_t stack = 0, ids[2] = { 0, 0 };
	uint8_t *p;

	if (raw->n && !d9__emit_stack(own, record->ns, raw->pcs, raw->n, EVENT_MAX, &stack))
		return;
	p = d9__emit_begin_named(own, D9__EVENT_BLOCKING_CALL, record->ns, FIELDS_MAX, handles, ids,
				 has_name(raw) ? 2 : 1);
	if (p)
		d9__emit_end(own, put_fields(p, raw, ids[0], ids[1], stack));
}
