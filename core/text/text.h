/* SPDX-License-Identifier: Apache-2.0 */
/* Text out, fast: a buffer before a descriptor, with JSON's and people's spellings. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The least and the largest width. */
#define D9__WIDTH_MIN 40
#define D9__WIDTH_MAX 10000

/* Room that d9__text_reserve() can always make. */
#define D9__TEXT_RESERVE_MAX 4096

/* Written by one thread.  After the first error nothing more is written; |err| tells. */
struct d9__text_out {
	int fd;
	int err; /* 0 or -errno; -EPIPE when the reader went away, which is no failure */
	size_t len;
	char data[64 << 10];
};

/* Start writing to |fd|, which the caller keeps.  Ignores SIGPIPE from here on. */
void d9__text_init(struct d9__text_out *out, int fd);

/* Write what is buffered.  0 or the first error. */
int d9__text_flush(struct d9__text_out *out);

/*
 * Flush and turn the result into an exit status: a reader that went away is fine, any other
 * error is one line on stderr.
 */
int d9__text_finish(struct d9__text_out *out, const char *command);

/* A place for |len| bytes, at most D9__TEXT_RESERVE_MAX; claim with |out->len|. */
static inline char *d9__text_reserve(struct d9__text_out *out, size_t len)
{
	if (sizeof(out->data) - out->len < len)
		d9__text_flush(out);
	return out->data + out->len;
}

void d9__text_bytes_slow(struct d9__text_out *out, const char *bytes, size_t len);

static inline void d9__text_bytes(struct d9__text_out *out, const char *bytes, size_t len)
{
	if (sizeof(out->data) - out->len < len) {
		d9__text_bytes_slow(out, bytes, len);
		return;
	}
	memcpy(out->data + out->len, bytes, len);
	out->len += len;
}

static inline void d9__text_char(struct d9__text_out *out, char c)
{
	*d9__text_reserve(out, 1) = c;
	out->len++;
}

static inline void d9__text_string(struct d9__text_out *out, const char *text)
{
	d9__text_bytes(out, text, strlen(text));
}

void d9__text_u64(struct d9__text_out *out, uint64_t n);
void d9__text_i64(struct d9__text_out *out, int64_t n);

/* "0x1a2b" */
void d9__text_hex(struct d9__text_out *out, uint64_t n);

/* Two lower-case digits a byte. */
void d9__text_hex_bytes(struct d9__text_out *out, const void *bytes, size_t len);

/* The shortest decimal that reads back as |x|; null if it is not finite. */
void d9__text_f64(struct d9__text_out *out, double x);

/* |text| in quotes, escaped for JSON and so that a terminal obeys nothing of it (text/shown.h). */
void d9__text_json(struct d9__text_out *out, const char *text, size_t len);

/* |text| escaped, without quotes: text of a trace goes to terminals only this way. */
void d9__text_escaped(struct d9__text_out *out, const char *text, size_t len);

/* As much of |text| as goes into |columns|, without quotes escaped; returns the columns that it took. */
size_t d9__text_fitting(struct d9__text_out *out, const char *text, size_t columns);

/* As d9__text_json(), but bare if it has no spaces, quotes, backslashes or control characters. */
void d9__text_word(struct d9__text_out *out, const char *text, size_t len);

/* The width of the terminal on standard output, else $COLUMNS, else 80. */
unsigned d9__text_columns(void);

/*
 * Print |text|, which begins in column |indent|, broken at blanks and behind commas so that each
 * line is shorter than d9__text_columns() where that is possible; then a line end.  Escaped.
 */
void d9__text_wrapped(struct d9__text_out *out, const char *text, size_t len, size_t indent);

/* printf(3), at most D9__TEXT_RESERVE_MAX - 1 bytes. */
void d9__text_printf(struct d9__text_out *out, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* "1.234 s", "56.7 ms", "890 ns": three or four digits and a unit.  Returns |buf|. */
#define D9__DURATION_LEN 24
const char *d9__duration_text(uint64_t ns, char buf[D9__DURATION_LEN]);

/* "12.3 MiB".  Returns |buf|. */
#define D9__SIZE_LEN 24
const char *d9__size_text(uint64_t bytes, char buf[D9__SIZE_LEN]);
