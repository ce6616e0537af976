/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the recorder, as the program sees it and switches it on and off. */
#include "config.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <dial9/recorder.h>

#include "drain/health.h"
#include "record/flush.h"
#include "record/recorder.h"
#include "ring/gate.h"
#include "segment/metadata.h"

/* ---- switching ---- */

static void set_gate(bool on)
{
	int saved = errno;

	/* In a raw clone() the ring is still the parent's. */
	if (d9__gate_has_recorder() &&
	    !atomic_load_explicit(&d9__flush.stop, memory_order_relaxed)) {
		d9__gate_set(on ? d9__flush.gate_bits : 0);
		d9__flush_wake();
	}
	errno = saved;
}

void d9_enable(void)
{
	d9__recorder_child_check();
	set_gate(true);
}

void d9_disable(void)
{
	set_gate(false);
}

bool d9_enabled(void)
{
	return d9__gate_bits() != 0;
}

int d9_metadata_set(const char *key, const char *value)
{
	int saved = errno, err = d9__metadata_set(key, value);

	errno = saved;
	return err;
}

/* ---- what is counted, and where it goes ---- */

static uint64_t get(_Atomic(uint64_t) *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

int d9_recorder_counters(const struct d9_recorder *recorder, struct d9_counters *out, size_t size)
{
	struct d9__writer_counters *c = &d9__flush.counters;
	struct d9_counters all = {
		.events_written = get(&c->events),
		.bytes_recorded = get(&c->bytes_recorded),
		.bytes_written = get(&c->bytes_written),
		.segments_sealed = get(&c->sealed),
		.segments_evicted = get(&c->evicted),
		.bytes_evicted = get(&c->bytes_evicted),
		.bytes_retained = get(&c->retained),
		.write_errors = get(&c->errors),
	};

	if (!recorder || !out)
		return -EINVAL;
	for (unsigned i = 0; i < D9_LOSS_COUNT; i++) {
		uint64_t before = d9__flush.lost_before[i], lost = d9__health_lost_by(i);

		/* Less, if d9__drain_paused() has moved what was lost before. */
		all.lost[i] = lost > before ? lost - before : 0;
	}
	memset(out, 0, size);
	memcpy(out, &all, size < sizeof(all) ? size : sizeof(all));
	return 0;
}

enum d9_recorder_state d9_recorder_state(const struct d9_recorder *recorder)
{
	if (!recorder || !d9__gate_has_recorder())
		return D9_RECORDER_STOPPED;
	return (enum d9_recorder_state)atomic_load_explicit(&d9__flush.state, memory_order_acquire);
}

int d9_recorder_error(const struct d9_recorder *recorder)
{
	return recorder ? atomic_load_explicit(&d9__flush.counters.error, memory_order_relaxed) : 0;
}

int d9_recorder_dir(const struct d9_recorder *recorder, char *buf, size_t size)
{
	int n;

	if (!recorder || !buf)
		return -EINVAL;
	/* acquire: the boot id was stored before */
	if (atomic_load_explicit(&d9__flush.open_result, memory_order_acquire))
		return -ENOENT;
	n = snprintf(buf, size, "%s/%s", d9__flush.trace_dir, d9__flush.boot_id);
	return n >= 0 && (size_t)n < size ? n : -ENOSPC;
}
