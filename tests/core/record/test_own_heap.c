/* SPDX-License-Identifier: Apache-2.0 */
/* libdial9's heap, which no other test links. */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/heap.h"
#include "base/mapped.h"
#include "base/sandbox.h"
#include "base/sanitized.h"
#include "ring/clock.h"
#include "support/d9_test.h"

static bool holds(const uint8_t *bytes, size_t n, uint8_t byte)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i] != byte)
			return false;
	return true;
}

static void test_blocks_of_all_sizes_lie_apart_at_multiples_of_16(void)
{
	uint8_t *blocks[120];
	size_t n = 0;

	for (size_t size = 0; size < 200000; size += 1 + size / 10) {
		blocks[n] = d9__malloc(size);
		CU_ASSERT_PTR_NOT_NULL_FATAL(blocks[n]);
		CU_ASSERT_EQUAL((uintptr_t)blocks[n] % 16, 0);
		memset(blocks[n], (int)n, size);
		n++;
	}
	n = 0;
	for (size_t size = 0; size < 200000; size += 1 + size / 10) {
		CU_ASSERT(holds(blocks[n], size, (uint8_t)n));
		d9__free(blocks[n++]);
	}
}

static void test_realloc_keeps_what_was_there_and_calloc_clears_what_was_used_before(void)
{
	uint8_t *block = NULL, *cleared;

	for (size_t size = 1; size < 300000; size *= 3) {
		block = d9__realloc(block, size);
		CU_ASSERT_PTR_NOT_NULL_FATAL(block);
		CU_ASSERT(holds(block, size / 3, 7));
		memset(block, 7, size);
	}
	block = d9__realloc(block, 5000); /* out of a mapping */
	CU_ASSERT_PTR_NOT_NULL_FATAL(block);
	CU_ASSERT(holds(block, 5000, 7));
	block = d9__realloc(block, 10);
	CU_ASSERT(holds(block, 10, 7));
	d9__free(block);
	for (size_t size = 1; size < 100000; size *= 2) {
		block = d9__malloc(size);
		memset(block, 9, size);
		d9__free(block);
		cleared = d9__calloc(size, 1);
		CU_ASSERT(holds(cleared, size, 0));
		d9__free(cleared);
	}
}

static void test_what_no_memory_holds_is_refused_as_malloc_refuses_it(void)
{
	void *block = d9__malloc(100);

	errno = 0;
	CU_ASSERT_PTR_NULL(d9__malloc(SIZE_MAX));
	CU_ASSERT_EQUAL(errno, ENOMEM);
	CU_ASSERT_PTR_NULL(d9__malloc(PTRDIFF_MAX));
	CU_ASSERT_PTR_NULL(d9__calloc(SIZE_MAX / 2, 3));
	CU_ASSERT_PTR_NULL(d9__realloc(block, SIZE_MAX));
	errno = 0;
	CU_ASSERT_PTR_NULL(d9__reallocarray(block, SIZE_MAX / 2, 3));
	CU_ASSERT_EQUAL(errno, ENOMEM);
	d9__free(block);
	d9__free(NULL);
}

static void test_free_leaves_errno_alone(void)
{
	void *small = d9__malloc(10), *large = d9__malloc(1000000);

	errno = 123;
	d9__free(small);
	d9__free(large);
	CU_ASSERT_EQUAL(errno, 123);
}

static void test_texts_are_copied_and_made(void)
{
	char *copy = d9__strdup("a text"), *made = d9__text_of("%s %d", copy, 12);

	CU_ASSERT_STRING_EQUAL(copy, "a text");
	CU_ASSERT_STRING_EQUAL(made, "a text 12");
	d9__free(copy);
	d9__free(made);
}

static size_t pieces;

static void count_piece(void *arg, const void *memory, size_t bytes)
{
	(void)arg, (void)memory, (void)bytes;
	pieces++;
}

static size_t count_pieces(void)
{
	pieces = 0;
	d9__mapped_each(count_piece, NULL);
	return pieces;
}

static void test_what_was_freed_is_used_again(void)
{
	size_t before;

	d9__free(d9__malloc(1000));
	before = count_pieces();
	for (unsigned i = 0; i < 100000; i++)
		d9__free(d9__malloc(i % 32000));
	CU_ASSERT(count_pieces() <= before + 22); /* at most one region for each size */
	d9__free(d9__malloc(1000000));
	CU_ASSERT(count_pieces() <= before + 22);
}

/* ---- threads and signals ---- */

#define BLOCKS 64
#define ROUNDS 20000

struct churn {
	uint8_t *block[BLOCKS];
	uint16_t size[BLOCKS];
	uint32_t random;
	bool damaged;
};

static void change(struct churn *churn)
{
	unsigned i = (churn->random = churn->random * 1664525 + 1013904223) >> 16 & (BLOCKS - 1);

	churn->damaged |= churn->block[i] && !holds(churn->block[i], churn->size[i], (uint8_t)i);
	d9__free(churn->block[i]);
	churn->size[i] = (uint16_t)(churn->random >> 8 & 2047);
	churn->block[i] = d9__malloc(churn->size[i]);
	if (churn->block[i])
		memset(churn->block[i], (int)i, churn->size[i]);
}

static void *churn_thread(void *arg)
{
	for (int i = 0; i < ROUNDS; i++)
		change(arg);
	return NULL;
}

static void give_back(struct churn *churn)
{
	for (unsigned i = 0; i < BLOCKS; i++)
		d9__free(churn->block[i]);
	CU_ASSERT_FALSE(churn->damaged);
}

static void test_threads_share_it(void)
{
	struct churn churn[3] = { { .random = 1 }, { .random = 2 }, { .random = 3 } };
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, churn_thread, &churn[i]), 0);
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], NULL);
		give_back(&churn[i]);
	}
}

static struct churn in_handler;
static _Atomic(unsigned) handled;

static void on_signal(int number)
{
	(void)number;
	for (int i = 0; i < 10; i++)
		change(&in_handler);
	atomic_fetch_add(&handled, 1);
}

/* Handlers that find another thread, or the one that they interrupt, in the lists go on without waiting. */
static void test_signal_handlers_use_it_at_any_moment(void)
{
	struct churn churn = { .random = 5 };

	signal(SIGALRM, on_signal);
	for (unsigned i = 0; i < 500; i++) {
		const struct itimerval soon = { .it_value.tv_usec = 1 + i % 40 };

		setitimer(ITIMER_REAL, &soon, NULL);
		while (atomic_load(&handled) == i)
			change(&churn);
	}
	signal(SIGALRM, SIG_IGN);
	give_back(&churn);
	give_back(&in_handler);
}

static _Atomic(bool) done;

static void *churn_until_done(void *arg)
{
	while (!atomic_load(&done))
		change(arg);
	return NULL;
}

static void in_child(void)
{
	struct churn churn = { .random = 7 };

	d9__heap_fork_child();
	for (int i = 0; i < 1000; i++)
		change(&churn);
	_exit(churn.damaged);
}

static void test_a_child_uses_it_whatever_other_threads_did_at_the_fork(void)
{
	struct churn churn = { .random = 6 };
	pthread_t thread;
	int status, failed = 0;

	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, churn_until_done, &churn), 0);
	for (int i = 0; i < 100; i++) {
		pid_t pid = fork();

		if (!pid)
			in_child();
		failed += waitpid(pid, &status, 0) != pid || status;
	}
	CU_ASSERT_EQUAL(failed, 0);
	atomic_store(&done, true);
	pthread_join(thread, NULL);
	give_back(&churn);
}

/* Any system call but read(), write() and exit() ends this child. */
static void behind_a_filter(void *mapped)
{
	static void *blocks[100];

	prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	atomic_store(&d9__sandbox_shut, true);
	for (size_t i = 0; i < 100; i++)
		blocks[i] = d9__malloc(30000); /* more than a region has */
	d9__free(mapped);
	syscall(SYS_exit, blocks[99] || d9__malloc(1000000) || d9__map(4096) ? 1 : 0);
}

static void test_a_program_that_forbids_itself_system_calls_is_not_ended_by_ours(void)
{
	void *mapped;
	int status = 0;
	pid_t pid;

	if (D9__SANITIZED)
		return; /* a sanitizer makes calls of its own, and waits for ever */
	mapped = d9__malloc(1000000);
	pid = fork();
	if (!pid)
		behind_a_filter(mapped);
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_EQUAL(status, 0);
	d9__free(mapped);
}

static const CU_TestInfo tests[] = {
	{ "blocks of all sizes lie apart at multiples of 16", test_blocks_of_all_sizes_lie_apart_at_multiples_of_16 },
	{ "realloc keeps what was there and calloc clears what was used before", test_realloc_keeps_what_was_there_and_calloc_clears_what_was_used_before },
	{ "what no memory holds is refused as malloc refuses it", test_what_no_memory_holds_is_refused_as_malloc_refuses_it },
	{ "free leaves errno alone", test_free_leaves_errno_alone },
	{ "texts are copied and made", test_texts_are_copied_and_made },
	{ "what was freed is used again", test_what_was_freed_is_used_again },
	{ "threads share it", test_threads_share_it },
	{ "signal handlers use it at any moment", test_signal_handlers_use_it_at_any_moment },
	{ "a child uses it whatever other threads did at the fork", test_a_child_uses_it_whatever_other_threads_did_at_the_fork },
	{ "system calls are forbidden",
	  test_a_program_that_forbids_itself_system_calls_is_not_ended_by_ours },
	CU_TEST_INFO_NULL,
};

int main(void)
{
	if (d9__clock_under_valgrind()) {
		puts("valgrind has the C library's functions in its place");
		return 77;
	}
	return d9_test_main("own heap", tests);
}
