/* SPDX-License-Identifier: Apache-2.0 */
/* Where threads were found by samples, whether they run a loop or not. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/hot_threads.h"
#include "support/d9_test.h"

#define FRAMES 2
#define FRAMES_MAX 3

static struct d9__table threads;

/* A stack with the innermost address |pc| in |function|, called by main(). */
static struct d9__stack *make_stack(size_t number, uint64_t pc, const char *function, bool known)
{
	struct d9__stack *stack = calloc(1, sizeof(*stack) + FRAMES_MAX * sizeof(stack->addresses[0]));

	CU_ASSERT_PTR_NOT_NULL_FATAL(stack);
	stack->number = number;
	stack->n = FRAMES;
	stack->addresses[0] = pc;
	stack->addresses[1] = 0x400100;
	stack->names = calloc(FRAMES_MAX, sizeof(stack->names[0]));
	CU_ASSERT_PTR_NOT_NULL_FATAL(stack->names);
	stack->names[0] = (struct d9__frame_name) { function, NULL, "app", 0, known };
	stack->names[1] = (struct d9__frame_name) { "main", "app.c", "app", 7, true };
	return stack;
}

static void free_stack(struct d9__stack *stack)
{
	free(stack->names);
	free(stack);
}

static void add_sample(const struct d9__sampled *sample, const struct d9__stack *stack, unsigned times)
{
	while (times--)
		CU_ASSERT_PTR_NOT_NULL(d9__hot_threads_add(&threads, sample, 0, stack, NULL));
}

static void add(uint32_t tid, const char *name, bool off_cpu, const struct d9__stack *stack, unsigned times)
{
	add_sample(&(struct d9__sampled){ .tid = tid, .name = name, .name_len = strlen(name), .off_cpu = off_cpu }, stack,
		   times);
}

static void test_functions_are_told_by_thread_most_often_first(void)
{
	struct d9__stack *a = make_stack(1, 0x400200, "compute", true), *b = make_stack(2, 0x400204, "compute", true);
	struct d9__stack *c = make_stack(3, 0x400300, "copy", true);
	struct d9__hot_thread **sorted;
	struct d9__hot_function *functions;
	size_t n;

	add(11, "first", false, a, 2);
	add(11, "first", false, b, 3);
	add(12, "second", false, c, 4);
	add(12, "second", false, a, 2);
	add(12, "", false, NULL, 1);
	functions = d9__hot_functions_on(&threads, NULL, 0, &n);
	sorted = d9__hot_threads_sorted(&threads);
	CU_ASSERT_PTR_NOT_NULL_FATAL(functions);
	CU_ASSERT_PTR_NOT_NULL_FATAL(sorted);
	CU_ASSERT_EQUAL(n, 4);
	/* Two places of one function are one. */
	CU_ASSERT_EQUAL(functions[0].thread->tid, 11);
	CU_ASSERT_STRING_EQUAL(functions[0].frame.function, "compute");
	CU_ASSERT_EQUAL(functions[0].n, 5);
	CU_ASSERT_STRING_EQUAL(functions[1].frame.function, "copy");
	CU_ASSERT_EQUAL(functions[1].n, 4);
	CU_ASSERT_EQUAL(functions[2].n, 2);
	/* Without a stack, and it keeps its name. */
	CU_ASSERT_PTR_NULL(functions[3].frame.function);
	CU_ASSERT_EQUAL(functions[3].n, 1);
	CU_ASSERT_EQUAL(sorted[0]->tid, 12);
	CU_ASSERT_STRING_EQUAL(sorted[0]->name, "second");
	CU_ASSERT_EQUAL(sorted[0]->counts.on, 7);
	CU_ASSERT_EQUAL(sorted[1]->counts.on, 5);
	free(functions);
	free(sorted);
	d9__hot_threads_release(&threads);
	free_stack(a);
	free_stack(b);
	free_stack(c);
}

static void test_code_without_names_is_one_per_module(void)
{
	struct d9__stack *a = make_stack(1, 0x400200, "app+0x200", false),
			 *b = make_stack(2, 0x400300, "app+0x300", false);
	struct d9__hot_function *functions;
	size_t n;

	add(11, "first", false, a, 1);
	add(11, "first", false, b, 1);
	functions = d9__hot_functions_on(&threads, NULL, 0, &n);
	CU_ASSERT_PTR_NOT_NULL_FATAL(functions);
	CU_ASSERT_EQUAL(n, 1);
	CU_ASSERT_PTR_NULL(functions[0].frame.function);
	CU_ASSERT_STRING_EQUAL(functions[0].frame.module, "app");
	CU_ASSERT_EQUAL(functions[0].n, 2);
	free(functions);
	d9__hot_threads_release(&threads);
	free_stack(a);
	free_stack(b);
}

/* A thread that left the CPU with |stack| did so in main(), inside read(). */
static void check_main_reads(const struct d9__stack *stack)
{
	struct d9__hot_function *functions;
	size_t n;

	add(11, "first", true, stack, 1);
	functions = d9__hot_functions_off(&threads, 1, &n);
	CU_ASSERT_PTR_NOT_NULL_FATAL(functions);
	CU_ASSERT_STRING_EQUAL(functions[0].frame.function, "main");
	CU_ASSERT_STRING_EQUAL(functions[0].inside, "read");
	free(functions);
	d9__hot_threads_release(&threads);
}

static void test_a_thread_leaves_the_cpu_in_the_program_and_not_in_the_kernel(void)
{
	struct d9__stack *stack = make_stack(1, 0xffffffff81000000, "schedule", true);
	struct d9__hot_function *functions;
	size_t n;

	add(11, "first", true, stack, 2);
	add(11, "first", false, stack, 1);
	functions = d9__hot_functions_off(&threads, 1, &n);
	CU_ASSERT_PTR_NOT_NULL_FATAL(functions);
	CU_ASSERT_EQUAL(n, 1);
	CU_ASSERT_STRING_EQUAL(functions[0].frame.function, "main");
	CU_ASSERT_PTR_NULL(functions[0].inside);
	CU_ASSERT_EQUAL(functions[0].n, 2);
	free(functions);
	functions = d9__hot_functions_on(&threads, NULL, 0, &n);
	CU_ASSERT_PTR_NOT_NULL_FATAL(functions);
	CU_ASSERT_STRING_EQUAL(functions[0].frame.function, "schedule");
	free(functions);
	d9__hot_threads_release(&threads);
	/* Nor in the library that only makes the system call. */
	stack->addresses[0] = 0x7f0000001000;
	stack->names[0] = (struct d9__frame_name){ "read", NULL, "libc.so.6", 0, true };
	check_main_reads(stack);
	/* Nor in the recorder's hook around it. */
	stack->n = FRAMES_MAX;
	stack->addresses[2] = stack->addresses[1];
	stack->names[2] = stack->names[1];
	stack->addresses[1] = 0x7f0000002000;
	stack->names[1] = (struct d9__frame_name){ "hook_read", NULL, "libdial9-preload.so", 0, true };
	check_main_reads(stack);
	free_stack(stack);
}

/* The kernel took the CPU while the recorder worked for the thread. */
static void test_a_thread_is_not_told_inside_of_the_recorder(void)
{
	struct d9__stack *stack = make_stack(1, 0x7f0000000200, "d9__poll_begin_other", true);
	struct d9__hot_function *functions;
	size_t n;

	stack->names[0].module = "libdial9.so.0";
	add(11, "first", true, stack, 1);
	functions = d9__hot_functions_off(&threads, 1, &n);
	CU_ASSERT_PTR_NOT_NULL_FATAL(functions);
	CU_ASSERT_STRING_EQUAL(functions[0].frame.function, "main");
	CU_ASSERT_PTR_NULL(functions[0].inside);
	free(functions);
	d9__hot_threads_release(&threads);
	free_stack(stack);
}

static void test_switches_of_slices_are_scaled_and_calls_that_block_are_not(void)
{
	const struct d9__sampled in_slice = { .tid = 11, .off_cpu = true, .in_slice = true };
	struct d9__stack *a = make_stack(1, 0x400200, "save", true), *b = make_stack(2, 0x400300, "nap", true);
	struct d9__hot_function *functions;
	size_t n;

	add(11, "first", true, a, 5);
	add_sample(&in_slice, b, 2);
	functions = d9__hot_functions_off(&threads, 0.05, &n);
	CU_ASSERT_PTR_NOT_NULL_FATAL(functions);
	CU_ASSERT_EQUAL_FATAL(n, 2);
	CU_ASSERT_STRING_EQUAL(functions[0].frame.function, "nap");
	CU_ASSERT_EQUAL(functions[0].n, 40);
	CU_ASSERT_EQUAL(functions[1].n, 5);
	free(functions);
	d9__hot_threads_release(&threads);
	free_stack(a);
	free_stack(b);
}

/* The thread of |sample|, which left the CPU at |ns| in a slice that ends at |slice_ns|. */
static struct d9__hot_thread *leave(const struct d9__sampled *sample, uint64_t ns,
				    uint64_t slice_ns, const struct d9__stack *stack)
{
	struct d9__hot_thread *thread = d9__hot_threads_add(&threads, sample, ns, stack, NULL);

	CU_ASSERT_PTR_NOT_NULL_FATAL(thread);
	thread->absence.slice_ns = slice_ns;
	return thread;
}

static void check_off_ns(double share, uint64_t nap_ns, uint64_t save_ns)
{
	struct d9__hot_function *functions;
	size_t n;

	functions = d9__hot_functions_off(&threads, share, &n);
	CU_ASSERT_PTR_NOT_NULL_FATAL(functions);
	CU_ASSERT_EQUAL_FATAL(n, 2);
	CU_ASSERT_STRING_EQUAL(functions[nap_ns < save_ns].frame.function, "nap");
	CU_ASSERT_EQUAL(functions[nap_ns < save_ns].ns, nap_ns);
	CU_ASSERT_STRING_EQUAL(functions[nap_ns > save_ns].frame.function, "save");
	CU_ASSERT_EQUAL(functions[nap_ns > save_ns].ns, save_ns);
	free(functions);
}

static void test_functions_off_the_cpu_are_told_by_time(void)
{
	const struct d9__sampled away = { .tid = 11, .off_cpu = true, .in_slice = true },
				 blocked = { .tid = 11, .off_cpu = true };
	struct d9__stack *a = make_stack(1, 0x400200, "save", true),
			 *b = make_stack(2, 0x400300, "nap", true);
	struct d9__hot_thread *thread;

	/* Until the next sample, an event, and that one with the slice's end before: 10 + 20 + 100
	 * (5). */
	leave(&away, 1000, 2000, b);
	thread = leave(&away, 1010, 2000, b);
	d9__absence_end(&thread->absence, 1030);
	d9__absence_end(&thread->absence, 1040);
	thread = leave(&away, 1995, 2000, b);
	d9__absence_end(&thread->absence, 2095);
	/* A call that blocked, a switch in it, and one whose thread gave no sign any more. */
	thread = leave(&blocked, 4000, 0, a);
	d9__absence_blocked(&thread->absence, 400);
	thread = leave(&away, 4100, 5000, b);
	thread->absence.is_told = true;
	leave(&away, 4400, 5000, b);
	check_off_ns(1, 130, 400);
	check_off_ns(0.05, 700, 400);
	d9__hot_threads_release(&threads);
	free_stack(a);
	free_stack(b);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "functions are told by thread, most often first",
		  test_functions_are_told_by_thread_most_often_first },
		{ "code without names is one per module",
		  test_code_without_names_is_one_per_module },
		{ "a thread leaves the CPU in the program and not in the kernel",
		  test_a_thread_leaves_the_cpu_in_the_program_and_not_in_the_kernel },
		{ "a thread is not told inside of the recorder",
	  test_a_thread_is_not_told_inside_of_the_recorder },
	{ "switches of slices are scaled, and calls that block are not",
		  test_switches_of_slices_are_scaled_and_calls_that_block_are_not },
		{ "functions off the CPU are told by time",
		  test_functions_off_the_cpu_are_told_by_time },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("hot_threads", tests);
}
