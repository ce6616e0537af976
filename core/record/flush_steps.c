/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of the flush thread that a tick takes and that requests take, too. */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <dial9/error.h>

#include "base/time.h"
#include "drain/drain.h"
#include "drain/side_event.h"
#include "record/facts.h"
#include "record/flush_self.h"
#include "ring/chunk.h"
#include "ring/clock.h"
#include "ring/note.h"
#include "ring/ring_file.h"
#include "ring/slot.h"
#include "segment/metadata.h"

static struct d9__flush_self *const self = &d9__flush_self;

void d9__flush_set_state(int state)
{
	self->state = state;
	atomic_store_explicit(&d9__flush.state, state, memory_order_release);
}

void d9__flush_open_directory(void)
{
	uint64_t clock_ms = d9__clock_real_ns() / D9__MS_NS;
	int err = d9__writer_open(&self->writer, d9__flush.trace_dir, clock_ms);

	if (!err && self->writer.has_dir) {
		memcpy(d9__flush.boot_id, self->writer.ns.boot_id, sizeof(d9__flush.boot_id));
		d9__metadata_set("boot_id", d9__flush.boot_id);
		d9__ring_set_boot_id(d9__flush.boot_id);
		d9__facts_tell_ring_name();
	}
	d9__flush_set_state(err ? D9_RECORDER_PAUSED : D9_RECORDER_RECORDING);
	/* release: the boot id is read after it */
	atomic_store_explicit(&d9__flush.open_result, err, memory_order_release);
}

bool d9__flush_wants_directory(void)
{
	return self->writer.kind == D9_WRITER_ROTATING || self->writer.kind == D9_WRITER_SINGLE;
}

bool d9__flush_have_place(uint64_t now_ns)
{
	if (d9__flush_wants_directory() && !self->writer.has_dir) {
		if (self->writer.retry_ns > now_ns && self->writer.uid == geteuid())
			return false;
		d9__flush_open_directory();
		if (!self->writer.has_dir) {
			self->writer.seg.failed_op = "open";
			d9__writer_abandon(&self->writer,
					   atomic_load_explicit(&d9__flush.open_result,
								memory_order_relaxed),
					   now_ns);
			return false;
		}
		self->writer.retry_ns = 0;
	}
	d9__writer_follow_user(&self->writer);
	return d9__writer_ready(&self->writer, now_ns);
}

void d9__flush_retry_now(uint64_t now_ns)
{
	if (self->writer.retry_ns > now_ns)
		self->writer.retry_ns = now_ns;
}

int d9__flush_last_error(void)
{
	return atomic_load_explicit(&self->writer.counters->error, memory_order_relaxed);
}

/* Records that handlers left go into chunks, unless this thread has given its slot back. */
void d9__flush_move_side_rings(void)
{
	if ((uintptr_t)d9__self.slot >= D9__SLOT_SENTINELS)
		d9__side_take_all(d9__self.slot);
}

/* Everything that was published so far reaches the file. */
void d9__flush_drain(uint64_t now_ns)
{
	d9__flush_move_side_rings();
	/*
	 * Busy threads may go on handing over; each round takes what the one before had to leave.
	 */
	for (int round = 0; round < 20 && !self->writer.retry_ns; round++) {
		d9__drain_full(&self->drain, now_ns);
		if (d9__drain_prefixes(&self->drain, now_ns, 0))
			break;
	}
	d9__drain_losses(&self->drain, now_ns);
}

/* Lines of the recorder's log make no segment: without one they stay in the ring. */
static bool add_log(bool all, uint64_t now_ns)
{
	if (!self->writer.seg.open || d9__notes_end() == self->log.next)
		return false;
	d9__note_events(&self->log, &self->note, all);
	return !d9__writer_note(&self->writer, &self->note, false, now_ns);
}

void d9__flush_commit_with(bool all_of_log, uint64_t now_ns)
{
	bool told = add_log(all_of_log, now_ns);

	if (d9__writer_commit(&self->writer, now_ns)) {
		d9__drain_failed(&self->drain);
		return;
	}
	d9__drain_wrote(&self->drain, now_ns);
	if (told)
		d9__note_events_told(&self->log);
}

void d9__flush_commit(uint64_t now_ns)
{
	d9__flush_commit_with(false, now_ns);
}

/* Readers that know a task take no notice. */
int d9__flush_announce(struct d9__dump_tasks *tasks, uint64_t ns, uint64_t now_ns)
{
	int err = d9__dump_tasks_announce(tasks, &self->writer, ns, now_ns);

	if (!err)
		return 0;
	d9__writer_abandon(&self->writer, err, now_ns);
	d9__drain_failed(&self->drain);
	return err;
}

void d9__flush_rotate(uint64_t now_ns)
{
	d9__flush_drain(now_ns);
	d9__flush_commit(now_ns);
	if (d9__writer_rotate(&self->writer, now_ns))
		d9__drain_failed(&self->drain);
}

/* A burst that filled n chunks since the last tick may fill twice as many until the next. */
void d9__flush_grow_ring(uint64_t now_ns)
{
	uint32_t sealed = d9__chunk_sealed_count();
	uint32_t full = self->flight ? sealed - self->sealed : d9__chunk_full_count();
	uint32_t wanted = 2 * full > D9__CHUNKS_AHEAD ? 2 * full : D9__CHUNKS_AHEAD;
	int grown = 1;

	self->sealed = sealed;
	if (now_ns < self->grow_ns)
		return;
	while (grown == 1)
		grown = d9__ring_grow_to(wanted);
	/* Each try takes what room there is for a moment; others may need it. */
	if (grown < 0) {
		self->grow_ns = now_ns + D9__SECOND_NS;
		d9__note(D9_LOG_WARNING, "the ring cannot grow: %s", d9_strerror(grown));
	}
	d9__ring_let_threads_grow(grown >= 0);
}
