/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dial9/reader.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/d9_test.h"
#include "support/trace_builder.h"

#define FILE_NAME "test_span_fields.tmp.bin"

enum { ENTER = 1, EXIT, CLOSE, OTHER };

static void begin(struct trace *t)
{
	*t = (struct trace){ .len = 0 };
	trace_batch(t);
	trace_schema(t, ENTER, "SpanEnter:a",
		     "worker_id:9 span_id:9 parent_span_id:137 span_name:4 a:137 b:132 c:131");
	trace_schema(t, EXIT, "SpanExit:a", "worker_id:9 span_id:9 span_name:4 a:137 b:132 c:131");
	trace_builtin_fields(t, CLOSE, "SpanCloseEvent", "span_id");
	trace_schema(t, OTHER, "Other", "worker_id:9 span_id:9 a:9");
}

/* |a|: the field a, 0 for none; |b| the text b, NULL for none. */
static void enter(struct trace *t, uint64_t ns, uint64_t id, uint64_t parent, uint64_t a,
		  const char *b)
{
	if (parent && a && b)
		trace_event(t, ENTER, ns, UINT64_C(0), id, 1, parent, "s", 1, a, 1, b, 0);
	else if (parent && a)
		trace_event(t, ENTER, ns, UINT64_C(0), id, 1, parent, "s", 1, a, 0, 0);
	else if (parent && b)
		trace_event(t, ENTER, ns, UINT64_C(0), id, 1, parent, "s", 0, 1, b, 0);
	else if (parent)
		trace_event(t, ENTER, ns, UINT64_C(0), id, 1, parent, "s", 0, 0, 0);
	else if (b)
		trace_event(t, ENTER, ns, UINT64_C(0), id, 0, "s", 1, a, 1, b, 0);
	else
		trace_event(t, ENTER, ns, UINT64_C(0), id, 0, "s", 1, a, 0, 0);
}

static void leave(struct trace *t, uint64_t ns, uint64_t id, uint64_t a)
{
	trace_event(t, EXIT, ns, UINT64_C(0), id, "s", 1, a, 0, 1, UINT64_C(1));
}

static void close_span(struct trace *t, uint64_t ns, uint64_t id)
{
	trace_event(t, CLOSE, ns, id);
}

static void put_value(char *buf, size_t size, const struct d9_span_field *field)
{
	const struct d9_value *value = field->value;
	size_t used = strlen(buf);

	if (value->type == D9_FIELD_STRING)
		snprintf(buf + used, size - used, "%s=%.*s@%d ", field->name, (int)value->u.text.len,
			 value->u.text.data, (int)field->span_id);
	else
		snprintf(buf + used, size - used, "%s=%d@%d ", field->name,
			 value->type == D9_FIELD_BOOL ? value->u.boolean : (int)value->u.u64,
			 (int)field->span_id);
}

/* What each event inherits, in brackets; events alternate between processes 0 and 1 if asked. */
static const char *inherited(struct trace *t, bool two_processes)
{
	static char all[512];
	struct d9_span_fields *fields;
	const struct d9_event *event;
	struct d9_reader *reader = NULL;
	uint64_t n_events = 0;

	trace_save(t, FILE_NAME, "plain");
	trace_free(t);
	all[0] = '\0';
	CU_ASSERT_EQUAL_FATAL(d9_reader_new(&reader), 0);
	CU_ASSERT_EQUAL_FATAL(d9_reader_add(reader, FILE_NAME), 0);
	CU_ASSERT_EQUAL_FATAL(d9_span_fields_new(&fields), 0);
	while (d9_reader_next(reader, &event) == 1) {
		const struct d9_span_field *items;
		size_t n;

		CU_ASSERT_EQUAL(d9_span_fields_take(fields, two_processes ? n_events++ % 2 : 0,
						    event), 0);
		items = d9_span_fields_inherited(fields, &n);
		strcat(all, "[");
		for (size_t i = 0; i < n; i++)
			put_value(all, sizeof(all) - 2, &items[i]);
		strcat(all, "]");
	}
	d9_span_fields_free(fields);
	d9_reader_free(reader);
	unlink(FILE_NAME);
	return all;
}

static void put_name(struct trace *t, const char *name)
{
	trace_uint(t, strlen(name), 2);
	trace_bytes(t, name, strlen(name));
}

/* An enter with |n| fields of the program's, more than trace_schema() takes. */
static void wide_schema(struct trace *t, unsigned type_id, unsigned n)
{
	static const char *const base[] = { "worker_id", "span_id", "span_name" };
	char name[16];

	trace_uint(t, 1, 1);
	trace_uint(t, type_id, 2);
	put_name(t, "SpanEnter:wide");
	trace_uint(t, 1, 1);
	trace_uint(t, 3 + n, 2);
	for (unsigned i = 0; i < 3 + n; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		put_name(t, i < 3 ? base[i] : name);
		trace_uint(t, i < 2 ? 9 : i < 3 ? 4 : 11, 1);
	}
	t->has_time[type_id] = true;
}

static void test_a_parent_with_very_many_values_does_not_hide_the_nearest(void)
{
	const struct d9_span_field *items = NULL;
	struct d9_span_fields *spans;
	const struct d9_event *event;
	struct d9_reader *reader;
	struct trace t;
	size_t n = 0;

	begin(&t);
	wide_schema(&t, 40, 2000);
	trace_head(&t, 40, 1);
	trace_varint(&t, 0);
	trace_varint(&t, 1);
	trace_text(&t, "s");
	for (unsigned i = 0; i < 2000; i++)
		trace_uint(&t, i % 200, 1);
	enter(&t, 2, 2, 1, 20, NULL);
	enter(&t, 3, 3, 2, 0, NULL);
	trace_save(&t, FILE_NAME, "plain");
	trace_free(&t);
	CU_ASSERT_EQUAL_FATAL(d9_reader_new(&reader), 0);
	CU_ASSERT_EQUAL_FATAL(d9_reader_add(reader, FILE_NAME), 0);
	CU_ASSERT_EQUAL_FATAL(d9_span_fields_new(&spans), 0);
	while (d9_reader_next(reader, &event) == 1) {
		CU_ASSERT_EQUAL(d9_span_fields_take(spans, 0, event), 0);
		items = d9_span_fields_inherited(spans, &n);
	}

	CU_ASSERT_EQUAL_FATAL(n, 1024);
	CU_ASSERT_STRING_EQUAL(items[0].name, "a");
	CU_ASSERT_EQUAL(items[0].span_id, 2);
	CU_ASSERT_EQUAL(items[1023].span_id, 1);
	d9_span_fields_free(spans);
	d9_reader_free(reader);
	unlink(FILE_NAME);
}

static void test_child_has_what_its_parents_have_the_nearest_first(void)
{
	struct trace t;

	begin(&t);
	enter(&t, 1, 1, 0, 10, "root");
	enter(&t, 2, 2, 1, 20, NULL);
	enter(&t, 3, 3, 2, 0, NULL);
	enter(&t, 4, 4, 3, 0, "own");

	CU_ASSERT_STRING_EQUAL(inherited(&t, false),
			       "[][b=root@1 ][a=20@2 b=root@1 ][a=20@2 ]");
}

static void test_child_has_what_its_parent_had_last(void)
{
	struct trace t;

	begin(&t);
	enter(&t, 1, 1, 0, 10, "root");
	enter(&t, 2, 2, 1, 0, NULL);
	leave(&t, 3, 1, 11);
	enter(&t, 4, 2, 1, 0, NULL);

	/* The exit's values replace the enter's as a whole. */
	CU_ASSERT_STRING_EQUAL(inherited(&t, false), "[][a=10@1 b=root@1 ][][a=11@1 c=1@1 ]");
}

static void test_child_outlives_its_parent_and_keeps_its_fields(void)
{
	struct trace t;

	begin(&t);
	enter(&t, 1, 1, 0, 10, "root");
	enter(&t, 2, 2, 1, 0, NULL);
	close_span(&t, 3, 1);
	close_span(&t, 4, 1);
	leave(&t, 5, 2, 5);
	enter(&t, 6, 3, 2, 0, NULL);
	close_span(&t, 7, 2);
	close_span(&t, 8, 3);
	enter(&t, 9, 4, 1, 0, NULL);

	CU_ASSERT_STRING_EQUAL(inherited(&t, false),
			       "[][a=10@1 b=root@1 ][][][b=root@1 ][a=5@2 c=1@2 b=root@1 ][][][]");
}

static void test_id_that_is_used_again_is_another_span(void)
{
	struct trace t;

	begin(&t);
	enter(&t, 1, 1, 0, 10, NULL);
	close_span(&t, 2, 1);
	enter(&t, 3, 1, 0, 11, NULL);
	enter(&t, 4, 2, 1, 0, NULL);

	CU_ASSERT_STRING_EQUAL(inherited(&t, false), "[][][][a=11@1 ]");
}

static void test_parents_in_a_circle_end(void)
{
	struct trace t;

	begin(&t);
	enter(&t, 1, 1, 0, 10, NULL);
	enter(&t, 2, 2, 1, 0, "two");
	enter(&t, 3, 1, 2, 0, NULL);
	enter(&t, 4, 3, 3, 0, NULL);
	close_span(&t, 5, 1);
	close_span(&t, 6, 2);

	CU_ASSERT_STRING_EQUAL(inherited(&t, false), "[][a=10@1 ][b=two@2 ][][][]");
}

static void test_processes_with_equal_ids_are_kept_apart(void)
{
	struct trace t;

	begin(&t);
	enter(&t, 1, 1, 0, 10, NULL);
	enter(&t, 2, 2, 1, 0, NULL);
	enter(&t, 3, 2, 1, 0, NULL);

	CU_ASSERT_STRING_EQUAL(inherited(&t, true), "[][][a=10@1 ]");
}

static void test_what_was_never_seen_gives_nothing(void)
{
	struct trace t;

	begin(&t);
	leave(&t, 1, 1, 1);
	close_span(&t, 2, 7);
	enter(&t, 3, 2, 9, 0, NULL);
	trace_event(&t, OTHER, 4, UINT64_C(0), UINT64_C(2), UINT64_C(3));

	CU_ASSERT_STRING_EQUAL(inherited(&t, false), "[][][][]");
	d9_span_fields_free(NULL);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "a parent with very many values does not hide the nearest",
		  test_a_parent_with_very_many_values_does_not_hide_the_nearest },
		{ "child has what its parents have, the nearest first",
		  test_child_has_what_its_parents_have_the_nearest_first },
		{ "child has what its parent had last", test_child_has_what_its_parent_had_last },
		{ "child outlives its parent and keeps its fields",
		  test_child_outlives_its_parent_and_keeps_its_fields },
		{ "id that is used again is another span",
		  test_id_that_is_used_again_is_another_span },
		{ "parents in a circle end", test_parents_in_a_circle_end },
		{ "processes with equal ids are kept apart",
		  test_processes_with_equal_ids_are_kept_apart },
		{ "what was never seen gives nothing", test_what_was_never_seen_gives_nothing },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("span_fields", tests);
}
