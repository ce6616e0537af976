/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "format/values.h"

#include <string.h>

#include "core/format/worked_examples.h"
#include "support/d9_test.h"
#include "support/trace_builder.h"

/* Decodes one event at a time. */
struct fixture {
	struct d9__definitions set;
	struct d9__decoder decoder;
	struct d9__values values;
	struct d9__cursor in;
	struct d9__frame frame;
};

static void begin(struct fixture *f, const uint8_t *bytes, size_t len)
{
	*f = (struct fixture) { .in = { bytes, bytes + len, 0 } };
	d9__decoder_init(&f->decoder, &f->set, 0);
}

/* The values of the next event, NULL behind the last. */
static const struct d9_value *next(struct fixture *f)
{
	int got;

	do
		got = d9__decoder_next(&f->decoder, &f->in, &f->frame);
	while (got == 1 && f->frame.kind != D9__FRAME_EVENT);
	if (got != 1)
		return NULL;
	CU_ASSERT_EQUAL(d9__values_build(&f->values, &f->decoder, &f->frame), 0);
	return f->values.items;
}

static void end(struct fixture *f)
{
	CU_ASSERT_PTR_NULL(next(f));
	CU_ASSERT_EQUAL(f->in.p, f->in.end);
	d9__values_release(&f->values);
	d9__decoder_release(&f->decoder);
	d9__definitions_release(&f->set);
}

static bool is_text(const struct d9_value *value, const char *text)
{
	return value->present && value->u.text.len == strlen(text) &&
	       memcmp(value->u.text.data, text, strlen(text)) == 0;
}

static void test_first_worked_example_has_the_values_the_format_lists(void)
{
	struct fixture f;
	const struct d9_value *v;

	begin(&f, worked_polls, sizeof(worked_polls));
	v = next(&f);

	CU_ASSERT_FATAL(v != NULL);
	CU_ASSERT_EQUAL(v[0].u.u64, 0);
	CU_ASSERT_EQUAL(v[1].u.u64, 3);
	CU_ASSERT_EQUAL(v[2].u.u64, 300);
	CU_ASSERT_EQUAL(v[3].type, D9_FIELD_STRING);
	CU_ASSERT(is_text(&v[3], "echo.c:42"));
	CU_ASSERT_FATAL(next(&f) != NULL);
	v = next(&f);
	CU_ASSERT_EQUAL(v[2].u.u64, 7);
	CU_ASSERT(is_text(&v[3], "echo.c:42"));
	CU_ASSERT_FATAL(next(&f) != NULL);
	end(&f);
}

static void test_second_worked_example_has_the_values_the_format_lists(void)
{
	struct fixture f;
	const struct d9_value *v;

	begin(&f, worked_two_batches, sizeof(worked_two_batches));
	v = next(&f);

	CU_ASSERT_EQUAL(v[0].u.u64, 150);
	CU_ASSERT_FALSE(v[1].present);
	CU_ASSERT_EQUAL(v[2].u.f64, 1.5);
	v = next(&f);
	CU_ASSERT(is_text(&v[1], "ok"));
	CU_ASSERT_EQUAL(v[2].u.f64, -2.0);
	v = next(&f);
	CU_ASSERT_EQUAL(v[1].u.u64, 4242);
	CU_ASSERT(is_text(&v[3], "loop"));
	CU_ASSERT_EQUAL(v[4].type, D9_FIELD_STACK);
	CU_ASSERT_EQUAL_FATAL(v[4].u.stack.n, 2);
	CU_ASSERT_EQUAL(v[4].u.stack.addresses[0], UINT64_C(0x7f0000001234));
	CU_ASSERT_EQUAL(v[4].u.stack.addresses[1], 0x400abc);
	CU_ASSERT_EQUAL(v[5].u.u64, 5);
	end(&f);
}

static const struct plain_case {
	unsigned type;
	const char *bytes;
	size_t len;
	uint64_t u64; /* the value's bits, for the types that are numbers */
	size_t n;     /* length or count, for the others */
} plain_cases[] = {
	{ 1, "\xfe\xff\xff\xff\xff\xff\xff\xff", 8, (uint64_t)-2, 0 },
	{ 2, "\0\0\0\0\0\0\xf8\x3f", 8, UINT64_C(0x3ff8000000000000), 0 },
	{ 3, "\x01", 1, 1, 0 },
	{ 3, "\x07", 1, 1, 0 },
	{ 4, "\x02\0\0\0hi", 6, 0, 2 },
	{ 4, "\0\0\0\0", 4, 0, 0 },
	{ 5, "\x03\0\0\0\0\xff\0", 7, 0, 3 },
	{ 6, "\0\0\0\0", 4, 0, 1 },
	{ 7, "\0\0\0\0", 4, 0, 6 },
	{ 8, "\x02\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0", 20, 0, 2 },
	{ 8, "\0\0\0\0", 4, 0, 0 },
	{ 9, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10, UINT64_MAX, 0 },
	{ 9, "\x85\x80\0", 3, 5, 0 },
	{ 10, "\x01\0\0\0\1\0\0\0k\1\0\0\0v", 14, 0, 1 },
	{ 11, "\xff", 1, 255, 0 },
	{ 12, "\xff\xfe", 2, 0xfeff, 0 },
	{ 13, "\1\2\3\4", 4, 0x04030201, 0 },
	{ 14, "\x02\0\0\0\x0b\x05\x04\x01\0\0\0z", 12, 0, 2 },
	{ 15, "\x01\0\0\0\x0b\x05\x0e\0\0\0\0", 11, 0, 1 },
};

static void check_plain(const struct d9_value *value, const struct plain_case *c)
{
	switch (c->type) {
	case 3:
		CU_ASSERT_EQUAL(value->u.boolean, true);
		break;
	case 4:
	case 5:
	case 7:
		CU_ASSERT_EQUAL(value->u.text.len, c->n);
		break;
	case 6:
	case 8:
		CU_ASSERT_EQUAL(value->u.stack.n, c->n);
		break;
	case 10:
		CU_ASSERT_EQUAL(value->u.string_map.n, c->n);
		CU_ASSERT_EQUAL(value->u.string_map.pairs[1].data[0], 'v');
		break;
	case 14:
		CU_ASSERT_EQUAL(value->u.list.n, c->n);
		CU_ASSERT_EQUAL(value->u.list.items[0].u.u64, 5);
		CU_ASSERT(is_text(&value->u.list.items[1], "z"));
		break;
	case 15:
		CU_ASSERT_EQUAL(value->u.map.n, c->n);
		CU_ASSERT_EQUAL(value->u.map.entries[0].key.u.u64, 5);
		CU_ASSERT_EQUAL(value->u.map.entries[0].value.type, D9_FIELD_LIST);
		break;
	default:
		CU_ASSERT_EQUAL(value->u.u64, c->u64);
		break;
	}
}

/* Plain, optional and present, optional and absent; each once at the end of the input. */
static void check_type(const struct plain_case *c)
{
	static const uint64_t stack[] = { 1 };
	struct trace t = { 0 };
	struct fixture f;
	const struct d9_value *v;
	char fields[40];

	snprintf(fields, sizeof(fields), "a:%u b:%u c:%u d:%u", c->type, c->type | 128,
		 c->type | 128, c->type);
	trace_batch(&t);
	trace_string(&t, "pooled");
	trace_stack(&t, 1, stack);
	trace_schema(&t, 1, "A", fields);
	trace_head(&t, 1, 9);
	trace_bytes(&t, c->bytes, c->len);
	trace_bytes(&t, "\0\1", 2);
	trace_bytes(&t, c->bytes, c->len);
	trace_bytes(&t, c->bytes, c->len);
	begin(&f, t.data, t.len);
	v = next(&f);

	CU_ASSERT_FATAL(v != NULL);
	check_plain(&v[0], c);
	CU_ASSERT_FALSE(v[1].present);
	CU_ASSERT_TRUE(v[2].present);
	check_plain(&v[2], c);
	check_plain(&v[3], c);
	end(&f);
	trace_free(&t);
}

static void test_every_type_plain_optional_and_absent(void)
{
	for (size_t i = 0; i < sizeof(plain_cases) / sizeof(plain_cases[0]); i++)
		check_type(&plain_cases[i]);
}

static void test_undefined_ids_become_a_marker_and_an_empty_stack(void)
{
	struct trace t = { 0 };
	struct fixture f;
	const struct d9_value *v;

	trace_batch(&t);
	trace_schema(&t, 1, "A", "s:7 f:6");
	trace_event(&t, 1, 5, (uint64_t)7, (uint64_t)8);
	begin(&f, t.data, t.len);
	v = next(&f);

	CU_ASSERT(is_text(&v[0], "<unresolved pool#7>"));
	CU_ASSERT_TRUE(v[0].unresolved);
	CU_ASSERT_EQUAL(v[1].u.stack.n, 0);
	CU_ASSERT_TRUE(v[1].unresolved);
	CU_ASSERT_EQUAL(f.values.unresolved, 2);
	end(&f);
	trace_free(&t);
}

static void test_redefined_id_keeps_its_first_text(void)
{
	struct trace t = { 0 };
	struct fixture f;
	const struct d9_value *v;

	trace_batch(&t);
	trace_schema(&t, 1, "A", "s:7");
	trace_string(&t, "first");
	t.strings = 0;
	trace_string(&t, "second");
	trace_event(&t, 1, 5, (uint64_t)0);
	begin(&f, t.data, t.len);
	v = next(&f);

	CU_ASSERT(is_text(&v[0], "first"));
	end(&f);
	trace_free(&t);
}

/* Field by field: the types that can be decoded quickly, present, absent and unresolved. */
static bool is_same(const struct d9_value *a, const struct d9_value *b)
{
	if (a->type != b->type || a->present != b->present || a->unresolved != b->unresolved)
		return false;
	if (!a->present)
		return true;
	if (a->type == D9_FIELD_STRING)
		return a->u.text.len == b->u.text.len &&
		       !memcmp(a->u.text.data, b->u.text.data, a->u.text.len);
	if (a->type == D9_FIELD_STACK)
		return a->u.stack.n == b->u.stack.n && a->u.stack.addresses == b->u.stack.addresses;
	return a->type == D9_FIELD_BOOL ? a->u.boolean == b->u.boolean : a->u.u64 == b->u.u64;
}

static void test_quick_way_gives_the_same_values_and_the_same_end(void)
{
	static const uint64_t stack[] = { 1, 2, 3 };
	const uint64_t large[] = { 0, 127, 128, 99999, UINT64_C(1) << 56, UINT64_MAX };
	struct d9__values quick = { 0 };
	struct trace t = { 0 };
	unsigned compared = 0;
	struct fixture f;

	trace_batch(&t);
	trace_schema(&t, 300, "Quick", "a:9 b:7 c:6 d:1 e:2 f:3 g:11 h:12 i:13 j:137 k:137");
	trace_string(&t, "pooled");
	trace_stack(&t, 3, stack);
	for (size_t i = 0; i < 6; i++)
		trace_event(&t, 300, 100 + i, large[i], (uint64_t)(i % 2), (uint64_t)(i % 2),
			    (int64_t)-5, 1.5, (uint64_t)(i % 2), large[i] & 0xff, large[i] & 0xffff,
			    large[i] & 0xffffffff, 1, large[i], 0);
	begin(&f, t.data, t.len);
	for (;;) {
		struct d9__cursor in = f.in;
		struct d9__frame frame = { 0 };
		bool peeked = d9__decoder_peek(&f.decoder, &in, &frame);

		if (peeked)
			CU_ASSERT_EQUAL(d9__values_quick(&quick, &f.decoder, &frame), 0);
		if (d9__decoder_next(&f.decoder, &f.in, &f.frame) != 1)
			break;
		if (!peeked)
			continue;
		CU_ASSERT_EQUAL_FATAL(f.frame.kind, D9__FRAME_EVENT);
		CU_ASSERT_EQUAL(frame.end, f.frame.end);
		CU_ASSERT_EQUAL(frame.timestamp_ns, f.frame.timestamp_ns);
		CU_ASSERT_EQUAL(d9__values_build(&f.values, &f.decoder, &f.frame), 0);
		for (uint32_t i = 0; i < frame.schema->n_fields; i++)
			CU_ASSERT(is_same(&quick.items[i], &f.values.items[i]));
		compared++;
	}
	/* The last ones have too little behind them for it. */
	CU_ASSERT(compared >= 3);
	CU_ASSERT_EQUAL(quick.unresolved, compared / 2 * 2);
	d9__values_release(&quick);
	end(&f);
	trace_free(&t);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "first worked example has the values the format lists",
		  test_first_worked_example_has_the_values_the_format_lists },
		{ "second worked example has the values the format lists",
		  test_second_worked_example_has_the_values_the_format_lists },
		{ "every type plain, optional and absent",
		  test_every_type_plain_optional_and_absent },
		{ "undefined ids become a marker and an empty stack",
		  test_undefined_ids_become_a_marker_and_an_empty_stack },
		{ "quick way gives the same values and the same end",
		  test_quick_way_gives_the_same_values_and_the_same_end },
		{ "redefined id keeps its first text", test_redefined_id_keeps_its_first_text },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("values", tests);
}
