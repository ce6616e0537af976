/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk by itself: the rows are those that each test gives to its addresses, where no code is; the stacks
 * are arrays, and pages with nothing mapped around them.
 */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "sample/unwind.h"
#include "sample/unwind_table.h"
#include "support/d9_test.h"

#define WORDS 1024
#define CODE  0x1000000u /* where functions of tests are; nothing is mapped there */
#define BARE  0x7000000u /* code without rows, of 0x1000 bytes */
#define SECRET UINT64_C(0x5ec2e7c0de5ec2e7) /* a word of a stack that is no address */
#define ROWS  8

/* ---- tables of the test's own ---- */

struct d9__unwind_table {
	uint64_t number;
};

static struct d9__unwind_table table = { 1 };
static bool no_table;
static struct d9__unwind_row rows[ROWS]; /* of the function at CODE + i * 0x100 */
static bool any_row;                     /* whatever the address, a row made of it */
static unsigned n_found;

const struct d9__unwind_table *d9__unwind_table_now(void)
{
	return no_table ? NULL : &table;
}

uint64_t d9__unwind_table_number(const struct d9__unwind_table *of)
{
	return of->number;
}

static uint64_t mixed(uint64_t x)
{
	x = (x ^ x >> 31) * UINT64_C(0x9e3779b97f4a7c15);
	return x ^ x >> 29;
}

/* A row that is the same at each look at |pc|, until the cache may forget it. */
static const struct d9__unwind_row *made_row(uintptr_t pc)
{
	static struct d9__unwind_row made[4096];
	uint64_t seed = mixed(pc);
	struct d9__unwind_row *row = &made[seed % 4096];

	row->cfa = (uint8_t)((seed >> 12) % (D9__CFA_REGISTER + 3));
	if (row->cfa >= D9__CFA_REGISTER)
		row->cfa = row->cfa == D9__CFA_REGISTER ? D9__CFA_REGISTER + 10 : D9__CFA_RSP;
	row->rbp = (uint8_t)((seed >> 20) % D9__RBP_RULES);
	row->cfa_offset = (int32_t)((seed >> 24) % 16) * 8 - 24;
	row->rbp_offset = (int16_t)((int)((seed >> 32) % 16) * 8 - 96);
	if ((seed >> 40) % 8 == 0)
		row->cfa_offset = (int32_t)(seed >> 32);
	return row;
}

bool d9__unwind_table_find(const struct d9__unwind_table *of, uintptr_t pc, const struct d9__unwind_row **row)
{
	(void)of;
	n_found++;
	*row = NULL;
	if (any_row && mixed(pc) % 16)
		*row = made_row(pc);
	else if (pc >= CODE && pc < CODE + ROWS * 0x100)
		*row = &rows[(pc - CODE) / 0x100];
	return *row || (pc >= BARE && pc < BARE + 0x1000);
}

/* ---- a thread and its stack ---- */

static uintptr_t stack[WORDS];
static struct d9__unwind_thread thread;
static struct d9__registers registers;
static uint64_t pcs[D9__UNWIND_MAX];

static uintptr_t at(size_t word)
{
	return (uintptr_t)&stack[word];
}

static uintptr_t code(unsigned function)
{
	return CODE + function * 0x100 + 0x10;
}

/* All rows but the last are one word of frame; the last ends the stack. */
static void reset(void)
{
	memset(stack, 0, sizeof(stack));
	memset(&thread, 0, sizeof(thread));
	memset(&registers, 0, sizeof(registers));
	memset(pcs, 0, sizeof(pcs));
	for (int i = 0; i < ROWS; i++)
		rows[i] = (struct d9__unwind_row){ .cfa = D9__CFA_RSP, .cfa_offset = 8 };
	rows[ROWS - 1].cfa = D9__CFA_END;
	thread.low = at(0);
	thread.high = at(WORDS);
	thread.pid = getpid();
	registers.ip = code(0);
	registers.sp = at(100);
	table.number++;
	no_table = any_row = false;
}

static struct d9__unwound walk(void)
{
	return d9__unwind(&thread, &registers, pcs, D9__UNWIND_MAX);
}

/* The walk stops for |stop| after |n| frames, and counts that. */
static void expect(uint32_t n, enum d9__unwind_stop stop)
{
	uint32_t before = thread.stops[stop];
	struct d9__unwound unwound = walk();

	CU_ASSERT_EQUAL(unwound.n, n);
	CU_ASSERT_EQUAL(unwound.stop, stop);
	CU_ASSERT_EQUAL(unwound.truncated, stop != D9__STOP_END);
	CU_ASSERT_EQUAL(thread.stops[stop], before + 1);
}

static void row(unsigned function, enum d9__cfa_rule cfa, int32_t offset)
{
	rows[function] = (struct d9__unwind_row){ .cfa = (uint8_t)cfa, .cfa_offset = offset };
}

static void rbp(unsigned function, enum d9__rbp_rule rule, int16_t offset)
{
	rows[function].rbp = (uint8_t)rule;
	rows[function].rbp_offset = offset;
}

/* ---- the CFA ---- */

static void test_walk_follows_rows_from_frame_to_frame_to_the_end(void)
{
	reset();
	row(0, D9__CFA_RSP, 24);
	stack[102] = code(1);
	row(1, D9__CFA_RSP, 8);
	stack[103] = code(7);

	expect(3, D9__STOP_END);

	CU_ASSERT_EQUAL(pcs[0], code(0));
	CU_ASSERT_EQUAL(pcs[1], code(1));
	CU_ASSERT_EQUAL(pcs[2], code(7));
}

static void test_walk_restores_rbp_and_uses_it_further_out(void)
{
	reset();
	row(0, D9__CFA_RSP, 16);
	rbp(0, D9__RBP_AT_CFA, -16);
	stack[100] = at(200);
	stack[101] = code(1);
	row(1, D9__CFA_RBP, 16);
	rbp(1, D9__RBP_AT_CFA, -16);
	stack[200] = at(300);
	stack[201] = code(2);
	row(2, D9__CFA_RBP, 16);
	stack[301] = code(7);

	expect(4, D9__STOP_END);

	CU_ASSERT_EQUAL(pcs[3], code(7));
}

static void test_walk_reads_a_cfa_that_is_a_word_of_the_frame(void)
{
	reset();
	registers.bp = at(110);
	row(0, D9__CFA_AT_RBP, -8);
	rbp(0, D9__RBP_AT_RBP, 0);
	stack[109] = at(150);
	stack[149] = code(1);
	stack[110] = at(170);
	row(1, D9__CFA_AT_RBP_8, 8);
	stack[171] = at(179);
	stack[179] = code(2);
	row(2, D9__CFA_AT_RSP_8, 16);
	stack[182] = at(190);
	stack[190] = code(7);

	expect(4, D9__STOP_END);

	CU_ASSERT_EQUAL(pcs[1], code(1));
	CU_ASSERT_EQUAL(pcs[2], code(2));
	CU_ASSERT_EQUAL(pcs[3], code(7));
}

static void test_walk_knows_whether_a_plt_entry_has_pushed_its_word(void)
{
	reset();
	row(0, D9__CFA_PLT, 11);
	stack[100] = code(7);
	stack[101] = code(6);
	registers.ip = CODE + 0x1a;
	expect(2, D9__STOP_END);
	CU_ASSERT_EQUAL(pcs[1], code(7));

	stack[101] = code(7);
	stack[100] = 3;
	registers.ip = CODE + 0x1b;
	expect(2, D9__STOP_END);
	CU_ASSERT_EQUAL(pcs[1], code(7));
}

/* ---- rule 1: bounds and alignment ---- */

static void test_walk_reads_aligned_words_inside_the_stack_only(void)
{
	reset();
	row(0, D9__CFA_RSP, 12);
	expect(1, D9__STOP_BOUNDS);

	reset();
	row(0, D9__CFA_RSP, (int32_t)(at(WORDS) - at(100)));
	stack[WORDS - 1] = code(7);
	expect(2, D9__STOP_END);
	rows[0].cfa_offset += 8;
	expect(1, D9__STOP_BOUNDS);

	reset();
	row(0, D9__CFA_RSP, 8);
	rbp(0, D9__RBP_AT_CFA, 4);
	stack[100] = code(7);
	expect(1, D9__STOP_BOUNDS);
	rbp(0, D9__RBP_AT_CFA, 32760);
	expect(1, D9__STOP_BOUNDS);
}

static void test_walk_reads_nothing_further_below_sp_than_the_red_zone(void)
{
	reset();
	registers.bp = at(100) - 128;
	row(0, D9__CFA_AT_RBP, 0);
	stack[84] = at(101);
	stack[100] = code(7);
	expect(2, D9__STOP_END);
	registers.bp -= 8;
	stack[83] = at(101);
	expect(1, D9__STOP_BOUNDS);

	/* Nor below the stack. */
	reset();
	registers.sp = at(4);
	registers.bp = at(0) - 8;
	row(0, D9__CFA_AT_RBP, 0);
	expect(1, D9__STOP_BOUNDS);
}

/* ---- rule 2: growth and depth ---- */

static void test_walk_stops_where_the_frame_is_not_above(void)
{
	reset();
	registers.bp = at(100) - 16;
	row(0, D9__CFA_RBP, 16);
	expect(1, D9__STOP_CFA);

	/* A cycle: the saved rbp leads back. */
	reset();
	registers.bp = at(110);
	row(0, D9__CFA_RBP, 16);
	rbp(0, D9__RBP_AT_CFA, -16);
	stack[110] = at(110);
	stack[111] = code(0);
	expect(2, D9__STOP_CFA);
}

static void test_walk_stops_after_as_many_frames_as_there_is_room_for(void)
{
	reset();
	for (size_t i = 100; i < WORDS; i++)
		stack[i] = code(1);
	expect(D9__UNWIND_MAX, D9__STOP_DEPTH);
	CU_ASSERT_EQUAL(d9__unwind(&thread, &registers, pcs, 5).n, 5);
	CU_ASSERT_EQUAL(d9__unwind(&thread, &registers, pcs, 0).n, 0);
	CU_ASSERT_EQUAL(d9__unwind(&thread, &registers, pcs, 4000).n, D9__UNWIND_MAX);

	/* A stack that just fits is complete. */
	stack[100 + D9__UNWIND_MAX - 2] = code(7);
	expect(D9__UNWIND_MAX, D9__STOP_END);
}

/* ---- rule 3: popped registers ---- */

static void test_register_whose_slot_is_below_sp_was_restored_already(void)
{
	reset();
	registers.bp = at(200);
	row(0, D9__CFA_RSP, 8);
	rbp(0, D9__RBP_AT_CFA, -16);
	stack[99] = at(300); /* what was there is of no account */
	stack[100] = code(1);
	row(1, D9__CFA_RBP, 16);
	stack[201] = code(7);

	expect(3, D9__STOP_END);
}

/* ---- rule 4: registers of the innermost frame, signal frames ---- */

static void test_other_registers_are_known_in_the_innermost_frame_only(void)
{
	reset();
	registers.all[10] = at(120);
	row(0, (enum d9__cfa_rule)(D9__CFA_REGISTER + 10), 8);
	stack[120] = code(1);
	row(1, D9__CFA_RSP, 8);
	stack[121] = code(7);
	expect(3, D9__STOP_END);

	row(1, (enum d9__cfa_rule)(D9__CFA_REGISTER + 10), 16);
	expect(2, D9__STOP_REGISTER);
}

/* A context that the kernel saved at |word|, of code at |pc|. */
static void put_context(size_t word, uintptr_t pc, uintptr_t sp, uintptr_t bp, uintptr_t r10)
{
	greg_t *saved = ((ucontext_t *)(void *)&stack[word])->uc_mcontext.gregs;

	saved[REG_RIP] = (greg_t)pc;
	saved[REG_RSP] = (greg_t)sp;
	saved[REG_RBP] = (greg_t)bp;
	saved[REG_R10] = (greg_t)r10;
}

static void test_signal_frame_gives_all_registers_back_and_an_exact_address(void)
{
	reset();
	stack[100] = code(1);
	row(1, D9__CFA_SIGNAL, 0);
	/* The first byte of a function: one byte before would be the function before it. */
	put_context(101, CODE + 0x300, at(400), at(50), at(500));
	row(2, D9__CFA_END, 0);
	row(3, (enum d9__cfa_rule)(D9__CFA_REGISTER + 10), 8);
	stack[500] = code(7);

	expect(4, D9__STOP_END);

	CU_ASSERT_EQUAL(pcs[2], CODE + 0x300);
	CU_ASSERT_EQUAL(pcs[3], code(7));
}

static void test_signal_frame_may_lead_down_but_not_for_ever(void)
{
	reset();
	stack[100] = code(1);
	row(1, D9__CFA_SIGNAL, 0);
	put_context(101, code(2), at(100), 0, 0);
	row(2, D9__CFA_RSP, 8);

	expect(D9__UNWIND_MAX, D9__STOP_DEPTH);
}

static void test_callers_are_looked_up_one_byte_before_their_address(void)
{
	reset();
	stack[100] = CODE + 0x200; /* the call was the last instruction of function 1 */
	row(1, D9__CFA_END, 0);

	expect(2, D9__STOP_END);
}

/* ---- rule 5: frame pointers ---- */

static void test_code_without_rows_is_left_by_its_frame_pointer(void)
{
	reset();
	registers.ip = BARE + 0x10;
	registers.bp = at(120);
	stack[120] = at(140);
	stack[121] = code(1);
	row(1, D9__CFA_NONE, 0);
	stack[140] = 0;
	stack[141] = code(7);
	expect(3, D9__STOP_END);
	CU_ASSERT_TRUE(walk().guessed);
	CU_ASSERT_EQUAL(thread.guesses, 4);

	no_table = true;
	expect(1, D9__STOP_NO_CODE);
}

static void test_frame_pointer_that_cannot_be_one_is_not_followed(void)
{
	uintptr_t wrong[] = { 0, at(99), at(120) + 4, at(WORDS - 1), at(WORDS), UINTPTR_MAX - 7 };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		reset();
		registers.ip = BARE + 0x10;
		registers.bp = wrong[i];
		expect(1, D9__STOP_NO_ROW);
	}
}

/* ---- what is no code ---- */

static void test_word_of_the_stack_that_is_no_address_of_code_is_never_written(void)
{
	/* By a row, of code that does not return there. */
	reset();
	stack[100] = code(1);
	stack[101] = SECRET;
	expect(2, D9__STOP_NO_CODE);
	CU_ASSERT_NOT_EQUAL(pcs[1], SECRET);

	/* The same when the rows come from the cache. */
	expect(2, D9__STOP_NO_CODE);

	/* By a frame pointer; a second one, which it leads to, is not looked at. */
	reset();
	registers.ip = BARE + 0x10;
	registers.bp = at(120);
	stack[120] = at(140);
	stack[121] = SECRET;
	stack[141] = code(7);
	expect(1, D9__STOP_NO_CODE);

	/* As the last that there is room for. */
	reset();
	stack[100] = code(1);
	stack[101] = code(1);
	stack[102] = SECRET;
	CU_ASSERT_EQUAL(d9__unwind(&thread, &registers, pcs, 4).n, 3);
	CU_ASSERT_EQUAL(d9__unwind(&thread, &registers, pcs, 4).n, 3);
	CU_ASSERT_EQUAL(d9__unwind(&thread, &registers, pcs, 3).n, 3);
	CU_ASSERT_EQUAL(d9__unwind(&thread, &registers, pcs, 3).stop, D9__STOP_DEPTH);
}

/* The processor ran it, so it is code, which may be newer than the tables. */
static void test_interrupted_address_is_kept_and_left_by_its_frame_pointer(void)
{
	reset();
	registers.ip = SECRET;
	registers.bp = at(120);
	stack[121] = code(7);
	expect(2, D9__STOP_END);
	CU_ASSERT_EQUAL(pcs[0], SECRET);
	CU_ASSERT_FALSE(walk().truncated);
	CU_ASSERT_TRUE(walk().guessed);
	no_table = true;
	expect(1, D9__STOP_NO_CODE);
}

/* What a signal interrupted stands on the stack, where the program may have written it. */
static void test_address_that_a_signal_frame_gives_back_is_looked_up(void)
{
	reset();
	stack[100] = code(1);
	row(1, D9__CFA_SIGNAL, 0);
	put_context(101, SECRET, at(400), at(420), 0);
	stack[421] = code(7);
	expect(2, D9__STOP_NO_CODE);
}

static void test_stack_made_by_hand_has_no_frame_of_address_zero_and_is_cut(void)
{
	reset();
	stack[100] = 0;
	expect(1, D9__STOP_NO_CODE);
	expect(1, D9__STOP_NO_CODE);
	CU_ASSERT_TRUE(walk().truncated);

	/* Nor is it whole because it begins at the top of its stack. */
	reset();
	registers.sp = at(WORDS - 2);
	stack[WORDS - 2] = BARE + 0x20;
	expect(2, D9__STOP_NO_ROW);
	CU_ASSERT_TRUE(walk().truncated);
}

/* An empty place of the cache is not the row of address 0. */
static void test_return_addresses_that_no_code_has_end_the_walk(void)
{
	for (uintptr_t pc = 1; pc < 4; pc++) {
		reset();
		stack[100] = code(1);
		stack[101] = pc;
		expect(2, D9__STOP_NO_CODE);
	}
}

static void test_stack_walked_by_other_means_is_told_up_to_what_is_no_code(void)
{
	const uint64_t others[] = { code(1), BARE + 1, SECRET, code(2) };

	reset();
	CU_ASSERT_EQUAL(d9__unwind_code(others, 4), 2);
	CU_ASSERT_EQUAL(d9__unwind_code(others, 2), 2);
	CU_ASSERT_EQUAL(d9__unwind_code(others, 0), 0);
	CU_ASSERT_EQUAL(d9__unwind_code(others + 2, 2), 0);
	no_table = true;
	CU_ASSERT_EQUAL(d9__unwind_code(others, 4), 0);
}

/* ---- foreign stacks ---- */

static void test_foreign_stack_is_copied_once_and_walked(void)
{
	reset();
	thread.low = thread.high = 0;
	stack[100] = code(1);
	stack[101] = code(7);
	expect(3, D9__STOP_END);
	CU_ASSERT_EQUAL(thread.copies, 1);

	/* From a handler's stack to the thread's own, and to a third one, which is not read. */
	reset();
	thread.low = at(500);
	stack[100] = code(1);
	row(1, D9__CFA_SIGNAL, 0);
	put_context(101, code(2), at(600), 0, 0);
	stack[600] = code(3);
	stack[601] = code(7);
	expect(5, D9__STOP_END);
	stack[600] = code(1);
	put_context(601, code(2), (uintptr_t)&registers, 0, 0);
	expect(5, D9__STOP_BOUNDS);

	thread.pid = 0;
	expect(1, D9__STOP_BOUNDS);
}

/* Addresses of a thread that runs on mean nothing by the time: only its copy is read. */
static void test_a_copy_made_by_others_is_all_that_is_read_of_a_stack(void)
{
	uintptr_t copy[] = { 1, code(1), code(7) };
	struct d9__unwound unwound;

	reset();
	thread.low = thread.high = 0;
	registers.sp = 0x12340;
	row(0, D9__CFA_RSP, 16);
	unwound = d9__unwind_copied(&thread, &registers, (const uint8_t *)copy, sizeof(copy), pcs, D9__UNWIND_MAX);
	CU_ASSERT_EQUAL(unwound.n, 3);
	CU_ASSERT_EQUAL(unwound.stop, D9__STOP_END);
	CU_ASSERT_EQUAL(pcs[1], code(1));
	CU_ASSERT_EQUAL(pcs[2], code(7));
	unwound = d9__unwind_copied(&thread, &registers, (const uint8_t *)copy, 16, pcs, D9__UNWIND_MAX);
	CU_ASSERT_EQUAL(unwound.n, 2);
	CU_ASSERT_EQUAL(unwound.stop, D9__STOP_BOUNDS);
	unwound = d9__unwind_copied(&thread, &registers, (const uint8_t *)copy, 0, pcs, D9__UNWIND_MAX);
	CU_ASSERT_EQUAL(unwound.n, 1);
	/* It leads to a live stack, whose words are others by now; and from an address that no stack has. */
	row(1, D9__CFA_SIGNAL, 0);
	put_context(101, code(2), at(600), 0, 0);
	unwound = d9__unwind_copied(&thread, &registers, (const uint8_t *)copy, sizeof(copy), pcs, D9__UNWIND_MAX);
	CU_ASSERT_EQUAL(unwound.n, 2);
	registers.sp = 0x12344;
	unwound = d9__unwind_copied(&thread, &registers, (const uint8_t *)copy, sizeof(copy), pcs, D9__UNWIND_MAX);
	CU_ASSERT_EQUAL(unwound.n, 1);
	CU_ASSERT_EQUAL(thread.copies, 0);
}

static void test_stack_that_ends_at_a_guard_page_is_read_up_to_it(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *pages = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uintptr_t *end = (uintptr_t *)(void *)(pages + 2 * page);

	CU_ASSERT_PTR_NOT_EQUAL_FATAL(pages, MAP_FAILED);
	mprotect(pages + 2 * page, page, PROT_NONE);
	reset();
	registers.sp = (uintptr_t)(end - 2);
	end[-2] = code(1);
	end[-1] = code(2);
	expect(3, D9__STOP_BOUNDS);
	/* In the guard page, and where nothing is. */
	registers.sp = (uintptr_t)(end + 2);
	expect(1, D9__STOP_BOUNDS);
	registers.sp = 8;
	expect(1, D9__STOP_BOUNDS);
	registers.sp = UINTPTR_MAX - 7;
	expect(1, D9__STOP_CFA);
	munmap(pages, 3 * page);
}

/* ---- anything ---- */

static uintptr_t random_word(uint64_t *seed, uintptr_t low, uintptr_t high)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	if (*seed >> 60 < 3)
		return low + (*seed >> 20) % (high - low + 64) - 32;
	if (*seed >> 60 < 12)
		return low + (*seed >> 20) % (high - low) / 8 * 8;
	return *seed >> 60 < 15 ? mixed(*seed) : CODE;
}

static void test_corrupt_stacks_end_within_bounds(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), words = page / sizeof(uintptr_t);
	uint8_t *pages = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uintptr_t *word = (uintptr_t *)(void *)(pages + page), low = (uintptr_t)word, high = low + page;
	uint64_t seed = 1, n_frames = 0;

	CU_ASSERT_PTR_NOT_EQUAL_FATAL(pages, MAP_FAILED);
	mprotect(pages + page, page, PROT_READ | PROT_WRITE);
	reset();
	any_row = true;
	thread.low = low;
	thread.high = high;
	for (int i = 0; i < 100000; i++) {
		if (i % 100 == 0)
			for (size_t k = 0; k < words; k++)
				word[k] = random_word(&seed, low, high);
		registers.ip = random_word(&seed, low, high);
		registers.sp = random_word(&seed, low, high) & ~(uintptr_t)7;
		registers.bp = random_word(&seed, low, high);
		registers.all[10] = random_word(&seed, low, high);
		n_frames += walk().n;
	}
	CU_ASSERT_TRUE(n_frames >= 100000);
	for (int i = 0; i < D9__STOPS; i++)
		CU_ASSERT_NOT_EQUAL(thread.stops[i] + (i == D9__STOP_DEPTH), 0);
	printf(" %.1f frames on average ", (double)n_frames / 100000);
	munmap(pages, 3 * page);
}

/* ---- the cache ---- */

static void test_cache_is_forgotten_with_the_version_of_the_tables(void)
{
	reset();
	stack[100] = code(7);
	expect(2, D9__STOP_END);
	n_found = 0;
	expect(2, D9__STOP_END);
	CU_ASSERT_EQUAL(n_found, 0);

	row(0, D9__CFA_RSP, 16);
	stack[101] = code(6);
	table.number++;
	walk();
	CU_ASSERT_NOT_EQUAL(n_found, 0);
	CU_ASSERT_EQUAL(pcs[1], code(6));
}

static void test_registers_are_those_of_the_context(void)
{
	ucontext_t context = { 0 };
	greg_t *saved = context.uc_mcontext.gregs;

	saved[REG_RIP] = 1;
	saved[REG_RSP] = 2;
	saved[REG_RBP] = 3;
	saved[REG_R10] = 4;
	saved[REG_RCX] = 5;
	d9__registers_of(&registers, &context);
	CU_ASSERT_EQUAL(registers.ip, 1);
	CU_ASSERT_EQUAL(registers.sp, 2);
	CU_ASSERT_EQUAL(registers.bp, 3);
	CU_ASSERT_EQUAL(registers.all[10], 4);
	CU_ASSERT_EQUAL(registers.all[2], 5);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "a walk follows rows from frame to frame to the end",
		  test_walk_follows_rows_from_frame_to_frame_to_the_end },
		{ "a walk restores rbp and uses it further out",
		  test_walk_restores_rbp_and_uses_it_further_out },
		{ "a walk reads a CFA that is a word of the frame",
		  test_walk_reads_a_cfa_that_is_a_word_of_the_frame },
		{ "a walk knows whether a PLT entry has pushed its word",
		  test_walk_knows_whether_a_plt_entry_has_pushed_its_word },
		{ "a walk reads aligned words inside the stack only",
		  test_walk_reads_aligned_words_inside_the_stack_only },
		{ "a walk reads nothing further below sp than the red zone",
		  test_walk_reads_nothing_further_below_sp_than_the_red_zone },
		{ "a walk stops where the frame is not above",
		  test_walk_stops_where_the_frame_is_not_above },
		{ "a walk stops after as many frames as there is room for",
		  test_walk_stops_after_as_many_frames_as_there_is_room_for },
		{ "a register whose slot is below sp was restored already",
		  test_register_whose_slot_is_below_sp_was_restored_already },
		{ "other registers are known in the innermost frame only",
		  test_other_registers_are_known_in_the_innermost_frame_only },
		{ "a signal frame gives all registers back and an exact address",
		  test_signal_frame_gives_all_registers_back_and_an_exact_address },
		{ "a signal frame may lead down but not for ever",
		  test_signal_frame_may_lead_down_but_not_for_ever },
		{ "callers are looked up one byte before their address",
		  test_callers_are_looked_up_one_byte_before_their_address },
		{ "code without rows is left by its frame pointer",
		  test_code_without_rows_is_left_by_its_frame_pointer },
		{ "a frame pointer that cannot be one is not followed",
		  test_frame_pointer_that_cannot_be_one_is_not_followed },
		{ "a word of the stack that is no address of code is never written",
		  test_word_of_the_stack_that_is_no_address_of_code_is_never_written },
		{ "the interrupted address is kept, and left by its frame pointer",
		  test_interrupted_address_is_kept_and_left_by_its_frame_pointer },
		{ "an address that a signal frame gives back is looked up",
		  test_address_that_a_signal_frame_gives_back_is_looked_up },
		{ "a stack made by hand has no frame of address zero, and is cut",
		  test_stack_made_by_hand_has_no_frame_of_address_zero_and_is_cut },
		{ "return addresses that no code has end the walk",
		  test_return_addresses_that_no_code_has_end_the_walk },
		{ "a stack walked by other means is told up to what is no code",
		  test_stack_walked_by_other_means_is_told_up_to_what_is_no_code },
		{ "a foreign stack is copied once and walked",
		  test_foreign_stack_is_copied_once_and_walked },
		{ "a copy made by others is all that is read of a stack",
		  test_a_copy_made_by_others_is_all_that_is_read_of_a_stack },
		{ "a stack that ends at a guard page is read up to it",
		  test_stack_that_ends_at_a_guard_page_is_read_up_to_it },
		{ "corrupt stacks end within bounds", test_corrupt_stacks_end_within_bounds },
		{ "the cache is forgotten with the version of the tables",
		  test_cache_is_forgotten_with_the_version_of_the_tables },
		{ "registers are those of the context", test_registers_are_those_of_the_context },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("unwind", tests);
}
