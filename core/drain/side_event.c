/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stddef.h>
#include <string.h>

#include "drain/blocking_event.h"
#include "drain/side_event.h"
#include "format/encoder.h"
#include "ring/emit_inl.h"
#include "ring/event_types.h"
#include "ring/names.h"

#define EVENT_MAX  1024 /* with its schema and a thread's name */
#define FIELDS_MAX (3 * D9__VARINT_MAX + 4 + 1 + 5 + 4 + 1 + 1)

static_assert(sizeof(struct d9__sample_raw) == 40, "addresses are aligned, and follow at once");
static_assert(sizeof(struct d9__dump_raw) == 16, "the same");
static_assert(sizeof(struct d9__sample_raw) + 8 * D9__SAMPLE_FRAMES_MAX <= D9__SIDE_PAYLOAD_MAX, "it fits");

bool d9__sample_leave(struct d9__slot *slot, const struct d9__sample_raw *raw, const uint64_t *pcs, uint64_t ns)
{
	return d9__side_put(slot, D9__EVENT_CPU_SAMPLE, ns, raw, sizeof(*raw), pcs, 8u * raw->n);
}

/* ---- dumps of tasks ---- */

bool d9__dump_leave(struct d9__slot *slot, const struct d9__dump_raw *raw, const uint64_t *pcs, uint64_t ns)
{
	return d9__side_put(slot, D9__EVENT_TASK_DUMP, ns, raw, sizeof(*raw), pcs, 8u * raw->n);
}

static const struct d9__dump_raw *dump_of(const struct d9__side_record *record)
{
	return (const struct d9__dump_raw *)(const void *)record->payload;
}

/* Behind the head. */
static const uint64_t *pcs_of_dump(const struct d9__side_record *record)
{
	return (const uint64_t *)(const void *)(record->payload + sizeof(struct d9__dump_raw));
}

static bool dump_is_sound(const struct d9__side_record *record)
{
	const struct d9__dump_raw *raw = dump_of(record);

	return record->len >= sizeof(*raw) && raw->n <= D9__SAMPLE_FRAMES_MAX &&
	       record->len == sizeof(*raw) + 8u * raw->n;
}

static uint8_t *put_dump(uint8_t *p, const struct d9__dump_raw *raw, uint32_t stack)
{
	p = d9__wire_put_u32(d9__varint_put(p, raw->task), stack);
	*p++ = raw->truncated != 0;
	*p++ = raw->kept != 0;
	return p;
}

static void build_dump(struct d9__builder *b, const struct d9__side_record *record)
{
	const struct d9__dump_raw *raw = dump_of(record);
	uint32_t stack = d9__builder_stack(b, pcs_of_dump(record), raw->n);
	uint8_t *p = d9__builder_event(b, D9__EVENT_TASK_DUMP, record->ns, FIELDS_MAX);

	if (p)
		d9__builder_end(b, put_dump(p, raw, stack));
}

void d9__dump_write(struct d9__slot *own, const struct d9__dump_raw *raw, const uint64_t *pcs, uint64_t ns)
{
	uint32_t stack;
	uint8_t *p;

	if (!d9__emit_stack(own, ns, pcs, raw->n, EVENT_MAX, &stack))
		return;
	p = d9__emit_begin(own, D9__EVENT_TASK_DUMP, ns, FIELDS_MAX);
	if (p)
		d9__emit_end(own, put_dump(p, raw, stack));
}

/* ---- samples ---- */

static const struct d9__sample_raw *raw_of(const struct d9__side_record *record)
{
	return (const struct d9__sample_raw *)(const void *)record->payload;
}

static bool sample_is_sound(const struct d9__side_record *record)
{
	const struct d9__sample_raw *raw = raw_of(record);

	return record->len >= sizeof(*raw) &&
	       raw->n <= D9__SAMPLE_FRAMES_MAX && record->len == sizeof(*raw) + 8u * raw->n &&
	       memchr(raw->thread_name, '\0', sizeof(raw->thread_name)) && raw->source <= D9__SAMPLE_OFF_CPU &&
	       raw->copies <= D9__SAMPLE_COPIES_MAX && raw->nowhere <= D9__SAMPLE_COPIES_MAX;
}

/* Pool ids that the fields of one event refer to. */
struct ids {
	uint32_t stack, name;
	bool named;
};

static uint8_t *put_fields(uint8_t *p, const struct d9__sample_raw *raw, struct ids ids, bool truncated)
{
	p = d9__wire_put_u32(d9__varint_put(p, raw->worker), raw->tid);
	*p++ = raw->source;
	*p++ = ids.named;
	if (ids.named)
		p = d9__wire_put_u32(p, ids.name);
	p = d9__wire_put_u32(p, ids.stack);
	*p++ = raw->cpu_plus_1 != 0; /* a handler cannot ask */
	if (raw->cpu_plus_1)
		p = d9__varint_put(p, raw->cpu_plus_1 - 1);
	*p++ = truncated;
	return p;
}

static uint32_t name_of(const struct d9__sample_raw *raw)
{
	return d9__name_intern(raw->thread_name, strlen(raw->thread_name));
}

static void build(struct d9__builder *b, const struct d9__side_record *record, uint32_t copies, uint32_t n)
{
	const struct d9__sample_raw *raw = raw_of(record);
	/* A batch holds the names of some threads; of those beyond, samples go without. */
	bool named = raw->thread_name[0] && b->n_names < D9__BUILDER_NAMES / 2;
	struct ids ids = { .stack = d9__builder_stack(b, raw->pcs, n), .named = named };

	if (named)
		ids.name = d9__builder_name(b, d9__name_text(name_of(raw))->text);
	while (copies--) {
		uint8_t *p = d9__builder_event(b, D9__EVENT_CPU_SAMPLE, record->ns, FIELDS_MAX);

		if (!p)
			return;
		d9__builder_end(b, put_fields(p, raw, ids, n ? raw->truncated : true));
	}
}

static void build_sample(struct d9__builder *b, const struct d9__side_record *record)
{
	const struct d9__sample_raw *raw = raw_of(record);

	if (raw->copies)
		build(b, record, raw->copies, raw->n);
	if (raw->nowhere)
		build(b, record, raw->nowhere, 0);
}

static void emit(struct d9__slot *own, const struct d9__side_record *record, uint32_t n)
{
	const struct d9__sample_raw *raw = raw_of(record);
	struct ids ids = { .named = raw->thread_name[0] != '\0' };
	uint32_t handle = name_of(raw);
	uint8_t *p;

	if (!d9__emit_stack(own, record->ns, raw->pcs, n, EVENT_MAX, &ids.stack))
		return;
	p = d9__emit_begin_named(own, D9__EVENT_CPU_SAMPLE, record->ns, FIELDS_MAX, &handle, &ids.name, ids.named);
	if (p)
		d9__emit_end(own, put_fields(p, raw, ids, n ? raw->truncated : true));
}

static void emit_sample(struct d9__slot *own, const struct d9__side_record *record)
{
	const struct d9__sample_raw *raw = raw_of(record);

	for (uint32_t i = 0; i < raw->copies; i++)
		emit(own, record, raw->n);
	for (uint32_t i = 0; i < raw->nowhere; i++)
		emit(own, record, 0);
}

/* ---- any ---- */

static void emit_dump(struct d9__slot *own, const struct d9__side_record *record)
{
	d9__dump_write(own, dump_of(record), pcs_of_dump(record), record->ns);
}

static const struct kind {
	uint32_t type_id;
	bool (*is_sound)(const struct d9__side_record *record);
	void (*build)(struct d9__builder *b, const struct d9__side_record *record);
	void (*emit)(struct d9__slot *own, const struct d9__side_record *record);
} raw_kinds[] = {
	{ D9__EVENT_CPU_SAMPLE, sample_is_sound, build_sample, emit_sample },
	{ D9__EVENT_BLOCKING_CALL, d9__blocking_is_sound, d9__blocking_build, d9__blocking_emit },
	{ D9__EVENT_TASK_DUMP, dump_is_sound, build_dump, emit_dump },
};

/* NULL: |record| holds the fields of one event in wire form. */
static const struct kind *kind_of(const struct d9__side_record *record)
{
	for (size_t i = 0; i < sizeof(raw_kinds) / sizeof(raw_kinds[0]); i++)
		if (raw_kinds[i].type_id == record->type_id)
			return &raw_kinds[i];
	return NULL;
}

bool d9__side_is_raw(const struct d9__side_record *record)
{
	return kind_of(record) != NULL;
}

bool d9__side_is_sound(const struct d9__side_record *record)
{
	return kind_of(record)->is_sound(record);
}

void d9__side_build(struct d9__builder *b, const struct d9__side_record *record)
{
	const struct kind *kind = kind_of(record);
	uint8_t *p;

	if (kind) {
		kind->build(b, record);
		return;
	}
	p = d9__builder_event(b, (uint16_t)record->type_id, record->ns, record->len);
	if (p)
		d9__builder_end(b, d9__wire_put_bytes(p, record->payload, record->len));
}

static uint64_t activity; /* flush thread */

void d9__side_emit(struct d9__slot *own, const struct d9__side_record *record)
{
	const struct kind *kind = kind_of(record);
	uint8_t *p;

	activity++;
	if (kind) {
		kind->emit(own, record);
		return;
	}
	p = d9__emit_begin(own, record->type_id, record->ns, record->len);
	if (p)
		d9__emit_end(own, d9__wire_put_bytes(p, record->payload, record->len));
}

static bool has_side(uint32_t slot)
{
	return atomic_load_explicit(&d9__ring.slots[slot].side, memory_order_relaxed) != 0;
}

bool d9__side_exists(void)
{
	uint32_t i = 0, high = d9__slot_high();

	while (i < high && !has_side(i))
		i++;
	return i < high;
}

void d9__side_take_all(struct d9__slot *own)
{
	struct d9__side_record record;

	for (uint32_t i = 0; i < d9__slot_high(); i++)
		while (has_side(i) && d9__side_take(i, &record))
			if (own)
				d9__side_emit(own, &record);
			else
				d9__loss_add((int)i, D9__LOSS_NO_SLOT, 1, record.ns, record.ns);
}

uint64_t d9__side_activity(void)
{
	uint64_t n = activity;

	activity = 0;
	return n;
}
