/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "analyze/budget.h"
#include "analyze/stalls.h"
#include "analyze/tasks.h"

#define TELLING_NS (100 * D9__MS_NS) /* a task that begins while the recorder tells the living ones may be among these */

/* Callbacks with fewer tasks have no curve of their own: growth below that is no leak. */
#define CURVE_FROM 100

/* With its place in the table. */
#define TASK_BYTES (sizeof(struct d9__traced_task) + 3 * sizeof(struct d9__table_entry))

static void free_task(struct d9__traced_task *task)
{
	d9__stall_unref(task->call.stall);
	free(task->stale);
	free(task);
}

void d9__tasks_release(struct d9__tasks *tasks)
{
	void *task;

	for (size_t place = 0; (place = d9__table_next(&tasks->table, place, &task));)
		free_task(task);
	d9__table_release(&tasks->table);
	if (tasks->others)
		free_task(tasks->others);
	tasks->others = NULL;
}

/* The task that stands for all beyond the budget.  It never ends, and is never forgotten. */
static struct d9__traced_task *others(struct d9__tasks *tasks)
{
	if (!tasks->others)
		tasks->others = calloc(1, sizeof(*tasks->others));
	if (tasks->others) {
		tasks->others->fd = -1;
		tasks->others->buried = true;
	}
	return tasks->others;
}

struct d9__traced_task *d9__tasks_at(struct d9__tasks *tasks, uint64_t id)
{
	struct d9__traced_task *task = d9__table_find(&tasks->table, id);

	if (task)
		return task;
	if (!d9__budget_take(D9__KEPT_TASKS, TASK_BYTES))
		return others(tasks);
	task = calloc(1, sizeof(*task));
	if (!task)
		return NULL;
	task->id = id;
	task->fd = -1;
	if (d9__table_add(&tasks->table, id, task)) {
		free(task);
		return NULL;
	}
	return task;
}

static void count_change(struct d9__tasks *tasks, uint64_t ns, int change)
{
	tasks->change += change;
	if (tasks->change > tasks->peak_change)
		tasks->peak_change = tasks->change;
	d9__growth_curve_set(&tasks->curve, ns, tasks->change);
}

/* Put the end of a task into the curve once something ran after it. */
static void note_end(const struct d9__tasks *tasks, struct d9__callback *callback, uint64_t ns)
{
	if (callback->end_epoch != tasks->epoch + 1) {
		if (callback->end_ns && callback->alive_curve)
			d9__growth_curve_set(callback->alive_curve, callback->end_ns, callback->alive);
		callback->end_epoch = tasks->epoch + 1;
		callback->ended_before = callback->ended;
		callback->alive_before = callback->alive;
	}
	callback->end_ns = ns;
	callback->ended++;
	callback->alive--;
}

int64_t d9__tasks_left(const struct d9__tasks *tasks, const struct d9__callback *callback,
		       uint64_t *ended)
{
	bool shut_down = callback->end_epoch == tasks->epoch + 1;

	*ended = shut_down ? callback->ended_before : callback->ended;
	return shut_down ? callback->alive_before : callback->alive;
}

static int count_spawn(struct d9__callback *callback, uint64_t ns)
{
	callback->alive++;
	callback->end_epoch = callback->end_ns = 0;
	if (callback->alive > callback->peak_alive)
		callback->peak_alive = callback->alive;
	if (!callback->alive_curve && callback->spawned >= CURVE_FROM) {
		callback->alive_curve = calloc(1, sizeof(*callback->alive_curve));
		if (!callback->alive_curve)
			return -ENOMEM;
	}
	if (callback->alive_curve)
		d9__growth_curve_set(callback->alive_curve, ns, callback->alive);
	return 0;
}

void d9__task_found(struct d9__tasks *tasks, struct d9__traced_task *task, uint64_t ns, bool instrumented)
{
	tasks->told_ns = ns;
	if (task->spawned || task->told || task->ended)
		return;
	task->told = true;
	task->uninstrumented = !instrumented;
	d9__task_seen(tasks, task);
	tasks->uninstrumented += !instrumented;
	task->callback->uninstrumented += !instrumented;
	if (++task->callback->alive > task->callback->peak_alive)
		task->callback->peak_alive = task->callback->alive;
}

/* |task| began while the recorder listed the tasks that live, and is counted when its own event comes. */
static void untell(struct d9__tasks *tasks, struct d9__traced_task *task)
{
	task->told = false;
	tasks->uninstrumented -= task->uninstrumented;
	task->callback->uninstrumented -= task->uninstrumented;
	task->callback->alive--;
}

int d9__task_spawn(struct d9__tasks *tasks, struct d9__traced_task *task, uint64_t ns, bool instrumented)
{
	if (task->spawned)
		return 0;
	/* Later than that it is told again because events were lost. */
	if (task->told && ns - tasks->told_ns > TELLING_NS)
		return 0;
	if (task->told)
		untell(tasks, task);
	task->spawned = true;
	task->spawned_ns = ns;
	task->uninstrumented = !instrumented;
	tasks->spawned++;
	if (task->seen && !task->ended)
		tasks->at_start--;
	tasks->uninstrumented += !instrumented;
	count_change(tasks, ns, 1);
	task->callback->spawned++;
	task->callback->uninstrumented += !instrumented;
	return count_spawn(task->callback, ns);
}

void d9__task_lived(const struct d9__traced_task *task, uint64_t first_ns, uint64_t ns)
{
	uint64_t from_ns = task->spawned ? task->spawned_ns : first_ns;

	if (task->callback && ns > from_ns)
		task->callback->lives_ns += ns - from_ns;
}

void d9__task_seen(struct d9__tasks *tasks, struct d9__traced_task *task)
{
	if (task->seen)
		return;
	task->seen = true;
	tasks->at_start += !task->spawned;
}

void d9__task_end(struct d9__tasks *tasks, struct d9__traced_task *task, uint64_t ns)
{
	d9__task_seen(tasks, task);
	task->ended = true;
	tasks->ended++;
	tasks->ended_unspawned += !task->spawned;
	count_change(tasks, ns, -1);
	if (task->spawned || task->told)
		note_end(tasks, task->callback, ns);
}

struct d9__traced_task *d9__task_bury(struct d9__tasks *tasks, struct d9__traced_task *task)
{
	struct d9__traced_task **grave, *old;

	if (!task->ended || task->pieces || task->buried)
		return NULL;
	grave = &tasks->graves[tasks->next_grave++ % D9__TASKS_GRAVES];
	old = *grave;
	*grave = task;
	task->buried = true;
	if (!old)
		return NULL;
	/* A task that runs once more comes back when its worker goes on. */
	old->buried = false;
	return old->pieces ? NULL : old;
}

void d9__task_forget(struct d9__tasks *tasks, struct d9__traced_task *task)
{
	d9__table_remove(&tasks->table, task->id);
	free_task(task);
	d9__budget_give(TASK_BYTES);
}

static int compare_ids(const void *left, const void *right)
{
	const struct d9__traced_task *a = *(struct d9__traced_task *const *)left, *b = *(struct d9__traced_task *const *)right;

	return (a->id > b->id) - (a->id < b->id);
}

int d9__tasks_each(const struct d9__tasks *tasks,
		   int (*done)(void *context, struct d9__traced_task *task), void *context)
{
	struct d9__traced_task **sorted = calloc(tasks->table.n + 1, sizeof(struct d9__traced_task *));
	size_t n = 0;
	void *task;
	int err = sorted ? 0 : -ENOMEM;

	for (size_t place = 0; !err && (place = d9__table_next(&tasks->table, place, &task));)
		sorted[n++] = task;
	if (n)
		qsort(sorted, n, sizeof(*sorted), compare_ids);
	for (size_t i = 0; !err && i < n; i++)
		err = done(context, sorted[i]);
	free(sorted);
	return err;
}
