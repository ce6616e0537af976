/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deflate with fixed Huffman codes (RFC 1951, 3.2.6) over greedy LZ77 with hash chains.  One block
 * per call, then an empty stored block, which brings the stream to a byte boundary.
 *
 * Input is gathered in a window: the newest 32 KiB already compressed, then up to 32 KiB of new
 * bytes.  Positions in the tables count from the start of the member and never wrap in practice: a
 * segment is far smaller than 4 GiB; at 2^31 the tables are cleared and counting starts again.
 */
#include "config.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "format/wire.h"
#include "segment/gzip.h"

#define DISTANCE_MAX  32768u
#define MATCH_MIN     3u
#define MATCH_MAX     258u
#define HASH_BITS     15
#define CHAIN_MAX     16 /* candidates looked at per position */
#define GOOD_ENOUGH   64 /* a match of this length ends the search */
#define POSITION_WRAP (UINT32_C(1) << 31)

struct d9__gzip {
	uint32_t head[1 << HASH_BITS]; /* newest position with this hash, plus 1 */
	uint32_t prev[DISTANCE_MAX];   /* the one before it, by position modulo its size */
	uint8_t window[2 * DISTANCE_MAX];
	size_t history; /* bytes of |window| already compressed */
	uint32_t base;  /* position of window[0] */
	uint32_t crc;
	uint32_t total; /* input bytes modulo 2^32 */
	uint64_t bits;  /* not yet written, lowest first */
	unsigned n_bits;
	uint8_t *out;
	uint16_t code[288]; /* of literals, end of block and lengths, lowest bit first */
	uint8_t length_code[MATCH_MAX + 1];
};

/* Length codes 257.. and distance codes 0..: first value and extra bits. */
static const uint16_t length_base[29] = { 3,  4,  5,  6,  7,  8,  9,  10, 11,  13,
					  15, 17, 19, 23, 27, 31, 35, 43, 51,  59,
					  67, 83, 99, 115, 131, 163, 195, 227, 258 };
static const uint8_t length_extra[29] = { 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
					  2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0 };
static const uint16_t distance_base[30] = { 1,   2,   3,   4,   5,   7,    9,    13,   17,   25,
					    33,  49,  65,  97,  129, 193,  257,  385,  513,  769,
					    1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385,
					    24577 };
static const uint8_t distance_extra[30] = { 0, 0, 0, 0, 1, 1, 2, 2,  3,  3,  4,  4,  5,  5,  6,
					    6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13 };

uint32_t d9__crc32(uint32_t crc, const uint8_t *data, size_t len)
{
	/* Half a byte at a time: sixteen constants, nothing to initialise. */
	static const uint32_t table[16] = {
		0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
		0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
		0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c
	};

	crc = ~crc;
	while (len--) {
		crc ^= *data++;
		crc = crc >> 4 ^ table[crc & 15];
		crc = crc >> 4 ^ table[crc & 15];
	}
	return ~crc;
}

void d9__gzip_begin(struct d9__gzip *gz, uint8_t *out)
{
	/* No name, no time, system "unix". */
	static const uint8_t header[D9__GZIP_HEADER_LEN] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3 };

	memset(gz->head, 0, sizeof(gz->head));
	gz->history = 0;
	gz->base = gz->crc = gz->total = 0;
	gz->bits = gz->n_bits = 0;
	memcpy(out, header, sizeof(header));
}

/* Worst case: every byte a literal of nine bits, and per 32 KiB a block and the empty one. */
size_t d9__gzip_bound(size_t len)
{
	return len + len / 8 + (len / DISTANCE_MAX + 1) * 16;
}

static void put_bits(struct d9__gzip *gz, uint32_t value, unsigned n)
{
	gz->bits |= (uint64_t)value << gz->n_bits;
	gz->n_bits += n;
	while (gz->n_bits >= 8) {
		*gz->out++ = (uint8_t)gz->bits;
		gz->bits >>= 8;
		gz->n_bits -= 8;
	}
}

/* Huffman codes are written from their highest bit. */
static uint32_t reversed(uint32_t code, unsigned n)
{
	uint32_t out = 0;

	for (; n; n--, code >>= 1)
		out = out << 1 | (code & 1);
	return out;
}

static unsigned code_length(unsigned symbol)
{
	return symbol < 144 ? 8 : symbol < 256 ? 9 : symbol < 280 ? 7 : 8;
}

static void fill_codes(struct d9__gzip *gz)
{
	unsigned l = 0;

	for (unsigned symbol = 0; symbol < 288; symbol++) {
		uint32_t code = symbol < 144 ? 0x30 + symbol : symbol < 256 ? 0x190 + symbol - 144 :
				symbol < 280 ? symbol - 256 : 0xc0 + symbol - 280;

		gz->code[symbol] = (uint16_t)reversed(code, code_length(symbol));
	}
	for (unsigned len = MATCH_MIN; len <= MATCH_MAX; len++) {
		if (l < 28 && len >= length_base[l + 1])
			l++;
		gz->length_code[len] = (uint8_t)l;
	}
}

struct d9__gzip *d9__gzip_new(void)
{
	struct d9__gzip *gz = d9__calloc(1, sizeof(*gz));

	if (gz)
		fill_codes(gz);
	return gz;
}

void d9__gzip_free(struct d9__gzip *gz)
{
	d9__free(gz);
}

static void put_symbol(struct d9__gzip *gz, unsigned symbol)
{
	put_bits(gz, gz->code[symbol], code_length(symbol));
}

/* Two codes per power of two: the highest bit of distance - 1 and the one below it. */
static unsigned distance_code(unsigned distance)
{
	unsigned top;

	if (distance <= 2)
		return distance - 1;
	top = 31 - (unsigned)__builtin_clz(distance - 1);
	return 2 * top + ((distance - 1) >> (top - 1) & 1);
}

static void put_match(struct d9__gzip *gz, unsigned len, unsigned distance)
{
	unsigned l = gz->length_code[len], d = distance_code(distance);

	put_symbol(gz, 257 + l);
	put_bits(gz, len - length_base[l], length_extra[l]);
	put_bits(gz, reversed(d, 5), 5);
	put_bits(gz, distance - distance_base[d], distance_extra[d]);
}

static uint32_t hash_of(const uint8_t *p)
{
	uint32_t v = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16;

	return v * UINT32_C(0x9e3779b1) >> (32 - HASH_BITS);
}

static void remember(struct d9__gzip *gz, size_t at)
{
	uint32_t hash = hash_of(gz->window + at), position = gz->base + (uint32_t)at;

	gz->prev[position % DISTANCE_MAX] = gz->head[hash];
	gz->head[hash] = position + 1;
}

static unsigned common_length(const uint8_t *a, const uint8_t *b, unsigned max)
{
	unsigned n = 0;

	while (n < max && a[n] == b[n])
		n++;
	return n;
}

/* The longest earlier occurrence of what stands at |at|, of at most |max| bytes; 0 if none. */
static unsigned find_match(const struct d9__gzip *gz, size_t at, unsigned max, unsigned *distance)
{
	const uint8_t *here = gz->window + at;
	uint32_t position = gz->base + (uint32_t)at, next = gz->head[hash_of(here)];
	unsigned best = 0;

	for (int i = 0; i < CHAIN_MAX && next; i++) {
		uint32_t candidate = next - 1;
		unsigned len, back = position - candidate;

		if (candidate < gz->base || back > DISTANCE_MAX - MATCH_MAX)
			break;
		len = common_length(gz->window + (candidate - gz->base), here, max);
		if (len > best) {
			best = len;
			*distance = back;
			if (len >= GOOD_ENOUGH)
				break;
		}
		next = gz->prev[candidate % DISTANCE_MAX];
	}
	return best >= MATCH_MIN ? best : 0;
}

/* Make room for |len| new bytes behind at most 32 KiB of history. */
static void slide(struct d9__gzip *gz)
{
	size_t drop = gz->history > DISTANCE_MAX ? gz->history - DISTANCE_MAX : 0;

	memmove(gz->window, gz->window + drop, gz->history - drop);
	gz->history -= drop;
	gz->base += (uint32_t)drop;
	if (gz->base >= POSITION_WRAP) {
		memset(gz->head, 0, sizeof(gz->head));
		gz->base = 0;
		gz->history = 0;
	}
}

/* Compress at most 32 KiB as one block. */
static void write_block(struct d9__gzip *gz, const uint8_t *in, size_t len)
{
	size_t at, end;

	slide(gz);
	memcpy(gz->window + gz->history, in, len);
	at = gz->history;
	end = at + len;
	put_bits(gz, 2, 3); /* not the last one, fixed codes */
	while (at < end) {
		unsigned max = end - at < MATCH_MAX ? (unsigned)(end - at) : MATCH_MAX, distance = 0;
		unsigned n = max >= MATCH_MIN ? find_match(gz, at, max, &distance) : 0;

		if (n) {
			put_match(gz, n, distance);
		} else {
			put_symbol(gz, gz->window[at]);
			n = 1;
		}
		for (; n; n--, at++)
			if (end - at >= MATCH_MIN)
				remember(gz, at);
	}
	put_symbol(gz, 256);
	gz->history = end;
}

static void align(struct d9__gzip *gz)
{
	static const uint8_t lengths[4] = { 0, 0, 0xff, 0xff };

	put_bits(gz, 0, 3); /* an empty stored block */
	if (gz->n_bits)
		put_bits(gz, 0, 8 - gz->n_bits);
	memcpy(gz->out, lengths, sizeof(lengths));
	gz->out += sizeof(lengths);
}

size_t d9__gzip_write(struct d9__gzip *gz, const uint8_t *in, size_t len, uint8_t *out)
{
	gz->out = out;
	gz->crc = d9__crc32(gz->crc, in, len);
	gz->total += (uint32_t)len;
	while (len) {
		size_t n = len < DISTANCE_MAX ? len : DISTANCE_MAX;

		write_block(gz, in, n);
		in += n;
		len -= n;
	}
	align(gz);
	return (size_t)(gz->out - out);
}

void d9__gzip_end(struct d9__gzip *gz, uint8_t *out)
{
	/* Last block, fixed codes, nothing in it: bits 1 10 0000000. */
	out[0] = 3;
	out[1] = 0;
	d9__wire_put_u32(d9__wire_put_u32(out + 2, gz->crc), gz->total);
}

void d9__gzip_mark(const struct d9__gzip *gz, uint32_t *crc, uint32_t *total)
{
	*crc = gz->crc;
	*total = gz->total;
}

void d9__gzip_rewind(struct d9__gzip *gz, uint32_t crc, uint32_t total)
{
	gz->crc = crc;
	gz->total = total;
}
