/* SPDX-License-Identifier: Apache-2.0 */
/* Gaps, the live set, and samples taken by threads, without an allocator in between. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <dial9/memory.h>
#include <dial9/options.h>
#include <dial9/recorder.h>

#include "base/thread.h"
#include "sample/alloc.h"
#include "sample/alloc_gap.h"
#include "support/d9_test.h"

#define PER_SIZE 200000

/* ---- gaps ---- */

/* How many of |n| allocations of |size| bytes are sampled. */
static unsigned sampled(uint64_t seed, uint64_t rate, size_t size, unsigned n)
{
	uint64_t left = d9__alloc_gap(&seed, rate);
	unsigned count = 0;

	for (unsigned i = 0; i < n; i++) {
		if (left > size) {
			left -= size;
			continue;
		}
		count++;
		left = d9__alloc_gap(&seed, rate);
	}
	return count;
}

static void test_each_size_is_sampled_with_its_own_probability(void)
{
	static const size_t sizes[] = { 1, 100, 4096, 65536, 1 << 20 };
	static const uint64_t rates[] = { 64, 4096, 65536, 524288 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (size_t j = 0; j < sizeof(rates) / sizeof(rates[0]); j++) {
			double p = -expm1(-(double)sizes[i] / (double)rates[j]), expected = PER_SIZE * p;
			double deviation = sqrt(PER_SIZE * p * (1 - p)) + 1e-9;
			double got = sampled(7 + i, rates[j], sizes[i], PER_SIZE);

			/* The seeds are fixed, so this holds always or never. */
			CU_ASSERT_TRUE(fabs(got - expected) < 4 * deviation + 1);
		}
}

static void test_weighted_sums_of_ten_million_are_within_two_percent_of_the_truth(void)
{
	static const uint64_t rates[] = { 4096, 65536 };

	for (size_t j = 0; j < 2; j++) {
		uint64_t seed = 42, sizes = 1, left = d9__alloc_gap(&seed, rates[j]);
		double bytes = 0, count = 0, true_bytes = 0, true_count = 0;

		for (unsigned i = 0; i < 10000000; i++) {
			/* From 16 bytes to 64 KiB, as many of each power of two. */
			uint64_t random = d9__alloc_random(&sizes), power = 4 + random % 12;
			uint64_t size = (UINT64_C(1) << power) + (random >> 32) % (UINT64_C(1) << power);

			true_bytes += (double)size;
			true_count++;
			if (left > size) {
				left -= size;
				continue;
			}
			bytes += (double)size / -expm1(-(double)size / (double)rates[j]);
			count += 1 / -expm1(-(double)size / (double)rates[j]);
			left = d9__alloc_gap(&seed, rates[j]);
		}
		CU_ASSERT_TRUE(fabs(bytes / true_bytes - 1) < 0.02);
		CU_ASSERT_TRUE(fabs(count / true_count - 1) < 0.02);
	}
}

static void test_a_mean_of_one_byte_takes_everything_and_others_nothing_of_no_size(void)
{
	CU_ASSERT_EQUAL(sampled(1, 1, 0, 1000), 1000);
	CU_ASSERT_EQUAL(sampled(1, 1, 1, 1000), 1000);
	CU_ASSERT_EQUAL(sampled(1, 2, 0, 1000), 0);
}

static void test_equal_seeds_give_equal_gaps(void)
{
	uint64_t a = 5, b = 5, c = 6;
	bool differs = false;

	for (int i = 0; i < 100; i++) {
		uint64_t gap = d9__alloc_gap(&a, 1000);

		CU_ASSERT_EQUAL(gap, d9__alloc_gap(&b, 1000));
		differs |= gap != d9__alloc_gap(&c, 1000);
	}
	CU_ASSERT_TRUE(differs);
}

/* ---- the live set ---- */

static bool no_bits(void)
{
	for (size_t i = 0; i < D9__ALLOC_WORDS; i++)
		if (d9__alloc_seen.words[i])
			return false;
	return true;
}

static uint64_t address(uint64_t i)
{
	return 0x7f0000000000 + i * 48;
}

static void test_what_is_added_is_found_once_and_leaves_no_bit(void)
{
	enum { N = 20000 };
	struct d9__alloc_block out;

	CU_ASSERT_EQUAL(d9__alloc_live_init(), 0);
	for (uint64_t i = 0; i < N; i++)
		CU_ASSERT_EQUAL(d9__alloc_live_add(&(struct d9__alloc_block){ address(i), i, i + 5 }, true), D9__LIVE_ADDED);
	for (uint64_t i = 0; i < N; i++) {
		CU_ASSERT_TRUE(d9__alloc_maybe_live((void *)address(i)));
		CU_ASSERT_TRUE(d9__alloc_live_take(address(i), &out, true));
		CU_ASSERT_EQUAL(out.address, address(i));
		CU_ASSERT_EQUAL(out.size, i);
		CU_ASSERT_EQUAL(out.alloc_ns, i + 5);
		CU_ASSERT_FALSE(d9__alloc_live_take(address(i), &out, true));
	}
	CU_ASSERT_TRUE(no_bits());
}

static void test_an_address_that_comes_again_replaces_its_block(void)
{
	struct d9__alloc_block out;

	d9__alloc_live_add(&(struct d9__alloc_block){ 4096, 1, 10 }, true);
	CU_ASSERT_EQUAL(d9__alloc_live_add(&(struct d9__alloc_block){ 4096, 2, 20 }, true), D9__LIVE_ADDED);
	CU_ASSERT_TRUE(d9__alloc_live_take(4096, &out, true));
	CU_ASSERT_EQUAL(out.alloc_ns, 20);
	CU_ASSERT_TRUE(no_bits());
}

static void test_a_full_set_gives_up_the_oldest_and_says_so(void)
{
	enum { N = 80000 };
	struct d9__alloc_block out;
	uint64_t evicted = 0, found = 0, oldest = N;

	for (uint64_t i = 0; i < N; i++)
		evicted += d9__alloc_live_add(&(struct d9__alloc_block){ address(i), i, i }, true) == D9__LIVE_EVICTED;
	for (uint64_t i = 0; i < N; i++) {
		if (!d9__alloc_live_take(address(i), &out, true))
			continue;
		found++;
		oldest = i < oldest ? i : oldest;
	}
	CU_ASSERT_EQUAL(found + evicted, N);
	CU_ASSERT_TRUE(found > 60000 && found <= 65536);
	/* By part, and each has nearly as many as the others. */
	CU_ASSERT_TRUE(oldest > 8000);
	CU_ASSERT_TRUE(no_bits());
}

static void test_a_child_knows_nothing_of_its_parents_blocks(void)
{
	struct d9__alloc_block out;

	for (uint64_t i = 0; i < 1000; i++)
		d9__alloc_live_add(&(struct d9__alloc_block){ address(i), i, i }, true);
	d9__alloc_live_forget_in_child();
	CU_ASSERT_TRUE(no_bits());
	CU_ASSERT_FALSE(d9__alloc_live_take(address(3), &out, true));
}

/* ---- samples ---- */

#define THREADS 4
#define ROUND	2000

static void *hooked_malloc(size_t size)
{
	void *block = malloc(size);

	if (!d9__alloc_pass(size))
		d9__alloc_sample(block, size, __builtin_return_address(0));
	return block;
}

static void hooked_free(void *block)
{
	if (d9__alloc_maybe_live(block))
		d9__alloc_freed(block);
	free(block);
}

static bool begins(void)
{
	const struct timespec pause = { 0, 1000000 };
	time_t end = time(NULL) + 30;

	while (!d9__alloc_self.rate && time(NULL) < end) {
		hooked_free(hooked_malloc(1));
		nanosleep(&pause, NULL);
	}
	return d9__alloc_self.rate != 0;
}

static int start(struct d9_recorder **recorder, uint64_t rate)
{
	struct d9_options *options;
	int err = d9_options_new(&options);

	if (err)
		return err;
	d9_options_set_environment(options, false);
	d9_options_set_writer(options, D9_WRITER_NULL);
	d9_options_set_ring(options, D9_RING_MEMFD);
	d9_options_set_cpu_hz(options, 0);
	d9_options_set_memory(options, rate);
	d9_options_set_memory_live_set(options, true);
	err = d9_recorder_start(options, recorder);
	d9_options_free(options);
	return err;
}

static void *blocks[THREADS][ROUND];
static pthread_barrier_t barrier;

static void *work(void *number)
{
	size_t own = (size_t)number, other = (own + 1) % THREADS;

	for (int i = 0; i < ROUND; i++)
		blocks[own][i] = hooked_malloc(100 + (size_t)i);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < ROUND; i++)
		hooked_free(blocks[other][i]);
	return NULL;
}

static void test_threads_free_what_others_allocated(void)
{
	struct d9_recorder *recorder;
	pthread_t threads[THREADS];

	CU_ASSERT_EQUAL_FATAL(start(&recorder, 1), 0);
	d9__alloc_attach((const void *)(uintptr_t)start, NULL);
	CU_ASSERT_TRUE_FATAL(begins());
	pthread_barrier_init(&barrier, NULL, THREADS);
	for (size_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&barrier);
	CU_ASSERT_TRUE(no_bits());
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 10000), 0);
}

static void test_a_paused_thread_is_not_sampled_and_errno_stays(void)
{
	struct d9_recorder *recorder;
	void *first, *second;

	CU_ASSERT_EQUAL_FATAL(start(&recorder, 1), 0);
	CU_ASSERT_TRUE_FATAL(begins());
	d9_memory_resume(); /* one too many */
	d9_memory_pause();
	d9_memory_pause();
	d9_memory_resume();
	first = hooked_malloc(10);
	CU_ASSERT_TRUE(no_bits());
	d9_memory_resume();
	errno = EXDEV;
	second = hooked_malloc(10);
	CU_ASSERT_FALSE(no_bits());
	hooked_free(second);
	CU_ASSERT_EQUAL(errno, EXDEV);
	hooked_free(first);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 10000), 0);
}

/* From its very beginning, when it makes what it packs segments with. */
static void test_the_flush_thread_is_not_sampled(void)
{
	struct d9_recorder *recorder;
	uintptr_t flush;
	void *block;

	CU_ASSERT_EQUAL_FATAL(start(&recorder, 1), 0);
	CU_ASSERT_TRUE_FATAL(begins());
	flush = atomic_exchange(&d9__thread_flush, (uintptr_t)pthread_self());
	CU_ASSERT_TRUE(flush != 0 && flush != (uintptr_t)pthread_self());
	block = hooked_malloc(10);
	CU_ASSERT_TRUE(no_bits());
	atomic_store(&d9__thread_flush, flush);
	hooked_free(block);
	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 10000), 0);
}

static void test_a_probe_sees_whether_a_function_ends_in_hooks(void)
{
	d9__alloc_probe_begin();
	free(malloc(1));
	CU_ASSERT_FALSE(d9__alloc_probe_end());
	d9__alloc_probe_begin();
	hooked_free(hooked_malloc(1));
	CU_ASSERT_TRUE(d9__alloc_probe_end());
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "each size is sampled with its own probability", test_each_size_is_sampled_with_its_own_probability },
		{ "weighted sums of ten million are within two percent of the truth",
		  test_weighted_sums_of_ten_million_are_within_two_percent_of_the_truth },
		{ "a mean of one byte takes everything, others nothing of no size",
		  test_a_mean_of_one_byte_takes_everything_and_others_nothing_of_no_size },
		{ "equal seeds give equal gaps", test_equal_seeds_give_equal_gaps },
		{ "what is added is found once and leaves no bit", test_what_is_added_is_found_once_and_leaves_no_bit },
		{ "an address that comes again replaces its block", test_an_address_that_comes_again_replaces_its_block },
		{ "a full set gives up the oldest and says so", test_a_full_set_gives_up_the_oldest_and_says_so },
		{ "a child knows nothing of its parent's blocks", test_a_child_knows_nothing_of_its_parents_blocks },
		{ "threads free what others allocated", test_threads_free_what_others_allocated },
		{ "a paused thread is not sampled, and errno stays", test_a_paused_thread_is_not_sampled_and_errno_stays },
		{ "the flush thread is not sampled", test_the_flush_thread_is_not_sampled },
		{ "a probe sees whether a function ends in hooks", test_a_probe_sees_whether_a_function_ends_in_hooks },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("alloc", tests);
}
