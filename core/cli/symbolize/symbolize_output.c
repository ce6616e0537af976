/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "cli/raw_segment.h"
#include "cli/symbolize/spawn_rewrite.h"
#include "cli/symbolize/symbolize_output.h"
#include "export/export_sink.h"
#include "format/seek_table.h"

#define ZSTD_LEVEL  3
#define PIECE_BYTES ((uint64_t)1 << 20) /* that are rewritten at once where the file does not say how many */

struct seek_table {
	uint8_t *entries; /* as in the file; NULL: there is no table */
	struct d9__seek_place place;
};

struct output {
	struct d9__input input;
	struct d9__container container;
	struct d9__sink *sink;
	struct seek_table table;
	const struct d9__spawn_names *names; /* to write into it; NULL: none */
};

/* ---- the seek table ---- */

static bool read_exactly(struct d9__input *input, uint64_t at, void *buf, size_t len)
{
	size_t have = 0;
	ssize_t n = 1;

	while (have < len && (n = d9__input_read_at(input, at + have, (char *)buf + have, len - have)) > 0)
		have += (size_t)n;
	return have == len;
}

static bool find_table(struct d9__input *input, struct d9__seek_place *place)
{
	uint8_t head[D9__SEEK_HEAD_LEN], footer[D9__SEEK_FOOTER_LEN];
	uint64_t size = input->size_bytes;

	return size >= sizeof(footer) && read_exactly(input, size - sizeof(footer), footer, sizeof(footer)) &&
	       d9__seek_footer_get(footer, size, place) && read_exactly(input, place->at, head, sizeof(head)) &&
	       d9__seek_head_fits(head, place);
}

/* 0 with or without a table, or -ENOMEM. */
static int read_table(struct d9__input *input, struct seek_table *table)
{
	size_t len;

	if (!find_table(input, &table->place))
		return 0;
	len = (size_t)table->place.n * D9__SEEK_ENTRY_LEN;
	table->entries = malloc(len + D9__SEEK_ENTRY_LEN);
	if (!table->entries)
		return -ENOMEM;
	if (!read_exactly(input, table->place.at + D9__SEEK_HEAD_LEN, table->entries, len)) {
		free(table->entries);
		table->entries = NULL;
	}
	return 0;
}

static struct d9__seek_entry entry_at(const struct seek_table *table, uint32_t i)
{
	return d9__seek_entry_get(table->entries, i);
}

/* Frame |i| lies at the table's place now, and the next one behind it. */
static void put_entry(struct seek_table *table, uint32_t i, struct d9__seek_entry entry)
{
	entry.offset = table->place.at;
	d9__seek_entry_put(table->entries + (size_t)i * D9__SEEK_ENTRY_LEN, &entry);
	table->place.at += entry.packed_len;
	table->place.unpacked += entry.len;
}

/* Take the frames from the offset |tail| on, unpacked, out of the table. */
static void cut_table(struct seek_table *table, uint64_t tail)
{
	uint64_t at = 0;
	uint32_t i;

	for (i = 0; table->entries && i < table->place.n && at < tail; i++)
		at += entry_at(table, i).len;
	table->place.unpacked = at;
	table->place.n = i;
}

static int write_table(struct d9__sink *sink, const struct seek_table *table)
{
	uint8_t head[D9__SEEK_HEAD_LEN], footer[D9__SEEK_FOOTER_LEN];
	int err;

	d9__seek_head_put(head, table->place.n);
	d9__seek_footer_put(footer, table->place.n, table->place.unpacked);
	err = d9__export_sink_write(sink, head, sizeof(head));
	if (!err)
		err = d9__export_sink_write(sink, table->entries, (size_t)table->place.n * D9__SEEK_ENTRY_LEN);
	return err ? err : d9__export_sink_write(sink, footer, sizeof(footer));
}

/* ---- the tail ---- */

/* True if |frame| may stand in a batch of rows alone. */
static bool is_of_rows(const struct d9__frame *frame)
{
	switch (frame->kind) {
	case D9__FRAME_EVENT:
		return !frame->timestamp_ns && !strcmp(frame->schema->name, "SymbolTableEntry");
	case D9__FRAME_SCHEMA:
	case D9__FRAME_STRING_POOL:
	case D9__FRAME_TIME_RESET:
		return true;
	default:
		return false;
	}
}

/* Of zstd only whole frames can be cut off. */
static void find_stored(const struct d9__container *container, struct d9__symbolize_tail *tail)
{
	tail->stored = tail->unpacked;
	if (container->kind != D9__CONTAINER_ZSTD)
		return;
	tail->found = false;
	for (size_t i = 0; !tail->found && i < container->n_frames; i++) {
		const struct d9__packed_frame *frame = &container->frames[i];

		tail->found = frame->unpacked_len && frame->unpacked_at == tail->unpacked;
		tail->stored = frame->stored_at;
	}
}

int d9__symbolize_find_tail(const char *path, struct d9__symbolize_tail *tail)
{
	struct d9__raw_segment segment;
	struct d9__frame frame;
	char *why = NULL;
	int err = d9__raw_segment_open(&segment, path, &why);

	free(why);
	*tail = (struct d9__symbolize_tail){ 0 };
	segment.keep_frames = true;
	while (!err && (err = d9__raw_segment_next(&segment, &frame)) == 1) {
		err = 0;
		if (frame.kind == D9__FRAME_HEADER) {
			tail->unpacked = d9__segment_reader_offset(&segment.reader, &frame);
			/* The first batch is the segment. */
			tail->found = tail->unpacked != 0;
		} else if (!is_of_rows(&frame)) {
			tail->found = false;
		}
	}
	tail->found = tail->found && !err;
	if (tail->found)
		find_stored(&segment.container, tail);
	d9__raw_segment_release(&segment);
	return err;
}

/* ---- copying ---- */

static int copy_stored(struct output *output, uint64_t end)
{
	uint8_t buf[1 << 14];
	uint64_t at = 0;
	ssize_t n = 1;
	int err = 0;

	while (!err && at < end && n > 0) {
		size_t wanted = end - at < sizeof(buf) ? (size_t)(end - at) : sizeof(buf);

		n = d9__input_read_at(&output->input, at, buf, wanted);
		if (n > 0)
			err = d9__export_sink_write(output->sink, buf, (size_t)n);
		at += n > 0 ? (uint64_t)n : 0;
	}
	if (!err && n < 0)
		err = (int)n;
	return err ? err : at < end ? -ESTALE : 0;
}

/* Unpack a gzip segment whole, because it has a single member; the sink packs it again. */
static int copy_unpacked(struct output *output, uint64_t end)
{
	uint8_t buf[1 << 14];
	uint64_t at = 0;
	ssize_t n = 0;
	int err = 0;

	while (!err && at < end && (n = d9__container_read(&output->container, buf, sizeof(buf))) > 0) {
		size_t take = end - at < (uint64_t)n ? (size_t)(end - at) : (size_t)n;

		err = d9__export_sink_write(output->sink, buf, take);
		at += take;
	}
	return err ? err : n < 0 ? (int)n : output->container.err;
}

/* ---- zstd ---- */

static int write_frame(struct output *output, const void *bytes, size_t len, size_t *packed_len)
{
	size_t max = ZSTD_compressBound(len);
	void *packed = malloc(max);
	int err;

	if (!packed)
		return -ENOMEM;
	*packed_len = ZSTD_compress(packed, max, bytes, len, ZSTD_LEVEL);
	err = ZSTD_isError(*packed_len) ? -EIO : d9__export_sink_write(output->sink, packed, *packed_len);
	free(packed);
	return err;
}

static int write_rows(struct output *output, const struct d9__row_batch *rows)
{
	size_t packed_len;
	int err = rows->len ? write_frame(output, rows->bytes, rows->len, &packed_len) : 0;

	if (!err && rows->len && output->table.entries)
		put_entry(&output->table, output->table.place.n++,
			  (struct d9__seek_entry){ .packed_len = (uint32_t)packed_len, .len = (uint32_t)rows->len });
	return err || !output->table.entries ? err : write_table(output->sink, &output->table);
}

static int copy_zstd(struct output *output, const struct d9__symbolize_tail *tail)
{
	uint64_t end = output->table.entries ? output->table.place.at : output->input.size_bytes;

	if (tail->found) {
		cut_table(&output->table, tail->unpacked);
		end = tail->stored;
	}
	output->table.place.at = end;
	return copy_stored(output, end);
}

/* ---- rewriting ---- */

/* The rewritten frames of |rewrite| as the next frame of the segment, entry |i| of the table if there is one. */
static int write_piece(struct output *output, const struct d9__spawn_rewrite *rewrite, uint32_t i)
{
	bool is_entry = output->table.entries != NULL;
	struct d9__seek_entry entry;
	size_t packed_len;
	int err;

	if (output->container.kind != D9__CONTAINER_ZSTD)
		return d9__export_sink_write(output->sink, rewrite->bytes, rewrite->len);
	if (!rewrite->len && !is_entry)
		return 0;
	err = write_frame(output, rewrite->bytes, rewrite->len, &packed_len);
	if (err || !is_entry)
		return err;
	entry = entry_at(&output->table, i);
	entry.packed_len = (uint32_t)packed_len;
	entry.len = (uint32_t)rewrite->len;
	put_entry(&output->table, i, entry);
	return 0;
}

/* Return how many bytes a piece may take in: up to where frame |i| of the table ends. */
static uint64_t piece_len(const struct seek_table *table, uint32_t i)
{
	return table->entries ? entry_at(table, i).len : PIECE_BYTES;
}

/* All frames before |end|, an offset in the unpacked segment, with names; those of the table stay apart. */
static int rewrite_all(struct output *output, struct d9__spawn_rewrite *rewrite, uint64_t end)
{
	struct seek_table *table = &output->table;
	uint64_t until = 0;
	uint32_t i;
	int err = 0;

	if (table->entries)
		cut_table(table, end);
	table->place.at = 0;
	table->place.unpacked = 0;
	for (i = 0; !err && until < end && !rewrite->ended; i++) {
		until += piece_len(table, i);
		if (until > end || (table->entries && i + 1 >= table->place.n))
			until = end;
		err = d9__spawn_rewrite_next(rewrite, until);
		if (!err)
			err = write_piece(output, rewrite, i);
	}
	table->place.n = i;
	return err;
}

static int rewrite_segment(struct output *output, const char *path, const struct d9__symbolize_tail *tail)
{
	struct d9__spawn_rewrite rewrite;
	int err = d9__spawn_rewrite_open(&rewrite, path, output->names);

	if (!err)
		err = rewrite_all(output, &rewrite, tail->found ? tail->unpacked : UINT64_MAX);
	d9__spawn_rewrite_release(&rewrite);
	return err;
}

/* ---- all of it ---- */

static int write_all(struct output *output, const char *path, const struct d9__symbolize_tail *tail,
		     const struct d9__row_batch *rows)
{
	bool is_zstd = output->container.kind == D9__CONTAINER_ZSTD;
	int err;

	if (output->names)
		err = rewrite_segment(output, path, tail);
	else if (is_zstd)
		err = copy_zstd(output, tail);
	else if (output->container.kind == D9__CONTAINER_GZIP)
		err = copy_unpacked(output, tail->found ? tail->unpacked : UINT64_MAX);
	else
		err = copy_stored(output, tail->found ? tail->stored : output->input.size_bytes);
	if (err)
		return err;
	return is_zstd ? write_rows(output, rows) : d9__export_sink_write(output->sink, rows->bytes, rows->len);
}

static int open_output(struct output *output, const char *path, const char *target)
{
	int err = d9__input_open(&output->input, path);

	if (!err)
		err = d9__container_open(&output->container, &output->input);
	if (!err && output->container.kind == D9__CONTAINER_ZSTD)
		err = read_table(&output->input, &output->table);
	return err ? err : d9__export_sink_open(target, output->container.kind == D9__CONTAINER_GZIP, &output->sink);
}

int d9__symbolize_write(const char *path, const struct d9__symbolize_tail *tail, const struct d9__spawn_names *names,
			const struct d9__row_batch *rows, const char *target)
{
	struct output output = { .input = { .fd = -1 }, .names = names->names.n ? names : NULL };
	int err = open_output(&output, path, target);

	if (!err)
		err = write_all(&output, path, tail, rows);
	if (!err) {
		err = d9__export_sink_commit(output.sink);
		output.sink = NULL;
	}
	d9__export_sink_abandon(output.sink);
	d9__container_release(&output.container);
	d9__input_release(&output.input);
	free(output.table.entries);
	return err;
}
