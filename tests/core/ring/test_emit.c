/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/record/fixture.h"
#include "core/record/stepping.h"
#include "support/d9_test.h"

#define T0 UINT64_C(5000000000)

struct seen {
	unsigned n;
	struct walk_event event[16];
};

/* The values point into the batch, which stays while nothing else is recorded. */
static void keep(const struct walk_event *event, void *arg)
{
	struct seen *seen = arg;

	if (seen->n < 16)
		seen->event[seen->n] = *event;
	seen->n++;
}

static uint64_t number(const struct walk_event *event, const char *field)
{
	const struct walk_value *value = walk_value(event, field);

	return value && value->present ? value->number : UINT64_MAX;
}

static bool text_is(const struct walk_event *event, const char *field, const char *text)
{
	const struct walk_value *value = walk_value(event, field);

	return value && value->present && value->text_len == strlen(text) &&
	       memcmp(value->text, text, value->text_len) == 0;
}

static struct seen decode_all(struct fixture_taken *taken)
{
	struct seen seen = { .n = 0 };

	fixture_drain_all(taken, keep, &seen);
	return seen;
}

static uint32_t name(const char *text)
{
	return d9__name_intern(text, strlen(text));
}

static void test_emit_poll_is_read_back_as_written(void)
{
	struct fixture_taken taken = { 0 };
	struct d9__slot *slot;
	struct seen seen;

	fixture_ring(8);
	slot = d9__slot_self();
	d9__emit_poll_start(slot, T0, 3, 300, 12345, name("a @ b"));
	d9__emit_poll_end(slot, T0 + 12500, 3);
	seen = decode_all(&taken);

	CU_ASSERT_PTR_NULL(taken.error);
	CU_ASSERT_EQUAL_FATAL(seen.n, 2);
	CU_ASSERT(walk_is(&seen.event[0], "PollStartEvent"));
	CU_ASSERT_EQUAL(seen.event[0].ns, T0);
	CU_ASSERT_EQUAL(number(&seen.event[0], "worker_id"), 3);
	CU_ASSERT_EQUAL(number(&seen.event[0], "local_queue"), 255); /* saturated */
	CU_ASSERT_EQUAL(number(&seen.event[0], "task_id"), 12345);
	CU_ASSERT(text_is(&seen.event[0], "spawn_loc", "a @ b"));
	CU_ASSERT(walk_is(&seen.event[1], "PollEndEvent"));
	CU_ASSERT_EQUAL(seen.event[1].ns, T0 + 12500);
}

static void test_emit_park_and_unpark_carry_all_fields(void)
{
	struct fixture_taken taken = { 0 };
	struct d9__slot *slot;
	struct seen seen;

	fixture_ring(8);
	slot = d9__slot_self();
	d9__emit_unpark(slot, T0, 1, 2, UINT64_MAX >> 12, 77, 4242);
	d9__emit_park(slot, T0 + 20000000, 1, 0, 5, 4242);
	seen = decode_all(&taken);

	CU_ASSERT_PTR_NULL(taken.error);
	CU_ASSERT_EQUAL_FATAL(seen.n, 2);
	CU_ASSERT_EQUAL(number(&seen.event[0], "cpu_time_ns"), UINT64_MAX >> 12);
	CU_ASSERT_EQUAL(number(&seen.event[0], "sched_wait_ns"), 77);
	CU_ASSERT_EQUAL(number(&seen.event[0], "tid"), 4242);
	CU_ASSERT_EQUAL(seen.event[1].ns, T0 + 20000000); /* a gap beyond 24 bits */
	CU_ASSERT_EQUAL(number(&seen.event[1], "cpu_time_ns"), 5);
}

static void test_emit_wake_in_the_past_keeps_both_times(void)
{
	struct fixture_taken taken = { 0 };
	struct d9__slot *slot;
	struct seen seen;

	fixture_ring(8);
	slot = d9__slot_self();
	d9__emit_poll_end(slot, T0, 0);
	d9__emit_wake(slot, T0 - 700, 1, 2, 9, 5);
	d9__emit_poll_end(slot, T0 + 1, 0);
	seen = decode_all(&taken);

	CU_ASSERT_EQUAL_FATAL(seen.n, 3);
	CU_ASSERT_EQUAL(seen.event[1].ns, T0 - 700);
	CU_ASSERT_EQUAL(number(&seen.event[1], "waker_task_id"), 1);
	CU_ASSERT_EQUAL(number(&seen.event[1], "woken_task_id"), 2);
	CU_ASSERT_EQUAL(number(&seen.event[1], "target_worker"), 9);
	CU_ASSERT_EQUAL(number(&seen.event[1], "reason"), 5);
	CU_ASSERT_EQUAL(seen.event[2].ns, T0 + 1);
}

static void test_emit_spawn_writes_optional_fields_only_if_known(void)
{
	struct fixture_taken taken = { 0 };
	struct d9__task_spawn spawn = { .task = 8, .loc = name("l"), .kind = name("io"),
					.name = name("n"), .fd = 300, .instrumented = true,
					.callback = 0x7f0000001234, .spawn_addr = 0x400abc };
	struct d9__slot *slot;
	struct seen seen;

	fixture_ring(8);
	slot = d9__slot_self();
	d9__emit_task_spawn(slot, T0, &spawn);
	spawn.fd = -1;
	spawn.name = D9__NAME_EMPTY;
	d9__emit_task_spawn(slot, T0, &spawn);
	d9__emit_task_terminate(slot, T0, 8);
	seen = decode_all(&taken);

	CU_ASSERT_PTR_NULL(taken.error);
	CU_ASSERT_EQUAL_FATAL(seen.n, 3);
	CU_ASSERT_EQUAL(number(&seen.event[0], "fd"), 300);
	CU_ASSERT(text_is(&seen.event[0], "name", "n"));
	CU_ASSERT(text_is(&seen.event[0], "kind", "io"));
	CU_ASSERT_EQUAL(number(&seen.event[0], "callback"), 0x7f0000001234);
	CU_ASSERT_EQUAL(number(&seen.event[1], "fd"), UINT64_MAX);
	CU_ASSERT_FALSE(walk_value(&seen.event[1], "name")->present);
	CU_ASSERT(walk_is(&seen.event[2], "TaskTerminateEvent"));
}

static int register_type(const char *type_name, const char *unit)
{
	const struct d9__field fields[] = { { "took", D9__FIELD_VARINT, unit, NULL },
					    { "who", D9__FIELD_POOLED_STRING, NULL, NULL } };

	return d9__schema_register(&(struct d9__schema) { type_name, fields, 2, NULL, 0 });
}

static void emit_took(struct d9__slot *slot, uint32_t type, uint64_t ns, uint64_t took,
		      uint32_t who)
{
	uint32_t id;
	uint8_t *p = d9__emit_begin_named(slot, type, ns, 14, &who, &id, 1);

	if (p)
		d9__emit_end(slot, d9__wire_put_u32(d9__varint_put(p, took), id));
}

static void test_emit_program_type_is_defined_once_in_each_chunk(void)
{
	int type = register_type("CacheHit", "us");
	struct fixture_taken taken = { 0 };
	struct d9__slot *slot;

	fixture_ring(8);
	slot = d9__slot_self();
	/* walk_batch() refuses a schema or name that is missing or defined twice. */
	for (unsigned i = 0; i < 20000; i++)
		emit_took(slot, (uint32_t)type, T0 + i, i, name("cache"));
	fixture_drain_all(&taken, NULL, NULL);

	CU_ASSERT_PTR_NULL(taken.error);
	CU_ASSERT(taken.batches > 3);
	CU_ASSERT_EQUAL(taken.events, 20000);
}

/* One event of |bytes| in all, 10 at least. */
static void emit_pad(struct d9__slot *slot, uint32_t type, uint32_t bytes)
{
	static const char zeros[D9__EMIT_MAX];
	uint8_t *p = d9__emit_begin(slot, type, T0, bytes - D9__WIRE_EVENT_HEAD_LEN);

	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	d9__emit_end(slot, d9__wire_put_text(p, zeros, bytes - D9__WIRE_EVENT_HEAD_LEN - 4));
}

/* Fill the open chunk until exactly |left| bytes are free. */
static void fill_until(struct d9__slot *slot, uint32_t type, uint32_t left)
{
	emit_pad(slot, type, 10);
	for (;;) {
		uint32_t room = D9__BATCH_MAX - (uint32_t)slot->published - left;

		if (room <= 20000) {
			emit_pad(slot, type, room);
			return;
		}
		emit_pad(slot, type, 15000);
	}
}

/* For every fill level near the end: a first name, a first schema and a reset come next. */
static void test_emit_at_every_end_of_a_chunk_decodes_alone(void)
{
	const struct d9__field text = { "text", D9__FIELD_STRING, NULL, NULL };
	int type = register_type("Boundary", "ns");
	int pad = d9__schema_register(&(struct d9__schema) { "Pad", &text, 1, NULL, 0 });
	struct fixture_taken taken = { 0 };

	/* An event leaves room for its own schema, whether needed or not: no level is below 64. */
	for (uint32_t left = 64; left < D9__EMIT_ROOM + 64; left += 5) {
		struct d9__slot *slot;

		fixture_ring(8);
		slot = d9__slot_self();
		fill_until(slot, (uint32_t)pad, left);
		CU_ASSERT_EQUAL(D9__BATCH_MAX - (uint32_t)slot->published, left);
		if (left % 2)
			emit_took(slot, (uint32_t)type, T0 + 20000000, 1, name("first use"));
		d9__emit_poll_start(slot, T0 + 40000000, 1, 1, 1, name("the last name"));
		d9__emit_poll_end(slot, T0 + 60000000, 1);
		fixture_drain_all(&taken, NULL, NULL);
		CU_ASSERT_EQUAL(fixture_lost(0), 0);
	}

	CU_ASSERT_PTR_NULL(taken.error);
}

static int pad_type;

/* A handler's event takes nearly all that is left of the chunk, or goes to the side ring. */
static void use_up_room(void)
{
	struct d9__slot *slot = d9__slot_self();
	uint32_t left = D9__BATCH_MAX - (uint32_t)slot->published;

	if (atomic_load(&slot->busy))
		d9__emit_wake(slot, T0, 1, 2, 0, 3);
	else if (left > 80 && left <= D9__EMIT_ROOM)
		emit_pad(slot, (uint32_t)pad_type, left - 64);
}

/* At any instruction of an event that needs the room which it has found. */
static void test_emit_interrupted_at_the_end_of_a_chunk_stays_inside(void)
{
	const struct d9__field text = { "text", D9__FIELD_STRING, NULL, NULL };
	struct fixture_taken taken = { 0 };
	struct d9__slot *slot;
	char long_name[1000];
	unsigned at = 0, beyond = 0;
	bool more;

	if (!stepping_start(use_up_room))
		return;
	memset(long_name, 'x', sizeof(long_name));
	pad_type = d9__schema_register(&(struct d9__schema){ "Pad", &text, 1 });
	fixture_ring(8);
	slot = d9__slot_self();
	do {
		uint32_t loc = d9__name_intern(long_name, sizeof(long_name));

		fill_until(slot, (uint32_t)pad_type, D9__EMIT_ROOM);
		stepping_begin(at++);
		d9__emit_poll_start(slot, T0, 1, 1, 1, loc);
		more = stepping_end();
		beyond += (uint32_t)slot->published > D9__BATCH_MAX;
		d9__emit_poll_end(slot, T0 + 1, 1);
		d9__chunk_seal(slot);
		fixture_drain(&taken, NULL, NULL);
	} while (more);
	CU_ASSERT_EQUAL(beyond, 0);
	CU_ASSERT_PTR_NULL(taken.error);
	CU_ASSERT(at > 20);
}

static void test_emit_after_65536_chunks_defines_names_afresh(void)
{
	struct fixture_taken taken = { 0 };
	struct d9__slot *slot;

	fixture_ring(8);
	slot = d9__slot_self();
	for (uint32_t i = 0; i < 65600; i++) {
		struct d9__batch batch;

		d9__emit_poll_start(slot, T0, 0, 0, 1, name("often"));
		d9__emit_poll_end(slot, T0, 0);
		d9__chunk_seal(slot);
		if (i % 16 == 0 || i > 65500)
			fixture_drain(&taken, NULL, NULL);
		else if (d9__chunk_pop_full(&batch))
			d9__chunk_release(&batch);
	}

	CU_ASSERT_PTR_NULL(taken.error);
	CU_ASSERT(slot->generation < 200);
}

static void test_emit_of_many_names_numbers_them_from_zero_in_each_chunk(void)
{
	struct fixture_taken taken = { 0 };
	struct d9__slot *slot;

	fixture_ring(64);
	slot = d9__slot_self();
	for (unsigned i = 0; i < 20000; i++) {
		char text[32];

		d9__ring_grow();
		snprintf(text, sizeof(text), "many names %u", i);
		d9__emit_poll_start(slot, T0 + i, 0, 0, 1, name(text));
		d9__emit_poll_end(slot, T0 + i, 0);
	}
	fixture_drain_all(&taken, NULL, NULL);

	CU_ASSERT_PTR_NULL(taken.error);
	CU_ASSERT_EQUAL(taken.events, 40000);
}

static void test_emit_too_big_is_counted_and_leaves_the_chunk_whole(void)
{
	struct fixture_taken taken = { 0 };
	struct d9__slot *slot;

	fixture_ring(8);
	slot = d9__slot_self();
	d9__emit_poll_end(slot, T0, 0);
	CU_ASSERT_PTR_NULL(d9__emit_begin(slot, D9__EVENT_MODULE, T0, D9__EMIT_MAX + 1));
	CU_ASSERT_PTR_NULL(d9__emit_begin(slot, 4000, T0, 8)); /* no such type */
	d9__emit_poll_end(slot, T0, 0);
	fixture_drain_all(&taken, NULL, NULL);

	CU_ASSERT_PTR_NULL(taken.error);
	CU_ASSERT_EQUAL(taken.events, 2);
	CU_ASSERT_EQUAL(fixture_lost_for(0, D9__LOSS_TOO_BIG), 2);
}

static void test_emit_keeps_errno(void)
{
	struct fixture_taken taken = { 0 };

	fixture_ring(8);
	errno = EXDEV;
	d9__emit_poll_start(d9__slot_self(), T0, 0, 0, 1, name("errno"));
	for (unsigned i = 0; i < 50000; i++)
		d9__emit_poll_end(d9__slot_self(), d9__slot_now(d9__slot_self()), 0);

	CU_ASSERT_EQUAL(errno, EXDEV);
	fixture_drain_all(&taken, NULL, NULL);
	CU_ASSERT_PTR_NULL(taken.error);
}

static void test_emit_entry_state_is_what_the_chunk_before_left(void)
{
	struct d9__batch batch;
	struct d9__slot *slot;

	fixture_ring(8);
	slot = d9__slot_self();
	d9__emit_poll_start(slot, T0, 5, 0, 99, name("x"));
	d9__chunk_seal(slot);
	d9__emit_poll_end(slot, T0, 5);
	d9__emit_park(slot, T0, 5, 0, 0, 1);
	d9__chunk_seal(slot);

	CU_ASSERT_EQUAL(d9__chunk_pop_full(&batch), 1);
	CU_ASSERT_EQUAL(batch.serial, 1);
	CU_ASSERT_EQUAL(batch.entry.state, D9__WORKER_UNKNOWN);
	CU_ASSERT_EQUAL(batch.exit.state, D9__WORKER_POLLING);
	CU_ASSERT_EQUAL(d9__chunk_pop_full(&batch), 1);
	CU_ASSERT_EQUAL(batch.serial, 2);
	CU_ASSERT_EQUAL(batch.entry.state, D9__WORKER_POLLING);
	CU_ASSERT_EQUAL(batch.entry.worker, 5);
	CU_ASSERT_EQUAL(batch.entry.task, 99);
	CU_ASSERT_EQUAL(batch.exit.state, D9__WORKER_PARKED);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "poll is read back as written", test_emit_poll_is_read_back_as_written },
		{ "park and unpark carry all fields", test_emit_park_and_unpark_carry_all_fields },
		{ "wake in the past keeps both times", test_emit_wake_in_the_past_keeps_both_times },
		{ "spawn writes optional fields only if known",
		  test_emit_spawn_writes_optional_fields_only_if_known },
		{ "program type is defined once in each chunk",
		  test_emit_program_type_is_defined_once_in_each_chunk },
		{ "at every end of a chunk decodes alone",
		  test_emit_at_every_end_of_a_chunk_decodes_alone },
		{ "interrupted at the end of a chunk stays inside",
		  test_emit_interrupted_at_the_end_of_a_chunk_stays_inside },
		{ "after 65536 chunks defines names afresh",
		  test_emit_after_65536_chunks_defines_names_afresh },
		{ "of many names numbers them from zero in each chunk",
		  test_emit_of_many_names_numbers_them_from_zero_in_each_chunk },
		{ "too big is counted and leaves the chunk whole",
		  test_emit_too_big_is_counted_and_leaves_the_chunk_whole },
		{ "keeps errno", test_emit_keeps_errno },
		{ "entry state is what the chunk before left",
		  test_emit_entry_state_is_what_the_chunk_before_left },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("emit", tests);
}
