/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "read/segment_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SMALL_BYTES  ((size_t)1 << 16)
#define HUGE_BYTES   ((size_t)2 << 20) /* of a page, where there are such */
/* A frame of this size is not tried again at every few bytes more, only when they doubled. */
#define PATIENT_BYTES ((size_t)1 << 16)

void d9__segment_reader_init(struct d9__segment_reader *reader, struct d9__definitions *schemas,
			     uint64_t limit_bytes)
{
	*reader = (struct d9__segment_reader) { .limit_bytes = limit_bytes };
	d9__decoder_init(&reader->decoder, schemas, limit_bytes);
}

void d9__segment_reader_start(struct d9__segment_reader *reader, struct d9__byte_source source)
{
	d9__decoder_reset(&reader->decoder);
	reader->source = source;
	reader->window = reader->buffer;
	reader->pos = reader->end = 0;
	reader->window_at = 0;
	reader->keep_bytes = 0;
	reader->ended = reader->stopped = reader->truncated = false;
	reader->err = 0;
	reader->err_offset = 0;
	reader->message[0] = '\0';
}

void d9__segment_reader_start_at(struct d9__segment_reader *reader, const uint8_t *bytes, size_t len)
{
	d9__segment_reader_start(reader, (struct d9__byte_source) { 0 });
	reader->window = bytes;
	reader->end = len;
	reader->ended = true;
}

void d9__segment_reader_keep(struct d9__segment_reader *reader, uint64_t max_bytes)
{
	reader->keep_bytes = max_bytes;
}

static int resize(struct d9__segment_reader *reader, size_t capacity)
{
	uint8_t *buffer = realloc(reader->buffer, capacity);

	if (!buffer)
		return -ENOMEM;
	reader->window = reader->buffer = buffer;
	reader->capacity = capacity;
	return 0;
}

uint8_t *d9__segment_reader_kept(struct d9__segment_reader *reader, uint64_t *len)
{
	uint8_t *kept;

	if (!reader->keep_bytes || !reader->buffer)
		return NULL;
	if (reader->end && reader->end < SMALL_BYTES) {
		/* A mapping of its own for each of thousands would be more than the kernel lends. */
		kept = malloc(reader->end);
		if (!kept)
			return NULL;
		memcpy(kept, reader->buffer, reader->end);
		*len = reader->end;
		return kept;
	}
	/* Gives back what is not used, if that can be done. */
	(void)resize(reader, reader->end + !reader->end);
	kept = reader->buffer;
	*len = reader->end;
	reader->buffer = NULL;
	reader->window = NULL;
	reader->capacity = reader->pos = reader->end = 0;
	return kept;
}

static int stop(struct d9__segment_reader *reader, int err, const char *message)
{
	reader->err = err;
	reader->err_offset = reader->window_at + reader->pos;
	snprintf(reader->message, sizeof(reader->message), "%s", message);
	reader->stopped = true;
	return 0;
}

/* The bytes that are left begin a frame and do not complete it. */
static int cut(struct d9__segment_reader *reader)
{
	char message[96];
	bool headless = !reader->decoder.started;

	snprintf(message, sizeof(message), "ends inside a %s; %zu bytes are left over",
		 headless ? "header" : "frame", reader->end - reader->pos);
	reader->truncated = true;
	return stop(reader, 0, message);
}

/* Thousands of page faults take as long as decoding what is then in the pages. */
static void use_huge_pages(uint8_t *buffer, size_t len)
{
	size_t ahead = (size_t)(-(uintptr_t)buffer & (HUGE_BYTES - 1));

	if (len >= ahead + HUGE_BYTES)
		madvise(buffer + ahead, (len - ahead) & ~(HUGE_BYTES - 1), MADV_HUGEPAGE);
}

/*
 * Make room for |want| bytes behind window[pos] and leave what is before it; false if that is too much.
 * Addresses cost nothing before they are used: all that may be kept has its own from the beginning.
 */
static bool keep_room(struct d9__segment_reader *reader, size_t want)
{
	if (want > reader->keep_bytes || reader->pos > reader->keep_bytes - want)
		return false;
	if (reader->capacity >= reader->keep_bytes)
		return true;
	if (resize(reader, (size_t)reader->keep_bytes))
		return false;
	use_huge_pages(reader->buffer, reader->capacity);
	return true;
}

/* Make room for |want| bytes behind window[pos]. */
static int make_room(struct d9__segment_reader *reader, size_t want)
{
	size_t have = reader->end - reader->pos;
	bool kept = reader->keep_bytes != 0;

	if (kept && keep_room(reader, want))
		return 0;
	reader->keep_bytes = 0;
	if (reader->pos > 0) {
		memmove(reader->buffer, reader->buffer + reader->pos, have);
		reader->window_at += reader->pos;
		reader->pos = 0;
		reader->end = have;
	}
	/* Less, if much was kept. */
	return kept || reader->capacity < want ? resize(reader, want) : 0;
}

/* How many bytes the unfinished frame should have before it is tried again. */
static uint64_t wanted(const struct d9__segment_reader *reader, size_t have)
{
	uint64_t want = have + 1;

	if (reader->decoder.missing < UINT64_MAX - have)
		want = have + reader->decoder.missing;
	if (have >= PATIENT_BYTES && want < 2 * (uint64_t)have)
		want = 2 * (uint64_t)have;
	/* Far enough to see whether the input ends first, which is the milder fault. */
	if (reader->limit_bytes && want > reader->limit_bytes)
		want = reader->limit_bytes + 1;
	return want;
}

static size_t first_window(const struct d9__segment_reader *reader)
{
	size_t have = reader->end - reader->pos;
	uint64_t left = reader->source.left_bytes;

	return left < D9__WINDOW_BYTES && left + have < D9__WINDOW_BYTES ? (size_t)left + have + 1
								 : D9__WINDOW_BYTES;
}

/* Read until the window holds |want| bytes or the source ends.  0 or -errno. */
static int read_until(struct d9__segment_reader *reader, uint64_t want)
{
	while (!reader->ended && reader->end - reader->pos < want) {
		size_t have = reader->end - reader->pos;
		/* Room grows with what has come, not with what a length claims. */
		size_t room = want > 2 * (uint64_t)have ? 2 * have : (size_t)want;
		size_t least = first_window(reader), len;
		ssize_t n;
		int err = make_room(reader, room < least ? least : room);

		if (err)
			return err;
		/* Read no more than caches hold, however much there is room for, because these bytes are decoded next. */
		len = reader->capacity - reader->end;
		n = reader->source.read(reader->source.context, reader->buffer + reader->end,
					len < D9__WINDOW_BYTES ? len : D9__WINDOW_BYTES);
		if (n < 0)
			return (int)n;
		if (n == 0)
			reader->ended = true;
		reader->end += (size_t)n;
		if (reader->source.left_bytes != UINT64_MAX)
			reader->source.left_bytes -= (uint64_t)n < reader->source.left_bytes
							     ? (uint64_t)n
							     : reader->source.left_bytes;
	}
	return 0;
}

/* The window ends inside a frame, or at its end proper.  1 try again, 0 the end, -errno. */
static int read_more(struct d9__segment_reader *reader)
{
	size_t have = reader->end - reader->pos;
	uint64_t want = wanted(reader, have), left = reader->source.left_bytes;
	int err;

	if (reader->ended)
		return have || !reader->decoder.started ? cut(reader) : 0;
	if (have && reader->decoder.missing > left) {
		/* Claims more than the rest of the file holds; do not even read it. */
		return cut(reader);
	}
	if (reader->limit_bytes && have > reader->limit_bytes) {
		char message[96];

		snprintf(message, sizeof(message),
			 "a frame needs more than %" PRIu64 " bytes of memory",
			 reader->limit_bytes);
		return stop(reader, -EFBIG, message);
	}
	err = read_until(reader, want);
	return err ? err : 1;
}

/* A frame from what the window holds. */
static int decode(struct d9__segment_reader *reader, struct d9__frame *frame)
{
	struct d9__cursor in;
	int got;

	if (reader->pos == reader->end) {
		reader->decoder.missing = 1;
		return 0;
	}
	in = (struct d9__cursor) { reader->window + reader->pos, reader->window + reader->end, 0 };
	got = d9__decoder_next(&reader->decoder, &in, frame);
	reader->pos = (size_t)(in.p - reader->window);
	return got;
}

int d9__segment_reader_next(struct d9__segment_reader *reader, struct d9__frame *frame)
{
	while (!reader->stopped) {
		int got = decode(reader, frame);

		if (__builtin_expect(got == 1, 1) || got == -ENOMEM)
			return got;
		if (got < 0)
			return stop(reader, got, reader->decoder.message);
		got = read_more(reader);
		if (got != 1)
			return got;
	}
	return 0;
}

void d9__segment_reader_pass(struct d9__segment_reader *reader, struct d9__times *times)
{
	struct d9__cursor in;

	if (reader->stopped || reader->pos == reader->end)
		return;
	in = (struct d9__cursor) { reader->window + reader->pos, reader->window + reader->end, 0 };
	d9__decoder_pass_events(&reader->decoder, &in, times);
	reader->pos = (size_t)(in.p - reader->window);
}

void d9__segment_reader_release(struct d9__segment_reader *reader)
{
	d9__decoder_release(&reader->decoder);
	free(reader->buffer);
	*reader = (struct d9__segment_reader) { 0 };
}
