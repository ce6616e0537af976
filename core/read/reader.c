/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dial9/reader.h>

#include "base/array.h"
#include "read/catalogue.h"
#include "read/file_order.h"
#include "read/folder.h"
#include "read/reader_state.h"
#include "read/time_order.h"

/* ---- making one ---- */

int d9_reader_new(struct d9_reader **out)
{
	struct d9_reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return -ENOMEM;
	reader->schemas.classify = d9__catalogue_classify;
	reader->event = &reader->own;
	*out = reader;
	return 0;
}

void d9_reader_free(struct d9_reader *reader)
{
	if (!reader)
		return;
	d9__time_order_release(reader);
	d9__file_order_release(reader);
	d9__inner_calls_release(&reader->calls);
	for (size_t i = 0; i < reader->n_segments; i++) {
		d9__trace_segment_release(reader->segments[i]);
		free(reader->segments[i]);
	}
	free(reader->segments);
	d9__table_release(&reader->files);
	d9__values_release(&reader->values);
	d9__definitions_release(&reader->schemas);
	free(reader->message);
	free(reader);
}

static int append_segment(struct d9_reader *reader, struct d9__trace_segment *segment)
{
	if (!d9__array_grow(reader->segments, reader->n_segments))
		return -ENOMEM;
	if (reader->n_segments >= D9__FILES_OPEN_MAX)
		d9__input_close(&segment->input);
	segment->number = (uint32_t)reader->n_segments;
	reader->segments[reader->n_segments++] = segment;
	return 0;
}

/*
 * Open |path| as a segment.  |found|: it was found in a directory, so a file that is none is
 * passed over; but what has a segment's name and is damaged is worth telling.
 */
static int add_file(struct d9_reader *reader, const char *path, bool found)
{
	struct d9__trace_segment *segment = calloc(1, sizeof(*segment));
	char *why = NULL;
	int err, added = 1;

	if (!segment)
		return d9__reader_out_of_memory(reader);
	err = d9__trace_segment_open(segment, path, &why);
	/* Dumps are links to segments of the trace that they are of. */
	if (!err && !(added = d9__known_files_add(&reader->files, &segment->input))) {
		d9__trace_segment_release(segment);
		free(segment);
		return 0;
	}
	if (added < 0)
		err = added;
	/* -ENOENT: its recorder has evicted it since. */
	if (err && found && err != -ENOMEM && err != -ENOENT && d9__folder_is_segment_name(path)) {
		segment->info.err = err;
		segment->info.message = segment->message = why;
		why = NULL;
		err = 0;
	}
	if (!err)
		err = append_segment(reader, segment);
	if (err) {
		if (why)
			d9__reader_fail(reader, err, "%s", why);
		else
			d9__reader_out_of_memory(reader);
		d9__trace_segment_release(segment);
		free(segment);
	}
	free(why);
	return err;
}

int d9__reader_add_listed(struct d9_reader *reader, const char *path)
{
	return add_file(reader, path, true);
}

int d9__reader_add_missing(struct d9_reader *reader, const char *path, const char *what)
{
	struct d9__trace_segment *segment = calloc(1, sizeof(*segment));

	if (!segment)
		return d9__reader_out_of_memory(reader);
	segment->input.fd = -1;
	segment->input.path = strdup(path);
	if (segment->input.path && asprintf(&segment->message, "%s: %s", path, what) < 0)
		segment->message = NULL;
	segment->info = (struct d9_segment_info){ .path = segment->input.path,
						  .container = d9__container_name(segment->kind),
						  .err = -ENOENT,
						  .message = segment->message };
	if (segment->message && !append_segment(reader, segment))
		return 0;
	d9__trace_segment_release(segment);
	free(segment);
	return d9__reader_out_of_memory(reader);
}

static int add_folder(struct d9_reader *reader, const char *path)
{
	struct d9__folder folder = { 0 };
	size_t known = 0; /* segments, even if another path has named them before */
	int err = d9__folder_list(&folder, path);

	if (err == -EFBIG)
		d9__reader_fail(reader, err, "%s: more than %d folders; give one of them", path, D9__FOLDER_MAX);
	else if (err)
		d9__reader_fail(reader, err, "%s: %s", path, strerror(-err));
	for (size_t i = 0; i < folder.n && !err; i++) {
		int added = add_file(reader, folder.paths[i], true);

		known += !added;
		if (added == -ENOMEM)
			err = -ENOMEM;
	}
	d9__folder_release(&folder);
	if (err)
		return err;
	/* Files that were passed over are no news. */
	free(reader->message);
	reader->message = NULL;
	if (!known)
		err = d9__reader_fail(reader, -ENODATA, "%s: no trace segments in this directory",
				      path);
	return err;
}

int d9_reader_add(struct d9_reader *reader, const char *path)
{
	int err;

	if (!reader || !path || reader->begun)
		return -EINVAL;
	err = add_file(reader, path, false);
	return err == -EISDIR && strcmp(path, "-") != 0 ? add_folder(reader, path) : err;
}

void d9_reader_set_file_order(struct d9_reader *reader, bool on)
{
	if (!reader->begun)
		reader->file_order = on;
}

void d9_reader_set_memory_limit(struct d9_reader *reader, uint64_t limit_bytes)
{
	reader->limit_bytes = limit_bytes;
}

/* ---- delivering ---- */

int d9_reader_next(struct d9_reader *reader, const struct d9_event **event)
{
	int got = 0;

	/* A step that failed once is half done: it stays failed. */
	if (reader->err)
		return reader->err;
	if (!reader->begun && !reader->file_order)
		got = d9__time_order_begin(reader);
	reader->begun = true;
	if (!got)
		got = reader->file_order ? d9__file_order_next(reader, event)
					 : d9__time_order_next(reader, event);
	reader->err = got < 0 ? got : 0;
	return got;
}

/* ---- what is known ---- */

size_t d9_reader_segments(const struct d9_reader *reader)
{
	return reader->n_segments;
}

int d9_reader_segment(const struct d9_reader *reader, size_t i, struct d9_segment_info *info)
{
	if (i >= reader->n_segments)
		return -EINVAL;
	*info = reader->segments[i]->info;
	return 0;
}

const char *d9_reader_message(const struct d9_reader *reader)
{
	if (!reader)
		return d9_strerror(-ENOMEM);
	return reader->message ? reader->message : "";
}

void d9_reader_progress(const struct d9_reader *reader, uint64_t *done_bytes, uint64_t *total_bytes)
{
	uint64_t done = 0, total = 0;

	for (size_t i = 0; i < reader->n_segments; i++) {
		uint64_t size = reader->segments[i]->input.size_bytes;

		total += size;
		done += i < reader->current ? size : 0;
	}
	if (reader->streaming && reader->container.input->size_bytes)
		done += d9__container_stored(&reader->container);
	if (!reader->file_order)
		done = reader->events ? (uint64_t)((double)total * (double)reader->delivered /
						   (double)reader->events)
				      : 0;
	*done_bytes = done < total ? done : total;
	*total_bytes = total;
}
