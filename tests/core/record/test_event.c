/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include <dial9/event.h>

#include "core/record/scratch.h"

/* Every field type of the format, plain and optional. */
static const struct d9_field all_fields[] = {
	{ "i64", D9_FIELD_I64, NULL, NULL },
	{ "f64", D9_FIELD_F64, NULL, NULL },
	{ "bool", D9_FIELD_BOOL, NULL, NULL },
	{ "string", D9_FIELD_STRING, NULL, NULL },
	{ "bytes", D9_FIELD_BYTES, NULL, NULL },
	{ "pooled_stack", D9_FIELD_POOLED_STACK, NULL, NULL },
	{ "pooled_string", D9_FIELD_POOLED_STRING, NULL, NULL },
	{ "stack", D9_FIELD_STACK, NULL, NULL },
	{ "varint", D9_FIELD_VARINT, "us", "gauge" },
	{ "string_map", D9_FIELD_STRING_MAP, NULL, NULL },
	{ "u8", D9_FIELD_U8, NULL, NULL },
	{ "u16", D9_FIELD_U16, NULL, NULL },
	{ "u32", D9_FIELD_U32, NULL, NULL },
	{ "list", D9_FIELD_LIST, NULL, NULL },
	{ "map", D9_FIELD_MAP, NULL, NULL },
};
static struct d9_event_type all_type = D9_EVENT_TYPE("AllTypes", all_fields);

static const struct d9_field optional_fields[] = {
	{ "number", D9_FIELD_VARINT | D9_FIELD_OPTIONAL, NULL, NULL },
	{ "text", D9_FIELD_STRING | D9_FIELD_OPTIONAL, NULL, NULL },
	{ "name", D9_FIELD_POOLED_STRING | D9_FIELD_OPTIONAL, NULL, NULL },
};
static struct d9_event_type optional_type = D9_EVENT_TYPE("Optional", optional_fields);

static const struct d9_field text_fields[] = { { "text", D9_FIELD_STRING, NULL, NULL } };
static struct d9_event_type text_type = D9_EVENT_TYPE("Text", text_fields);

static const struct d9_field number_fields[] = {
	{ "thread", D9_FIELD_U8, NULL, NULL },
	{ "number", D9_FIELD_VARINT, NULL, NULL },
};
static struct d9_event_type number_type = D9_EVENT_TYPE("Number", number_fields);

static void check_lists(const struct d9_event *event)
{
	const struct d9_value *list = d9_event_field(event, "list");
	const struct d9_value *map = d9_event_field(event, "map");

	CU_ASSERT_EQUAL_FATAL(list->u.list.n, 4);
	CU_ASSERT_EQUAL(list->u.list.items[0].u.u64, 1);
	CU_ASSERT_EQUAL(list->u.list.items[1].u.i64, -1);
	CU_ASSERT_EQUAL(memcmp(list->u.list.items[2].u.text.data, "two", 3), 0);
	CU_ASSERT_EQUAL(list->u.list.items[3].u.list.n, 2);
	CU_ASSERT_EQUAL_FATAL(map->u.map.n, 1);
	CU_ASSERT_EQUAL(map->u.map.entries[0].value.u.boolean, true);
}

static void check_all(void *arg, const struct d9_event *event)
{
	const struct d9_value *v;

	if (strcmp(d9_event_name(event), "AllTypes"))
		return;
	++*(int *)arg;
	CU_ASSERT_EQUAL(d9_event_field(event, "i64")->u.i64, -5);
	CU_ASSERT_EQUAL(d9_event_field(event, "f64")->u.f64, 1.5);
	CU_ASSERT_EQUAL(d9_event_field(event, "bool")->u.boolean, true);
	v = d9_event_field(event, "string");
	CU_ASSERT(v->u.text.len == 5 && !memcmp(v->u.text.data, "hello", 5));
	v = d9_event_field(event, "bytes");
	CU_ASSERT(v->u.text.len == 3 && !memcmp(v->u.text.data, "\0\1\2", 3));
	v = d9_event_field(event, "pooled_stack");
	CU_ASSERT(v->type == D9_FIELD_STACK && v->u.stack.n == 2 && v->u.stack.addresses[1] == 8);
	v = d9_event_field(event, "pooled_string");
	CU_ASSERT(v->u.text.len == 3 && !memcmp(v->u.text.data, "pop", 3));
	CU_ASSERT_EQUAL(d9_event_field(event, "stack")->u.stack.addresses[0], 7);
	CU_ASSERT_EQUAL(d9_event_u64(event, "varint", 0), UINT64_MAX);
	v = d9_event_field(event, "string_map");
	CU_ASSERT(v->u.string_map.n == 1 && !memcmp(v->u.string_map.pairs[1].data, "v", 1));
	CU_ASSERT_EQUAL(d9_event_u64(event, "u8", 0), 255);
	CU_ASSERT_EQUAL(d9_event_u64(event, "u16", 0), 65535);
	CU_ASSERT_EQUAL(d9_event_u64(event, "u32", 0), 4294967295u);
	check_lists(event);
	CU_ASSERT_STRING_EQUAL(d9_schema_annotation(event->schema, 8, "unit"), "us");
	CU_ASSERT_STRING_EQUAL(d9_schema_annotation(event->schema, 8, "kind"), "gauge");
}

static void test_event_of_every_field_type_is_read_back(void)
{
	struct d9_recorder *recorder = scratch_start(scratch_options());
	static const uint64_t addresses[] = { 7, 8 };
	static const char *const texts[] = { "k", "v" };
	const struct d9_arg inner[] = { D9_ARG(1), D9_ARG(2.0) };
	const struct d9_arg list[] = { D9_ARG(1), D9_ARG(-1), D9_ARG("two"), d9_list(inner, 2) };
	const struct d9_arg map[] = { D9_ARG("key"), D9_ARG((bool)true) };
	int seen = 0;

	CU_ASSERT_EQUAL(D9_EMIT(&all_type, -5, 1.5, true, "hello", d9_bytes("\0\1\2", 3),
				d9_stack(addresses, 2), d9_name_intern("pop"),
				d9_stack(addresses, 2), UINT64_MAX, d9_string_map(texts, 1), 255,
				65535, 4294967295u, d9_list(list, 4), d9_map(map, 1)), 0);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);

	scratch_read(scratch_dir, false, check_all, &seen);
	CU_ASSERT_EQUAL(seen, 1);
}

struct offsets {
	uint64_t at[3];
	int n;
};

static void note_offset(void *arg, const struct d9_event *event)
{
	struct offsets *offsets = arg;

	if (!strcmp(d9_event_name(event), "Optional") && offsets->n < 3)
		offsets->at[offsets->n++] = event->offset;
}

static void test_event_optional_field_costs_one_byte_when_absent(void)
{
	struct d9_recorder *recorder = scratch_start(scratch_options());
	struct offsets offsets = { .n = 0 };

	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(D9_EMIT(&optional_type, d9_absent(), (const char *)NULL,
					d9_absent()), 0);
	CU_ASSERT_EQUAL(D9_EMIT(&optional_type, 1u, "t", "n"), 0);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);

	scratch_read(scratch_dir, true, note_offset, &offsets);
	CU_ASSERT_EQUAL(offsets.n, 3);
	CU_ASSERT_EQUAL(offsets.at[2] - offsets.at[1], 6 + 3);
}

static const struct d9_field gauge_fields[] = {
	{ "depth", D9_FIELD_VARINT, NULL, "gauge" },
	{ "queue", D9_FIELD_POOLED_STRING, NULL, NULL },
};

static void check_limits(void *arg, const struct d9_event *event)
{
	int *seen = arg;

	if (strcmp(d9_event_name(event), "Depth") != 0)
		return;
	++*seen;
	CU_ASSERT_STRING_EQUAL(d9_schema_annotation(event->schema, 0, "kind"), "gauge");
	CU_ASSERT_STRING_EQUAL(d9_schema_annotation(event->schema, 0, "threshold"), "100");
	CU_ASSERT_STRING_EQUAL(d9_schema_annotation(event->schema, 1, "partition"), "");
	CU_ASSERT_PTR_NULL(d9_schema_annotation(event->schema, 1, "threshold"));
}

static void test_event_type_tells_the_limits_of_its_charts(void)
{
	static struct d9_event_type depth = D9_EVENT_TYPE("Depth", gauge_fields);
	const struct d9_annotation limits[] = { { "depth", "threshold", "100" },
						{ "queue", "partition", "" } };
	const struct d9_annotation elsewhere = { "none", "threshold", "1" },
				   empty = { "depth", NULL, "1" };
	struct d9_annotation many[D9_ANNOTATIONS_MAX + 1];
	struct d9_recorder *recorder = scratch_start(scratch_options());
	int seen = 0;

	for (int i = 0; i <= D9_ANNOTATIONS_MAX; i++)
		many[i] = limits[0];
	CU_ASSERT_EQUAL(d9_event_type_annotate(&depth, &elsewhere, 1), -EINVAL);
	CU_ASSERT_EQUAL(d9_event_type_annotate(&depth, &empty, 1), -EINVAL);
	CU_ASSERT_EQUAL(d9_event_type_annotate(&depth, NULL, 1), -EINVAL);
	CU_ASSERT_EQUAL(d9_event_type_annotate(NULL, limits, 2), -EINVAL);
	CU_ASSERT_EQUAL(d9_event_type_annotate(&depth, many, D9_ANNOTATIONS_MAX + 1), -E2BIG);
	CU_ASSERT_EQUAL(depth.id, 0);
	CU_ASSERT_EQUAL(d9_event_type_annotate(&depth, limits, 2), 0);
	CU_ASSERT_EQUAL(D9_EMIT(&depth, 7, "mail"), 0);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);

	scratch_read(scratch_dir, false, check_limits, &seen);
	CU_ASSERT_EQUAL(seen, 1);
}

static void test_event_arguments_that_disagree_with_the_table_are_refused(void)
{
	struct d9_recorder *recorder = scratch_start(scratch_options());
	struct d9_event_type nameless = { NULL, number_fields, 2, 0 };
	const struct d9_field odd_fields[] = { { "x", 99, NULL, NULL } };
	struct d9_event_type odd = D9_EVENT_TYPE("Odd", odd_fields);

	CU_ASSERT_EQUAL(D9_EMIT(&number_type, 1), -EINVAL);
	CU_ASSERT_EQUAL(D9_EMIT(&number_type, 1, 2, 3), -EINVAL);
	CU_ASSERT_EQUAL(D9_EMIT(&number_type, 256, 2), -EINVAL);
	CU_ASSERT_EQUAL(D9_EMIT(&number_type, -1, 2), -EINVAL);
	CU_ASSERT_EQUAL(D9_EMIT(&number_type, 1, "two"), -EINVAL);
	CU_ASSERT_EQUAL(D9_EMIT(&number_type, 1, 2.0), -EINVAL);
	CU_ASSERT_EQUAL(D9_EMIT(&number_type, 1, d9_absent()), -EINVAL);
	CU_ASSERT_EQUAL(D9_EMIT(&text_type, 7), -EINVAL);
	CU_ASSERT_EQUAL(D9_EMIT(&text_type, (const char *)NULL), -EINVAL);
	CU_ASSERT_EQUAL(D9_EMIT(&text_type, ((struct d9_name){ 60000 })), -EINVAL);
	CU_ASSERT_EQUAL(d9_event_emit(NULL, NULL, 0), -EINVAL);
	CU_ASSERT_EQUAL(d9_event_emit(&text_type, NULL, 1), -EINVAL);
	CU_ASSERT_EQUAL(D9_EMIT(&nameless, 1, 2), -EINVAL);
	CU_ASSERT_EQUAL(D9_EMIT(&odd, 1), -EINVAL);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);

	CU_ASSERT_EQUAL(scratch_count("Number"), 0);
	CU_ASSERT_EQUAL(scratch_count("Text"), 0);
}

static void test_event_too_long_for_the_recorder_is_refused(void)
{
	static const char big[40000];
	static const struct d9_field fields[] = { { "bytes", D9_FIELD_BYTES, NULL, NULL } };
	static struct d9_event_type type = D9_EVENT_TYPE("Big", fields);
	struct d9_recorder *recorder = scratch_start(scratch_options());

	CU_ASSERT(D9_EMIT(&type, d9_bytes(big, sizeof(big))) < 0);
	CU_ASSERT_EQUAL(D9_EMIT(&type, d9_bytes(big, 32000)), 0);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);

	CU_ASSERT_EQUAL(scratch_count("Big"), 1);
}

static void check_cut(void *arg, const struct d9_event *event)
{
	const struct d9_value *text;

	if (strcmp(d9_event_name(event), "Text"))
		return;
	text = d9_event_field(event, "text");
	CU_ASSERT_EQUAL(text->u.text.len, 1023);
	CU_ASSERT_EQUAL((unsigned char)text->u.text.data[1022], 0xa9);
	++*(int *)arg;
}

static void test_event_text_is_cut_between_characters(void)
{
	struct d9_recorder *recorder = scratch_start(scratch_options());
	char text[2048] = "x";
	int seen = 0;

	for (size_t i = 1; i + 2 < sizeof(text); i += 2)
		memcpy(text + i, "\xc3\xa9", 2); /* e acute */
	CU_ASSERT_EQUAL(D9_EMIT(&text_type, text), 0);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);

	scratch_read(scratch_dir, false, check_cut, &seen);
	CU_ASSERT_EQUAL(seen, 1);
}

static void test_event_is_nothing_while_recording_is_off(void)
{
	struct d9_recorder *recorder = scratch_start(scratch_options());

	d9_disable();
	CU_ASSERT_EQUAL(D9_EMIT(&number_type, "wrong", "but not looked at"), 0);
	d9_enable();
	CU_ASSERT_EQUAL(D9_EMIT(&number_type, 1, 2), 0);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);
	CU_ASSERT_EQUAL(D9_EMIT(&number_type, 1, 3), 0);

	CU_ASSERT_EQUAL(scratch_count("Number"), 1);
}

static void *emit_many(void *arg)
{
	for (int i = 0; i < 5000; i++)
		D9_EMIT(&number_type, (int)(intptr_t)arg, i);
	return NULL;
}

static void test_events_of_several_threads_all_arrive(void)
{
	struct d9_recorder *recorder = scratch_start(scratch_options());
	pthread_t thread[4];

	for (intptr_t i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, emit_many, (void *)i);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);

	CU_ASSERT_EQUAL(scratch_count("Number"), 20000);
}

static void test_event_without_fields_is_recorded(void)
{
	struct d9_recorder *recorder = scratch_start(scratch_options());
	struct d9_event_type type = { "Bare", NULL, 0, 0 };

	errno = 77;
	CU_ASSERT_EQUAL(d9_event_emit(&type, NULL, 0), 0);
	CU_ASSERT_EQUAL(errno, 77);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);

	CU_ASSERT_EQUAL(scratch_count("Bare"), 1);
	scratch_remove();
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "every field type", test_event_of_every_field_type_is_read_back },
		{ "absent is one byte", test_event_optional_field_costs_one_byte_when_absent },
		{ "limits of charts", test_event_type_tells_the_limits_of_its_charts },
		{ "disagreement is refused",
		  test_event_arguments_that_disagree_with_the_table_are_refused },
		{ "too long is refused", test_event_too_long_for_the_recorder_is_refused },
		{ "text is cut", test_event_text_is_cut_between_characters },
		{ "nothing while off", test_event_is_nothing_while_recording_is_off },
		{ "several threads", test_events_of_several_threads_all_arrive },
		{ "no fields", test_event_without_fields_is_recorded },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("event", tests);
}
