/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass, so that pipes will do: stacks are kept as addresses, and named after the last event, when all modules and all
 * names of callbacks are known.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/budget.h"
#include "base/array.h"
#include "base/hash.h"
#include "export/profile.h"
#include "export/profile_select.h"
#include "read/known_text.h"
#include "read/stack_role.h"
#include "text/fail.h"
#include "tool/progress.h"
#include "tool/symbol_options.h"
#include "tool/trace_input.h"

/*
 * The bytes of a stack besides its addresses: itself, a place in the list and places in a table
 * that is half empty.
 */
#define STACK_BYTES (sizeof(struct d9__profile_stack) + 2 * sizeof(void *) + 3 * sizeof(struct d9__table_entry))

/* ---- samples ---- */

/* The fields in which two samples have to agree to be added up; compared by a keyed hash. */
struct content {
	uint64_t callback, worker, tid, span, weight, truncated;
	uint64_t addresses[D9__PROFILE_FRAMES];
};

static uint64_t hash_of(const struct d9__profile_stack *stack, const uint64_t *addresses)
{
	static struct content content;

	content.callback = (uint64_t)(uintptr_t)stack->callback;
	content.worker = (uint64_t)(uintptr_t)stack->worker;
	content.tid = stack->tid;
	content.span = (uint64_t)(uintptr_t)stack->span;
	content.weight = (uint64_t)(uintptr_t)stack->weight;
	content.truncated = stack->truncated;
	if (stack->n)
		memcpy(content.addresses, addresses, stack->n * sizeof(addresses[0]));
	return d9__hash_bytes(d9__hash_secret(), &content,
			      offsetof(struct content, addresses) + stack->n * sizeof(addresses[0]));
}

/* Keep |stack| with |addresses| under |hash|.  0, also if the budget does not allow it, or -ENOMEM. */
static int keep(struct d9__profile *profile, uint64_t hash, const struct d9__profile_stack *stack,
		const uint64_t *addresses)
{
	size_t bytes = stack->n * sizeof(addresses[0]);
	struct d9__profile_stack *kept;

	if (!d9__budget_take(D9__KEPT_STACKS, STACK_BYTES + bytes))
		return 0;
	kept = !d9__array_grow(profile->stacks, profile->n) ? NULL : malloc(sizeof(*kept) + bytes);
	if (!kept || d9__table_add(&profile->by_content, hash, kept)) {
		free(kept);
		return -ENOMEM;
	}
	*kept = *stack;
	if (bytes)
		memcpy(kept->addresses, addresses, bytes);
	profile->stacks[profile->n++] = kept;
	profile->samples += kept->samples;
	profile->latest = kept;
	return 0;
}

static int count(struct d9__profile *profile, const struct d9__profile_stack *stack, const uint64_t *addresses)
{
	uint64_t hash = hash_of(stack, addresses);
	struct d9__profile_stack *known = d9__table_find(&profile->by_content, hash);

	if (!known)
		return keep(profile, hash, stack, addresses);
	known->samples += stack->samples;
	known->taken += stack->taken;
	known->thread = known->thread ? known->thread : stack->thread;
	profile->samples += stack->samples;
	profile->latest = known;
	return 0;
}

/* True if |ns| lies in --from and --to, which count from the first event. */
static bool is_in_time(const struct d9__profile *profile, uint64_t ns)
{
	uint64_t after_ns = ns > profile->origin_ns ? ns - profile->origin_ns : 0;

	return after_ns >= profile->wanted.from_ns && after_ns <= profile->wanted.to_ns;
}

static bool is_of_worker(const struct d9__profile_filter *wanted, const struct d9__worker *worker)
{
	return !wanted->has_worker || (worker && worker->id == wanted->worker);
}

static bool is_in_span(const struct d9__profile *profile, const struct d9__profile_thread *thread)
{
	return !profile->wanted.span || d9__profile_spans_inside(&profile->spans, thread, profile->wanted.span);
}

static bool is_in_long_call(const struct d9__profile *profile, const struct d9__worker *worker, uint64_t ns)
{
	return !profile->wanted.min_ns || (worker && d9__long_calls_have(&profile->long_calls, worker->id, ns));
}

static struct d9__profile_thread thread_of(const struct d9__worker *worker, uint64_t tid)
{
	return (struct d9__profile_thread){ worker != NULL, worker ? worker->id : 0, tid };
}

/* Find the name of the thread of |event|; NULL: the trace has none. */
static int take_thread_name(struct d9__profile *profile, const struct d9_event *event, const char **name)
{
	struct d9_text text = d9__known_text(event, D9_CPU_SAMPLE_THREAD_NAME);
	uint32_t number;

	if (!text.len)
		return 0;
	if (d9__texts_number(&profile->threads, text.data, text.len, &number))
		return -ENOMEM;
	*name = profile->threads.items[number];
	return 0;
}

/* The latest sample was taken outside of callbacks. */
static int remember_beside(struct d9__profile *profile, uint64_t ns)
{
	if (!profile->beside)
		profile->beside = calloc(D9__BESIDE_SAMPLES, sizeof(*profile->beside));
	if (!profile->beside)
		return -ENOMEM;
	if (profile->latest)
		profile->beside[profile->n_beside++ % D9__BESIDE_SAMPLES] =
			(struct d9__profile_beside) { profile->latest, ns };
	return 0;
}

/* After the analysis took |event|, for that finds the callback. */
static int take_sample(struct d9__profile *profile, const struct d9_event *event)
{
	const struct d9_value *chain = d9_event_known(event, D9_CPU_SAMPLE_CALLCHAIN);
	const struct d9_value *cut = d9_event_known(event, D9_CPU_SAMPLE_TRUNCATED);
	struct d9__worker *worker = d9__analysis_sampled(&profile->analysis, event);
	struct d9__profile_thread thread = thread_of(worker, d9_event_known_u64(event, D9_CPU_SAMPLE_TID, 0));
	struct d9__profile_stack stack = {
		.worker = worker, .tid = thread.tid, .samples = 1, .taken = 1, .ns = event->timestamp_ns
	};
	const uint64_t *addresses = NULL;

	if ((d9_event_known_u64(event, D9_CPU_SAMPLE_SOURCE, 0) == 1) !=
	    (profile->wanted.kind == D9__PROFILE_KIND_OFF_CPU))
		return 0;
	profile->found++;
	profile->latest = NULL;
	profile->latest_ns = event->timestamp_ns;
	if (!is_in_time(profile, event->timestamp_ns) || !is_of_worker(&profile->wanted, worker) ||
	    !is_in_span(profile, &thread) || !is_in_long_call(profile, worker, event->timestamp_ns))
		return 0;
	stack.span = d9__profile_spans_innermost(&profile->spans, &thread);
	stack.truncated = cut && cut->present && cut->type == D9_FIELD_BOOL && cut->u.boolean;
	if (chain && chain->present && !chain->unresolved) {
		addresses = chain->u.stack.addresses;
		stack.n = chain->u.stack.n;
	}
	if (stack.n > D9__PROFILE_FRAMES) {
		stack.n = D9__PROFILE_FRAMES;
		stack.truncated = true;
	}
	stack.callback = worker ? d9__samples_callback(worker, event->timestamp_ns) : NULL;
	if (worker && profile->wanted.kind == D9__PROFILE_KIND_CPU)
		stack.weight = d9__samples_weight(worker, event->timestamp_ns);
	if (take_thread_name(profile, event, &stack.thread))
		return -ENOMEM;
	if (count(profile, &stack, addresses))
		return -ENOMEM;
	if (profile->latest && profile->wanted.kind == D9__PROFILE_KIND_OFF_CPU)
		d9__absence_counts_in(
			d9__samples_absence(&profile->analysis.samples, (uint32_t)thread.tid),
			&profile->latest->off_time);
	return worker && stack.weight == &worker->beside.weight
		       ? remember_beside(profile, event->timestamp_ns)
		       : 0;
}

/* The thread had left its loop for the time that |event|, a LoopOutsideEvent, tells: its samples of
 * then belong there. */
static int take_outside(struct d9__profile *profile, const struct d9_event *event)
{
	uint64_t from_ns = d9_event_known_u64(event, D9_LOOP_OUTSIDE_FROM_NS, 0);
	uint64_t to_ns = d9_event_known_u64(event, D9_LOOP_OUTSIDE_TO_NS, 0);
	uint64_t id = d9_event_known_u64(event, D9_LOOP_OUTSIDE_WORKER_ID, UINT64_MAX);
	size_t n = profile->n_beside < D9__BESIDE_SAMPLES ? profile->n_beside : D9__BESIDE_SAMPLES;
	int err = 0;

	for (size_t i = 1; i <= n && !err; i++) {
		struct d9__profile_beside *sample =
			&profile->beside[(profile->n_beside - i) % D9__BESIDE_SAMPLES];
		struct d9__profile_stack *stack = sample->stack, other;

		if (sample->ns < from_ns)
			return 0;
		if (!stack || stack->worker->id != id || sample->ns > to_ns)
			continue;
		other = *stack;
		other.weight = &stack->worker->between;
		other.samples = other.taken = 1;
		stack->samples--;
		stack->taken--;
		profile->samples--;
		sample->stack = NULL;
		err = count(profile, &other, stack->addresses);
	}
	return err;
}

/* ---- CPU time that no sample met ---- */

/* True if all time is wanted, and so what is of no moment is, too. */
static bool is_all_time(const struct d9__profile_filter *wanted)
{
	return !wanted->from_ns && wanted->to_ns == UINT64_MAX && !wanted->span && !wanted->min_ns;
}

/* The CPU time of the strata of which no sample was taken; |weight| is |callback|'s, else
 * |worker|'s. */
static int keep_lonely(struct d9__profile *profile, const struct d9__weight *weight,
		       const struct d9__callback *callback, const struct d9__worker *worker)
{
	struct d9__profile_stack stack = {
		.callback = callback, .worker = worker, .weight = weight, .lonely = true
	};

	return weight->lonely ? keep(profile, hash_of(&stack, NULL), &stack, NULL) : 0;
}

/* The one worker that ran |callback|; NULL: several did. */
static const struct d9__worker *only_worker(const struct d9__profile *profile,
					    const struct d9__callback *callback)
{
	const struct d9__timeline *timeline = &profile->analysis.timeline;
	const struct d9__worker *found = NULL;

	for (size_t i = 0; i < timeline->n; i++) {
		if (!d9__callback_ran_on(callback, timeline->items[i]->number))
			continue;
		if (found)
			return NULL;
		found = timeline->items[i];
	}
	return found;
}

/* After the analysis is finished. */
static int take_lonely(struct d9__profile *profile)
{
	const struct d9__analysis *a = &profile->analysis;
	int err = 0;

	if (!is_all_time(&profile->wanted) ||
	    profile->wanted.weight == D9__PROFILE_WEIGHT_SAMPLES || !a->samples.period_ns)
		return 0;
	for (size_t i = 0; i < a->callbacks.n && !err; i++) {
		const struct d9__worker *worker = only_worker(profile, a->callbacks.items[i]);

		if (is_of_worker(&profile->wanted, worker))
			err = keep_lonely(profile, &a->callbacks.items[i]->weight,
					  a->callbacks.items[i], worker);
	}
	for (size_t i = 0; i < a->timeline.n && !err; i++) {
		const struct d9__worker *worker = a->timeline.items[i];
		const struct d9__weight *const weights[] = { &worker->beside.weight,
							     &worker->between, &worker->waiting };

		for (size_t j = 0; j < 3 && !err && is_of_worker(&profile->wanted, worker); j++)
			err = keep_lonely(profile, weights[j], NULL, worker);
	}
	return err;
}

/* ---- allocations ---- */

static int take_alloc(struct d9__profile *profile, const struct d9_event *event)
{
	uint64_t tid = d9_event_known_u64(event, D9_ALLOC_TID, 0);
	struct d9__worker *worker = d9__samples_worker(&profile->analysis.samples, (uint32_t)tid);
	struct d9__profile_thread thread = thread_of(worker, tid);

	profile->found++;
	if (!is_in_time(profile, event->timestamp_ns) || !is_of_worker(&profile->wanted, worker) ||
	    !is_in_span(profile, &thread) || !is_in_long_call(profile, worker, event->timestamp_ns))
		return 0;
	profile->heap.rate = profile->analysis.heap.rate;
	return d9__analysis_alloc(&profile->analysis, event, &profile->heap);
}

static int take_heap(struct d9__profile *profile, const struct d9_event *event)
{
	if (event->kind == D9_EVENT_ALLOC)
		return take_alloc(profile, event);
	if (event->kind == D9_EVENT_FREE)
		d9__analysis_free(event, &profile->heap);
	return 0;
}

static uint64_t whole(double number)
{
	return number > 0 ? (uint64_t)(number + 0.5) : 0;
}

static int compare_stacks(const void *left, const void *right)
{
	const struct d9__heap_stack *a = *(const struct d9__heap_stack *const *)left;
	const struct d9__heap_stack *b = *(const struct d9__heap_stack *const *)right;

	return (a->number > b->number) - (a->number < b->number);
}

static int keep_heap_stack(struct d9__profile *profile, const struct d9__heap_stack *from)
{
	struct d9__profile_stack stack = { .callback = from->callback, .worker = from->worker, .ns = from->ns,
					   .n = from->n, .truncated = from->n == D9__HEAP_FRAMES };

	stack.heap = (struct d9__profile_heap){ whole(from->allocated.count), whole(from->allocated.bytes),
						whole(from->live.count), whole(from->live.bytes) };
	stack.samples = profile->wanted.kind == D9__PROFILE_KIND_LIVE ? stack.heap.live_bytes : stack.heap.alloc_bytes;
	return stack.samples ? keep(profile, hash_of(&stack, from->addresses), &stack, from->addresses) : 0;
}

/*
 * Turn the allocations' sums by stack into the profile's stacks, in the order of their first
 * samples.
 */
static int take_heap_stacks(struct d9__profile *profile)
{
	const struct d9__heap *heap = &profile->heap;
	const struct d9__heap_stack **sorted = calloc(heap->stacks.n + 1, sizeof(const struct d9__heap_stack *));
	int err = sorted ? 0 : -ENOMEM;
	size_t n = 0;
	void *item;

	for (size_t place = 0; sorted && (place = d9__table_next(&heap->stacks, place, &item));)
		sorted[n++] = item;
	if (n)
		qsort(sorted, n, sizeof(sorted[0]), compare_stacks);
	for (size_t i = 0; i < n && !err; i++)
		err = keep_heap_stack(profile, sorted[i]);
	free(sorted);
	return err;
}

/* ---- calls that blocked ---- */

/* The latest sample is the stack of a call that blocked; the analysis has added its length. */
static void take_duration(struct d9__profile *profile, const struct d9_event *event)
{
	struct d9__profile_stack *stack = profile->latest;

	if (profile->wanted.kind != D9__PROFILE_KIND_OFF_CPU || !stack || profile->latest_ns != event->timestamp_ns ||
	    !stack->worker || stack->worker->id != d9_event_known_u64(event, D9_BLOCKING_CALL_WORKER_ID, UINT64_MAX))
		return;
	profile->timed++;
	profile->latest = NULL;
}

/* ---- idle tasks ---- */

/* A wait is over, with |idle|'s stack. */
static void take_wait(void *context, uint64_t task_id, const struct d9__idle_stack *idle, uint64_t ns, double weight_ns)
{
	struct d9__profile *profile = context;
	const struct d9__traced_task *task = d9__table_find(&profile->analysis.tasks.table, task_id);
	struct d9__profile_stack stack = {
		.callback = task ? task->callback : NULL,
		.samples = (uint64_t)(weight_ns / 1000),
		.ns = ns,
		.truncated = idle->truncated,
		.n = idle->stack->n,
	};

	profile->found++;
	/* It is on no thread, in no span and in no call. */
	if (!profile->err && stack.samples && is_in_time(profile, ns) && !profile->wanted.has_worker && !profile->wanted.span &&
	    !profile->wanted.min_ns)
		profile->err = count(profile, &stack, idle->stack->addresses);
}

/* ---- the pass ---- */

static int take_event(struct d9__profile *profile, const struct d9_event *event)
{
	int err = profile->calls && event->kind == D9_EVENT_BLOCKING_CALL ? d9__profile_calls_take(profile, event) : 0;

	if (err)
		return err;
	if (profile->facts->unit == D9__PROFILE_BYTES)
		return take_heap(profile, event);
	if (profile->wanted.kind == D9__PROFILE_KIND_IDLE)
		return profile->err;
	if (event->kind == D9_EVENT_CPU_SAMPLE)
		return take_sample(profile, event);
	if (event->kind == D9_EVENT_LOOP_OUTSIDE)
		return take_outside(profile, event);
	if (event->kind == D9_EVENT_BLOCKING_CALL)
		take_duration(profile, event);
	return 0;
}

static int read_events(struct d9__profile *profile)
{
	struct d9__progress progress;
	const struct d9_event *event;
	int err = 0;

	profile->facts = &d9__profile_kinds[profile->wanted.kind];
	d9__progress_init(&progress);
	while (!err && (event = d9__traces_next(profile->reader, &progress, &err))) {
		/* That of a dump is older than what it is in. */
		if (!profile->origin_ns && event->has_timestamp && event->kind != D9_EVENT_TASK_DUMP)
			profile->origin_ns = event->timestamp_ns;
		err = d9__analysis_event(&profile->analysis, event);
		if (!err)
			err = d9__symbol_learn(profile->symbolizer, profile->reader, event);
		if (!err)
			err = d9__profile_spans_take(&profile->spans, event);
		if (!err)
			err = take_event(profile, event);
	}
	if (!err && profile->facts->unit == D9__PROFILE_BYTES)
		err = take_heap_stacks(profile);
	d9__progress_clear(&progress);
	d9__idle_finish(&profile->analysis.idle, d9__analysis_end_ns(&profile->analysis));
	return err ? err : profile->err;
}

/* ---- names ---- */

struct d9__units d9__profile_amount(const struct d9__profile *profile, uint64_t n)
{
	struct d9__units out;

	if (profile->facts->unit == D9__PROFILE_BYTES)
		return d9__units_bytes(n);
	if (profile->facts->unit == D9__PROFILE_MICROSECONDS)
		return d9__units_ns(1000 * n);
	if (profile->facts->unit == D9__PROFILE_NANOSECONDS)
		return d9__units_ns(n);
	snprintf(out.text, sizeof(out.text), "%.40s sample%s", d9__units_count(n).text, n == 1 ? "" : "s");
	return out;
}

void d9__profile_frames(struct d9__profile *profile, const struct d9__profile_stack *stack, size_t i,
			struct d9__frames *out)
{
	d9__symbolizer_resolve(profile->symbolizer, stack->addresses[i], stack->ns,
			       profile->facts->unit != D9__PROFILE_BYTES && d9__address_is_executing(stack->addresses, i)
				       ? D9__EXECUTING : D9__RETURN, out);
}

const char *d9__profile_lonely(const struct d9__profile_stack *stack, char *buf, size_t size)
{
	return stack->callback ? d9__callback_way(stack->callback, buf, size) : "[loop]";
}

/* ---- the command ---- */

static int name_all(struct d9__profile *profile, const char *command)
{
	const struct d9__namer namer = d9__symbol_namer(profile->symbolizer);
	int err;

	profile->period_ns = profile->analysis.samples.period_ns;
	/* It ends the calls that are still open, too, and weighs samples on the CPU. */
	if ((profile->whole || profile->calls || profile->wanted.kind == D9__PROFILE_KIND_CPU) &&
	    d9__analysis_finish(&profile->analysis, profile->reader))
		return d9__cmd_fail(command, "out of memory");
	if (profile->wanted.kind == D9__PROFILE_KIND_CPU && take_lonely(profile))
		return d9__cmd_fail(command, "out of memory");
	if (profile->calls && d9__profile_calls_finish(profile))
		return d9__cmd_fail(command, "out of memory");
	err = profile->whole ? d9__analysis_name(&profile->analysis, &namer)
			     : d9__analysis_name_callbacks(&profile->analysis, &namer);
	if (err)
		return d9__cmd_fail(command, "out of memory");
	return d9__profile_select(profile, command);
}

int d9__profile_read(struct d9__profile *profile, const char *command, char **paths)
{
	int err, status = d9__traces_open(command, paths, &profile->reader);

	if (status)
		return status;
	if (d9__processes_find(&profile->processes, profile->reader) || d9__symbol_open(&profile->symbolizer))
		return d9__cmd_fail(command, "out of memory");
	status = d9__traces_refuse_several(command, &profile->processes);
	if (!status && profile->wanted.min_ns)
		status = d9__long_calls_find(&profile->long_calls, profile->wanted.min_ns, command, paths, &profile->processes);
	if (status)
		return status;
	profile->analysis.processes = &profile->processes;
	if (profile->wanted.kind == D9__PROFILE_KIND_IDLE) {
		profile->analysis.idle.on_wait = take_wait;
		profile->analysis.idle.context = profile;
	}
	err = read_events(profile);
	if (err)
		return d9__traces_close(command, profile->reader, err);
	status = name_all(profile, command);
	/* Tell damage too: missing samples may be behind it. */
	if (status)
		d9__traces_close(command, profile->reader, 0);
	return status;
}

void d9__profile_share(const struct d9__profile *profile, char *buf, size_t size)
{
	double share = d9__analysis_sampled_share(&profile->analysis);

	buf[0] = '\0';
	if (profile->wanted.kind == D9__PROFILE_KIND_CPU && share >= 0 &&
	    share < D9__SAMPLED_ENOUGH)
		snprintf(buf, size, "samples cover %s of the process's CPU time",
			 d9__units_percent(share).text);
}

int d9__profile_close(struct d9__profile *profile, const char *command, int err)
{
	return d9__traces_close(command, profile->reader, err);
}

void d9__profile_release(struct d9__profile *profile)
{
	for (size_t i = 0; i < profile->n; i++)
		free(profile->stacks[i]);
	free(profile->stacks);
	free(profile->beside);
	d9__table_release(&profile->by_content);
	d9__heap_release(&profile->heap);
	d9__texts_release(&profile->threads);
	d9__profile_spans_release(&profile->spans);
	d9__long_calls_release(&profile->long_calls);
	d9__analysis_release(&profile->analysis);
	d9__symbolizer_close(profile->symbolizer);
	d9__processes_release(&profile->processes);
	d9_reader_free(profile->reader);
}
