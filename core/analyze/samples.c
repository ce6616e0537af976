/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/budget.h"
#include "analyze/hot.h"
#include "analyze/hot_threads.h"
#include "analyze/samples.h"

#define ENTRY_BYTES (3 * sizeof(struct d9__table_entry)) /* a place in a table */

void d9__samples_release(struct d9__samples *samples)
{
	void *stack;

	for (size_t place = 0; (place = d9__table_next(&samples->stacks, place, &stack));) {
		free(((struct d9__stack *)stack)->names);
		free(stack);
	}
	d9__table_release(&samples->stacks);
	free(samples->others);
	free(samples->beside);
	d9__table_release(&samples->names);
	d9__table_release(&samples->workers_by_tid);
	d9__texts_release(&samples->texts);
	d9__hot_threads_release(&samples->threads);
}

int d9__samples_symbol(struct d9__samples *samples, uint64_t address, const char *name, size_t len)
{
	uint32_t number;

	samples->symbols++;
	if (d9__table_find(&samples->names, address) || !d9__budget_take(D9__KEPT_SYMBOLS, ENTRY_BYTES))
		return 0;
	if (d9__texts_number(&samples->texts, name, len, &number))
		return -ENOMEM;
	return d9__table_add(&samples->names, address, samples->texts.items[number]);
}

int d9__samples_thread(struct d9__samples *samples, struct d9__worker *worker, uint32_t tid)
{
	struct d9__worker *known = d9__table_find(&samples->workers_by_tid, tid);

	if (tid == 0 || known == worker)
		return 0;
	d9__table_remove(&samples->workers_by_tid, tid);
	return d9__table_add(&samples->workers_by_tid, tid, worker);
}

struct d9__worker *d9__samples_worker(const struct d9__samples *samples, uint32_t tid)
{
	return d9__table_find(&samples->workers_by_tid, tid);
}

static const char *name_of(const struct d9__samples *samples, uint64_t address)
{
	return d9__table_find(&samples->names, address);
}

/* Frames with a name count as their name, so that calls from several lines are one stack. */
static uint64_t hash_of(const struct d9__samples *samples, const uint64_t *addresses, size_t n)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < n; i++) {
		const char *name = name_of(samples, addresses[i]);
		uint64_t word = name ? (uint64_t)(uintptr_t)name : addresses[i];

		hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	return hash;
}

struct d9__stack *d9__samples_stack(struct d9__samples *samples, uint64_t ns, const uint64_t *addresses, size_t n)
{
	uint64_t hash = hash_of(samples, addresses, n);
	struct d9__stack *stack = d9__table_find(&samples->stacks, hash);

	if (stack)
		return stack;
	n = n < D9__STACK_FRAMES ? n : D9__STACK_FRAMES;
	if (!d9__budget_take(D9__KEPT_STACKS, sizeof(*stack) + n * sizeof(stack->addresses[0]) + ENTRY_BYTES)) {
		if (!samples->others)
			samples->others = calloc(1, sizeof(*samples->others));
		return samples->others;
	}
	stack = calloc(1, sizeof(*stack) + n * sizeof(stack->addresses[0]));
	if (!stack || d9__table_add(&samples->stacks, hash, stack)) {
		free(stack);
		return NULL;
	}
	stack->number = samples->stacks.n;
	stack->ns = ns;
	stack->leaf = n ? name_of(samples, addresses[0]) : NULL;
	stack->n = n;
	for (size_t i = 0; i < n; i++)
		stack->addresses[i] = addresses[i];
	return stack;
}

/* The poll that covers |ns|: the open one, or the last if it ended just then. */
static struct d9__piece *poll_at(struct d9__worker *worker, uint64_t ns)
{
	struct d9__piece *piece = &worker->piece;

	if (!piece->task || ns < piece->start_ns)
		return NULL;
	return piece->open || ns <= piece->end_ns ? piece : NULL;
}

/* The program's function that the library's callback has called, if one runs. */
static struct d9__callback *running_in(const struct d9__piece *piece)
{
	return piece->users.open ? piece->users.callback : piece->task->callback;
}

struct d9__callback *d9__samples_callback(struct d9__worker *worker, uint64_t ns)
{
	const struct d9__piece *piece = poll_at(worker, ns);

	return piece ? running_in(piece) : NULL;
}

struct d9__weight *d9__samples_weight(struct d9__worker *worker, uint64_t ns)
{
	const struct d9__piece *piece = poll_at(worker, ns);

	if (piece)
		return &running_in(piece)->weight;
	if (worker->unpark.valid)
		return &worker->beside.weight;
	return worker->park.valid ? &worker->waiting : NULL;
}

static int remember_beside(struct d9__samples *samples, const struct d9__beside_sample *sample)
{
	if (!samples->beside)
		samples->beside = calloc(D9__BESIDE_SAMPLES, sizeof(*samples->beside));
	if (!samples->beside)
		return -ENOMEM;
	samples->beside[samples->n_beside++ % D9__BESIDE_SAMPLES] = *sample;
	return 0;
}

void d9__samples_between(struct d9__samples *samples, struct d9__worker *worker, uint64_t from_ns,
			 uint64_t to_ns)
{
	size_t n = samples->n_beside < D9__BESIDE_SAMPLES ? samples->n_beside : D9__BESIDE_SAMPLES;

	for (size_t i = 1; i <= n; i++) {
		struct d9__beside_sample *sample =
			&samples->beside[(samples->n_beside - i) % D9__BESIDE_SAMPLES];

		if (sample->ns < from_ns)
			return;
		if (sample->worker != worker || sample->ns > to_ns)
			continue;
		sample->worker = NULL;
		worker->beside.weight.samples--;
		worker->between.samples++;
		d9__hot_threads_move(&samples->threads, sample->tid, sample->stack,
				     &worker->beside.weight, &worker->between);
	}
}

/* Count an off-CPU sample that was taken in a sleep which a BlockingCallEvent tells already. */
static void count_told(struct d9__samples *samples, struct d9__callback *callback)
{
	samples->off_told++;
	callback->off_told++;
}

void d9__samples_blocked(struct d9__samples *samples, struct d9__worker *worker, struct d9__callback *callback,
			 uint64_t until_ns)
{
	/* The recorder wrote the call's own stack as a sample right before it. */
	count_told(samples, callback);
	worker->off.told_until_ns = until_ns;
}

bool d9__samples_is_told(const struct d9__worker *worker, uint64_t ns)
{
	return ns <= worker->off.told_until_ns;
}

static void count_switch(struct d9__samples *samples, uint64_t ns)
{
	samples->switches++;
	if (samples->slices && ns <= samples->slice_ns + D9__SLICE_NS)
		return;
	samples->slices++;
	samples->slice_ns = ns;
}

/* A sample that was taken as the poll ended comes behind it, when its call has been added up. */
static void count_behind(const struct d9__piece *piece, bool off_cpu)
{
	struct d9__call *call = &piece->task->call;

	if (piece->open || !call->pieces)
		return;
	call->on_samples += !off_cpu;
	call->off_samples += off_cpu;
	call->users_on += !off_cpu && piece->users.open;
	call->users_off += off_cpu && piece->users.open;
}

/* Let the absence of |thread| count where the sample does, of a |callback| or outside (NULL). */
static void leave_cpu(struct d9__samples *samples, const struct d9__sampled *sampled,
		      struct d9__hot_thread *thread, struct d9__callback *callback)
{
	struct d9__absence *absence = &thread->absence;

	absence->is_told =
		sampled->worker && d9__samples_is_told(sampled->worker, absence->from_ns);
	absence->slice_ns = sampled->in_slice ? samples->slice_ns + D9__SLICE_NS : 0;
	d9__absence_counts_in(absence, &samples->off_time);
	if (callback)
		d9__absence_counts_in(absence, &callback->off_time);
	if (sampled->worker)
		sampled->worker->off.absence = absence;
}

struct d9__absence *d9__samples_absence(const struct d9__samples *samples, uint32_t tid)
{
	struct d9__hot_thread *thread = d9__table_find(&samples->threads, tid);

	return thread ? &thread->absence : NULL;
}

static int count_in_poll(struct d9__samples *samples, const struct d9__sampled *sampled,
			 uint64_t ns, struct d9__piece *piece, const struct d9__stack *stack)
{
	struct d9__worker *worker = sampled->worker;

	struct d9__callback *callback = running_in(piece);

	if (piece->open && ns >= piece->told_until_ns)
		piece->told_until_ns = ns + 1;
	samples->polls += piece->on_samples + piece->off_samples == 0;
	if (sampled->off_cpu) {
		samples->off_in_polls++;
		worker->polls_with_off += piece->off_samples++ == 0;
		piece->off_stack = stack;
		piece->users.off_samples += piece->users.open > 0;
		callback->off_samples++;
		callback->switches += sampled->in_slice;
		if (d9__samples_is_told(worker, worker->off.ns))
			count_told(samples, callback);
	} else {
		samples->on_in_polls++;
		worker->polls_with_on += piece->on_samples++ == 0;
		piece->users.on_samples += piece->users.open > 0;
		callback->on_samples++;
		d9__callback_time(callback, worker->number)->samples++;
	}
	count_behind(piece, sampled->off_cpu);
	return d9__hot_add(callback, stack, sampled->off_cpu);
}

int d9__samples_add(struct d9__samples *samples, const struct d9__sampled *sampled, uint64_t ns,
		    const uint64_t *addresses, size_t n)
{
	struct d9__worker *worker = sampled->worker;
	bool off_cpu = sampled->off_cpu;
	struct d9__stack *stack = d9__samples_stack(samples, ns, addresses, n);
	struct d9__piece *piece = worker ? poll_at(worker, ns) : NULL;
	struct d9__weight *weight = worker && !off_cpu ? d9__samples_weight(worker, ns) : NULL;
	struct d9__hot_thread *thread;

	if (worker)
		d9__samples_sign(worker, ns);
	thread = stack ? d9__hot_threads_add(&samples->threads, sampled, ns, stack, weight) : NULL;
	if (!thread)
		return -ENOMEM;
	if (weight)
		weight->samples++;
	if (weight && weight == &worker->beside.weight &&
	    remember_beside(samples,
			    &(struct d9__beside_sample) { worker, stack, ns, sampled->tid }))
		return -ENOMEM;
	if (sampled->in_slice)
		count_switch(samples, ns);
	if (off_cpu) {
		samples->off++;
		stack->off++;
		stack->off_in_polls += piece != NULL;
		leave_cpu(samples, sampled, thread, piece ? running_in(piece) : NULL);
	} else {
		samples->on++;
		samples->stacks_on += n > 0;
		samples->frames_on += n;
		samples->whole_on += sampled->is_whole;
		stack->on++;
	}
	if (!worker) {
		samples->off_worker++;
		return 0;
	}
	worker->on_samples += !off_cpu;
	worker->off_samples += off_cpu;
	worker->switches += sampled->in_slice;
	if (off_cpu) {
		worker->off.ns = ns;
		worker->off.stack = stack;
	}
	if (piece)
		return count_in_poll(samples, sampled, ns, piece, stack);
	/* A wait is asleep as it should be. */
	if (!worker->unpark.valid && (!worker->park.valid || off_cpu))
		return 0;
	if (!worker->unpark.valid) {
		worker->wait_samples++;
		worker->wait_sampled_ns = ns;
	}
	return d9__hot_add(&worker->beside, stack, off_cpu);
}

const struct d9__stack *d9__samples_top_off(const struct d9__samples *samples)
{
	const struct d9__stack *top = NULL;
	void *item;

	for (size_t place = 0; (place = d9__table_next(&samples->stacks, place, &item));) {
		const struct d9__stack *stack = item;

		if (stack->off && (!top || stack->off > top->off ||
				   (stack->off == top->off && stack->number < top->number)))
			top = stack;
	}
	return top;
}
