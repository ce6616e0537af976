/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dial9/field_type.h>

#include "analyze/budget.h"
#include "base/array.h"
#include "format/encoder.h"
#include "symbol/row_batch.h"

#define ROW_TYPE      1
#define ROW_BYTES_MAX 64 /* an event's head, four varints and two pool ids */

static const struct {
	const char *name;
	uint8_t type;
} fields[] = {
	{ "addr", D9_FIELD_VARINT },	     { "size", D9_FIELD_VARINT },
	{ "symbol_name", D9_FIELD_POOLED_STRING }, { "inline_depth", D9_FIELD_VARINT },
	{ "source_file", D9_FIELD_POOLED_STRING }, { "source_line", D9_FIELD_VARINT },
};

/* Where |len| bytes more can be written; NULL if out of memory. */
static uint8_t *reserve(struct d9__row_batch *batch, size_t len)
{
	if (!d9__array_reserve(batch->bytes, &batch->capacity, batch->len, len))
		return NULL;
	return batch->bytes + batch->len;
}

static uint8_t *put_name(uint8_t *p, const char *name)
{
	size_t len = strlen(name);

	return d9__wire_put_bytes(d9__wire_put_u16(p, (uint16_t)len), name, len);
}

/* The header, the schema, and the reset that rows begin with: their time is 0. */
static int begin(struct d9__row_batch *batch)
{
	uint8_t *p = reserve(batch, 256);

	if (!p)
		return -ENOMEM;
	p = d9__wire_put_header(p);
	*p++ = D9__WIRE_SCHEMA;
	p = put_name(d9__wire_put_u16(p, ROW_TYPE), "SymbolTableEntry");
	*p++ = 1;
	p = d9__wire_put_u16(p, sizeof(fields) / sizeof(fields[0]));
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		p = put_name(p, fields[i].name);
		*p++ = fields[i].type;
	}
	batch->len = (size_t)(d9__wire_put_time_reset(p, 0) - batch->bytes);
	return 0;
}

/* The pool id of |text|, which stands in the batch from now on. */
static int pool(struct d9__row_batch *batch, const char *text, uint32_t *id)
{
	size_t len = strlen(text);
	uint8_t *p;
	int err;

	batch->pool.kind = D9__KEPT_SYMBOLS;
	err = d9__texts_number(&batch->pool, text, len, id);
	for (; !err && batch->n_pooled <= *id; batch->n_pooled++) {
		const char *kept = batch->pool.items[batch->n_pooled];

		len = batch->pool.lens[batch->n_pooled];
		p = reserve(batch, D9__POOL_ENTRY_FRAME_LEN + len);
		if (!p)
			return -ENOMEM;
		batch->len = (size_t)(d9__wire_put_pool_entry(p, batch->n_pooled, kept, len) - batch->bytes);
	}
	return err;
}

static int add_row(struct d9__row_batch *batch, uint64_t address, uint64_t depth, const struct d9__symbol *symbol)
{
	uint32_t name, file;
	uint8_t *p;
	int err = pool(batch, symbol->function ? symbol->function : "?", &name);

	if (!err)
		err = pool(batch, symbol->path ? symbol->path : "", &file);
	p = err ? NULL : reserve(batch, ROW_BYTES_MAX);
	if (!p)
		return -ENOMEM;
	p = d9__wire_put_event_head(p, ROW_TYPE, 0);
	p = d9__varint_put(p, address);
	p = d9__varint_put(p, 0);
	p = d9__wire_put_u32(p, name);
	p = d9__varint_put(p, depth);
	p = d9__wire_put_u32(p, file);
	p = d9__varint_put(p, symbol->line);
	batch->len = (size_t)(p - batch->bytes);
	batch->rows++;
	return 0;
}

/* Add a row that viewers know by its beginning: "[kernel] 0x...", "[symbolize-failed] 0x..."; else "MODULE+0x...". */
static int add_place(struct d9__row_batch *batch, uint64_t address, const struct d9__symbol *place)
{
	struct d9__symbol row = *place;
	char failed[64];

	if (address >> 63) {
		row.path = "kernel";
	} else if (!place->module) {
		snprintf(failed, sizeof(failed), "[symbolize-failed] 0x%" PRIx64, address);
		row.function = failed;
	}
	return add_row(batch, address, 0, &row);
}

int d9__row_batch_add(struct d9__row_batch *batch, uint64_t address, const struct d9__frames *frames)
{
	int err = batch->len ? 0 : begin(batch);

	if (!err && !frames->known)
		return add_place(batch, address, &frames->items[0]);
	for (size_t depth = 0; !err && depth < frames->n; depth++)
		err = add_row(batch, address, depth, &frames->items[frames->n - 1 - depth]);
	return err;
}

int d9__row_batch_add_text(struct d9__row_batch *batch, const char *name, const char *recorded)
{
	const struct d9__symbol row = { .function = name, .path = recorded };
	int err = batch->len ? 0 : begin(batch);

	return err ? err : add_row(batch, 0, 0, &row);
}

void d9__row_batch_release(struct d9__row_batch *batch)
{
	free(batch->bytes);
	d9__texts_release(&batch->pool);
	*batch = (struct d9__row_batch){ 0 };
}
