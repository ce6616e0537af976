/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/record/fixture.h"
#include "support/d9_test.h"

static char boot_id[32];

/* A ring of |kind| in the place of the one before; its name is of this process. */
static int start(enum d9__ring_kind kind, size_t max_bytes, const char *dir)
{
	const struct d9__ring_options options = { .kind = kind, .max_bytes = max_bytes,
						  .boot_id = boot_id, .trace_dir = dir,
						  .service = "ring test", .s3_bucket = "bucket" };

	snprintf(boot_id, sizeof(boot_id), "test-%d", (int)getpid());
	d9__ring_forget_in_child();
	d9__slot_forget_in_child();
	return d9__ring_start(&options);
}

static void test_ring_in_shared_memory_is_private_and_says_whose_it_is(void)
{
	struct d9__ring_header copy;
	struct stat st;
	int fd;

	CU_ASSERT_EQUAL_FATAL(start(D9__RING_AUTO, 0, "/traces"), 0);
	if (d9__ring.header->kind == D9__RING_SHM) {
		fd = open(d9__ring.path, O_RDONLY | O_CLOEXEC);
		CU_ASSERT_FATAL(fd >= 0 && fstat(fd, &st) == 0);
		CU_ASSERT_EQUAL(st.st_mode & 0777, 0600);
		CU_ASSERT_EQUAL(read(fd, &copy, sizeof(copy)), (ssize_t)sizeof(copy));
		CU_ASSERT_EQUAL(memcmp(copy.magic, D9__RING_MAGIC, 8), 0);
		CU_ASSERT_EQUAL(copy.pid, (uint32_t)getpid());
		CU_ASSERT(copy.start_time > 0);
		CU_ASSERT_STRING_EQUAL(copy.boot_id, boot_id);
		CU_ASSERT_STRING_EQUAL(copy.trace_dir, "/traces");
		CU_ASSERT_STRING_EQUAL(copy.service, "ring test");
		CU_ASSERT_STRING_EQUAL(copy.s3_bucket, "bucket");
		CU_ASSERT_STRING_EQUAL(copy.s3_prefix, "");
		CU_ASSERT_EQUAL(strlen(copy.kernel_boot_id), 36);
		/* Allocated, not sparse: writing into it can not raise SIGBUS later. */
		CU_ASSERT(st.st_blocks * 512 >= D9__RING_CHUNKS_AT + 8 * D9__CHUNK_SIZE);
		close(fd);
	}
	d9__ring_unlink();
	CU_ASSERT_STRING_EQUAL(d9__ring.path, "");
}

static void test_ring_outlives_what_maps_it(void)
{
	char path[sizeof(d9__ring.path)];
	struct d9__slot copy;
	struct d9__slot *slot;
	int fd;

	CU_ASSERT_EQUAL_FATAL(start(D9__RING_SHM, 0, NULL), 0);
	slot = d9__slot_self();
	d9__emit_poll_end(slot, UINT64_C(5000000000), 1);
	strcpy(path, d9__ring.path);
	copy = *slot;
	d9__ring_forget_in_child();
	d9__slot_forget_in_child();

	fd = open(path, O_RDONLY | O_CLOEXEC);
	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(pread(fd, &copy, sizeof(copy), D9__RING_SLOTS_AT), sizeof(copy));
	CU_ASSERT_EQUAL(copy.published >> 32, 1);
	CU_ASSERT_EQUAL(copy.open, UINT64_C(1) << 32 | 1);
	close(fd);
	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
}

static void test_ring_of_each_kind_works(void)
{
	static const enum d9__ring_kind kinds[] = { D9__RING_MEMFD, D9__RING_ANON, D9__RING_DISK };
	char dir[] = "/tmp/d9-ring-XXXXXX";

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	for (unsigned i = 0; i < 3; i++) {
		struct fixture_taken taken = { 0 };

		CU_ASSERT_EQUAL_FATAL(start(kinds[i], 0, dir), 0);
		CU_ASSERT_EQUAL(d9__ring.header->kind, kinds[i]);
		d9__emit_poll_end(d9__slot_self(), 1, 1);
		fixture_drain_all(&taken, NULL, NULL);
		CU_ASSERT_EQUAL(taken.events, 1);
		d9__ring_unlink();
	}
	CU_ASSERT_EQUAL(rmdir(dir), 0);
}

static void test_ring_grows_while_few_chunks_are_free_up_to_its_cap(void)
{
	struct d9__batch batch;
	unsigned grown = 0;

	CU_ASSERT_EQUAL_FATAL(start(D9__RING_MEMFD, 3 << 20, NULL), 0);
	CU_ASSERT_EQUAL(d9__chunk_free_count(), D9__CHUNKS_FIRST);
	while (d9__ring_grow() == 1)
		grown++;
	CU_ASSERT(d9__chunk_free_count() >= D9__CHUNKS_AHEAD); /* enough */
	for (unsigned i = 0; i < 60; i++) {
		d9__emit_poll_end(d9__slot_self(), 1, 1);
		d9__chunk_seal(d9__slot_self());
		d9__chunk_pop_full(&batch); /* and keep it */
		grown += d9__ring_grow() == 1;
	}
	CU_ASSERT_EQUAL(grown, 3);
	CU_ASSERT_EQUAL(d9__ring.header->chunk_count, 48);
	CU_ASSERT_EQUAL(fixture_lost_for(0, D9__LOSS_NO_CHUNK), 12);
}

/* Fill one chunk after the other, and keep them: how many events found none. */
static uint64_t fill_chunks(unsigned n)
{
	struct d9__batch batch;

	for (unsigned i = 0; i < n; i++) {
		d9__emit_poll_end(d9__slot_self(), 1, 1);
		d9__chunk_seal(d9__slot_self());
		d9__chunk_pop_full(&batch);
	}
	return fixture_lost_for(0, D9__LOSS_NO_CHUNK);
}

static void test_ring_grows_under_a_thread_that_finds_no_chunk_free(void)
{
	CU_ASSERT_EQUAL_FATAL(start(D9__RING_MEMFD, 3 << 20, NULL), 0);
	d9__ring_let_threads_grow(true);
	CU_ASSERT_EQUAL(fill_chunks(20), 0);
	CU_ASSERT_EQUAL(d9__ring.header->chunk_count, 20);
	/* The flush thread goes on where threads were. */
	CU_ASSERT_EQUAL(d9__ring_grow(), 1);
	CU_ASSERT_EQUAL(d9__ring.header->chunk_count, 36);
	CU_ASSERT_EQUAL(fill_chunks(30), 2);
	CU_ASSERT_EQUAL(d9__ring.header->chunk_count, 48);
}

static void test_ring_grows_under_no_thread_that_may_not(void)
{
	struct rlimit before, limit;

	CU_ASSERT_EQUAL_FATAL(start(D9__RING_MEMFD, 3 << 20, NULL), 0);
	d9__ring_let_threads_grow(false);
	CU_ASSERT_EQUAL(fill_chunks(10), 2);

	/* Files of this process may not be as long as the ring might become. */
	getrlimit(RLIMIT_FSIZE, &before);
	limit = (struct rlimit){ 2 << 20, before.rlim_max };
	setrlimit(RLIMIT_FSIZE, &limit);
	CU_ASSERT_EQUAL_FATAL(start(D9__RING_MEMFD, 3 << 20, NULL), 0);
	setrlimit(RLIMIT_FSIZE, &before);
	d9__ring_let_threads_grow(true);
	CU_ASSERT_EQUAL(fill_chunks(10), 2);
}

static void test_ring_in_flight_mode_grows_only_if_nothing_can_be_overwritten(void)
{
	CU_ASSERT_EQUAL_FATAL(start(D9__RING_MEMFD, 3 << 20, NULL), 0);
	d9__ring_let_threads_grow(true);
	d9__chunk_set_recycling(true);
	for (unsigned i = 0; i < 20; i++) {
		d9__emit_poll_end(d9__slot_self(), 1, 1);
		d9__chunk_seal(d9__slot_self());
	}
	CU_ASSERT_EQUAL(d9__ring.header->chunk_count, D9__CHUNKS_FIRST);
	CU_ASSERT_EQUAL(fill_chunks(20), 0);
	CU_ASSERT(d9__ring.header->chunk_count > D9__CHUNKS_FIRST);
	d9__chunk_set_recycling(false);
}

/* Pages of [from, to) in the ring that this process has; -1: unknown. */
static int present(size_t from, size_t to)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC), n = 0;

	for (size_t at = from; at < to && n >= 0; at += page) {
		uint64_t word, index = (uintptr_t)(d9__ring.base + at) / page;

		if (pread(fd, &word, sizeof(word), (off_t)(index * sizeof(word))) != sizeof(word))
			n = -1;
		else
			n += (int)(word >> 63);
	}
	close(fd);
	return n;
}

static void test_ring_begins_with_its_chunks_in_memory_and_not_with_the_slots_of_threads_to_come(void)
{
	static const enum d9__ring_kind kinds[] = { D9__RING_MEMFD, D9__RING_ANON };
	const size_t chunks = D9__CHUNKS_FIRST * D9__CHUNK_SIZE, page = (size_t)sysconf(_SC_PAGESIZE);

	for (unsigned i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL_FATAL(start(kinds[i], 0, NULL), 0);
		CU_ASSERT_EQUAL(present(D9__RING_CHUNKS_AT, D9__RING_CHUNKS_AT + chunks),
				(int)(chunks / page));
		CU_ASSERT_EQUAL(present(D9__RING_SLOTS_AT, D9__RING_SLOTS_AT + 1), 1);
		CU_ASSERT_EQUAL(present(D9__RING_SLOTS_AT + page, D9__RING_LOSSES_AT), 0);
	}
}

static void test_ring_under_a_file_size_limit_is_anonymous(void)
{
	struct rlimit old, limit;

	getrlimit(RLIMIT_FSIZE, &old);
	limit = old;
	limit.rlim_cur = 4096;
	setrlimit(RLIMIT_FSIZE, &limit);
	CU_ASSERT_EQUAL(start(D9__RING_AUTO, 0, NULL), 0); /* and no SIGXFSZ */
	setrlimit(RLIMIT_FSIZE, &old);
	CU_ASSERT_EQUAL(d9__ring.header->kind, D9__RING_ANON);
	CU_ASSERT_NOT_EQUAL(d9__ring.why[0], '\0');
}

static void test_ring_with_a_bad_name_is_refused(void)
{
	struct d9__ring_options options = { .kind = D9__RING_SHM, .boot_id = "../x" };

	d9__ring_forget_in_child();
	d9__slot_forget_in_child();
	CU_ASSERT_EQUAL(d9__ring_start(&options), -EINVAL);
	options.boot_id = NULL;
	CU_ASSERT_EQUAL(d9__ring_start(&options), -EINVAL);
	CU_ASSERT_PTR_NULL(d9__ring.base);
}

static void test_ring_that_exists_is_kept_by_a_second_start(void)
{
	uint8_t *base;

	CU_ASSERT_EQUAL_FATAL(start(D9__RING_ANON, 0, NULL), 0);
	base = d9__ring.base;
	CU_ASSERT_EQUAL(d9__ring_start(&(struct d9__ring_options){ .boot_id = "b" }), 0);
	CU_ASSERT_PTR_EQUAL(d9__ring.base, base);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "in shared memory is private and says whose it is",
		  test_ring_in_shared_memory_is_private_and_says_whose_it_is },
		{ "outlives what maps it", test_ring_outlives_what_maps_it },
		{ "of each kind works", test_ring_of_each_kind_works },
		{ "grows while few chunks are free up to its cap",
		  test_ring_grows_while_few_chunks_are_free_up_to_its_cap },
		{ "grows under a thread that finds no chunk free",
		  test_ring_grows_under_a_thread_that_finds_no_chunk_free },
		{ "grows under no thread that may not", test_ring_grows_under_no_thread_that_may_not },
		{ "in flight mode grows only if nothing can be overwritten",
		  test_ring_in_flight_mode_grows_only_if_nothing_can_be_overwritten },
		{ "begins with its chunks in memory, and not with the slots of threads to come",
		  test_ring_begins_with_its_chunks_in_memory_and_not_with_the_slots_of_threads_to_come },
		{ "under a file size limit is anonymous",
		  test_ring_under_a_file_size_limit_is_anonymous },
		{ "with a bad name is refused", test_ring_with_a_bad_name_is_refused },
		{ "that exists is kept by a second start",
		  test_ring_that_exists_is_kept_by_a_second_start },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("ring_file", tests);
}
