/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes, decoded at once and in pieces: no crash, and the same frames both times. */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>

#include "core/read/memory_source.h"
#include "format/values.h"
#include "fuzz/fuzz.h"

struct outcome {
	uint64_t digest, frames;
	int err;
	bool truncated;
	uint64_t err_offset;
};

static uint64_t mix(uint64_t digest, uint64_t value)
{
	return (digest ^ value) * UINT64_C(0x100000001b3);
}

/* Touch everything a value points to: a sanitizer sees what is not there. */
static uint64_t digest_value(uint64_t digest, const struct d9_value *value)
{
	digest = mix(digest, (uint64_t)value->type + (uint64_t)value->present * 16);
	if (!value->present)
		return digest;
	switch (value->type) {
	case D9_FIELD_STRING:
	case D9_FIELD_BYTES:
		for (size_t i = 0; i < value->u.text.len; i++)
			digest = mix(digest, (uint8_t)value->u.text.data[i]);
		return digest;
	case D9_FIELD_STACK:
		for (size_t i = 0; i < value->u.stack.n; i++)
			digest = mix(digest, value->u.stack.addresses[i]);
		return digest;
	case D9_FIELD_STRING_MAP:
		for (size_t i = 0; i < 2 * value->u.string_map.n; i++)
			digest = mix(digest, value->u.string_map.pairs[i].len);
		return digest;
	case D9_FIELD_LIST:
		for (size_t i = 0; i < value->u.list.n; i++)
			digest = digest_value(digest, &value->u.list.items[i]);
		return digest;
	case D9_FIELD_MAP:
		for (size_t i = 0; i < value->u.map.n; i++) {
			digest = digest_value(digest, &value->u.map.entries[i].key);
			digest = digest_value(digest, &value->u.map.entries[i].value);
		}
		return digest;
	case D9_FIELD_BOOL:
		return mix(digest, value->u.boolean);
	default:
		return mix(digest, value->u.u64);
	}
}

static uint64_t digest_event(uint64_t digest, const struct d9__decoder *decoder,
			     struct d9__values *values, const struct d9__frame *frame)
{
	int err = d9__values_build(values, decoder, frame);

	fuzz_require(err == 0, "a frame that was passed has values");
	digest = mix(digest, frame->timestamp_ns);
	for (uint32_t i = 0; i < frame->schema->n_fields; i++)
		digest = digest_value(digest, &values->items[i]);
	return digest;
}

static struct outcome read_pieces(const uint8_t *bytes, size_t len, size_t piece, bool known)
{
	struct memory_source source = { bytes, len, 0, piece };
	struct d9__definitions set = { .limit_bytes = (uint64_t)1 << 24 };
	struct d9__segment_reader reader;
	struct d9__values values = { 0 };
	struct d9__frame frame;
	struct outcome out = { 0 };
	int got;

	d9__segment_reader_init(&reader, &set, (uint64_t)1 << 24);
	d9__segment_reader_start(&reader, memory_source(&source, known));
	while ((got = d9__segment_reader_next(&reader, &frame)) == 1) {
		out.frames++;
		out.digest = mix(out.digest, (uint64_t)frame.kind);
		out.digest = mix(out.digest, d9__segment_reader_offset(&reader, &frame));
		if (frame.kind == D9__FRAME_EVENT)
			out.digest = digest_event(out.digest, &reader.decoder, &values, &frame);
	}
	fuzz_require(got == 0, "damage is not an error of reading");
	out.err = reader.err;
	out.truncated = reader.truncated;
	out.err_offset = reader.err_offset;
	d9__values_release(&values);
	d9__segment_reader_release(&reader);
	d9__definitions_release(&set);
	return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct outcome whole = read_pieces(data, size, SIZE_MAX, true);
	struct outcome slow = read_pieces(data, size, size < 4096 ? 1 : 1021, false);

	fuzz_require(whole.frames == slow.frames && whole.digest == slow.digest,
		     "pieces give the same frames");
	fuzz_require(whole.err == slow.err && whole.truncated == slow.truncated &&
			     whole.err_offset == slow.err_offset,
		     "pieces end in the same way");
	return 0;
}
