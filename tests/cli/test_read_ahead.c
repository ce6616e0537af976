/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "read/reader_state.h"
#include "support/d9_test.h"
#include "support/trace_builder.h"
#include "tool/progress.h"
#include "tool/read_ahead.h"

#define PATH   "test_read_ahead.tmp.bin"
#define EVENTS 20000u /* more than are ahead at a time */

/* ---- threads that cannot be had ---- */

static bool refuse_threads;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
			  void *arg)
{
	return refuse_threads ? EAGAIN : __real_pthread_create(thread, attr, fn, arg);
}

/* ---- a trace ---- */

/*
 * Integers, texts, a stack and pairs, each telling its event; and every tenth a long text.  For a
 * while there are more values than a lot has room for.
 */
static void save_trace(void)
{
	struct trace t = { 0 };
	char text[3000];

	trace_batch(&t);
	trace_schema(&t, 1, "Numbers", "x:9 y:1");
	trace_schema(&t, 2, "Texts", "x:9 text:4 stack:8 pairs:10");
	trace_schema(&t, 3, "Wide", "a:9 b:9 c:9 d:9 e:9 f:9 g:9 h:9 i:9 j:9 k:9 l:9");
	for (uint64_t i = 0; i < EVENTS; i++) {
		if (i % 2 && i / 5000 == 1) {
			trace_event(&t, 3, 1000 + i, i, i, i, i, i, i, i, i, i, i, i, i + 1);
			continue;
		}
		if (i % 2) {
			trace_event(&t, 1, 1000 + i, i, -(int64_t)i);
			continue;
		}
		memset(text, 'a' + (int)(i % 26), sizeof(text));
		text[i % 20 ? 5 : sizeof(text) - 1] = 0;
		if (i % 6 == 0)
			text[0] = 0;
		trace_head(&t, 2, 1000 + i);
		trace_varint(&t, i);
		trace_text(&t, text);
		trace_uint(&t, 2, 4);
		trace_uint(&t, i, 8);
		trace_uint(&t, i + 1, 8);
		trace_uint(&t, 1, 4);
		trace_text(&t, "key");
		trace_text(&t, text);
	}
	trace_save(&t, PATH, "zstd");
	trace_free(&t);
}

static struct d9_reader *open_trace(void)
{
	struct d9_reader *reader = NULL;

	CU_ASSERT_EQUAL_FATAL(d9_reader_new(&reader), 0);
	CU_ASSERT_EQUAL_FATAL(d9_reader_add(reader, PATH), 0);
	return reader;
}

/* A text without a byte is somewhere, too, so that memcmp() takes it. */
static bool same_text(const struct d9_text *a, const struct d9_text *b)
{
	return a->len == b->len && b->data && !memcmp(a->data, b->data, a->len);
}

static bool same_value(const struct d9_value *a, const struct d9_value *b)
{
	if (a->type != b->type || a->present != b->present)
		return false;
	switch (a->type) {
	case D9_FIELD_STRING:
		return same_text(&a->u.text, &b->u.text);
	case D9_FIELD_STACK:
		return a->u.stack.n == b->u.stack.n &&
		       !memcmp(a->u.stack.addresses, b->u.stack.addresses, a->u.stack.n * 8);
	case D9_FIELD_STRING_MAP:
		return a->u.string_map.n == b->u.string_map.n &&
		       same_text(&a->u.string_map.pairs[0], &b->u.string_map.pairs[0]) &&
		       same_text(&a->u.string_map.pairs[1], &b->u.string_map.pairs[1]);
	default:
		return a->u.u64 == b->u.u64;
	}
}

static bool same_event(const struct d9_event *a, const struct d9_event *b)
{
	if (strcmp(d9_event_name(a), d9_event_name(b)) || a->timestamp_ns != b->timestamp_ns ||
	    a->segment != b->segment || a->offset != b->offset)
		return false;
	for (size_t i = 0; i < d9_schema_fields(a->schema); i++)
		if (!same_value(&a->values[i], &b->values[i]))
			return false;
	return true;
}

/* Read the trace both ways: so many events were the same, and both ended with |*err|. */
static size_t read_both_ways(int *err)
{
	struct d9_reader *plain = open_trace(), *read = open_trace();
	struct d9__read_ahead *ahead = NULL;
	struct d9__progress progress;
	const struct d9_event *event, *told;
	size_t n = 0, differ = 0;
	int got;

	d9__progress_init(&progress);
	CU_ASSERT_EQUAL_FATAL(d9__read_ahead_begin(&ahead, read), 0);
	*err = 0;
	while ((got = d9_reader_next(plain, &event)) == 1) {
		told = d9__read_ahead_next(ahead, &progress, err);
		CU_ASSERT_FATAL(told != NULL);
		differ += !same_event(event, told);
		CU_ASSERT_STRING_EQUAL(d9__reader_path(read, told->segment), PATH);
		n++;
	}
	CU_ASSERT_EQUAL(differ, 0);
	/* At the end, and once more. */
	for (int i = 0; i < 2; i++) {
		CU_ASSERT_PTR_NULL(d9__read_ahead_next(ahead, &progress, err));
		CU_ASSERT_EQUAL(*err, got);
	}
	d9__read_ahead_end(ahead);
	d9_reader_free(plain);
	d9_reader_free(read);
	return n;
}

/* ---- tests ---- */

static void test_events_read_ahead_are_those_of_the_reader(void)
{
	int err;

	CU_ASSERT_EQUAL(read_both_ways(&err), EVENTS);
	CU_ASSERT_EQUAL(err, 0);
}

static void test_events_are_read_without_a_thread_where_none_is_to_be_had(void)
{
	int err;

	refuse_threads = true;
	CU_ASSERT_EQUAL(read_both_ways(&err), EVENTS);
	CU_ASSERT_EQUAL(err, 0);
	refuse_threads = false;
}

static void test_a_damaged_trace_gives_what_was_good_and_ends_the_same_way(void)
{
	int err;

	save_trace();
	CU_ASSERT_EQUAL(truncate(PATH, 30000), 0);
	CU_ASSERT(read_both_ways(&err) < EVENTS);
	save_trace();
}

static void test_reading_may_end_before_the_trace_does(void)
{
	for (unsigned n = 0; n < 6000; n += 500) {
		struct d9_reader *reader = open_trace();
		struct d9__read_ahead *ahead = NULL;
		struct d9__progress progress;
		int err = 0;

		d9__progress_init(&progress);
		CU_ASSERT_EQUAL_FATAL(d9__read_ahead_begin(&ahead, reader), 0);
		for (unsigned i = 0; i < n; i++)
			CU_ASSERT(d9__read_ahead_next(ahead, &progress, &err) != NULL);
		d9__read_ahead_end(ahead);
		d9_reader_free(reader);
	}
	d9__read_ahead_end(NULL);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "events read ahead are those of the reader",
		  test_events_read_ahead_are_those_of_the_reader },
		{ "events are read without a thread where none is to be had",
		  test_events_are_read_without_a_thread_where_none_is_to_be_had },
		{ "a damaged trace gives what was good and ends the same way",
		  test_a_damaged_trace_gives_what_was_good_and_ends_the_same_way },
		{ "reading may end before the trace does",
		  test_reading_may_end_before_the_trace_does },
		CU_TEST_INFO_NULL,
	};
	int status;

	save_trace();
	status = d9_test_main("read ahead", tests);
	unlink(PATH);
	return status;
}
