/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dial9/reader.h>

#include "support/d9_test.h"
#include "support/trace_builder.h"

#define DIR    "test_inner_calls.tmp.d"
#define FILE_A DIR "/a.bin"
#define FILE_B DIR "/b.bin"

#define CALL_FIELDS "worker_id:9 span_name:7 duration_ns:9 span_instance_id:137"

static uint32_t names[3]; /* "a", "b", "c" of the open batch */

static void begin(struct trace *t)
{
	trace_batch(t);
	trace_builtin(t, 1, "PollStartEvent");
	trace_builtin(t, 2, "PollEndEvent");
	trace_schema(t, 3, "SpanCall:libevent", CALL_FIELDS);
	names[0] = trace_string(t, "a");
	names[1] = trace_string(t, "b");
	names[2] = trace_string(t, "c");
}

static void poll(struct trace *t, uint64_t ns, bool begins)
{
	if (begins)
		trace_event(t, 1, ns, (uint64_t)0, (uint64_t)1, (uint64_t)7, (uint64_t)names[2]);
	else
		trace_event(t, 2, ns, (uint64_t)0);
}

/* The call |name|, 0 "a", of worker 0 has ended at |ns| and took |length|. */
static void call(struct trace *t, unsigned name, uint64_t ns, uint64_t length)
{
	trace_event(t, 3, ns, (uint64_t)0, (uint64_t)names[name], length, 0);
}

static void save_and_free(struct trace *t, const char *path)
{
	trace_save(t, path, "plain");
	trace_free(t);
}

/*
 * The events of |paths|, a letter and the time of each: "(100 " a poll, "<a105 " an enter, ">a108 "
 * an exit, "x" the close behind it, "=a108 " a call as it was written.
 */
static const char *story(const char *path, const char *other, bool file_order)
{
	static char text[512];
	struct d9_reader *reader = NULL;
	const struct d9_event *event;
	int at = 0;

	text[0] = '\0';
	CU_ASSERT_EQUAL_FATAL(d9_reader_new(&reader), 0);
	CU_ASSERT_EQUAL(d9_reader_add(reader, path), 0);
	if (other)
		CU_ASSERT_EQUAL(d9_reader_add(reader, other), 0);
	d9_reader_set_file_order(reader, file_order);
	while (d9_reader_next(reader, &event) == 1) {
		const struct d9_value *name = d9_event_field(event, "span_name");
		unsigned long long ns = event->timestamp_ns;
		char letter = name ? name->u.text.data[0] : '?';

		switch (event->kind) {
		case D9_EVENT_POLL_START:
		case D9_EVENT_POLL_END:
			at += sprintf(text + at, "%c%llu ",
				      event->kind == D9_EVENT_POLL_START ? '(' : ')', ns);
			break;
		case D9_EVENT_SPAN_ENTER:
			at += sprintf(text + at, "<%c%llu ", letter, ns);
			break;
		case D9_EVENT_SPAN_EXIT:
			at += sprintf(text + at, ">%c%llu ", letter, ns);
			break;
		case D9_EVENT_SPAN_CLOSE:
			at += sprintf(text + at, "x ");
			break;
		case D9_EVENT_SPAN_CALL:
			at += sprintf(text + at, "=%c%llu ", letter, ns);
			break;
		default:
			at += sprintf(text + at, "?%llu ", ns);
		}
		CU_ASSERT_FATAL(at < 480);
	}
	d9_reader_free(reader);
	return text;
}

static void test_calls_nest_by_time_although_inner_ones_stand_first(void)
{
	struct trace t = { 0 };

	begin(&t);
	poll(&t, 100, true);
	call(&t, 1, 108, 3);
	call(&t, 1, 110, 1);
	call(&t, 0, 120, 18);
	poll(&t, 130, false);
	save_and_free(&t, FILE_A);

	CU_ASSERT_STRING_EQUAL(story(FILE_A, NULL, false),
			       "(100 <a102 <b105 >b108 x <b109 >b110 x >a120 x )130 ");
	CU_ASSERT_STRING_EQUAL(story(FILE_A, NULL, true), "(100 =b108 =b110 =a120 )130 ");
}

static void test_calls_that_begin_at_one_time_nest_by_their_ends(void)
{
	struct trace t = { 0 };

	begin(&t);
	poll(&t, 100, true);
	call(&t, 2, 103, 3);
	call(&t, 1, 105, 5);
	call(&t, 0, 109, 9);
	poll(&t, 109, false);
	save_and_free(&t, FILE_A);

	CU_ASSERT_STRING_EQUAL(story(FILE_A, NULL, false),
			       "(100 <a100 <b100 <c100 >c103 x >b105 x >a109 x )109 ");
}

static void test_calls_of_no_length_are_entered_before_they_are_left(void)
{
	struct trace t = { 0 };

	begin(&t);
	poll(&t, 100, true);
	call(&t, 0, 105, 0);
	call(&t, 1, 105, 0);
	poll(&t, 106, false);
	save_and_free(&t, FILE_A);

	CU_ASSERT_STRING_EQUAL(story(FILE_A, NULL, false),
			       "(100 <a105 >a105 x <b105 >b105 x )106 ");
}

static void test_call_over_two_batches_or_segments_begins_in_the_first(void)
{
	struct trace t = { 0 }, next = { 0 };

	begin(&t);
	poll(&t, 100, true);
	begin(&t);
	call(&t, 0, 150, 40);
	save_and_free(&t, FILE_A);
	CU_ASSERT_STRING_EQUAL(story(FILE_A, NULL, false), "(100 <a110 >a150 x ");

	begin(&t);
	poll(&t, 100, true);
	poll(&t, 105, false);
	poll(&t, 109, true);
	poll(&t, 112, false);
	save_and_free(&t, FILE_A);
	begin(&next);
	call(&next, 0, 150, 40);
	poll(&next, 160, false);
	save_and_free(&next, FILE_B);
	CU_ASSERT_STRING_EQUAL(story(FILE_A, FILE_B, false),
			       "(100 )105 (109 <a110 )112 >a150 x )160 ");
}

static void test_call_that_began_before_the_trace_is_cut(void)
{
	struct d9_segment_info info;
	struct d9_reader *reader = NULL;
	const struct d9_event *event;
	struct trace t = { 0 };

	begin(&t);
	call(&t, 0, 150, 40);
	poll(&t, 160, false);
	save_and_free(&t, FILE_A);

	CU_ASSERT_STRING_EQUAL(story(FILE_A, NULL, false), ">a150 x )160 ");
	CU_ASSERT_EQUAL_FATAL(d9_reader_new(&reader), 0);
	CU_ASSERT_EQUAL(d9_reader_add(reader, FILE_A), 0);
	while (d9_reader_next(reader, &event) == 1)
		;
	CU_ASSERT_EQUAL(d9_reader_segment(reader, 0, &info), 0);
	CU_ASSERT_EQUAL(info.first_ns, 150);
	CU_ASSERT_EQUAL(info.events, 2);
	d9_reader_free(reader);
}

static void test_call_longer_than_its_time_is_kept_as_it_is(void)
{
	struct trace t = { 0 };

	begin(&t);
	poll(&t, 100, true);
	call(&t, 0, 150, UINT64_MAX);
	call(&t, 1, 151, 151);
	save_and_free(&t, FILE_A);

	CU_ASSERT_STRING_EQUAL(story(FILE_A, NULL, false), "(100 =a150 =b151 ");
}

static void test_call_of_another_shape_is_told_or_kept(void)
{
	struct trace t = { 0 };

	trace_batch(&t);
	trace_schema(&t, 3, "SpanCall:x", "duration_ns:13 more:7 worker_id:11 span_name:7");
	trace_schema(&t, 4, "SpanCall:y", "note:4 worker_id:9 duration_ns:9");
	trace_schema(&t, 5, "SpanCall:z", "worker_id:9");
	names[0] = trace_string(&t, "a");
	trace_event(&t, 5, 99, (uint64_t)1);
	trace_event(&t, 3, 110, (uint64_t)4, (uint64_t)names[0], (uint64_t)1, (uint64_t)names[0]);
	trace_event(&t, 4, 120, "text", (uint64_t)1, (uint64_t)2);
	save_and_free(&t, FILE_A);

	CU_ASSERT_STRING_EQUAL(story(FILE_A, NULL, false), "?99 <a106 >a110 x =?120 ");
}

static void test_inner_call_knows_the_one_it_is_made_in_and_keeps_its_own_id(void)
{
	struct d9_reader *reader = NULL;
	const struct d9_event *event;
	uint64_t outer = 0, parent = 0, inner = 0;
	struct trace t = { 0 };

	begin(&t);
	poll(&t, 100, true);
	call(&t, 1, 108, 3);
	trace_event(&t, 3, (uint64_t)120, (uint64_t)0, (uint64_t)names[0], (uint64_t)18, 1,
		    (uint64_t)77);
	save_and_free(&t, FILE_A);

	CU_ASSERT_EQUAL_FATAL(d9_reader_new(&reader), 0);
	CU_ASSERT_EQUAL(d9_reader_add(reader, FILE_A), 0);
	while (d9_reader_next(reader, &event) == 1) {
		if (event->kind != D9_EVENT_SPAN_ENTER)
			continue;
		CU_ASSERT_STRING_EQUAL(d9_event_name(event), "SpanEnter:libevent");
		if (!outer)
			outer = d9_event_known_u64(event, D9_SPAN_SPAN_ID, 0);
		else
			inner = d9_event_known_u64(event, D9_SPAN_SPAN_ID, 0);
		parent = d9_event_known_u64(event, D9_SPAN_PARENT_SPAN_ID, 0);
	}
	CU_ASSERT_EQUAL(outer, 77);
	CU_ASSERT_EQUAL(parent, 77);
	CU_ASSERT(inner != 0 && inner != 77);
	d9_reader_free(reader);
}

int main(void)
{
	CU_TestInfo tests[] = {
		{ "calls nest by time although inner ones stand first",
		  test_calls_nest_by_time_although_inner_ones_stand_first },
		{ "calls that begin at one time nest by their ends",
		  test_calls_that_begin_at_one_time_nest_by_their_ends },
		{ "calls of no length are entered before they are left",
		  test_calls_of_no_length_are_entered_before_they_are_left },
		{ "call over two batches or segments begins in the first",
		  test_call_over_two_batches_or_segments_begins_in_the_first },
		{ "call that began before the trace is cut",
		  test_call_that_began_before_the_trace_is_cut },
		{ "call longer than its time is kept as it is",
		  test_call_longer_than_its_time_is_kept_as_it_is },
		{ "call of another shape is told or kept",
		  test_call_of_another_shape_is_told_or_kept },
		{ "inner call knows the one it is made in and keeps its own id",
		  test_inner_call_knows_the_one_it_is_made_in_and_keeps_its_own_id },
		CU_TEST_INFO_NULL,
	};
	int failed;

	/* An earlier run may have ended early. */
	if (system("rm -rf " DIR) != 0 || mkdir(DIR, 0700) != 0)
		return 99;
	failed = d9_test_main("inner calls", tests);
	unlink(FILE_A);
	unlink(FILE_B);
	rmdir(DIR);
	return failed;
}
