/* SPDX-License-Identifier: Apache-2.0 */
/* Rescue: the segment that is made of a dead process's ring. */
#include "config.h"

#include "drain/rescue.h"

#include "core/drain/dying.h"
#include "drain/side_event.h"
#include "segment/metadata.h"

/* ---- its ring ---- */

static void test_events_of_the_ring_become_a_sealed_segment_and_the_ring_goes(void)
{
	live();
	record_polls(10, SECOND);
	die();

	check_rescued(20, 0);
	CU_ASSERT_TRUE(found.ring);
	CU_ASSERT_FALSE(found.sealed);
	CU_ASSERT_EQUAL(found.bad, 0);
	CU_ASSERT_EQUAL(found.pid, (uint32_t)getpid());
	CU_ASSERT_TRUE(is_there(BOOT_ID "/trace.0.bin.zst"));
	CU_ASSERT_EQUAL(scratch_count("PollStartEvent"), 10);
	CU_ASSERT_EQUAL(scratch_count("PollEndEvent"), 10);
	CU_ASSERT_FALSE(rescue_without_ring());
}

static void test_segment_of_a_ring_tells_whose_it_is_and_how_it_was_made(void)
{
	char pid[32];

	live();
	record_polls(2, SECOND);
	snprintf(pid, sizeof(pid), "pid=%d;", (int)getpid());
	die();

	check_rescued(4, 0);
	read_segment("trace.0.bin.zst");
	CU_ASSERT_EQUAL(said("service=test;"), 2);
	CU_ASSERT_EQUAL(said("boot_id=" BOOT_ID ";"), 2);
	CU_ASSERT_EQUAL(said(pid), 2);
	CU_ASSERT_EQUAL(said("recovered=true;"), 2);
	CU_ASSERT_EQUAL(said("segment.complete=true;"), 1);
	CU_ASSERT_EQUAL(said("segment.sealed_clean=false;"), 1);
	CU_ASSERT_EQUAL(said("segment.prior_sealed_clean="), 0);
	CU_ASSERT_EQUAL(seen.end_ns, SECOND + 1500);
}

static void test_segment_of_a_ring_has_the_clock_of_its_process(void)
{
	const struct d9__anchor *anchor;
	uint64_t real_ns;

	live();
	anchor = &d9__ring.header->anchor;
	record_polls(1, 5 * SECOND);
	real_ns = anchor->real_ns + 5 * SECOND - anchor->mono_ns;
	die();

	check_rescued(2, 0);
	read_segment("trace.0.bin.zst");
	CU_ASSERT_EQUAL(seen.first_ns, 5 * SECOND);
	CU_ASSERT_EQUAL(seen.real_ns, real_ns);
	CU_ASSERT_EQUAL(seen.clocks, 2);
}

static void test_part_of_a_batch_that_the_trace_has_is_not_written_again(void)
{
	struct d9__batch batch;

	live();
	record_polls(3, SECOND);
	CU_ASSERT_FATAL(d9__chunk_pin_open(0, &batch));
	d9__chunk_unpin(&batch, true);
	/* As the flush thread notes it: chunk 1, and not to its end. */
	atomic_store(&d9__ring.slots[0].written, UINT64_C(1) << 32);
	record_polls(2, 2 * SECOND);
	d9__chunk_seal(d9__slot_self());
	record_polls(1, 3 * SECOND);
	die();

	check_rescued(6, 0);
	CU_ASSERT_EQUAL(scratch_count("PollStartEvent"), 3);
	read_segment("trace.0.bin.zst");
	CU_ASSERT_EQUAL(said("segment.complete=true;"), 1);
}

static void test_chunk_that_the_trace_has_is_neither_written_again_nor_missed(void)
{
	live();
	record_polls(3, SECOND);
	d9__chunk_seal(d9__slot_self());
	atomic_store(&d9__ring.slots[0].written, UINT64_C(1) << 32 | 1);
	record_polls(2, 2 * SECOND);
	die();

	check_rescued(4, 0);
	read_segment("trace.0.bin.zst");
	CU_ASSERT_EQUAL(said("segment.complete=true;"), 1);
}

static void test_ring_of_which_all_is_in_the_trace_goes_without_a_word(void)
{
	live();
	die();

	CU_ASSERT_FALSE(rescue());
	CU_ASSERT_EQUAL(found.err, 0);
	CU_ASSERT_FALSE(is_there("x.ring"));
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, ""), 0);
}

static void test_ring_of_another_layout_is_left_and_so_is_the_open_segment(void)
{
	live();
	record_polls(1, SECOND);
	d9__ring.header->layout = 99;
	die();
	leave_segments(D9_COMPRESS_ZSTD, 0, true, SECOND);

	CU_ASSERT_TRUE(rescue());
	CU_ASSERT_EQUAL(found.err, -EPROTONOSUPPORT);
	CU_ASSERT_STRING_EQUAL(found.op, "read the ring");
	CU_ASSERT_TRUE(is_there("x.ring"));
	CU_ASSERT_TRUE(is_there(BOOT_ID "/trace.0.bin.zst.active"));
}

/* ---- what it says of the process ---- */

static void describe(struct d9__builder *description)
{
	CU_ASSERT_EQUAL_FATAL(
		d9__ring_set_description(description->data, description->len), 0);
	d9__builder_release(description);
}

static void test_facts_of_the_process_come_from_its_ring(void)
{
	struct d9__builder description = { 0 };

	live();
	d9__metadata_set("service", "described");
	d9__writer_describe(&description);
	d9__metadata_forget("");
	describe(&description);
	record_polls(1, SECOND);
	die();

	check_rescued(2, 0);
	read_segment("trace.0.bin.zst");
	/* The description itself has it, too. */
	CU_ASSERT_EQUAL(said("service=described;"), 3);
	CU_ASSERT_EQUAL(said("service=test;"), 0);
	CU_ASSERT_EQUAL(said("recovered=true;"), 2);
}

static void put_fact(struct d9__builder *b, const char *key, const char *value)
{
	uint8_t *p = d9__builder_event(b, D9__EVENT_SEGMENT_METADATA, SECOND, 256);

	p = d9__wire_put_text(d9__wire_put_u32(p, 1), key, strlen(key));
	d9__builder_end(b, d9__wire_put_text(p, value, strlen(value)));
}

static void test_first_facts_of_the_description_count(void)
{
	struct d9__builder description = { 0 };

	live();
	d9__builder_begin(&description);
	put_fact(&description, "service", "first");
	put_fact(&description, "service", "second");
	describe(&description);
	record_polls(1, SECOND);
	die();

	check_rescued(2, 0);
	read_segment("trace.0.bin.zst");
	CU_ASSERT_EQUAL(said("service=first;"), 3);
	CU_ASSERT_EQUAL(said("service=second;"), 1);
}

static void test_description_that_cannot_be_read_is_left_out(void)
{
	struct d9__builder description = { 0 };

	live();
	d9__metadata_set("service", "described");
	d9__writer_describe(&description);
	d9__metadata_forget("");
	d9__builder_put(&description, "\xff", 1); /* no frame begins like that */
	describe(&description);
	record_polls(1, SECOND);
	die();

	check_rescued(2, 0);
	read_segment("trace.0.bin.zst");
	CU_ASSERT_EQUAL(said("service=described;"), 0);
	CU_ASSERT_EQUAL(said("service=test;"), 2);
}

/* ---- losses and damage ---- */

static void test_losses_that_the_trace_does_not_tell_of_are_told(void)
{
	live();
	record_polls(1, SECOND);
	d9__loss_add(0, D9__LOSS_TOO_BIG, 5, SECOND, SECOND);
	d9__loss_noted(&d9__ring.losses[0].cause[D9__LOSS_TOO_BIG], 2, 0);
	d9__loss_add(-1, D9__LOSS_NO_SLOT, 40, SECOND, SECOND);
	die();

	check_rescued(2, 43);
	read_segment("trace.0.bin.zst");
	CU_ASSERT_EQUAL(seen.lost, 43);
	CU_ASSERT_EQUAL(said("segment.complete=false;"), 1);
}

static void test_losses_alone_are_worth_a_segment(void)
{
	uint64_t began_ns;

	live();
	began_ns = d9__ring.header->anchor.mono_ns;
	d9__loss_add(-1, D9__LOSS_NO_SLOT, 5, SECOND, SECOND);
	die();

	check_rescued(0, 5);
	read_segment("trace.0.bin.zst");
	CU_ASSERT_EQUAL(seen.first_ns, began_ns);
	CU_ASSERT_EQUAL(seen.lost, 5);
}

static void test_losses_that_were_told_are_not_told_again(void)
{
	live();
	record_polls(1, SECOND);
	d9__loss_add(0, D9__LOSS_TOO_BIG, 5, SECOND, SECOND);
	d9__loss_noted(&d9__ring.losses[0].cause[D9__LOSS_TOO_BIG], 5, 0);
	/* More than there were: the process died between two writes. */
	d9__loss_add(-1, D9__LOSS_NO_SLOT, 3, SECOND, SECOND);
	d9__loss_noted(&d9__ring.proc_losses->cause[D9__LOSS_NO_SLOT], 1000, 0);
	die();

	check_rescued(2, 0);
	read_segment("trace.0.bin.zst");
	CU_ASSERT_EQUAL(seen.lost, 0);
	CU_ASSERT_EQUAL(said("segment.complete=true;"), 1);
}

/* The chunk that slot 0 has open. */
static struct d9__chunk_header *open_chunk(void)
{
	return d9__chunk_at((uint32_t)atomic_load(&d9__ring.slots[0].open) - 1);
}

static void test_batch_that_does_not_decode_is_counted_as_lost_and_others_are_kept(void)
{
	struct d9__chunk_header *first;

	live();
	record_polls(6, SECOND);
	first = open_chunk();
	d9__chunk_seal(d9__slot_self());
	record_polls(2, 2 * SECOND);
	memset((uint8_t *)first + D9__CHUNK_HEADER + 8, 0xff, 16);
	die();

	check_rescued(4, 12);
	CU_ASSERT_EQUAL(found.bad, 1);
	CU_ASSERT_EQUAL(scratch_count("PollStartEvent"), 2);
	read_segment("trace.0.bin.zst");
	CU_ASSERT_EQUAL(seen.lost, 12);
	CU_ASSERT_EQUAL(said("segment.complete=false;"), 1);
}

/* A process of whose three chunks the one in the middle is not there any more. */
static void die_with_a_gap(bool flight)
{
	struct d9__chunk_header *middle;

	live();
	atomic_store(&d9__ring.header->flight, flight);
	record_polls(2, SECOND);
	d9__chunk_seal(d9__slot_self());
	record_polls(2, 2 * SECOND);
	middle = open_chunk();
	d9__chunk_seal(d9__slot_self());
	record_polls(2, 3 * SECOND);
	atomic_store(&middle->word, 0);
	die();
}

static void test_chunk_that_is_missing_between_others_makes_the_segment_incomplete(void)
{
	for (int flight = 0; flight < 2; flight++) {
		die_with_a_gap(flight);

		check_rescued(8, 0);
		read_segment("trace.0.bin.zst");
		CU_ASSERT_EQUAL(said("segment.complete=false;"), 1);
	}
}

static void test_chunks_before_the_oldest_are_missed_only_where_all_is_kept(void)
{
	for (int flight = 0; flight < 2; flight++) {
		struct d9__chunk_header *first;

		live();
		atomic_store(&d9__ring.header->flight, (unsigned)flight);
		record_polls(2, SECOND);
		first = open_chunk();
		d9__chunk_seal(d9__slot_self());
		record_polls(2, 2 * SECOND);
		d9__chunk_seal(d9__slot_self());
		record_polls(2, 3 * SECOND);
		atomic_store(&first->word, 0);
		die();

		check_rescued(8, 0);
		read_segment("trace.0.bin.zst");
		CU_ASSERT_EQUAL(said("segment.complete=true;"), (unsigned)flight);
	}
}

/* ---- side rings ---- */

/* Leave one event of a type |id| in the side ring, with |len| bytes of zeros for fields. */
static void leave_side_record(uint32_t id, unsigned len)
{
	static const uint8_t zeros[64];

	CU_ASSERT_TRUE(d9__side_put(d9__slot_self(), id, 2 * SECOND, zeros, len, NULL, 0));
}

static void test_records_of_side_rings_become_events(void)
{
	const struct d9__sample_raw raw = { .worker = 0, .tid = 1, .copies = 1, .n = 2 };
	const uint64_t pcs[2] = { 0x1000, 0x2000 };

	live();
	record_polls(1, SECOND);
	leave_side_record(D9__EVENT_POLL_END, 1);
	CU_ASSERT_TRUE(d9__sample_leave(d9__slot_self(), &raw, pcs, 2 * SECOND));
	die();

	check_rescued(4, 0);
	CU_ASSERT_EQUAL(scratch_count("PollEndEvent"), 2);
	CU_ASSERT_EQUAL(scratch_count("CpuSampleEvent"), 1);
}

static void test_record_with_frames_behind_its_event_is_counted_as_lost(void)
{
	static const uint8_t two_events[] = {
		0, D9__WIRE_EVENT, D9__EVENT_POLL_END, 0, 0, 0, 0, 0,
	};
	static const uint8_t reset[] = { 0, D9__WIRE_TIME_RESET, 0, 0, 0, 0, 0, 0, 0, 0 };
	struct d9__slot *slot;

	live();
	slot = d9__slot_self();
	record_polls(1, SECOND);
	CU_ASSERT_TRUE(d9__side_put(slot, D9__EVENT_POLL_END, 2 * SECOND, two_events,
				    sizeof(two_events), NULL, 0));
	CU_ASSERT_TRUE(d9__side_put(slot, D9__EVENT_POLL_END, 2 * SECOND, reset, sizeof(reset),
				    NULL, 0));
	die();

	check_rescued(2, 2);
	CU_ASSERT_EQUAL(scratch_count("PollEndEvent"), 1);
}

static void test_records_that_are_no_event_are_counted_as_lost(void)
{
	struct d9__sample_raw raw = { .n = D9__SAMPLE_FRAMES_MAX + 1 };

	live();
	record_polls(1, SECOND);
	leave_side_record(D9__EVENT_POLL_END, 1);
	leave_side_record(D9__EVENT_POLL_END, 2);     /* a field too many */
	leave_side_record(D9__EVENT_POLL_END, 0);     /* a field too few */
	leave_side_record(0, 1);		      /* no type */
	leave_side_record(D9__EVENT_BUILTIN_END, 1);
	leave_side_record(D9__EVENT_PROGRAM, 1);      /* not in a description */
	leave_side_record(D9__TYPES_MAX, 1);
	CU_ASSERT_TRUE(d9__side_put(d9__slot_self(), D9__EVENT_CPU_SAMPLE, SECOND, &raw,
				    sizeof(raw), NULL, 0));
	die();

	check_rescued(3, 7);
	read_segment("trace.0.bin.zst");
	CU_ASSERT_EQUAL(seen.lost, 7);
	CU_ASSERT_EQUAL(said("segment.complete=false;"), 1);
}

static unsigned n_with_unit;

static void look_at_unit(void *arg, const struct d9_event *event)
{
	const char *unit;

	(void)arg;
	if (strcmp(d9_event_name(event), "OfTheProgram") != 0)
		return;
	unit = d9_schema_annotation(event->schema, 0, "unit");
	n_with_unit += unit && !strcmp(unit, "bytes");
}

static void test_types_of_the_program_are_taken_from_its_description(void)
{
	static const struct d9__field field = { "size", D9__FIELD_VARINT, "bytes", NULL };
	static const struct d9__schema schema = { "OfTheProgram", &field, 1, NULL, 0 };
	struct d9__builder description = { 0 };
	const struct d9__type_frames *frames;
	int id;

	live();
	id = d9__schema_register(&schema);
	CU_ASSERT_FATAL(id >= (int)D9__EVENT_PROGRAM);
	frames = d9__event_type_frames((uint32_t)id);
	d9__builder_begin(&description);
	d9__builder_put(&description, frames->bytes, frames->len);
	describe(&description);
	record_polls(1, SECOND);
	leave_side_record((uint32_t)id, 1);
	die();

	check_rescued(3, 0);
	n_with_unit = 0;
	scratch_read(scratch_dir, true, look_at_unit, NULL);
	CU_ASSERT_EQUAL(n_with_unit, 1);
}

/* ---- calls that were open, and the log ---- */

/* Be in a callback since 2 s, as the slot knows it; at the last tick it had lasted for |ms|. */
static struct d9__ring_health *be_in_a_call(uint64_t ms)
{
	struct d9__ring_health *health;

	live();
	health = d9__ring.health;
	health->state = D9__STATE_RECORDING;
	health->n_open = 0;
	record_polls(1, SECOND);
	d9__emit_poll_start(d9__slot_self(), 2 * SECOND, 0, 1, 7, d9__name_intern("here", 4));
	d9__slot_self()->last_ns = 2 * SECOND;
	health->tick_ns = 2 * SECOND + ms * MS;
	return health;
}

/* Die, and be rescued with |n| LastSignEvents. */
static void check_signs(unsigned n)
{
	die();
	check_rescued(3, 0);
	read_segment("trace.0.bin.zst");
	CU_ASSERT_EQUAL(scratch_count("LastSignEvent"), n);
}

static void test_call_that_was_open_lasted_until_the_last_tick(void)
{
	be_in_a_call(10);
	check_signs(1);
	CU_ASSERT_EQUAL(seen.sign_ns, 2 * SECOND + 10 * MS);
	CU_ASSERT_EQUAL(seen.since_ns, 2 * SECOND);
}

static void test_call_whose_last_tick_the_trace_has_is_not_told_again(void)
{
	const struct d9__ring_open open = {
		.since_ns = 2 * SECOND - 1, .task = 7, .sign_ns = 3 * SECOND, .worker = 0
	};
	struct d9__ring_health *health = be_in_a_call(1000);

	health->n_open = 1;
	health->open[0] = open;
	check_signs(0);

	/* Nor where that is a few milliseconds ago. */
	health = be_in_a_call(1009);
	health->n_open = 1;
	health->open[0] = open;
	check_signs(0);

	health = be_in_a_call(1011);
	health->n_open = 1;
	health->open[0] = open;
	check_signs(1);
	CU_ASSERT_EQUAL(seen.sign_ns, 3 * SECOND + 11 * MS);
	CU_ASSERT_EQUAL(seen.since_ns, 2 * SECOND - 1);
}

static void test_call_is_not_taken_for_one_of_another_worker_or_task(void)
{
	struct d9__ring_health *health = be_in_a_call(1000);

	health->n_open = 2;
	health->open[0] = (struct d9__ring_open){
		.since_ns = 1, .task = 7, .sign_ns = 3 * SECOND, .worker = 9
	};
	health->open[1] = (struct d9__ring_open){
		.since_ns = 1, .task = 8, .sign_ns = 3 * SECOND, .worker = 0
	};
	check_signs(1);
	CU_ASSERT_EQUAL(seen.since_ns, 2 * SECOND);
}

static void test_short_call_and_one_of_a_recorder_that_was_off_are_not_told(void)
{
	be_in_a_call(9);
	check_signs(0);

	be_in_a_call(10)->state = D9__STATE_DISABLED;
	check_signs(0);

	/* The last tick was before the call. */
	be_in_a_call(0)->tick_ns = SECOND;
	check_signs(0);
}

static void test_slot_of_a_thread_that_is_in_no_call_tells_of_none(void)
{
	be_in_a_call(10);
	d9__slot_self()->worker_state = D9__WORKER_RUNNING;
	check_signs(0);

	be_in_a_call(10);
	d9__slot_self()->worker = D9__WORKER_NONE;
	check_signs(0);

	be_in_a_call(10);
	atomic_store(&d9__slot_self()->owner, (uint64_t)D9__SLOT_IDLE << 32);
	check_signs(0);
}

static void test_log_of_the_process_goes_into_the_segment_but_makes_none(void)
{
	live();
	d9__note(D9_LOG_WARNING, "something went wrong");
	die();
	CU_ASSERT_FALSE(rescue());
	CU_ASSERT_EQUAL(scratch_files(scratch_dir, ""), 0);

	live();
	record_polls(1, SECOND);
	d9__note(D9_LOG_WARNING, "something went wrong");
	die();
	check_rescued(2, 0);
	CU_ASSERT_EQUAL(scratch_count("RecorderLogEvent"), 1);
}

static void test_lines_of_the_log_that_the_trace_has_are_not_repeated(void)
{
	live();
	record_polls(1, SECOND);
	d9__note(D9_LOG_WARNING, "first");
	d9__notes_tell(d9__notes_end());
	d9__note(D9_LOG_WARNING, "second");
	die();

	check_rescued(2, 0);
	CU_ASSERT_EQUAL(scratch_count("RecorderLogEvent"), 1);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "events of the ring become a sealed segment and the ring goes",
		  test_events_of_the_ring_become_a_sealed_segment_and_the_ring_goes },
		{ "segment of a ring tells whose it is and how it was made",
		  test_segment_of_a_ring_tells_whose_it_is_and_how_it_was_made },
		{ "segment of a ring has the clock of its process",
		  test_segment_of_a_ring_has_the_clock_of_its_process },
		{ "part of a batch that the trace has is not written again",
		  test_part_of_a_batch_that_the_trace_has_is_not_written_again },
		{ "chunk that the trace has is neither written again nor missed",
		  test_chunk_that_the_trace_has_is_neither_written_again_nor_missed },
		{ "ring of which all is in the trace goes without a word",
		  test_ring_of_which_all_is_in_the_trace_goes_without_a_word },
		{ "ring of another layout is left and so is the open segment",
		  test_ring_of_another_layout_is_left_and_so_is_the_open_segment },
		{ "facts of the process come from its ring",
		  test_facts_of_the_process_come_from_its_ring },
		{ "first facts of the description count",
		  test_first_facts_of_the_description_count },
		{ "description that cannot be read is left out",
		  test_description_that_cannot_be_read_is_left_out },
		{ "losses that the trace does not tell of are told",
		  test_losses_that_the_trace_does_not_tell_of_are_told },
		{ "losses alone are worth a segment", test_losses_alone_are_worth_a_segment },
		{ "losses that were told are not told again",
		  test_losses_that_were_told_are_not_told_again },
		{ "batch that does not decode is counted as lost and others are kept",
		  test_batch_that_does_not_decode_is_counted_as_lost_and_others_are_kept },
		{ "chunk that is missing between others makes the segment incomplete",
		  test_chunk_that_is_missing_between_others_makes_the_segment_incomplete },
		{ "chunks before the oldest are missed only where all is kept",
		  test_chunks_before_the_oldest_are_missed_only_where_all_is_kept },
		{ "records of side rings become events", test_records_of_side_rings_become_events },
		{ "record with frames behind its event is counted as lost",
		  test_record_with_frames_behind_its_event_is_counted_as_lost },
		{ "records that are no event are counted as lost",
		  test_records_that_are_no_event_are_counted_as_lost },
		{ "types of the program are taken from its description",
		  test_types_of_the_program_are_taken_from_its_description },
		{ "call that was open lasted until the last tick",
		  test_call_that_was_open_lasted_until_the_last_tick },
		{ "call whose last tick the trace has is not told again",
		  test_call_whose_last_tick_the_trace_has_is_not_told_again },
		{ "call is not taken for one of another worker or task",
		  test_call_is_not_taken_for_one_of_another_worker_or_task },
		{ "short call and one of a recorder that was off are not told",
		  test_short_call_and_one_of_a_recorder_that_was_off_are_not_told },
		{ "slot of a thread that is in no call tells of none",
		  test_slot_of_a_thread_that_is_in_no_call_tells_of_none },
		{ "log of the process goes into the segment but makes none",
		  test_log_of_the_process_goes_into_the_segment_but_makes_none },
		{ "lines of the log that the trace has are not repeated",
		  test_lines_of_the_log_that_the_trace_has_are_not_repeated },
		CU_TEST_INFO_NULL,
	};
	int failed = d9_test_main("rescue_ring", tests);

	scratch_remove();
	return failed;
}
