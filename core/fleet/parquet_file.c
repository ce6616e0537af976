/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "fleet/parquet_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/utf8.h"
#include "fleet/parquet_column.h"
#include "fleet/parquet_pages.h"
#include "fleet/thrift.h"

#define ZSTD_LEVEL 3
#define MAGIC	   "PAR1"

struct pair {
	char *key, *value;
};

struct d9__parquet {
	const struct d9__parquet_column *columns;
	size_t n;
	d9__parquet_write *write;
	void *context;
	ZSTD_CCtx *zstd;
	struct d9__parquet_values *values; /* of the row group, of each column */
	size_t next;	/* column of the row that is being put together */
	uint64_t rows;	/* of the groups before */
	uint64_t at;	/* bytes written */
	struct d9__bytes chunk, groups; /* groups: the metadata of each, for the end of the file */
	size_t n_groups;
	struct pair *pairs;
	size_t n_pairs;
	struct d9__bytes valid; /* a text that had invalid bytes, made valid */
	int err;
};

static void put_out(struct d9__parquet *file, const void *bytes, size_t len)
{
	if (!file->err && len)
		file->err = file->write(file->context, bytes, len);
	file->at += len;
}

int d9__parquet_open(const struct d9__parquet_column *columns, size_t n, d9__parquet_write *write, void *context,
		     struct d9__parquet **out)
{
	struct d9__parquet *file = calloc(1, sizeof(*file));
	int err;

	if (!file)
		return -ENOMEM;
	file->columns = columns;
	file->n = n;
	file->write = write;
	file->context = context;
	file->values = calloc(n + 1, sizeof(*file->values));
	file->zstd = ZSTD_createCCtx();
	if (!file->values || !file->zstd)
		file->err = -ENOMEM;
	else
		ZSTD_CCtx_setParameter(file->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
	for (size_t i = 0; file->values && i < n; i++)
		file->values[i].facts = &columns[i];
	put_out(file, MAGIC, strlen(MAGIC));
	err = file->err;
	if (err)
		d9__parquet_abandon(file);
	else
		*out = file;
	return err;
}

/* ---- values ---- */

/* Return the values of the next column; NULL: after an error nothing is taken. */
static struct d9__parquet_values *next_of(struct d9__parquet *file)
{
	return file->err || file->next == file->n ? NULL : &file->values[file->next++];
}

static void note(struct d9__parquet *file, int err)
{
	if (err && !file->err)
		file->err = err;
}

void d9__parquet_null(struct d9__parquet *file)
{
	struct d9__parquet_values *values = next_of(file);

	if (values)
		note(file, d9__parquet_values_skip(values));
}

void d9__parquet_i64(struct d9__parquet *file, int64_t value)
{
	struct d9__parquet_values *values = next_of(file);

	if (values)
		note(file, d9__parquet_values_add(values, (uint64_t)value));
}

void d9__parquet_bool(struct d9__parquet *file, bool value)
{
	d9__parquet_i64(file, value);
}

/* How many bytes of |text| are UTF-8. */
static size_t valid_len(const char *text, size_t len)
{
	size_t at = 0;

	for (size_t n; at < len && (n = d9__utf8_len(text + at, len - at)) > 0; at += n)
		continue;
	return at;
}

static const char *make_valid(struct d9__parquet *file, const char *text, size_t *len)
{
	size_t at = valid_len(text, *len);

	if (at == *len)
		return text;
	file->valid.len = 0;
	for (size_t from = 0; from < *len; from = at + 1) {
		at = from + valid_len(text + from, *len - from);
		d9__bytes_put(&file->valid, text + from, at - from);
		if (at < *len)
			d9__bytes_put(&file->valid, "\xef\xbf\xbd", 3);
	}
	*len = file->valid.len;
	return (const char *)file->valid.data;
}

void d9__parquet_metadata(struct d9__parquet *file, const char *key, const char *value)
{
	size_t len = strlen(value);
	struct pair *pair;

	if (!d9__array_grow(file->pairs, file->n_pairs)) {
		file->err = file->err ? file->err : -ENOMEM;
		return;
	}
	pair = &file->pairs[file->n_pairs++];
	value = make_valid(file, value, &len);
	*pair = (struct pair){ strdup(key), strndup(value, len) };
	if (file->valid.failed || !pair->key || !pair->value)
		file->err = file->err ? file->err : -ENOMEM;
}

void d9__parquet_text(struct d9__parquet *file, const char *text, size_t len)
{
	struct d9__parquet_values *values = next_of(file);

	if (!values)
		return;
	text = make_valid(file, text, &len);
	note(file, file->valid.failed ? -ENOMEM : d9__parquet_values_add_text(values, text, len));
}

void d9__parquet_string(struct d9__parquet *file, const char *text)
{
	d9__parquet_text(file, text, strlen(text));
}

/* ---- row groups ---- */

/* Write the metadata of |chunk|, as a field of its column. */
static void tell_chunk(struct d9__thrift *thrift, const struct d9__parquet_values *values,
		       const struct d9__parquet_chunk *chunk, uint64_t at)
{
	static const int32_t types[] = { [D9__PARQUET_I64] = 2, [D9__PARQUET_TIME] = 2, [D9__PARQUET_TEXT] = 6,
					 [D9__PARQUET_BOOL] = 0 };

	d9__thrift_begin(thrift, 3);
	d9__thrift_i32(thrift, 1, types[values->facts->type]);
	d9__thrift_list(thrift, 2, D9__THRIFT_I32, chunk->has_dictionary ? 3 : 2);
	d9__thrift_item_i32(thrift, 0);
	d9__thrift_item_i32(thrift, 3);
	if (chunk->has_dictionary)
		d9__thrift_item_i32(thrift, 8);
	d9__thrift_list(thrift, 3, D9__THRIFT_BINARY, 1);
	d9__thrift_item_text(thrift, values->facts->name);
	d9__thrift_i32(thrift, 4, 6); /* zstd */
	d9__thrift_i64(thrift, 5, (int64_t)values->rows);
	d9__thrift_i64(thrift, 6, (int64_t)chunk->plain_bytes);
	d9__thrift_i64(thrift, 7, (int64_t)chunk->bytes);
	d9__thrift_i64(thrift, 9, (int64_t)(at + chunk->data_at));
	if (chunk->has_dictionary)
		d9__thrift_i64(thrift, 11, (int64_t)at);
	d9__thrift_begin(thrift, 12);
	d9__thrift_i64(thrift, 3, (int64_t)chunk->missing);
	if (chunk->least.data && chunk->largest.data) {
		d9__thrift_binary(thrift, 5, chunk->largest.data, chunk->largest.len);
		d9__thrift_binary(thrift, 6, chunk->least.data, chunk->least.len);
	}
	d9__thrift_end(thrift);
	d9__thrift_end(thrift);
}

/* Write the chunk of one column, and tell of it. */
static void put_chunk(struct d9__parquet *file, struct d9__thrift *thrift, const struct d9__parquet_values *values,
		      uint64_t *plain_bytes)
{
	struct d9__parquet_chunk chunk = { 0 };
	uint64_t at = file->at;

	file->chunk.len = 0;
	note(file, d9__parquet_values_pack(values, file->zstd, &file->chunk, &chunk));
	put_out(file, file->chunk.data, file->chunk.len);
	d9__thrift_begin(thrift, 0);
	d9__thrift_i64(thrift, 2, 0);
	tell_chunk(thrift, values, &chunk, at);
	d9__thrift_end(thrift);
	*plain_bytes += chunk.plain_bytes;
	d9__parquet_chunk_release(&chunk);
}

static void end_group(struct d9__parquet *file)
{
	struct d9__thrift thrift = { .out = &file->groups };
	uint64_t at = file->at, plain_bytes = 0;
	size_t rows = file->values[0].rows;

	if (!rows || file->err)
		return;
	d9__thrift_list(&thrift, 1, D9__THRIFT_STRUCT, file->n);
	for (size_t i = 0; i < file->n; i++)
		put_chunk(file, &thrift, &file->values[i], &plain_bytes);
	d9__thrift_i64(&thrift, 2, (int64_t)plain_bytes);
	d9__thrift_i64(&thrift, 3, (int64_t)rows);
	d9__thrift_i64(&thrift, 5, (int64_t)at);
	d9__thrift_i64(&thrift, 6, (int64_t)(file->at - at));
	d9__thrift_i16(&thrift, 7, (int)(file->n_groups & INT16_MAX));
	d9__thrift_stop(&thrift);
	file->n_groups++;
	file->rows += rows;
	for (size_t i = 0; i < file->n; i++)
		d9__parquet_values_reset(&file->values[i]);
}

int d9__parquet_row(struct d9__parquet *file)
{
	size_t text = 0;

	while (!file->err && file->next < file->n)
		d9__parquet_null(file);
	file->next = 0;
	if (file->err)
		return file->err;
	for (size_t i = 0; i < file->n; i++)
		text += file->values[i].text.len;
	if (file->values[0].rows == D9__PARQUET_GROUP_ROWS || text >= D9__PARQUET_GROUP_TEXT)
		end_group(file);
	return file->err;
}

/* ---- the end of the file ---- */

static void tell_time(struct d9__thrift *thrift)
{
	d9__thrift_i32(thrift, 6, 10);
	d9__thrift_begin(thrift, 10);
	d9__thrift_begin(thrift, 8);
	d9__thrift_bool(thrift, 1, true); /* UTC */
	d9__thrift_begin(thrift, 2);
	d9__thrift_begin(thrift, 2); /* microseconds */
	d9__thrift_end(thrift);
	d9__thrift_end(thrift);
	d9__thrift_end(thrift);
	d9__thrift_end(thrift);
}

static void tell_text(struct d9__thrift *thrift)
{
	d9__thrift_i32(thrift, 6, 0);
	d9__thrift_begin(thrift, 10);
	d9__thrift_begin(thrift, 1);
	d9__thrift_end(thrift);
	d9__thrift_end(thrift);
}

static void tell_column(struct d9__thrift *thrift, const struct d9__parquet_column *column)
{
	static const int32_t types[] = { [D9__PARQUET_I64] = 2, [D9__PARQUET_TIME] = 2, [D9__PARQUET_TEXT] = 6,
					 [D9__PARQUET_BOOL] = 0 };

	d9__thrift_begin(thrift, 0);
	d9__thrift_i32(thrift, 1, types[column->type]);
	d9__thrift_i32(thrift, 3, column->optional);
	d9__thrift_text(thrift, 4, column->name);
	if (column->type == D9__PARQUET_TIME)
		tell_time(thrift);
	else if (column->type == D9__PARQUET_TEXT)
		tell_text(thrift);
	d9__thrift_end(thrift);
}

static void tell_schema(const struct d9__parquet *file, struct d9__thrift *thrift)
{
	d9__thrift_list(thrift, 2, D9__THRIFT_STRUCT, file->n + 1);
	d9__thrift_begin(thrift, 0);
	d9__thrift_text(thrift, 4, "schema");
	d9__thrift_i32(thrift, 5, (int32_t)file->n);
	d9__thrift_end(thrift);
	for (size_t i = 0; i < file->n; i++)
		tell_column(thrift, &file->columns[i]);
}

static void tell_pairs(const struct d9__parquet *file, struct d9__thrift *thrift)
{
	if (!file->n_pairs)
		return;
	d9__thrift_list(thrift, 5, D9__THRIFT_STRUCT, file->n_pairs);
	for (size_t i = 0; i < file->n_pairs; i++) {
		d9__thrift_begin(thrift, 0);
		d9__thrift_text(thrift, 1, file->pairs[i].key);
		d9__thrift_text(thrift, 2, file->pairs[i].value);
		d9__thrift_end(thrift);
	}
}

/*
 * Tell that least and largest values are compared in the order of their types; without this,
 * readers ignore them.
 */
static void tell_orders(const struct d9__parquet *file, struct d9__thrift *thrift)
{
	d9__thrift_list(thrift, 7, D9__THRIFT_STRUCT, file->n);
	for (size_t i = 0; i < file->n; i++) {
		d9__thrift_begin(thrift, 0);
		d9__thrift_begin(thrift, 1);
		d9__thrift_end(thrift);
		d9__thrift_end(thrift);
	}
}

static void put_end(struct d9__parquet *file)
{
	struct d9__bytes end = { 0 };
	struct d9__thrift thrift = { .out = &end };

	d9__thrift_i32(&thrift, 1, 2);
	tell_schema(file, &thrift);
	d9__thrift_i64(&thrift, 3, (int64_t)file->rows);
	d9__thrift_list(&thrift, 4, D9__THRIFT_STRUCT, file->n_groups);
	d9__bytes_put(&end, file->groups.data, file->groups.len);
	tell_pairs(file, &thrift);
	d9__thrift_text(&thrift, 6, "dial9 version " PACKAGE_VERSION);
	tell_orders(file, &thrift);
	d9__thrift_stop(&thrift);
	d9__bytes_u32(&end, (uint32_t)end.len);
	d9__bytes_put(&end, MAGIC, strlen(MAGIC));
	note(file, end.failed || file->groups.failed ? -ENOMEM : 0);
	put_out(file, end.data, end.len);
	d9__bytes_release(&end);
}

int d9__parquet_close(struct d9__parquet *file)
{
	int err;

	end_group(file);
	put_end(file);
	err = file->err;
	d9__parquet_abandon(file);
	return err;
}

void d9__parquet_abandon(struct d9__parquet *file)
{
	if (!file)
		return;
	for (size_t i = 0; file->values && i < file->n; i++)
		d9__parquet_values_release(&file->values[i]);
	for (size_t i = 0; i < file->n_pairs; i++) {
		free(file->pairs[i].key);
		free(file->pairs[i].value);
	}
	free(file->values);
	free(file->pairs);
	ZSTD_freeCCtx(file->zstd);
	d9__bytes_release(&file->chunk);
	d9__bytes_release(&file->groups);
	d9__bytes_release(&file->valid);
	free(file);
}
