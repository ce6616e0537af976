/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Held chunks are in no queue, so no thread can overwrite them; open ones are pinned, and of them
 * the published prefix counts.  They are written in the order in which they were sealed, of each
 * slot all from the first in the window to the newest: so polls and parks of every worker alternate,
 * as in any trace of ours that begins somewhere.  Each chunk goes back as soon as it is written.
 *
 * A window that reaches into the future is written in pieces, one a tick: each takes what was sealed since the one
 * before, and goes on in open chunks where that one stopped.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/heap.h"
#include "base/time.h"
#include "drain/drain.h"
#include "drain/dump.h"
#include "drain/dump_writer.h"
#include "drain/health.h"
#include "format/wire.h"
#include "ring/chunk.h"
#include "ring/clock.h"
#include "segment/dump_tasks.h"
#include "segment/note_event.h"

#define GROUP     16
#define SPARE_MAX 32 /* chunks that threads may go on with meanwhile, or a quarter of the ring */

#define SETTLED_NS D9__SECOND_NS /* an event that was stamped so long ago is published */

struct pin {
	struct d9__batch batch;
	bool pinned;
};

/* The chunk of a slot that a piece took last, and how much of it: the next piece goes on there. */
struct taken {
	bool any, whole;
	uint32_t serial, bytes, events;
};

struct d9__dump_job {
	struct d9__dump *dump;
	const struct d9__dump_maker *maker;
	struct d9__writer *writer; /* |maker->own|, or that of |other| */
	struct d9__dump_writer other;
	char last[24]; /* how far back, for the metadata */
	struct d9__drain drain;
	uint64_t from_ns, piece_ns; /* when the window begins; when the latest piece was taken */
	struct d9__chunk_hold held[2 * D9__CHUNKS_MAX];
	uint32_t n_held;
	uint32_t before[D9__SLOT_COUNT]; /* serial of the slot's newest chunk when the dump began */
	bool begun[D9__SLOT_COUNT]; /* something of the slot was looked at */
	struct taken taken[D9__SLOT_COUNT];
	struct d9__dump_tasks tasks;
	struct d9__chunk_hold older[D9__CHUNKS_MAX];
	struct pin pins[D9__SLOT_COUNT];
};

/* ---- the window ---- */

/* 48 bits of ms since 1970 and 80 random ones, in Crockford's base 32. */
void d9__dump_name(struct d9__dump *dump)
{
	char *out = dump->id;
	static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
	uint64_t ms = d9__clock_real_ns() / D9__MS_NS;
	uint8_t random[D9__DUMP_ID_LEN - 10];

	if (getrandom(random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random))
		for (size_t i = 0; i < sizeof(random); i++)
			random[i] = (uint8_t)(d9__clock_ticks() >> (i % 8));
	for (int i = 0; i < 10; i++)
		out[i] = digits[ms >> (45 - 5 * i) & 31];
	for (size_t i = 0; i < sizeof(random); i++)
		out[10 + i] = digits[random[i] & 31];
	out[D9__DUMP_ID_LEN] = '\0';
}

static uint32_t spare_chunks(void)
{
	uint32_t chunks = atomic_load_explicit(&d9__ring.header->chunk_count, memory_order_relaxed);

	return chunks / 4 < SPARE_MAX ? chunks / 4 : SPARE_MAX;
}

/* Open chunks before those that were sealed meanwhile: nothing falls in between. */
static void collect(struct d9__dump_job *job, uint64_t from_ns)
{
	job->n_held = d9__chunk_hold(job->held, 0, from_ns, spare_chunks());
	for (uint32_t i = 0; i < d9__slot_high(); i++)
		job->pins[i].pinned = d9__chunk_pin_open(i, &job->pins[i].batch) == 1;
	job->n_held = d9__chunk_hold(job->held, job->n_held, from_ns, spare_chunks());
}

static void unpin(struct pin *pin)
{
	if (pin->pinned)
		d9__chunk_unpin(&pin->batch, false);
	pin->pinned = false;
}

/* What was sealed after it was pinned is held as well, or was left out with all before it. */
static void unpin_held(struct d9__dump_job *job)
{
	struct d9__batch batch;

	for (uint32_t i = 0; i < job->n_held; i++) {
		struct pin *pin;

		d9__chunk_held_batch(&job->held[i], &batch);
		pin = &job->pins[batch.slot];
		if (pin->pinned && (int32_t)(batch.serial - pin->batch.serial) >= 0)
			unpin(pin);
	}
}

/* ---- what of a batch lies in the window ---- */

struct cut {
	const struct d9__batch *batch;
	uint64_t from_ns, ns;
	uint32_t at, events;
};

/* The first event in the window, behind what was taken from the batch before. */
static bool find_cut(void *arg, const struct d9__wire_frame *frame)
{
	struct cut *cut = arg;
	uint32_t at = (uint32_t)(frame->bytes - cut->batch->bytes);

	if (frame->tag != D9__WIRE_EVENT)
		return true;
	cut->ns = frame->ns;
	if (frame->ns >= cut->from_ns && at >= cut->batch->taken_bytes) {
		cut->at = at;
		return false;
	}
	cut->events++;
	return true;
}

/* False: nothing of it. */
static bool cut_batch(struct d9__dump_job *job, struct d9__batch *batch)
{
	struct cut cut = { .batch = batch, .from_ns = job->from_ns };

	if (batch->first_ns >= job->from_ns && !batch->taken_bytes)
		return true;
	if (d9__walk(job->drain.walker, batch->bytes, batch->len, find_cut, &cut) != 1)
		return false;
	/* Where it begins, reset and all, goes along. */
	if (!cut.events)
		return true;
	batch->taken_bytes = cut.at;
	batch->taken_events = cut.events;
	job->drain.slot[batch->slot].prefix_ns = cut.ns;
	return true;
}

/*
 * The first of its slot follows nothing, unless the slot came to it since the dump began: then what
 * its thread overwrote before a piece came is missing.  A gap behind it is one of lost events.
 */
static bool begins(struct d9__dump_job *job, struct d9__batch *batch)
{
	struct d9__drain_slot *st = &job->drain.slot[batch->slot];

	if (!cut_batch(job, batch))
		return false;
	st->partly = batch->taken_bytes != 0;
	st->serial = batch->serial - !st->partly;
	if ((int32_t)(batch->serial - job->before[batch->slot]) > 1) {
		st->serial = job->before[batch->slot];
		st->partly = false;
		d9__writer_lossy(job->writer);
	}
	return true;
}

/* False: an earlier piece has all of it. */
static bool goes_on(struct d9__dump_job *job, const struct taken *taken, struct d9__batch *batch)
{
	int32_t ahead = (int32_t)(batch->serial - taken->serial);

	if (ahead < 0 || (!ahead && taken->whole))
		return false;
	if (!ahead) {
		batch->taken_bytes = taken->bytes;
		batch->taken_events = taken->events;
	} else if (ahead > 1 || !taken->whole) {
		/* Its thread overwrote what lies between, because no piece came in time. */
		d9__writer_lossy(job->writer);
	}
	return true;
}

static int write_batch(struct d9__dump_job *job, struct d9__batch *batch, bool whole)
{
	struct taken *taken = &job->taken[batch->slot];
	int err;

	if (!(taken->any ? goes_on(job, taken, batch) : begins(job, batch)))
		return 0;
	err = d9__drain_take(&job->drain, batch, whole, d9__clock_mono_ns());
	if (err)
		return err;
	*taken = (struct taken){ true, whole, batch->serial, batch->len, batch->events };
	job->dump->events += batch->events - batch->taken_events;
	return 0;
}

/* ---- tasks from before ---- */

static void look_at(struct d9__dump_job *job, struct d9__batch *batch)
{
	if (!job->begun[batch->slot] && !cut_batch(job, batch))
		return;
	job->begun[batch->slot] = true;
	d9__dump_tasks_look(&job->tasks, job->drain.walker, batch->bytes, batch->taken_bytes, batch->len);
}

static void look_at_all(struct d9__dump_job *job)
{
	struct d9__batch batch;

	for (uint32_t i = 0; i < job->n_held; i++) {
		d9__chunk_held_batch(&job->held[i], &batch);
		look_at(job, &batch);
		if (i % GROUP == GROUP - 1)
			job->maker->keep_up();
	}
	for (uint32_t i = 0; i < D9__SLOT_COUNT; i++) {
		batch = job->pins[i].batch;
		if (job->pins[i].pinned)
			look_at(job, &batch);
	}
}

static void search_in(struct d9__dump_job *job, const struct d9__batch *batch)
{
	d9__dump_tasks_search(&job->tasks, job->drain.walker, batch->bytes, batch->len);
}

/* Tasks that ended in the window may have begun in what the ring holds from before it. */
static void search_ring(struct d9__dump_job *job)
{
	struct d9__batch batch;
	uint32_t n = d9__chunk_hold(job->older, 0, 0, spare_chunks());

	while (n--) {
		d9__chunk_held_batch(&job->older[n], &batch);
		search_in(job, &batch);
		d9__chunk_let_go(&job->older[n]);
		if (n % GROUP == 0)
			job->maker->keep_up();
	}
	/* The first ones may begin before it. */
	for (uint32_t i = 0; i < job->n_held; i++) {
		d9__chunk_held_batch(&job->held[i], &batch);
		search_in(job, &batch);
	}
	for (uint32_t i = 0; i < D9__SLOT_COUNT; i++)
		if (job->pins[i].pinned)
			search_in(job, &job->pins[i].batch);
}

/* Before anything is written, because whoever reads in this order wants to know them. */
static int announce_tasks(struct d9__dump_job *job)
{
	int err = 0;

	look_at_all(job);
	if (d9__dump_tasks_settle(&job->tasks))
		search_ring(job);
	if (job->tasks.first_ns)
		err = d9__dump_tasks_announce(&job->tasks, job->writer, job->tasks.first_ns,
					      d9__clock_mono_ns());
	d9__dump_tasks_release(&job->tasks);
	return err;
}

/* ---- writing ---- */

static int write_held(struct d9__dump_job *job, int err)
{
	struct d9__batch batch;
	uint32_t done = 0;

	while (done < job->n_held && !err) {
		uint32_t end = done + GROUP < job->n_held ? done + GROUP : job->n_held;

		for (uint32_t i = done; i < end && !err; i++) {
			d9__chunk_held_batch(&job->held[i], &batch);
			err = write_batch(job, &batch, true);
		}
		if (!err)
			err = d9__writer_commit(job->writer, d9__clock_mono_ns());
		for (; done < end; done++)
			d9__chunk_let_go(&job->held[done]);
		job->maker->keep_up();
	}
	for (; done < job->n_held; done++)
		d9__chunk_let_go(&job->held[done]);
	return err;
}

static int write_pinned(struct d9__dump_job *job)
{
	int err = 0;

	for (uint32_t i = 0; i < D9__SLOT_COUNT; i++) {
		if (job->pins[i].pinned && !err)
			err = write_batch(job, &job->pins[i].batch, false);
		unpin(&job->pins[i]);
	}
	return err;
}

static int write_health(struct d9__dump_job *job)
{
	uint64_t now_ns = d9__clock_mono_ns();

	d9__health_event(&job->drain.note, job->maker->own, job->maker->state, now_ns);
	return d9__writer_note(job->writer, &job->drain.note, false, now_ns);
}

/* What the recorder noted in the window, or still has of it. */
static int write_log(struct d9__dump_job *job)
{
	struct d9__notes copy;

	d9__notes_copy(&copy);
	d9__builder_begin(&job->drain.note);
	d9__note_events_of(&copy, 0, job->from_ns, &job->drain.note);
	return d9__writer_note(job->writer, &job->drain.note, false, d9__clock_mono_ns());
}

/* Name the segment in |dump| before it is sealed: afterwards it is another one's turn. */
static void describe(struct d9__dump_job *job)
{
	const struct d9__writer *w = job->writer;
	struct d9__dump *dump = job->dump;

	snprintf(dump->path, sizeof(dump->path), "%s/%s/%s", w->ns.trace_dir, w->ns.boot_id,
		 w->seg.name);
	dump->segments = 1;
	dump->complete = w->seg.complete;
	dump->from_ns = w->seg.has.first_ns;
	dump->to_ns = w->seg.has.last_ns;
}

static uint64_t lost_by(uint32_t slot, int cause)
{
	const struct d9__losses *losses = slot == D9__SLOT_COUNT ? d9__ring.proc_losses :
								   &d9__ring.losses[slot];

	return atomic_load_explicit(&losses->cause[cause].events, memory_order_relaxed);
}

/*
 * The first piece takes all of the window that the ring has, a later one what threads published since |from_ns|.  It commits
 * the sealed chunks; the caller commits the open ones.
 */
static int write_piece(struct d9__dump_job *job, uint64_t from_ns)
{
	bool is_first = !job->piece_ns;
	int err, pinned;

	job->piece_ns = d9__clock_mono_ns();
	if (is_first)
		d9__dump_tasks_list(&job->tasks, job->from_ns);
	collect(job, from_ns);
	unpin_held(job);
	err = write_held(job, is_first ? announce_tasks(job) : 0);
	pinned = err ? 0 : write_pinned(job);
	for (uint32_t i = 0; i < D9__SLOT_COUNT; i++)
		unpin(&job->pins[i]);
	return err ? err : pinned;
}

/* The slot's owner counts without asking anybody. */
__attribute__((no_sanitize("thread"))) static uint32_t newest_serial(uint32_t slot)
{
	return __atomic_load_n(&d9__ring.slots[slot].serial, __ATOMIC_RELAXED);
}

static int begin(struct d9__dump_job *job)
{
	int err = d9__drain_init(&job->drain, job->writer);

	if (err)
		return err;
	/* Losses are events in the ring, of the flush thread's slot. */
	for (uint32_t i = 0; i <= D9__SLOT_COUNT; i++)
		for (int cause = 0; cause < D9__LOSS_CAUSES; cause++)
			job->drain.slot[i].lost[cause] = lost_by(i, cause);
	for (uint32_t i = 0; i < D9__SLOT_COUNT; i++)
		job->before[i] = newest_serial(i);
	memset(job->begun, 0, sizeof(job->begun));
	memset(job->taken, 0, sizeof(job->taken));
	job->piece_ns = job->dump->events = 0;
	return write_piece(job, job->from_ns);
}

static int finish(struct d9__dump_job *job, int err)
{
	struct d9__segment *seg = &job->writer->seg;
	uint64_t now_ns = d9__clock_mono_ns();

	if (!err && !seg->open)
		return 0;
	if (!err && job->maker->loss_ns >= seg->has.first_ns)
		d9__writer_lossy(job->writer);
	if (!err)
		err = write_health(job);
	if (!err)
		err = write_log(job);
	if (!err)
		describe(job);
	if (!err)
		err = d9__writer_rotate(job->writer, now_ns);
	job->dump->bytes = seg->bytes;
	if (err && seg->open)
		d9__writer_abandon(job->writer, err, now_ns);
	return err;
}

/* ---- where to ---- */

/* As |writer|, which is not the recorder's when it writes continuously: it has no segment open. */
static void take_writer(struct d9__dump_job *job, struct d9__writer *writer)
{
	struct d9__dump *dump = job->dump;

	snprintf(job->last, sizeof(job->last), "%llu", (unsigned long long)dump->last_ns);
	job->writer = writer;
	memcpy(writer->more, (const char *[D9__WRITER_MORE]){ "dump.id", dump->id, "dump.by",
							      dump->by, "dump.last_ns", job->last },
	       sizeof(writer->more));
}

static void give_writer_back(struct d9__dump_job *job)
{
	memset(job->writer->more, 0, sizeof(job->writer->more));
}

static int write_with(struct d9__dump_job *job, struct d9__writer *writer)
{
	int err;

	take_writer(job, writer);
	writer->all_or_nothing = true;
	err = finish(job, begin(job));
	writer->all_or_nothing = false;
	give_writer_back(job);
	return err;
}

static int write_own(struct d9__dump_job *job)
{
	struct d9__writer *own = job->maker->own;
	int err;

	if (!own->has_dir)
		return -ENOENT;
	err = write_with(job, own);
	/* Somebody removed our directory: it is made again, and what is in the ring is still there. */
	if (err == -ENOENT && !d9__namespace_renew(&own->ns))
		err = write_with(job, own);
	if (!err && job->dump->segments)
		d9__writer_keep_dump(own, job->dump->id, &own->seg.index, 1);
	return err;
}

static int write_and_close(struct d9__dump_job *job, int err)
{
	if (!err)
		err = write_with(job, &job->other.writer);
	d9__dump_writer_close(&job->other, job->maker);
	return err;
}

static int write_other(struct d9__dump_job *job)
{
	struct d9__namespace to;
	int err = d9__namespace_visit(&to, job->dump->dir, job->maker->own->ns.boot_id);

	return err ? err : write_and_close(job, d9__dump_writer_open(&job->other, job->maker, &to));
}

/* While our own writer has a segment open there: a dump whose window is open. */
static int write_beside(struct d9__dump_job *job)
{
	struct d9__writer *own = job->maker->own;
	int err = d9__dump_writer_open_beside(&job->other, job->maker);
	uint64_t index;

	if (err)
		return err;
	err = write_and_close(job, 0);
	index = job->other.writer.seg.index;
	if (err || !job->dump->segments)
		return err;
	d9__retention_add(&own->ret, 0, index, job->dump->bytes, d9__clock_real_ns());
	d9__retention_leave(&own->ret, 0, index);
	d9__writer_keep_dump(own, job->dump->id, &index, 1);
	return 0;
}

/* NULL: no memory. */
static struct d9__dump_job *new_job(struct d9__dump *dump, const struct d9__dump_maker *maker)
{
	struct d9__dump_job *job = d9__calloc(1, sizeof(*job));

	dump->complete = true;
	dump->err = -ENOMEM;
	if (!job)
		return NULL;
	dump->err = 0;
	job->dump = dump;
	job->maker = maker;
	job->from_ns = d9__dump_from(dump);
	return job;
}

static void drop_job(struct d9__dump_job *job)
{
	struct d9__dump *dump = job->dump;

	atomic_fetch_add_explicit(&job->maker->own->counters->events, dump->events, memory_order_relaxed);
	d9__drain_release(&job->drain);
	d9__free(job);
}

void d9__dump_ring(struct d9__dump *dump, const struct d9__dump_maker *maker)
{
	struct d9__dump_job *job;

	d9__dump_name(dump);
	job = new_job(dump, maker);
	if (!job)
		return;
	if (!d9__dump_is_own(dump, maker))
		dump->err = write_other(job);
	else
		dump->err = maker->own->seg.open ? write_beside(job) : write_own(job);
	if (dump->err) {
		dump->path[0] = '\0';
		dump->events = dump->bytes = dump->segments = 0;
	}
	drop_job(job);
}

/* ---- windows that reach into the future ---- */

struct d9__dump_job *d9__dump_begin(struct d9__dump *dump, const struct d9__dump_maker *maker)
{
	struct d9__dump_job *job = new_job(dump, maker);

	if (!job)
		return NULL;
	if (!maker->own->has_dir) {
		dump->err = -ENOENT;
		drop_job(job);
		return NULL;
	}
	take_writer(job, maker->own);
	/* The past is there another time. */
	job->writer->all_or_nothing = true;
	dump->err = begin(job);
	if (!dump->err)
		dump->err = d9__writer_commit(job->writer, d9__clock_mono_ns());
	if (dump->err && job->writer->seg.open)
		d9__writer_abandon(job->writer, dump->err, d9__clock_mono_ns());
	job->writer->all_or_nothing = false;
	if (!dump->err)
		return job;
	give_writer_back(job);
	dump->events = 0;
	drop_job(job);
	return NULL;
}

bool d9__dump_go_on(struct d9__dump_job *job, const struct d9__dump_maker *maker)
{
	uint64_t before_ns = job->piece_ns;

	job->maker = maker;
	if (job->dump->err)
		return false;
	job->dump->err = write_piece(job, before_ns > SETTLED_NS ? before_ns - SETTLED_NS : 0);
	if (!job->dump->err)
		job->dump->err = d9__writer_commit(job->writer, d9__clock_mono_ns());
	return !job->dump->err;
}

void d9__dump_end(struct d9__dump_job *job, const struct d9__dump_maker *maker)
{
	const struct d9__segment *seg = &job->writer->seg;

	d9__dump_go_on(job, maker);
	job->dump->err = finish(job, job->dump->err);
	/* What was written before it failed. */
	if (job->dump->err && seg->committed.last_ns) {
		job->dump->from_ns = seg->committed.first_ns;
		job->dump->to_ns = seg->committed.last_ns;
	}
	give_writer_back(job);
	drop_job(job);
}
