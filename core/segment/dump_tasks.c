/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "segment/dump_tasks.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "format/wire.h"
#include "ring/names.h"
#include "segment/announcement.h"

typedef void (*each_fn)(d9__dump_task_fn fn, void *arg);

static _Atomic(each_fn) provider;

void d9__dump_tasks_provide(void (*each)(d9__dump_task_fn fn, void *arg))
{
	atomic_store_explicit(&provider, each, memory_order_relaxed);
}

/* ---- those that live ---- */

struct list {
	struct d9__dump_tasks *tasks;
	uint64_t from_ns;
	bool idle; /* those that were not polled since */
};

static void add_item(struct d9__dump_tasks *tasks, const struct d9__task_spawn *task)
{
	if (tasks->n == D9__DUMP_TASKS_MAX)
		return;
	if (d9__array_reserve(tasks->items, &tasks->capacity, tasks->n, 1))
		tasks->items[tasks->n++] = *task;
	else
		tasks->failed = true;
}

static void list_task(void *arg, const struct d9__task_spawn *task, uint64_t polled_ns)
{
	const struct list *list = arg;

	if ((polled_ns < list->from_ns) == list->idle)
		add_item(list->tasks, task);
}

void d9__dump_tasks_list(struct d9__dump_tasks *tasks, uint64_t from_ns)
{
	each_fn each = atomic_load_explicit(&provider, memory_order_relaxed);
	struct list list = { .tasks = tasks, .from_ns = from_ns };

	if (!each)
		return;
	/* A task that is polled meanwhile is in both, and announced once. */
	each(list_task, &list);
	list.idle = true;
	each(list_task, &list);
}

/* ---- what the dump has ---- */

static void add_id(struct d9__dump_tasks *tasks, struct d9__id_set *set, uint64_t id)
{
	if (d9__id_set_add(set, id))
		tasks->failed = true;
}

static bool look_at(void *arg, const struct d9__wire_frame *frame)
{
	struct d9__dump_tasks *tasks = arg;
	const uint8_t *p = frame->values;

	if (frame->tag != D9__WIRE_EVENT || frame->bytes < tasks->from)
		return true;
	if (!tasks->first_ns || frame->ns < tasks->first_ns)
		tasks->first_ns = frame->ns;
	switch (frame->type_id) {
	case D9__EVENT_TASK_SPAWN:
		add_id(tasks, &tasks->spawned, d9__walk_varint(&p));
		break;
	case D9__EVENT_POLL_START:
		d9__walk_varint(&p); /* worker_id */
		p++;                 /* local_queue */
		add_id(tasks, &tasks->used, d9__walk_varint(&p));
		break;
	case D9__EVENT_WAKE:
		d9__walk_varint(&p); /* waker_task_id */
		add_id(tasks, &tasks->used, d9__walk_varint(&p));
		break;
	case D9__EVENT_TASK_TERMINATE:
		add_id(tasks, &tasks->used, d9__walk_varint(&p));
		break;
	}
	return true;
}

uint32_t d9__dump_tasks_look(struct d9__dump_tasks *tasks, struct d9__walker *walker, const uint8_t *bytes,
			     uint32_t taken, size_t len)
{
	tasks->from = bytes + taken;
	return d9__walk_whole(walker, bytes, len, look_at, tasks);
}

static int add_if_missing(void *arg, uint64_t id)
{
	struct d9__dump_tasks *tasks = arg;

	return d9__id_set_has(&tasks->spawned, id) ? 0 : d9__id_set_add(&tasks->missing, id);
}

uint64_t d9__dump_tasks_settle(struct d9__dump_tasks *tasks)
{
	size_t n = 0;

	if (d9__id_set_each(&tasks->used, add_if_missing, tasks))
		tasks->failed = true;
	for (size_t i = 0; i < tasks->n; i++) {
		d9__id_set_remove(&tasks->missing, tasks->items[i].task);
		if (!d9__id_set_has(&tasks->spawned, tasks->items[i].task))
			tasks->items[n++] = tasks->items[i];
	}
	tasks->n = n;
	return tasks->missing.n;
}

/* ---- where the others began ---- */

/* The texts of a batch have the numbers from 0 on, in this order. */
static void add_text(struct d9__dump_tasks *tasks, uint32_t id, const uint8_t *text, uint32_t len)
{
	if (id != tasks->n_texts || tasks->failed)
		return;
	if (d9__array_reserve(tasks->texts, &tasks->texts_capacity, tasks->n_texts, 1))
		tasks->texts[tasks->n_texts++] = (struct d9__dump_text){ (const char *)text, len };
	else
		tasks->failed = true;
}

static void add_pool(struct d9__dump_tasks *tasks, const struct d9__wire_frame *frame)
{
	const uint8_t *p = frame->bytes + 1, *end = frame->bytes + frame->len;
	uint32_t n = d9__wire_get_u32(p);

	for (p += 4; n && p < end; n--) {
		uint32_t id = d9__wire_get_u32(p), len = d9__wire_get_u32(p + 4);

		add_text(tasks, id, p + 8, len);
		p += 8 + len;
	}
}

/* The recorder's own handle, under which it wrote the text. */
static uint32_t handle_of(const struct d9__dump_tasks *tasks, const uint8_t **p)
{
	uint32_t id = d9__wire_get_u32(*p);

	*p += 4;
	return id < tasks->n_texts ? d9__name_intern(tasks->texts[id].text, tasks->texts[id].len) :
				     D9__NAME_EMPTY;
}

/* What d9__task_spawn_put() wrote. */
static void add_found(struct d9__dump_tasks *tasks, const uint8_t *p)
{
	struct d9__task_spawn found = { .task = d9__walk_varint(&p), .fd = -1 };

	if (!d9__id_set_remove(&tasks->missing, found.task))
		return;
	found.loc = handle_of(tasks, &p);
	found.instrumented = *p++ != 0;
	found.callback = d9__walk_varint(&p);
	found.spawn_addr = d9__walk_varint(&p);
	found.kind = handle_of(tasks, &p);
	if (*p++)
		found.fd = (int32_t)d9__walk_varint(&p);
	if (*p++)
		found.name = handle_of(tasks, &p);
	add_item(tasks, &found);
}

static bool search_in(void *arg, const struct d9__wire_frame *frame)
{
	struct d9__dump_tasks *tasks = arg;

	if (frame->tag == D9__WIRE_STRING_POOL)
		add_pool(tasks, frame);
	else if (frame->tag == D9__WIRE_EVENT && frame->type_id == D9__EVENT_TASK_SPAWN)
		add_found(tasks, frame->values);
	return true;
}

uint32_t d9__dump_tasks_search(struct d9__dump_tasks *tasks, struct d9__walker *walker, const uint8_t *bytes,
			       size_t len)
{
	tasks->n_texts = 0;
	return tasks->missing.n ? d9__walk_whole(walker, bytes, len, search_in, tasks) : 0;
}

/* ---- telling ---- */

int d9__dump_tasks_announce(struct d9__dump_tasks *tasks, struct d9__writer *writer, uint64_t ns,
			    uint64_t now_ns)
{
	if (tasks->failed)
		return -ENOMEM;
	return tasks->n ? d9__announcement_write(tasks->items, tasks->n, ns, writer, true, now_ns) : 0;
}

void d9__dump_tasks_release(struct d9__dump_tasks *tasks)
{
	d9__free(tasks->items);
	d9__free(tasks->texts);
	d9__id_set_release(&tasks->spawned);
	d9__id_set_release(&tasks->used);
	d9__id_set_release(&tasks->missing);
	*tasks = (struct d9__dump_tasks){ 0 };
}
