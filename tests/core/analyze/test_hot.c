/* SPDX-License-Identifier: Apache-2.0 */
/* Where the calls of a callback were found by samples. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/hot.h"
#include "analyze/stalls.h"
#include "support/d9_test.h"

#define FRAMES 3

static struct d9__callback callback = { .location = "app+0x100 @ app+0x110" };

/* A stack whose innermost frame is |leaf| of |module|, called by |own| of the program at |line|, called by main(). */
static struct d9__stack *make_stack(size_t number, const char *leaf, const char *module, const char *own, unsigned line)
{
	struct d9__stack *stack = calloc(1, sizeof(*stack) + FRAMES * sizeof(stack->addresses[0]));

	CU_ASSERT_PTR_NOT_NULL_FATAL(stack);
	stack->number = number;
	stack->n = FRAMES;
	stack->names = calloc(FRAMES, sizeof(stack->names[0]));
	CU_ASSERT_PTR_NOT_NULL_FATAL(stack->names);
	stack->names[0] = (struct d9__frame_name){ leaf, NULL, module, 0, true };
	stack->names[1] = (struct d9__frame_name){ own, "svc.c", "app", line, true };
	stack->names[2] = (struct d9__frame_name){ "main", "svc.c", "app", 1, true };
	return stack;
}

static void add(const struct d9__stack *stack, unsigned times)
{
	while (times--)
		CU_ASSERT_EQUAL(d9__hot_add(&callback, stack, false), 0);
}

static void forget(void)
{
	d9__hot_free(callback.hot);
	callback.hot = NULL;
}

static void check(const char *expected)
{
	char *text = d9__hot_describe(&callback, false);

	CU_ASSERT_PTR_NOT_NULL(text);
	CU_ASSERT_STRING_EQUAL(text ? text : "", expected);
	free(text);
	forget();
}

static void free_stack(struct d9__stack *stack)
{
	free(stack->names);
	free(stack);
}

static void test_what_a_library_does_is_told_as_the_function_that_asked_for_it(void)
{
	struct d9__stack *sort = make_stack(1, "qsort", "libc.so.6", "sort_rows", 12);

	add(sort, 10);
	check("100 % in sort_rows (svc.c:12, in qsort)");
	free_stack(sort);
}

static void test_what_the_recorder_does_around_a_call_is_none_of_it(void)
{
	struct d9__stack *sort = make_stack(1, "qsort", "libc.so.6", "sort_rows", 12);
	struct d9__stack *ours = make_stack(2, "d9_poll_end", "libdial9.so.0", "main", 3);

	add(sort, 5);
	add(ours, 5);
	check("50 % in sort_rows (svc.c:12, in qsort)");
	free_stack(sort);
	free_stack(ours);
}

static void test_lines_of_a_function_are_one_and_the_most_frequent_is_shown(void)
{
	static const char render[] = "render";
	struct d9__stack *one = make_stack(1, render, "app", "on_request", 7);
	struct d9__stack *two = make_stack(2, render, "app", "on_request", 7);
	struct d9__stack *other = make_stack(3, "parse", "app", "on_request", 8);

	one->names[0].file = two->names[0].file = other->names[0].file = one->names[1].file;
	one->names[0].line = 20;
	two->names[0].line = 21;
	other->names[0].line = 30;
	add(one, 3);
	add(two, 5);
	add(other, 4);
	check("67 % in render (svc.c:21), 33 % in parse (svc.c:30)");
	free_stack(one);
	free_stack(two);
	free_stack(other);
}

static void test_few_samples_tell_nothing(void)
{
	struct d9__stack *one = make_stack(1, "qsort", "libc.so.6", "sort_rows", 12);
	struct d9__stack *two = make_stack(2, "memcpy", "libc.so.6", "copy_rows", 22);

	CU_ASSERT_PTR_NULL(d9__hot_describe(&callback, false));
	add(one, D9__HOT_FEW - 1);
	CU_ASSERT_PTR_NULL(d9__hot_describe(&callback, false));
	add(one, 7);
	add(two, 1);
	check("90 % in sort_rows (svc.c:12, in qsort)");
	free_stack(one);
	free_stack(two);
}

static void test_frames_without_the_program_are_told_by_the_innermost(void)
{
	struct d9__stack *stack = make_stack(1, "memcpy", "libc.so.6", "worker", 3);

	stack->names[1].module = stack->names[2].module = "libpool.so";
	add(stack, 3);
	check("100 % in memcpy");
	free_stack(stack);
}

static void test_call_that_was_always_found_on_the_cpu_computes(void)
{
	struct d9__stall stall = { .total_ns = 40000000, .on_samples = 4, .sampled_ns = 40400000 };

	CU_ASSERT_EQUAL(d9__stall_verdict(&stall), D9__STALL_COMPUTING);
	/* Of 40 ms more, nothing was seen. */
	stall.total_ns = 80000000;
	CU_ASSERT_EQUAL(d9__stall_verdict(&stall), D9__STALL_UNKNOWN);
	stall = (struct d9__stall){ .total_ns = 20000000, .on_samples = 2, .sampled_ns = 20200000 };
	CU_ASSERT_EQUAL(d9__stall_verdict(&stall), D9__STALL_UNKNOWN);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "what a library does is told as the function that asked for it",
		  test_what_a_library_does_is_told_as_the_function_that_asked_for_it },
		{ "what the recorder does around a call is none of it",
		  test_what_the_recorder_does_around_a_call_is_none_of_it },
		{ "lines of a function are one, and the most frequent is shown",
		  test_lines_of_a_function_are_one_and_the_most_frequent_is_shown },
		{ "few samples tell nothing", test_few_samples_tell_nothing },
		{ "frames without the program are told by the innermost",
		  test_frames_without_the_program_are_told_by_the_innermost },
		{ "call that was always found on the CPU computes",
		  test_call_that_was_always_found_on_the_cpu_computes },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("hot", tests);
}
