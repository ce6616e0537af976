/* SPDX-License-Identifier: Apache-2.0 */
/* Where the calls of a callback were found by samples. */
#include "config.h"

#include <stdio.h>
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

/* As in a stripped libcrypto, of which each sample has an address of its own. */
static void test_what_a_library_without_names_does_is_told_by_its_module(void)
{
	char addresses[20][32];
	struct d9__stack *stacks[20];

	for (size_t i = 0; i < 20; i++) {
		snprintf(addresses[i], sizeof(addresses[i]), "libcrypto.so.3+0x%zx00", i + 1);
		stacks[i] = make_stack(i, addresses[i], "libcrypto.so.3", "on_tls", 12);
		stacks[i]->names[0].known = false;
		if (i >= 10) {
			stacks[i]->names[1].module = "libevent-2.1.so.7";
			stacks[i]->names[2].module = "libevent-2.1.so.7";
		}
		add(stacks[i], 1);
	}
	check("50 % in on_tls (svc.c:12, in libcrypto.so.3), 50 % in libcrypto.so.3");
	add(stacks[10], 10);
	check("100 % in libcrypto.so.3+0xb00");
	for (size_t i = 0; i < 20; i++)
		free_stack(stacks[i]);
}

static void test_what_the_cxx_library_does_in_the_program_is_told_likewise(void)
{
	struct d9__stack *sort = make_stack(1, "std::__introsort_loop<Row*>", "app", "sort_rows", 12);
	struct d9__stack *swap = make_stack(2, "__gnu_cxx::__ops::swap", "app", "sort_rows", 12);

	add(sort, 10);
	add(swap, 5);
	check("100 % in sort_rows (svc.c:12, in std::__introsort_loop<Row*>)");
	free_stack(sort);
	free_stack(swap);
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

/* main() runs a loop whose library, by way of the recorder, calls its own callback, and that a handler of the program. */
static struct d9__stack *make_inner_stack(const char *leaf, const char *module)
{
	static const struct d9__frame_name frames[] = {
		{ "compute", "svc.c", "app", 12, true },	   { "on_method", "svc.c", "app", 20, true },
		{ "libgio-2.0.so.0+0x100", NULL, "libgio-2.0.so.0", 0, false },
		{ "run_as_poll", NULL, "libdial9-glib.so.0", 0, true }, { "main", "svc.c", "app", 1, true },
	};
	size_t n = sizeof(frames) / sizeof(frames[0]);
	struct d9__stack *stack = calloc(1, sizeof(*stack) + (n + 1) * sizeof(stack->addresses[0]));

	CU_ASSERT_PTR_NOT_NULL_FATAL(stack);
	stack->n = n + 1;
	stack->names = calloc(n + 1, sizeof(stack->names[0]));
	CU_ASSERT_PTR_NOT_NULL_FATAL(stack->names);
	stack->names[0] = (struct d9__frame_name){ leaf, NULL, module, 0, true };
	memcpy(stack->names + 1, frames, sizeof(frames));
	return stack;
}

static void test_what_the_program_does_inside_a_librarys_callback_is_told_as_the_programs(void)
{
	struct d9__stack *stack = make_inner_stack("g_main_context_iteration", "libglib-2.0.so.0");
	const struct d9__frame_name *entry = d9__hot_entry(stack);

	callback.location = "libgio-2.0.so.0+0x100 @ libgio-2.0.so.0+0x200";
	CU_ASSERT_PTR_NOT_NULL_FATAL(entry);
	CU_ASSERT_STRING_EQUAL(entry->function, "on_method");
	CU_ASSERT(d9__hot_calls_loop(&callback, stack));
	add(stack, 3);
	check("100 % in compute (svc.c:12, in g_main_context_iteration)");
	callback.location = "app+0x100 @ app+0x110";
	free_stack(stack);
}

static void test_what_runs_the_loop_is_not_inside_a_callback(void)
{
	struct d9__stack *stack = make_inner_stack("memcpy", "libc.so.6");

	CU_ASSERT_FALSE(d9__hot_calls_loop(&callback, stack));
	for (size_t i = 0; i < 3; i++)
		stack->names[i].module = "libc.so.6";
	CU_ASSERT_PTR_NULL(d9__hot_entry(stack));
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

static void test_the_work_of_the_recorder_is_that_of_the_function_it_was_done_for(void)
{
	struct d9__stack *clock = make_stack(1, "clock_gettime", "libc.so.6", "on_timer", 12);

	clock->names[1] = (struct d9__frame_name) { "read_usage", NULL, "libdial9.so.0", 0, true };
	CU_ASSERT_EQUAL(d9__hot_leaf(clock), 2);
	/* In front of a function that the program called it only stands. */
	clock->names[1] =
		(struct d9__frame_name) { "hook_read", NULL, "libdial9-preload.so", 0, true };
	CU_ASSERT_EQUAL(d9__hot_leaf(clock), 0);
	/* A callback is none of its work. */
	clock->names[0] = (struct d9__frame_name) { "on_timer", NULL, "app", 0, true };
	clock->names[1] =
		(struct d9__frame_name) { "record_event", NULL, "libdial9.so.0", 0, true };
	CU_ASSERT_EQUAL(d9__hot_leaf(clock), 0);
	/* Nor what a program calls of libc itself. */
	clock->names[0] = (struct d9__frame_name) { "memcpy", NULL, "libc.so.6", 0, true };
	clock->names[1] = (struct d9__frame_name) { "parse", NULL, "app", 0, true };
	CU_ASSERT_EQUAL(d9__hot_leaf(clock), 0);
	free_stack(clock);
}

/* A stack of the given names, innermost first: the outermost is the program's. */
static struct d9__stack *make_deep(size_t number, size_t n, const char *const names[])
{
	struct d9__stack *stack = calloc(1, sizeof(*stack) + n * sizeof(stack->addresses[0]));

	CU_ASSERT_PTR_NOT_NULL_FATAL(stack);
	stack->number = number;
	stack->n = n;
	stack->names = calloc(n, sizeof(stack->names[0]));
	CU_ASSERT_PTR_NOT_NULL_FATAL(stack->names);
	for (size_t i = 0; i < n; i++)
		stack->names[i] = (struct d9__frame_name) { names[i], NULL, "libc.so.6", 0, true };
	stack->names[n - 1] = (struct d9__frame_name) { "rank", "svc.c", "app", 6, true };
	return stack;
}

/* A sort that calls itself has a stack for each depth, and the most frequent stack is another's. */
static void test_the_function_that_most_samples_of_a_spot_are_in_is_told_whatever_its_depth(void)
{
	static const char *const depths[][6] = {
		{ "msort_with_tmp", "__GI___qsort_r", "rank" },
		{ "msort_with_tmp", "msort_with_tmp", "__GI___qsort_r", "rank" },
		{ "memcpy", "msort_with_tmp", "msort_with_tmp", "__GI___qsort_r", "rank" },
		{ "random", "rand", "rank" },
	};
	static const size_t n[] = { 3, 4, 5, 3 };
	static const unsigned times[] = { 3, 3, 3, 5 };
	struct d9__stack *stacks[4];

	for (size_t i = 0; i < 4; i++) {
		stacks[i] = make_deep(i, n[i], depths[i]);
		/* Debug information of a library knows what the compiler made of it. */
		if (i == 2) {
			stacks[i]->names[n[i] - 2].function = "msort_with_tmp";
			stacks[i]->names[n[i] - 2].outermost = "__GI___qsort_r";
		}
		add(stacks[i], times[i]);
	}
	CU_ASSERT_STRING_EQUAL(d9__hot_called(&callback), "qsort_r");
	check("100 % in rank (svc.c:6, in qsort_r)");
	for (size_t i = 0; i < 4; i++)
		free_stack(stacks[i]);
}

static void test_no_function_is_told_where_none_has_the_most_samples(void)
{
	struct d9__stack *compile = make_stack(1, "regcomp", "libc.so.6", "matches", 12);
	struct d9__stack *run = make_stack(2, "regexec", "libc.so.6", "matches", 13);
	struct d9__stack *drop = make_stack(3, "regfree", "libc.so.6", "matches", 14);

	add(compile, 5);
	add(run, 3);
	add(drop, 2);
	CU_ASSERT_PTR_NULL(d9__hot_called(&callback));
	check("100 % in matches (svc.c:12)");
	/* Nor where the program was found in its own code as often. */
	drop->names[0] = drop->names[1];
	add(compile, 5);
	add(drop, 5);
	check("100 % in matches (svc.c:12)");
	add(compile, 6);
	add(drop, 5);
	CU_ASSERT_STRING_EQUAL(d9__hot_called(&callback), "regcomp");
	check("100 % in matches (svc.c:12, in regcomp)");
	free_stack(compile);
	free_stack(run);
	free_stack(drop);
}

static void test_a_jump_to_a_library_is_its_callers(void)
{
	struct d9__stack *compare = make_stack(1, "strcmp", "libc.so.6", "find_session", 6);
	struct d9__stack *jump = make_stack(2, "app+0x2120", "app", "find_session", 6);
	struct d9__stack *stripped = make_stack(3, "app+0x3000", "app", "app+0x4000", 0);

	jump->names[0].known = stripped->names[0].known = stripped->names[1].known = false;
	stripped->names[1].file = NULL;
	add(compare, 8);
	add(jump, 2);
	check("100 % in find_session (svc.c:6, in strcmp)");
	add(stripped, 3);
	check("100 % in app+0x3000");
	free_stack(compare);
	free_stack(jump);
	free_stack(stripped);
}

static void test_what_the_recorder_asks_for_is_not_called_by_the_program(void)
{
	struct d9__stack *ours = make_stack(1, "clock_gettime", "libc.so.6", "on_timer", 12);

	ours->names[2] = ours->names[1];
	ours->names[1] = (struct d9__frame_name) { "read_usage", NULL, "libdial9.so.0", 0, true };
	CU_ASSERT_PTR_NULL(d9__hot_called_in(&callback, ours));
	/* In front of a function that the program called it only stands. */
	ours->names[0].function = "__libc_read";
	ours->names[1] =
		(struct d9__frame_name) { "hook_read", NULL, "libdial9-preload.so", 0, true };
	CU_ASSERT_STRING_EQUAL(d9__hot_called_in(&callback, ours), "read");
	free_stack(ours);
}

/* Of a thread that left the CPU inside of socket(), called by the recorder's hook. */
static void test_place_where_a_thread_left_the_cpu_has_the_kernel_s_functions(void)
{
	static struct d9__frame_name names[] = {
		{ .function = "__schedule" },
		{ .function = "schedule_timeout" },
		{ .function = "__wait_for_common" },
		{ .function = "synchronize_rcu" },
		{ .function = "expand_fdtable" },
		{ .function = "expand_files" },
		{ .function = "alloc_fd" },
		{ .function = "do_syscall_64" },
		{ .function = "hook_socket", .module = "libdial9-preload.so" },
		{ .function = "socket", .module = "libc.so.6" },
		{ .function = "ask", .module = "app" },
	};
	size_t n = sizeof(names) / sizeof(names[0]);
	struct d9__stack *stack = calloc(1, sizeof(*stack) + n * sizeof(stack->addresses[0]));
	char text[256], few[8];

	CU_ASSERT_PTR_NOT_NULL_FATAL(stack);
	stack->n = n;
	for (size_t i = 0; i < n; i++)
		stack->addresses[i] = (i < 8 ? UINT64_C(0xffffffff81000000) : 0x401000) + i;
	CU_ASSERT_STRING_EQUAL(d9__hot_left_cpu(stack, text, sizeof(text)), "");
	CU_ASSERT_STRING_EQUAL(d9__hot_left_cpu(NULL, text, sizeof(text)), "");
	stack->names = names;
	CU_ASSERT_STRING_EQUAL(d9__hot_left_cpu(stack, text, sizeof(text)),
			       "socket (alloc_fd, expand_files, expand_fdtable, synchronize_rcu, "
			       "__wait_for_common)");
	CU_ASSERT_STRING_EQUAL(d9__hot_left_cpu(stack, few, sizeof(few)), "socket ");
	/* All in the kernel: where the program was is not known. */
	stack->n = 8;
	CU_ASSERT_STRING_EQUAL(d9__hot_left_cpu(stack, text, sizeof(text)), "");
	free(stack);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "the place where a thread left the CPU has the kernel's functions",
		  test_place_where_a_thread_left_the_cpu_has_the_kernel_s_functions },
		{ "what a library without names does is told by its module",
		  test_what_a_library_without_names_does_is_told_by_its_module },
		{ "what a library does is told as the function that asked for it",
		  test_what_a_library_does_is_told_as_the_function_that_asked_for_it },
		{ "the function that most samples of a spot are in is told, whatever its depth",
		  test_the_function_that_most_samples_of_a_spot_are_in_is_told_whatever_its_depth },
		{ "no function is told where none has the most samples",
		  test_no_function_is_told_where_none_has_the_most_samples },
		{ "a jump to a library is its caller's", test_a_jump_to_a_library_is_its_callers },
		{ "what the recorder asks for is not called by the program",
		  test_what_the_recorder_asks_for_is_not_called_by_the_program },
		{ "what the C++ library does in the program is told likewise",
		  test_what_the_cxx_library_does_in_the_program_is_told_likewise },
		{ "what the recorder does around a call is none of it",
		  test_what_the_recorder_does_around_a_call_is_none_of_it },
		{ "lines of a function are one, and the most frequent is shown",
		  test_lines_of_a_function_are_one_and_the_most_frequent_is_shown },
		{ "few samples tell nothing", test_few_samples_tell_nothing },
		{ "frames without the program are told by the innermost",
		  test_frames_without_the_program_are_told_by_the_innermost },
		{ "what the program does inside a library's callback is told as the program's",
		  test_what_the_program_does_inside_a_librarys_callback_is_told_as_the_programs },
		{ "what runs the loop is not inside a callback",
		  test_what_runs_the_loop_is_not_inside_a_callback },
		{ "call that was always found on the CPU computes",
		  test_call_that_was_always_found_on_the_cpu_computes },
		{ "the work of the recorder is that of the function it was done for",
		  test_the_work_of_the_recorder_is_that_of_the_function_it_was_done_for },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("hot", tests);
}
