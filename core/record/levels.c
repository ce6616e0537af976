/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "record/levels.h"

#include <stdatomic.h>
#include <string.h>

#include "drain/rates.h"

static _Atomic(d9__queue_fn) queue_of;
static _Atomic(d9__worker_name_fn) name_of;

void d9__levels_provide(d9__queue_fn queue, d9__worker_name_fn worker_name)
{
	atomic_store_explicit(&queue_of, queue, memory_order_relaxed);
	atomic_store_explicit(&name_of, worker_name, memory_order_relaxed);
}

bool d9__level_is(enum d9__trigger_kind kind)
{
	return kind == D9__TRIGGER_QUEUE || kind == D9__TRIGGER_WAKES || kind == D9__TRIGGER_POLLS;
}

/* ---- where ---- */

static bool is_named(const void *arg, const char *name)
{
	const struct d9__trigger *trigger = arg;

	for (unsigned i = 0; i < trigger->n_matches; i++)
		if (!d9__trigger_glob(trigger->matches[i].glob, name, strlen(name)))
			return false;
	return true;
}

static bool is_worker_named(const void *arg, uint32_t worker)
{
	d9__worker_name_fn tell = atomic_load_explicit(&name_of, memory_order_relaxed);
	const struct d9__trigger *trigger = arg;
	char name[128] = "";

	if (trigger->n_matches && tell)
		tell(worker, name, sizeof(name));
	return is_named(arg, name);
}

/* ---- looking ---- */

/* At |ns| there is |value|. */
static bool has_held(struct d9__level *level, const struct d9__trigger *trigger, uint64_t ns,
		     uint64_t value)
{
	if (value <= trigger->threshold) {
		level->since_ns = 0;
		return false;
	}
	if (!level->since_ns)
		level->since_ns = ns;
	return ns - level->since_ns >= trigger->for_ns;
}

static bool look_at_rate(struct d9__level *level, const struct d9__trigger *trigger,
			 uint64_t now_ns, uint64_t *value)
{
	enum d9__rate rate = trigger->kind == D9__TRIGGER_POLLS ? D9__RATE_POLLS : D9__RATE_WAKES;
	uint64_t end = now_ns / D9__RATES_STEP_NS;
	bool holds = false;

	*value = 0;
	/* Events recorded before are not counted: the first seconds are too small at most. */
	if (!level->step)
		level->step = end;
	/* This thread did not run: of the time before nothing is known any more. */
	if (level->step + D9__RATES_KEPT - D9__RATES_SECOND < end) {
		level->step = end - 1;
		level->since_ns = 0;
	}
	while (level->step < end && !holds) {
		*value = d9__rates_second(rate, ++level->step, is_worker_named, trigger);
		holds = has_held(level, trigger, level->step * D9__RATES_STEP_NS, *value);
	}
	return holds;
}

bool d9__level_look(struct d9__level *level, const struct d9__trigger *trigger, uint64_t now_ns,
		    uint64_t *value)
{
	d9__queue_fn queue = atomic_load_explicit(&queue_of, memory_order_relaxed);

	if (trigger->kind != D9__TRIGGER_QUEUE)
		return look_at_rate(level, trigger, now_ns, value);
	*value = queue ? queue(is_named, trigger) : 0;
	return has_held(level, trigger, now_ns, *value);
}
