/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that run and wait. */

#include "config.h"

#include <errno.h>

#include <dial9/loop.h>

#include "libev/records.h"
#include "libev/runs.h"
#include "libev/thread.h"

_Thread_local struct d9__libev_thread d9__libev_self D9_TLS;

/* ---- runs ---- */

/* One run of ev_run() on this thread's stack. */
struct frame {
	struct d9__libev_context saved;
	struct d9__libev_record *record;
	struct d9_loop_run run;
	int saved_flags;
};

static void leave_run(struct frame *frame)
{
	d9_loop_leave(&frame->run);
	frame->record->run_flags = frame->saved_flags;
	d9__libev_thread()->now = frame->saved;
}

/*
 * A longjmp() out of a callback leaves what it skipped in the thread block.  Its frame lies below
 * ours then; on the stack of a coroutine this may take a living one for dead, which costs no more
 * than the site of what its callback starts before it ends.
 */
static void enter_run(struct frame *frame, struct d9__libev_thread *thread,
		      struct d9__libev_record *record, int flags)
{
	if (thread->now.frame && thread->now.frame < (uintptr_t)frame) {
		thread->now = (struct d9__libev_context) { 0 };
		thread->feeder = NULL;
		thread->signum = 0;
	}
	frame->saved = thread->now;
	frame->record = record;
	frame->saved_flags = record->run_flags;
	record->run_flags = flags;
	thread->now = (struct d9__libev_context) { .record = record, .frame = (uintptr_t)frame };
	d9_loop_enter(record->loop, &frame->run);
}

static int run_recorded(struct ev_loop *loop, int flags, struct d9__libev_thread *thread,
			struct d9__libev_record *record)
{
	__attribute__((cleanup(leave_run))) struct frame frame;

	enter_run(&frame, thread, record, flags);
	return d9__libev.ev_run(loop, flags);
}

int d9__hook_ev_run(struct ev_loop *loop, int flags)
{
	struct d9__libev_thread *thread = d9__libev_thread();
	struct d9__libev_record *record;

	if (__builtin_expect(thread->calibrating, 0))
		return d9__libev.ev_run(loop, flags);
	d9__got_rescan();
	record = d9__libev_record_of(thread, loop);
	return record ? run_recorded(loop, flags, thread, record) : d9__libev.ev_run(loop, flags);
}

/* ---- waits ---- */

void d9__libev_run_release(struct ev_loop *loop)
{
	struct d9__libev_record *record = d9__libev_record_of(d9__libev_thread(), loop);
	bool spins;

	if (!record)
		return;
	/* libev does not tell the timeout: these are what makes it 0. */
	spins = record->run_flags & EVRUN_NOWAIT || record->n_idle;
	d9_loop_park(record->loop, spins ? 0 : -1);
	if (record->release) {
		record->release(loop);
		/* A plugin may have come; the program's lock is free now. */
		d9__got_rescan_paced(d9_loop_now());
	}
}

/*
 * libev reads the backend's errno afterwards.  The program's callback waits for its lock: that is no
 * part of the loop's wait.
 */
void d9__libev_run_acquire(struct ev_loop *loop)
{
	struct d9__libev_record *record = d9__libev_record_of(d9__libev_thread(), loop);

	if (!record)
		return;
	d9_loop_unpark(record->loop);
	if (record->acquire)
		record->acquire(loop);
}

void d9__hook_ev_set_loop_release_cb(struct ev_loop *loop, d9__libev_loop_fn release,
				     d9__libev_loop_fn acquire)
{
	struct d9__libev_thread *thread = d9__libev_thread();
	struct d9__libev_record *record =
		thread->calibrating ? NULL : d9__libev_record_of(thread, loop);

	if (!record) {
		d9__libev.ev_set_loop_release_cb(loop, release, acquire);
		return;
	}
	record->release = release;
	record->acquire = acquire;
}

/* Only libev's own calls come here: it waits for more events to collect. */
void d9__hook_ev_sleep(ev_tstamp delay)
{
	struct d9__libev_record *record = d9__libev_thread()->now.record;

	if (record)
		d9_loop_park(record->loop, -1);
	d9__libev.ev_sleep(delay);
	if (record)
		d9_loop_unpark(record->loop);
}
