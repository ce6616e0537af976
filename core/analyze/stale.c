/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "analyze/stale.h"

/* Before its time: by so much, and by so large a part of what was asked for. */
#define EARLY_NS   D9__MS(1)
#define EARLY_PART 4

int d9__stale_armed(const struct d9__worker *worker, struct d9__task *timer, uint64_t ns,
		    uint64_t timeout_ns, uint64_t due_ns)
{
	const struct d9__piece *piece = &worker->piece;
	struct d9__callback *armer = piece->open ? piece->task->callback : NULL;
	uint64_t looked_ns = due_ns - timeout_ns;

	/* A look in the future, or before there was time, is damage. */
	if (!armer || due_ns <= timeout_ns || looked_ns >= ns)
		return 0;
	if (!armer->stale)
		armer->stale = calloc(1, sizeof(*armer->stale));
	if (!timer->stale)
		timer->stale = calloc(1, sizeof(*timer->stale));
	if (!armer->stale || !timer->stale)
		return -ENOMEM;
	armer->stale->armed++;
	*timer->stale = (struct d9__stale_timer){
		.armer = armer,
		.worker = worker,
		.armed_ns = ns,
		.timeout_ns = timeout_ns,
		.due_ns = due_ns,
		.own_ns = ns - (piece->start_ns > looked_ns ? piece->start_ns : looked_ns),
		.between = d9__worker_between(worker, looked_ns, ns),
	};
	return 0;
}

/* |stale| ran early by |early_ns|. */
static void count_early(const struct d9__stale_timer *stale, const struct d9__task *timer,
			uint64_t early_ns)
{
	struct d9__stale_timers *sum = stale->armer->stale;

	sum->early++;
	if (early_ns <= sum->early_ns)
		return;
	sum->early_ns = early_ns;
	sum->armed_ns = stale->armed_ns;
	sum->timeout_ns = stale->timeout_ns;
	sum->lag_ns = stale->armed_ns + stale->timeout_ns - stale->due_ns;
	sum->own_ns = stale->own_ns;
	sum->worker = stale->worker->id;
	sum->task = timer->id;
	sum->timer = timer->callback;
	sum->between = stale->between;
}

void d9__stale_ran(struct d9__task *timer, uint64_t due_ns, uint64_t ns)
{
	struct d9__stale_timer *stale = timer->stale;
	uint64_t asked_ns = stale->armed_ns + stale->timeout_ns;

	/* Another due time: it was armed again since, by a clock that went. */
	if (due_ns == stale->due_ns && asked_ns >= ns + EARLY_NS &&
	    EARLY_PART * (asked_ns - ns) >= stale->timeout_ns)
		count_early(stale, timer, asked_ns - ns);
	free(stale);
	timer->stale = NULL;
}
