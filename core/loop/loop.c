/* SPDX-License-Identifier: Apache-2.0 */
/* Behind <dial9/loop.h>: registration and tasks. */
#include "config.h"

#include <dial9/loop.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/time.h"
#include "loop/accept_queues.h"
#include "loop/adapter.h"
#include "loop/callsites.h"
#include "loop/loops.h"
#include "loop/polls.h"
#include "loop/samples.h"
#include "loop/tasks.h"
#include "loop/thread_state.h"
#include "loop/wire.h"
#include "loop/workers.h"
#include "record/recorder.h"
#include "record/sampling.h"
#include "record/sandbox.h"
#include "ring/clock.h"
#include "ring/gate.h"
#include "ring/slot.h"
#include "sample/unwind_table.h"
#include "segment/metadata.h"

#define LIBRARY_MAX 40 /* of a library's own name */
#define KEY_MAX     160

/* ---- libraries and loops ---- */

int d9_library_describe(const char *library, const char *key, const char *value)
{
	char name[LIBRARY_MAX + KEY_MAX + sizeof("loop..")];
	int saved = errno, err;

	if (!library || !key || !*library || !*key || strlen(library) > LIBRARY_MAX ||
	    strlen(key) > KEY_MAX)
		return -EINVAL;
	snprintf(name, sizeof(name), "loop.%s.%s", library, key);
	err = d9__metadata_set(name, value);
	errno = saved;
	return err;
}

/* Take over the recorder's options that are about loops. */
static void read_options(char name[D9__LOOP_NAME_MAX])
{
	d9__cpu_time_set_rate((uint32_t)d9__recorder_number(D9__OPTION_SCHED_WAIT_RATE));
	d9__samples_set_period_ns(d9__recorder_number(D9__OPTION_QUEUE_INTERVAL_MS) * D9__MS_NS);
	d9__recorder_text(D9__OPTION_RUNTIME_NAME, name, D9__LOOP_NAME_MAX);
}

int d9__loop_prepare(void)
{
	int saved = errno, err = d9__sandbox_is_shut() ? -EPERM : d9__loops_init();
	bool blocking;

	if (!err)
		err = d9__recorder_ensure();
	/* Where its first calls block is looked up before the flush thread has made tables, and
	 * where its first tasks are armed with rows. */
	blocking = atomic_load_explicit(&d9__sampling.blocking, memory_order_relaxed);
	if (!err && d9__gate_word() & D9__GATE_ARM)
		d9__unwind_tables_want_rows();
	if (!err && (blocking || d9__gate_word() & D9__GATE_ARM) && !d9__unwind_table_now())
		d9__unwind_tables_begin(d9__clock_mono_ns());
	errno = saved;
	return err;
}

int d9__loop_add(enum d9_library library, const void *address, const char *name, struct d9_loop **loop)
{
	char fallback[D9__LOOP_NAME_MAX];
	int saved = errno, err;

	read_options(fallback);
	err = d9__loops_add(library, address, name || !fallback[0] ? name : fallback, loop);
	errno = saved;
	return err;
}

int d9_loop_register(enum d9_library library, const void *address, const char *name,
		     struct d9_loop **loop)
{
	int err;

	if (!address || !loop || (unsigned)library > D9_LIBRARY_GLIB)
		return -EINVAL;
	err = d9__loop_prepare();
	return err ? err : d9__loop_add(library, address, name, loop);
}

/* The ends of tasks are written in handfuls, as they come out of the table. */
static void end_tasks(struct d9_loop *loop)
{
	uint32_t epoch = atomic_load_explicit(&d9__loop_epoch, memory_order_relaxed);
	struct d9__slot *slot = d9__gate_open(D9__GATE_TASK) ? d9__slot_self() : NULL;
	uint64_t ns = slot ? d9__slot_now(slot) : 0;
	struct d9__tasks_ended ended = { .n = 0 };

	while (d9__tasks_remove_one_of(loop, epoch, &ended)) {
		if (slot)
			d9__wire_ended(slot, ns, &ended);
		ended.n = 0;
	}
}

void d9_loop_unregister(struct d9_loop *loop)
{
	int saved = errno;

	if (!loop)
		return;
	end_tasks(loop);
	d9__accept_queues_forget(loop);
	d9__loops_remove(loop);
	errno = saved;
}

struct d9_loop *d9_loop_find(enum d9_library library, const void *address)
{
	return d9__loops_find(library, address);
}

int d9_loop_recording(void)
{
	return d9__gate_open(D9__GATE_LOOP);
}

uint64_t d9__loop_latest_ns(void)
{
	const struct d9__slot *slot = d9__self.slot;

	return d9__slot_is_real(slot) ? slot->last_ns : 0;
}

uint64_t d9_loop_now(void)
{
	struct d9__slot *slot = d9__gate_open(D9__GATE_ALL) ? d9__slot_self() : NULL;

	return slot ? d9__slot_now(slot) : d9__clock_mono_ns();
}

/* ---- tasks ---- */

static void write_ended(const struct d9__tasks_ended *ended)
{
	struct d9__slot *slot;

	if (ended->n && d9__gate_open(D9__GATE_TASK) && (slot = d9__slot_self()))
		d9__wire_ended(slot, d9__slot_now(slot), ended);
}

static int obtain(struct d9_loop *loop, const struct d9_task *task, struct d9__task **out)
{
	uint32_t epoch = atomic_load_explicit(&d9__loop_epoch, memory_order_relaxed);
	struct d9__tasks_ended ended = { .n = 0 };
	int err = d9__tasks_obtain(loop, task->key, task, epoch, out, &ended);

	write_ended(&ended);
	return err;
}

int d9_task_arm(struct d9_loop *loop, const struct d9_task *task)
{
	struct d9__task *entry;
	int saved = errno, err;

	if (!loop || !task)
		return -EINVAL;
	if (!d9__gate_open(D9__GATE_LOOP))
		return 0;
	err = obtain(loop, task, &entry);
	if (!err)
		d9__polls_task_armed(loop, entry);
	if (!err && task->fd >= 0 && d9__gate_word() & D9__GATE_LISTEN)
		d9__accept_queues_watch(loop, task->fd);
	errno = saved;
	return err;
}

void d9_task_renew(enum d9_library library, uint64_t key, uint64_t identity)
{
	uint32_t epoch = atomic_load_explicit(&d9__loop_epoch, memory_order_relaxed);
	struct d9__task *task = d9__tasks_find(library, key);

	if (!task ||
	    (identity && atomic_load_explicit(&task->identity, memory_order_relaxed) == identity))
		return;
	/* A task that the trace does not know can be the new one: no reader saw the old one. */
	if (atomic_load_explicit(&task->spawned, memory_order_relaxed) == epoch)
		atomic_store_explicit(&task->spawned, D9__TASK_STALE, memory_order_relaxed);
	else
		atomic_store_explicit(&task->identity, identity, memory_order_relaxed);
}

void d9_task_end(enum d9_library library, uint64_t key)
{
	struct d9__thread *thread = d9__thread_peek();
	uint32_t epoch = atomic_load_explicit(&d9__loop_epoch, memory_order_relaxed);
	struct d9__tasks_ended ended = { .n = 0 };

	if (thread)
		d9__early_forget(&thread->early, key);
	if (!d9__tasks_find(library, key))
		return;
	d9__tasks_remove(library, key, 0, epoch, &ended);
	write_ended(&ended);
}

uint64_t d9_task_id(enum d9_library library, uint64_t key)
{
	struct d9__task *task = d9__tasks_find(library, key);

	return task ? atomic_load_explicit(&task->id, memory_order_relaxed) : 0;
}

/* ---- for our adapters ---- */

void d9__loop_outside(const void *function)
{
	struct d9__thread *thread = d9__thread_peek();

	/* relaxed: pairs with nothing; the flush thread reads this word alone */
	if (thread)
		__atomic_store_n(&thread->outside, function, __ATOMIC_RELAXED);
}

uint64_t d9__task_told(struct d9_loop *loop, const struct d9_task *task)
{
	struct d9__task *entry;
	uint64_t id = 0;
	int saved = errno;

	if (d9__gate_open(D9__GATE_LOOP) && !obtain(loop, task, &entry) && d9__polls_task_tell(loop, entry))
		id = atomic_load_explicit(&entry->id, memory_order_relaxed);
	errno = saved;
	return id;
}

void d9__loop_set_companion(struct d9_loop *loop, void *companion)
{
	/* release: pairs with the acquire below */
	atomic_store_explicit(&loop->companion, companion, memory_order_release);
}

void *d9__loop_companion(struct d9_loop *loop)
{
	return atomic_load_explicit(&loop->companion, memory_order_acquire);
}

bool d9__task_armed(enum d9_library library, uint64_t key, struct d9_task *out)
{
	struct d9__task *task = d9__tasks_find(library, key);

	if (!task)
		return false;
	out->callsite = atomic_load_explicit(&task->callsite, memory_order_acquire);
	out->fd = atomic_load_explicit(&task->fd, memory_order_relaxed);
	out->kind = atomic_load_explicit(&task->kind, memory_order_relaxed);
	return true;
}

uint64_t d9_poll_task(void)
{
	struct d9__thread *thread = d9__thread_peek();

	return thread ? d9__thread_task(thread) : 0;
}
