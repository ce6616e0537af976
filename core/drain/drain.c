/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch may be taken whole, when its chunk is full, or as a published prefix while its thread
 * goes on writing it (recorder.md, 3.6).  Per slot, batches leave in the order of their serials;
 * a serial that does not follow the last one means that chunks were lost in between.
 *
 * Batches are written in groups: added to the writer, committed with one write, and only then
 * released or unpinned.  If the commit fails, full chunks go back to where they were in the queue.
 *
 * A worker id may move from a thread that ended to a new one, and so to another slot.  Per worker,
 * times must not go back in the file: the id's next thread goes on in the chunk of the one before, or sees
 * to it that this is sealed, see d9__slot_follow(); |full| is first in, first out, and a prefix is taken
 * only when nothing waits in |full|.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "base/test_point.h"
#include "drain/drain.h"
#include "drain/rates.h"
#include "format/encoder.h"
#include "segment/continuation.h"

#define GROUP      16
#define GROUPS_MAX 20 /* per tick: about 50 ms of compression */
#define PROCESS    D9__SLOT_COUNT

int d9__drain_reserve(struct d9__drain *drain)
{
	if (!drain->walker)
		drain->walker = d9__malloc(sizeof(*drain->walker));
	return drain->walker ? 0 : -ENOMEM;
}

int d9__drain_init(struct d9__drain *drain, struct d9__writer *writer)
{
	drain->writer = writer;
	drain->ring = &d9__ring;
	drain->written = drain->gaps = (struct d9__gap){ 0 };
	drain->told = false;
	/* A new trace knows nothing of what an older one said about a worker. */
	for (uint32_t i = 0; i < D9__SLOT_COUNT; i++)
		drain->slot[i].gap = false;
	return d9__drain_reserve(drain);
}

void d9__drain_release(struct d9__drain *drain)
{
	d9__free(drain->walker);
	drain->walker = NULL;
	d9__builder_release(&drain->note);
	d9__builder_release(&drain->rest);
}

/* ---- losses ---- */

static struct d9__loss *loss_of(const struct d9__drain *drain, uint32_t index, int cause)
{
	struct d9__losses *losses = index == PROCESS ? drain->ring->proc_losses :
						       &drain->ring->losses[index];

	return &losses->cause[cause];
}

static uint64_t lost_now(struct d9__loss *loss)
{
	return atomic_load_explicit(&loss->events, memory_order_relaxed);
}

bool d9__drain_take_loss(struct d9__drain *drain, uint32_t index, int cause,
			 struct d9__drain_loss *out)
{
	struct d9__drain_slot *st = &drain->slot[index];
	struct d9__loss *loss = loss_of(drain, index, cause);

	*out = (struct d9__drain_loss){ 0 };
	if (lost_now(loss) == st->lost[cause])
		return false;
	out->events = d9__loss_take(loss, st->lost[cause], &out->from_ns, &out->to_ns);
	/* Not known: counted while the hull began anew. */
	if (!out->from_ns)
		out->from_ns = out->to_ns;
	/* Stamps of several threads may come in another order. */
	if (out->from_ns < st->lost_ns[cause] && st->lost_ns[cause] <= out->to_ns)
		out->from_ns = st->lost_ns[cause];
	st->lost[cause] += out->events;
	st->lost_ns[cause] = out->to_ns;
	drain->told = true;
	out->tid = index == PROCESS ? 0 : d9__slot_tid(&drain->ring->slots[index]);
	return out->events != 0;
}

void d9__drain_told(struct d9__drain *drain, uint32_t index, int cause)
{
	const struct d9__drain_slot *st = &drain->slot[index];

	d9__loss_noted(loss_of(drain, index, cause), st->lost[cause], st->lost_ns[cause]);
}

void d9__drain_put_back_loss(struct d9__drain *drain, uint32_t index, int cause,
			     const struct d9__drain_loss *lost)
{
	drain->slot[index].lost[cause] -= lost->events;
	drain->slot[index].lost_ns[cause] = 0;
}

static void put_loss(struct d9__drain *drain, uint32_t index, const char *cause,
		     const struct d9__drain_loss *lost, uint64_t now_ns)
{
	const struct d9__drain_slot *st = &drain->slot[index];
	uint32_t name = d9__builder_name(&drain->note, cause);
	uint32_t worker = index == PROCESS || st->worker >= D9__BRIDGE_WORKERS ? 255 : st->worker;
	uint8_t *p = d9__builder_event(&drain->note, D9__EVENT_LOSS,
				       lost->to_ns ? lost->to_ns : now_ns,
				       4 + 4 + 4 * D9__VARINT_MAX);

	if (!p)
		return;
	p = d9__wire_put_u32(p, lost->tid);
	p = d9__varint_put(p, worker);
	p = d9__wire_put_u32(p, name);
	p = d9__varint_put(p, lost->events);
	p = d9__varint_put(p, lost->from_ns);
	d9__builder_end(&drain->note, d9__varint_put(p, lost->to_ns));
	d9__writer_lossy(drain->writer);
}

/* Add to the note what slot |index| lost and that was not written down yet. */
static void note_losses(struct d9__drain *drain, uint32_t index, uint64_t now_ns)
{
	struct d9__drain_loss lost;

	for (int cause = 0; cause < D9__LOSS_CAUSES; cause++)
		if (d9__drain_take_loss(drain, index, cause, &lost))
			put_loss(drain, index, d9__loss_names[cause], &lost, now_ns);
}

void d9__drain_paused(struct d9__drain *drain)
{
	for (uint32_t i = 0; i < d9__slot_high(); i++) {
		struct d9__drain_loss lost;

		if (!d9__drain_take_loss(drain, i, D9__LOSS_OVERRUN, &lost))
			continue;
		/* In this order who looks in between, or recovers the ring, may find them twice, but not hidden. */
		d9__loss_add((int)i, D9__LOSS_DISK, lost.events, lost.from_ns, lost.to_ns);
		atomic_fetch_sub_explicit(&loss_of(drain, i, D9__LOSS_OVERRUN)->events, lost.events,
					  memory_order_relaxed);
		drain->slot[i].lost[D9__LOSS_OVERRUN] -= lost.events;
		d9__drain_told(drain, i, D9__LOSS_OVERRUN);
	}
}

/* ---- the state of workers behind a gap ---- */

struct peek {
	uint32_t worker;
	uint64_t cpu_ns;
};

/* The first park or unpark of the worker tells its CPU time. */
static bool find_cpu_time(void *arg, const struct d9__wire_frame *frame)
{
	struct peek *peek = arg;
	const uint8_t *p = frame->values;

	if (frame->tag != D9__WIRE_EVENT ||
	    (frame->type_id != D9__EVENT_PARK && frame->type_id != D9__EVENT_UNPARK) ||
	    d9__walk_varint(&p) != peek->worker)
		return true;
	p++; /* local_queue */
	peek->cpu_ns = d9__walk_varint(&p);
	return false;
}

static void note_gap(struct d9__drain *drain, const struct d9__batch *batch,
		     const struct d9__entry_state *entry)
{
	struct peek peek = { entry->worker, 0 };
	struct d9__gap_edge gap = { .to_ns = batch->first_ns, .tid = batch->tid };

	if (batch->taken_bytes)
		gap.to_ns = drain->slot[batch->slot].prefix_ns;
	d9__walk(drain->walker, batch->bytes, batch->len, find_cpu_time, &peek);
	gap.cpu_ns = peek.cpu_ns;
	d9__gap_close(&drain->gaps, entry, &gap, &drain->note);
}

/* Find the state of a worker before its first event, as that event tells it. */
static bool find_entry(void *arg, const struct d9__wire_frame *frame)
{
	struct d9__entry_state *entry = arg;
	const uint8_t *p = frame->values;

	if (frame->tag != D9__WIRE_EVENT || frame->type_id > D9__EVENT_UNPARK)
		return true;
	if (frame->type_id != D9__EVENT_POLL_END) {
		entry->worker = (uint32_t)d9__walk_varint(&p);
		entry->state = frame->type_id == D9__EVENT_UNPARK ? D9__WORKER_PARKED :
								    D9__WORKER_RUNNING;
	}
	return false;
}

/*
 * The thread of |batch| becomes a worker in it.  Whose id that was before may have lost its last chunk: its
 * slot tells of that later, or never.  Whether the file leaves the worker otherwise than |entry|, which is set.
 */
static bool is_gap_of_another(struct d9__drain *drain, const struct d9__batch *batch, bool whole,
			      struct d9__entry_state *entry)
{
	const struct d9__gap_worker *before;

	if (entry->worker != D9__WORKER_NONE || (whole && batch->exit.worker == D9__WORKER_NONE))
		return false;
	d9__walk(drain->walker, batch->bytes, batch->len, find_entry, entry);
	if (entry->worker >= D9__BRIDGE_WORKERS)
		return false;
	before = &drain->gaps.worker[entry->worker];
	return before->state != D9__WORKER_UNKNOWN && before->state != entry->state;
}

struct follow {
	struct d9__drain *drain;
	struct d9__drain_slot *st;
	uint64_t last_ns;
};

static bool follow_frame(void *arg, const struct d9__wire_frame *frame)
{
	struct follow *follow = arg;
	const uint8_t *p = frame->values;
	uint64_t worker;

	if (frame->tag != D9__WIRE_EVENT)
		return true;
	follow->last_ns = frame->ns;
	if (frame->type_id > D9__EVENT_UNPARK)
		return true;
	d9__gap_wrote_event(&follow->drain->gaps, frame);
	worker = d9__walk_varint(&p);
	if (worker < D9__BRIDGE_WORKERS) {
		const struct d9__gap_worker *w = &follow->drain->gaps.worker[worker];

		follow->st->end = (struct d9__entry_state){ w->task, (uint32_t)worker, w->state };
		follow->st->worker = (uint32_t)worker;
	}
	return true;
}

/* ---- taking batches ---- */

/* Where |batch| begins: at its header's entry state, or where the prefix before it ended. */
static struct d9__entry_state entry_of(const struct d9__drain_slot *st,
				       const struct d9__batch *batch)
{
	return batch->taken_bytes ? st->end : batch->entry;
}

static bool follows(const struct d9__drain_slot *st, const struct d9__batch *batch)
{
	return batch->serial == st->serial + !st->partly;
}

static int add_batch(struct d9__drain *drain, const struct d9__batch *batch, uint64_t since_ns,
		     uint64_t now_ns)
{
	uint32_t events = batch->events - batch->taken_events;
	/* The part taken last ended at |since_ns|; near enough for a table of contents. */
	uint64_t first_ns = batch->taken_bytes ? since_ns : batch->first_ns;
	int err;

	if (!batch->taken_bytes)
		return d9__writer_add(drain->writer, batch->bytes, batch->len, first_ns,
				      batch->last_ns, events, now_ns);
	if (drain->writer->kind == D9_WRITER_NULL)
		return 0;
	err = d9__continuation(drain->walker, batch->bytes, batch->taken_bytes, batch->len,
			       &drain->rest, NULL);
	return err ? err : d9__writer_add(drain->writer, drain->rest.data, drain->rest.len,
					  first_ns, batch->last_ns, events, now_ns);
}

/* Where the prefix |batch| leaves its worker: its header cannot tell. */
static void follow_prefix(struct d9__drain *drain, struct d9__drain_slot *st,
			  struct d9__batch *batch, const struct d9__entry_state *entry)
{
	struct follow follow = { drain, st, batch->first_ns };

	st->end = *entry;
	d9__walk(drain->walker, batch->bytes, batch->len, follow_frame, &follow);
	st->prefix_ns = batch->last_ns = follow.last_ns;
}

int d9__drain_take(struct d9__drain *drain, struct d9__batch *batch, bool whole, uint64_t now_ns)
{
	struct d9__drain_slot *st = &drain->slot[batch->slot];
	bool gap = st->gap || !follows(st, batch);
	struct d9__entry_state entry = entry_of(st, batch), first = entry;
	uint64_t since_ns = st->prefix_ns;
	int err = 0;

	if (drain->ring == &d9__ring)
		d9__rates_take(batch);
	if (is_gap_of_another(drain, batch, whole, &first)) {
		entry = first;
		gap = true;
	}
	if (entry.worker != D9__WORKER_NONE)
		st->worker = entry.worker;
	d9__builder_begin(&drain->note);
	if (gap) {
		note_losses(drain, batch->slot, now_ns);
		note_gap(drain, batch, &entry);
		err = d9__writer_note(drain->writer, &drain->note, true, now_ns);
	}
	if (!whole)
		follow_prefix(drain, st, batch, &entry);
	if (!err && batch->events > batch->taken_events)
		err = add_batch(drain, batch, since_ns, now_ns);
	st->gap = false;
	st->serial = batch->serial;
	st->partly = !whole;
	if (whole) {
		st->end = batch->exit;
		d9__gap_wrote(&drain->gaps, &batch->exit, batch->tid, batch->last_ns);
	}
	return err;
}

void d9__drain_follow(struct d9__drain *drain, const uint8_t *batch, uint32_t len)
{
	struct d9__drain_slot nobody = { 0 };
	struct follow follow = { drain, &nobody, 0 };

	d9__walk(drain->walker, batch, len, follow_frame, &follow);
}

/* ---- groups ---- */

struct member {
	struct d9__batch batch;
	bool whole;
	struct d9__drain_slot before; /* its slot's state, to go back to */
};

struct group {
	struct member member[GROUP];
	unsigned n;
	int err;
};

/* Every slot, then the process. */
static void note_told(struct d9__drain *drain)
{
	for (uint32_t i = 0; i <= PROCESS; i++)
		for (int cause = 0; cause < D9__LOSS_CAUSES; cause++) {
			struct d9__loss *loss = loss_of(drain, i, cause);
			uint64_t noted = atomic_load_explicit(&loss->noted, memory_order_relaxed);

			if (noted != drain->slot[i].lost[cause])
				d9__drain_told(drain, i, cause);
		}
}

static void note_written(struct d9__drain *drain)
{
	if (drain->told)
		note_told(drain);
	drain->told = false;
	drain->written = drain->gaps;
}

static uint64_t events_of(const struct d9__batch *batch)
{
	return batch->events - batch->taken_events;
}

void d9__drain_failed(struct d9__drain *drain)
{
	drain->gaps = drain->written;
	for (uint32_t i = 0; drain->told && i <= PROCESS; i++)
		for (int cause = 0; cause < D9__LOSS_CAUSES; cause++) {
			drain->slot[i].lost[cause] = atomic_load_explicit(&loss_of(drain, i, cause)->noted,
									  memory_order_relaxed);
			drain->slot[i].lost_ns[cause] = 0;
		}
	drain->told = false;
}

int d9__drain_wrote(struct d9__drain *drain, uint64_t now_ns)
{
	int err;

	note_written(drain);
	err = d9__writer_rotate_full(drain->writer, now_ns);
	if (err)
		d9__drain_failed(drain);
	return err;
}

static void count_written(struct d9__drain *drain, uint64_t events)
{
	atomic_fetch_add_explicit(&drain->writer->counters->events, events, memory_order_relaxed);
}

/* Note how far the trace is, because recovery goes on there if we are killed. */
static void remember(const struct member *member)
{
	struct d9__slot *slot = &d9__ring.slots[member->batch.slot];

	atomic_store_explicit(&slot->written,
			      (uint64_t)member->batch.serial << 32 | member->whole,
			      memory_order_release);
}

static void let_go(const struct member *member, bool written)
{
	if (written)
		remember(member);
	D9__TEST_POINT(FLUSH_REMEMBERED);
	if (!member->whole)
		d9__chunk_unpin(&member->batch, written);
	else if (written)
		d9__chunk_release(&member->batch);
	else
		d9__chunk_put_back(&member->batch);
	D9__TEST_POINT(FLUSH_RELEASED);
}

/* As if nothing of it had been taken.  Backwards: a slot may have several members. */
static void take_back(struct d9__drain *drain, struct group *group)
{
	for (unsigned i = group->n; i-- > 0;)
		drain->slot[group->member[i].batch.slot] = group->member[i].before;
	d9__drain_failed(drain);
}

/* Write the group and let go of its chunks.  0 or -errno; then they wait in the ring as before. */
static int commit(struct d9__drain *drain, struct group *group, uint64_t now_ns)
{
	int err = group->err, sealing = 0;
	uint64_t events = 0;

	if (!group->n)
		return 0;
	for (unsigned i = 0; i < group->n; i++)
		events += events_of(&group->member[i].batch);
	D9__TEST_POINT(FLUSH_ADDED);
	if (err)
		d9__writer_abandon(drain->writer, err, now_ns);
	else
		err = d9__writer_commit(drain->writer, now_ns);
	if (err) {
		take_back(drain, group);
	} else {
		count_written(drain, events);
		sealing = d9__drain_wrote(drain, now_ns);
	}
	for (unsigned i = 0; i < group->n; i++)
		let_go(&group->member[i], !err);
	group->n = 0;
	group->err = 0;
	return err ? err : sealing;
}

/* ---- prefixes ---- */

/* Without an age, stamps of a clock that is ahead of |now_ns| are as good as others. */
static bool is_old(const struct d9__drain_slot *st, const struct d9__batch *batch, uint64_t now_ns,
		   uint64_t age_ns)
{
	uint64_t since = st->partly && st->serial == batch->serial ? st->prefix_ns :
								     batch->first_ns;

	return !age_ns || since + age_ns <= now_ns;
}

/* False if something that comes before may still wait in |full|. */
static bool take_prefix(struct d9__drain *drain, struct group *group, uint32_t index,
			uint64_t now_ns, uint64_t age_ns)
{
	struct member *member = &group->member[group->n];
	struct d9__drain_slot *st = &drain->slot[index];

	if (!d9__chunk_pin_open(index, &member->batch))
		return true;
	/*
	 * Asked after the prefix was looked at: what its events follow was handed over before they
	 * were published.
	 */
	if (!is_old(st, &member->batch, now_ns, age_ns) || d9__chunk_full_waits()) {
		d9__chunk_unpin(&member->batch, false);
		return !d9__chunk_full_waits();
	}
	member->whole = false;
	member->before = *st;
	group->n++;
	group->err = d9__drain_take(drain, &member->batch, false, now_ns);
	return true;
}

bool d9__drain_prefixes(struct d9__drain *drain, uint64_t now_ns, uint64_t age_ns)
{
	struct group group = { .n = 0 };
	bool all = true;
	int err = 0;

	for (uint32_t i = 0; i < d9__slot_high() && !err; i++) {
		if (!take_prefix(drain, &group, i, now_ns, age_ns))
			all = false;
		if (group.err || group.n == GROUP)
			err = commit(drain, &group, now_ns);
	}
	return !commit(drain, &group, now_ns) && !err && all;
}

/* ---- full chunks ---- */

bool d9__drain_full(struct d9__drain *drain, uint64_t now_ns)
{
	bool any = false;

	for (int groups = 0; groups < GROUPS_MAX; groups++) {
		struct group group = { .n = 0 };

		while (group.n < GROUP &&
		       d9__chunk_pop_full(&group.member[group.n].batch)) {
			struct member *member = &group.member[group.n++];

			D9__TEST_POINT(FLUSH_POPPED);
			member->whole = true;
			member->before = drain->slot[member->batch.slot];
			if (!group.err)
				group.err = d9__drain_take(drain, &member->batch, true, now_ns);
		}
		if (!group.n)
			break;
		any = true;
		if (commit(drain, &group, now_ns))
			break;
	}
	return any;
}

void d9__drain_losses(struct d9__drain *drain, uint64_t now_ns)
{
	int err;

	d9__builder_begin(&drain->note);
	for (uint32_t i = 0; i < (drain->ring == &d9__ring ? d9__slot_high() : D9__SLOT_COUNT); i++)
		note_losses(drain, i, now_ns);
	note_losses(drain, PROCESS, now_ns);
	err = d9__writer_note(drain->writer, &drain->note, true, now_ns);
	if (!err)
		return;
	d9__writer_abandon(drain->writer, err, now_ns);
	d9__drain_failed(drain);
}

/* ---- the rest ---- */

uint64_t d9__drain_activity(struct d9__drain *drain, uint32_t own)
{
	uint64_t events = 0;

	for (uint32_t i = 0; i < d9__slot_high(); i++) {
		const struct d9__slot *slot = &d9__ring.slots[i];
		/* Events and serial: both grow, so the sum tells. */
		uint64_t now = (atomic_load_explicit(&slot->open, memory_order_relaxed) >> 32 << 20) +
			       (atomic_load_explicit(&slot->published, memory_order_relaxed) >> 32);

		if (now != drain->slot[i].activity && i != own)
			events += now > drain->slot[i].activity ? now - drain->slot[i].activity : 1;
		drain->slot[i].activity = now;
	}
	return events;
}

void d9__drain_give_up(struct d9__drain *drain)
{
	struct d9__batch batch;

	while (d9__chunk_pop_full(&batch)) {
		d9__loss_add((int)batch.slot, D9__LOSS_DISK, batch.events - batch.taken_events,
			     batch.first_ns, batch.last_ns);
		drain->slot[batch.slot].serial = batch.serial;
		drain->slot[batch.slot].partly = false;
		drain->slot[batch.slot].gap = true;
		d9__chunk_release(&batch);
	}
}

/* The next recorder of this process begins behind |batch|. */
static void forget(struct d9__drain_slot *st, const struct d9__batch *batch, bool whole)
{
	st->serial = batch->serial;
	st->partly = !whole;
	st->gap = false;
	st->end = (struct d9__entry_state){ 0, D9__WORKER_NONE, D9__WORKER_UNKNOWN };
}

void d9__drain_forget(struct d9__drain *drain)
{
	struct d9__batch batch;

	while (d9__chunk_pop_full(&batch)) {
		forget(&drain->slot[batch.slot], &batch, true);
		d9__chunk_release(&batch);
	}
	for (uint32_t i = 0; i < d9__slot_high(); i++) {
		if (!d9__chunk_pin_open(i, &batch))
			continue;
		forget(&drain->slot[i], &batch, false);
		drain->slot[i].prefix_ns = d9__clock_mono_ns();
		d9__chunk_unpin(&batch, true);
	}
}
