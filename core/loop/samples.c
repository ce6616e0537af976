/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "loop/samples.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/time.h"
#include "loop/accept_queues.h"
#include "loop/announce.h"
#include "loop/callsites.h"
#include "loop/loops.h"
#include "loop/running.h"
#include "loop/task_io.h"
#include "loop/tasks.h"
#include "loop/thread_state.h"
#include "loop/waits.h"
#include "loop/workers.h"
#include "record/levels.h"
#include "record/source.h"
#include "ring/emit_inl.h"
#include "ring/names.h"
#include "sample/alloc.h"
#include "sample/sampler.h"
#include "segment/metadata.h"

#define QUEUE_NS (100 * D9__MS_NS)
#define TASKS_NS (100 * D9__MS_NS) /* least time between two task counts of one loop */

/* ---- queues and tasks ---- */

static uint64_t queue_of(const struct d9_loop *loop)
{
	int32_t handed = atomic_load_explicit(&loop->handed, memory_order_relaxed);

	return handed > 0 ? (uint64_t)handed : 0;
}

uint32_t d9__samples_global_queue(void)
{
	struct d9_loop *loop;
	uint64_t sum = 0;

	for (size_t i = 0; (loop = d9__loops_at(i)); i++)
		sum += queue_of(loop);
	return sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX;
}

struct worker_search {
	const struct d9__thread *owner;
	uint32_t worker;
};

static void find_worker(void *arg, const struct d9__thread *thread)
{
	struct worker_search *search = arg;

	if (thread == search->owner)
		search->worker = __atomic_load_n(&thread->worker, __ATOMIC_RELAXED);
}

static void name_of(struct d9_loop *loop, char name[D9__LOOP_NAME_MAX])
{
	struct worker_search search = { atomic_load_explicit(&loop->owner, memory_order_relaxed), D9__WORKER_NONE };

	d9__loop_name(loop, name);
	if (name[0])
		return;
	d9__threads_each(find_worker, &search);
	d9__workers_name(search.worker, name, D9__LOOP_NAME_MAX);
}

uint64_t d9__samples_queue_of(bool (*wanted)(const void *arg, const char *name), const void *arg)
{
	char name[D9__LOOP_NAME_MAX];
	struct d9_loop *loop;
	uint64_t sum = 0;

	for (size_t i = 0; (loop = d9__loops_at(i)); i++) {
		if (!queue_of(loop))
			continue;
		name_of(loop, name);
		if (wanted(arg, name))
			sum += queue_of(loop);
	}
	return sum;
}

/* The name under which a loop's counts stand: its own, else library and number. */
static uint32_t label_of(struct d9_loop *loop)
{
	char text[D9__LOOP_NAME_MAX];

	d9__loop_name(loop, text);
	if (!text[0])
		snprintf(text, sizeof(text), "%s#%" PRIu32,
			 d9__library_name(atomic_load_explicit(&loop->library,
							       memory_order_relaxed)),
			 atomic_load_explicit(&loop->serial, memory_order_relaxed));
	return d9__name_intern(text, strlen(text));
}

/* Written when it changed: most loops' counts rest. */
static void sample_tasks(struct d9_loop *loop, struct d9__slot *slot, uint64_t ns)
{
	uint32_t serial = atomic_load_explicit(&loop->serial, memory_order_relaxed);
	uint32_t tasks = d9__tasks_of(loop);
	uint32_t label, id;
	uint8_t *p;

	if (loop->sampled_serial == serial && loop->sampled_tasks == tasks)
		return;
	if (loop->sampled_serial == serial && ns - loop->sampled_ns < TASKS_NS)
		return;
	label = label_of(loop);
	p = d9__emit_begin_named(slot, D9__EVENT_LOOP_TASKS, ns,
				 4 + D9__VARINT_MAX, &label, &id, 1);
	if (!p)
		return;
	p = d9__wire_put_u32(p, id);
	p = d9__varint_put(p, tasks);
	d9__emit_end(slot, p);
	loop->sampled_serial = serial;
	loop->sampled_tasks = tasks;
	loop->sampled_ns = ns;
}

static void sample_loops(struct d9__source *source, struct d9__slot *slot, uint64_t now_ns)
{
	struct d9_loop *loop;
	uint32_t queue = d9__samples_global_queue();
	uint8_t *p;

	(void)source;
	/* Threads that got another name, and those first seen where no lock could be taken. */
	d9__workers_look(now_ns);
	p = d9__emit_begin(slot, D9__EVENT_QUEUE_SAMPLE, now_ns, 1);
	if (p) {
		*p++ = queue > 255 ? 255 : (uint8_t)queue;
		d9__emit_end(slot, p);
	}
	for (size_t i = 0; (loop = d9__loops_at(i)); i++) {
		if (atomic_load_explicit(&loop->address, memory_order_relaxed))
			sample_tasks(loop, slot, now_ns);
	}
}

static struct d9__source loops_source = {
	.name = "loops",
	.period_ns = QUEUE_NS,
	.sample = sample_loops,
};

static void publish_number(const char *key, uint64_t n)
{
	char text[24];

	if (!n)
		return;
	snprintf(text, sizeof(text), "%" PRIu64, n);
	d9__metadata_set(key, text);
}

static void publish_forgotten(void)
{
	/* Tasks that lived when the table had no room for more: the trace says that they ended. */
	publish_number("tasks.forgotten", d9__tasks_evicted());
	/* Registrations without memory, or room, for what they are called. */
	publish_number("callsites.unknown", d9__callsites_overflows());
}

static void add_source(void)
{
	d9__source_add(&loops_source);
	d9__tick_add(publish_forgotten);
	/* A thread that only polls and parks, as hosts of GLib do, is in the last tick. */
	d9__tick_add(d9__workers_publish);
	/* The seal has threads that came behind that tick, and waits for one that is being told. */
	d9__metadata_on_seal(d9__workers_settle);
	d9__announce_start();
	d9__running_start();
	d9__levels_provide(d9__samples_queue_of, d9__workers_name);
	d9__sampler_start();
	d9__alloc_start();
	d9__waits_start();
	d9__accept_queues_start();
	d9__task_io_start();
}

void d9__samples_start(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, add_source);
}

void d9__samples_set_period_ns(uint64_t period_ns)
{
	atomic_store_explicit(&loops_source.period_ns, period_ns, memory_order_relaxed);
}

/* ---- off the CPU inside a callback ---- */

void d9__samples_off_cpu(struct d9__slot *slot, uint64_t ns, uint32_t worker, uint64_t task,
			 const struct d9__cpu_off *off)
{
	const uint64_t grown[] = { off->grown.voluntary, off->grown.involuntary, off->grown.minor,
				   off->grown.major,	 off->grown.user_ns,	 off->grown.system_ns };
	uint8_t *p = d9__emit_begin(slot, D9__EVENT_OFF_CPU, ns, 10 * D9__VARINT_MAX + 6);

	if (!p)
		return;
	p = d9__varint_put(p, worker);
	p = d9__varint_put(p, task);
	p = d9__varint_put(p, off->blocked_ns);
	p = d9__varint_put(p, off->run_queue_ns);
	for (unsigned i = 0; i < 6; i++) {
		*p++ = 1; /* it is there */
		p = d9__varint_put(p, grown[i]);
	}
	d9__emit_end(slot, p);
}
