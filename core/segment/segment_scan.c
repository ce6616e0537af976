/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of a zstd segment the seek table names the frames, which hold whole batches; of a gzip one the marks do.
 * Of a plain one a window is read, and a batch that its end cuts is read again with the next one.
 */
#include "config.h"

#include "segment/segment_scan.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>
#include <zstd.h>

#include "base/heap.h"
#include "base/read_at.h"
#include "base/zstd_heap.h"
#include "format/wire.h"
#include "segment/gunzip.h"
#include "segment/packer.h"

#define WINDOW    ((size_t)1 << 20) /* of a plain segment, if no batch is larger */
#define FRAME_MAX ((uint32_t)64 << 20) /* no writer of ours makes such a frame */
#define PAD       64                   /* zeros behind: an event that is not what its type says ends there */

static bool is_header(const uint8_t *p, size_t len)
{
	return len >= D9__WIRE_HEADER_LEN && !memcmp(p, D9__WIRE_MAGIC, D9__WIRE_MAGIC_LEN);
}

/* Show what [bytes, bytes + len) holds; false if that was enough. */
static bool show_all(const struct d9__segment_scan *scan, const uint8_t *bytes, size_t len)
{
	while (len) {
		uint32_t whole = scan->fn(scan->arg, bytes, len);

		if (!whole)
			return false;
		bytes += whole;
		len -= whole;
	}
	return true;
}

/* ---- zstd ---- */

struct table {
	uint8_t *entries;
	uint32_t n;
};

static int read_table(struct table *table, int fd, uint64_t size)
{
	uint8_t footer[D9__SEEK_FOOTER_LEN];
	struct d9__seek_place place;
	size_t len;

	if (size < sizeof(footer) ||
	    d9__read_at(fd, footer, sizeof(footer), size - sizeof(footer)) ||
	    !d9__seek_footer_get(footer, size, &place))
		return -EBADMSG;
	len = (size_t)place.n * D9__SEEK_ENTRY_LEN;
	table->n = place.n;
	table->entries = d9__malloc(len + 1);
	if (!table->entries)
		return -ENOMEM;
	return d9__read_at(fd, table->entries, len, place.at + D9__SEEK_HEAD_LEN);
}

/* 1, 0 if that was enough, -errno. */
static int show_frame(const struct d9__segment_scan *scan, int fd, ZSTD_DCtx *zstd,
		      struct d9__seek_entry entry)
{
	uint32_t packed_len = entry.packed_len, len = entry.len;
	uint8_t *packed, *bytes;
	int got = -EBADMSG;

	if (packed_len > FRAME_MAX || len > FRAME_MAX)
		return -EBADMSG;
	packed = d9__malloc((size_t)packed_len + 1);
	bytes = d9__calloc(1, (size_t)len + PAD);
	if (!packed || !bytes)
		got = -ENOMEM;
	else if (!d9__read_at(fd, packed, packed_len, entry.offset) &&
		 ZSTD_decompressDCtx(zstd, bytes, len, packed, packed_len) == len)
		got = show_all(scan, bytes, len);
	d9__free(packed);
	d9__free(bytes);
	return got;
}

static int scan_zstd(const struct d9__segment_scan *scan, int fd, uint64_t size)
{
	struct table table = { 0 };
	ZSTD_DCtx *zstd = d9__zstd_new_unpacker();
	int got = zstd ? read_table(&table, fd, size) : -ENOMEM;

	if (!got)
		got = 1;
	for (uint32_t i = 0; i < table.n && got == 1; i++) {
		got = show_frame(scan, fd, zstd, d9__seek_entry_get(table.entries, i));
		scan->keep_up();
	}
	d9__free(table.entries);
	ZSTD_freeDCtx(zstd);
	return got < 0 ? got : 0;
}

/* ---- gzip ---- */

static bool show_marked(void *arg, const uint8_t *bytes, size_t len)
{
	const struct d9__segment_scan *scan = arg;
	bool more = show_all(scan, bytes, len);

	scan->keep_up();
	return more;
}

/* ---- plain ---- */

struct window {
	uint8_t *bytes;
	size_t len, capacity;
	uint64_t at; /* behind it, in the file */
	bool ended;
};

/* Read on, with more room if it is full.  0, -ENOMEM, -EBADMSG. */
static int fill(struct window *window, int fd)
{
	ssize_t n;

	if (window->len == window->capacity) {
		size_t capacity = window->capacity ? 2 * window->capacity : WINDOW;
		uint8_t *bytes = d9__realloc(window->bytes, capacity + PAD);

		if (!bytes)
			return -ENOMEM;
		window->bytes = bytes;
		window->capacity = capacity;
	}
	n = pread(fd, window->bytes + window->len, window->capacity - window->len, (off_t)window->at);
	if (n < 0 && errno != EINTR)
		return -EBADMSG;
	window->ended = n == 0;
	window->len += n > 0 ? (size_t)n : 0;
	window->at += n > 0 ? (uint64_t)n : 0;
	memset(window->bytes + window->len, 0, PAD);
	return 0;
}

/* Show the batches of which the end is seen, and keep the rest.  1, or 0 if that was enough. */
static int show_window(const struct d9__segment_scan *scan, struct window *window)
{
	size_t at = 0;

	while (at < window->len) {
		size_t left = window->len - at;
		uint32_t whole;

		if (left < D9__WIRE_HEADER_LEN && !window->ended)
			break;
		whole = scan->fn(scan->arg, window->bytes + at, left);
		/* No frame of ours is that large: what stands behind the whole ones is damaged. */
		if (!whole || left - whole > WINDOW)
			return 0;
		if (!window->ended && !is_header(window->bytes + at + whole, left - whole))
			break;
		at += whole;
	}
	window->len -= at;
	memmove(window->bytes, window->bytes + at, window->len);
	return !window->ended;
}

static int scan_plain(const struct d9__segment_scan *scan, int fd)
{
	struct window window = { 0 };
	int got = 1;

	while (got == 1) {
		got = fill(&window, fd);
		if (!got)
			got = show_window(scan, &window);
		scan->keep_up();
	}
	d9__free(window.bytes);
	return got;
}

int d9__segment_scan(const struct d9__segment_scan *scan, int fd, enum d9_compress kind)
{
	struct d9__segment_scan copy = *scan;
	off_t size = lseek(fd, 0, SEEK_END);

	if (size < 0)
		return -EBADMSG;
	switch (kind) {
	case D9_COMPRESS_ZSTD:
		return scan_zstd(scan, fd, (uint64_t)size);
	case D9_COMPRESS_GZIP:
		return d9__gunzip_each(fd, (uint64_t)size, show_marked, &copy);
	case D9_COMPRESS_NONE:
		return scan_plain(scan, fd);
	}
	return -EBADMSG;
}
