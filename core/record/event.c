/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include <dial9/event.h>

#include "format/schema.h"
#include "record/arguments.h"
#include "record/recorder.h"
#include "ring/emit_inl.h"
#include "ring/gate.h"

/* ---- types ---- */

static int check_type(const struct d9_event_type *type)
{
	if (!type->name || !*type->name)
		return -EINVAL;
	return d9__fields_check(type->fields, type->n_fields);
}

/* |more| says of which field each of |annotations| is. */
static int find_fields(const struct d9_event_type *type, const struct d9_annotation *annotations,
		       size_t n, struct d9__annotation *more)
{
	for (size_t i = 0; i < n; i++) {
		const struct d9_annotation *a = &annotations[i];
		uint16_t field = 0;

		if (!a->field || !a->key || !a->value)
			return -EINVAL;
		while (field < type->n_fields && strcmp(type->fields[field].name, a->field) != 0)
			field++;
		if (field == type->n_fields)
			return -EINVAL;
		more[i] = (struct d9__annotation) { field, a->key, a->value };
	}
	return 0;
}

static int register_type(const struct d9_event_type *type, const struct d9_annotation *annotations,
			 size_t n)
{
	struct d9__annotation more[D9_ANNOTATIONS_MAX];
	struct d9__field fields[D9__FIELDS_MAX];
	int err = find_fields(type, annotations, n, more);

	if (!err)
		err = d9__event_types_init();
	if (err)
		return err;
	for (size_t i = 0; i < type->n_fields; i++)
		fields[i] = (struct d9__field) { type->fields[i].name,
						 d9__field_wire_type(type->fields[i].type),
						 type->fields[i].unit, type->fields[i].kind };
	return d9__schema_register(&(struct d9__schema) {
		type->name, fields, (uint16_t)type->n_fields, more, (uint16_t)n });
}

int d9_event_type_annotate(struct d9_event_type *type, const struct d9_annotation *annotations,
			   size_t n)
{
	int saved = errno, id = type && (annotations || !n) ? check_type(type) : -EINVAL;

	if (!id)
		id = n > D9_ANNOTATIONS_MAX ? -E2BIG : register_type(type, annotations, n);
	/* relaxed: a reader needs the number only; the type itself is constant */
	if (id > 0)
		__atomic_store_n(&type->id, (uint32_t)id, __ATOMIC_RELAXED);
	errno = saved;
	return id < 0 ? id : 0;
}

int d9_event_type_register(struct d9_event_type *type)
{
	return d9_event_type_annotate(type, NULL, 0);
}

struct d9_name d9_name_intern(const char *text)
{
	struct d9_name name = { text ? d9__name_intern(text, strlen(text)) : D9__NAME_EMPTY };

	return name;
}

/* ---- emitting ---- */

/* The needs of one event before it can be begun. */
struct plan {
	size_t bytes;
	unsigned n_names;
	uint32_t handles[D9__FIELDS_MAX];
	uint32_t ids[D9__FIELDS_MAX];
};

static int make_plan(struct plan *plan, const struct d9_event_type *type, const struct d9_arg *args)
{
	plan->bytes = 0;
	plan->n_names = 0;
	for (size_t i = 0; i < type->n_fields; i++) {
		uint8_t wire = d9__field_wire_type(type->fields[i].type), base = wire & 0x7f;
		long size;

		plan->bytes += wire != base;
		if (args[i].kind == D9_ARG_ABSENT) {
			if (wire == base)
				return -EINVAL;
			continue;
		}
		size = d9__arg_measure(base, &args[i]);
		if (size < 0)
			return (int)size;
		plan->bytes += (size_t)size;
		if (plan->bytes > D9__EMIT_MAX)
			return -E2BIG;
	}
	/* Only now: arguments that are refused intern nothing. */
	for (size_t i = 0; i < type->n_fields; i++)
		if ((type->fields[i].type & ~D9_FIELD_OPTIONAL) == D9_FIELD_POOLED_STRING &&
		    args[i].kind != D9_ARG_ABSENT)
			plan->handles[plan->n_names++] = d9__arg_name(&args[i]);
	return 0;
}

static uint8_t *put_fields(uint8_t *p, const struct d9_event_type *type, const struct d9_arg *args,
			   const struct plan *plan)
{
	unsigned name = 0;

	for (size_t i = 0; i < type->n_fields; i++) {
		uint8_t wire = d9__field_wire_type(type->fields[i].type), base = wire & 0x7f;

		if (wire != base)
			*p++ = args[i].kind != D9_ARG_ABSENT;
		if (args[i].kind == D9_ARG_ABSENT)
			continue;
		/* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): an id for each pooled string */
		p = base == D9_FIELD_POOLED_STRING ? d9__wire_put_u32(p, plan->ids[name++]) :
						     d9__arg_put(p, base, &args[i]);
	}
	return p;
}

static int emit(const struct d9_event_type *type, uint32_t id, const struct d9_arg *args)
{
	struct d9__slot *slot;
	struct plan plan;
	uint64_t ns;
	uint8_t *p;
	int err = make_plan(&plan, type, args);

	if (err)
		return err;
	slot = d9__slot_self();
	if (!slot)
		return -EAGAIN;
	ns = d9__slot_now(slot);
	p = plan.n_names ? d9__emit_begin_named(slot, id, ns, plan.bytes, plan.handles, plan.ids,
						plan.n_names) :
			   d9__emit_begin(slot, id, ns, plan.bytes);
	if (!p)
		return -EAGAIN;
	d9__emit_end(slot, put_fields(p, type, args, &plan));
	return 0;
}

bool d9_event_on(void)
{
	if (d9__gate_open(D9__GATE_EVENT))
		return true;
	d9__recorder_child_check();
	return d9__gate_open(D9__GATE_EVENT);
}

int d9_event_emit(struct d9_event_type *type, const struct d9_arg *args, size_t n)
{
	uint32_t id;
	int err;

	if (!d9_event_on())
		return 0;
	if (!type || n != type->n_fields || (n && !args))
		return -EINVAL;
	id = __atomic_load_n(&type->id, __ATOMIC_RELAXED);
	if (!id) {
		err = d9_event_type_register(type);
		if (err)
			return err;
		id = __atomic_load_n(&type->id, __ATOMIC_RELAXED);
	}
	return emit(type, id, args);
}
