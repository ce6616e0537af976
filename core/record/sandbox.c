/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "record/sandbox.h"

#include <stddef.h>

#include <dial9/recorder.h>

#include "record/recorder.h"
#include "record/sampling.h"
#include "record/source.h"
#include "ring/names.h"
#include "ring/slot.h"
#include "segment/metadata.h"
#include "segment/modules.h"

#define DEADLINE_MS 2000 /* an idle flush thread looks once a second */

static _Atomic(bool) was_shut, ends_all;
static void (*prepare)(void);
static void (*on_bar)(bool barred);

void d9__sandbox_on_enter(void (*fn)(void))
{
	prepare = fn;
}

void d9__sandbox_on_bar(void (*fn)(bool barred))
{
	on_bar = fn;
}

static void say_barred(bool calls)
{
	d9__metadata_set("recorder.sandboxed", calls ? "seccomp, strict: the thread is not recorded from then on" :
			 "PR_SET_TSC: the thread may not read the time, and is not recorded from then on");
}

bool d9__sandbox_bar(bool calls)
{
	bool barred = d9__slot_is_barred(d9__self.slot), may_call = !d9__sandbox_is_shut();

	if (atomic_load_explicit(&d9__sampling.unguarded_tsc, memory_order_relaxed))
		return false;
	if (!barred && may_call && on_bar)
		on_bar(true);
	d9__clock_forbid();
	d9__slot_bar(calls ? D9__SLOT_JAILED : D9__SLOT_BARRED);
	if (!barred && may_call && d9_recorder_running())
		say_barred(calls);
	return !barred;
}

void d9__sandbox_unbar(void)
{
	if (!d9__slot_is_barred(d9__self.slot))
		return;
	d9__slot_unbar();
	if (!d9__sandbox_is_shut() && on_bar)
		on_bar(false);
}

static void say_end(void)
{
	d9__metadata_set("recorder.ended",
			 "when the program limited the system calls of all its threads (seccomp)");
	d9__metadata_keep();
}

/* Behind the first filter the flush thread says it, whom a later one ends. */
static void say_late_end(void)
{
	if (atomic_load_explicit(&ends_all, memory_order_relaxed))
		say_end();
}

static void enter_all(void)
{
	atomic_store_explicit(&ends_all, true, memory_order_relaxed);
	if (d9__sandbox_is_shut()) {
		d9__recorder_end_unasked(DEADLINE_MS);
		return;
	}
	say_end();
	d9__recorder_end(DEADLINE_MS);
}

static void enter_one(void)
{
	d9__metadata_set("recorder.sandboxed", "seccomp: CPU times are not read any more, new threads and loops not recorded");
	d9__modules_scan();
	d9__names_ready();
	prepare();
	d9__tick_add(say_late_end);
}

void d9__sandbox_enter(bool all)
{
	atomic_store_explicit(&was_shut, d9__sandbox_is_shut(), memory_order_relaxed);
	/* Behind the filter none could be started. */
	d9__recorder_begin();
	d9__recorder_step_in();
	if (d9_recorder_running() && all)
		enter_all();
	else if (d9_recorder_running() && prepare && !d9__sandbox_is_shut())
		enter_one();
	atomic_store_explicit(&d9__sandbox_shut, true, memory_order_relaxed);
}

void d9__sandbox_refused(void)
{
	bool shut = atomic_load_explicit(&was_shut, memory_order_relaxed);

	atomic_store_explicit(&d9__sandbox_shut, shut, memory_order_relaxed);
	if (shut || !atomic_exchange_explicit(&ends_all, false, memory_order_relaxed))
		return;
	d9__metadata_set("recorder.ended", NULL);
	d9__recorder_resume();
}
