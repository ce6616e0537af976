/* SPDX-License-Identifier: Apache-2.0 */
/* Samples of stacks, and dumps of tasks, on their way from a handler to the trace. */
#include "config.h"

#include <string.h>

#include "drain/blocking_event.h"
#include "drain/side_event.h"
#include "ring/event_types.h"
#include "ring/names.h"
#include "support/d9_test.h"

#define FRAMES 2

static struct d9__side_record make_record(uint32_t copies, uint32_t nowhere)
{
	struct d9__side_record record = { .type_id = D9__EVENT_CPU_SAMPLE, .ns = 1000 };
	struct d9__sample_raw raw = { .worker = 1, .tid = 2, .copies = copies, .nowhere = nowhere, .n = FRAMES,
				      .thread_name = "loop" };
	const uint64_t pcs[FRAMES] = { 0x1000, 0x2000 };

	memcpy(record.payload, &raw, sizeof(raw));
	memcpy(record.payload + sizeof(raw), pcs, sizeof(pcs));
	record.len = sizeof(raw) + sizeof(pcs);
	return record;
}

static struct d9__sample_raw *raw_of(struct d9__side_record *record)
{
	return (struct d9__sample_raw *)(void *)record->payload;
}

static void test_a_sample_of_a_dead_ring_is_believed_only_if_it_is_whole(void)
{
	struct d9__side_record record = make_record(1, 0);

	CU_ASSERT(d9__side_is_sound(&record));
	record.len--;
	CU_ASSERT_FALSE(d9__side_is_sound(&record));
	record = make_record(1, 0);
	raw_of(&record)->n = FRAMES + 1;
	CU_ASSERT_FALSE(d9__side_is_sound(&record));
	record = make_record(D9__SAMPLE_COPIES_MAX + 1, 0);
	CU_ASSERT_FALSE(d9__side_is_sound(&record));
	record = make_record(1, UINT32_MAX);
	CU_ASSERT_FALSE(d9__side_is_sound(&record));
	record = make_record(1, 0);
	memset(raw_of(&record)->thread_name, 'x', sizeof(raw_of(&record)->thread_name));
	CU_ASSERT_FALSE(d9__side_is_sound(&record));
	record = make_record(1, 0);
	raw_of(&record)->source = D9__SAMPLE_OFF_CPU + 1;
	CU_ASSERT_FALSE(d9__side_is_sound(&record));
	record.len = 0;
	CU_ASSERT_FALSE(d9__side_is_sound(&record));
}

static struct d9__side_record make_call(uint16_t n)
{
	struct d9__side_record record = { .type_id = D9__EVENT_BLOCKING_CALL, .ns = 1000 };
	struct d9__blocking_raw raw = { .task = 8, .duration_ns = 2000000, .worker = 1, .fd = 7, .n = n,
					.function = "fsync" };
	const uint64_t pcs[FRAMES] = { 0x1000, 0x2000 };

	memcpy(record.payload, &raw, sizeof(raw));
	memcpy(record.payload + sizeof(raw), pcs, 8u * n);
	record.len = sizeof(raw) + 8u * n;
	return record;
}

static void test_a_call_of_a_dead_ring_is_believed_only_if_it_is_whole(void)
{
	struct d9__side_record record = make_call(FRAMES);
	struct d9__blocking_raw *raw = (struct d9__blocking_raw *)(void *)record.payload;

	CU_ASSERT(d9__blocking_is_sound(&record));
	raw->n = D9__BLOCKING_FRAMES_MAX + 1;
	CU_ASSERT_FALSE(d9__blocking_is_sound(&record));
	record = make_call(0);
	CU_ASSERT(d9__blocking_is_sound(&record));
	memset(raw->function, 'x', sizeof(raw->function));
	CU_ASSERT_FALSE(d9__blocking_is_sound(&record));
	record = make_call(FRAMES);
	record.len -= 8;
	CU_ASSERT_FALSE(d9__blocking_is_sound(&record));
}

static void test_a_call_is_one_event_with_its_holders_stack(void)
{
	struct d9__side_record held = make_call(FRAMES), free = make_call(0);
	struct d9__builder b = { 0 };

	d9__builder_begin(&b);
	d9__side_build(&b, &held);
	d9__side_build(&b, &free);
	CU_ASSERT_FALSE(b.failed);
	CU_ASSERT_EQUAL(b.events, 2);
	CU_ASSERT_EQUAL(b.n_stacks, 1);
	CU_ASSERT_EQUAL(b.n_names, 1);
	d9__builder_release(&b);
}

static void test_a_sample_that_stands_for_several_periods_is_as_many_events(void)
{
	struct d9__side_record record = make_record(3, 4);
	struct d9__builder b = { 0 };

	d9__builder_begin(&b);
	d9__side_build(&b, &record);
	d9__side_build(&b, &record);
	CU_ASSERT_FALSE(b.failed);
	CU_ASSERT_EQUAL(b.events, 2 * (3 + 4));
	/* Its stack and the empty one, and the thread's name, are in the batch once. */
	CU_ASSERT_EQUAL(b.n_stacks, 2);
	CU_ASSERT_EQUAL(b.n_names, 1);
	d9__builder_release(&b);
}

static void test_a_dump_of_a_dead_ring_is_one_event_if_it_is_whole(void)
{
	struct d9__side_record record = { .type_id = D9__EVENT_TASK_DUMP, .ns = 1000 };
	const struct d9__dump_raw raw = { .task = 7, .n = FRAMES, .kept = 1 };
	const uint64_t pcs[FRAMES] = { 0x1000, 0x2000 };
	struct d9__builder b = { 0 };

	memcpy(record.payload, &raw, sizeof(raw));
	memcpy(record.payload + sizeof(raw), pcs, sizeof(pcs));
	record.len = sizeof(raw) + sizeof(pcs);
	CU_ASSERT(d9__side_is_raw(&record));
	CU_ASSERT(d9__side_is_sound(&record));
	d9__builder_begin(&b);
	d9__side_build(&b, &record);
	d9__side_build(&b, &record);
	CU_ASSERT_FALSE(b.failed);
	CU_ASSERT_EQUAL(b.events, 2);
	CU_ASSERT_EQUAL(b.n_stacks, 1);
	d9__builder_release(&b);

	record.len -= 8;
	CU_ASSERT_FALSE(d9__side_is_sound(&record));
	((struct d9__dump_raw *)(void *)record.payload)->n = FRAMES - 1;
	CU_ASSERT(d9__side_is_sound(&record));
	((struct d9__dump_raw *)(void *)record.payload)->n = UINT16_MAX;
	CU_ASSERT_FALSE(d9__side_is_sound(&record));
	record.len = sizeof(raw) - 1;
	CU_ASSERT_FALSE(d9__side_is_sound(&record));
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "a sample of a dead ring is believed only if it is whole",
		  test_a_sample_of_a_dead_ring_is_believed_only_if_it_is_whole },
		{ "a sample that stands for several periods is as many events",
		  test_a_sample_that_stands_for_several_periods_is_as_many_events },
		{ "a dump of a dead ring is one event if it is whole",
		  test_a_dump_of_a_dead_ring_is_one_event_if_it_is_whole },
		{ "a call of a dead ring is believed only if it is whole",
		  test_a_call_of_a_dead_ring_is_believed_only_if_it_is_whole },
		{ "a call is one event, with its holder's stack", test_a_call_is_one_event_with_its_holders_stack },
		CU_TEST_INFO_NULL,
	};

	if (d9__event_types_init() || !d9__names_ready())
		return 99;
	return d9_test_main("side_event", tests);
}
