/* SPDX-License-Identifier: Apache-2.0 */
/* Reading with the nth allocation failing, for every n until none fails. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <dial9/reader.h>

#include "support/d9_test.h"
#include "support/trace_builder.h"

#define PATH "test_out_of_memory.tmp"

void *__libc_malloc(size_t len);
void *__libc_calloc(size_t n, size_t len);
void *__libc_realloc(void *p, size_t len);
void __libc_free(void *p);

static volatile long allowed = -1; /* allocations until one fails; negative: all succeed */
/* Blocks in use.  Volatile: compilers believe that malloc() and free() touch no variables. */
static volatile long live;

static bool refused(void)
{
	if (allowed < 0)
		return false;
	if (allowed > 0) {
		allowed = allowed - 1;
		return false;
	}
	allowed = -1;
	errno = ENOMEM;
	return true;
}

static void *counted(void *p)
{
	live = live + (p != NULL);
	return p;
}

/* Visible to libc and the other libraries too. */
#pragma GCC visibility push(default)
void *malloc(size_t len)
{
	return refused() ? NULL : counted(__libc_malloc(len));
}

void *calloc(size_t n, size_t len)
{
	return refused() ? NULL : counted(__libc_calloc(n, len));
}

void *realloc(void *p, size_t len)
{
	if (refused())
		return NULL;
	live = live - (p != NULL);
	return counted(__libc_realloc(p, len));
}

void free(void *p)
{
	live = live - (p != NULL);
	__libc_free(p);
}
#pragma GCC visibility pop

static void save(const char *container)
{
	static const uint64_t stack[] = { 1, 2 };
	struct trace t = { 0 };

	for (uint64_t i = 0; i < 3; i++) {
		trace_batch(&t);
		trace_builtin_fields(&t, 1, "PollStartEvent",
				     "worker_id local_queue task_id spawn_loc wake");
		trace_schema(&t, 2, "Stack", "f:6 g:7");
		trace_annotate(&t, 2, 0, "unit", "us");
		trace_string(&t, "somewhere");
		trace_stack(&t, 2, stack);
		trace_event(&t, 1, 1000 + i, (uint64_t)0, (uint64_t)0, i + 1, (uint64_t)0,
			    (uint64_t)(100 << 4 | 1));
		trace_event(&t, 2, 500 + i, (uint64_t)0, (uint64_t)9);
		trace_event(&t, 2, 0, (uint64_t)0, (uint64_t)0);
	}
	trace_save(&t, PATH, container);
	trace_free(&t);
}

/* 0 if all 9 events came, in time order the 3 wakes too; else what failed; -1 if neither. */
static int read_all(bool file_order)
{
	const struct d9_event *event;
	struct d9_reader *reader = NULL;
	int err = d9_reader_new(&reader), n = 0;

	if (err)
		return err;
	d9_reader_set_file_order(reader, file_order);
	err = d9_reader_add(reader, PATH);
	if (!err)
		while ((err = d9_reader_next(reader, &event)) == 1)
			n++;
	d9_reader_free(reader);
	return err ? err : n == (file_order ? 9 : 12) ? 0 : -1;
}

static void check(const char *container, bool file_order)
{
	long failures = 0;
	int err;

	save(container);
	CU_ASSERT_EQUAL(read_all(file_order), 0);
	for (long n = 0; n < 10000; n++) {
		long before = live;
		bool reached;

		allowed = n;
		err = read_all(file_order);
		reached = allowed < 0;
		allowed = -1;
		if (live != before)
			CU_FAIL("memory was not given back");
		if (!reached)
			break;
		/* Some can be done without: messages, bytes kept between the passes. */
		if (err != 0 && err != -ENOMEM)
			CU_FAIL("an error other than -ENOMEM");
		failures += err == -ENOMEM;
	}
	CU_ASSERT_EQUAL(err, 0);
	CU_ASSERT(failures > 5);
	unlink(PATH);
}

static void test_allocation_that_fails_is_an_error_and_nothing_leaks(void)
{
	static const char *const containers[] = { "plain", "gzip", "zstd" };

	for (int i = 0; i < 3; i++) {
		check(containers[i], false);
		check(containers[i], true);
	}
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "allocation that fails is an error, and nothing leaks",
		  test_allocation_that_fails_is_an_error_and_nothing_leaks },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("out_of_memory", tests);
}
