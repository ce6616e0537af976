/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "batch_walk.h"

#define TYPES 4096
#define POOL  65536

struct text {
	const uint8_t *at;
	size_t len;
};

struct type {
	struct text name;
	bool known, used, annotated;
	unsigned fields;
	struct text field_name[WALK_FIELDS];
	uint8_t field_type[WALK_FIELDS];
};

struct walk {
	const uint8_t *begin, *p, *end;
	const char *error;
	struct walk_totals totals;
	uint64_t base;
	struct type type[TYPES];
	struct text pool[POOL];
};

static uint64_t fixed(struct walk *w, unsigned bytes)
{
	uint64_t v = 0;

	if ((size_t)(w->end - w->p) < bytes) {
		w->error = "cut";
		return 0;
	}
	for (unsigned i = 0; i < bytes; i++)
		v |= (uint64_t)*w->p++ << 8 * i;
	return v;
}

static uint64_t leb(struct walk *w)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 70 && !w->error; shift += 7) {
		uint64_t byte = fixed(w, 1);

		v |= (byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			if (byte == 0 && shift)
				w->error = "padded varint";
			return v;
		}
	}
	w->error = "endless varint";
	return 0;
}

static struct text text(struct walk *w, unsigned length_bytes)
{
	struct text t = { NULL, fixed(w, length_bytes) };

	if (!w->error && (size_t)(w->end - w->p) < t.len)
		w->error = "cut text";
	if (w->error)
		return (struct text){ NULL, 0 };
	t.at = w->p;
	w->p += t.len;
	return t;
}

static void schema(struct walk *w)
{
	uint64_t id = fixed(w, 2);
	struct type *type = &w->type[id % TYPES];

	if (id >= TYPES || type->known) {
		w->error = "schema id out of range or defined twice";
		return;
	}
	type->name = text(w, 2);
	if (fixed(w, 1) != 1)
		w->error = "event without a time";
	type->fields = (unsigned)fixed(w, 2);
	if (type->fields > WALK_FIELDS)
		w->error = "too many fields for this test";
	for (unsigned i = 0; i < type->fields && !w->error; i++) {
		type->field_name[i] = text(w, 2);
		type->field_type[i] = (uint8_t)fixed(w, 1);
	}
	type->known = true;
	w->totals.schemas++;
}

static void annotations(struct walk *w)
{
	uint64_t id = leb(w), n = fixed(w, 2);
	struct type *type = &w->type[id % TYPES];

	if (id >= TYPES || !type->known || type->used || type->annotated)
		w->error = "annotations of an unknown or used type, or twice";
	type->annotated = true;
	for (uint64_t i = 0; i < n && !w->error; i++) {
		if (fixed(w, 2) >= type->fields)
			w->error = "annotation of no field";
		text(w, 2);
		text(w, 4);
		w->totals.annotations++;
	}
}

static void pool(struct walk *w)
{
	uint64_t n = fixed(w, 4);

	for (uint64_t i = 0; i < n && !w->error; i++) {
		uint64_t id = fixed(w, 4);

		if (id != w->totals.names || id >= POOL) {
			w->error = "pool ids are not 0, 1, 2 ...";
			return;
		}
		w->pool[id] = text(w, 4);
		w->totals.names++;
	}
}

static void value(struct walk *w, struct walk_value *v, uint8_t type)
{
	struct text t = { NULL, 0 };

	v->type = type;
	v->present = true;
	if (type & 0x80) {
		v->present = fixed(w, 1) == 1;
		if (!v->present)
			return;
	}
	switch (type & 0x7f) {
	case 1:
	case 2:
		v->number = fixed(w, 8);
		break;
	case 3:
	case 11:
		v->number = fixed(w, 1);
		break;
	case 4:
	case 5:
		t = text(w, 4);
		break;
	case 7:
		v->number = fixed(w, 4);
		if (v->number >= w->totals.names)
			w->error = "undefined pool id";
		else
			t = w->pool[v->number];
		break;
	case 9:
		v->number = leb(w);
		break;
	case 12:
		v->number = fixed(w, 2);
		break;
	case 13:
		v->number = fixed(w, 4);
		break;
	default:
		w->error = "field type this test does not know";
	}
	v->text = (const char *)t.at;
	v->text_len = t.len;
}

static void event(struct walk *w, walk_fn fn, void *arg)
{
	uint64_t id = fixed(w, 2), delta = fixed(w, 3);
	struct type *type = &w->type[id % TYPES];
	struct walk_event e = { .type_id = (uint16_t)id };

	if (id >= TYPES || !type->known || !w->totals.resets) {
		w->error = "event of unknown type, or before the first reset";
		return;
	}
	type->used = true;
	e.name = (const char *)type->name.at;
	e.name_len = type->name.len;
	w->base += delta;
	e.ns = w->base;
	e.count = type->fields;
	for (unsigned i = 0; i < type->fields && !w->error; i++) {
		e.value[i].name = (const char *)type->field_name[i].at;
		e.value[i].name_len = type->field_name[i].len;
		value(w, &e.value[i], type->field_type[i]);
	}
	w->totals.events++;
	if (fn && !w->error)
		fn(&e, arg);
}

static void frame(struct walk *w, walk_fn fn, void *arg)
{
	switch (fixed(w, 1)) {
	case 1:
		schema(w);
		break;
	case 2:
		event(w, fn, arg);
		break;
	case 3:
		pool(w);
		break;
	case 5:
		w->base = fixed(w, 8);
		w->totals.resets++;
		break;
	case 6:
		annotations(w);
		break;
	default:
		w->error = "unknown tag";
	}
}

struct walk_totals walk_batch(const uint8_t *bytes, size_t len, walk_fn fn, void *arg)
{
	struct walk *w = calloc(1, sizeof(*w));
	struct walk_totals totals = { .error = "out of memory" };

	if (!w)
		return totals;
	w->begin = w->p = bytes;
	w->end = bytes + len;
	if (len < 5 || memcmp(bytes, "TRC\0\1", 5) != 0)
		w->error = "no header";
	else
		w->p += 5;
	while (!w->error && w->p < w->end) {
		w->totals.offset = (size_t)(w->p - w->begin);
		frame(w, fn, arg);
	}
	totals = w->totals;
	totals.error = w->error;
	free(w);
	return totals;
}

bool walk_is(const struct walk_event *e, const char *name)
{
	return e->name_len == strlen(name) && memcmp(e->name, name, e->name_len) == 0;
}

const struct walk_value *walk_value(const struct walk_event *e, const char *name)
{
	for (unsigned i = 0; i < e->count; i++)
		if (e->value[i].name_len == strlen(name) &&
		    memcmp(e->value[i].name, name, e->value[i].name_len) == 0)
			return &e->value[i];
	return NULL;
}
