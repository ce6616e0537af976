/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/time.h"
#include "glib/phases.h"

#include <errno.h>
#include <stdint.h>

#include <dial9/event.h>
#include <dial9/loop.h>

#include "glib/contexts.h"
#include "glib/dispatch.h"
#include "glib/tables.h"
#include "glib/thread.h"
#include "hook/stubs.h"
#include "loop/adapter.h"

/*
 * Sums of less are not told, longer calls at once.  A sum is told at most once a second, so that a trace stays
 * small; a large one sooner, since what was not told is lost when the program ends.
 */
#define TELL_NS	 D9__MS_NS
#define LARGE_NS (10 * D9__MS_NS)
#define EVERY_NS D9__SECOND_NS

#define NO_WORKER 255u

enum phase { PREPARE, CHECK };

typedef gboolean (*prepare_fn)(GSource *source, gint *timeout);
typedef gboolean (*check_fn)(GSource *source);

static const struct d9_field fields[] = {
	{ "worker_id", D9_FIELD_VARINT, NULL, NULL },
	{ "task_id", D9_FIELD_VARINT, NULL, NULL },
	{ "phase", D9_FIELD_POOLED_STRING, NULL, NULL },
	{ "calls", D9_FIELD_VARINT, NULL, NULL },
	{ "total_ns", D9_FIELD_VARINT, "ns", NULL },
	{ "max_ns", D9_FIELD_VARINT, "ns", NULL },
	{ "function", D9_FIELD_POOLED_STRING, NULL, NULL },
	{ "address", D9_FIELD_VARINT, NULL, NULL },
};
static struct d9_event_type type = D9_EVENT_TYPE("SourceTimeEvent", fields);

/* ---- telling ---- */

/* The trace's number of |source|, which may never have been dispatched.  0: it cannot be told now. */
static uint64_t tell_task(struct d9__glib_context *record, GSource *source, uint64_t key)
{
	struct d9__stub *stub = d9__glib_table_stub_of(source->source_funcs);
	struct d9_task task = { .fd = -1, .key = key };

	if (!d9__task_armed(D9_LIBRARY_GLIB, key, &task) || !task.callsite) {
		task.callsite = d9_callsite(d9__glib_table_dispatch_of(source->source_funcs), NULL, 0);
		task.kind = stub ? d9__glib_table_kind_of(stub) : D9_TASK_CUSTOM;
	}
	task.name = d9__glib.g_source_get_name(source);
	return d9__task_told(record->loop, &task);
}

static __attribute__((noinline)) void tell(struct d9__glib_context *record, struct d9__glib_phase *sum,
					   GSource *source, enum phase phase, uint64_t now_ns)
{
	struct d9_waker self;
	char function[256];
	int saved = errno;
	uint64_t task;

	d9_waker_self(&self);
	task = self.worker == NO_WORKER ? 0 : tell_task(record, source, sum->key);
	if (!task)
		return;
	d9__module_name_of(sum->function, function, sizeof(function));
	D9_EMIT(&type, self.worker, task, phase == PREPARE ? "prepare" : "check", sum->calls, sum->total_ns,
		sum->max_ns, (const char *)function, (uint64_t)(uintptr_t)sum->function);
	sum->calls = sum->total_ns = sum->max_ns = 0;
	sum->since_ns = sum->told_ns = now_ns;
	errno = saved; /* modules may have been read */
}

/* ---- summing ---- */

struct timing {
	struct d9__glib_thread *thread;
	struct d9__glib_context *record; /* NULL: nothing is to be timed */
	uint64_t key, begin_ns;
};

/* Places at which the sum of a source may stand.  Without a free one the smallest there makes room. */
#define NEAR 4u

/* A source that goes on begins a new sum each second: what is older is of one that is gone. */
static uint64_t worth(const struct d9__glib_phase *sum, uint64_t now_ns)
{
	return now_ns - sum->since_ns < 2 * EVERY_NS ? sum->total_ns : 0;
}

static struct d9__glib_phase *sum_of(const struct timing *timing, enum phase phase, const void *function)
{
	struct d9__glib_phase *phases = timing->record->phases, *least = NULL;
	uint64_t home = timing->key * 2 + phase;

	for (unsigned i = 0; i < NEAR; i++) {
		struct d9__glib_phase *sum = &phases[(home + i * 2) & (D9__GLIB_PHASES_MAX - 1)];

		if (__builtin_expect(sum->key == timing->key && sum->function == function, 1))
			return sum;
		if (!least || worth(sum, timing->begin_ns) < worth(least, timing->begin_ns))
			least = sum;
	}
	*least = (struct d9__glib_phase) { .key = timing->key, .function = function };
	return least;
}

static void add(const struct timing *timing, GSource *source, enum phase phase, const void *function)
{
	uint64_t now_ns = d9_loop_now(), ns = now_ns - timing->begin_ns;
	struct d9__glib_phase *sum = sum_of(timing, phase, function);

	if (!sum->since_ns)
		sum->since_ns = timing->begin_ns;
	sum->calls++;
	sum->total_ns += ns;
	if (ns > sum->max_ns)
		sum->max_ns = ns;
	if (__builtin_expect(sum->total_ns >= TELL_NS, 0) &&
	    (ns >= TELL_NS || sum->total_ns >= LARGE_NS || now_ns - sum->told_ns >= EVERY_NS))
		tell(timing->record, sum, source, phase, now_ns);
	else if (__builtin_expect(now_ns - sum->since_ns >= EVERY_NS, 0))
		*sum = (struct d9__glib_phase) { .key = timing->key, .function = function,
						 .since_ns = now_ns, .told_ns = sum->told_ns };
}

/* A function that calls another table's for the same source is timed as one. */
static inline bool begin(struct timing *timing, GSource *source, const void *function)
{
	struct d9__glib_thread *thread = d9__glib_thread();

	if (!d9__gate_open(D9__GATE_LOOP) || thread->timing || thread->calibrating || !source->context ||
	    !(timing->record = d9__glib_context(thread, source->context)))
		return false;
	timing->thread = thread;
	timing->key = timing->record->key | source->source_id;
	timing->begin_ns = d9_loop_now();
	thread->timing = true;
	d9__loop_outside(function);
	return true;
}

static inline void end(struct timing *timing, GSource *source, enum phase phase, const void *function)
{
	timing->thread->timing = false;
	d9__loop_outside(NULL);
	/* It may have destroyed itself; GLib holds a reference meanwhile. */
	add(timing, source, phase, function);
}

/* ---- stubs ---- */

static __attribute__((noinline)) gboolean run_prepare(GSource *source, gint *timeout, unsigned index);
D9__STUBS_SHARE(d9__glib_prepares, 256, gboolean, run_prepare, (GSource *source, gint *timeout), (source, timeout))

static gboolean run_prepare(GSource *source, gint *timeout, unsigned index)
{
	void *function = d9__stub_at(&d9__glib_prepares, index)->callback;
	struct timing timing;
	gboolean ready;

	if (!begin(&timing, source, function))
		return ((prepare_fn)function)(source, timeout);
	ready = ((prepare_fn)function)(source, timeout);
	end(&timing, source, PREPARE, function);
	return ready;
}

static __attribute__((noinline)) gboolean run_check(GSource *source, unsigned index);
D9__STUBS_SHARE(d9__glib_checks, 256, gboolean, run_check, (GSource *source), (source))

static gboolean run_check(GSource *source, unsigned index)
{
	void *function = d9__stub_at(&d9__glib_checks, index)->callback;
	struct timing timing;
	gboolean ready;

	if (!begin(&timing, source, function))
		return ((check_fn)function)(source);
	ready = ((check_fn)function)(source);
	end(&timing, source, CHECK, function);
	return ready;
}
