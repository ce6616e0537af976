/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "glib/dispatch.h"

#include <stdbool.h>
#include <string.h>

#include <dial9/loop.h>

#include "glib/closures.h"
#include "glib/contexts.h"
#include "glib/tables.h"
#include "glib/thread.h"
#include "loop/adapter.h"

typedef gboolean (*dispatch_fn)(GSource *source, GSourceFunc callback, gpointer data);

_Thread_local struct d9__glib_thread d9__glib_self D9_TLS;
uint32_t d9__glib_pending_at;
struct d9__glib_seen d9__glib_seen;

/* ---- rounds ---- */

/* The context's pending sources, by the owner inside a dispatch: no other thread touches them. */
static uint32_t depth_of(const GMainContext *context)
{
	const struct {
		void **data;
		unsigned n;
	} *array;

	if (!d9__glib_pending_at)
		return 0;
	memcpy(&array, (const char *)context + d9__glib_pending_at, sizeof(array));
	return array ? array->n : 0;
}

/* The dispatches of a round that were not seen are known when it is over, and not before. */
void d9__glib_new_round(struct d9__glib_context *record, struct d9__glib_thread *thread)
{
	uint32_t left = atomic_load_explicit(&record->left, memory_order_relaxed);

	thread->chain = NULL;
	thread->timing = false; /* a longjmp() may have left it */
	if (__builtin_expect(left != 0, 0)) {
		d9__glib_add(&record->unseen, left);
		atomic_store_explicit(&record->left, 0, memory_order_relaxed);
	}
}

/* Fill in how much is pending, this source included, and if it is the first since the wait. */
static inline void enter_round(struct d9__glib_context *record, const GMainContext *context,
			       struct d9_poll *poll)
{
	uint32_t left = atomic_load_explicit(&record->left, memory_order_relaxed);

	poll->flags = D9_POLL_BATCHED;
	if (__builtin_expect(left == 0, 0)) {
		poll->flags = 0;
		left = depth_of(context);
		left = left ? left : 1;
		record->rounds++;
	}
	poll->depth = left;
	atomic_store_explicit(&record->left, left - 1, memory_order_relaxed);
}

/* ---- first sight of a source ---- */

/* The call that made it has returned. */
static bool find_armed(struct d9__glib_known *known)
{
	struct d9_task armed = { .fd = -1 };

	if (!d9__task_armed(D9_LIBRARY_GLIB, known->key, &armed))
		return false;
	known->callsite = armed.callsite;
	known->fd = armed.fd;
	known->kind = armed.kind;
	return true;
}

/* Its waker, and when it was handed over. */
static void describe_origin(struct d9__glib_context *record, struct d9__glib_known *known,
			    const GSource *source, GSourceFunc callback, gpointer data, struct d9__stub *stub)
{
	const void *function = stub->callback;
	const void *called = callback ? d9__glib_closure_function_of(source, callback, data) : function;
	const void *site = NULL;
	struct d9_waker waker;

	if (!find_armed(known)) {
		if (d9__glib_note_take(record, source->source_id, callback, data, &site, &waker))
			d9_wake(record->loop, known->key, D9_WAKE_CROSS_THREAD, &waker);
		else
			find_armed(known); /* its note was settled in between */
	}
	/* Its prepare() or check() was slow, and told of it by the only function that was known then. */
	if (known->callsite && known->callsite->callback == function && called != function) {
		d9_task_renew(D9_LIBRARY_GLIB, known->key, 0);
		known->callsite = NULL;
	}
	if (!known->callsite)
		known->callsite =
			d9__callsite_of_kind(called, site, (enum d9_task_kind)d9__glib_table_kind_of(stub));
}

static __attribute__((noinline)) const char *meet(struct d9__glib_context *record,
						  struct d9__glib_known *known, uint64_t key,
						  GSource *source, GSourceFunc callback,
						  gpointer data, struct d9__stub *stub)
{
	uint32_t id = source->source_id;

	*known = (struct d9__glib_known) { .key = key, .fd = -1 };
	describe_origin(record, known, source, callback, data, stub);
	/* Its table does not tell what a socket is for. */
	if (known->kind != D9_TASK_LISTENER)
		known->kind = d9__glib_table_kind_of(stub);
	known->ready = (uint16_t)d9__glib_table_ready_of(stub);
	if (known->ready == D9__READY_UNKNOWN && source->poll_fds)
		known->ready = D9__READY_FD;
	if (id > atomic_load_explicit(&record->highest, memory_order_relaxed))
		atomic_store_explicit(&record->highest, id, memory_order_relaxed);
	return d9__glib.g_source_get_name(source);
}

/* ---- polls ---- */

struct frame {
	struct d9_poll poll;
	GSource *saved_chain;
	struct d9__glib_context *saved_outermost;
};

/* On CLOCK_MONOTONIC, which GLib counts in nanoseconds since 2.90.  0: at once, or never. */
static uint64_t ready_time_ns(GSource *source)
{
	uint64_t ns;
	gint64 us;

	/* The time in microseconds is rounded up: it may not have come when the source runs. */
	if (d9__glib.g_source_get_ready_time_ns)
		return d9__glib.g_source_get_ready_time_ns(source, &ns) ? ns : 0;
	us = d9__glib.g_source_get_ready_time(source);
	return us > 0 ? (uint64_t)us * 1000 : 0;
}

/* 0: not due, or no deadline. */
static uint64_t due_ns(GSource *source, bool surely)
{
	uint64_t ns = ready_time_ns(source);

	/* The clock is asked only if there is something to compare it with. */
	return surely || (ns && ns <= d9_loop_now()) ? ns : 0;
}

/* Why it runs now, unless that was told before; an idle source has been announced. */
static __attribute__((noinline)) void describe_wake(struct d9_poll *poll, GSource *source,
						    unsigned ready)
{
	switch (ready) {
	case D9__READY_SIGNAL:
		poll->reason = D9_WAKE_SIGNAL;
		return;
	case D9__READY_TIMER:
		poll->ready_ns = due_ns(source, true);
		poll->reason = D9_WAKE_TIMER;
		return;
	default:
		poll->ready_ns = due_ns(source, false);
		poll->reason = poll->ready_ns	       ? D9_WAKE_TIMER
			       : ready == D9__READY_FD ? D9_WAKE_FD
						       : D9_WAKE_INTERNAL;
	}
}

/* The first poll of a source, or one that is not plain for another reason. */
static __attribute__((noinline)) void begin_other(struct d9_poll *poll,
						  const struct d9__glib_known *known,
						  const char *name)
{
	poll->task.name = name;
	poll->task.fd = known->fd;
	poll->task.flags = 0;
	d9__poll_begin_other(poll);
}

/*
 * Every field is stored once: an initialiser would become a string instruction that costs more
 * than all the rest.
 */
static inline void begin_poll(struct frame *frame, struct d9__glib_context *record,
			      struct d9__glib_thread *thread, GSource *source,
			      GSourceFunc callback, gpointer data, struct d9__stub *stub)
{
	uint64_t key = record->key | source->source_id;
	struct d9__glib_known *known = &record->known[key % D9__GLIB_KNOWN_MAX];
	struct d9_poll *poll = &frame->poll;
	const char *name = NULL;
	bool begun;

	enter_round(record, source->context, poll);
	if (__builtin_expect(known->key != key, 0))
		name = meet(record, known, key, source, callback, data, stub);
	poll->loop = record->loop;
	poll->task.key = key;
	poll->task.identity = 0;
	poll->task.callsite = known->callsite;
	poll->task.kind = known->kind;
	poll->ready_ns = 0;
	poll->reason = D9_WAKE_UNKNOWN;
	record->polls++;
	d9__glib_become_owner(record, thread);
	frame->saved_outermost = thread->outermost;
	if (!thread->outermost)
		thread->outermost = record;
	frame->saved_chain = thread->chain;
	thread->chain = source;
	if (known->ready == D9__READY_IDLE) {
		begun = d9__poll_begin_known(poll);
	} else {
		describe_wake(poll, source, known->ready);
		begun = d9__poll_begin_woken(poll);
	}
	if (__builtin_expect(!begun, 0))
		begin_other(poll, known, name);
}

/* errno, and nothing of GLib or of the source is touched: the callback may have freed it. */
static inline void end_poll(struct frame *frame)
{
	d9_poll_end(&frame->poll);
	d9__glib_thread()->chain = frame->saved_chain;
	d9__glib_thread()->outermost = frame->saved_outermost;
}

static inline gboolean run_as_poll(struct d9__glib_context *record, struct d9__glib_thread *thread,
				   GSource *source, GSourceFunc callback, gpointer data,
				   struct d9__stub *stub)
{
	__attribute__((cleanup(end_poll))) struct frame frame;
	gboolean again;

	begin_poll(&frame, record, thread, source, callback, data, stub);
	again = ((dispatch_fn)stub->callback)(source, callback, data);
	/* The cleanup is for those that do not get here; a second end does nothing. */
	if (__builtin_expect(again, 1)) {
		if (frame.poll.task.kind == D9_TASK_IDLE)
			d9__poll_end_ready(&frame.poll);
		else
			d9_poll_end(&frame.poll);
		return again;
	}
	/* The function that is told of its end is the program's code. */
	frame.poll.flags |= D9_POLL_BREAKS_BATCH;
	d9_poll_end(&frame.poll);
	d9_task_end(D9_LIBRARY_GLIB, frame.poll.task.key);
	return again;
}

static gboolean note_seen(GSource *source, GSourceFunc callback, gpointer data,
			  struct d9__stub *stub)
{
	if (d9__glib_seen.n == 0)
		d9__glib_seen.depth = depth_of(source->context);
	if (d9__glib_seen.n < 4)
		d9__glib_seen.sources[d9__glib_seen.n] = source;
	d9__glib_seen.n++;
	return ((dispatch_fn)stub->callback)(source, callback, data);
}

static __attribute__((noinline)) gboolean record_dispatch(GSource *source, GSourceFunc callback,
							  gpointer data, struct d9__stub *stub)
{
	struct d9__glib_thread *thread = d9__glib_thread();
	struct d9__glib_context *record;

	/* A dispatch function that calls another table's for the same source: one poll. */
	if (thread->chain == source || !source->context)
		return ((dispatch_fn)stub->callback)(source, callback, data);
	record = d9__glib_context(thread, source->context);
	if (!record)
		return ((dispatch_fn)stub->callback)(source, callback, data);
	return run_as_poll(record, thread, source, callback, data, stub);
}

static __attribute__((noinline)) gboolean run_dispatch(GSource *source, GSourceFunc callback,
						       gpointer data, unsigned index);
D9__STUBS_SHARE(d9__glib_dispatches, 512, gboolean, run_dispatch,
		(GSource *source, GSourceFunc callback, gpointer data), (source, callback, data))

/* While recording is off this is all that runs. */
static gboolean run_dispatch(GSource *source, GSourceFunc callback, gpointer data, unsigned index)
{
	struct d9__stub *stub = d9__stub_at(&d9__glib_dispatches, index);

	if (__builtin_expect(d9__glib_self.calibrating, 0))
		return note_seen(source, callback, data, stub);
	if (__builtin_expect(d9__gate_open(D9__GATE_LOOP), 1))
		return record_dispatch(source, callback, data, stub);
	if (__builtin_expect(atomic_load_explicit(&d9__glib_waiting, memory_order_relaxed), 0))
		return record_dispatch(source, callback, data, stub);
	return ((dispatch_fn)stub->callback)(source, callback, data);
}

/* ---- ends ---- */

static __attribute__((noinline)) void run_finalize(GSource *source, unsigned index);
D9__STUBS_SHARE(d9__glib_finalizers, 256, void, run_finalize, (GSource *source), (source))

static void run_finalize(GSource *source, unsigned index)
{
	struct d9__stub *stub = d9__stub_at(&d9__glib_finalizers, index);

	if (d9__gate_open(D9__GATE_LOOP) && source->context && source->source_id) {
		struct d9__glib_context *record =
			d9__glib_context(d9__glib_thread(), source->context);

		if (record)
			d9_task_end(D9_LIBRARY_GLIB, record->key | source->source_id);
	}
	((void (*)(GSource *))stub->callback)(source);
}
