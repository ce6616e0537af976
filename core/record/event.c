/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arguments are checked against the table and measured first, then written: what begins to be
 * written is known to fit.
 */
#include "config.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include <dial9/event.h>

#include "format/schema.h"
#include "record/emit_inl.h"
#include "record/gate.h"
#include "record/recorder.h"

#define FIELDS_MAX 64
#define TEXT_MAX   1024
#define DEPTH_MAX  16 /* of lists in lists */

/* ---- types ---- */

static int check_type(const struct d9_event_type *type)
{
	if (!type->name || !*type->name || type->n_fields > FIELDS_MAX ||
	    (type->n_fields && !type->fields))
		return -EINVAL;
	for (size_t i = 0; i < type->n_fields; i++) {
		unsigned base = type->fields[i].type & ~D9_FIELD_OPTIONAL;

		if (!type->fields[i].name || base < D9_FIELD_I64 || base > D9_FIELD_MAP)
			return -EINVAL;
	}
	return 0;
}

/* A stack pool per chunk would serve samples only, so a pooled stack travels inline here. */
static uint8_t wire_type(unsigned type)
{
	if ((type & ~D9_FIELD_OPTIONAL) == D9_FIELD_POOLED_STACK)
		type = D9_FIELD_STACK | (type & D9_FIELD_OPTIONAL);
	return (uint8_t)type;
}

int d9_event_type_register(struct d9_event_type *type)
{
	struct d9__field fields[FIELDS_MAX];
	struct d9__schema schema;
	int saved = errno, id = type ? check_type(type) : -EINVAL;

	if (!id)
		id = d9__event_types_init();
	if (!id) {
		for (size_t i = 0; i < type->n_fields; i++)
			fields[i] = (struct d9__field){ type->fields[i].name,
							wire_type(type->fields[i].type),
							type->fields[i].unit,
							type->fields[i].kind };
		schema = (struct d9__schema){ type->name, fields, (uint16_t)type->n_fields };
		id = d9__schema_register(&schema);
	}
	/* relaxed: whoever reads it needs the number only; the type itself is constant */
	if (id > 0)
		__atomic_store_n(&type->id, (uint32_t)id, __ATOMIC_RELAXED);
	errno = saved;
	return id < 0 ? id : 0;
}

struct d9_name d9_name_intern(const char *text)
{
	struct d9_name name = { text ? d9__name_intern(text, strlen(text)) : D9__NAME_EMPTY };

	return name;
}

/* ---- measuring and checking ---- */

/* Cut at 1 KiB, before a character rather than inside it. */
static size_t cut(const char *text, size_t len)
{
	if (len <= TEXT_MAX)
		return len;
	for (len = TEXT_MAX; len > TEXT_MAX - 4 && ((unsigned char)text[len] & 0xc0) == 0x80; len--)
		;
	return len;
}

static bool is_integer(const struct d9_arg *arg, uint64_t max)
{
	switch (arg->kind) {
	case D9_ARG_U64:
		return arg->u.u64 <= max;
	case D9_ARG_I64:
		return arg->u.i64 >= 0 && (uint64_t)arg->u.i64 <= max;
	case D9_ARG_BOOL:
		return max == 1;
	default:
		return false;
	}
}

static bool is_signed(const struct d9_arg *arg)
{
	return arg->kind == D9_ARG_I64 || (arg->kind == D9_ARG_U64 && arg->u.u64 <= INT64_MAX);
}

static bool is_text(const struct d9_arg *arg)
{
	if (arg->kind == D9_ARG_NAME)
		return arg->u.name.handle <= D9__NAME_OTHER ||
		       arg->u.name.handle < d9__name_count();
	return arg->kind == D9_ARG_TEXT && (arg->u.of.data || !arg->u.of.n);
}

static size_t text_len(const struct d9_arg *arg)
{
	const struct d9__name *name;

	if (arg->kind == D9_ARG_TEXT)
		return cut(arg->u.of.data, arg->u.of.n);
	name = d9__name_text(arg->u.name.handle);
	return cut(name->text, name->len);
}

static bool has_data(const struct d9_arg *arg, enum d9_arg_kind kind)
{
	return arg->kind == kind && (arg->u.of.data || !arg->u.of.n) &&
	       arg->u.of.n <= D9__EMIT_MAX;
}

/* The wire type of an element of a list or map, 0 if there is none. */
static uint8_t element_type(const struct d9_arg *arg)
{
	switch (arg->kind) {
	case D9_ARG_U64:
		return D9_FIELD_VARINT;
	case D9_ARG_I64:
		return arg->u.i64 < 0 ? D9_FIELD_I64 : D9_FIELD_VARINT;
	case D9_ARG_F64:
		return D9_FIELD_F64;
	case D9_ARG_BOOL:
		return D9_FIELD_BOOL;
	case D9_ARG_TEXT:
	case D9_ARG_NAME: /* pooled ids inside containers stay unresolved in other tools */
		return D9_FIELD_STRING;
	case D9_ARG_BYTES:
		return D9_FIELD_BYTES;
	case D9_ARG_STACK:
		return D9_FIELD_STACK;
	case D9_ARG_LIST:
		return D9_FIELD_LIST;
	case D9_ARG_MAP:
		return D9_FIELD_MAP;
	case D9_ARG_STRING_MAP:
		return D9_FIELD_STRING_MAP;
	case D9_ARG_ABSENT:
		break;
	}
	return 0;
}

static long measure(uint8_t type, const struct d9_arg *arg, unsigned depth);

static long measure_items(const struct d9_arg *arg, size_t n, unsigned depth)
{
	const struct d9_arg *items = arg->u.of.data;
	long total = 4;

	if (depth >= DEPTH_MAX)
		return -EINVAL;
	for (size_t i = 0; i < n && total <= (long)D9__EMIT_MAX; i++) {
		uint8_t type = element_type(&items[i]);
		long size = type ? measure(type, &items[i], depth + 1) : -EINVAL;

		if (size < 0)
			return size;
		total += 1 + size;
	}
	return total;
}

static long measure_string_map(const struct d9_arg *arg)
{
	const char *const *texts = arg->u.of.data;
	long total = 4;

	for (size_t i = 0; i < 2 * arg->u.of.n && total <= (long)D9__EMIT_MAX; i++) {
		if (!texts[i])
			return -EINVAL;
		total += 4 + (long)cut(texts[i], strlen(texts[i]));
	}
	return total;
}

/* Bytes of |arg| at most, in a field of |type| without the optional bit; -EINVAL. */
static long measure(uint8_t type, const struct d9_arg *arg, unsigned depth)
{
	switch (type) {
	case D9_FIELD_VARINT:
		return is_integer(arg, UINT64_MAX) ? D9__VARINT_MAX : -EINVAL;
	case D9_FIELD_U8:
		return is_integer(arg, UINT8_MAX) ? 1 : -EINVAL;
	case D9_FIELD_U16:
		return is_integer(arg, UINT16_MAX) ? 2 : -EINVAL;
	case D9_FIELD_U32:
		return is_integer(arg, UINT32_MAX) ? 4 : -EINVAL;
	case D9_FIELD_BOOL:
		return is_integer(arg, 1) ? 1 : -EINVAL;
	case D9_FIELD_I64:
		return is_signed(arg) ? 8 : -EINVAL;
	case D9_FIELD_F64:
		return arg->kind == D9_ARG_F64 ? 8 : -EINVAL;
	case D9_FIELD_STRING:
		return is_text(arg) ? 4 + (long)text_len(arg) : -EINVAL;
	case D9_FIELD_POOLED_STRING:
		return is_text(arg) ? 4 : -EINVAL;
	case D9_FIELD_BYTES:
		return has_data(arg, D9_ARG_BYTES) ? 4 + (long)arg->u.of.n : -EINVAL;
	case D9_FIELD_STACK:
		return has_data(arg, D9_ARG_STACK) ? 4 + 8 * (long)arg->u.of.n : -EINVAL;
	case D9_FIELD_LIST:
		return has_data(arg, D9_ARG_LIST) ? measure_items(arg, arg->u.of.n, depth) :
						    -EINVAL;
	case D9_FIELD_MAP:
		return has_data(arg, D9_ARG_MAP) ? measure_items(arg, 2 * arg->u.of.n, depth) :
						   -EINVAL;
	case D9_FIELD_STRING_MAP:
		return has_data(arg, D9_ARG_STRING_MAP) ? measure_string_map(arg) : -EINVAL;
	}
	return -EINVAL;
}

/* ---- writing ---- */

static uint64_t integer_of(const struct d9_arg *arg)
{
	return arg->kind == D9_ARG_U64 ? arg->u.u64 :
	       arg->kind == D9_ARG_BOOL ? arg->u.boolean : (uint64_t)arg->u.i64;
}

static uint8_t *put_text(uint8_t *p, const struct d9_arg *arg)
{
	const char *text = arg->kind == D9_ARG_NAME ? d9__name_text(arg->u.name.handle)->text :
			   arg->u.of.n ? arg->u.of.data : "";

	return d9__wire_put_text(p, text, text_len(arg));
}

static uint8_t *put(uint8_t *p, uint8_t type, const struct d9_arg *arg);

static uint8_t *put_items(uint8_t *p, const struct d9_arg *arg, size_t n)
{
	const struct d9_arg *items = arg->u.of.data;

	p = d9__wire_put_u32(p, (uint32_t)arg->u.of.n);
	for (size_t i = 0; i < n; i++) {
		uint8_t type = element_type(&items[i]);

		*p++ = type;
		p = put(p, type, &items[i]);
	}
	return p;
}

static uint8_t *put_string_map(uint8_t *p, const struct d9_arg *arg)
{
	const char *const *texts = arg->u.of.data;

	p = d9__wire_put_u32(p, (uint32_t)arg->u.of.n);
	for (size_t i = 0; i < 2 * arg->u.of.n; i++)
		p = d9__wire_put_text(p, texts[i], cut(texts[i], strlen(texts[i])));
	return p;
}

static uint8_t *put_stack(uint8_t *p, const struct d9_arg *arg)
{
	const uint64_t *addresses = arg->u.of.data;

	p = d9__wire_put_u32(p, (uint32_t)arg->u.of.n);
	for (size_t i = 0; i < arg->u.of.n; i++)
		p = d9__wire_put_u64(p, addresses[i]);
	return p;
}

static uint8_t *put_f64(uint8_t *p, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return d9__wire_put_u64(p, bits);
}

static uint8_t *put(uint8_t *p, uint8_t type, const struct d9_arg *arg)
{
	switch (type) {
	case D9_FIELD_VARINT:
		return d9__varint_put(p, integer_of(arg));
	case D9_FIELD_BOOL:
	case D9_FIELD_U8:
		*p++ = (uint8_t)integer_of(arg);
		return p;
	case D9_FIELD_U16:
		return d9__wire_put_u16(p, (uint16_t)integer_of(arg));
	case D9_FIELD_U32:
		return d9__wire_put_u32(p, (uint32_t)integer_of(arg));
	case D9_FIELD_I64:
		return d9__wire_put_u64(p, integer_of(arg));
	case D9_FIELD_F64:
		return put_f64(p, arg->u.f64);
	case D9_FIELD_STRING:
		return put_text(p, arg);
	case D9_FIELD_BYTES:
		return d9__wire_put_text(p, arg->u.of.n ? arg->u.of.data : "", arg->u.of.n);
	case D9_FIELD_STACK:
		return put_stack(p, arg);
	case D9_FIELD_LIST:
		return put_items(p, arg, arg->u.of.n);
	case D9_FIELD_MAP:
		return put_items(p, arg, 2 * arg->u.of.n);
	case D9_FIELD_STRING_MAP:
		return put_string_map(p, arg);
	}
	return p;
}

/* ---- emitting ---- */

/* What one event needs before it can be begun. */
struct plan {
	size_t bytes;
	unsigned n_names;
	uint32_t handles[FIELDS_MAX];
	uint32_t ids[FIELDS_MAX];
};

static uint32_t handle_of(const struct d9_arg *arg)
{
	if (arg->kind == D9_ARG_NAME)
		return arg->u.name.handle;
	return arg->u.of.n ? d9__name_intern(arg->u.of.data, arg->u.of.n) : D9__NAME_EMPTY;
}

static int make_plan(struct plan *plan, const struct d9_event_type *type, const struct d9_arg *args)
{
	plan->bytes = 0;
	plan->n_names = 0;
	for (size_t i = 0; i < type->n_fields; i++) {
		uint8_t wire = wire_type(type->fields[i].type), base = wire & 0x7f;
		long size;

		plan->bytes += wire != base;
		if (args[i].kind == D9_ARG_ABSENT) {
			if (wire == base)
				return -EINVAL;
			continue;
		}
		size = measure(base, &args[i], 0);
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
			plan->handles[plan->n_names++] = handle_of(&args[i]);
	return 0;
}

static uint8_t *put_fields(uint8_t *p, const struct d9_event_type *type, const struct d9_arg *args,
			   const struct plan *plan)
{
	unsigned name = 0;

	for (size_t i = 0; i < type->n_fields; i++) {
		uint8_t wire = wire_type(type->fields[i].type), base = wire & 0x7f;

		if (wire != base)
			*p++ = args[i].kind != D9_ARG_ABSENT;
		if (args[i].kind == D9_ARG_ABSENT)
			continue;
		p = base == D9_FIELD_POOLED_STRING ? d9__wire_put_u32(p, plan->ids[name++]) :
						     put(p, base, &args[i]);
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
