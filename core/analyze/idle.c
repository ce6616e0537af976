/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/budget.h"
#include "analyze/idle.h"

#define CHAINS_MAX 4 /* of one wait: a task of the original's may wait at several points */
#define FRAMES_SHOWN 8
#define ENTRY_BYTES (3 * sizeof(struct d9__table_entry))

/* A wait that no poll has ended yet. */
struct waiting {
	uint64_t ns, task;
	size_t n;
	struct d9__idle_stack *stacks[CHAINS_MAX];
};

static void free_all(struct d9__table *table)
{
	void *item;

	for (size_t place = 0; (place = d9__table_next(table, place, &item));)
		free(item);
	d9__table_release(table);
}

void d9__idle_release(struct d9__idle *idle)
{
	free_all(&idle->waiting);
	free_all(&idle->stacks);
	d9__samples_release(&idle->samples);
}

void d9__idle_set_mean(struct d9__idle *idle, const char *mean_ms)
{
	double ms = mean_ms ? strtod(mean_ms, NULL) : 0;

	if (ms > 0 && ms < 1e9)
		idle->mean_ns = ms * 1e6;
}

double d9__idle_weight(uint64_t length_ns, double mean_ns)
{
	return length_ns ? (double)length_ns / -expm1(-(double)length_ns / mean_ns) : mean_ns;
}

static struct d9__idle_stack *stack_of(struct d9__idle *idle, const struct d9__idle_dump *dump)
{
	const struct d9__stack *stack = d9__samples_stack(&idle->samples, dump->ns, dump->addresses, dump->n);
	struct d9__idle_stack *known = stack ? d9__table_find(&idle->stacks, stack->number) : NULL;

	if (!stack || known)
		return known;
	known = calloc(1, sizeof(*known));
	if (!known || d9__table_add(&idle->stacks, stack->number, known)) {
		free(known);
		return NULL;
	}
	known->stack = stack;
	known->truncated = dump->truncated || dump->n > stack->n;
	return known;
}

/* The wait of |task|, of which dumps come with the same time; beyond the budget none, and they are left out. */
static int waiting_of(struct d9__idle *idle, uint64_t task, struct waiting **out)
{
	*out = d9__table_find(&idle->waiting, task);
	if (*out || !d9__budget_take(D9__KEPT_TASKS, sizeof(**out) + ENTRY_BYTES))
		return 0;
	*out = calloc(1, sizeof(**out));
	if (!*out || d9__table_add(&idle->waiting, task, *out)) {
		free(*out);
		return -ENOMEM;
	}
	(*out)->task = task;
	return 0;
}

static void end_wait(struct d9__idle *idle, const struct waiting *waiting, uint64_t ns)
{
	uint64_t length_ns = ns > waiting->ns ? ns - waiting->ns : 0;
	double mean_ns = idle->mean_ns > 0 ? idle->mean_ns : D9__IDLE_MEAN_MS * 1e6;
	double weight = d9__idle_weight(length_ns, mean_ns);

	idle->idle_ns += weight;
	for (size_t i = 0; i < waiting->n; i++) {
		waiting->stacks[i]->idle_ns += weight;
		if (waiting->stacks[i]->longest_ns < length_ns)
			waiting->stacks[i]->longest_ns = length_ns;
		if (idle->on_wait)
			idle->on_wait(idle->context, waiting->task, waiting->stacks[i], waiting->ns, weight);
	}
}

int d9__idle_dumped(struct d9__idle *idle, const struct d9__idle_dump *dump)
{
	struct d9__idle_stack *stack = stack_of(idle, dump);
	struct waiting *waiting;

	idle->dumps++;
	if (!stack || waiting_of(idle, dump->task, &waiting))
		return -ENOMEM;
	if (!waiting)
		return 0;
	/* Armed again before it ran. */
	if (waiting->n && waiting->ns != dump->ns) {
		end_wait(idle, waiting, dump->ns);
		waiting->n = 0;
	}
	waiting->ns = dump->ns;
	if (waiting->n < CHAINS_MAX)
		waiting->stacks[waiting->n++] = stack;
	stack->dumps++;
	stack->kept += dump->kept;
	stack->tasks += stack->latest_task != dump->task;
	stack->latest_task = dump->task;
	return 0;
}

void d9__idle_end(struct d9__idle *idle, uint64_t task, uint64_t ns)
{
	struct waiting *waiting = idle->waiting.n ? d9__table_find(&idle->waiting, task) : NULL;

	if (!waiting)
		return;
	end_wait(idle, waiting, ns);
	d9__table_remove(&idle->waiting, task);
	d9__budget_give(sizeof(*waiting) + ENTRY_BYTES);
	free(waiting);
}

void d9__idle_finish(struct d9__idle *idle, uint64_t ns)
{
	void *item;

	for (size_t place = 0; (place = d9__table_next(&idle->waiting, place, &item));)
		end_wait(idle, item, ns);
	free_all(&idle->waiting);
}

/* Whether frame |i| is the loop's, or ours, which called the callback that armed the task. */
static bool is_below_callback(const struct d9__stack *stack, size_t i)
{
	const char *module = stack->names ? stack->names[i].module : NULL;

	return i && module && (module == stack->names[0].module || d9__frame_is_ours(&stack->names[i]));
}

static int put_frame(char *buf, size_t size, const struct d9__stack *stack, size_t i)
{
	const struct d9__frame_name *name = stack->names ? &stack->names[i] : NULL;
	const char *before = i ? " < " : "";

	if (!name)
		return snprintf(buf, size, "%s0x%" PRIx64, before, stack->addresses[i]);
	if (i == 1 && name->file && name->line)
		return snprintf(buf, size, "%s%s %s:%u", before, name->function, name->file, name->line);
	return snprintf(buf, size, "%s%s", before, name->function);
}

void d9__idle_describe(const struct d9__idle_stack *idle, char *buf, size_t size)
{
	const struct d9__stack *stack = idle->stack;
	size_t len = 0;

	snprintf(buf, size, "(no stack)");
	for (size_t i = 0; i < stack->n && i < FRAMES_SHOWN && len < size && !is_below_callback(stack, i); i++)
		len += (size_t)put_frame(buf + len, size - len, stack, i);
	if (len < size && idle->kept && idle->dumps - idle->kept <= idle->tasks)
		snprintf(buf + len, size - len, " (armed once)");
}

static int compare(const void *a, const void *b)
{
	const struct d9__idle_stack *x = *(const struct d9__idle_stack *const *)a;
	const struct d9__idle_stack *y = *(const struct d9__idle_stack *const *)b;

	if (x->idle_ns > y->idle_ns || x->idle_ns < y->idle_ns)
		return x->idle_ns > y->idle_ns ? -1 : 1;
	return x->stack->number < y->stack->number ? -1 : 1;
}

const struct d9__idle_stack **d9__idle_sorted(const struct d9__idle *idle, size_t *n)
{
	const struct d9__idle_stack **sorted = calloc(idle->stacks.n + 1, sizeof(*sorted));
	void *item;

	*n = 0;
	if (!sorted)
		return NULL;
	for (size_t place = 0; (place = d9__table_next(&idle->stacks, place, &item));)
		sorted[(*n)++] = item;
	qsort(sorted, *n, sizeof(*sorted), compare);
	return sorted;
}
