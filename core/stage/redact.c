/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dial9/error.h>
#include <dial9/field_type.h>

#include "base/array.h"
#include "base/table.h"
#include "format/encoder.h"
#include "stage/frames.h"
#include "stage/packed_output.h"
#include "stage/redact.h"
#include "stage/scrub.h"

#define UNDEFINED UINT32_MAX /* a number that is never given: for ids without a definition */

/* One pool of the batch that is written. */
struct pool {
	struct d9__table
		ids; /* by the action and the id in the batch being read: its new number + 1 */
	uint32_t n;	      /* numbers given */
	uint32_t empty;	      /* the number + 1 of the empty text or stack; 0: it has none */
};

/* An event being written.  Pool entries that it refers to are written before it. */
struct event {
	uint8_t *bytes;
	size_t len, capacity;
};

struct redact {
	struct d9__redact_rules *rules;
	struct d9__frames_in in;
	struct d9__packed_output out;
	struct d9__table plans; /* by number of a schema */
	struct pool strings, stacks;
	struct event event;
	uint64_t base_ns; /* the time base as readers of the output have it */
	bool skipping;	  /* a value that is not to be written */
	uint8_t how;	  /* enum d9__redact_field: the replacement of this value */
};

/* ---- pools ---- */

static void forget_pool(struct pool *pool)
{
	d9__table_release(&pool->ids);
	*pool = (struct pool) { 0 };
}

/* Return the replacement of a text of |*len| bytes. */
static int stand_in(struct redact *redact, const char **text, size_t *len)
{
	if (redact->how == D9__REDACT_LEAVE || redact->skipping)
		return 0;
	return d9__scrub_text(redact->rules->scrub, redact->how, *text, *len, text, len);
}

static int put_string(struct redact *redact, const struct d9__pool_entry *entry, uint32_t id)
{
	size_t len = entry ? entry->n : 0;
	const char *text = len ? entry->data : "";
	uint8_t *p;

	if (entry && stand_in(redact, &text, &len))
		return -ENOMEM;
	p = d9__packed_output_reserve(&redact->out, D9__POOL_ENTRY_FRAME_LEN + len);
	if (!p)
		return -ENOMEM;
	d9__wire_put_pool_entry(p, id, text, len);
	redact->out.len += D9__POOL_ENTRY_FRAME_LEN + len;
	return 0;
}

/* Write the replacement of the address at |p| in its place. */
static int put_address(struct redact *redact, uint8_t *p)
{
	uint64_t address;
	int err = d9__scrub_number(redact->rules->scrub, redact->how, d9__wire_get_u64(p), &address);

	if (!err)
		d9__wire_put_u64(p, address);
	return err;
}

static int put_stack(struct redact *redact, const struct d9__pool_entry *entry, uint32_t id)
{
	uint32_t n = entry ? entry->n : 0;
	size_t len = D9__POOL_ENTRY_FRAME_LEN + (size_t)n * 8;
	uint8_t *p = d9__packed_output_reserve(&redact->out, len);

	if (!p)
		return -ENOMEM;
	d9__wire_put_stack_entry(p, id, n ? entry->data : NULL, n);
	for (uint32_t i = 0; redact->how != D9__REDACT_LEAVE && i < n; i++)
		if (put_address(redact, p + D9__POOL_ENTRY_FRAME_LEN + (size_t)i * 8))
			return -ENOMEM;
	redact->out.len += len;
	return 0;
}

/* Put the number of |entry| in the output into |*id|; NULL stands for the empty entry. */
static int renumber(struct redact *redact, bool is_stack, const struct d9__pool_entry *entry,
		    uint32_t *id)
{
	struct pool *pool = is_stack ? &redact->stacks : &redact->strings;
	uint64_t key = entry ? (uint64_t)redact->how << 32 | entry->id : 0;
	size_t known = entry ? (size_t)(uintptr_t)d9__table_find(&pool->ids, key) : pool->empty;
	int err = 0;

	if (!known && pool->n == UNDEFINED)
		return -EFBIG;
	if (!known) {
		known = (size_t)pool->n + 1;
		err = is_stack ? put_stack(redact, entry, pool->n)
			       : put_string(redact, entry, pool->n);
		if (!err && entry)
			err = d9__table_add(&pool->ids, key, (void *)(uintptr_t)known);
		else if (!err)
			pool->empty = (uint32_t)known;
		pool->n++;
	}
	*id = (uint32_t)(known - 1);
	return err;
}

/* ---- values ---- */

static int put(struct redact *redact, const void *bytes, size_t len)
{
	struct event *event = &redact->event;
	if (redact->skipping || !len)
		return 0;
	if (!d9__array_reserve(event->bytes, &event->capacity, event->len, len))
		return -ENOMEM;
	d9__wire_put_bytes(event->bytes + event->len, bytes, len);
	event->len += len;
	return 0;
}

static int put_u32(struct redact *redact, uint32_t value)
{
	uint8_t bytes[4];

	d9__wire_put_u32(bytes, value);
	return put(redact, bytes, sizeof(bytes));
}

static int put_plain(struct redact *redact, const char *text)
{
	size_t len = strlen(text);

	return put_u32(redact, (uint32_t)len) ? -ENOMEM : put(redact, text, len);
}

static int copy_bytes(struct redact *redact, struct d9__cursor *in, uint64_t len)
{
	const uint8_t *bytes;

	return d9__cursor_take(in, len, &bytes) ? put(redact, bytes, (size_t)len) : -EBADMSG;
}

/* Copy a count or length, and as many items of |size| bytes. */
static int copy_counted(struct redact *redact, struct d9__cursor *in, uint32_t size)
{
	uint32_t n;

	if (!d9__cursor_u32(in, &n))
		return -EBADMSG;
	return put_u32(redact, n) ? -ENOMEM : copy_bytes(redact, in, (uint64_t)n * size);
}

static int copy_varint(struct redact *redact, struct d9__cursor *in)
{
	const uint8_t *start = in->p;
	uint8_t bytes[D9__VARINT_MAX];
	uint64_t value;

	if (d9__cursor_varint(in, &value) != 1)
		return -EBADMSG;
	if (redact->how == D9__REDACT_LEAVE || redact->skipping)
		return put(redact, start, (size_t)(in->p - start));
	if (d9__scrub_number(redact->rules->scrub, redact->how, value, &value))
		return -ENOMEM;
	return put(redact, bytes, (size_t)(d9__varint_put(bytes, value) - bytes));
}

static int copy_text(struct redact *redact, struct d9__cursor *in)
{
	const uint8_t *bytes;
	const char *text;
	uint32_t n;
	size_t len;

	if (!d9__cursor_blob(in, &bytes, &n))
		return -EBADMSG;
	text = (const char *)bytes;
	len = n;
	return stand_in(redact, &text, &len) || put_u32(redact, (uint32_t)len) || put(redact, text, len) ? -ENOMEM : 0;
}

static int copy_stack(struct redact *redact, struct d9__cursor *in)
{
	size_t at = redact->event.len + 4;
	int err = copy_counted(redact, in, 8);

	for (; !err && redact->how != D9__REDACT_LEAVE && !redact->skipping && at < redact->event.len; at += 8)
		err = put_address(redact, redact->event.bytes + at);
	return err;
}

static int copy_pooled(struct redact *redact, struct d9__cursor *in, bool is_stack)
{
	const struct d9__decoder *decoder = &redact->in.reader.decoder;
	const struct d9__pool_entry *entry;
	uint32_t id;
	int err = 0;

	if (!d9__cursor_u32(in, &id))
		return -EBADMSG;
	entry = d9__pool_find(is_stack ? &decoder->stacks : &decoder->strings, id);
	id = UNDEFINED;
	if (!redact->skipping && entry)
		err = renumber(redact, is_stack, entry, &id);
	return err ? err : put_u32(redact, id);
}

static int copy_value(struct redact *redact, struct d9__cursor *in, uint8_t type, unsigned depth);

static int copy_tagged(struct redact *redact, struct d9__cursor *in, unsigned depth)
{
	uint8_t type;

	if (!d9__cursor_u8(in, &type))
		return -EBADMSG;
	return put(redact, &type, 1) ? -ENOMEM : copy_value(redact, in, type, depth + 1);
}

/* Copy the items of a list, or of a map, which has two values an item. */
static int copy_items(struct redact *redact, struct d9__cursor *in, unsigned each, unsigned depth)
{
	uint32_t n;
	int err;

	if (depth >= D9__DECODER_DEPTH_MAX || !d9__cursor_u32(in, &n) ||
	    !d9__cursor_holds(in, n, 2 * each))
		return -EBADMSG;
	err = put_u32(redact, n);
	for (uint64_t i = 0; !err && i < (uint64_t)n * each; i++)
		err = copy_tagged(redact, in, depth);
	return err;
}

static int copy_pairs(struct redact *redact, struct d9__cursor *in)
{
	uint32_t n;
	int err;

	if (!d9__cursor_u32(in, &n) || !d9__cursor_holds(in, n, 8))
		return -EBADMSG;
	err = put_u32(redact, n);
	for (uint64_t i = 0; !err && i < 2 * (uint64_t)n; i++)
		err = copy_counted(redact, in, 1);
	return err;
}

static int copy_value(struct redact *redact, struct d9__cursor *in, uint8_t type, unsigned depth)
{
	switch (type) {
	case D9_FIELD_BOOL:
	case D9_FIELD_U8:
		return copy_bytes(redact, in, 1);
	case D9_FIELD_U16:
		return copy_bytes(redact, in, 2);
	case D9_FIELD_U32:
		return copy_bytes(redact, in, 4);
	case D9_FIELD_I64:
	case D9_FIELD_F64:
		return copy_bytes(redact, in, 8);
	case D9_FIELD_VARINT:
		return copy_varint(redact, in);
	case D9_FIELD_STRING:
		return copy_text(redact, in);
	case D9_FIELD_BYTES:
		return copy_counted(redact, in, 1);
	case D9_FIELD_STACK:
		return copy_stack(redact, in);
	case D9_FIELD_POOLED_STRING:
	case D9_FIELD_POOLED_STACK:
		return copy_pooled(redact, in, type == D9_FIELD_POOLED_STACK);
	case D9_FIELD_STRING_MAP:
		return copy_pairs(redact, in);
	case D9_FIELD_LIST:
		return copy_items(redact, in, 1, depth);
	case D9_FIELD_MAP:
		return copy_items(redact, in, 2, depth);
	default:
		return -EBADMSG;
	}
}

/* ---- what rules name ---- */

/* Write the empty value of |type|: 0, an empty text, no elements. */
static int put_nothing(struct redact *redact, uint8_t type)
{
	static const uint8_t zeros[8] = { 0 };
	uint32_t id;
	int err;

	switch (type) {
	case D9_FIELD_BOOL:
	case D9_FIELD_U8:
	case D9_FIELD_VARINT:
		return put(redact, zeros, 1);
	case D9_FIELD_U16:
		return put(redact, zeros, 2);
	case D9_FIELD_I64:
	case D9_FIELD_F64:
		return put(redact, zeros, 8);
	case D9_FIELD_POOLED_STRING:
	case D9_FIELD_POOLED_STACK:
		err = renumber(redact, type == D9_FIELD_POOLED_STACK, NULL, &id);
		return err ? err : put_u32(redact, id);
	default: /* a number of four bytes, a length, or a count */
		return put(redact, zeros, 4);
	}
}

static int skip_value(struct redact *redact, struct d9__cursor *in, uint8_t type)
{
	int err;

	redact->skipping = true;
	err = copy_value(redact, in, type, 0);
	redact->skipping = false;
	return err;
}

static int copy_pair(struct redact *redact, const struct d9__cursor *key, struct d9__cursor *in)
{
	struct d9__cursor pair = { key->p, in->p, 0 };

	return copy_bytes(redact, &pair, (uint64_t)(in->p - key->p));
}

/* Copy a map of texts without the pairs whose keys the rules name. */
static int copy_kept_pairs(struct redact *redact, struct d9__cursor *in,
			   const struct d9_schema *schema, uint32_t field)
{
	size_t at = redact->event.len;
	const uint8_t *key, *value;
	uint32_t n, len, value_len, kept = 0;
	int err;

	if (!d9__cursor_u32(in, &n) || !d9__cursor_holds(in, n, 8))
		return -EBADMSG;
	err = put_u32(redact, n);
	for (; !err && n; n--) {
		struct d9__cursor start = *in;

		if (!d9__cursor_blob(in, &key, &len) || !d9__cursor_blob(in, &value, &value_len))
			return -EBADMSG;
		if (d9__redact_key(redact->rules, schema, field, (const char *)key, len))
			continue;
		kept++;
		err = copy_pair(redact, &start, in);
	}
	if (!err)
		d9__wire_put_u32(redact->event.bytes + at, kept);
	return err;
}

/* Copy a map of texts with scrub's replacement of each pair. */
static int copy_scrubbed_pairs(struct redact *redact, struct d9__cursor *in)
{
	size_t at = redact->event.len;
	const uint8_t *key, *value;
	uint32_t n, len, value_len, kept = 0;
	int err, made;

	if (!d9__cursor_u32(in, &n) || !d9__cursor_holds(in, n, 8))
		return -EBADMSG;
	err = put_u32(redact, n);
	for (; !err && n; n--) {
		char *new_key, *new_value;

		if (!d9__cursor_blob(in, &key, &len) || !d9__cursor_blob(in, &value, &value_len))
			return -EBADMSG;
		made = d9__scrub_pair(redact->rules->scrub, (const char *)key, len, (const char *)value, value_len, &new_key,
				      &new_value);
		if (made < 0)
			return made;
		if (!made)
			continue;
		err = put_plain(redact, new_key);
		if (!err)
			err = put_plain(redact, new_value);
		free(new_key);
		free(new_value);
		kept++;
	}
	if (!err)
		d9__wire_put_u32(redact->event.bytes + at, kept);
	return err;
}

static int put_scrubbed(struct redact *redact, struct d9__cursor *in, uint8_t type, enum d9__redact_field how)
{
	int err;

	if (how == D9__SCRUB_PAIRS)
		return copy_scrubbed_pairs(redact, in);
	redact->how = (uint8_t)how;
	err = copy_value(redact, in, type, 0);
	redact->how = D9__REDACT_LEAVE;
	return err;
}

static int take_field(struct redact *redact, struct d9__cursor *in, const struct d9_schema *schema,
		      uint32_t i, enum d9__redact_field what)
{
	const struct d9__field_definition *field = &schema->fields[i];
	uint8_t present = 1, written;
	int err = 0;

	if (field->optional) {
		if (!d9__cursor_u8(in, &present))
			return -EBADMSG;
		written = present && what != D9__REDACT_EMPTY;
		err = put(redact, &written, 1);
	}
	if (err || !present)
		return err;
	if (what == D9__REDACT_KEYS)
		return copy_kept_pairs(redact, in, schema, i);
	if (what == D9__REDACT_LEAVE)
		return copy_value(redact, in, field->type, 0);
	if (what != D9__REDACT_EMPTY)
		return put_scrubbed(redact, in, field->type, what);
	err = skip_value(redact, in, field->type);
	return err || field->optional ? err : put_nothing(redact, field->type);
}

/* ---- frames ---- */

static struct d9__redact_plan *plan_of(struct redact *redact, const struct d9_schema *schema)
{
	struct d9__redact_plan *plan = d9__table_find(&redact->plans, schema->id);

	if (plan)
		return plan;
	plan = d9__redact_plan(redact->rules, schema);
	if (plan && d9__table_add(&redact->plans, schema->id, plan)) {
		free(plan);
		return NULL;
	}
	return plan;
}

static int put_frame(struct redact *redact, const uint8_t *bytes, size_t len)
{
	uint8_t *p = d9__packed_output_reserve(&redact->out, len);

	if (!p)
		return -ENOMEM;
	/* An event without fields has no bytes. */
	if (len)
		d9__wire_put_bytes(p, bytes, len);
	redact->out.len += len;
	return 0;
}

/* Write an event's head, behind a reset if its time needs one. */
static int put_head(struct redact *redact, const struct d9__frame *frame)
{
	uint64_t ns = frame->timestamp_ns;
	uint16_t type = d9__wire_get_u16(frame->start + 1);
	uint8_t head[D9__WIRE_TIME_RESET_LEN + 8], *p = head;

	if (!frame->schema->has_timestamp)
		return put_frame(redact, frame->start, 3);
	if (ns < redact->base_ns || ns - redact->base_ns > D9__WIRE_DELTA_MAX) {
		p = d9__wire_put_time_reset(p, ns);
		redact->base_ns = ns;
	}
	p = d9__wire_put_event_head(p, type, (uint32_t)(ns - redact->base_ns));
	redact->base_ns = ns;
	return put_frame(redact, head, (size_t)(p - head));
}

static int take_event(struct redact *redact, const struct d9__frame *frame)
{
	struct d9__cursor in = { frame->payload, frame->end, 0 };
	struct d9__redact_plan *plan = plan_of(redact, frame->schema);
	int err = plan ? 0 : -ENOMEM;

	if (err || plan->drop || (redact->rules->scrub && !d9__scrub_event(redact->rules->scrub, frame)))
		return err;
	redact->event.len = 0;
	for (uint32_t i = 0; !err && i < frame->schema->n_fields; i++)
		err = take_field(redact, &in, frame->schema, i, plan->fields[i]);
	if (!err)
		err = put_head(redact, frame);
	if (!err)
		err = put_frame(redact, redact->event.bytes, redact->event.len);
	if (!err)
		d9__packed_output_event(&redact->out, frame->timestamp_ns);
	return err;
}

/*
 * Write a schema unless its events are dropped: then its name, too, may be one that must not leave.
 */
static int take_schema(struct redact *redact, const struct d9__frame *frame,
		       const struct d9_schema *schema, uint16_t type)
{
	struct d9__redact_plan *plan = schema ? plan_of(redact, schema) : NULL;
	const uint8_t *bytes = frame->start;
	size_t len = (size_t)(frame->end - frame->start);
	int err = 0;

	if (!schema)
		return 0;
	if (!plan)
		return -ENOMEM;
	if (plan->drop)
		return 0;
	if (redact->rules->scrub)
		err = frame->kind == D9__FRAME_SCHEMA ? d9__scrub_definition(redact->rules->scrub, schema, type, &bytes, &len)
						      : d9__scrub_annotations(redact->rules->scrub, schema, type, &bytes, &len);
	return err ? err : put_frame(redact, bytes, len);
}

static int take_annotations(struct redact *redact, const struct d9__frame *frame)
{
	struct d9__cursor in = { frame->start + 1, frame->end, 0 };
	uint64_t type;

	if (d9__cursor_varint(&in, &type) != 1 || type > UINT16_MAX)
		return 0;
	return take_schema(redact, frame,
			   d9__decoder_schema(&redact->in.reader.decoder, (uint16_t)type), (uint16_t)type);
}

static int take_header(struct redact *redact, const struct d9__frame *frame)
{
	forget_pool(&redact->strings);
	forget_pool(&redact->stacks);
	redact->base_ns = 0;
	return put_frame(redact, frame->start, (size_t)(frame->end - frame->start));
}

static int take(struct redact *redact, const struct d9__frame *frame)
{
	int err = d9__packed_output_settle(&redact->out, frame->kind == D9__FRAME_HEADER);

	if (err)
		return err;
	switch (frame->kind) {
	case D9__FRAME_HEADER:
		return take_header(redact, frame);
	case D9__FRAME_SCHEMA:
		return take_schema(redact, frame, frame->schema, d9__wire_get_u16(frame->start + 1));
	case D9__FRAME_ANNOTATIONS:
		return take_annotations(redact, frame);
	case D9__FRAME_EVENT:
		return take_event(redact, frame);
	case D9__FRAME_STRING_POOL:
	case D9__FRAME_STACK_POOL:
	case D9__FRAME_TIME_RESET:
		break;
	}
	return 0;
}

/* ---- all of it ---- */

static int rewrite(struct redact *redact)
{
	struct d9__frame frame;
	int err;

	while ((err = d9__frames_next(&redact->in, &frame)) == 1) {
		err = take(redact, &frame);
		if (err)
			return err;
	}
	return err ? err : d9__packed_output_end(&redact->out);
}

static void release(struct redact *redact)
{
	void *plan;

	for (size_t place = 0; (place = d9__table_next(&redact->plans, place, &plan)) != 0;)
		free(plan);
	d9__table_release(&redact->plans);
	forget_pool(&redact->strings);
	forget_pool(&redact->stacks);
	free(redact->event.bytes);
	d9__packed_output_release(&redact->out);
	d9__frames_release(&redact->in);
}

/* Modules are told of a moment after the first addresses in them. */
static int learn(struct d9__scrub *scrub, int from)
{
	struct d9__frames_in in;
	struct d9__frame frame;
	int err = d9__frames_open(&in, from);

	while (!err && (err = d9__frames_next(&in, &frame)) == 1)
		err = frame.kind == D9__FRAME_EVENT ? d9__scrub_learn(scrub, &frame) : 0;
	d9__frames_release(&in);
	/* Leave damage to the pass that writes, which tells it. */
	return err == -ENOMEM ? err : 0;
}

int d9__redact(struct d9__redact_rules *rules, int from, int to, char *why, size_t why_size)
{
	struct redact redact = { .rules = rules, .out = { .fd = to } };
	int err = rules->scrub ? learn(rules->scrub, from) : 0, opened = d9__frames_open(&redact.in, from);

	if (!err)
		err = opened;
	if (!err)
		err = d9__packed_output_open(&redact.out, to, redact.in.container.kind);
	if (!err)
		err = rewrite(&redact);
	snprintf(why, why_size, "%s",
		 err == -EBADMSG && *redact.in.message ? redact.in.message : d9_strerror(err));
	release(&redact);
	return err;
}
