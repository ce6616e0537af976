/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <pthread.h>

#include "core/hook/fakes.h"
#include "hook/stubs.h"
#include "support/d9_test.h"

typedef void (*run_fn)(int fd, short what, void *arg);

static unsigned last_index, n_prepared;

static __attribute__((noinline)) void run(int fd, short what, void *arg, unsigned index);
D9__STUBS_DEFINE(pool, 64, void, run, (int fd, short what, void *arg), (fd, what, arg))
D9__STUBS_DEFINE(large_pool, 1024, void, run, (int fd, short what, void *arg), (fd, what, arg))
D9__STUBS_DEFINE(full_pool, 16, void, run, (int fd, short what, void *arg), (fd, what, arg))
D9__STUBS_DEFINE(tags_pool, 16, void, run, (int fd, short what, void *arg), (fd, what, arg))
D9__STUBS_DEFINE(threads_pool, 256, void, run, (int fd, short what, void *arg), (fd, what, arg))
D9__STUBS_DEFINE(sweep_pool, 16, void, run, (int fd, short what, void *arg), (fd, what, arg))

static void run(int fd, short what, void *arg, unsigned index)
{
	last_index = index;
	*(long *)arg += fd * 100 + what;
}

/* Callbacks and sites are only addresses here. */
static char places[512];

static void *wrap(struct d9__stubs *stubs, unsigned callback, unsigned site, uint32_t kind)
{
	return d9__stubs_wrap(stubs, &places[callback], &places[256 + site], kind);
}

static void test_stub_hands_its_arguments_and_its_number_to_the_body(void)
{
	long sum = 0;

	for (unsigned i = 0; i < 1024; i++) {
		((run_fn)large_pool.functions[i])(3, 7, &sum);
		if (last_index != i)
			CU_FAIL_FATAL("another stub's number");
	}
	CU_ASSERT_EQUAL(sum, 1024 * 307);
}

static void test_stub_stands_for_one_callback_site_and_kind(void)
{
	void *stub = wrap(&pool, 1, 1, 0);

	errno = 77;
	CU_ASSERT_PTR_EQUAL(wrap(&pool, 1, 1, 0), stub);
	CU_ASSERT_PTR_NOT_EQUAL(wrap(&pool, 2, 1, 0), stub);
	CU_ASSERT_PTR_NOT_EQUAL(wrap(&pool, 1, 2, 0), stub);
	CU_ASSERT_PTR_NOT_EQUAL(wrap(&pool, 1, 1, 1), stub);
	CU_ASSERT_EQUAL(errno, 77);

	struct d9__stub *slot = d9__stubs_find(&pool, stub);
	CU_ASSERT_PTR_NOT_NULL_FATAL(slot);
	CU_ASSERT_PTR_EQUAL(slot->callback, &places[1]);
	CU_ASSERT_PTR_EQUAL(slot->site, &places[257]);
	CU_ASSERT_PTR_EQUAL(d9__stub_at(&pool, (unsigned)(slot - pool.slots)), slot);
}

static void test_stub_given_as_a_callback_is_never_stacked(void)
{
	void *stub = wrap(&pool, 5, 1, 0), *again = d9__stubs_wrap(&pool, stub, &places[258], 0);

	CU_ASSERT_PTR_EQUAL(d9__stubs_unwrap(&pool, again), &places[5]);
	CU_ASSERT_PTR_EQUAL(again, wrap(&pool, 5, 2, 0));
	CU_ASSERT_PTR_EQUAL(d9__stubs_wrap(&pool, stub, &places[257], 0), stub);
	CU_ASSERT_PTR_EQUAL(d9__stubs_unwrap(&pool, &places[5]), &places[5]);
	CU_ASSERT_PTR_NULL(d9__stubs_wrap(&pool, NULL, &places[257], 0));
	CU_ASSERT_PTR_NULL(d9__stubs_find(&pool, (char *)stub + 1));
}

static void test_pool_nearly_full_shares_stubs_and_full_passes_through(void)
{
	/* 16 stubs: from the 13th on without site. */
	for (unsigned i = 0; i < 13; i++)
		CU_ASSERT_PTR_NOT_EQUAL(wrap(&full_pool, i, 1, 0), &places[i]);
	void *first = wrap(&full_pool, 0, 1, 0), *shared = wrap(&full_pool, 13, 1, 0);
	CU_ASSERT_PTR_EQUAL(wrap(&full_pool, 13, 2, 0), shared);
	CU_ASSERT_PTR_NULL((void *)d9__stubs_find(&full_pool, shared)->site);

	CU_ASSERT_PTR_NOT_EQUAL(wrap(&full_pool, 14, 1, 0), &places[14]);
	CU_ASSERT_PTR_NOT_EQUAL(wrap(&full_pool, 15, 1, 0), &places[15]);
	CU_ASSERT_EQUAL(full_pool.full, 0);
	CU_ASSERT_PTR_EQUAL(wrap(&full_pool, 16, 1, 0), &places[16]);
	CU_ASSERT_PTR_EQUAL(wrap(&full_pool, 16, 2, 0), &places[16]);
	CU_ASSERT_EQUAL(full_pool.full, 2);
	CU_ASSERT_PTR_EQUAL(wrap(&full_pool, 0, 1, 0), first);
	CU_ASSERT_PTR_EQUAL(wrap(&full_pool, 13, 9, 0), shared);
}

static void prepare(struct d9__stub *stub)
{
	n_prepared++;
	atomic_store(&stub->tag, stub->callback);
}

static void test_stub_is_prepared_once_before_it_is_out(void)
{
	tags_pool.prepare = prepare;
	void *stub = wrap(&tags_pool, 1, 1, 0);
	wrap(&tags_pool, 1, 1, 0);

	CU_ASSERT_EQUAL(n_prepared, 1);
	CU_ASSERT_PTR_EQUAL(atomic_load(&d9__stubs_find(&tags_pool, stub)->tag), &places[1]);
}

static void *wrap_all(void *arg)
{
	for (unsigned round = 0; round < 50; round++) {
		for (unsigned i = 0; i < 200; i++) {
			void *stub = wrap(&threads_pool, i, 1, 0);

			if (d9__stubs_unwrap(&threads_pool, stub) != &places[i])
				return arg;
		}
	}
	return NULL;
}

static void test_pool_used_by_several_threads_makes_one_stub_per_key(void)
{
	pthread_t threads[4];
	void *failed;

	for (size_t i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, wrap_all, places);
	for (size_t i = 0; i < 4; i++) {
		pthread_join(threads[i], &failed);
		CU_ASSERT_PTR_NULL(failed);
	}
	CU_ASSERT_EQUAL(threads_pool.used, 200);
	CU_ASSERT_EQUAL(threads_pool.full, 0);
}

static void test_stub_of_unmapped_code_is_never_matched_again(void)
{
	void *module = fake_open("user_now", RTLD_NOW | RTLD_LOCAL);
	void *callback = (void *)fake_function(module, "user_call"), *closure = (void *)16;
	void *stub = d9__stubs_wrap(&sweep_pool, callback, &places[256], 0);
	void *stays = d9__stubs_wrap(&sweep_pool, &places[1], &places[256], 0);
	void *made_at_run_time = d9__stubs_wrap(&sweep_pool, closure, &places[256], 0);

	d9__stubs_sweep();
	CU_ASSERT_PTR_EQUAL(d9__stubs_wrap(&sweep_pool, callback, &places[256], 0), stub);
	dlclose(module);
	d9__stubs_sweep();

	CU_ASSERT_PTR_NOT_EQUAL(d9__stubs_wrap(&sweep_pool, callback, &places[256], 0), stub);
	CU_ASSERT_PTR_EQUAL(d9__stubs_unwrap(&sweep_pool, stub), callback);
	CU_ASSERT_PTR_EQUAL(d9__stubs_wrap(&sweep_pool, &places[1], &places[256], 0), stays);
	CU_ASSERT_PTR_EQUAL(d9__stubs_wrap(&sweep_pool, closure, &places[256], 0), made_at_run_time);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "hands its arguments and its number to the body",
		  test_stub_hands_its_arguments_and_its_number_to_the_body },
		{ "stands for one callback, site and kind",
		  test_stub_stands_for_one_callback_site_and_kind },
		{ "given as a callback is never stacked",
		  test_stub_given_as_a_callback_is_never_stacked },
		{ "nearly full shares stubs, and full passes through",
		  test_pool_nearly_full_shares_stubs_and_full_passes_through },
		{ "is prepared once before it is out",
		  test_stub_is_prepared_once_before_it_is_out },
		{ "used by several threads makes one stub per key",
		  test_pool_used_by_several_threads_makes_one_stub_per_key },
		{ "of unmapped code is never matched again",
		  test_stub_of_unmapped_code_is_never_matched_again },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("stubs", tests);
}
