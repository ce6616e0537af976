/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that a worker ran between two moments. */
#include "config.h"

#include "analyze/timeline.h"

/* A task that became ready so long before or after its worker woke did so with that. */
#define ROUND_SLACK_NS D9__MS_NS

/* Different callbacks told apart in d9__worker_between(). */
#define BETWEEN_CALLBACKS 16

/* Sums per callback, as many as fit. */
struct sums {
	struct {
		const struct d9__callback *callback;
		uint64_t ns, calls;
	} items[BETWEEN_CALLBACKS];
	size_t n;
};

static void add_to_sums(struct sums *sums, const struct d9__callback *callback, uint64_t ns)
{
	size_t i = 0;

	while (i < sums->n && sums->items[i].callback != callback)
		i++;
	if (i == BETWEEN_CALLBACKS)
		return;
	if (i == sums->n) {
		sums->n++;
		sums->items[i].callback = callback;
		sums->items[i].ns = sums->items[i].calls = 0;
	}
	sums->items[i].ns += ns;
	sums->items[i].calls++;
}

/*
 * Part of recent call |at| between two moments; false: none.  What the kernel took is taken to be
 * spread evenly over it.
 */
static bool clip(const struct d9__worker *worker, size_t at, uint64_t from_ns, uint64_t to_ns,
		 uint64_t *ns, uint64_t *taken_ns)
{
	uint64_t start = worker->recent[at].start_ns, end = worker->recent[at].end_ns;
	uint64_t whole = end - start;

	if (start < from_ns)
		start = from_ns;
	if (end > to_ns)
		end = to_ns;
	if (start >= end)
		return false;
	*taken_ns = (uint64_t)((double)worker->recent[at].taken_ns * (double)(end - start) /
			       (double)whole);
	*ns = end - start - *taken_ns;
	return true;
}

/* Count the calls of |out->one_task|, which has most if any has. */
static void count_one(const struct d9__worker *worker, uint64_t from_ns, uint64_t to_ns,
		      struct d9__between *out)
{
	uint64_t n = worker->n_recent, ns, taken_ns;

	for (uint64_t i = 0; i < n && i < D9__WORKER_RECENT; i++) {
		size_t at = (n - 1 - i) % D9__WORKER_RECENT;

		if (worker->recent[at].end_ns <= from_ns)
			break;
		if (worker->recent[at].task != out->one_task ||
		    !clip(worker, at, from_ns, to_ns, &ns, &taken_ns))
			continue;
		out->one = worker->recent[at].callback;
		out->one_calls++;
		out->one_ns += ns;
	}
	if (2 * out->one_calls <= out->calls)
		out->one = NULL;
}

/* More calls than are remembered: if all of them ran since the worker woke, their sums are known
 * all the same. */
static void count_round(const struct d9__worker *worker, uint64_t from_ns, struct d9__between *out)
{
	uint64_t woke_ns = worker->unpark.ns;

	if (!worker->unpark.valid || from_ns + ROUND_SLACK_NS < woke_ns ||
	    woke_ns + ROUND_SLACK_NS < from_ns)
		return;
	out->round_calls = worker->polls - worker->unpark.polls;
	out->round_ns = d9__worker_busy_ns(worker) - worker->unpark.poll_ns;
}

struct d9__between d9__worker_between(const struct d9__worker *worker, uint64_t from_ns,
				      uint64_t to_ns)
{
	struct d9__between out = { .known = true, .covered_ns = to_ns - from_ns };
	struct sums sums = { .n = 0 };
	uint64_t n = worker->n_recent, votes = 0, ns, taken_ns;

	for (uint64_t i = 0; i < n && i < D9__WORKER_RECENT; i++) {
		size_t at = (n - 1 - i) % D9__WORKER_RECENT;

		if (worker->recent[at].end_ns <= from_ns)
			break;
		if (!clip(worker, at, from_ns, to_ns, &ns, &taken_ns))
			continue;
		if (i == D9__WORKER_RECENT - 1 && worker->recent[at].start_ns > from_ns) {
			out.covered_ns = to_ns - worker->recent[at].start_ns;
			count_round(worker, from_ns, &out);
		}
		if (votes == 0)
			out.one_task = worker->recent[at].task;
		votes += worker->recent[at].task == out.one_task ? 1 : UINT64_MAX;
		out.calls++;
		out.busy_ns += ns;
		out.taken_ns += taken_ns;
		out.natural_ns +=
			ns > worker->recent[at].excused_ns ? ns - worker->recent[at].excused_ns : 0;
		if (worker->recent[at].end_ns - worker->recent[at].start_ns >=
		    D9__SHORT_CALL_NS + worker->recent[at].taken_ns)
			out.long_ns += ns;
		add_to_sums(&sums, worker->recent[at].callback, ns);
		if (ns > out.longest_ns) {
			out.longest_ns = ns;
			out.longest = worker->recent[at].callback;
		}
	}
	out.covered_ns -= out.taken_ns < out.covered_ns ? out.taken_ns : out.covered_ns;
	count_one(worker, from_ns, to_ns, &out);
	for (size_t i = 0; i < sums.n; i++) {
		if (sums.items[i].ns <= out.most_ns)
			continue;
		out.most = sums.items[i].callback;
		out.most_ns = sums.items[i].ns;
		out.most_calls = sums.items[i].calls;
	}
	return out;
}
