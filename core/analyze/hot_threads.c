/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/budget.h"
#include "analyze/hot.h"
#include "analyze/hot_threads.h"

#define ENTRY_BYTES (3 * sizeof(struct d9__table_entry)) /* a place in a table */

/* How often a thread had one stack in one stratum. */
struct stack_count {
	const struct d9__stack *stack;	 /* NULL: none was recorded */
	const struct d9__weight *weight; /* NULL: in none */
	struct d9__sample_counts counts;
};

static void add_to(struct d9__sample_counts *counts, const struct d9__sampled *sample)
{
	counts->on += !sample->off_cpu;
	counts->off += sample->off_cpu;
	counts->switches += sample->in_slice;
}

static struct d9__hot_thread *thread_of(struct d9__table *threads, uint32_t tid)
{
	struct d9__hot_thread *thread = d9__table_find(threads, tid);

	if (thread)
		return thread;
	thread = calloc(1, sizeof(*thread));
	if (!thread || d9__table_add(threads, tid, thread)) {
		free(thread);
		return NULL;
	}
	thread->tid = tid;
	thread->number = threads->n;
	return thread;
}

/* Samples without a stack are one, too. */
static uint64_t key_of(const struct d9__stack *stack, const struct d9__weight *weight)
{
	return ((uint64_t)(uintptr_t)weight * UINT64_C(0x9e3779b97f4a7c15)) ^
	       (stack && stack->n ? stack->number : 0);
}

/* NULL: |*err| is set, or the budget has no room for another. */
static struct stack_count *count_of(struct d9__hot_thread *thread, const struct d9__stack *stack,
				    const struct d9__weight *weight, int *err)
{
	uint64_t key = key_of(stack, weight);
	struct stack_count *count = d9__table_find(&thread->stacks, key);

	if (count || !d9__budget_take(D9__KEPT_STACKS, sizeof(*count) + ENTRY_BYTES))
		return count;
	count = calloc(1, sizeof(*count));
	if (!count || d9__table_add(&thread->stacks, key, count)) {
		free(count);
		*err = -ENOMEM;
		return NULL;
	}
	count->stack = stack && stack->n ? stack : NULL;
	count->weight = weight;
	return count;
}

struct d9__hot_thread *d9__hot_threads_add(struct d9__table *threads,
					   const struct d9__sampled *sample, uint64_t ns,
					   const struct d9__stack *stack,
					   const struct d9__weight *weight)
{
	struct d9__hot_thread *thread = thread_of(threads, sample->tid);
	struct d9__sample_counts *counts;
	struct stack_count *count;
	int err = 0;

	if (!thread)
		return NULL;
	d9__absence_end(&thread->absence, ns);
	if (sample->name_len)
		snprintf(thread->name, sizeof(thread->name), "%.*s",
			 (int)(sample->name_len < sizeof(thread->name) ? sample->name_len : sizeof(thread->name)),
			 sample->name);
	thread->worker = sample->worker;
	add_to(&thread->counts, sample);
	count = count_of(thread, stack, weight, &err);
	counts = count ? &count->counts : &thread->nowhere;
	add_to(counts, sample);
	if (sample->off_cpu) {
		thread->absence.from_ns = ns;
		d9__absence_counts_in(&thread->absence, &thread->counts.off_time);
		d9__absence_counts_in(&thread->absence, &counts->off_time);
	}
	return err ? NULL : thread;
}

void d9__hot_threads_move(struct d9__table *threads, uint32_t tid, const struct d9__stack *stack,
			  const struct d9__weight *from, const struct d9__weight *to)
{
	struct d9__hot_thread *thread = d9__table_find(threads, tid);
	struct stack_count *count = thread ? d9__table_find(&thread->stacks, key_of(stack, from))
					   : NULL,
			   *other;
	int err = 0;

	other = count && count->counts.on ? count_of(thread, stack, to, &err) : NULL;
	if (!other)
		return;
	count->counts.on--;
	other->counts.on++;
}

int d9__hot_threads_without_loop(const struct d9__table *threads, uint32_t tid,
				 struct d9__callback *place)
{
	const struct d9__hot_thread *thread = d9__table_find(threads, tid);
	void *item;
	int err = 0;

	for (size_t at = 0; thread && (at = d9__table_next(&thread->stacks, at, &item));) {
		const struct stack_count *count = item;

		if (count->weight || !count->stack)
			continue;
		for (uint64_t i = 0; i < count->counts.on && !err; i++)
			err = d9__hot_add(place, count->stack, false);
	}
	return err;
}

void d9__hot_threads_release(struct d9__table *threads)
{
	void *item, *count;

	for (size_t place = 0; (place = d9__table_next(threads, place, &item));) {
		struct d9__hot_thread *thread = item;

		for (size_t at = 0; (at = d9__table_next(&thread->stacks, at, &count));)
			free(count);
		d9__table_release(&thread->stacks);
		free(thread);
	}
	d9__table_release(threads);
}

static int compare_threads(const void *left, const void *right)
{
	const struct d9__hot_thread *a = *(struct d9__hot_thread *const *)left;
	const struct d9__hot_thread *b = *(struct d9__hot_thread *const *)right;

	if (a->counts.on != b->counts.on)
		return a->counts.on < b->counts.on ? 1 : -1;
	if (a->counts.off != b->counts.off)
		return a->counts.off < b->counts.off ? 1 : -1;
	return (a->number > b->number) - (a->number < b->number);
}

struct d9__hot_thread **d9__hot_threads_sorted(const struct d9__table *threads)
{
	struct d9__hot_thread **sorted = calloc(threads->n + 1, sizeof(struct d9__hot_thread *));
	size_t n = 0;
	void *item;

	if (!sorted)
		return NULL;
	for (size_t place = 0; (place = d9__table_next(threads, place, &item));)
		sorted[n++] = item;
	qsort(sorted, n, sizeof(struct d9__hot_thread *), compare_threads);
	return sorted;
}

/* ---- functions ---- */

static int compare_texts(const char *a, const char *b)
{
	if (!a || !b)
		return (b == NULL) - (a == NULL);
	return strcmp(a, b);
}

/* Threads count from 1; 0: none. */
static size_t number_of(const struct d9__hot_function *function)
{
	return function->thread ? function->thread->number : 0;
}

/* Places of one thread and function stand side by side. */
static int compare_places(const void *left, const void *right)
{
	const struct d9__hot_function *a = left, *b = right;
	int by_name;

	if (a->thread != b->thread)
		return number_of(a) < number_of(b) ? -1 : 1;
	if (a->callback != b->callback)
		return a->callback->number < b->callback->number ? -1 : 1;
	by_name = compare_texts(a->frame.function, b->frame.function);
	if (!by_name)
		by_name = compare_texts(a->frame.module, b->frame.module);
	return by_name ? by_name : compare_texts(a->inside, b->inside);
}

/* Of one place the line with most samples is first, and shown; among equals the one above. */
static int compare_lines(const void *left, const void *right)
{
	const struct d9__hot_function *a = left, *b = right;
	int by_place = compare_places(a, b);

	if (by_place)
		return by_place;
	if (a->n != b->n)
		return a->n < b->n ? 1 : -1;
	return (a->frame.line > b->frame.line) - (a->frame.line < b->frame.line);
}

static int compare_counts(const void *left, const void *right)
{
	const struct d9__hot_function *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns < b->ns ? 1 : -1;
	if (a->n != b->n)
		return a->n < b->n ? 1 : -1;
	return compare_places(a, b);
}

/* The innermost frame that is none of the kernel's: a thread that leaves the CPU is always in the scheduler. */
static size_t program_frame(const struct d9__stack *stack)
{
	for (size_t i = 0; i < stack->n; i++)
		if (!(stack->addresses[i] >> 63))
			return i;
	return 0;
}

/*
 * The innermost frame of another module than that of frame |leaf|, which mostly only makes the system call, and than
 * the recorder's, which has its hooks around some.
 */
static size_t asking_frame(const struct d9__stack *stack, size_t leaf)
{
	const char *module = stack->names[leaf].module;

	for (size_t i = leaf + 1; i < stack->n; i++)
		if (compare_texts(stack->names[i].module, module) && !d9__frame_is_ours(&stack->names[i]))
			return i;
	return leaf;
}

static void set_frame(struct d9__hot_function *function, const struct d9__stack *stack, bool off_cpu)
{
	size_t leaf = off_cpu ? program_frame(stack) : d9__hot_leaf(stack);
	size_t frame = off_cpu ? asking_frame(stack, leaf) : leaf;

	function->frame = stack->names[frame];
	if (frame != leaf && stack->names[leaf].known && !d9__frame_is_ours(&stack->names[leaf]))
		function->inside = stack->names[leaf].function;
	/* The addresses of a binary without symbols are as many as its instructions. */
	if (!function->frame.known)
		function->frame.function = NULL;
}

/* Which samples are asked for. */
struct wanted {
	bool off_cpu;
	double switch_share;
	uint64_t period_ns;
	const struct d9__callbacks *callbacks;
};

static uint64_t wanted_of(const struct wanted *wanted, const struct d9__sample_counts *counts)
{
	return wanted->off_cpu ? d9__samples_estimate(counts->off, counts->switches, wanted->switch_share) : counts->on;
}

static void set_time(struct d9__hot_function *function, const struct d9__sample_counts *counts,
		     const struct d9__weight *weight, const struct wanted *wanted)
{
	if (wanted->off_cpu)
		function->ns = d9__off_time_ns(&counts->off_time, wanted->switch_share);
	if (wanted->off_cpu || !wanted->period_ns)
		return;
	function->ns = d9__weight_ns(weight, function->n, wanted->period_ns);
	function->about_ns = !weight || weight->about || weight->few ? function->ns : 0;
}

static size_t add_thread(struct d9__hot_function *out, const struct d9__hot_thread *thread, const struct wanted *wanted)
{
	uint64_t nowhere = wanted_of(wanted, &thread->nowhere);
	size_t n = 0;
	void *item;

	for (size_t place = 0; (place = d9__table_next(&thread->stacks, place, &item));) {
		const struct stack_count *count = item;

		out[n] = (struct d9__hot_function){ .thread = thread, .n = wanted_of(wanted, &count->counts) };
		set_time(&out[n], &count->counts, count->weight, wanted);
		if (count->stack && count->stack->names)
			set_frame(&out[n], count->stack, wanted->off_cpu);
		n += out[n].n > 0;
	}
	if (!nowhere)
		return n;
	out[n] = (struct d9__hot_function) { .thread = thread, .n = nowhere };
	set_time(&out[n], &thread->nowhere, NULL, wanted);
	return n + 1;
}

/* Callbacks whose CPU time no sample met. */
static size_t add_lonely(struct d9__hot_function *out, const struct wanted *wanted)
{
	size_t n = 0;

	for (size_t i = 0; wanted->callbacks && wanted->period_ns && i < wanted->callbacks->n;
	     i++) {
		const struct d9__callback *callback = wanted->callbacks->items[i];

		if (callback->weight.lonely)
			out[n++] = (struct d9__hot_function) {
				.callback = callback,
				.ns = callback->weight.cpu_ns,
				.about_ns = callback->weight.about ? callback->weight.cpu_ns : 0
			};
	}
	return n;
}

/* Add up what is one function, of |n| that are sorted. */
static size_t merge(struct d9__hot_function *functions, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (kept && !compare_places(&functions[kept - 1], &functions[i])) {
			functions[kept - 1].n += functions[i].n;
			functions[kept - 1].ns += functions[i].ns;
			functions[kept - 1].about_ns += functions[i].about_ns;
		} else {
			functions[kept++] = functions[i];
		}
	}
	return kept;
}

static struct d9__hot_function *functions_of(const struct d9__table *threads, const struct wanted *wanted, size_t *n)
{
	struct d9__hot_function *functions;
	size_t max = 1 + (wanted->callbacks ? wanted->callbacks->n : 0);
	void *item;

	for (size_t place = 0; (place = d9__table_next(threads, place, &item));)
		max += ((struct d9__hot_thread *)item)->stacks.n + 1;
	functions = calloc(max, sizeof(*functions));
	*n = 0;
	if (!functions)
		return NULL;
	for (size_t place = 0; (place = d9__table_next(threads, place, &item));)
		*n += add_thread(functions + *n, item, wanted);
	*n += add_lonely(functions + *n, wanted);
	qsort(functions, *n, sizeof(*functions), compare_lines);
	*n = merge(functions, *n);
	qsort(functions, *n, sizeof(*functions), compare_counts);
	return functions;
}

struct d9__hot_function *d9__hot_functions_on(const struct d9__table *threads,
					      const struct d9__callbacks *callbacks,
					      uint64_t period_ns, size_t *n)
{
	return functions_of(threads,
			    &(struct wanted) { .callbacks = callbacks, .period_ns = period_ns }, n);
}

struct d9__hot_function *d9__hot_functions_off(const struct d9__table *threads, double switch_share, size_t *n)
{
	return functions_of(threads, &(struct wanted){ .off_cpu = true, .switch_share = switch_share }, n);
}
