/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "format/decoder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/format/worked_examples.h"
#include "format/values.h"
#include "support/d9_test.h"
#include "support/trace_builder.h"

#define LIMIT ((uint64_t)1 << 20)

/* A stream decoded to where it stops. */
struct result {
	int got; /* what the last call answered */
	size_t stopped_at;
	unsigned events, headers;
	uint64_t times;
	char message[160];
};

static struct result decode(const uint8_t *bytes, size_t len)
{
	struct result result = { .got = 1 };
	struct d9__definitions set = { .limit_bytes = LIMIT };
	struct d9__values values = { 0 };
	struct d9__cursor in = { bytes, bytes + len, 0 };
	struct d9__decoder decoder;
	struct d9__frame frame;

	d9__decoder_init(&decoder, &set, LIMIT);
	while ((result.got = d9__decoder_next(&decoder, &in, &frame)) == 1) {
		result.headers += frame.kind == D9__FRAME_HEADER;
		if (frame.kind != D9__FRAME_EVENT)
			continue;
		result.events++;
		result.times += frame.timestamp_ns;
		CU_ASSERT_EQUAL(d9__values_build(&values, &decoder, &frame), 0);
	}
	result.stopped_at = (size_t)(in.p - bytes);
	memcpy(result.message, decoder.message, sizeof(result.message));
	d9__values_release(&values);
	d9__decoder_release(&decoder);
	d9__definitions_release(&set);
	return result;
}

static struct result decode_trace(struct trace *t)
{
	struct result result = decode(t->data, t->len);

	trace_free(t);
	return result;
}

static bool says(const struct result *result, const char *words)
{
	return strstr(result->message, words) != NULL;
}

/* ---- headers ---- */

static void test_decoder_of_a_header_alone_finds_nothing_and_no_fault(void)
{
	struct result result = decode((const uint8_t *)"TRC\0\1", 5);

	CU_ASSERT_EQUAL(result.got, 0);
	CU_ASSERT_EQUAL(result.stopped_at, 5);
	CU_ASSERT_EQUAL(result.headers, 1);
}

static void test_decoder_refuses_what_is_no_trace(void)
{
	struct result other = decode((const uint8_t *)"PNG\0\1", 5);
	struct result frame_first = decode((const uint8_t *)"\x05\0\0\0\0\0\0\0\0", 9);

	CU_ASSERT_EQUAL(other.got, -EBADMSG);
	CU_ASSERT(says(&other, "not a TRC stream"));
	CU_ASSERT_EQUAL(frame_first.got, -EBADMSG);
}

static void test_decoder_names_the_version_it_does_not_know(void)
{
	struct result first = decode((const uint8_t *)"TRC\0\2", 5);
	struct result later = decode((const uint8_t *)"TRC\0\1TRC\0\7", 10);

	CU_ASSERT_EQUAL(first.got, -EPROTONOSUPPORT);
	CU_ASSERT(says(&first, "version 2"));
	CU_ASSERT_EQUAL(later.got, -EPROTONOSUPPORT);
	CU_ASSERT_EQUAL(later.stopped_at, 5);
	CU_ASSERT(says(&later, "version 7"));
}

static void test_decoder_takes_any_run_of_headers_and_resets(void)
{
	size_t n = 100000, len = n * 5 + n * 9;
	uint8_t *bytes = calloc(1, len);
	struct result result;

	for (size_t i = 0; i < n; i++)
		memcpy(bytes + i * 5, "TRC\0\1", 5);
	for (size_t i = 0; i < n; i++)
		bytes[n * 5 + i * 9] = 5;
	result = decode(bytes, len);
	free(bytes);

	CU_ASSERT_EQUAL(result.got, 0);
	CU_ASSERT_EQUAL(result.stopped_at, len);
	CU_ASSERT_EQUAL(result.headers, n);
}

static void test_decoder_stops_at_an_unknown_tag_and_names_it(void)
{
	struct result number = decode((const uint8_t *)"TRC\0\1\x07", 6);
	struct result letter = decode((const uint8_t *)"TRC\0\1TRX", 8);

	CU_ASSERT_EQUAL(number.got, -EBADMSG);
	CU_ASSERT_EQUAL(number.stopped_at, 5);
	CU_ASSERT(says(&number, "tag 0x07"));
	CU_ASSERT_EQUAL(letter.got, -EBADMSG);
}

/* ---- schemas ---- */

static void test_event_before_its_schema_stops_decoding(void)
{
	struct result result = decode((const uint8_t *)"TRC\0\1\x02\x09\x00\0\0\0", 11);

	CU_ASSERT_EQUAL(result.got, -EBADMSG);
	CU_ASSERT(says(&result, "undefined type 9"));
}

static void test_schema_of_the_batch_before_is_forgotten(void)
{
	struct trace t = { 0 };
	struct result result;

	trace_batch(&t);
	trace_schema(&t, 1, "A", "x:9");
	trace_batch(&t);
	t.has_time[1] = 1;
	trace_head(&t, 1, 0);
	trace_varint(&t, 3);
	result = decode_trace(&t);

	CU_ASSERT_EQUAL(result.got, -EBADMSG);
}

static void test_schema_may_be_repeated_but_not_changed(void)
{
	struct trace t = { 0 }, u = { 0 };
	struct result same, different;

	trace_batch(&t);
	trace_schema(&t, 1, "A", "x:9");
	trace_annotate(&t, 1, 0, "unit", "us");
	trace_schema(&t, 1, "A", "x:9");
	trace_event(&t, 1, 5, (uint64_t)6);
	trace_batch(&u);
	trace_schema(&u, 1, "A", "x:9");
	trace_schema(&u, 1, "A", "x:13");
	same = decode_trace(&t);
	different = decode_trace(&u);

	CU_ASSERT_EQUAL(same.got, 0);
	CU_ASSERT_EQUAL(same.events, 1);
	CU_ASSERT_EQUAL(different.got, -EBADMSG);
	CU_ASSERT(says(&different, "defined again"));
}

static void test_schema_with_an_unknown_type_is_named_at_its_first_event(void)
{
	struct trace t = { 0 };
	struct result result;

	trace_batch(&t);
	trace_schema(&t, 1, "Good", "x:9");
	trace_schema(&t, 2, "Odd", "fine:9 strange:16");
	trace_event(&t, 1, 5, (uint64_t)6);
	trace_head(&t, 2, 6);
	result = decode_trace(&t);

	CU_ASSERT_EQUAL(result.got, -EBADMSG);
	CU_ASSERT_EQUAL(result.events, 1);
	CU_ASSERT(says(&result, "Odd") && says(&result, "strange") && says(&result, "16"));
}

static void test_schema_without_names_or_fields_works(void)
{
	struct trace t = { 0 };
	struct result result;

	trace_batch(&t);
	trace_schema(&t, 0, "", "");
	trace_schema(&t, 511, "", ":4");
	trace_event(&t, 0, 7);
	trace_event(&t, 511, 8, "");
	result = decode_trace(&t);

	CU_ASSERT_EQUAL(result.got, 0);
	CU_ASSERT_EQUAL(result.events, 2);
	CU_ASSERT_EQUAL(result.times, 15);
}

static void test_schemas_that_need_more_memory_than_allowed_are_refused(void)
{
	struct trace t = { 0 };
	char name[32];
	struct result result;

	trace_batch(&t);
	for (unsigned i = 0; i < 20000; i++) {
		snprintf(name, sizeof(name), "E%u", i);
		trace_schema(&t, i % 512, name, "a:9 b:9 c:9");
		trace_bytes(&t, "TRC\0\1", 5);
	}
	result = decode_trace(&t);

	CU_ASSERT_EQUAL(result.got, -EFBIG);
	CU_ASSERT(says(&result, "schemas"));
}

static const struct d9_schema *last_schema(const struct trace *t, struct d9__definitions *set)
{
	struct d9__cursor in = { t->data, t->data + t->len, 0 };
	const struct d9_schema *schema = NULL;
	struct d9__decoder decoder;
	struct d9__frame frame;

	d9__decoder_init(&decoder, set, 0);
	while (d9__decoder_next(&decoder, &in, &frame) == 1)
		if (frame.kind == D9__FRAME_EVENT)
			schema = frame.schema;
	CU_ASSERT_EQUAL(in.p, in.end);
	d9__decoder_release(&decoder);
	return schema;
}

static void test_annotations_are_found_by_field_and_the_last_one_counts(void)
{
	struct d9__definitions set = { 0 };
	const struct d9_schema *schema;
	struct trace t = { 0 };

	trace_batch(&t);
	trace_schema(&t, 1, "E", "a:9 b:9 c:9 d:9");
	trace_annotate(&t, 1, 3, "unit", "ms");
	trace_annotate(&t, 1, 0, "unit", "us");
	trace_annotate(&t, 1, 3, "kind", "gauge");
	trace_annotate(&t, 1, 2, "unit", "ns");
	trace_annotate(&t, 1, 0, "unit", "s");
	trace_event(&t, 1, 1000, UINT64_C(0), UINT64_C(0), UINT64_C(0), UINT64_C(0));
	schema = last_schema(&t, &set);

	CU_ASSERT_EQUAL(schema->n_annotations, 5);
	CU_ASSERT_STRING_EQUAL(d9__definition_annotation(schema, 0, "unit"), "s");
	CU_ASSERT_PTR_NULL(d9__definition_annotation(schema, 1, "unit"));
	CU_ASSERT_STRING_EQUAL(d9__definition_annotation(schema, 2, "unit"), "ns");
	CU_ASSERT_STRING_EQUAL(d9__definition_annotation(schema, 3, "unit"), "ms");
	CU_ASSERT_STRING_EQUAL(d9__definition_annotation(schema, 3, "kind"), "gauge");
	CU_ASSERT_PTR_NULL(d9__definition_annotation(schema, 4, "unit"));
	d9__definitions_release(&set);
	trace_free(&t);
}

static void test_annotations_add_up_and_bad_ones_are_skipped(void)
{
	struct d9__definitions set = { 0 };
	struct trace t = { 0 };
	const struct d9_schema *schema;

	trace_batch(&t);
	trace_schema(&t, 300, "A", "x:9 y:9");
	trace_annotate(&t, 300, 0, "unit", "us");
	trace_annotate(&t, 300, 1, "kind", "gauge");
	trace_annotate(&t, 300, 2, "unit", "no such field");
	trace_annotate(&t, 301, 0, "unit", "no such schema");
	trace_annotate(&t, 300, 0, "unit", "us");
	trace_event(&t, 300, 5, (uint64_t)1, (uint64_t)2);
	schema = last_schema(&t, &set);

	CU_ASSERT_FATAL(schema != NULL);
	CU_ASSERT_EQUAL(schema->n_annotations, 2);
	CU_ASSERT_STRING_EQUAL(schema->annotations[0].value, "us");
	CU_ASSERT_STRING_EQUAL(schema->annotations[1].key, "kind");
	CU_ASSERT_EQUAL(schema->annotations[1].field, 1);
	d9__definitions_release(&set);
	trace_free(&t);
}

static void test_equal_schemas_of_all_batches_are_one(void)
{
	struct d9__definitions set = { 0 };
	struct trace t = { 0 };

	for (unsigned i = 0; i < 100; i++) {
		trace_batch(&t);
		trace_schema(&t, i, "A", "x:9");
		trace_schema(&t, i + 100, "A", "x:137");
		trace_event(&t, i, 5, (uint64_t)1);
	}
	(void)last_schema(&t, &set);

	CU_ASSERT_EQUAL(set.n, 2);
	CU_ASSERT_EQUAL(set.list[1]->id, 1);
	CU_ASSERT_TRUE(set.list[1]->fields[0].optional);
	d9__definitions_release(&set);
	trace_free(&t);
}

/* ---- times ---- */

static void test_times_are_gaps_from_event_to_event(void)
{
	struct trace t = { 0 };
	struct result result;

	trace_batch(&t);
	trace_schema(&t, 1, "A", "");
	trace_schema(&t, 2, "!Timeless", "x:11");
	trace_event(&t, 1, 1000);
	trace_event(&t, 2, 0, (uint64_t)1);
	trace_event(&t, 1, 1000);
	trace_event(&t, 1, 1000 + 0xffffff);
	trace_event(&t, 1, 0);
	result = decode_trace(&t);

	CU_ASSERT_EQUAL(result.got, 0);
	CU_ASSERT_EQUAL(result.events, 5);
	CU_ASSERT_EQUAL(result.times, 3000 + 0xffffff);
}

static void test_time_past_64_bits_is_an_error(void)
{
	struct trace t = { 0 };
	struct result result;

	trace_batch(&t);
	trace_schema(&t, 1, "A", "");
	trace_event(&t, 1, UINT64_MAX);
	trace_uint(&t, 2, 1);
	trace_uint(&t, 1, 2);
	trace_uint(&t, 1, 3);
	result = decode_trace(&t);

	CU_ASSERT_EQUAL(result.got, -EBADMSG);
	CU_ASSERT_EQUAL(result.events, 1);
	CU_ASSERT_EQUAL(result.times, UINT64_MAX);
	CU_ASSERT(says(&result, "time"));
}

/* ---- claims ---- */

/* |claim| bytes of a frame that promises the world, then some more bytes: no crash, no wait. */
static struct result decode_claim(const char *fields, const void *claim, size_t len)
{
	struct trace t = { 0 };

	trace_batch(&t);
	trace_schema(&t, 1, "A", fields);
	if (*fields)
		trace_head(&t, 1, 5);
	trace_bytes(&t, claim, len);
	trace_bytes(&t, "0123456789abcdef", 16);
	return decode_trace(&t);
}

static void test_counts_of_four_billion_are_not_believed(void)
{
	static const char max[] = "\xff\xff\xff\xff";
	static const char *const fields[] = {
		"s:4", "b:5", "f:8", "m:10", "l:14", "d:15", "s:132"
	};
	static const char *const frames[] = { "\x03\xff\xff\xff\xff", "\x04\xff\xff\xff\xff" };
	static const char *const entries[] = { "\x03\1\0\0\0\0\0\0\0\xff\xff\xff\xff",
					       "\x04\1\0\0\0\0\0\0\0\xff\xff\xff\xff" };

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		CU_ASSERT_EQUAL(decode_claim(fields[i], max, 4).got, 0);
	for (size_t i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(decode_claim("", frames[i], 5).got, 0);
		CU_ASSERT_EQUAL(decode_claim("", entries[i], 13).got, 0);
	}
	CU_ASSERT_EQUAL(decode_claim("", "\x06\1\xff\xff", 4).got, 0);
	CU_ASSERT_EQUAL(decode_claim("", "\x06\1\1\0\0\0\0\0\xff\xff\xff\xff", 12).got, 0);
	CU_ASSERT_EQUAL(decode_claim("", "\x01\2\0\xff\xff", 5).got, 0);
	CU_ASSERT_EQUAL(decode_claim("", "\x01\2\0\0\0\1\xff\xff", 8).got, 0);
}

static void test_claim_tells_how_many_bytes_are_missing(void)
{
	struct d9__definitions set = { 0 };
	struct d9__cursor in;
	struct d9__decoder decoder;
	struct d9__frame frame;
	const uint8_t bytes[] = "TRC\0\1\x03\1\0\0\0\0\0\0\0\x00\x10\0\0abc";

	in = (struct d9__cursor) { bytes, bytes + sizeof(bytes) - 1, 0 };
	d9__decoder_init(&decoder, &set, 0);
	CU_ASSERT_EQUAL(d9__decoder_next(&decoder, &in, &frame), 1);
	CU_ASSERT_EQUAL(d9__decoder_next(&decoder, &in, &frame), 0);

	CU_ASSERT_EQUAL(decoder.missing, 4096 - 3);
	CU_ASSERT_EQUAL(in.p, bytes + 5);
	d9__decoder_release(&decoder);
}

static void test_pools_over_the_memory_limit_are_refused(void)
{
	struct trace t = { 0 };
	char text[1001];
	struct result result;

	memset(text, 'x', 1000);
	text[1000] = '\0';
	trace_batch(&t);
	for (int i = 0; i < 2000; i++)
		trace_string(&t, text);
	result = decode_trace(&t);

	CU_ASSERT_EQUAL(result.got, -EFBIG);
	CU_ASSERT(says(&result, "memory"));
}

static void test_lists_nested_too_deep_are_refused(void)
{
	struct trace t = { 0 }, u = { 0 };
	struct result deep, fine;

	trace_batch(&t);
	trace_schema(&t, 1, "A", "l:14");
	trace_head(&t, 1, 5);
	for (int i = 0; i < 10000; i++)
		trace_bytes(&t, "\1\0\0\0\x0e", 5);
	trace_uint(&t, 0, 4);
	trace_batch(&u);
	trace_schema(&u, 1, "A", "l:14");
	trace_head(&u, 1, 5);
	for (int i = 0; i < D9__DECODER_DEPTH_MAX - 1; i++)
		trace_bytes(&u, "\1\0\0\0\x0e", 5);
	trace_uint(&u, 0, 4);
	deep = decode_trace(&t);
	fine = decode_trace(&u);

	CU_ASSERT_EQUAL(deep.got, -EBADMSG);
	CU_ASSERT(says(&deep, "deeper"));
	CU_ASSERT_EQUAL(fine.got, 0);
	CU_ASSERT_EQUAL(fine.events, 1);
}

static void test_optional_tags_inside_containers_are_refused(void)
{
	CU_ASSERT_EQUAL(decode_claim("l:14", "\1\0\0\0\x89\0", 6).got, -EBADMSG);
}

/* ---- whole streams ---- */

static void test_worked_examples_decode_to_what_the_format_says(void)
{
	struct result polls = decode(worked_polls, sizeof(worked_polls));
	struct result two = decode(worked_two_batches, sizeof(worked_two_batches));

	CU_ASSERT_EQUAL(polls.got, 0);
	CU_ASSERT_EQUAL(polls.events, 4);
	CU_ASSERT_EQUAL(polls.times, UINT64_C(5000000000 + 5000012500 + 5000013500 + 5020013500));
	CU_ASSERT_EQUAL(two.got, 0);
	CU_ASSERT_EQUAL(two.headers, 2);
	CU_ASSERT_EQUAL(two.events, 3);
	CU_ASSERT_EQUAL(two.times, UINT64_C(6000000000 + 6000250000 + 5999000000));
}

static void cut_everywhere(const uint8_t *bytes, size_t len)
{
	unsigned before = 0;

	for (size_t cut = 0; cut <= len; cut++) {
		/* A copy of exactly this size, so that a sanitizer sees any step beyond. */
		uint8_t *copy = malloc(cut + 1);
		struct result result;

		memcpy(copy, bytes, cut);
		result = decode(copy, cut);
		free(copy);
		CU_ASSERT_EQUAL(result.got, 0);
		CU_ASSERT(result.stopped_at <= cut);
		CU_ASSERT(result.events == before || result.events == before + 1);
		before = result.events;
	}
}

static void test_cut_at_any_byte_leaves_a_clean_prefix(void)
{
	cut_everywhere(worked_polls, sizeof(worked_polls));
	cut_everywhere(worked_two_batches, sizeof(worked_two_batches));
}

static void mutate_everywhere(const uint8_t *bytes, size_t len)
{
	uint8_t *copy = malloc(len);

	memcpy(copy, bytes, len);
	for (size_t at = 0; at < len; at++) {
		for (unsigned value = 0; value < 256; value++) {
			struct result result;

			copy[at] = (uint8_t)value;
			result = decode(copy, len);
			if (result.got != 0 && result.got != -EBADMSG &&
			    result.got != -EPROTONOSUPPORT && result.got != -EFBIG)
				CU_FAIL("an error that no trace may cause");
			if (result.got != 0 && !result.message[0])
				CU_FAIL("an error without a message");
		}
		copy[at] = bytes[at];
	}
	free(copy);
}

static void test_any_byte_of_any_value_leads_to_a_result_or_a_clean_error(void)
{
	mutate_everywhere(worked_polls, sizeof(worked_polls));
	mutate_everywhere(worked_two_batches, sizeof(worked_two_batches));
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "of a header alone finds nothing and no fault",
		  test_decoder_of_a_header_alone_finds_nothing_and_no_fault },
		{ "refuses what is no trace", test_decoder_refuses_what_is_no_trace },
		{ "names the version it does not know",
		  test_decoder_names_the_version_it_does_not_know },
		{ "takes any run of headers and resets",
		  test_decoder_takes_any_run_of_headers_and_resets },
		{ "stops at an unknown tag and names it",
		  test_decoder_stops_at_an_unknown_tag_and_names_it },
		{ "event before its schema stops decoding",
		  test_event_before_its_schema_stops_decoding },
		{ "schema of the batch before is forgotten",
		  test_schema_of_the_batch_before_is_forgotten },
		{ "schema may be repeated but not changed",
		  test_schema_may_be_repeated_but_not_changed },
		{ "schema with an unknown type is named at its first event",
		  test_schema_with_an_unknown_type_is_named_at_its_first_event },
		{ "schema without names or fields works",
		  test_schema_without_names_or_fields_works },
		{ "schemas that need more memory than allowed are refused",
		  test_schemas_that_need_more_memory_than_allowed_are_refused },
		{ "annotations are found by field and the last one counts",
		  test_annotations_are_found_by_field_and_the_last_one_counts },
		{ "annotations add up and bad ones are skipped",
		  test_annotations_add_up_and_bad_ones_are_skipped },
		{ "equal schemas of all batches are one",
		  test_equal_schemas_of_all_batches_are_one },
		{ "times are gaps from event to event", test_times_are_gaps_from_event_to_event },
		{ "time past 64 bits is an error", test_time_past_64_bits_is_an_error },
		{ "counts of four billion are not believed",
		  test_counts_of_four_billion_are_not_believed },
		{ "claim tells how many bytes are missing",
		  test_claim_tells_how_many_bytes_are_missing },
		{ "pools over the memory limit are refused",
		  test_pools_over_the_memory_limit_are_refused },
		{ "lists nested too deep are refused", test_lists_nested_too_deep_are_refused },
		{ "optional tags inside containers are refused",
		  test_optional_tags_inside_containers_are_refused },
		{ "worked examples decode to what the format says",
		  test_worked_examples_decode_to_what_the_format_says },
		{ "cut at any byte leaves a clean prefix",
		  test_cut_at_any_byte_leaves_a_clean_prefix },
		{ "any byte of any value leads to a result or a clean error",
		  test_any_byte_of_any_value_leads_to_a_result_or_a_clean_error },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("decoder", tests);
}
