/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inflate for the two kinds of blocks that gzip.c makes: stored and of fixed codes (RFC 1951, 3.2.4 and
 * 3.2.6).  An empty stored block stands behind every batch; it leaves a mark.
 */
#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/heap.h"
#include "segment/gunzip.h"
#include "segment/gzip.h"

#define INPUT      65536u
#define BLOCK_MAX  ((size_t)1 << 20) /* unpacked; ours hold 32 KiB */
#define MATCH_MAX  258u
#define DISTANCE_MAX ((size_t)32768)
#define PAD        64 /* of d9__gunzip_each() */
#define CODE_BITS  9

struct gunzip {
	int fd;
	uint64_t at; /* next byte to read */
	size_t in_len, in_pos;
	uint64_t bits; /* read and not used, lowest first */
	unsigned n_bits;
	uint16_t symbol[1 << CODE_BITS]; /* length in the high bits */
	size_t keep, pad, capacity;
	size_t cut; /* a mark in the data, from which on it is to be kept; 0 = not chosen yet */
	struct d9__gunzipped *out;
	d9__gunzip_fn fn; /* NULL: nobody wants to see what is between marks */
	void *arg;
	uint8_t in[INPUT];
};

/* ---- input ---- */

/* At least |n| bits, 32 at most; false at the end of the file. */
static bool need(struct gunzip *g, unsigned n)
{
	while (g->n_bits < n) {
		if (g->in_pos == g->in_len) {
			ssize_t got = pread(g->fd, g->in, INPUT, (off_t)g->at);

			if (got <= 0)
				return false;
			g->at += (uint64_t)got;
			g->in_len = (size_t)got;
			g->in_pos = 0;
		}
		g->bits |= (uint64_t)g->in[g->in_pos++] << g->n_bits;
		g->n_bits += 8;
	}
	return true;
}

static uint32_t use(struct gunzip *g, unsigned n)
{
	uint32_t value = (uint32_t)(g->bits & ((UINT64_C(1) << n) - 1));

	g->bits >>= n;
	g->n_bits -= n;
	return value;
}

/* Offset in the file of the next whole byte. */
static uint64_t position(const struct gunzip *g)
{
	return g->at - (g->in_len - g->in_pos) - g->n_bits / 8;
}

/* ---- codes ---- */

/* Every way in which the next nine bits may begin. */
static void fill_table(struct gunzip *g)
{
	for (unsigned bits = 0; bits < 1u << CODE_BITS; bits++) {
		unsigned code = 0, len = 0, symbol = 0;

		for (bool found = false; !found && len < CODE_BITS;) {
			code = code << 1 | (bits >> len++ & 1);
			found = true;
			if (len == 7 && code < 0x18)
				symbol = 256 + code;
			else if (len == 8 && code >= 0x30 && code < 0xc0)
				symbol = code - 0x30;
			else if (len == 8 && code >= 0xc0 && code < 0xc8)
				symbol = 280 + code - 0xc0;
			else if (len == 9)
				symbol = 144 + code - 0x190;
			else
				found = false;
		}
		g->symbol[bits] = (uint16_t)(len << 12 | symbol);
	}
}

/* The next symbol, or -1.  The end of the file may come within nine bits of it. */
static int next_symbol(struct gunzip *g)
{
	uint16_t entry;

	need(g, CODE_BITS);
	entry = g->symbol[g->bits & ((1u << CODE_BITS) - 1)];
	if ((unsigned)(entry >> 12) > g->n_bits)
		return -1;
	use(g, entry >> 12);
	return entry & 0xfff;
}

/* Length or distance: codes come in groups of |per_group|, each group with a bit more behind. */
static bool next_value(struct gunzip *g, unsigned code, unsigned per_group, unsigned *value)
{
	unsigned extra = code < 2 * per_group ? 0 : code / per_group - 1, base = code;

	if (extra)
		base = (per_group + code % per_group) << extra;
	if (!need(g, extra))
		return false;
	*value = base + use(g, extra);
	return true;
}

static bool next_match(struct gunzip *g, unsigned symbol, unsigned *len, unsigned *distance)
{
	unsigned code = 0;

	if (symbol > 285)
		return false;
	*len = 255;
	if (symbol < 285 && !next_value(g, symbol - 257, 4, len))
		return false;
	*len += 3;
	if (!need(g, 5))
		return false;
	for (int i = 0; i < 5; i++)
		code = code << 1 | use(g, 1);
	if (code > 29 || !next_value(g, code, 2, distance))
		return false;
	++*distance;
	return true;
}

/* ---- output ---- */

static int reserve(struct gunzip *g, size_t more)
{
	size_t want = g->out->len + more + g->pad, capacity = g->capacity ? g->capacity : 65536;
	uint8_t *data;

	while (capacity < want)
		capacity *= 2;
	if (capacity == g->capacity)
		return 0;
	data = d9__realloc(g->out->data, capacity);
	if (!data)
		return -ENOMEM;
	g->out->data = data;
	g->capacity = capacity;
	return 0;
}

/* A batch ended here: the checksum goes on to it, and what is too old goes.  False: no more is wanted. */
static bool set_mark(struct gunzip *g)
{
	struct d9__gunzipped *out = g->out;
	struct d9__gunzip_mark *mark = &out->mark;
	size_t n = out->len - mark->data_at;
	bool more = !g->fn || g->fn(g->arg, out->data + mark->data_at, n);

	mark->crc = d9__crc32(mark->crc, out->data + mark->data_at, n);
	mark->total += (uint32_t)n;
	mark->file_at = position(g);
	mark->data_at = out->len;
	if (!g->cut && out->len >= g->keep)
		g->cut = out->len;
	if (!g->cut || out->len - g->cut < g->keep)
		return more;
	if (!out->begin_len) {
		out->begin_len = g->cut < sizeof(out->begin) ? g->cut : sizeof(out->begin);
		memcpy(out->begin, out->data, out->begin_len);
	}
	memmove(out->data, out->data + g->cut, out->len - g->cut);
	out->len = mark->data_at = out->len - g->cut;
	g->cut = 0;
	return more;
}

/* 1 done, 0 damaged, -ENOMEM. */
static int fixed_block(struct gunzip *g)
{
	struct d9__gunzipped *out = g->out;
	size_t begin = out->len;
	int symbol, err;

	while ((symbol = next_symbol(g)) != 256) {
		unsigned len = 1, distance = 0;

		if (symbol < 0 || out->len - begin > BLOCK_MAX)
			return 0;
		if (symbol > 256 && (!next_match(g, (unsigned)symbol, &len, &distance) ||
				     distance > out->len))
			return 0;
		if (g->capacity - out->len < MATCH_MAX + g->pad && (err = reserve(g, MATCH_MAX)))
			return err;
		if (symbol < 256)
			out->data[out->len++] = (uint8_t)symbol;
		else
			for (; len; len--, out->len++)
				out->data[out->len] = out->data[out->len - distance];
	}
	return 1;
}

/* Ours are empty. */
static int stored_block(struct gunzip *g)
{
	use(g, g->n_bits % 8);
	return need(g, 32) && use(g, 32) == 0xffff0000u && set_mark(g);
}

static int next_block(struct gunzip *g)
{
	if (!need(g, 3) || use(g, 1))
		return 0;
	switch (use(g, 2)) {
	case 0:
		return stored_block(g);
	case 1:
		return fixed_block(g);
	default:
		return 0;
	}
}

/* Takes |g|, which is NULL if there is no memory for it. */
static int unpack(struct gunzip *g, int fd, uint64_t size)
{
	int more = 1;

	if (!g)
		return -ENOMEM;
	g->fd = fd;
	g->at = D9__GZIP_HEADER_LEN;
	fill_table(g);
	if (size >= D9__GZIP_HEADER_LEN)
		g->out->mark.file_at = D9__GZIP_HEADER_LEN;
	if (reserve(g, 0))
		more = -ENOMEM;
	while (more > 0)
		more = next_block(g);
	d9__free(g);
	return more;
}

int d9__gunzip(int fd, uint64_t size, size_t keep, size_t pad, struct d9__gunzipped *out)
{
	struct gunzip *g = d9__calloc(1, sizeof(*g));
	int err;

	*out = (struct d9__gunzipped){ 0 };
	if (g) {
		g->keep = keep;
		g->pad = pad;
		g->out = out;
	}
	err = unpack(g, fd, size);
	if (err) {
		d9__free(out->data);
		*out = (struct d9__gunzipped){ 0 };
		return err;
	}
	memset(out->data + out->len, 0, pad);
	return 0;
}

int d9__gunzip_each(int fd, uint64_t size, d9__gunzip_fn fn, void *arg)
{
	struct gunzip *g = d9__calloc(1, sizeof(*g));
	struct d9__gunzipped out = { 0 };
	int err;

	if (g) {
		g->keep = DISTANCE_MAX;
		g->pad = PAD;
		g->fn = fn;
		g->arg = arg;
		g->out = &out;
	}
	err = unpack(g, fd, size);
	d9__free(out.data);
	return err;
}
