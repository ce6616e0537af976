/* SPDX-License-Identifier: Apache-2.0 */
/* Unpack: what the decompressors of the field make of the bytes of a segment file, which may end anywhere. */

#ifndef D9_TESTS_SEGMENT_UNPACK_H
#define D9_TESTS_SEGMENT_UNPACK_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include <dial9/options.h>

#include "support/d9_test.h"

#define UNPACK_MAX (8u << 20)

struct unpacked {
	uint8_t data[UNPACK_MAX];
	size_t len;
	bool damaged;
	bool complete; /* the last frame or member has ended */
};

static inline void unpack_zstd(struct unpacked *out, const uint8_t *bytes, size_t len)
{
	ZSTD_DCtx *zstd = ZSTD_createDCtx();
	ZSTD_inBuffer in = { bytes, len, 0 };
	ZSTD_outBuffer to = { out->data, sizeof(out->data), 0 };
	size_t left = 0;

	while (in.pos < in.size && !ZSTD_isError(left))
		left = ZSTD_decompressStream(zstd, &to, &in);
	out->len = to.pos;
	out->damaged = ZSTD_isError(left);
	out->complete = left == 0;
	ZSTD_freeDCtx(zstd);
}

static inline void unpack_gzip(struct unpacked *out, const uint8_t *bytes, size_t len)
{
	z_stream z = { .next_in = (Bytef *)bytes, .avail_in = (uInt)len, .next_out = out->data,
		       .avail_out = sizeof(out->data) };
	int end;

	CU_ASSERT_EQUAL_FATAL(inflateInit2(&z, 15 + 16), Z_OK);
	end = len ? inflate(&z, Z_SYNC_FLUSH) : Z_OK;
	out->len = z.total_out;
	out->damaged = (end != Z_OK && end != Z_STREAM_END) || z.avail_in;
	out->complete = end == Z_STREAM_END;
	inflateEnd(&z);
}

static inline void unpack(struct unpacked *out, enum d9_compress kind, const uint8_t *bytes, size_t len)
{
	switch (kind) {
	case D9_COMPRESS_ZSTD:
		unpack_zstd(out, bytes, len);
		break;
	case D9_COMPRESS_GZIP:
		unpack_gzip(out, bytes, len);
		break;
	case D9_COMPRESS_NONE:
		CU_ASSERT_FATAL(len <= sizeof(out->data));
		if (len)
			memcpy(out->data, bytes, len);
		out->len = len;
		out->damaged = false;
		out->complete = true;
		break;
	}
}

#endif /* D9_TESTS_SEGMENT_UNPACK_H */
