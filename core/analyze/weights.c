/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "analyze/weights.h"
#include "base/u64.h"

#define SITE_MARK " @ "

/* Readings that leave more than one part in so many of a time unexplained are completed by samples.
 */
#define UNKNOWN_PART 20

uint64_t d9__weight_ns(const struct d9__weight *weight, uint64_t n, uint64_t period_ns)
{
	return weight ? (uint64_t)(weight->sample_ns * (double)n + 0.5) : n * period_ns;
}

/* ---- pools ---- */

/* Strata whose samples stand for one time each. */
struct pool {
	uint64_t cpu_ns, samples;
};

static void add(struct pool *pool, const struct d9__weight *weight)
{
	pool->cpu_ns += weight->cpu_ns;
	pool->samples += weight->samples;
}

/* True if it cannot stand alone: it has too few samples, or no reading tells of its time. */
static bool is_small(const struct d9__weight *weight)
{
	return weight->samples < D9__SAMPLES_FEW || !weight->cpu_ns;
}

static void set(const struct pool *pool, struct d9__weight *weight)
{
	weight->few = pool->samples < D9__SAMPLES_FEW;
	weight->lonely = !pool->samples && weight->cpu_ns;
	weight->sample_ns = pool->samples ? (double)pool->cpu_ns / (double)pool->samples : 0;
}

/*
 * Set the weights of |n| strata of one function, or one loop.  The small ones are one pool, with
 * the largest beside them where that has too few samples, too.
 */
static void join(struct d9__weight *const *weights, size_t n)
{
	struct d9__weight *largest = NULL;
	struct pool pool = { 0, 0 };
	bool joins;

	for (size_t i = 0; i < n; i++) {
		if (is_small(weights[i]))
			add(&pool, weights[i]);
		else if (!largest || weights[i]->samples > largest->samples)
			largest = weights[i];
	}
	joins = largest && pool.samples < D9__SAMPLES_FEW && (pool.samples || pool.cpu_ns);
	if (joins)
		add(&pool, largest);
	for (size_t i = 0; i < n; i++) {
		const struct pool own = { weights[i]->cpu_ns, weights[i]->samples };

		set(is_small(weights[i]) || (joins && weights[i] == largest) ? &pool : &own,
		    weights[i]);
	}
}

/* ---- callbacks ---- */

/*
 * The CPU time of |callback|'s calls.  Where readings leave some of their time unexplained samples
 * complete it, as far as that goes.
 */
static void measure(struct d9__callback *callback, uint64_t period_ns)
{
	struct d9__parts parts = d9__time_parts_of(&callback->time, callback->durations.sum, 0, 0);
	struct d9__weight *weight = &callback->weight;
	uint64_t sampled_ns = weight->samples * period_ns;

	weight->cpu_ns = parts.on_cpu_ns;
	weight->about = 2 * callback->time.by_period_ns > parts.total_ns;
	if (UNKNOWN_PART * parts.unknown_ns <= parts.total_ns || sampled_ns <= weight->cpu_ns)
		return;
	weight->cpu_ns += d9__u64_min(sampled_ns - weight->cpu_ns, parts.unknown_ns);
	weight->about = true;
}

/* The function's half of a location: a function that is registered at several places is one. */
static size_t function_len(const struct d9__callback *callback)
{
	const char *mark = strstr(callback->location, SITE_MARK);

	return mark ? (size_t)(mark - callback->location) : strlen(callback->location);
}

static int compare(const void *left, const void *right)
{
	const struct d9__callback *a = *(struct d9__callback *const *)left;
	const struct d9__callback *b = *(struct d9__callback *const *)right;
	size_t a_len = function_len(a), b_len = function_len(b);
	int order = memcmp(a->location, b->location, d9__u64_min(a_len, b_len));

	if (order)
		return order;
	return a_len != b_len ? (a_len > b_len) - (a_len < b_len)
			      : (a->number > b->number) - (a->number < b->number);
}

static bool is_same(const struct d9__callback *a, const struct d9__callback *b)
{
	size_t len = function_len(a);

	return len == function_len(b) && !memcmp(a->location, b->location, len);
}

static int weigh_callbacks(struct d9__analysis *a)
{
	size_t n = a->callbacks.n;
	struct d9__callback **sorted = calloc(n + 1, sizeof(*sorted));
	struct d9__weight **weights = calloc(n + 1, sizeof(*weights));

	if (!sorted || !weights) {
		free(sorted);
		free(weights);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		sorted[i] = a->callbacks.items[i];
		measure(sorted[i], a->samples.period_ns);
	}
	qsort(sorted, n, sizeof(*sorted), compare);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i; end < n && is_same(sorted[i], sorted[end]); end++)
			weights[end] = &sorted[end]->weight;
		join(&weights[i], end - i);
	}
	free(sorted);
	free(weights);
	return 0;
}

/* ---- loops ---- */

/*
 * Divide |left_ns|, the CPU time of |worker|'s thread outside of callbacks, among its rounds and
 * the time between them.  Short times between rounds have no samples of their own: they count as
 * rounds.
 */
static void weigh_loop(struct d9__worker *worker, uint64_t left_ns, uint64_t period_ns)
{
	const struct d9__loop_time *time = &worker->loop_time;
	struct d9__weight *rounds = &worker->beside.weight;
	struct d9__weight *const weights[] = { rounds, &worker->between, &worker->waiting };

	if (worker->cpu_seen) {
		worker->between.cpu_ns =
			d9__u64_min(time->outside_ns - time->outside_short_ns, left_ns);
		rounds->cpu_ns = d9__u64_min(time->round_ns + time->outside_short_ns,
					     left_ns - worker->between.cpu_ns);
		worker->waiting.cpu_ns = time->wait_cpu_ns;
	}
	for (size_t i = 0; i < 3; i++) {
		if (!worker->cpu_seen)
			weights[i]->cpu_ns = weights[i]->samples * period_ns;
		weights[i]->about = true;
	}
	join(weights, 3);
}

int d9__weights_make(struct d9__analysis *a)
{
	uint64_t *used = calloc(a->timeline.n + 1, sizeof(*used));

	if (!used)
		return -ENOMEM;
	for (size_t i = 0; i < a->callbacks.n; i++) {
		const struct d9__callback *callback = a->callbacks.items[i];

		for (size_t j = 0; j < callback->n_on && j < a->timeline.n; j++)
			used[j] += callback->on[j] ? callback->on[j]->time.on_cpu_ns : 0;
	}
	for (size_t i = 0; i < a->timeline.n; i++) {
		struct d9__worker *worker = a->timeline.items[i];

		weigh_loop(worker, d9__u64_minus(worker->time.on_cpu_ns, used[worker->number]),
			   a->samples.period_ns);
	}
	free(used);
	return weigh_callbacks(a);
}
