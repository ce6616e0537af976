/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/stalls.h"
#include "analyze/timeline.h"

/* Different callbacks told apart in d9__worker_between(). */
#define BETWEEN_CALLBACKS 16

void d9__timeline_release(struct d9__timeline *timeline)
{
	for (size_t i = 0; i < timeline->n; i++) {
		struct d9__worker *worker = timeline->items[i];

		d9__histogram_release(&worker->calls);
		d9__histogram_release(&worker->waits);
		for (size_t j = 0; j < D9__WORKER_STALLS; j++)
			d9__stall_unref(worker->stalls[j]);
		free(worker);
	}
	free(timeline->items);
	d9__table_release(&timeline->by_id);
	timeline->n = 0;
	timeline->items = NULL;
}

static struct d9__worker *add_worker(struct d9__timeline *timeline, uint64_t id)
{
	struct d9__worker *worker = calloc(1, sizeof(*worker)), **items;

	items = realloc(timeline->items, (timeline->n + 1) * sizeof(*items));
	if (items)
		timeline->items = items;
	if (!worker || !items || d9__table_add(&timeline->by_id, id, worker)) {
		free(worker);
		return NULL;
	}
	worker->id = id;
	worker->number = (unsigned)timeline->n;
	timeline->items[timeline->n++] = worker;
	return worker;
}

struct d9__worker *d9__timeline_worker(struct d9__timeline *timeline, uint64_t id)
{
	struct d9__worker *worker = d9__table_find(&timeline->by_id, id);

	if (!worker && timeline->n == D9__WORKERS_MAX)
		return timeline->items[D9__WORKERS_MAX - 1];
	return worker ? worker : add_worker(timeline, id);
}

/* Inside a library's callback, the user's function if most of the time went there. */
static const struct d9__callback *named_by(const struct d9__piece *piece)
{
	const struct d9__callback *callback = piece->task->callback;

	if (callback->internal && piece->inner &&
	    2 * piece->inner_ns >= piece->end_ns - piece->start_ns)
		return piece->inner;
	return callback;
}

static int end_piece(struct d9__timeline *timeline, struct d9__worker *worker, uint64_t ns,
		     bool open_ended)
{
	struct d9__piece *piece = &worker->piece;
	size_t i = worker->n_recent++ % D9__WORKER_RECENT;

	piece->open = false;
	piece->task->running--;
	piece->open_ended = open_ended;
	piece->end_ns = ns;
	worker->open_ended += open_ended;
	worker->poll_ns += ns - piece->start_ns;
	worker->recent[i].start_ns = piece->start_ns;
	worker->recent[i].end_ns = ns;
	worker->recent[i].task = piece->task->id;
	worker->recent[i].taken_ns = 0;
	worker->recent[i].excused_ns = d9__natural_call(&worker->natural, ns - piece->start_ns);
	worker->recent[i].callback = named_by(piece);
	return timeline->on_piece ? timeline->on_piece(timeline->context, worker, piece) : 0;
}

int d9__timeline_close(struct d9__timeline *timeline, struct d9__worker *worker, uint64_t ns)
{
	return worker->piece.open ? end_piece(timeline, worker, ns, true) : 0;
}

int d9__timeline_poll_start(struct d9__timeline *timeline, struct d9__worker *worker, uint64_t ns,
			    struct d9__task *task, bool resumed, unsigned local_queue)
{
	int err = d9__timeline_close(timeline, worker, ns);

	if (worker->piece.task)
		worker->piece.task->pieces--;
	worker->piece = (struct d9__piece){
		.task = task, .start_ns = ns, .open = true, .resumed = resumed
	};
	task->running++;
	task->pieces++;
	worker->polls++;
	worker->resumptions += resumed;
	worker->local_sum += local_queue;
	if (local_queue > worker->local_max)
		worker->local_max = local_queue;
	return err;
}

int d9__timeline_poll_end(struct d9__timeline *timeline, struct d9__worker *worker, uint64_t ns)
{
	return worker->piece.open ? end_piece(timeline, worker, ns, false) : 0;
}

void d9__timeline_taken(struct d9__worker *worker, uint64_t task, uint64_t taken_ns)
{
	size_t at = (worker->n_recent - 1) % D9__WORKER_RECENT;
	uint64_t whole_ns;

	if (worker->n_recent == 0 || worker->recent[at].task != task)
		return;
	whole_ns = worker->recent[at].end_ns - worker->recent[at].start_ns;
	worker->recent[at].taken_ns = taken_ns < whole_ns ? taken_ns : whole_ns;
	worker->recent[at].excused_ns =
		d9__natural_taken(&worker->natural, whole_ns, worker->recent[at].excused_ns,
				  worker->recent[at].taken_ns);
}

/*
 * Of the |wall_ns| since the worker woke, what it was awake for.  A thread that left its loop, and slept
 * before it entered one again, spent most of it neither in callbacks nor on the CPU.
 */
static uint64_t awake_ns(const struct d9__worker *worker, uint64_t wall_ns, uint64_t used_ns)
{
	uint64_t inside_ns = worker->poll_ns - worker->unpark.poll_ns;

	if (!worker->cpu_seen || wall_ns < D9__MS(1) || 2 * inside_ns >= wall_ns || 2 * used_ns >= wall_ns)
		return wall_ns;
	return inside_ns > used_ns ? inside_ns : used_ns;
}

static void end_active(struct d9__worker *worker, uint64_t ns, uint64_t cpu_ns)
{
	uint64_t used_ns = cpu_ns > worker->unpark.cpu_ns ? cpu_ns - worker->unpark.cpu_ns : 0;
	uint64_t wall_ns = awake_ns(worker, ns - worker->unpark.ns, used_ns);
	double ratio = 1;

	if (wall_ns && used_ns < wall_ns)
		ratio = (double)used_ns / (double)wall_ns;
	worker->active_periods++;
	worker->active_ns += wall_ns;
	worker->cpu_ns += used_ns;
	worker->ratio_sum += ratio;
	worker->long_periods += wall_ns > D9__MS(1);
	worker->starved_periods += wall_ns > D9__MS(1) && ratio < 0.5;
	if (!worker->cpu_seen)
		return;
	for (size_t i = 0; i < D9__WORKER_STALLS; i++) {
		struct d9__stall *stall = worker->stalls[i];

		if (stall && !stall->cpu_known && stall->start_ns >= worker->unpark.ns)
			d9__stall_set_cpu(stall, wall_ns, used_ns);
	}
}

/* A worker id that goes on under another thread: what lies between belongs to neither. */
static bool is_handover(uint32_t a, uint32_t b)
{
	return a && b && a != b;
}

/* It is awake since its unpark: did callbacks keep it from looking at its descriptors? */
static void note_round(struct d9__worker *worker, uint64_t ns)
{
	uint64_t wall_ns = ns - worker->unpark.ns, calls = worker->polls - worker->unpark.polls;
	struct d9__between between;

	if (wall_ns < D9__LONG_ROUND_NS || wall_ns <= worker->round.ns || calls < D9__WORKER_RECENT / 4 ||
	    2 * (worker->poll_ns - worker->unpark.poll_ns) < wall_ns)
		return;
	between = d9__worker_between(worker, worker->unpark.ns, ns);
	/* Long calls, and what the kernel took, are told for themselves. */
	if (8 * between.longest_ns > wall_ns || 4 * between.taken_ns > between.busy_ns)
		return;
	worker->round.ns = wall_ns;
	worker->round.from_ns = worker->unpark.ns;
	worker->round.calls = calls;
	worker->round.between = between;
}

int d9__timeline_park(struct d9__timeline *timeline, struct d9__worker *worker, uint64_t ns,
		      uint64_t cpu_ns, uint32_t tid)
{
	int err = d9__timeline_close(timeline, worker, ns);

	worker->cpu_seen |= cpu_ns > 0;
	if (worker->unpark.valid && is_handover(worker->unpark.tid, tid)) {
		worker->handovers++;
	} else if (worker->unpark.valid) {
		note_round(worker, ns);
		end_active(worker, ns, cpu_ns);
	}
	worker->unpark.valid = false;
	worker->park.valid = true;
	worker->park.ns = ns;
	worker->park.tid = tid;
	if (tid)
		worker->tid = tid;
	return err;
}

static void add_wait(struct d9__worker *worker, uint64_t ns, uint64_t wait_ns)
{
	worker->wait_measured++;
	if (wait_ns == 0)
		return;
	if (wait_ns > worker->waits.max)
		worker->wait_max_at_ns = ns;
	worker->wait_sum_ns += wait_ns;
	worker->waits_over_100ns += wait_ns > 100;
	worker->waits_over_1ms += wait_ns > D9__MS(1);
}

int d9__timeline_unpark(struct d9__timeline *timeline, struct d9__worker *worker, uint64_t ns,
			uint64_t cpu_ns, uint64_t wait_ns, uint32_t tid)
{
	int err = 0;

	(void)timeline;
	worker->cpu_seen |= cpu_ns > 0;
	if (!worker->park.valid && !worker->unpark.valid && !worker->polls)
		worker->entered_ns = ns;
	if (worker->park.valid && is_handover(worker->park.tid, tid)) {
		worker->handovers++;
	} else if (worker->park.valid) {
		worker->parks++;
		worker->parked_ns += ns - worker->park.ns;
		d9__rounds_unpark(worker, ns, ns - worker->park.ns);
		d9__natural_round(&worker->natural, worker->park.ns, ns,
				  wait_ns != UINT64_MAX ? wait_ns : 0);
		worker->slept.from_ns = worker->park.ns;
		worker->slept.until_ns = ns;
		worker->slept.taken_ns = wait_ns == UINT64_MAX ? 0 : wait_ns;
		if (wait_ns != UINT64_MAX) {
			add_wait(worker, ns, wait_ns);
			err = wait_ns ? d9__histogram_add(&worker->waits, wait_ns) : 0;
		}
	}
	worker->park.valid = false;
	worker->unpark.valid = true;
	worker->unpark_before_ns = worker->unpark.ns;
	worker->unpark.ns = ns;
	worker->unpark.cpu_ns = cpu_ns;
	worker->unpark.poll_ns = worker->poll_ns;
	worker->unpark.polls = worker->polls;
	worker->unpark.tid = tid;
	if (tid)
		worker->tid = tid;
	return err;
}

void d9__timeline_finish(struct d9__timeline *timeline, uint64_t ns)
{
	for (size_t i = 0; i < timeline->n; i++) {
		struct d9__worker *worker = timeline->items[i];

		d9__rounds_finish(worker, ns);
		if (worker->unpark.valid && ns > worker->unpark.ns)
			note_round(worker, ns);
		if (!worker->park.valid)
			continue;
		worker->parks++;
		worker->parked_ns += ns > worker->park.ns ? ns - worker->park.ns : 0;
		worker->park.valid = false;
	}
}

double d9__worker_utilisation(const struct d9__worker *worker)
{
	uint64_t all_ns = worker->active_ns + worker->parked_ns;

	return all_ns ? (double)worker->active_ns / (double)all_ns : 0;
}

double d9__worker_cpu_ratio(const struct d9__worker *worker)
{
	if (!worker->cpu_seen || worker->active_periods == 0)
		return -1;
	return worker->ratio_sum / (double)worker->active_periods;
}

double d9__worker_on_cpu(const struct d9__worker *worker)
{
	if (!worker->cpu_seen || worker->active_ns == 0)
		return -1;
	/* The two clocks are not read in the same moment. */
	return worker->cpu_ns < worker->active_ns ? (double)worker->cpu_ns / (double)worker->active_ns : 1;
}

void d9__worker_add_stall(struct d9__worker *worker, struct d9__stall *stall)
{
	size_t i = worker->n_stalls++ % D9__WORKER_STALLS;

	d9__stall_unref(worker->stalls[i]);
	worker->stalls[i] = d9__stall_ref(stall);
}

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

/* Part of recent call |at| between two moments; false: none. */
/* What it took is taken to be spread evenly over the piece. */
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
		if (i == D9__WORKER_RECENT - 1 && worker->recent[at].start_ns > from_ns)
			out.covered_ns = to_ns - worker->recent[at].start_ns;
		if (votes == 0)
			out.one_task = worker->recent[at].task;
		votes += worker->recent[at].task == out.one_task ? 1 : UINT64_MAX;
		out.calls++;
		out.busy_ns += ns;
		out.taken_ns += taken_ns;
		out.natural_ns += ns > worker->recent[at].excused_ns
					  ? ns - worker->recent[at].excused_ns
					  : 0;
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
