/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dial9/reader.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/format/worked_examples.h"
#include "support/d9_test.h"
#include "support/trace_builder.h"

#define DIR    "test_reader.tmp.d"
#define FILE_A DIR "/a.bin"
#define FILE_B DIR "/b.bin"

/* ---- helpers ---- */

static void save_bytes(const char *path, const void *bytes, size_t len)
{
	FILE *file = fopen(path, "wb");

	CU_ASSERT_FATAL(file != NULL);
	CU_ASSERT_EQUAL(fwrite(bytes, 1, len, file), len);
	fclose(file);
}

static void save_and_free(struct trace *t, const char *path, const char *container)
{
	trace_save(t, path, container);
	trace_free(t);
}

static struct d9_reader *open_trace(const char *path)
{
	struct d9_reader *reader = NULL;

	CU_ASSERT_EQUAL_FATAL(d9_reader_new(&reader), 0);
	CU_ASSERT_EQUAL(d9_reader_add(reader, path), 0);
	return reader;
}

/* An event of one number, "x" in the schema "N"; its number, or -1 behind the last. */
static int64_t next_number(struct d9_reader *reader)
{
	const struct d9_event *event;
	int got = d9_reader_next(reader, &event);

	CU_ASSERT(got == 0 || got == 1);
	return got == 1 ? (int64_t)d9_event_u64(event, "x", 0) : -1;
}

static void begin_numbers(struct trace *t)
{
	trace_batch(t);
	trace_schema(t, 1, "N", "x:9");
	trace_schema(t, 2, "!Timeless", "x:9");
}

static void add_number(struct trace *t, uint64_t ns, uint64_t x)
{
	trace_event(t, 1, ns, x);
}

static void expect_numbers(const char *path, bool file_order, const int64_t *numbers, size_t n)
{
	struct d9_reader *reader = open_trace(path);

	d9_reader_set_file_order(reader, file_order);
	for (size_t i = 0; i < n; i++)
		CU_ASSERT_EQUAL(next_number(reader), numbers[i]);
	CU_ASSERT_EQUAL(next_number(reader), -1);
	CU_ASSERT_EQUAL(next_number(reader), -1);
	d9_reader_free(reader);
}

static struct d9_segment_info info_of(struct d9_reader *reader, size_t i)
{
	struct d9_segment_info info = { 0 };

	CU_ASSERT_EQUAL(d9_reader_segment(reader, i, &info), 0);
	return info;
}

static int add_only(const char *path)
{
	struct d9_reader *reader = NULL;
	int err;

	CU_ASSERT_EQUAL_FATAL(d9_reader_new(&reader), 0);
	err = d9_reader_add(reader, path);
	CU_ASSERT_EQUAL(d9_reader_message(reader)[0] != '\0', err != 0);
	CU_ASSERT(err == 0 || strstr(d9_reader_message(reader), path) != NULL);
	d9_reader_free(reader);
	return err;
}

/* ---- adding ---- */

static void test_what_is_no_trace_is_refused_with_a_reason(void)
{
	save_bytes(FILE_A, "hello, world", 12);
	CU_ASSERT_EQUAL(add_only(FILE_A), -EBADMSG);
	save_bytes(FILE_A, "TR", 2);
	CU_ASSERT_EQUAL(add_only(FILE_A), -ENODATA);
	save_bytes(FILE_A, "TRC\0\2", 5);
	CU_ASSERT_EQUAL(add_only(FILE_A), -EPROTONOSUPPORT);
	save_bytes(FILE_A, "\x1f\x8bnonsense", 10);
	CU_ASSERT_EQUAL(add_only(FILE_A), -EBADMSG);
	save_bytes(FILE_A, "TRC\0\1", 5);
	CU_ASSERT_EQUAL(add_only(FILE_A), 0);
	unlink(FILE_A);
	CU_ASSERT_EQUAL(add_only(FILE_A), -ENOENT);
	CU_ASSERT_EQUAL(add_only(DIR), -ENODATA);
}

static void test_active_segment_may_be_empty_still(void)
{
	struct d9_reader *reader = NULL;

	save_bytes(DIR "/trace.0.bin.active", "", 0);
	reader = open_trace(DIR "/trace.0.bin.active");
	CU_ASSERT_EQUAL(next_number(reader), -1);

	CU_ASSERT_TRUE(info_of(reader, 0).active);
	CU_ASSERT_TRUE(info_of(reader, 0).truncated);
	CU_ASSERT_EQUAL(info_of(reader, 0).err, 0);
	d9_reader_free(reader);
	unlink(DIR "/trace.0.bin.active");
}

static void test_adding_after_the_first_event_is_a_mistake(void)
{
	struct d9_reader *reader = NULL;

	save_bytes(FILE_A, worked_polls, sizeof(worked_polls));
	reader = open_trace(FILE_A);
	(void)next_number(reader);

	CU_ASSERT_EQUAL(d9_reader_add(reader, FILE_A), -EINVAL);
	CU_ASSERT_EQUAL(d9_reader_segments(reader), 1);
	CU_ASSERT_EQUAL(d9_reader_segment(reader, 1, &(struct d9_segment_info) { 0 }), -EINVAL);
	d9_reader_free(reader);
	unlink(FILE_A);
}

/* ---- order ---- */

static void test_batches_of_many_threads_merge_into_one_order(void)
{
	static const int64_t in_time[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	static const int64_t in_file[] = { 1, 4, 6, 2, 5, 3, 7, 8 };
	struct trace t = { 0 };

	begin_numbers(&t);
	add_number(&t, 100, 1);
	add_number(&t, 400, 4);
	add_number(&t, 600, 6);
	begin_numbers(&t);
	add_number(&t, 200, 2);
	add_number(&t, 500, 5);
	begin_numbers(&t);
	add_number(&t, 300, 3);
	add_number(&t, 30000000, 7);
	begin_numbers(&t);
	add_number(&t, 60000000, 8);
	save_and_free(&t, FILE_A, "plain");

	expect_numbers(FILE_A, false, in_time, 8);
	expect_numbers(FILE_A, true, in_file, 8);
	unlink(FILE_A);
}

static void test_equal_times_keep_file_order(void)
{
	static const int64_t numbers[] = { 1, 2, 3, 4, 5, 6 };
	struct trace t = { 0 };

	begin_numbers(&t);
	add_number(&t, 5, 1);
	add_number(&t, 7, 2);
	add_number(&t, 7, 3);
	begin_numbers(&t);
	add_number(&t, 7, 4);
	add_number(&t, 9, 6);
	add_number(&t, 7, 5);
	save_and_free(&t, FILE_A, "gzip");

	expect_numbers(FILE_A, false, numbers, 6);
	unlink(FILE_A);
}

static void test_times_that_step_back_inside_a_batch_are_sorted(void)
{
	static const int64_t numbers[] = { 0, 1, 2, 3, 4, 5, 6 };
	struct trace t = { 0 };

	begin_numbers(&t);
	add_number(&t, 5000, 4);
	add_number(&t, 3000, 2);
	add_number(&t, 6000, 5);
	add_number(&t, 1000, 0);
	add_number(&t, 7000, 6);
	begin_numbers(&t);
	add_number(&t, 2000, 1);
	add_number(&t, 4000, 3);
	save_and_free(&t, FILE_A, "zstd");

	expect_numbers(FILE_A, false, numbers, 7);
	unlink(FILE_A);
}

static void test_events_without_a_time_come_first_in_file_order(void)
{
	static const int64_t numbers[] = { 10, 11, 12, 13, 1, 2, 3 };
	struct trace t = { 0 };

	begin_numbers(&t);
	add_number(&t, 1000, 1);
	trace_event(&t, 2, 0, (uint64_t)10);
	add_number(&t, 3000, 3);
	add_number(&t, 0, 11);
	begin_numbers(&t);
	add_number(&t, 2000, 2);
	add_number(&t, 0, 12);
	trace_event(&t, 2, 0, (uint64_t)13);
	save_and_free(&t, FILE_A, "plain");

	expect_numbers(FILE_A, false, numbers, 7);
	unlink(FILE_A);
}

static void test_event_tells_its_segment_and_offset(void)
{
	struct d9_reader *reader = NULL;
	const struct d9_event *event = NULL;

	save_bytes(FILE_A, "TRC\0\1", 5);
	save_bytes(FILE_B, worked_polls, sizeof(worked_polls));
	reader = open_trace(FILE_A);
	CU_ASSERT_EQUAL(d9_reader_add(reader, FILE_B), 0);
	CU_ASSERT_EQUAL_FATAL(d9_reader_next(reader, &event), 1);

	CU_ASSERT_EQUAL(event->segment, 1);
	CU_ASSERT_EQUAL(event->offset, 0x6a);
	CU_ASSERT_EQUAL(event->timestamp_ns, UINT64_C(5000000000));
	CU_ASSERT_TRUE(event->has_timestamp);
	CU_ASSERT_EQUAL_FATAL(d9_reader_next(reader, &event), 1);
	CU_ASSERT_EQUAL(event->offset, 0x98);
	d9_reader_free(reader);
	unlink(FILE_A);
	unlink(FILE_B);
}

/* ---- folders and damage ---- */

static void save_numbers(const char *path, const char *container, uint64_t from, size_t damage)
{
	struct trace t = { 0 };

	begin_numbers(&t);
	add_number(&t, from * 100, from);
	add_number(&t, from * 100 + 250, from + 1);
	if (damage)
		trace_uint(&t, 0xee, 1);
	save_and_free(&t, path, container);
}

static void test_folder_of_runs_is_one_trace_despite_damage(void)
{
	static const int64_t numbers[] = { 1, 2, 3, 2, 3, 5, 4, 6 };
	struct d9_reader *reader = NULL;

	mkdir(DIR "/run", 0700);
	save_numbers(DIR "/trace.10.bin", "plain", 1, 0);
	save_numbers(DIR "/trace.9.bin.gz", "gzip", 2, 1);
	save_numbers(DIR "/run/trace.0.bin.zst.active", "zstd", 3, 0);
	save_numbers(DIR "/run/trace.1.bin", "plain", 5, 0);
	save_bytes(DIR "/run/trace.2.bin", "garbage", 7);
	save_bytes(DIR "/run/.lock", "", 0);
	save_bytes(DIR "/notes.txt", "TODAY", 5);
	reader = open_trace(DIR);

	for (size_t i = 0; i < 8; i++)
		CU_ASSERT_EQUAL(next_number(reader), numbers[i]);
	CU_ASSERT_EQUAL(next_number(reader), -1);
	CU_ASSERT_EQUAL(d9_reader_segments(reader), 5);
	CU_ASSERT_STRING_EQUAL(info_of(reader, 0).path, DIR "/trace.9.bin.gz");
	CU_ASSERT_EQUAL(info_of(reader, 0).err, -EBADMSG);
	CU_ASSERT(strstr(info_of(reader, 0).message, "unknown frame tag 0xee") != NULL);
	CU_ASSERT_EQUAL(info_of(reader, 0).events, 2);
	CU_ASSERT_EQUAL(info_of(reader, 1).err, 0);
	CU_ASSERT_PTR_NULL(info_of(reader, 1).message);
	CU_ASSERT_TRUE(info_of(reader, 2).active);
	CU_ASSERT_EQUAL(info_of(reader, 4).err, -EBADMSG);
	CU_ASSERT_STRING_EQUAL(d9_reader_message(reader), "");
	d9_reader_free(reader);

	unlink(DIR "/trace.10.bin");
	unlink(DIR "/trace.9.bin.gz");
	unlink(DIR "/run/trace.0.bin.zst.active");
	unlink(DIR "/run/trace.1.bin");
	unlink(DIR "/run/trace.2.bin");
	unlink(DIR "/run/.lock");
	unlink(DIR "/notes.txt");
	rmdir(DIR "/run");
}

static void check_cut(const char *path, bool active)
{
	struct d9_reader *reader = NULL;
	struct d9_segment_info info;

	save_bytes(path, worked_polls, sizeof(worked_polls) - 1);
	reader = open_trace(path);
	for (int i = 0; i < 3; i++)
		CU_ASSERT(next_number(reader) >= 0);
	CU_ASSERT_EQUAL(next_number(reader), -1);
	info = info_of(reader, 0);

	CU_ASSERT_TRUE(info.truncated);
	CU_ASSERT_EQUAL(info.active, active);
	CU_ASSERT_EQUAL(info.err, active ? 0 : -ENODATA);
	CU_ASSERT_EQUAL(info.err_offset, 0xb5);
	CU_ASSERT(strstr(info.message, "offset 181") != NULL);
	CU_ASSERT_EQUAL(info.first_ns, UINT64_C(5000000000));
	CU_ASSERT_EQUAL(info.last_ns, UINT64_C(5000013500));
	d9_reader_free(reader);
	unlink(path);
}

static void test_cut_tail_is_normal_for_active_segments_only(void)
{
	check_cut(FILE_A, false);
	check_cut(FILE_A ".active", true);
}

static void test_frame_over_the_memory_limit_ends_its_segment_only(void)
{
	struct trace t = { 0 };
	char *text = calloc(1, 100001);
	struct d9_reader *reader = NULL;

	memset(text, 'x', 100000);
	begin_numbers(&t);
	add_number(&t, 5, 1);
	trace_string(&t, text);
	add_number(&t, 6, 2);
	save_and_free(&t, FILE_A, "plain");
	free(text);
	save_numbers(FILE_B, "plain", 3, 0);
	reader = open_trace(FILE_A);
	d9_reader_add(reader, FILE_B);
	d9_reader_set_memory_limit(reader, 50000);

	CU_ASSERT_EQUAL(next_number(reader), 1);
	CU_ASSERT_EQUAL(next_number(reader), 3);
	CU_ASSERT_EQUAL(next_number(reader), 4);
	CU_ASSERT_EQUAL(next_number(reader), -1);
	CU_ASSERT_EQUAL(info_of(reader, 0).err, -EFBIG);
	d9_reader_free(reader);
	unlink(FILE_A);
	unlink(FILE_B);
}

static void test_many_segments_do_not_need_as_many_descriptors(void)
{
	struct d9_reader *reader = NULL;
	char path[64];
	int64_t number, last = -1;
	int n = 0;

	for (unsigned i = 0; i < 150; i++) {
		snprintf(path, sizeof(path), DIR "/trace.%u.bin.zst", i);
		save_numbers(path, i % 2 ? "zstd" : "gzip", i * 10 + 1, 0);
	}
	reader = open_trace(DIR);
	while ((number = next_number(reader)) >= 0) {
		CU_ASSERT(number > last);
		last = number;
		n++;
	}

	CU_ASSERT_EQUAL(n, 300);
	d9_reader_free(reader);
	for (unsigned i = 0; i < 150; i++) {
		snprintf(path, sizeof(path), DIR "/trace.%u.bin.zst", i);
		unlink(path);
	}
}

/* ---- schemas and known fields ---- */

static void test_known_fields_are_found_wherever_they_are(void)
{
	struct trace t = { 0 };
	struct d9_reader *reader = NULL;
	const struct d9_event *event = NULL;
	const struct d9_value *text;

	trace_batch(&t);
	trace_schema(&t, 1, "PollStartEvent",
		     "extra:2 spawn_loc:4 task_id:13 local_queue:1 worker_id:12");
	trace_event(&t, 1, 5, 0.5, "a @ b", (uint64_t)77, (int64_t)3, (uint64_t)2);
	trace_event(&t, 1, 6, 0.5, "", (uint64_t)78, (int64_t)-3, (uint64_t)2);
	save_and_free(&t, FILE_A, "plain");
	reader = open_trace(FILE_A);
	CU_ASSERT_EQUAL_FATAL(d9_reader_next(reader, &event), 1);

	CU_ASSERT_EQUAL(event->kind, D9_EVENT_POLL_START);
	CU_ASSERT_EQUAL(d9_event_known_u64(event, D9_POLL_START_WORKER_ID, 99), 2);
	CU_ASSERT_EQUAL(d9_event_known_u64(event, D9_POLL_START_LOCAL_QUEUE, 99), 3);
	CU_ASSERT_EQUAL(d9_event_known_u64(event, D9_POLL_START_TASK_ID, 99), 77);
	text = d9_event_known(event, D9_POLL_START_SPAWN_LOC);
	CU_ASSERT_FATAL(text != NULL);
	CU_ASSERT_EQUAL(text->u.text.len, 5);
	CU_ASSERT_EQUAL(d9_event_known_u64(event, D9_POLL_START_SPAWN_LOC, 99), 99);
	CU_ASSERT_EQUAL(d9_event_u64(event, "extra", 99), 99);
	CU_ASSERT_PTR_NULL(d9_event_known(event, 9));
	CU_ASSERT_PTR_NULL(d9_event_known(event, 1000));
	CU_ASSERT_EQUAL_FATAL(d9_reader_next(reader, &event), 1);
	CU_ASSERT_EQUAL(d9_event_known_u64(event, D9_POLL_START_LOCAL_QUEUE, 99), 99);
	d9_reader_free(reader);
	unlink(FILE_A);
}

static void test_event_without_a_mandatory_field_is_custom_and_counted(void)
{
	struct trace t = { 0 };
	struct d9_reader *reader = NULL;
	const struct d9_event *event;
	enum d9_event_kind kinds[5] = { 0 };

	trace_batch(&t);
	trace_schema(&t, 1, "PollEndEvent", "worker:9");
	trace_schema(&t, 2, "PollEndEvent", "worker_id:7");
	trace_schema(&t, 3, "PollEndEvent", "worker_id:137");
	trace_schema(&t, 4, "pollendevent", "worker_id:9");
	trace_event(&t, 1, 1, (uint64_t)0);
	trace_event(&t, 2, 2, (uint64_t)0);
	trace_event(&t, 3, 3, 0);
	trace_event(&t, 3, 4, 1, (uint64_t)0);
	trace_event(&t, 4, 5, (uint64_t)0);
	save_and_free(&t, FILE_A, "plain");
	reader = open_trace(FILE_A);
	for (int i = 0; i < 5; i++)
		if (d9_reader_next(reader, &event) == 1)
			kinds[i] = event->kind;

	CU_ASSERT_EQUAL(kinds[0], D9_EVENT_CUSTOM);
	CU_ASSERT_EQUAL(kinds[1], D9_EVENT_CUSTOM);
	CU_ASSERT_EQUAL(kinds[2], D9_EVENT_CUSTOM);
	CU_ASSERT_EQUAL(kinds[3], D9_EVENT_POLL_END);
	CU_ASSERT_EQUAL(kinds[4], D9_EVENT_CUSTOM);
	CU_ASSERT_EQUAL(info_of(reader, 0).unusable, 3);
	CU_ASSERT_EQUAL(info_of(reader, 0).unresolved, 1);
	d9_reader_free(reader);
	unlink(FILE_A);
}

static void test_absent_wait_of_an_unpark_is_not_measured_and_fine(void)
{
	struct trace t = { 0 };
	struct d9_reader *reader = NULL;
	const struct d9_event *event = NULL;

	trace_batch(&t);
	trace_schema(&t, 1, "WorkerUnparkEvent",
		     "worker_id:9 local_queue:11 cpu_time_ns:9 sched_wait_ns:137 tid:13");
	trace_event(&t, 1, 1, (uint64_t)3, (uint64_t)0, (uint64_t)55, 0, (uint64_t)4242);
	save_and_free(&t, FILE_A, "plain");
	reader = open_trace(FILE_A);
	CU_ASSERT_EQUAL_FATAL(d9_reader_next(reader, &event), 1);

	CU_ASSERT_EQUAL(event->kind, D9_EVENT_WORKER_UNPARK);
	CU_ASSERT_PTR_NULL(d9_event_known(event, D9_WORKER_UNPARK_SCHED_WAIT_NS));
	CU_ASSERT_EQUAL(d9_event_known_u64(event, D9_WORKER_UNPARK_TID, 0), 4242);
	d9_reader_free(reader);
	unlink(FILE_A);
}

static void test_span_names_are_told_by_their_beginning(void)
{
	static const struct {
		const char *name;
		enum d9_event_kind kind;
	} cases[] = { { "SpanEnter:libevent", D9_EVENT_SPAN_ENTER },
		      { "SpanEnter__x", D9_EVENT_SPAN_ENTER },
		      { "SpanEnterEvent", D9_EVENT_SPAN_ENTER },
		      { "SpanExit:libevent", D9_EVENT_SPAN_EXIT },
		      { "SpanCloseEvent", D9_EVENT_SPAN_CLOSE },
		      { "SpanEntered", D9_EVENT_CUSTOM } };
	struct trace t = { 0 };
	struct d9_reader *reader = NULL;
	const struct d9_event *event = NULL;

	trace_batch(&t);
	for (unsigned i = 0; i < 6; i++) {
		trace_schema(&t, i, cases[i].name, "worker_id:9 span_id:9");
		trace_event(&t, i, 100 + i, (uint64_t)0, (uint64_t)i + 1);
	}
	save_and_free(&t, FILE_A, "plain");
	reader = open_trace(FILE_A);

	for (unsigned i = 0; i < 6; i++) {
		CU_ASSERT_EQUAL_FATAL(d9_reader_next(reader, &event), 1);
		CU_ASSERT_EQUAL(event->kind, cases[i].kind);
		CU_ASSERT_STRING_EQUAL(d9_event_name(event), cases[i].name);
	}
	d9_reader_free(reader);
	unlink(FILE_A);
}

static void test_schemas_are_described_and_have_one_id_everywhere(void)
{
	struct d9_reader *reader = NULL;
	const struct d9_event *event = NULL;
	const struct d9_schema *schema;
	bool optional = false;

	save_bytes(FILE_A, worked_two_batches, sizeof(worked_two_batches));
	save_bytes(FILE_B, worked_two_batches, sizeof(worked_two_batches));
	reader = open_trace(FILE_A);
	d9_reader_add(reader, FILE_B);
	d9_reader_next(reader, &event);
	d9_reader_next(reader, &event);
	d9_reader_next(reader, &event);
	schema = event->schema;

	CU_ASSERT_STRING_EQUAL(d9_schema_name(schema), "CacheHit");
	CU_ASSERT_EQUAL(d9_schema_fields(schema), 3);
	CU_ASSERT_STRING_EQUAL(d9_schema_field_name(schema, 1), "note");
	CU_ASSERT_PTR_NULL(d9_schema_field_name(schema, 3));
	CU_ASSERT_EQUAL(d9_schema_field_type(schema, 1, &optional), D9_FIELD_STRING);
	CU_ASSERT_TRUE(optional);
	CU_ASSERT_EQUAL(d9_schema_find(schema, "temp"), 2);
	CU_ASSERT_EQUAL(d9_schema_find(schema, "tem"), -1);
	CU_ASSERT_STRING_EQUAL(d9_schema_annotation(schema, 0, "unit"), "us");
	CU_ASSERT_PTR_NULL(d9_schema_annotation(schema, 0, "kind"));
	CU_ASSERT_PTR_NULL(d9_schema_annotation(schema, 1, "unit"));
	CU_ASSERT_PTR_NULL(d9_event_field(event, "note"));
	d9_reader_next(reader, &event);
	CU_ASSERT_EQUAL(event->segment, 1);
	CU_ASSERT_EQUAL(d9_schema_id(event->schema), d9_schema_id(schema));
	d9_reader_free(reader);
	unlink(FILE_A);
	unlink(FILE_B);
}

/* ---- memory ---- */

/* Chunks of eight threads, as long ones as the recorder's; each thread one step behind. */
static void save_long_trace(const char *path, const char *container, uint64_t chunks)
{
	struct trace t = { 0 };
	size_t start;

	for (uint64_t i = 0; i < chunks; i++) {
		uint64_t ns = 1000000 + i / 8 * 1000000 + i % 8;

		start = t.len;
		begin_numbers(&t);
		for (uint64_t x = 0; t.len - start < 65000; x++)
			add_number(&t, ns + x * 100, x);
	}
	save_and_free(&t, path, container);
}

static uint64_t digest_of(const char *path, uint64_t limit_bytes)
{
	struct d9_reader *reader = open_trace(path);
	const struct d9_event *event;
	uint64_t digest = 0;

	d9_reader_set_memory_limit(reader, limit_bytes);
	while (d9_reader_next(reader, &event) == 1)
		digest = digest * 31 + event->timestamp_ns + d9_event_u64(event, "x", 0) +
			 event->offset;
	d9_reader_free(reader);
	return digest;
}

static void test_packed_segments_too_large_to_keep_are_unpacked_again(void)
{
	uint64_t plain;

	save_long_trace(FILE_A, "plain", 24);
	plain = digest_of(FILE_A, 0);

	save_long_trace(FILE_A, "gzip", 24);
	CU_ASSERT_EQUAL(digest_of(FILE_A, 0), plain);
	CU_ASSERT_EQUAL(digest_of(FILE_A, 300000), plain);
	save_long_trace(FILE_A, "zstd", 24);
	CU_ASSERT_EQUAL(digest_of(FILE_A, 0), plain);
	CU_ASSERT_EQUAL(digest_of(FILE_A, 300000), plain);
	unlink(FILE_A);
}

static void test_memory_is_that_of_what_overlaps(void)
{
	struct d9_reader *reader = NULL;
	const struct d9_event *event;
	size_t before, most = 0;
	uint64_t n = 0, done = 0, total = 0, last_done = 0;

	save_long_trace(FILE_A, "plain", 200);
	before = d9_test_heap() + d9_test_mapped();
	reader = open_trace(FILE_A);
	while (d9_reader_next(reader, &event) == 1) {
		if (n++ % 10000)
			continue;
		size_t now = d9_test_heap() + d9_test_mapped();

		most = now > most ? now : most;
		d9_reader_progress(reader, &done, &total);
		CU_ASSERT(done >= last_done && done <= total);
		last_done = done;
	}

	/* 13 MB of trace, eight chunks at a time. */
	CU_ASSERT(total > 12000000);
	CU_ASSERT(n > 1000000);
	CU_ASSERT(most < before + (size_t)3 * 1000000);
	d9_reader_progress(reader, &done, &total);
	CU_ASSERT_EQUAL(done, total);
	d9_reader_free(reader);
	unlink(FILE_A);
}

/* |n| batches, each from the first moment of the trace to the last, are read with a limit of 1 MiB. */
static uint64_t count_overlapping(uint64_t n, int *err)
{
	struct d9_reader *reader;
	const struct d9_event *event;
	struct trace t = { 0 };
	uint64_t events = 0;

	for (uint64_t i = 0; i < n; i++) {
		begin_numbers(&t);
		add_number(&t, 1000, i);
		add_number(&t, 1000000000, i);
	}
	save_and_free(&t, FILE_A, "gzip");
	reader = open_trace(FILE_A);
	d9_reader_set_memory_limit(reader, 1 << 20);
	while (d9_reader_next(reader, &event) == 1)
		events++;
	*err = info_of(reader, 0).err;
	d9_reader_free(reader);
	unlink(FILE_A);
	return events;
}

static void test_claims_of_many_batches_are_limited(void)
{
	uint64_t events;
	int err;

	CU_ASSERT_EQUAL(count_overlapping(1000, &err), 2000);
	CU_ASSERT_EQUAL(err, 0);
	/* More than may be open at a time. */
	events = count_overlapping(12000, &err);
	CU_ASSERT(events > 2000 && events < 24000);
	CU_ASSERT_EQUAL(err, -EFBIG);
	/* More than may be in the list. */
	events = count_overlapping(20000, &err);
	CU_ASSERT(events > 2000 && events < 24000);
	CU_ASSERT_EQUAL(err, -EFBIG);
}

static void test_message_of_a_reader_that_was_not_made_says_why(void)
{
	CU_ASSERT_STRING_EQUAL(d9_reader_message(NULL), "out of memory");
}

static void test_free_in_the_middle_leaves_nothing_behind(void)
{
	save_long_trace(FILE_A, "zstd", 20);

	for (int i = 0; i < 2; i++) {
		struct d9_reader *reader = open_trace(FILE_A);

		d9_reader_set_file_order(reader, i);
		for (int k = 0; k < 70000; k++)
			(void)next_number(reader);
		d9_reader_free(reader);
	}
	d9_reader_free(NULL);
	unlink(FILE_A);
}

static void put_map(struct trace *t, const char *const *texts, size_t n_pairs)
{
	trace_uint(t, n_pairs, 4);
	for (size_t i = 0; i < 2 * n_pairs; i++)
		trace_text(t, texts[i]);
}

static void test_repeated_key_of_a_map_is_kept_and_counted(void)
{
	static const char *const texts[] = { "a", "1", "b", "2", "", "3", "a", "4", "a", "1", "", "3", "ab", "5" };
	struct trace t = { 0 };
	const struct d9_event *event = NULL;
	struct d9_reader *reader;

	trace_batch(&t);
	trace_builtin(&t, 1, "SegmentMetadataEvent");
	trace_head(&t, 1, 5);
	put_map(&t, texts, 7);
	trace_head(&t, 1, 6);
	put_map(&t, texts, 3);
	save_and_free(&t, FILE_A, "plain");
	reader = open_trace(FILE_A);

	CU_ASSERT_EQUAL(d9_reader_next(reader, &event), 1);
	CU_ASSERT_EQUAL(event->values[0].u.string_map.n, 7);
	CU_ASSERT_EQUAL(info_of(reader, 0).repeated_keys, 3);
	CU_ASSERT_EQUAL(d9_reader_next(reader, &event), 1);
	CU_ASSERT_EQUAL(info_of(reader, 0).repeated_keys, 3);
	d9_reader_free(reader);
	unlink(FILE_A);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "repeated key of a map is kept and counted",
		  test_repeated_key_of_a_map_is_kept_and_counted },
		{ "what is no trace is refused with a reason",
		  test_what_is_no_trace_is_refused_with_a_reason },
		{ "active segment may be empty still", test_active_segment_may_be_empty_still },
		{ "adding after the first event is a mistake",
		  test_adding_after_the_first_event_is_a_mistake },
		{ "batches of many threads merge into one order",
		  test_batches_of_many_threads_merge_into_one_order },
		{ "equal times keep file order", test_equal_times_keep_file_order },
		{ "times that step back inside a batch are sorted",
		  test_times_that_step_back_inside_a_batch_are_sorted },
		{ "events without a time come first, in file order",
		  test_events_without_a_time_come_first_in_file_order },
		{ "event tells its segment and offset", test_event_tells_its_segment_and_offset },
		{ "folder of runs is one trace despite damage",
		  test_folder_of_runs_is_one_trace_despite_damage },
		{ "cut tail is normal for active segments only",
		  test_cut_tail_is_normal_for_active_segments_only },
		{ "frame over the memory limit ends its segment only",
		  test_frame_over_the_memory_limit_ends_its_segment_only },
		{ "many segments do not need as many descriptors",
		  test_many_segments_do_not_need_as_many_descriptors },
		{ "known fields are found wherever they are",
		  test_known_fields_are_found_wherever_they_are },
		{ "event without a mandatory field is custom and counted",
		  test_event_without_a_mandatory_field_is_custom_and_counted },
		{ "absent wait of an unpark is not measured and fine",
		  test_absent_wait_of_an_unpark_is_not_measured_and_fine },
		{ "span names are told by their beginning",
		  test_span_names_are_told_by_their_beginning },
		{ "schemas are described and have one id everywhere",
		  test_schemas_are_described_and_have_one_id_everywhere },
		{ "packed segments too large to keep are unpacked again",
		  test_packed_segments_too_large_to_keep_are_unpacked_again },
		{ "memory is that of what overlaps", test_memory_is_that_of_what_overlaps },
		{ "claims of many batches are limited", test_claims_of_many_batches_are_limited },
		{ "message of a reader that was not made says why",
		  test_message_of_a_reader_that_was_not_made_says_why },
		{ "free in the middle leaves nothing behind",
		  test_free_in_the_middle_leaves_nothing_behind },
		CU_TEST_INFO_NULL,
	};
	int failed;

	/* An earlier run may have ended early. */
	if (system("rm -rf " DIR) != 0 || mkdir(DIR, 0700) != 0)
		return 99;
	failed = d9_test_main("reader", tests);
	rmdir(DIR);
	return failed;
}
