/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of a column: how its values lie in the file. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "fleet/parquet_column.h"
#include "fleet/parquet_pages.h"
#include "fleet/thrift.h"

#define PAGE_ROWS	 20000
#define PAGE_BYTES	 (1u << 20) /* of values that are PLAIN */
#define DICTIONARY_BYTES (1u << 20)
#define STATISTICS_BYTES 256 /* a longer text is no use for leaving out row groups */

/* Numbers of the Parquet format. */
enum { PLAIN = 0, RLE = 3, RLE_DICTIONARY = 8 };
enum { DATA_PAGE = 0, DICTIONARY_PAGE = 2 };

/* A chunk that is being written. */
struct pages {
	const struct d9__parquet_values *values;
	ZSTD_CCtx *zstd;
	struct d9__bytes *out;
	struct d9__bytes body, packed, header;
	struct d9__parquet_chunk *chunk;
	size_t start; /* of the chunk in |out| */

	/* The dictionary; without one |indices| is NULL. */
	uint32_t *indices; /* of each value */
	uint64_t *distinct; /* numbers; of texts NULL: the values have them */
	size_t n_distinct;
	bool failed;
};

static bool is_text(const struct d9__parquet_values *values)
{
	return values->facts->type == D9__PARQUET_TEXT;
}

/* ---- which values are distinct ---- */

/* Whether numbers repeat so much that a dictionary is smaller: at most half of them differ. */
static size_t most_distinct(const struct d9__parquet_values *values)
{
	size_t most = DICTIONARY_BYTES / sizeof(values->numbers[0]);

	return values->n / 2 < most ? values->n / 2 : most;
}

/* Fill |indices|; false: there are too many distinct values, or there is no memory. */
static bool number_all(struct pages *pages, struct d9__table *indices, size_t most)
{
	for (size_t i = 0; i < pages->values->n; i++) {
		uint64_t number = pages->values->numbers[i];
		uintptr_t next = (uintptr_t)d9__table_find(indices, number);

		if (!next) {
			if (pages->n_distinct == most)
				return false;
			pages->distinct[pages->n_distinct++] = number;
			next = pages->n_distinct;
			pages->failed = d9__table_add(indices, number, (void *)next) != 0;
		}
		if (pages->failed)
			return false;
		pages->indices[i] = (uint32_t)(next - 1);
	}
	return true;
}

static void drop_dictionary(struct pages *pages)
{
	free(pages->indices);
	free(pages->distinct);
	pages->indices = NULL;
	pages->distinct = NULL;
}

static void find_numbers(struct pages *pages)
{
	size_t most = most_distinct(pages->values);
	struct d9__table indices = { 0 }; /* index + 1 of a number, as a pointer */

	pages->indices = calloc(pages->values->n + 1, sizeof(pages->indices[0]));
	pages->distinct = calloc(most + 1, sizeof(pages->distinct[0]));
	pages->failed = !pages->indices || !pages->distinct;
	if (pages->failed || !number_all(pages, &indices, most))
		drop_dictionary(pages);
	d9__table_release(&indices);
}

static void find_texts(struct pages *pages)
{
	const struct d9__parquet_values *values = pages->values;
	uint64_t once = values->text.len + 4 * values->n_entries, plain = 4 * values->n;

	for (size_t i = 0; i < values->n; i++)
		plain += values->entries[values->numbers[i]].len;
	/* Of texts so long that no dictionary should have them, one is kept that saves half: pages stay small. */
	if (plain <= 2 * once && (once > DICTIONARY_BYTES || values->n_entries > values->n / 2))
		return;
	pages->indices = calloc(values->n + 1, sizeof(pages->indices[0]));
	pages->failed = !pages->indices;
	pages->n_distinct = values->n_entries;
	for (size_t i = 0; pages->indices && i < values->n; i++)
		pages->indices[i] = (uint32_t)values->numbers[i];
}

/* ---- runs ---- */

static size_t run_length(const uint32_t *items, size_t n, size_t most)
{
	size_t len = 1;

	while (len < n && len < most && items[len] == items[0])
		len++;
	return len;
}

/* Groups of 8 values, the lowest bits first; the last one is filled up with zeros. */
static void put_groups(struct d9__bytes *out, const uint32_t *items, size_t n, unsigned width)
{
	size_t groups = (n + 7) / 8;
	uint64_t held = 0;
	unsigned bits = 0;

	d9__bytes_varint(out, (uint64_t)groups << 1 | 1);
	for (size_t i = 0; i < 8 * groups; i++) {
		held |= (uint64_t)(i < n ? items[i] : 0) << bits;
		for (bits += width; bits >= 8; bits -= 8, held >>= 8)
			d9__bytes_u8(out, (unsigned)held & 0xff);
	}
}

static void put_run(struct d9__bytes *out, uint32_t item, size_t n, unsigned width)
{
	d9__bytes_varint(out, (uint64_t)n << 1);
	for (unsigned bits = 0; bits < width; bits += 8)
		d9__bytes_u8(out, item >> bits & 0xff);
}

/* The format's hybrid of runs of one value and packed groups. */
static void put_hybrid(struct d9__bytes *out, const uint32_t *items, size_t n, unsigned width)
{
	for (size_t i = 0, next; i < n; i = next) {
		size_t len = run_length(items + i, n - i, n);

		next = i + len;
		if (len >= 8 || next == n) {
			put_run(out, items[i], len, width);
			continue;
		}
		for (next = i; next < n && run_length(items + next, n - next, 8) < 8;)
			next = next + 8 < n ? next + 8 : n;
		put_groups(out, items + i, next - i, width);
	}
}

static unsigned width_of(size_t n_distinct)
{
	unsigned width = 1;

	while (n_distinct > (size_t)1 << width)
		width++;
	return width;
}

/* ---- values ---- */

static void put_text(struct d9__bytes *out, const struct d9__parquet_values *values, size_t number)
{
	const struct d9__parquet_entry *entry = &values->entries[number];

	d9__bytes_u32(out, (uint32_t)entry->len);
	d9__bytes_put(out, values->text.data + entry->at, entry->len);
}

/* Bits, eight a byte. */
static void put_bools(struct d9__bytes *out, const uint64_t *numbers, size_t n)
{
	for (size_t i = 0; i < n; i += 8) {
		unsigned byte = 0;

		for (size_t k = 0; k < 8 && i + k < n; k++)
			byte |= (numbers[i + k] ? 1u : 0u) << k;
		d9__bytes_u8(out, byte);
	}
}

static void put_plain(struct d9__bytes *out, const struct d9__parquet_values *values, size_t from, size_t n)
{
	if (values->facts->type == D9__PARQUET_BOOL) {
		put_bools(out, values->numbers + from, n);
		return;
	}
	for (size_t i = from; i < from + n; i++)
		if (is_text(values))
			put_text(out, values, values->numbers[i]);
		else
			d9__bytes_u64(out, values->numbers[i]);
}

/* ---- pages ---- */

/* |body| as one zstd frame behind |header|, to which its sizes were told. */
static void put_page(struct pages *pages, int type, size_t values)
{
	struct d9__thrift thrift = { .out = &pages->header };
	size_t room = ZSTD_compressBound(pages->body.len), packed;

	pages->packed.len = pages->header.len = 0;
	if (pages->packed.max < room) {
		d9__bytes_release(&pages->packed);
		pages->packed.data = malloc(room);
		pages->packed.max = pages->packed.data ? room : 0;
	}
	packed = pages->packed.data ? ZSTD_compress2(pages->zstd, pages->packed.data, room, pages->body.data, pages->body.len) : 0;
	if (!pages->packed.data || ZSTD_isError(packed)) {
		pages->failed = true;
		return;
	}
	d9__thrift_i32(&thrift, 1, type);
	d9__thrift_i32(&thrift, 2, (int32_t)pages->body.len);
	d9__thrift_i32(&thrift, 3, (int32_t)packed);
	d9__thrift_begin(&thrift, type == DATA_PAGE ? 5 : 7);
	d9__thrift_i32(&thrift, 1, (int32_t)values);
	d9__thrift_i32(&thrift, 2, type == DATA_PAGE && pages->indices ? RLE_DICTIONARY : PLAIN);
	if (type == DATA_PAGE) {
		d9__thrift_i32(&thrift, 3, RLE);
		d9__thrift_i32(&thrift, 4, RLE);
	}
	d9__thrift_end(&thrift);
	d9__thrift_stop(&thrift);
	d9__bytes_put(pages->out, pages->header.data, pages->header.len);
	d9__bytes_put(pages->out, pages->packed.data, packed);
	pages->chunk->plain_bytes += pages->header.len + pages->body.len;
}

static void put_dictionary(struct pages *pages)
{
	if (!pages->indices)
		return;
	pages->body.len = 0;
	for (size_t i = 0; i < pages->n_distinct; i++)
		if (pages->distinct)
			d9__bytes_u64(&pages->body, pages->distinct[i]);
		else
			put_text(&pages->body, pages->values, i);
	pages->chunk->has_dictionary = true;
	put_page(pages, DICTIONARY_PAGE, pages->n_distinct);
}

/* Which of the page's rows have a value: its length, then runs. */
static void put_levels(struct pages *pages, size_t from, size_t rows)
{
	const unsigned char *levels = pages->values->levels;
	struct d9__bytes runs = { 0 };

	if (!levels)
		return;
	for (size_t i = from, n; i < from + rows; i += n) {
		for (n = 1; i + n < from + rows && levels[i + n] == levels[i];)
			n++;
		put_run(&runs, levels[i], n, 1);
	}
	d9__bytes_u32(&pages->body, (uint32_t)runs.len);
	d9__bytes_put(&pages->body, runs.data, runs.len);
	pages->failed = pages->failed || runs.failed;
	d9__bytes_release(&runs);
}

static size_t plain_size(const struct d9__parquet_values *values, size_t value)
{
	return is_text(values) ? 4 + values->entries[values->numbers[value]].len : sizeof(uint64_t);
}

/*
 * Return how many rows from |from| on, whose values begin with |value|, make a page; |*n| gets the
 * number of values.
 */
static size_t page_rows(const struct pages *pages, size_t from, size_t value, size_t *n)
{
	const struct d9__parquet_values *values = pages->values;
	size_t rows = 0, bytes = 0;

	for (*n = 0; from + rows < values->rows && rows < PAGE_ROWS && bytes < PAGE_BYTES; rows++) {
		if (values->levels && !values->levels[from + rows])
			continue;
		if (!pages->indices)
			bytes += plain_size(values, value + *n);
		++*n;
	}
	return rows;
}

static void put_data(struct pages *pages)
{
	unsigned width = width_of(pages->n_distinct);
	size_t n;

	for (size_t from = 0, value = 0; from < pages->values->rows && !pages->failed; value += n) {
		size_t rows = page_rows(pages, from, value, &n);

		pages->body.len = 0;
		put_levels(pages, from, rows);
		if (pages->indices) {
			d9__bytes_u8(&pages->body, width);
			put_hybrid(&pages->body, pages->indices + value, n, width);
		} else {
			put_plain(&pages->body, pages->values, value, n);
		}
		put_page(pages, DATA_PAGE, rows);
		from += rows;
	}
}

/* ---- the least and the largest ---- */

static int compare_texts(const struct d9__parquet_values *values, size_t a, size_t b)
{
	const struct d9__parquet_entry *x = &values->entries[a], *y = &values->entries[b];
	size_t len = x->len < y->len ? x->len : y->len;
	int order = len ? memcmp(values->text.data + x->at, values->text.data + y->at, len) : 0;

	return order ? order : (x->len > y->len) - (x->len < y->len);
}

static void tell_texts(const struct d9__parquet_values *values, struct d9__parquet_chunk *chunk)
{
	size_t least = 0, largest = 0;

	for (size_t i = 1; i < values->n_entries; i++) {
		if (compare_texts(values, i, least) < 0)
			least = i;
		if (compare_texts(values, i, largest) > 0)
			largest = i;
	}
	if (values->entries[least].len > STATISTICS_BYTES || values->entries[largest].len > STATISTICS_BYTES)
		return;
	d9__bytes_put(&chunk->least, values->text.data + values->entries[least].at, values->entries[least].len);
	d9__bytes_put(&chunk->largest, values->text.data + values->entries[largest].at, values->entries[largest].len);
}

static void tell_numbers(const struct d9__parquet_values *values, struct d9__parquet_chunk *chunk)
{
	int64_t least = INT64_MAX, largest = INT64_MIN;

	for (size_t i = 0; i < values->n; i++) {
		int64_t number = (int64_t)values->numbers[i];

		least = number < least ? number : least;
		largest = number > largest ? number : largest;
	}
	if (values->facts->type == D9__PARQUET_BOOL) {
		d9__bytes_u8(&chunk->least, least != 0);
		d9__bytes_u8(&chunk->largest, largest != 0);
		return;
	}
	d9__bytes_u64(&chunk->least, (uint64_t)least);
	d9__bytes_u64(&chunk->largest, (uint64_t)largest);
}

static void tell(const struct d9__parquet_values *values, struct d9__parquet_chunk *chunk)
{
	chunk->missing = values->rows - values->n;
	if (!values->n)
		return;
	if (is_text(values))
		tell_texts(values, chunk);
	else
		tell_numbers(values, chunk);
}

/* ---- all of it ---- */

int d9__parquet_values_pack(const struct d9__parquet_values *values, ZSTD_CCtx *zstd, struct d9__bytes *out,
			    struct d9__parquet_chunk *chunk)
{
	struct pages pages = { .values = values, .zstd = zstd, .out = out, .chunk = chunk, .start = out->len };

	if (values->n && is_text(values))
		find_texts(&pages);
	else if (values->n && values->facts->type != D9__PARQUET_BOOL)
		find_numbers(&pages);
	if (!pages.failed)
		put_dictionary(&pages);
	chunk->data_at = out->len - pages.start;
	if (!pages.failed)
		put_data(&pages);
	chunk->bytes = out->len - pages.start;
	tell(values, chunk);
	pages.failed = pages.failed || pages.body.failed || pages.header.failed || out->failed || chunk->least.failed ||
		       chunk->largest.failed;
	drop_dictionary(&pages);
	d9__bytes_release(&pages.body);
	d9__bytes_release(&pages.packed);
	d9__bytes_release(&pages.header);
	return pages.failed ? -ENOMEM : 0;
}

void d9__parquet_chunk_release(struct d9__parquet_chunk *chunk)
{
	d9__bytes_release(&chunk->least);
	d9__bytes_release(&chunk->largest);
}
