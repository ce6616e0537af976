/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes, decoded at once and in pieces: no crash, and the same frames both times, whether they
 * are decoded the quick way or not.
 */
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
	struct d9__times times;
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

/* An event that can be decoded the quick way has the same time, end and values the slow way. */
struct quick {
	struct d9__frame frame;
	uint64_t digest;
	bool found, good;
};

static struct quick look_ahead(const struct d9__segment_reader *reader, struct d9__values *values)
{
	struct quick quick = { 0 };

	quick.found = d9__segment_reader_peek(reader, &quick.frame);
	if (!quick.found)
		return quick;
	quick.good = d9__values_quick(values, &reader->decoder, &quick.frame) == 0;
	for (uint32_t i = 0; quick.good && i < quick.frame.schema->n_fields; i++)
		quick.digest = digest_value(quick.digest, &values->items[i]);
	return quick;
}

static void check_quick(const struct quick *quick, int got, const struct d9__frame *frame,
			const struct d9__decoder *decoder, struct d9__values *values)
{
	uint64_t digest = 0;

	if (!quick->found)
		return;
	fuzz_require(quick->good == (got == 1), "both ways find the same damage");
	if (!quick->good)
		return;
	fuzz_require(frame->kind == D9__FRAME_EVENT && frame->schema == quick->frame.schema &&
			     frame->start == quick->frame.start && frame->end == quick->frame.end &&
			     frame->timestamp_ns == quick->frame.timestamp_ns,
		     "both ways see the same event");
	fuzz_require(!d9__values_build(values, decoder, frame), "it has values");
	for (uint32_t i = 0; i < frame->schema->n_fields; i++)
		digest = digest_value(digest, &values->items[i]);
	fuzz_require(digest == quick->digest, "both ways give the same values");
}

/* Passing events must give the times that decoding them gives. */
static void check_times(const uint8_t *bytes, size_t len, const struct d9__times *wanted)
{
	struct memory_source source = { bytes, len, 0, SIZE_MAX };
	struct d9__definitions set = { .limit_bytes = (uint64_t)1 << 24 };
	struct d9__times times = { .sorted = true };
	struct d9__segment_reader reader;
	struct d9__frame frame;

	d9__segment_reader_init(&reader, &set, (uint64_t)1 << 24);
	d9__segment_reader_start(&reader, memory_source(&source, true));
	while (d9__segment_reader_next(&reader, &frame) == 1) {
		if (frame.kind == D9__FRAME_EVENT)
			d9__times_add(&times, frame.timestamp_ns);
		d9__segment_reader_pass(&reader, &times);
	}
	fuzz_require(times.timed == wanted->timed && times.untimed == wanted->untimed &&
			     times.first_ns == wanted->first_ns && times.last_ns == wanted->last_ns &&
			     times.newest_ns == wanted->newest_ns && times.sorted == wanted->sorted,
		     "passing gives the same times");
	d9__segment_reader_release(&reader);
	d9__definitions_release(&set);
}

static struct outcome read_pieces(const uint8_t *bytes, size_t len, size_t piece, bool known)
{
	struct memory_source source = { bytes, len, 0, piece };
	struct d9__definitions set = { .limit_bytes = (uint64_t)1 << 24 };
	struct d9__segment_reader reader;
	struct d9__values values = { 0 };
	struct d9__frame frame;
	struct outcome out = { .times = { .sorted = true } };
	struct quick quick;
	int got;

	d9__segment_reader_init(&reader, &set, (uint64_t)1 << 24);
	d9__segment_reader_start(&reader, memory_source(&source, known));
	for (;;) {
		quick = look_ahead(&reader, &values);
		got = d9__segment_reader_next(&reader, &frame);
		check_quick(&quick, got, &frame, &reader.decoder, &values);
		if (got != 1)
			break;
		if (frame.kind == D9__FRAME_EVENT)
			d9__times_add(&out.times, frame.timestamp_ns);
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
	check_times(data, size, &whole.times);
	return 0;
}
