/* SPDX-License-Identifier: Apache-2.0 */
/* Gunzip: reads back what gzip.c wrote, as far as it got before its process was killed. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define D9__GUNZIP_BEGIN 4096

/* The last place where the member can go on: a whole byte, behind a batch. */
struct d9__gunzip_mark {
	uint64_t file_at;    /* offset in the file; 0: not even the header is there */
	size_t data_at;      /* in |data| */
	uint32_t crc, total; /* of all before it, as the trailer says them */
};

struct d9__gunzipped {
	uint8_t *data; /* the end of what was packed; begins behind a mark; zeros follow */
	size_t len;
	struct d9__gunzip_mark mark;
	uint8_t begin[D9__GUNZIP_BEGIN]; /* what was packed first, if |data| does not begin with it */
	size_t begin_len;
};

/*
 * Unpack the file |fd| of |size| bytes from its beginning; keep at least the last |keep| bytes (32 KiB or
 * more), at most some three times that, and |pad| zeros behind.  Damage ends it.  |data| is to be freed.
 * 0 or -ENOMEM.
 */
int d9__gunzip(int fd, uint64_t size, size_t keep, size_t pad, struct d9__gunzipped *out);

/* What lies between two marks: whole batches.  False ends it. */
typedef bool (*d9__gunzip_fn)(void *arg, const uint8_t *data, size_t len);

/* Unpack the file and keep nothing of it.  0, also at damage, or -ENOMEM. */
int d9__gunzip_each(int fd, uint64_t size, d9__gunzip_fn fn, void *arg);
