/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "record/dump_tasks.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "format/encoder.h"
#include "record/names.h"

#define NAMES_MAX   64    /* in one batch */
#define BATCH_BYTES 49152 /* begin another behind these */
#define SPAWN_BYTES (5 * D9__VARINT_MAX + 16)

typedef void (*each_fn)(d9__dump_task_fn fn, void *arg);

static _Atomic(each_fn) provider;

void d9__dump_tasks_provide(void (*each)(d9__dump_task_fn fn, void *arg))
{
	atomic_store_explicit(&provider, each, memory_order_relaxed);
}

/* ---- what the dump has ---- */

struct look {
	struct d9__dump_tasks *tasks;
	const uint8_t *from;
};

static void add_spawned(struct d9__dump_tasks *tasks, uint64_t id)
{
	if (tasks->n == tasks->capacity) {
		size_t more = tasks->capacity ? 2 * tasks->capacity : 1024;
		uint64_t *grown = reallocarray(tasks->spawned, more, sizeof(*grown));

		if (!grown) {
			tasks->failed = true;
			return;
		}
		tasks->spawned = grown;
		tasks->capacity = more;
	}
	tasks->spawned[tasks->n++] = id;
}

static bool look_at(void *arg, const struct d9__frame *frame)
{
	const struct look *look = arg;
	struct d9__dump_tasks *tasks = look->tasks;
	const uint8_t *p = frame->values;

	if (frame->tag != D9__WIRE_EVENT || frame->bytes < look->from)
		return true;
	if (!tasks->first_ns || frame->ns < tasks->first_ns)
		tasks->first_ns = frame->ns;
	if (frame->type_id == D9__EVENT_TASK_SPAWN)
		add_spawned(tasks, d9__walk_varint(&p));
	return true;
}

void d9__dump_tasks_look(struct d9__dump_tasks *tasks, struct d9__walker *walker,
			 const struct d9__batch *batch)
{
	struct look look = { tasks, batch->bytes + batch->taken_bytes };

	d9__walk(walker, batch->bytes, batch->len, look_at, &look);
}

/* ---- which others there are ---- */

struct list {
	const struct d9__dump_tasks *tasks;
	struct d9__task_spawn *items;
	size_t n, capacity;
	uint64_t from_ns;
	bool idle; /* those that were not polled since */
	bool failed;
};

static int by_id(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void add_task(void *arg, const struct d9__task_spawn *task, uint64_t polled_ns)
{
	struct list *list = arg;
	const struct d9__dump_tasks *tasks = list->tasks;

	if ((polled_ns < list->from_ns) != list->idle || list->n == D9__DUMP_TASKS_MAX ||
	    (tasks->n && bsearch(&task->task, tasks->spawned, tasks->n, sizeof(*tasks->spawned), by_id)))
		return;
	if (list->n == list->capacity) {
		size_t more = list->capacity ? 2 * list->capacity : 256;
		struct d9__task_spawn *grown = reallocarray(list->items, more, sizeof(*grown));

		if (!grown) {
			list->failed = true;
			return;
		}
		list->items = grown;
		list->capacity = more;
	}
	list->items[list->n++] = *task;
}

/* Equal texts side by side: each batch defines its own. */
static int by_names(const void *a, const void *b)
{
	const struct d9__task_spawn *x = a, *y = b;

	if (x->loc != y->loc)
		return x->loc < y->loc ? -1 : 1;
	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	return x->task < y->task ? -1 : x->task > y->task;
}

/* ---- writing them ---- */

struct page {
	struct d9__builder builder;
	uint32_t names[NAMES_MAX], n_names; /* handle of each string of its pool */
};

static uint32_t name_id(struct page *page, uint32_t handle)
{
	const struct d9__name *name = d9__name_text(handle);
	uint8_t frame[D9__POOL_ENTRY_FRAME_LEN + D9__NAME_BYTES];

	for (uint32_t i = page->n_names; i-- > 0;)
		if (page->names[i] == handle)
			return i;
	d9__builder_put(&page->builder, frame,
			(size_t)(d9__wire_put_pool_entry(frame, page->n_names, name->text, name->len) -
				 frame));
	page->names[page->n_names] = handle;
	return page->n_names++;
}

static void put_task(struct page *page, const struct d9__task_spawn *task, uint64_t ns)
{
	bool named = task->name != D9__NAME_EMPTY;
	uint32_t loc = name_id(page, task->loc), kind = name_id(page, task->kind);
	uint32_t name = named ? name_id(page, task->name) : 0;
	uint8_t *p = d9__builder_event(&page->builder, D9__EVENT_TASK_SPAWN, ns, SPAWN_BYTES);

	if (p)
		d9__builder_end(&page->builder, d9__task_spawn_put(p, task, loc, kind, name));
}

static int write_page(struct page *page, struct d9__writer *writer, uint64_t now_ns)
{
	int err = d9__writer_note(writer, &page->builder, true, now_ns);

	d9__builder_begin(&page->builder);
	page->n_names = 0;
	return err;
}

static int write_list(const struct list *list, struct d9__writer *writer, uint64_t now_ns)
{
	struct page page = { .n_names = 0 };
	int err = 0;

	d9__builder_begin(&page.builder);
	for (size_t i = 0; i < list->n && !err; i++) {
		/* A task may have been polled between the two passes. */
		if (!i || list->items[i].task != list->items[i - 1].task)
			put_task(&page, &list->items[i], list->tasks->first_ns);
		if (page.n_names > NAMES_MAX - 3 || page.builder.len > BATCH_BYTES)
			err = write_page(&page, writer, now_ns);
	}
	if (!err)
		err = write_page(&page, writer, now_ns);
	d9__builder_release(&page.builder);
	return err;
}

int d9__dump_tasks_announce(struct d9__dump_tasks *tasks, struct d9__writer *writer,
			    uint64_t from_ns, uint64_t now_ns)
{
	each_fn each = atomic_load_explicit(&provider, memory_order_relaxed);
	struct list list = { .tasks = tasks, .from_ns = from_ns };
	int err;

	if (tasks->failed)
		return -ENOMEM;
	if (!each || !tasks->first_ns)
		return 0;
	if (tasks->n)
		qsort(tasks->spawned, tasks->n, sizeof(*tasks->spawned), by_id);
	each(add_task, &list);
	list.idle = true;
	each(add_task, &list);
	if (list.n)
		qsort(list.items, list.n, sizeof(*list.items), by_names);
	err = list.failed ? -ENOMEM : write_list(&list, writer, now_ns);
	free(list.items);
	return err;
}

void d9__dump_tasks_release(struct d9__dump_tasks *tasks)
{
	free(tasks->spawned);
	*tasks = (struct d9__dump_tasks){ 0 };
}
