/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hook/probe.h"
#include "support/d9_test.h"

/* A loop with a private field among noise. */
struct loop {
	uintptr_t noise[20];
	void *current;
	int counts[5];
	int more[5];
	struct {
		uintptr_t sec, usec;
	} timeout;
	struct {
		void **elements;
		unsigned count;
	} *pending;
};

static struct d9__probe probe;
static struct loop loop;

static void set_up(size_t unit)
{
	memset(&loop, 0x5a, sizeof(loop));
	d9__probe_init(&probe, &loop, sizeof(loop), unit);
}

static void test_probe_finds_the_word_that_follows_every_round(void)
{
	int first, second;

	set_up(sizeof(void *));
	loop.noise[3] = (uintptr_t)&first;
	loop.current = &first;
	d9__probe_keep_word(&probe, (uintptr_t)&first);
	loop.current = &second;
	d9__probe_keep_word(&probe, (uintptr_t)&second);
	loop.current = NULL;
	d9__probe_keep_word(&probe, 0);

	CU_ASSERT_EQUAL(d9__probe_result(&probe), (int)offsetof(struct loop, current));
}

static void test_probe_with_two_equal_words_is_not_unique(void)
{
	set_up(sizeof(void *));
	loop.current = &loop;
	loop.noise[7] = (uintptr_t)&loop;
	d9__probe_keep_word(&probe, (uintptr_t)&loop);

	CU_ASSERT_EQUAL(d9__probe_result(&probe), -ENOTUNIQ);

	loop.noise[7] = 0;
	d9__probe_drop_word(&probe, 0);
	CU_ASSERT_EQUAL(d9__probe_result(&probe), (int)offsetof(struct loop, current));
}

static void test_probe_whose_word_is_nowhere_says_so(void)
{
	set_up(sizeof(void *));
	d9__probe_keep_word(&probe, (uintptr_t)&loop);

	CU_ASSERT_EQUAL(d9__probe_result(&probe), -ENOENT);
}

static void test_probe_finds_a_row_of_ints(void)
{
	static const int rounds[2][5] = { { 3, 1, 4, 2, 5 }, { 2, 7, 1, 8, 3 } };

	set_up(sizeof(int));
	memcpy(loop.more, rounds[0], sizeof(loop.more));
	for (size_t i = 0; i < 2; i++) {
		memcpy(loop.counts, rounds[i], sizeof(loop.counts));
		d9__probe_keep_ints(&probe, rounds[i], 5);
	}

	CU_ASSERT_EQUAL(d9__probe_result(&probe), (int)offsetof(struct loop, counts));
}

static void test_probe_finds_a_pair_of_words_but_not_beyond_the_end(void)
{
	const uintptr_t wanted[2] = { 123456, 0 };

	set_up(sizeof(void *));
	loop.timeout.sec = 123456;
	loop.timeout.usec = 0;
	d9__probe_keep_words(&probe, wanted, 2);
	CU_ASSERT_EQUAL(d9__probe_result(&probe), (int)offsetof(struct loop, timeout));

	/* The first half alone lies in the window. */
	d9__probe_init(&probe, &loop, offsetof(struct loop, timeout) + 8, sizeof(void *));
	d9__probe_keep_words(&probe, wanted, 2);
	CU_ASSERT_EQUAL(d9__probe_result(&probe), -ENOENT);
}

static void test_probe_finds_a_pointer_to_an_array_of_pointers(void)
{
	void *elements[3] = { &probe, &loop, elements };
	struct {
		void **elements;
		unsigned count;
	} array = { elements, 3 };

	set_up(sizeof(void *));
	loop.noise[2] = 16; /* neither of these can be followed */
	loop.noise[3] = UINTPTR_MAX & ~(uintptr_t)7;
	loop.pending = (void *)&array;
	d9__probe_keep_pointer_array(&probe, elements, 3);
	CU_ASSERT_EQUAL(d9__probe_result(&probe), (int)offsetof(struct loop, pending));

	array.count = 2;
	d9__probe_keep_pointer_array(&probe, elements, 3);
	CU_ASSERT_EQUAL(d9__probe_result(&probe), -ENOENT);
}

static void test_probe_of_unmapped_memory_fails_without_a_fault_and_keeps_errno(void)
{
	void *gone = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	errno = 77;
	d9__probe_init(&probe, gone, 512, sizeof(void *));
	d9__probe_keep_word(&probe, 0);

	CU_ASSERT_EQUAL(d9__probe_result(&probe), -EFAULT);
	CU_ASSERT_EQUAL(errno, 77);
	munmap(gone, 4096);
}

static void test_probe_refuses_a_window_without_a_word(void)
{
	d9__probe_init(&probe, &loop, 4, 8);
	d9__probe_keep_word(&probe, 0);
	CU_ASSERT_EQUAL(d9__probe_result(&probe), -EINVAL);
}

static void test_probe_window_is_that_of_a_plausible_loop(void)
{
	void *small = calloc(1, 100), *right = calloc(1, 1000), *large = calloc(1, 100000);

	CU_ASSERT_EQUAL(d9__probe_window(small), 0);
	CU_ASSERT_TRUE(d9__probe_window(right) >= 1000 && d9__probe_window(right) < 1100);
	CU_ASSERT_EQUAL(d9__probe_window(large), 0);
	free(small);
	free(right);
	free(large);
}

static void test_probe_readable_ends_at_the_first_hole(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, 2 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mprotect(pages + page, page, PROT_NONE);

	CU_ASSERT_EQUAL(d9__probe_readable(pages + page - 100, 4096), 100);
	CU_ASSERT_EQUAL(d9__probe_readable(pages, 64), 64);
	CU_ASSERT_EQUAL(d9__probe_readable(pages + page, 64), 0);
	munmap(pages, 2 * page);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "finds the word that follows every round",
		  test_probe_finds_the_word_that_follows_every_round },
		{ "with two equal words is not unique",
		  test_probe_with_two_equal_words_is_not_unique },
		{ "whose word is nowhere says so", test_probe_whose_word_is_nowhere_says_so },
		{ "finds a row of ints", test_probe_finds_a_row_of_ints },
		{ "finds a pair of words but not beyond the end",
		  test_probe_finds_a_pair_of_words_but_not_beyond_the_end },
		{ "finds a pointer to an array of pointers",
		  test_probe_finds_a_pointer_to_an_array_of_pointers },
		{ "of unmapped memory fails without a fault and keeps errno",
		  test_probe_of_unmapped_memory_fails_without_a_fault_and_keeps_errno },
		{ "refuses a window without a word", test_probe_refuses_a_window_without_a_word },
		{ "window is that of a plausible loop",
		  test_probe_window_is_that_of_a_plausible_loop },
		{ "readable ends at the first hole", test_probe_readable_ends_at_the_first_hole },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("probe", tests);
}
