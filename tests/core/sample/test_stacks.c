/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks of coroutines, registered and not, as walks in signal handlers see them. */
#include "config.h"

#include <dial9/stack.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/sanitized.h"
#include "sample/stacks.h"
#include "sample/unwind.h"
#include "sample/unwind_table.h"
#include "support/d9_test.h"

#define PAGE	    ((size_t)4096)
#define SMALL_BYTES ((size_t)8192)
#define LARGE_BYTES ((size_t)65536)
#define DEPTH	    4

/* ---- samples ---- */

static struct d9__unwind_thread walker;
static struct d9__unwound unwound;
static uint64_t pcs[D9__UNWIND_MAX];

static void on_signal(int number, siginfo_t *info, void *context)
{
	struct d9__registers registers;

	(void)number;
	(void)info;
	d9__registers_of(&registers, context);
	unwound = d9__unwind(&walker, &registers, pcs, D9__UNWIND_MAX);
}

/* On a stack of its own: 8 KiB are too few for the kernel's frame of a handler with wide registers. */
static void install(void)
{
	static uint8_t memory[1 << 16];
	const stack_t stack = { .ss_sp = memory, .ss_size = sizeof(memory) };
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK };

	if (sigaltstack(&stack, NULL) || sigaction(SIGUSR1, &action, NULL))
		exit(99);
}

/* ---- a coroutine ---- */

static ucontext_t outside, inside;
static int depth = DEPTH;

static __attribute__((noinline)) void descend(int left)
{
	volatile uint8_t frame[1024];

	frame[0] = (uint8_t)left;
	if (left)
		descend(left - 1);
	else
		raise(SIGUSR1);
	frame[0]++;
}

static __attribute__((noinline)) void run_coroutine(void)
{
	descend(depth);
	__asm__ volatile("" : : : "memory");
}

/* A stack between two pages that nothing may touch. */
static uint8_t *make_stack(size_t bytes)
{
	uint8_t *memory = mmap(NULL, bytes + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED || mprotect(memory + PAGE, bytes, PROT_READ | PROT_WRITE))
		exit(99);
	return memory + PAGE;
}

static void free_stack(uint8_t *stack, size_t bytes)
{
	munmap(stack - PAGE, bytes + 2 * PAGE);
}

/* Run a coroutine on |stack|, in which a sample is taken. */
static void sample_on(uint8_t *stack, size_t bytes)
{
	memset(&unwound, 0, sizeof(unwound));
	getcontext(&inside);
	inside.uc_stack.ss_sp = stack;
	inside.uc_stack.ss_size = bytes;
	inside.uc_link = &outside;
	makecontext(&inside, run_coroutine, 0);
	swapcontext(&outside, &inside);
}

static bool is_in(uint64_t pc, void (*function)(void))
{
	return pc - (uintptr_t)function < 0x80;
}

static size_t frames_of_coroutine(void)
{
	size_t n = 0;

	for (uint32_t i = 0; i < unwound.n; i++)
		n += is_in(pcs[i], run_coroutine);
	return n;
}

/* ---- tests ---- */

static void test_a_registered_stack_is_walked_in_place_to_its_end(void)
{
	uint8_t *stack = make_stack(SMALL_BYTES);
	uint32_t copies = walker.copies;

	CU_ASSERT_EQUAL(d9_stack_register(stack, SMALL_BYTES), 0);
	sample_on(stack, SMALL_BYTES);
	CU_ASSERT_EQUAL(walker.copies, copies);
	CU_ASSERT_EQUAL(unwound.stop, D9__STOP_END);
	CU_ASSERT_EQUAL(frames_of_coroutine(), 1);
	CU_ASSERT_EQUAL(d9_stack_unregister(stack), 0);
	free_stack(stack, SMALL_BYTES);
}

static void test_a_stack_that_nobody_told_of_is_copied(void)
{
	uint8_t *stack = make_stack(SMALL_BYTES);
	uint32_t copies = walker.copies;

	sample_on(stack, SMALL_BYTES);
	CU_ASSERT_EQUAL(walker.copies, copies + 1);
	CU_ASSERT_EQUAL(unwound.stop, D9__STOP_END);
	CU_ASSERT_EQUAL(frames_of_coroutine(), 1);
	free_stack(stack, SMALL_BYTES);
}

/* Its outer frames lie further out than what is copied. */
static void test_a_deep_stack_is_whole_only_if_it_is_registered(void)
{
	uint8_t *stack = make_stack(LARGE_BYTES);

	depth = 20; /* frames of 1 KiB and more each */
	sample_on(stack, LARGE_BYTES);
	CU_ASSERT_NOT_EQUAL(unwound.stop, D9__STOP_END);
	CU_ASSERT_EQUAL(frames_of_coroutine(), 0);
	CU_ASSERT_EQUAL(d9_stack_register(stack, LARGE_BYTES), 0);
	sample_on(stack, LARGE_BYTES);
	CU_ASSERT_EQUAL(unwound.stop, D9__STOP_END);
	CU_ASSERT_EQUAL(frames_of_coroutine(), 1);
	CU_ASSERT_EQUAL(d9_stack_unregister(stack), 0);
	depth = DEPTH;
	free_stack(stack, LARGE_BYTES);
}

/* Each at the place of the one before, mostly. */
static void test_stacks_that_are_unmapped_right_after_a_switch_are_never_touched(void)
{
	size_t complete = 0;

	for (int i = 0; i < 200; i++) {
		uint8_t *stack = make_stack(SMALL_BYTES);

		CU_ASSERT_EQUAL(d9_stack_register(stack, SMALL_BYTES), 0);
		sample_on(stack, SMALL_BYTES);
		complete += unwound.stop == D9__STOP_END && frames_of_coroutine() == 1;
		CU_ASSERT_EQUAL(d9_stack_unregister(stack), 0);
		free_stack(stack, SMALL_BYTES);
		raise(SIGUSR1);
		complete += unwound.stop == D9__STOP_END && frames_of_coroutine() == 0;
	}
	CU_ASSERT_EQUAL(complete, 400);
}

static void test_ranges_that_are_no_stacks_are_refused(void)
{
	CU_ASSERT_EQUAL(d9_stack_register(NULL, 100), -EINVAL);
	CU_ASSERT_EQUAL(d9_stack_register((void *)0x1000, 0), -EINVAL);
	CU_ASSERT_EQUAL(d9_stack_register((void *)0x1000, SIZE_MAX), -EINVAL);
	CU_ASSERT_EQUAL(d9_stack_unregister((void *)0x1000), -ENOENT);
	CU_ASSERT_EQUAL(d9_stack_register((void *)0x2000, 0x1000), 0);
	CU_ASSERT_EQUAL(d9_stack_register((void *)0x1000, 0x1001), -EEXIST);
	CU_ASSERT_EQUAL(d9_stack_register((void *)0x2fff, 0x1000), -EEXIST);
	CU_ASSERT_EQUAL(d9_stack_register((void *)0x1000, 0x1000), 0);
	CU_ASSERT_EQUAL(d9_stack_unregister((void *)0x1000), 0);
	CU_ASSERT_EQUAL(d9_stack_unregister((void *)0x2000), 0);
}

static void test_each_of_many_stacks_is_found_and_no_other_address(void)
{
	uintptr_t low, high, base = 0x100000;
	size_t wrong = 0;

	/* In an order that is no order. */
	for (uintptr_t i = 0; i < D9__STACKS_MAX; i++)
		wrong += d9_stack_register((void *)(base + i * 2731 % D9__STACKS_MAX * 0x4000), 0x2000) != 0;
	CU_ASSERT_EQUAL(d9_stack_register((void *)0x1000, 0x1000), -ENOSPC);
	CU_ASSERT_EQUAL(d9_stack_register((void *)base, 0x1000), 0);
	CU_ASSERT_EQUAL(d9_stack_register((void *)base, 0x2000), 0);
	for (uintptr_t i = 0; i < D9__STACKS_MAX; i++) {
		uintptr_t at = base + i * 0x4000;

		wrong += !d9__stacks_find(at, &low, &high) || low != at || high != at + 0x2000;
		wrong += !d9__stacks_find(at + 0x1fff, &low, &high) || low != at;
		wrong += d9__stacks_find(at + 0x2000, &low, &high);
	}
	wrong += d9__stacks_find(base - 1, &low, &high);
	for (uintptr_t i = 0; i < D9__STACKS_MAX; i++)
		wrong += d9_stack_unregister((void *)(base + i * 0x4000)) != 0;
	wrong += d9__stacks_find(base, &low, &high);
	CU_ASSERT_EQUAL(wrong, 0);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "a registered stack is walked in place to its end", test_a_registered_stack_is_walked_in_place_to_its_end },
		{ "a stack that nobody told of is copied", test_a_stack_that_nobody_told_of_is_copied },
		{ "a deep stack is whole only if it is registered", test_a_deep_stack_is_whole_only_if_it_is_registered },
		{ "stacks that are unmapped right after a switch are never touched",
		  test_stacks_that_are_unmapped_right_after_a_switch_are_never_touched },
		{ "ranges that are no stacks are refused", test_ranges_that_are_no_stacks_are_refused },
		{ "each of many stacks is found and no other address",
		  test_each_of_many_stacks_is_found_and_no_other_address },
		CU_TEST_INFO_NULL,
	};
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	if (!D9__UNWIND_TABLES)
		return 77;
	/* This thread's own stack, as far as these tests use it. */
	walker.low = here - ((uintptr_t)1 << 20);
	walker.high = here + PAGE;
	walker.pid = getpid();
	d9__unwind_tables_want_rows();
	if (d9__unwind_tables_refresh(1))
		return 99;
	install();
	return d9_test_main("stacks", tests);
}
