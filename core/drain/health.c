/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <dial9/error.h>
#include <dial9/recorder.h>

#include "drain/health.h"
#include "format/encoder.h"
#include "ring/chunk.h"
#include "ring/clock.h"
#include "ring/event_types.h"
#include "ring/gate.h"
#include "ring/note.h"
#include "ring/ring_file.h"
#include "ring/slot.h"
#include "segment/metadata.h"

static uint64_t load(const _Atomic(uint64_t) *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

uint64_t d9__health_lost_by(unsigned cause)
{
	uint64_t lost;

	if (!d9__ring.base)
		return 0;
	lost = load(&d9__ring.proc_losses->cause[cause].events);
	for (uint32_t i = 0; i < d9__slot_high(); i++)
		lost += load(&d9__ring.losses[i].cause[cause].events);
	return lost;
}

uint64_t d9__health_lost(void)
{
	uint64_t lost = 0;

	for (unsigned cause = 0; cause < D9__LOSS_CAUSES; cause++)
		lost += d9__health_lost_by(cause);
	return lost;
}

const char *d9_recorder_state_text(enum d9_recorder_state state)
{
	static const char *const texts[] = { "starting", "recording", "flight",  "disabled",
					     "paused",   "stopping",  "stopped" };

	return (unsigned)state < sizeof(texts) / sizeof(texts[0]) ? texts[state] : "unknown";
}

const char *d9_loss_text(enum d9_loss loss)
{
	return (unsigned)loss < D9_LOSS_COUNT ? d9__loss_names[loss] : "unknown";
}

static void fill_writer(struct d9__ring_health *health, const struct d9__writer *writer)
{
	const struct d9__writer_counters *c = writer->counters;

	health->events_written = load(&c->events);
	health->bytes_recorded = load(&c->bytes_recorded);
	health->bytes_written = load(&c->bytes_written);
	health->segments = load(&c->sealed);
	health->segment_number = writer->seg.index;
	health->retained_bytes = writer->ret.bytes + (writer->seg.open ? writer->seg.bytes : 0);
	health->budget_bytes = writer->ret.budget;
	health->last_success_ns = writer->success_ns;
	health->error_ns = writer->error_ns;
	health->error_count = load(&c->errors);
	health->error = -atomic_load_explicit(&c->error, memory_order_relaxed);
	snprintf(health->error_op, sizeof(health->error_op), "%s",
		 writer->error_op ? writer->error_op : "");
	snprintf(health->segment, sizeof(health->segment), "%s%s",
		 writer->seg.open ? writer->seg.name : "", writer->seg.open ? ".active" : "");
}

static void fill_clock(struct d9__ring_health *health, const struct d9__clock_status *clock)
{
	health->clock_kind = clock->kind;
	health->clock_steps = clock->steps;
	health->clock_bracket_ns = clock->bracket_ns;
	health->ns_per_tick = clock->ns_per_tick;
	snprintf(health->clock_reason, sizeof(health->clock_reason), "%s", clock->reason);
}

static _Atomic(void (*)(char *buf, size_t size)) live_figures;

void d9__health_provide(void (*fn)(char *buf, size_t size))
{
	atomic_store_explicit(&live_figures, fn, memory_order_release);
}

/* Where they changed; from a forked child's first tick on in any case, its page being empty. */
static void fill_facts(struct d9__ring_health *health)
{
	static uint32_t seen;
	static size_t len;
	uint32_t generation = d9__metadata_generation();
	void (*figures)(char *buf, size_t size) =
		atomic_load_explicit(&live_figures, memory_order_acquire);

	if (generation != seen || !health->facts[0]) {
		seen = generation;
		d9__metadata_facts(health->facts, sizeof(health->facts));
		len = strlen(health->facts);
	}
	if (figures)
		figures(health->facts + len, sizeof(health->facts) - len);
}

/* ---- the log: what changed since |before| was written ---- */

static void note_state(const struct d9__ring_health *before, const struct d9__writer *writer, int state)
{
	int err = atomic_load_explicit(&writer->counters->error, memory_order_relaxed);
	const char *was = d9_recorder_state_text((enum d9_recorder_state)before->state);

	if ((int)before->state == state)
		return;
	if (state == D9_RECORDER_PAUSED)
		d9__note(D9_LOG_WARNING, "paused, was %s: cannot %s: %s", was,
			 writer->error_op ? writer->error_op : "write", d9_strerror(err));
	else
		d9__note(D9_LOG_INFO, "%s, was %s", d9_recorder_state_text((enum d9_recorder_state)state), was);
}

static void note_clock(const struct d9__ring_health *before, const struct d9__clock_status *clock)
{
	bool ticks = clock->kind != D9__CLOCK_MONOTONIC;

	if (before->clock_kind != (uint32_t)clock->kind || strcmp(before->clock_reason, clock->reason) != 0)
		d9__note(before->clock_kind == D9__CLOCK_TICKS ? D9_LOG_WARNING : D9_LOG_INFO, "clock: %s%s%s",
			 ticks ? "processor ticks" : "clock_gettime()", clock->reason[0] ? ": " : "", clock->reason);
	else if (before->clock_steps != clock->steps)
		d9__note(D9_LOG_WARNING, "clock: the ticks of a thread jumped");
}

struct d9__ring_health *d9__health_begin(const struct d9__writer *writer, int state, uint64_t now_ns)
{
	struct d9__ring_health *health = d9__ring.health;
	uint32_t seq = atomic_load_explicit(&health->seq, memory_order_relaxed);
	uint32_t full = d9__chunk_full_count();
	struct d9__clock_status clock;

	d9__clock_status(&clock);
	note_state(health, writer, state);
	note_clock(health, &clock);
	atomic_store_explicit(&health->seq, seq + 1, memory_order_relaxed);
	/* release: who sees one of the words below also sees the odd sequence */
	atomic_thread_fence(memory_order_release);
	if ((int)health->state != state) {
		health->state = (uint32_t)state;
		health->state_since_ns = now_ns;
	}
	health->tick_ns = now_ns;
	health->ticks++;
	if (full > health->full_high)
		health->full_high = full;
	health->gate = d9__gate_bits();
	fill_writer(health, writer);
	fill_clock(health, &clock);
	fill_facts(health);
	return health;
}

void d9__health_end(struct d9__ring_health *health)
{
	uint32_t seq = atomic_load_explicit(&health->seq, memory_order_relaxed);

	/*
	 * release: pairs with the acquire of a reader, who takes the page between two equal
	 * sequences
	 */
	atomic_store_explicit(&health->seq, seq + 1, memory_order_release);
}

void d9__health_event(struct d9__builder *out, const struct d9__writer *writer, int state,
		      uint64_t now_ns)
{
	const struct d9__writer_counters *c = writer->counters;
	struct d9__clock_status clock;
	uint32_t name;
	uint8_t *p;

	d9__clock_status(&clock);
	d9__builder_begin(out);
	name = d9__builder_name(out, d9_recorder_state_text((enum d9_recorder_state)state));
	p = d9__builder_event(out, D9__EVENT_HEALTH, now_ns, 4 + 8 * D9__VARINT_MAX);
	if (!p)
		return;
	p = d9__wire_put_u32(p, name);
	p = d9__varint_put(p, load(&c->events));
	p = d9__varint_put(p, d9__health_lost());
	p = d9__varint_put(p, load(&c->bytes_recorded));
	p = d9__varint_put(p, load(&c->bytes_written));
	p = d9__varint_put(p, d9__chunk_full_count());
	p = d9__varint_put(p, load(&c->sealed));
	p = d9__varint_put(p, (uint64_t)-atomic_load_explicit(&c->error, memory_order_relaxed));
	d9__builder_end(out, d9__varint_put(p, clock.steps));
}
