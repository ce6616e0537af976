/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "drain/blocking_event.h"
#include "format/encoder.h"
#include "ring/emit_inl.h"
#include "ring/event_types.h"
#include "ring/names.h"

#define EVENT_MAX  256 /* with its schema and the function's name */
#define FIELDS_MAX (5 * D9__VARINT_MAX + 4 + 1 + 4 + 1 + 4)

static_assert(sizeof(struct d9__blocking_raw) == 64, "addresses are aligned, and follow at once");
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
	       record->len == sizeof(*raw) + 8u * raw->n && memchr(raw->function, '\0', sizeof(raw->function));
}

static uint8_t *put_fields(uint8_t *p, const struct d9__blocking_raw *raw, uint32_t name, uint32_t stack)
{
	p = d9__varint_put(d9__varint_put(p, raw->worker), raw->task);
	p = d9__wire_put_u32(p, name);
	*p++ = raw->fd >= 0;
	if (raw->fd >= 0)
		p = d9__varint_put(p, (uint32_t)raw->fd);
	p = d9__varint_put(p, raw->duration_ns);
	p = d9__varint_put(d9__wire_put_u32(p, raw->holder_tid), raw->holder_task);
	*p++ = raw->n != 0;
	return raw->n ? d9__wire_put_u32(p, stack) : p;
}

static uint32_t name_of(const struct d9__blocking_raw *raw)
{
	return d9__name_intern(raw->function, strlen(raw->function));
}

void d9__blocking_build(struct d9__builder *b, const struct d9__side_record *record)
{
	const struct d9__blocking_raw *raw = raw_of(record);
	uint32_t stack = 0, name;
	uint8_t *p;

	/* A batch has room for more names than there are functions; what made up more is not ours. */
	if (b->n_names == D9__BUILDER_NAMES)
		return;
	if (raw->n)
		stack = d9__builder_stack(b, raw->pcs, raw->n);
	name = d9__builder_name(b, d9__name_text(name_of(raw))->text);
	p = d9__builder_event(b, D9__EVENT_BLOCKING_CALL, record->ns, FIELDS_MAX);
	if (p)
		d9__builder_end(b, put_fields(p, raw, name, stack));
}

void d9__blocking_emit(struct d9__slot *own, const struct d9__side_record *record)
{
	const struct d9__blocking_raw *raw = raw_of(record);
	uint32_t stack = 0, id, handle = name_of(raw);
	uint8_t *p;

	if (raw->n && !d9__emit_stack(own, record->ns, raw->pcs, raw->n, EVENT_MAX, &stack))
		return;
	p = d9__emit_begin_named(own, D9__EVENT_BLOCKING_CALL, record->ns, FIELDS_MAX, &handle, &id, 1);
	if (p)
		d9__emit_end(own, put_fields(p, raw, id, stack));
}
