/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <dial9/reader.h>

#include "base/array.h"
#include "cli/symbolize/spawn_rewrite.h"
#include "format/encoder.h"
#include "read/catalogue.h"

/* ---- the number of texts ---- */

/* One more than the highest number that a text of |frame| has, at least |least|. */
static uint64_t past_ids(const struct d9__frame *frame, uint64_t least)
{
	struct d9__cursor in = { frame->start + 1, frame->end, 0 };
	uint32_t n, id, len;
	const uint8_t *text;

	if (!d9__cursor_u32(&in, &n))
		return least;
	for (; n && d9__cursor_u32(&in, &id) && d9__cursor_blob(&in, &text, &len); n--)
		least = (uint64_t)id + 1 > least ? (uint64_t)id + 1 : least;
	return least;
}

int d9__spawn_rewrite_open(struct d9__spawn_rewrite *rewrite, const char *path, const struct d9__spawn_names *names)
{
	struct d9__raw_segment segment;
	struct d9__frame frame;
	char *why = NULL;
	int err = d9__raw_segment_open(&segment, path, &why);

	*rewrite = (struct d9__spawn_rewrite){ .names = names };
	free(why);
	while (!err && (err = d9__raw_segment_next(&segment, &frame)) == 1) {
		err = 0;
		if (frame.kind == D9__FRAME_STRING_POOL)
			rewrite->first_id = past_ids(&frame, rewrite->first_id);
	}
	d9__raw_segment_release(&segment);
	if (err)
		return err;
	err = d9__raw_segment_open(&rewrite->segment, path, &why);
	free(why);
	rewrite->segment.schemas.classify = d9__catalogue_classify;
	return err;
}

/* ---- frames ---- */

/* Where |len| bytes more can be written; NULL if out of memory. */
static uint8_t *reserve(struct d9__spawn_rewrite *rewrite, size_t len)
{
	return d9__array_reserve(rewrite->bytes, &rewrite->capacity, rewrite->len, len)
		       ? rewrite->bytes + rewrite->len
		       : NULL;
}

static int copy(struct d9__spawn_rewrite *rewrite, const struct d9__frame *frame)
{
	size_t len = (size_t)(frame->end - frame->start);
	uint8_t *p = reserve(rewrite, len);

	if (!p)
		return -ENOMEM;
	rewrite->len = (size_t)(d9__wire_put_bytes(p, frame->start, len) - rewrite->bytes);
	return 0;
}

static bool pass_number(struct d9__cursor *in, uint8_t type)
{
	uint64_t number;

	switch (type) {
	case D9_FIELD_VARINT:
		return d9__cursor_varint(in, &number) == 1;
	case D9_FIELD_U8:
	case D9_FIELD_BOOL:
		return d9__cursor_skip(in, 1);
	case D9_FIELD_U16:
		return d9__cursor_skip(in, 2);
	case D9_FIELD_U32:
		return d9__cursor_skip(in, 4);
	case D9_FIELD_I64:
	case D9_FIELD_F64:
		return d9__cursor_skip(in, 8);
	default:
		return false;
	}
}

/*
 * Return the place of the number of `spawn_loc` in |frame|, or NULL: it has none, or a field that
 * is no number comes before it, as no recorder writes.
 */
static const uint8_t *find_spawn_loc(const struct d9__frame *frame)
{
	const struct d9_schema *schema = frame->schema;
	struct d9__cursor in = { frame->payload, frame->end, 0 };
	uint32_t i = 0;

	if (schema->kind != D9_EVENT_TASK_SPAWN && schema->kind != D9_EVENT_POLL_START)
		return NULL;
	for (; i < schema->n_fields && strcmp(schema->fields[i].name, "spawn_loc") != 0; i++)
		if (schema->fields[i].optional || !pass_number(&in, schema->fields[i].type))
			return NULL;
	if (i == schema->n_fields || schema->fields[i].optional || schema->fields[i].type != D9_FIELD_POOLED_STRING ||
	    d9__cursor_left(&in) < 4)
		return NULL;
	return in.p;
}

/* Replace |*id|, of a text with a name, by the number of the name, which is added to the batch. */
static int replace(struct d9__spawn_rewrite *rewrite, uint32_t *id)
{
	const struct d9__pool_entry *entry = d9__pool_find(&rewrite->segment.reader.decoder.strings, *id);
	size_t known = (size_t)(uintptr_t)d9__table_find(&rewrite->ids, *id), len;
	const char *name = entry && !known ? d9__spawn_names_of(rewrite->names, entry->data, entry->n) : NULL;
	uint8_t *p;

	if (known) {
		*id = (uint32_t)(rewrite->first_id + known - 1);
		return 0;
	}
	if (!name || rewrite->next_id > UINT32_MAX)
		return 0;
	len = strlen(name);
	p = reserve(rewrite, D9__POOL_ENTRY_FRAME_LEN + len);
	if (!p || d9__table_add(&rewrite->ids, *id, (void *)(uintptr_t)(rewrite->next_id - rewrite->first_id + 1)))
		return -ENOMEM;
	*id = (uint32_t)rewrite->next_id++;
	rewrite->len = (size_t)(d9__wire_put_pool_entry(p, *id, name, len) - rewrite->bytes);
	return 0;
}

static int take_event(struct d9__spawn_rewrite *rewrite, const struct d9__frame *frame)
{
	const uint8_t *place = find_spawn_loc(frame);
	uint32_t id = place ? d9__wire_get_u32(place) : 0;
	int err = place ? replace(rewrite, &id) : 0;
	size_t at = rewrite->len;

	if (!err)
		err = copy(rewrite, frame);
	if (!err && place)
		d9__wire_put_u32(rewrite->bytes + at + (place - frame->start), id);
	return err;
}

static int take(struct d9__spawn_rewrite *rewrite, const struct d9__frame *frame)
{
	if (frame->kind == D9__FRAME_EVENT)
		return take_event(rewrite, frame);
	if (frame->kind == D9__FRAME_HEADER) {
		d9__table_release(&rewrite->ids);
		rewrite->next_id = rewrite->first_id;
	}
	return copy(rewrite, frame);
}

int d9__spawn_rewrite_next(struct d9__spawn_rewrite *rewrite, uint64_t until)
{
	int err = 0;

	rewrite->len = 0;
	while (!err && !rewrite->ended) {
		if (!rewrite->waiting) {
			err = d9__raw_segment_next(&rewrite->segment, &rewrite->frame);
			rewrite->ended = err != 1;
			if (rewrite->ended)
				return err;
			rewrite->at = d9__segment_reader_offset(&rewrite->segment.reader, &rewrite->frame);
			rewrite->waiting = true;
		}
		if (rewrite->at >= until)
			return 0;
		err = take(rewrite, &rewrite->frame);
		rewrite->waiting = false;
	}
	return err;
}

void d9__spawn_rewrite_release(struct d9__spawn_rewrite *rewrite)
{
	d9__raw_segment_release(&rewrite->segment);
	d9__table_release(&rewrite->ids);
	free(rewrite->bytes);
}
