/* SPDX-License-Identifier: Apache-2.0 */
/* Room: which segments go when the device is full.  The clock is the test's. */
#include "config.h"

#include "segment/room.h"
#include "support/d9_test.h"

#define SECOND	UINT64_C(1000000000)
#define NOBODY	UINT64_MAX
#define SEGMENT 1000u

struct disk {
	struct d9__retention ret;
	struct d9__room room;
	uint64_t now_ns, linked;
};

static void disk_new(struct disk *disk, uint64_t segments)
{
	*disk = (struct disk) { .now_ns = SECOND, .linked = NOBODY };
	d9__retention_init(&disk->ret, UINT64_MAX, UINT64_MAX, UINT64_MAX);
	for (uint64_t i = 0; i < segments; i++)
		d9__retention_add(&disk->ret, 0, i, SEGMENT, i);
}

/* A write each second. */
static void write_well(struct disk *disk, uint64_t seconds)
{
	for (uint64_t i = 0; i <= seconds; i++, disk->now_ns += SECOND)
		d9__room_wrote(&disk->room, disk->now_ns);
}

static bool is_linked(void *arg, const struct d9__family *family)
{
	const struct disk *disk = arg;

	return family->index == disk->linked;
}

/* A write fails for want of room.  The number of the segment that goes, or NOBODY. */
static uint64_t run_full(struct disk *disk, uint64_t spared)
{
	struct d9__family victim;

	d9__room_failed(&disk->room);
	if (!d9__room_victim(&disk->room, &disk->ret, spared, is_linked, disk, &victim))
		return NOBODY;
	d9__retention_remove(&disk->ret, &victim, true);
	return victim.index;
}

static void test_room_takes_one_segment_in_an_episode(void)
{
	struct disk disk;

	disk_new(&disk, 10);
	CU_ASSERT_EQUAL(run_full(&disk, NOBODY), 0);
	for (int i = 0; i < 5; i++) {
		CU_ASSERT_EQUAL(run_full(&disk, NOBODY), NOBODY);
		write_well(&disk, 59);
	}
	CU_ASSERT_EQUAL(run_full(&disk, NOBODY), NOBODY);
	write_well(&disk, 60);
	CU_ASSERT_EQUAL(run_full(&disk, NOBODY), 1);
	d9__retention_release(&disk.ret);
}

static void test_room_is_not_made_anew_by_one_write_and_a_long_silence(void)
{
	struct disk disk;

	disk_new(&disk, 10);
	CU_ASSERT_EQUAL(run_full(&disk, NOBODY), 0);
	write_well(&disk, 0);
	disk.now_ns += 1000 * SECOND;
	CU_ASSERT_EQUAL(run_full(&disk, NOBODY), NOBODY);
	d9__retention_release(&disk.ret);
}

static void test_room_of_all_episodes_leaves_half_until_an_hour_was_good(void)
{
	struct disk disk;
	uint64_t gone = 0;

	disk_new(&disk, 10);
	for (int i = 0; i < 20; i++) {
		gone += run_full(&disk, NOBODY) != NOBODY;
		write_well(&disk, 3599);
	}
	CU_ASSERT_EQUAL(gone, 5);
	write_well(&disk, 1);
	CU_ASSERT_EQUAL(run_full(&disk, NOBODY), 5);
	write_well(&disk, 60);
	CU_ASSERT_EQUAL(run_full(&disk, NOBODY), 6);
	write_well(&disk, 60);
	CU_ASSERT_EQUAL(run_full(&disk, NOBODY), NOBODY);
	d9__retention_release(&disk.ret);
}

static void test_room_costs_neither_what_was_just_cut_nor_what_has_a_second_name(void)
{
	struct disk disk;

	disk_new(&disk, 1);
	CU_ASSERT_EQUAL(run_full(&disk, 0), NOBODY);
	d9__retention_release(&disk.ret);

	disk_new(&disk, 4);
	disk.linked = 1;
	CU_ASSERT_EQUAL(run_full(&disk, 0), 2);
	d9__retention_release(&disk.ret);
}

static void test_room_costs_no_peer_and_no_more_than_half_at_once(void)
{
	struct disk disk;

	disk_new(&disk, 0);
	d9__retention_add(&disk.ret, 1, 0, SEGMENT, 1);
	d9__retention_add(&disk.ret, 0, 7, 3 * SEGMENT, 2);
	d9__retention_add(&disk.ret, 0, 8, SEGMENT, 3);
	CU_ASSERT_EQUAL(run_full(&disk, NOBODY), NOBODY);
	d9__retention_release(&disk.ret);
}

static void test_room_is_not_made_anew_by_errors_of_other_kinds(void)
{
	struct disk disk;

	disk_new(&disk, 10);
	CU_ASSERT_EQUAL(run_full(&disk, NOBODY), 0);
	write_well(&disk, 40);
	d9__room_failed(&disk.room);
	write_well(&disk, 40);
	CU_ASSERT_EQUAL(run_full(&disk, NOBODY), NOBODY);
	write_well(&disk, 60);
	d9__room_failed(&disk.room);
	CU_ASSERT_EQUAL(run_full(&disk, NOBODY), 1);
	d9__retention_release(&disk.ret);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "one segment goes in an episode", test_room_takes_one_segment_in_an_episode },
		{ "silence ends no episode",
		  test_room_is_not_made_anew_by_one_write_and_a_long_silence },
		{ "all episodes leave half, until an hour was good",
		  test_room_of_all_episodes_leaves_half_until_an_hour_was_good },
		{ "what was just cut, or has a second name, stays",
		  test_room_costs_neither_what_was_just_cut_nor_what_has_a_second_name },
		{ "peers stay, and half of the bytes",
		  test_room_costs_no_peer_and_no_more_than_half_at_once },
		{ "errors of other kinds end no episode",
		  test_room_is_not_made_anew_by_errors_of_other_kinds },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("room", tests);
}
