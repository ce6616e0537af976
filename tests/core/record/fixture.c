/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stddef.h>
#include <unistd.h>

#include "core/record/fixture.h"

void fixture_ring(unsigned chunks)
{
	static const struct d9__ring_options options = {
		.kind = D9__RING_MEMFD, .boot_id = "test-1", .service = "test"
	};
	struct d9__ring_options sized = options;

	sized.max_bytes = (size_t)chunks * D9__CHUNK_SIZE;
	if (d9__ring.fd >= 0)
		close(d9__ring.fd);
	d9__ring_forget_in_child();
	d9__slot_forget_in_child();
	d9__ring_start(&sized);
	while (d9__ring_grow() > 0)
		;
	d9__gate_set(D9__GATE_ALL);
}

static void take(struct fixture_taken *taken, const struct d9__batch *batch, walk_fn fn, void *arg)
{
	struct walk_totals totals = walk_batch(batch->bytes, batch->len, fn, arg);

	taken->batches++;
	taken->events += batch->events - batch->taken_events;
	if (!totals.error && totals.events != batch->events)
		totals.error = "count of events";
	if (totals.error) {
		taken->bad++;
		taken->error = totals.error;
	}
}

void fixture_drain(struct fixture_taken *taken, walk_fn fn, void *arg)
{
	struct d9__batch batch;

	while (d9__chunk_pop_full(&batch)) {
		take(taken, &batch, fn, arg);
		d9__chunk_release(&batch);
	}
}

void fixture_drain_all(struct fixture_taken *taken, walk_fn fn, void *arg)
{
	struct d9__batch batch;

	fixture_drain(taken, fn, arg);
	for (uint32_t i = 0; i < d9__slot_high(); i++)
		if (d9__chunk_pin_open(i, &batch)) {
			take(taken, &batch, fn, arg);
			d9__chunk_unpin(&batch, true);
		}
}

uint64_t fixture_lost_for(int slot, enum d9__loss_cause cause)
{
	const struct d9__losses *losses = slot < 0 ? d9__ring.proc_losses : &d9__ring.losses[slot];

	return atomic_load(&losses->cause[cause].events);
}

uint64_t fixture_lost(int slot)
{
	uint64_t n = 0;

	for (int cause = 0; cause < D9__LOSS_CAUSES; cause++)
		n += fixture_lost_for(slot, (enum d9__loss_cause)cause);
	return n;
}
