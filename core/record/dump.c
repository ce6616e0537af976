/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Held chunks are in no queue, so no thread can overwrite them; open ones are pinned, and of them
 * the published prefix counts.  They are written in the order in which they were sealed, of each
 * slot all from the first in the window to the newest: so polls and parks of every worker alternate,
 * as in any trace of ours that begins somewhere.  Each chunk goes back as soon as it is written.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "format/wire.h"
#include "record/chunk.h"
#include "record/clock.h"
#include "record/drain.h"
#include "record/dump.h"
#include "record/dump_tasks.h"
#include "record/dump_writer.h"
#include "record/health.h"

#define GROUP     16
#define SPARE_MAX 32 /* chunks that threads may go on with meanwhile, or a quarter of the ring */

struct pin {
	struct d9__batch batch;
	bool pinned;
};

struct job {
	struct d9__dump *dump;
	const struct d9__dump_maker *maker;
	struct d9__writer *writer; /* |maker->own|, or that of |other| */
	struct d9__dump_writer other;
	struct d9__drain drain;
	uint64_t from_ns;
	struct d9__held held[2 * D9__CHUNKS_MAX];
	uint32_t n_held;
	bool begun[D9__SLOT_COUNT]; /* something of the slot is written, or looked at */
	struct d9__dump_tasks tasks;
	struct d9__held older[D9__CHUNKS_MAX];
	struct pin pins[D9__SLOT_COUNT];
};

/* ---- the window ---- */

/* 48 bits of ms since 1970 and 80 random ones, in Crockford's base 32. */
static void make_id(char *out)
{
	static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
	uint64_t ms = d9__clock_real_ns() / 1000000;
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
static void collect(struct job *job)
{
	job->n_held = d9__chunk_hold(job->held, 0, job->from_ns, spare_chunks());
	for (uint32_t i = 0; i < d9__slot_high(); i++)
		job->pins[i].pinned = d9__chunk_pin_open(i, &job->pins[i].batch) == 1;
	job->n_held = d9__chunk_hold(job->held, job->n_held, job->from_ns, spare_chunks());
}

static void unpin(struct pin *pin)
{
	if (pin->pinned)
		d9__chunk_unpin(&pin->batch, false);
	pin->pinned = false;
}

/* What was sealed after it was pinned is held as well, or was left out with all before it. */
static void unpin_held(struct job *job)
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
static bool find_cut(void *arg, const struct d9__frame *frame)
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
static bool cut_batch(struct job *job, struct d9__batch *batch)
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

static int write_batch(struct job *job, struct d9__batch *batch, bool whole)
{
	struct d9__drain_slot *st = &job->drain.slot[batch->slot];
	uint64_t now_ns = d9__clock_mono_ns();
	int err;

	if (!job->begun[batch->slot]) {
		if (!cut_batch(job, batch))
			return 0;
		/* The first one follows nothing; a gap behind it is one of lost events. */
		job->begun[batch->slot] = true;
		st->partly = batch->taken_bytes != 0;
		st->serial = batch->serial - !st->partly;
	}
	err = d9__drain_take(&job->drain, batch, whole, now_ns);
	if (!err)
		job->dump->events += batch->events - batch->taken_events;
	return err;
}

/* ---- tasks from before ---- */

static void look_at(struct job *job, struct d9__batch *batch)
{
	if (!job->begun[batch->slot] && !cut_batch(job, batch))
		return;
	job->begun[batch->slot] = true;
	d9__dump_tasks_look(&job->tasks, job->drain.walker, batch->bytes, batch->taken_bytes, batch->len);
}

static void look_at_all(struct job *job)
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
	memset(job->begun, 0, sizeof(job->begun));
}

static void search_in(struct job *job, const struct d9__batch *batch)
{
	d9__dump_tasks_search(&job->tasks, job->drain.walker, batch->bytes, batch->len);
}

/* Tasks that ended in the window may have begun in what the ring holds from before it. */
static void search_ring(struct job *job)
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
static int announce_tasks(struct job *job)
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

static int write_held(struct job *job)
{
	struct d9__batch batch;
	uint64_t lost;
	uint32_t done = 0;
	int err = announce_tasks(job);

	while (done < job->n_held && !err) {
		uint32_t end = done + GROUP < job->n_held ? done + GROUP : job->n_held;

		for (uint32_t i = done; i < end && !err; i++) {
			d9__chunk_held_batch(&job->held[i], &batch);
			err = write_batch(job, &batch, true);
		}
		if (!err)
			err = d9__writer_commit(job->writer, d9__clock_mono_ns(), &lost);
		for (; done < end; done++)
			d9__chunk_let_go(&job->held[done]);
		job->maker->keep_up();
	}
	for (; done < job->n_held; done++)
		d9__chunk_let_go(&job->held[done]);
	return err;
}

static int write_pinned(struct job *job)
{
	int err = 0;

	for (uint32_t i = 0; i < D9__SLOT_COUNT; i++) {
		if (job->pins[i].pinned && !err)
			err = write_batch(job, &job->pins[i].batch, false);
		unpin(&job->pins[i]);
	}
	return err;
}

static int write_health(struct job *job)
{
	uint64_t now_ns = d9__clock_mono_ns();

	d9__health_event(&job->drain.note, job->maker->own, job->maker->state, now_ns);
	return d9__writer_note(job->writer, &job->drain.note, false, now_ns);
}

/* Name the segment in |dump| before it is sealed: afterwards it is another one's turn. */
static void describe(struct job *job)
{
	const struct d9__writer *w = job->writer;
	struct d9__dump *dump = job->dump;

	snprintf(dump->path, sizeof(dump->path), "%s/%s/%s", w->ns.trace_dir, w->ns.boot_id,
		 w->seg.name);
	dump->segments = 1;
	dump->complete = w->seg.complete;
	dump->from_ns = w->seg.first_ns;
	dump->to_ns = w->seg.last_ns;
}

static uint64_t lost_by(uint32_t slot, int cause)
{
	const struct d9__losses *losses = slot == D9__SLOT_COUNT ? d9__ring.proc_losses :
								   &d9__ring.losses[slot];

	return atomic_load_explicit(&losses->cause[cause].events, memory_order_relaxed);
}

static int write_ring(struct job *job)
{
	struct d9__segment *seg = &job->writer->seg;
	uint64_t now_ns = d9__clock_mono_ns(), lost;
	int err = d9__drain_init(&job->drain, job->writer), pinned;

	if (err)
		return err;
	/* Losses are events in the ring, of the flush thread's slot. */
	for (uint32_t i = 0; i <= D9__SLOT_COUNT; i++)
		for (int cause = 0; cause < D9__LOSS_CAUSES; cause++)
			job->drain.slot[i].lost[cause] = lost_by(i, cause);
	memset(job->begun, 0, sizeof(job->begun));
	d9__dump_tasks_list(&job->tasks, job->from_ns);
	collect(job);
	unpin_held(job);
	err = write_held(job);
	pinned = err ? 0 : write_pinned(job);
	for (uint32_t i = 0; i < D9__SLOT_COUNT; i++)
		unpin(&job->pins[i]);
	err = err ? err : pinned;
	if (!err && !seg->open)
		return 0;
	if (!err && job->maker->loss_ns >= seg->first_ns)
		d9__writer_lossy(job->writer);
	if (!err)
		err = write_health(job);
	if (!err)
		describe(job);
	if (!err)
		err = d9__writer_rotate(job->writer, now_ns, &lost);
	job->dump->bytes = seg->bytes;
	if (err && seg->open)
		d9__writer_abandon(job->writer, err, now_ns, &lost);
	return err;
}

/* ---- where to ---- */

/* As |writer|, which is not the recorder's when it writes continuously: it has no segment open. */
static int write_with(struct job *job, struct d9__writer *writer)
{
	struct d9__dump *dump = job->dump;
	char last[24];
	int err;

	snprintf(last, sizeof(last), "%llu", (unsigned long long)dump->last_ns);
	job->writer = writer;
	memcpy(writer->more, (const char *[D9__WRITER_MORE]){ "dump.id", dump->id, "dump.by",
							      dump->by, "dump.last_ns", last },
	       sizeof(writer->more));
	writer->all_or_nothing = true;
	err = write_ring(job);
	writer->all_or_nothing = false;
	memset(writer->more, 0, sizeof(writer->more));
	return err;
}

static int write_own(struct job *job)
{
	struct d9__writer *own = job->maker->own;
	int err;

	if (!own->has_dir)
		return -ENOENT;
	err = write_with(job, own);
	/* Somebody removed our directory: it is made again, and what is in the ring is still there. */
	if (err == -ENOENT && !d9__namespace_renew(&own->ns))
		err = write_with(job, own);
	return err;
}

static int write_other(struct job *job)
{
	struct d9__namespace to;
	int err = d9__namespace_visit(&to, job->dump->dir, job->maker->own->ns.boot_id);

	if (err)
		return err;
	err = d9__dump_writer_open(&job->other, job->maker, &to);
	if (!err)
		err = write_with(job, &job->other.writer);
	d9__dump_writer_close(&job->other, job->maker);
	return err;
}

void d9__dump_ring(struct d9__dump *dump, const struct d9__dump_maker *maker)
{
	struct job *job = calloc(1, sizeof(*job));

	make_id(dump->id);
	dump->complete = true;
	dump->err = -ENOMEM;
	if (!job)
		return;
	job->dump = dump;
	job->maker = maker;
	job->from_ns = d9__dump_from(dump);
	dump->err = d9__dump_is_own(dump, maker) ? write_own(job) : write_other(job);
	if (dump->err) {
		dump->path[0] = '\0';
		dump->events = dump->bytes = dump->segments = 0;
	}
	atomic_fetch_add_explicit(&maker->own->counters->events, dump->events, memory_order_relaxed);
	d9__drain_release(&job->drain);
	free(job);
}
