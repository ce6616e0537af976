/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "drain/rates.h"

#include <string.h>

#include <dial9/loop.h>

#include "format/wire.h"
#include "ring/clock.h"
#include "segment/walk.h"

/* How much a slot's thread recorded. */
struct counted {
	uint32_t serial, at; /* the chunk that was read last, and how far */
	uint64_t time_base;  /* there */
	uint64_t step;	     /* the latest that was counted in */
	bool resumes;	     /* the next poll is another piece of one that was counted */
	uint32_t n[D9__RATES][D9__RATES_KEPT];
};

static bool counts;
static uint64_t looked_ns;
static struct counted slots[D9__SLOT_COUNT];
static uint32_t n_used; /* of them: the others are zeros, and their pages never touched */
static struct d9__walker walker;

void d9__rates_switch(bool on)
{
	if (on == counts)
		return;
	counts = on;
	memset(slots, 0, n_used * sizeof(*slots));
	n_used = 0;
	looked_ns = on ? d9__clock_mono_ns() : 0;
}

/* ---- reading ---- */

/* Wakes have the stamps of what they were due: they count where they are written. */
static void move_on(struct counted *slot, uint64_t step)
{
	if (step >= slot->step + D9__RATES_KEPT)
		memset(slot->n, 0, sizeof(slot->n));
	else
		for (uint64_t i = slot->step + 1; i <= step; i++)
			slot->n[D9__RATE_POLLS][i % D9__RATES_KEPT] =
				slot->n[D9__RATE_WAKES][i % D9__RATES_KEPT] = 0;
	if (step > slot->step)
		slot->step = step;
}

static bool count_frame(void *arg, const struct d9__wire_frame *frame)
{
	struct counted *slot = arg;

	if (frame->tag != D9__WIRE_EVENT)
		return true;
	move_on(slot, frame->ns / D9__RATES_STEP_NS);
	if (frame->type_id == D9__EVENT_POLL_START) {
		slot->n[D9__RATE_POLLS][slot->step % D9__RATES_KEPT] += !slot->resumes;
		slot->resumes = false;
		/* The last field is its wake, not 0 if it tells one; so then is the last byte. */
		slot->n[D9__RATE_WAKES][slot->step % D9__RATES_KEPT] +=
			frame->bytes[frame->len - 1] != 0;
	} else if (frame->type_id == D9__EVENT_WAKE) {
		/* The last field is the reason. */
		slot->resumes = frame->bytes[frame->len - 1] == D9_WAKE_RESUMPTION;
		slot->n[D9__RATE_WAKES][slot->step % D9__RATES_KEPT] += !slot->resumes;
	}
	return true;
}

/* Serials wrap around. */
static bool is_old(const struct counted *slot, const struct d9__batch *batch)
{
	return slot->serial && (int32_t)(batch->serial - slot->serial) < 0;
}

static void read_batch(const struct d9__batch *batch)
{
	struct counted *slot = &slots[batch->slot];

	if (batch->slot >= n_used)
		n_used = batch->slot + 1;
	if (is_old(slot, batch))
		return;
	if (batch->serial != slot->serial) {
		slot->serial = batch->serial;
		slot->at = 0;
		slot->time_base = 0;
	}
	/* A damaged chunk is not read any further. */
	if (slot->at < batch->len && !d9__walk_on(&walker, batch->bytes, &slot->at, batch->len,
						  &slot->time_base, count_frame, slot))
		slot->at = UINT32_MAX;
}

void d9__rates_take(const struct d9__batch *batch)
{
	if (counts)
		read_batch(batch);
}

/* Read the full chunks that are not written yet.  A quarter of the ring stays with the threads. */
static void read_full(void)
{
	static struct d9__chunk_hold held[D9__CHUNKS_MAX];
	uint32_t chunks = atomic_load_explicit(&d9__ring.header->chunk_count, memory_order_relaxed);
	/* A thread may have stamped an event before the latest look, and published it later. */
	uint64_t from_ns = looked_ns > D9__RATES_STEP_NS ? looked_ns - D9__RATES_STEP_NS : 0;
	uint32_t n = d9__chunk_hold(held, 0, from_ns, chunks / 4);
	struct d9__batch batch;

	for (uint32_t i = 0; i < n; i++) {
		d9__chunk_held_batch(&held[i], &batch);
		read_batch(&batch);
		d9__chunk_let_go(&held[i]);
	}
}

/* False: one was begun since the full ones were read, and waits for those before it; not if they
 * are |gone|. */
static bool read_open(bool gone)
{
	struct d9__batch batch;
	bool all = true;

	for (uint32_t i = 0; i < d9__slot_high(); i++) {
		const struct counted *slot = &slots[i];

		if (!d9__chunk_pin_open(i, &batch))
			continue;
		if (gone || !slot->serial || batch.serial - slot->serial <= 1)
			read_batch(&batch);
		else
			all = false;
		d9__chunk_unpin(&batch, false);
	}
	return all;
}

void d9__rates_look(uint64_t now_ns)
{
	if (!counts)
		return;
	read_full();
	if (!read_open(false)) {
		read_full();
		read_open(true);
	}
	looked_ns = now_ns;
}

/* ---- telling ---- */

static uint64_t second_of(const struct counted *slot, enum d9__rate rate, uint64_t end)
{
	uint64_t n = 0;

	for (uint64_t i = end - D9__RATES_SECOND; i < end; i++)
		if (i <= slot->step && slot->step - i < D9__RATES_KEPT)
			n += slot->n[rate][i % D9__RATES_KEPT];
	return n;
}

uint64_t d9__rates_second(enum d9__rate rate, uint64_t end,
			  bool (*wanted)(const void *arg, uint32_t worker), const void *arg)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n_used; i++) {
		uint64_t n = second_of(&slots[i], rate, end);

		if (n && wanted(arg, __atomic_load_n(&d9__ring.slots[i].worker, __ATOMIC_RELAXED)))
			sum += n;
	}
	return sum;
}
