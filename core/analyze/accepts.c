/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/accepts.h"
#include "analyze/budget.h"
#include "analyze/samples.h"
#include "analyze/timeline.h"
#include "text/units.h"

#define RECENT_NS D9__SECOND_NS /* a queue that is told behind a wait grew before that */

void d9__accepts_release(struct d9__accepts *accepts)
{
	void *item;

	for (size_t place = 0; (place = d9__table_next(&accepts->queues, place, &item));)
		free(item);
	d9__table_release(&accepts->queues);
}

/* NULL with |*err| 0: there are more than may be kept. */
static struct d9__accept_queue *queue_of(struct d9__accepts *accepts, const struct d9__accept_sample *sample, int *err)
{
	struct d9__accept_queue *queue = d9__table_find(&accepts->queues, sample->cookie);
	bool v6 = memchr(sample->address, ':', sample->address_len) != NULL;

	*err = 0;
	if (queue || !d9__budget_take(D9__KEPT_TASKS, sizeof(*queue)))
		return queue;
	queue = calloc(1, sizeof(*queue));
	if (!queue || d9__table_add(&accepts->queues, sample->cookie, queue)) {
		free(queue);
		*err = -ENOMEM;
		return NULL;
	}
	queue->cookie = sample->cookie;
	queue->number = accepts->queues.n;
	snprintf(queue->name, sizeof(queue->name), "%s%.*s%s:%u", v6 ? "[" : "",
		 (int)(sample->address_len < 64 ? sample->address_len : 64), sample->address, v6 ? "]" : "", sample->port);
	return queue;
}

/* Return how long |*callback| held |worker|'s loop at |ns|, or shortly before. */
static uint64_t held_by(struct d9__worker *worker, uint64_t ns, const struct d9__callback **callback)
{
	uint64_t longest_ns = 0;

	*callback = d9__samples_callback(worker, ns);
	if (*callback && worker->piece.open)
		return ns - worker->piece.start_ns;
	*callback = NULL;
	for (size_t i = 0; i < D9__WORKER_RECENT && i < worker->n_recent; i++) {
		uint64_t took_ns = worker->recent[i].end_ns - worker->recent[i].start_ns;

		if (worker->recent[i].end_ns + RECENT_NS < ns || took_ns <= longest_ns)
			continue;
		longest_ns = took_ns;
		*callback = worker->recent[i].callback;
	}
	return longest_ns;
}

int d9__accepts_add(struct d9__accepts *accepts, struct d9__worker *worker, const struct d9__accept_sample *sample)
{
	int err;
	struct d9__accept_queue *queue = queue_of(accepts, sample, &err);
	const struct d9__callback *callback = NULL;
	uint64_t held_ns;

	if (!queue)
		return err;
	queue->samples++;
	queue->waiting += sample->pending > 0;
	queue->full += sample->limit && sample->pending >= sample->limit;
	if (!sample->pending || sample->pending < queue->worst.pending)
		return 0;
	held_ns = worker ? held_by(worker, sample->ns, &callback) : 0;
	if (sample->pending == queue->worst.pending && held_ns <= queue->worst.held_ns)
		return 0;
	queue->worst.ns = sample->ns;
	queue->worst.pending = sample->pending;
	queue->worst.limit = sample->limit;
	queue->worst.has_worker = worker != NULL;
	queue->worst.worker = worker ? worker->id : 0;
	queue->worst.held_ns = held_ns;
	queue->worst.callback = callback;
	return 0;
}
