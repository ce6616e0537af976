/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "segment/continuation.h"
#include "drain/gap.h"
#include "format/encoder.h"
#include "support/d9_test.h"

static struct d9__walker walker;
static struct d9__builder note;

/* The types of the events in |note|, as letters: S start, E end, P park, U unpark. */
struct story {
	char text[16];
	int n;
	uint64_t first_ns, last_ns, cpu_ns;
	uint32_t tid;
};

static bool tell(void *arg, const struct d9__wire_frame *frame)
{
	static const char letters[] = "?SEPU";
	struct story *story = arg;
	const uint8_t *p = frame->values;

	if (frame->tag != D9__WIRE_EVENT)
		return true;
	CU_ASSERT_EQUAL(d9__walk_varint(&p), 3);
	if (!story->n)
		story->first_ns = frame->ns;
	story->last_ns = frame->ns;
	if (frame->type_id == D9__EVENT_PARK || frame->type_id == D9__EVENT_UNPARK) {
		p++;
		story->cpu_ns = d9__walk_varint(&p);
		if (frame->type_id == D9__EVENT_UNPARK)
			d9__walk_varint(&p);
		story->tid = d9__wire_get_u32(p);
	}
	story->text[story->n++] = letters[frame->type_id];
	return true;
}

/* The state of the thread: before the gap, and behind it. */
static uint32_t tid_before = 42, tid_behind = 42;

static struct story gaps(enum d9__worker_state have, enum d9__worker_state want)
{
	static struct d9__gap b;
	struct d9__entry_state exit = { 7, 3, have }, entry = { 8, 3, want };
	struct d9__gap_edge gap = { .to_ns = 9000, .cpu_ns = 555, .tid = tid_behind };
	struct story story = { .n = 0 };

	d9__event_types_init();
	b = (struct d9__gap){ 0 };
	d9__gap_wrote(&b, &exit, tid_before, 1000);
	d9__gap_wrote(&b, &exit, 0, 1000);
	d9__builder_begin(&note);
	d9__gap_close(&b, &entry, &gap, &note);
	CU_ASSERT_EQUAL(d9__walk(&walker, note.data, (uint32_t)note.len, tell, &story), 0);
	if (have && want)
		CU_ASSERT_EQUAL(b.worker[3].state, want);
	return story;
}

static void test_gap_leads_from_any_state_to_any_other(void)
{
	static const struct {
		enum d9__worker_state have, want;
		const char *story;
	} cases[] = {
		{ D9__WORKER_POLLING, D9__WORKER_POLLING, "ES" },
		{ D9__WORKER_POLLING, D9__WORKER_RUNNING, "E" },
		{ D9__WORKER_POLLING, D9__WORKER_PARKED, "EP" },
		{ D9__WORKER_RUNNING, D9__WORKER_POLLING, "S" },
		{ D9__WORKER_RUNNING, D9__WORKER_RUNNING, "" },
		{ D9__WORKER_RUNNING, D9__WORKER_PARKED, "P" },
		{ D9__WORKER_PARKED, D9__WORKER_POLLING, "US" },
		{ D9__WORKER_PARKED, D9__WORKER_RUNNING, "U" },
		{ D9__WORKER_PARKED, D9__WORKER_PARKED, "" },
		{ D9__WORKER_UNKNOWN, D9__WORKER_POLLING, "" },
		{ D9__WORKER_POLLING, D9__WORKER_UNKNOWN, "" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct story story = gaps(cases[i].have, cases[i].want);

		CU_ASSERT_STRING_EQUAL(story.text, cases[i].story);
	}
}

static void test_gap_stands_at_the_edges_of_the_gap(void)
{
	struct story story = gaps(D9__WORKER_POLLING, D9__WORKER_POLLING);

	CU_ASSERT_EQUAL(story.first_ns, 1000);
	CU_ASSERT_EQUAL(story.last_ns, 9000);
	CU_ASSERT_EQUAL(gaps(D9__WORKER_RUNNING, D9__WORKER_PARKED).cpu_ns, 555);
}

static void test_gap_names_the_thread_though_it_has_ended(void)
{
	CU_ASSERT_EQUAL(gaps(D9__WORKER_RUNNING, D9__WORKER_PARKED).tid, 42);
	tid_behind = 0;
	CU_ASSERT_EQUAL(gaps(D9__WORKER_RUNNING, D9__WORKER_PARKED).tid, 42);
	CU_ASSERT_EQUAL(gaps(D9__WORKER_PARKED, D9__WORKER_RUNNING).tid, 42);
	tid_behind = 43;
	CU_ASSERT_EQUAL(gaps(D9__WORKER_PARKED, D9__WORKER_RUNNING).tid, 43);
	tid_behind = 42;
}

/* A batch with a schema of every kind of field and a few events. */
static uint32_t make_batch(struct d9__builder *b, uint32_t *half)
{
	uint8_t *p;

	d9__event_types_init();
	d9__builder_begin(b);
	for (int i = 0; i < 6; i++) {
		uint32_t name = d9__builder_name(b, i < 3 ? "first" : "second");

		p = d9__builder_event(b, D9__EVENT_HEALTH, 1000 + (uint64_t)i * 30000000, 100);
		p = d9__wire_put_u32(p, name);
		for (int k = 0; k < 8; k++)
			p = d9__varint_put(p, (uint64_t)i << 7);
		d9__builder_end(b, p);
		if (i == 2)
			*half = (uint32_t)b->len;
	}
	return (uint32_t)b->len;
}

struct tally {
	int events, names, schemas;
	uint64_t first_ns, last_ns;
};

static bool count(void *arg, const struct d9__wire_frame *frame)
{
	struct tally *tally = arg;

	tally->events += frame->tag == D9__WIRE_EVENT;
	tally->names += frame->tag == D9__WIRE_STRING_POOL;
	tally->schemas += frame->tag == D9__WIRE_SCHEMA;
	if (frame->tag == D9__WIRE_EVENT) {
		if (!tally->first_ns)
			tally->first_ns = frame->ns;
		tally->last_ns = frame->ns;
	}
	return true;
}

static void test_continuation_defines_what_went_before(void)
{
	struct d9__builder batch = { 0 }, rest = { 0 };
	uint32_t half, len = make_batch(&batch, &half);
	struct tally tally = { 0 };

	CU_ASSERT_EQUAL(d9__continuation(&walker, batch.data, half, len, &rest, NULL), 0);
	CU_ASSERT_EQUAL(d9__walk(&walker, rest.data, (uint32_t)rest.len, count, &tally), 0);

	CU_ASSERT_EQUAL(tally.events, 3);
	CU_ASSERT_EQUAL(tally.names, 2);
	CU_ASSERT_EQUAL(tally.schemas, 1);
	CU_ASSERT_EQUAL(tally.first_ns, 1000 + 3 * 30000000);
	CU_ASSERT_EQUAL(tally.last_ns, 1000 + 5 * 30000000);
	d9__builder_release(&batch);
	d9__builder_release(&rest);
}

static void test_walk_stops_at_every_cut_and_every_flipped_byte(void)
{
	struct d9__builder batch = { 0 };
	uint32_t half, len = make_batch(&batch, &half);
	uint8_t *copy = malloc(len);
	struct tally tally = { 0 };

	for (uint32_t cut = 0; cut < len; cut++) {
		/* On the heap and of that size: a sanitizer sees any byte read behind it. */
		uint8_t *small = malloc(cut ? cut : 1);

		memcpy(small, batch.data, cut);
		d9__walk(&walker, small, cut, count, &tally);
		free(small);
	}
	for (uint32_t at = 0; at < len; at++) {
		memcpy(copy, batch.data, len);
		copy[at] ^= 0xff;
		d9__walk(&walker, copy, len, count, &tally);
	}
	free(copy);
	d9__builder_release(&batch);
	d9__builder_release(&note);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "any state to any other", test_gap_leads_from_any_state_to_any_other },
		{ "edges of the gap", test_gap_stands_at_the_edges_of_the_gap },
		{ "the thread is named though it has ended", test_gap_names_the_thread_though_it_has_ended },
		{ "continuation", test_continuation_defines_what_went_before },
		{ "cuts and flips", test_walk_stops_at_every_cut_and_every_flipped_byte },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("gaps", tests);
}
