/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "format/schema.h"
#include "format/wire.h"
#include "segment/walk.h"

#define DEPTH_MAX 64 /* of lists in lists */

/* What is left to read; |p| never passes |end|, and NULL stands for damage. */
struct range {
	const uint8_t *p, *end;
};

static bool skip(struct range *r, uint64_t n)
{
	if ((uint64_t)(r->end - r->p) < n)
		return false;
	r->p += n;
	return true;
}

static bool get_u32(struct range *r, uint32_t *out)
{
	if (r->end - r->p < 4)
		return false;
	*out = d9__wire_get_u32(r->p);
	r->p += 4;
	return true;
}

static bool get_varint(struct range *r, uint64_t *out)
{
	uint64_t value = 0;

	for (unsigned shift = 0; r->p < r->end && shift < 70; shift += 7) {
		uint8_t byte = *r->p++;

		if (shift == 63 && byte > 1)
			return false;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			*out = value;
			return true;
		}
	}
	return false;
}

uint64_t d9__walk_varint(const uint8_t **p)
{
	struct range r = { *p, *p + 10 };
	uint64_t value = 0;

	get_varint(&r, &value);
	*p = r.p;
	return value;
}

static bool skip_text(struct range *r)
{
	uint32_t len;

	return get_u32(r, &len) && skip(r, len);
}

static bool skip_value(struct range *r, uint8_t type, unsigned depth);

static bool skip_container(struct range *r, uint8_t type, unsigned depth)
{
	uint32_t n;

	if (!get_u32(r, &n) || depth >= DEPTH_MAX)
		return false;
	for (; n; n--) {
		if (type == D9__FIELD_STRING_MAP) {
			/* NOLINTNEXTLINE(misc-redundant-expression): a key, and its value */
			if (!skip_text(r) || !skip_text(r))
				return false;
			continue;
		}
		for (int half = type == D9__FIELD_MAP ? 0 : 1; half < 2; half++)
			if (r->p == r->end || !skip_value(r, *r->p++, depth + 1))
				return false;
	}
	return true;
}

static bool skip_value(struct range *r, uint8_t type, unsigned depth)
{
	uint64_t value;
	uint32_t n;

	/* Inside a list or map there is no such type. */
	if (type & D9__WIRE_OPTIONAL && !depth) {
		type &= (uint8_t)~D9__WIRE_OPTIONAL;
		if (r->p == r->end)
			return false;
		if (!*r->p++)
			return type >= D9__FIELD_I64 && type <= D9__FIELD_MAP;
	}
	switch (type) {
	case D9__FIELD_VARINT:
		return get_varint(r, &value);
	case D9__FIELD_I64:
	case D9__FIELD_F64:
		return skip(r, 8);
	case D9__FIELD_BOOL:
	case D9__FIELD_U8:
		return skip(r, 1);
	case D9__FIELD_U16:
		return skip(r, 2);
	case D9__FIELD_U32:
	case D9__FIELD_POOLED_STACK:
	case D9__FIELD_POOLED_STRING:
		return skip(r, 4);
	case D9__FIELD_STRING:
	case D9__FIELD_BYTES:
		return skip_text(r);
	case D9__FIELD_STACK:
		return get_u32(r, &n) && skip(r, (uint64_t)n * 8);
	case D9__FIELD_STRING_MAP:
	case D9__FIELD_LIST:
	case D9__FIELD_MAP:
		return skip_container(r, type, depth);
	}
	return false;
}

/*
 * Whether a type that was defined before, at |known|, is defined again by [from, fields) and what
 * follows up to |end| in just the same way.
 */
static bool is_same(const struct d9__walker *w, const uint8_t *known, const uint8_t *from,
		    const uint8_t *fields, const uint8_t *end)
{
	return fields - from <= known - w->batch &&
	       !memcmp(known - (fields - from), from, (size_t)(end - from));
}

/* Behind the tag: the type and where its fields are. */
static bool get_schema(struct range *r, uint16_t *id, const uint8_t **fields, uint16_t *n)
{
	if (r->end - r->p < 4)
		return false;
	*id = d9__wire_get_u16(r->p);
	if (!skip(r, 4u + d9__wire_get_u16(r->p + 2)) || r->end - r->p < 3)
		return false;
	/* All our events carry a time: walk_event() relies on it. */
	if (r->p[0] != 1)
		return false;
	*n = d9__wire_get_u16(r->p + 1);
	r->p += 3;
	*fields = r->p;
	for (uint16_t i = 0; i < *n; i++)
		if (r->end - r->p < 2 || !skip(r, 3u + d9__wire_get_u16(r->p)))
			return false;
	return *id < D9__TYPES_MAX;
}

static bool walk_schema(struct d9__walker *w, struct range *r)
{
	const uint8_t *fields, *from = r->p;
	uint16_t id, n;

	if (!get_schema(r, &id, &fields, &n) || (w->fields[id] && !is_same(w, w->fields[id], from, fields, r->p)))
		return false;
	w->fields[id] = fields;
	w->n_fields[id] = n;
	return true;
}

static bool walk_pool(struct range *r, bool stacks)
{
	uint32_t n, len;

	if (!get_u32(r, &n))
		return false;
	for (; n; n--)
		if (!skip(r, 4) || !get_u32(r, &len) || !skip(r, (uint64_t)len * (stacks ? 8 : 1)))
			return false;
	return true;
}

static bool walk_annotations(struct range *r)
{
	uint64_t id;
	uint16_t n;

	if (!get_varint(r, &id) || r->end - r->p < 2)
		return false;
	n = d9__wire_get_u16(r->p);
	r->p += 2;
	for (; n; n--)
		if (r->end - r->p < 4 || !skip(r, 4u + d9__wire_get_u16(r->p + 2)) || !skip_text(r))
			return false;
	return true;
}

static bool walk_event(struct d9__walker *w, struct range *r, struct d9__wire_frame *frame)
{
	const uint8_t *field;

	if (r->end - r->p < 5)
		return false;
	frame->type_id = d9__wire_get_u16(r->p);
	if (__builtin_add_overflow(w->time_base, d9__wire_get_u24(r->p + 2), &w->time_base))
		return false;
	frame->ns = w->time_base;
	r->p += 5;
	frame->values = r->p;
	if (frame->type_id >= D9__TYPES_MAX || !w->fields[frame->type_id])
		return false;
	field = w->fields[frame->type_id];
	for (uint16_t i = 0; i < w->n_fields[frame->type_id]; i++) {
		field += 2 + d9__wire_get_u16(field);
		if (!skip_value(r, *field++, 0))
			return false;
	}
	return true;
}

static bool walk_frame(struct d9__walker *w, struct range *r, struct d9__wire_frame *frame)
{
	switch (frame->tag) {
	case D9__WIRE_SCHEMA:
		return walk_schema(w, r);
	case D9__WIRE_EVENT:
		return walk_event(w, r, frame);
	case D9__WIRE_STRING_POOL:
	case D9__WIRE_STACK_POOL:
		return walk_pool(r, frame->tag == D9__WIRE_STACK_POOL);
	case D9__WIRE_TIME_RESET:
		if (r->end - r->p < 8)
			return false;
		w->time_base = d9__wire_get_u64(r->p);
		r->p += 8;
		return true;
	case D9__WIRE_ANNOTATIONS:
		return walk_annotations(r);
	}
	return false;
}

/* Begin with the batch at |r|; false if it is none. */
static bool begin(struct d9__walker *w, struct range *r)
{
	const uint8_t *batch = r->p;

	memset(w, 0, sizeof(*w));
	w->batch = batch;
	return skip(r, D9__WIRE_HEADER_LEN) && !memcmp(batch, D9__WIRE_MAGIC, D9__WIRE_MAGIC_LEN) &&
	       batch[D9__WIRE_MAGIC_LEN] == D9__WIRE_VERSION;
}

int d9__walk(struct d9__walker *w, const uint8_t *batch, uint32_t len, d9__wire_frame_fn fn, void *arg)
{
	struct range r = { batch, batch + len };

	if (!begin(w, &r))
		return -EBADMSG;
	while (r.p < r.end) {
		struct d9__wire_frame frame = { .tag = *r.p, .bytes = r.p };

		r.p++;
		if (!walk_frame(w, &r, &frame))
			return -EBADMSG;
		frame.len = (uint32_t)(r.p - frame.bytes);
		if (!fn(arg, &frame))
			return 1;
	}
	return 0;
}

uint32_t d9__walk_whole(struct d9__walker *w, const uint8_t *bytes, size_t len, d9__wire_frame_fn fn,
			void *arg)
{
	struct range r = { bytes, bytes + len };
	const uint8_t *whole;

	if (!begin(w, &r))
		return 0;
	for (whole = r.p; r.p < r.end; whole = r.p) {
		struct d9__wire_frame frame = { .tag = *r.p, .bytes = r.p };

		r.p++;
		if (!walk_frame(w, &r, &frame))
			break;
		frame.len = (uint32_t)(r.p - frame.bytes);
		if (!fn(arg, &frame))
			break;
	}
	return (uint32_t)(whole - bytes);
}

/* Types are known by what the process registered, which stays where it is; those of a chunk go with it. */
static bool know_type(struct d9__walker *w, uint16_t id)
{
	const struct d9__type_frames *frames = w->fields[id] ? NULL : d9__event_type_frames(id);
	struct range r;

	if (!frames)
		return w->fields[id] != NULL;
	r = (struct range){ frames->bytes + 1, frames->bytes + frames->len };
	return get_schema(&r, &id, &w->fields[id], &w->n_fields[id]);
}

static bool walk_own_frame(struct d9__walker *w, struct range *r, struct d9__wire_frame *frame)
{
	const uint8_t *fields;
	uint16_t id, n;

	if (frame->tag == D9__WIRE_SCHEMA)
		return get_schema(r, &id, &fields, &n);
	if (frame->tag == D9__WIRE_EVENT && r->end - r->p >= 2) {
		id = d9__wire_get_u16(r->p);
		if (id >= D9__TYPES_MAX || !know_type(w, id))
			return false;
	}
	return walk_frame(w, r, frame);
}

bool d9__walk_on(struct d9__walker *w, const uint8_t *batch, uint32_t *at, uint32_t len, uint64_t *time_base,
		 d9__wire_frame_fn fn, void *arg)
{
	struct range r = { batch + *at, batch + len };

	if (!*at && !skip(&r, D9__WIRE_HEADER_LEN))
		return false;
	w->time_base = *time_base;
	while (r.p < r.end) {
		struct d9__wire_frame frame = { .tag = *r.p, .bytes = r.p };

		r.p++;
		if (!walk_own_frame(w, &r, &frame))
			return false;
		frame.len = (uint32_t)(r.p - frame.bytes);
		if (!fn(arg, &frame))
			break;
	}
	*at = (uint32_t)(r.p - batch);
	*time_base = w->time_base;
	return true;
}
