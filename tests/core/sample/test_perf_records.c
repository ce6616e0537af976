/* SPDX-License-Identifier: Apache-2.0 */
/* Rings of perf events, made by hand. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "core/sample/perf_builder.h"
#include "sample/perf_event.h"
#include "sample/perf_records.h"
#include "support/d9_test.h"

#define RING 8192u

static uint8_t ring_bytes[RING];
static _Alignas(8) uint8_t scratch[D9__PERF_RECORD_MAX];
static struct perf_builder builder;
static struct d9__perf_record record;

/* The bytes of |builder| in the ring, from position |tail| on. */
static struct d9__perf_ring ring_of(uint64_t tail)
{
	for (size_t i = 0; i < builder.len; i++)
		ring_bytes[(tail + i) % RING] = builder.bytes[i];
	return (struct d9__perf_ring) { ring_bytes, RING, tail, tail + builder.len };
}

static void forget(void)
{
	memset(&builder, 0, sizeof(builder));
}

static void test_a_sample_has_what_was_asked_for(void)
{
	static const uint64_t chain[] = { (uint64_t)PERF_CONTEXT_KERNEL, 0xffffffff81000010, 0xffffffff81000020,
					  (uint64_t)PERF_CONTEXT_USER, 0x400010 };
	static const uint8_t stack[64] = { 1, 2, 3 };
	const struct perf_words words = { .pid = 10,
					  .tid = 11,
					  .cpu = 3,
					  .ns = 99,
					  .chain = chain,
					  .n_chain = 5,
					  .abi = D9__PERF_REGISTERS ? PERF_SAMPLE_REGS_ABI_64 : 0,
					  .first_register = 0x1000,
					  .stack = stack,
					  .room = 64,
					  .filled = 40 };
	struct d9__perf_ring ring;

	forget();
	perf_put_sample(&builder, &words);
	ring = ring_of(0);
	CU_ASSERT_TRUE(d9__perf_next(&ring, scratch, &record));
	CU_ASSERT_EQUAL(record.kind, D9__PERF_SAMPLE);
	CU_ASSERT_EQUAL(record.pid, 10);
	CU_ASSERT_EQUAL(record.tid, 11);
	CU_ASSERT_EQUAL(record.cpu, 3);
	CU_ASSERT_EQUAL(record.ns, 99);
	CU_ASSERT_EQUAL(record.n_kernel, 2);
	CU_ASSERT_EQUAL(record.kernel[0], 0xffffffff81000010);
	CU_ASSERT_EQUAL(record.kernel[1], 0xffffffff81000020);
	CU_ASSERT_EQUAL(record.stack_len, 40);
	CU_ASSERT_EQUAL(memcmp(record.stack, stack, 40), 0);
	CU_ASSERT_EQUAL(record.has_registers, D9__PERF_REGISTERS != 0);
	CU_ASSERT_FALSE(d9__perf_next(&ring, scratch, &record));
	CU_ASSERT_EQUAL(ring.tail, ring.head);
}

#if defined(__x86_64__)
/* The kernel numbers them in another way than the psABI does. */
static void test_registers_stand_where_a_walk_looks_for_them(void)
{
	const struct perf_words words = { .abi = PERF_SAMPLE_REGS_ABI_64, .first_register = 0x1000 };
	struct d9__perf_ring ring;

	forget();
	perf_put_sample(&builder, &words);
	ring = ring_of(0);
	CU_ASSERT_TRUE(d9__perf_next(&ring, scratch, &record));
	CU_ASSERT_EQUAL(record.registers.ip, 0x1000 + 8);
	CU_ASSERT_EQUAL(record.registers.sp, 0x1000 + 7);
	CU_ASSERT_EQUAL(record.registers.bp, 0x1000 + 6);
	CU_ASSERT_EQUAL(record.registers.all[0], 0x1000);	/* rax */
	CU_ASSERT_EQUAL(record.registers.all[1], 0x1000 + 3);	/* rdx */
	CU_ASSERT_EQUAL(record.registers.all[3], 0x1000 + 1);	/* rbx */
	CU_ASSERT_EQUAL(record.registers.all[10], 0x1000 + 18); /* r10 */
	CU_ASSERT_EQUAL(record.registers.all[15], 0x1000 + 23); /* r15 */
}

static void test_a_program_of_32_bits_has_no_registers_for_a_walk(void)
{
	const struct perf_words words = { .abi = PERF_SAMPLE_REGS_ABI_32, .first_register = 0x1000 };
	struct d9__perf_ring ring;

	forget();
	perf_put_sample(&builder, &words);
	ring = ring_of(0);
	CU_ASSERT_TRUE(d9__perf_next(&ring, scratch, &record));
	CU_ASSERT_EQUAL(record.kind, D9__PERF_SAMPLE);
	CU_ASSERT_FALSE(record.has_registers);
}
#endif

static void test_a_thread_of_the_kernel_has_no_stack_of_a_program(void)
{
	const struct perf_words words = { .pid = 1, .tid = 2 };
	struct d9__perf_ring ring;

	forget();
	perf_put_sample(&builder, &words);
	ring = ring_of(0);
	CU_ASSERT_TRUE(d9__perf_next(&ring, scratch, &record));
	CU_ASSERT_EQUAL(record.kind, D9__PERF_SAMPLE);
	CU_ASSERT_FALSE(record.has_registers);
	CU_ASSERT_EQUAL(record.stack_len, 0);
	CU_ASSERT_EQUAL(record.n_kernel, 0);
}

static void test_records_that_cross_the_ring_s_end_are_whole(void)
{
	static const uint8_t stack[64] = { 9, 8, 7 };
	const struct perf_words words = { .pid = 5, .tid = 6, .ns = 77, .stack = stack, .room = 64, .filled = 64 };

	forget();
	perf_put_sample(&builder, &words);
	perf_put_lost(&builder, 12);
	/* At each place where the end can be, in multiples of 8, as the kernel aligns records. */
	for (uint64_t tail = RING - builder.len; tail <= RING; tail += 8) {
		struct d9__perf_ring ring = ring_of(tail);

		CU_ASSERT_TRUE(d9__perf_next(&ring, scratch, &record));
		CU_ASSERT_EQUAL(record.kind, D9__PERF_SAMPLE);
		CU_ASSERT_EQUAL(record.tid, 6);
		CU_ASSERT_EQUAL(record.ns, 77);
		CU_ASSERT_EQUAL(memcmp(record.stack, stack, 64), 0);
		CU_ASSERT_TRUE(d9__perf_next(&ring, scratch, &record));
		CU_ASSERT_EQUAL(record.kind, D9__PERF_LOST);
		CU_ASSERT_EQUAL(record.lost, 12);
		CU_ASSERT_FALSE(d9__perf_next(&ring, scratch, &record));
	}
}

static void test_other_records_are_passed_over(void)
{
	struct d9__perf_ring ring;

	forget();
	perf_begin(&builder, PERF_RECORD_THROTTLE);
	perf_put_u64(&builder, 1);
	perf_end(&builder);
	perf_put_lost(&builder, 3);
	ring = ring_of(0);
	CU_ASSERT_TRUE(d9__perf_next(&ring, scratch, &record));
	CU_ASSERT_EQUAL(record.kind, D9__PERF_OTHER);
	CU_ASSERT_TRUE(d9__perf_next(&ring, scratch, &record));
	CU_ASSERT_EQUAL(record.lost, 3);
}

static void test_deep_chains_of_the_kernel_are_cut_at_the_outside(void)
{
	uint64_t chain[200] = { (uint64_t)PERF_CONTEXT_KERNEL };
	const struct perf_words words = { .chain = chain, .n_chain = 200 };
	struct d9__perf_ring ring;

	for (unsigned i = 1; i < 200; i++)
		chain[i] = UINT64_C(0xffffffff81000000) + i;
	forget();
	perf_put_sample(&builder, &words);
	ring = ring_of(0);
	CU_ASSERT_TRUE(d9__perf_next(&ring, scratch, &record));
	CU_ASSERT_EQUAL(record.n_kernel, D9__PERF_KERNEL_MAX);
	CU_ASSERT_EQUAL(record.kernel[0], 0xffffffff81000001);
}

static void test_a_record_that_claims_more_than_it_holds_is_none(void)
{
	static const uint64_t chain[] = { (uint64_t)PERF_CONTEXT_KERNEL };
	const struct perf_words words = { .chain = chain, .n_chain = 1, .room = 16, .filled = 1000 };
	struct d9__perf_ring ring;
	size_t whole;

	forget();
	perf_put_sample(&builder, &words);
	whole = builder.len;
	ring = ring_of(0);
	/* More was filled than there is room for: no more than the room is read. */
	CU_ASSERT_TRUE(d9__perf_next(&ring, scratch, &record));
	CU_ASSERT_EQUAL(record.stack_len, 16);
	/* A record cut anywhere behind its header is no sample, and the next one is found. */
	for (size_t len = sizeof(struct perf_event_header); len < whole; len += 8) {
		uint16_t size = (uint16_t)len;

		forget();
		perf_put_sample(&builder, &words);
		builder.len = len;
		memcpy(builder.bytes + offsetof(struct perf_event_header, size), &size, sizeof(size));
		perf_put_lost(&builder, 1);
		ring = ring_of(0);
		CU_ASSERT_TRUE(d9__perf_next(&ring, scratch, &record));
		CU_ASSERT_EQUAL(record.kind, D9__PERF_OTHER);
		CU_ASSERT_TRUE(d9__perf_next(&ring, scratch, &record));
		CU_ASSERT_EQUAL(record.kind, D9__PERF_LOST);
	}
}

static void test_a_ring_without_sense_is_emptied(void)
{
	static const uint16_t sizes[] = { 0, 7, 4096, UINT16_MAX };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct d9__perf_ring ring;

		forget();
		perf_put_lost(&builder, 1);
		memcpy(builder.bytes + offsetof(struct perf_event_header, size), &sizes[i], sizeof(sizes[i]));
		ring = ring_of(64);
		CU_ASSERT_FALSE(d9__perf_next(&ring, scratch, &record));
		CU_ASSERT_EQUAL(ring.tail, ring.head);
	}
	/* Positions that cannot be. */
	{
		struct d9__perf_ring far = { ring_bytes, RING, 0, RING + 8 }, back = { ring_bytes, RING, 16, 8 };

		CU_ASSERT_FALSE(d9__perf_next(&far, scratch, &record));
		CU_ASSERT_FALSE(d9__perf_next(&back, scratch, &record));
	}
}

static void count(void *n, struct d9__perf_record *sample)
{
	(void)sample;
	++*(uint64_t *)n;
}

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Of the last ones nothing in the ring tells, as no sample comes behind them. */
static void test_samples_that_found_no_room_are_counted_at_the_end_too(void)
{
	const struct d9__perf_want want = { .tid = (int)gettid(), .cpu = -1, .hz = 1000, .stack = 16384,
					    .ring = 131072, .no_kernel = true };
	struct d9__perf_event event = { 0 };
	uint64_t end = cpu_ns() + 200000000, n = 0, lost;
	struct utsname kernel;

	uname(&kernel);
	if (atoi(kernel.release) < 6 || d9__perf_open(&event, &want)) {
		puts("left out: perf events are not permitted, or the kernel does not count what it lost");
		return;
	}
	while (cpu_ns() < end)
		;
	d9__perf_stop(&event);
	lost = d9__perf_drain(&event, count, &n);
	/* There is room for seven; a busy machine lets most of 200 fall due together. */
	CU_ASSERT_TRUE(n > 0 && n < 8);
	CU_ASSERT_TRUE(lost > 0);
	CU_ASSERT_EQUAL(d9__perf_drain(&event, count, &n), 0);
	d9__perf_close(&event);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "a sample has what was asked for", test_a_sample_has_what_was_asked_for },
#if defined(__x86_64__)
		{ "registers stand where a walk looks for them", test_registers_stand_where_a_walk_looks_for_them },
		{ "a program of 32 bits has no registers for a walk",
		  test_a_program_of_32_bits_has_no_registers_for_a_walk },
#endif
		{ "a thread of the kernel has no stack of a program",
		  test_a_thread_of_the_kernel_has_no_stack_of_a_program },
		{ "records that cross the ring's end are whole", test_records_that_cross_the_ring_s_end_are_whole },
		{ "other records are passed over", test_other_records_are_passed_over },
		{ "deep chains of the kernel are cut at the outside",
		  test_deep_chains_of_the_kernel_are_cut_at_the_outside },
		{ "a record that claims more than it holds is none",
		  test_a_record_that_claims_more_than_it_holds_is_none },
		{ "a ring without sense is emptied", test_a_ring_without_sense_is_emptied },
		{ "samples that found no room are counted, at the end too",
		  test_samples_that_found_no_room_are_counted_at_the_end_too },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("perf_records", tests);
}
