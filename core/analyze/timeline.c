/* SPDX-License-Identifier: Apache-2.0 */
/* The workers of a timeline, and figures of each. */
#include "config.h"

#include <stdlib.h>

#include "analyze/hot.h"
#include "analyze/stalls.h"
#include "analyze/timeline.h"
#include "base/array.h"

void d9__timeline_release(struct d9__timeline *timeline)
{
	for (size_t i = 0; i < timeline->n; i++) {
		struct d9__worker *worker = timeline->items[i];

		d9__histogram_release(&worker->calls);
		d9__histogram_release(&worker->own_calls);
		d9__histogram_release(&worker->waits);
		d9__hot_free(worker->beside.hot);
		free(worker->stale);
		d9__returns_release(&worker->returns);
		d9__outside_calls_release(&worker->outside_calls);
		d9__time_period_release(&worker->period);
		d9__replay_release(&worker->replay);
		for (size_t j = 0; j < D9__WORKER_STALLS; j++)
			d9__stall_unref(worker->stalls[j]);
		free(worker);
	}
	free(timeline->items);
	d9__table_release(&timeline->by_id);
	timeline->n = 0;
	timeline->items = NULL;
	timeline->latest = NULL;
}

static struct d9__worker *add_worker(struct d9__timeline *timeline, uint64_t id)
{
	struct d9__worker *worker = calloc(1, sizeof(*worker));

	if (!worker || !d9__array_grow(timeline->items, timeline->n) ||
	    d9__table_add(&timeline->by_id, id, worker)) {
		free(worker);
		return NULL;
	}
	worker->id = id;
	worker->beside.location = "";
	worker->number = (unsigned)timeline->n;
	timeline->items[timeline->n++] = worker;
	return worker;
}

struct d9__worker *d9__timeline_worker(struct d9__timeline *timeline, uint64_t id)
{
	struct d9__worker *worker = timeline->latest;

	if (worker && worker->id == id)
		return worker;
	worker = d9__table_find(&timeline->by_id, id);
	if (!worker && timeline->n == D9__WORKERS_MAX)
		return timeline->items[D9__WORKERS_MAX - 1];
	return timeline->latest = worker ? worker : add_worker(timeline, id);
}

void d9__worker_add_stall(struct d9__worker *worker, struct d9__stall *stall)
{
	size_t i = worker->n_stalls++ % D9__WORKER_STALLS;

	d9__stall_unref(worker->stalls[i]);
	worker->stalls[i] = d9__stall_ref(stall);
}

uint64_t d9__worker_busy_ns(const struct d9__worker *worker)
{
	return worker->poll_ns + worker->nested_ns;
}

double d9__worker_busy(const struct d9__worker *worker)
{
	uint64_t all_ns = worker->active_ns + worker->parked_ns,
		 busy_ns = d9__worker_busy_ns(worker);

	return busy_ns < all_ns ? (double)busy_ns / (double)all_ns : all_ns ? 1 : 0;
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
	uint64_t all_ns = worker->active_ns + worker->parked_ns;

	if (!worker->cpu_seen || all_ns == 0)
		return -1;
	/* The two clocks are not read in the same moment. */
	return worker->cpu_ns < all_ns ? (double)worker->cpu_ns / (double)all_ns : 1;
}

bool d9__worker_was_missed(const struct d9__worker *worker)
{
	const struct d9__loop_time *time = &worker->loop_time;

	return time->outside_n &&
	       (time->outside_ns + time->outside_asleep_ns) / time->outside_n >= D9__FRAME_NS &&
	       d9__returns_are_late(&worker->returns);
}
