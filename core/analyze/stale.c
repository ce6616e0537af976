/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "analyze/stale.h"

/*
 * The time that callbacks ran themselves since the loop had looked at the clock counts, and not the
 * time that the kernel took meanwhile: so much, and so large a part of what was asked for, or very
 * much.
 */
#define EARLY_NS   (3 * D9__MS_NS)
#define EARLY_PART 4

int d9__stale_armed(const struct d9__worker *worker, struct d9__traced_task *timer, uint64_t ns,
		    uint64_t timeout_ns, uint64_t due_ns)
{
	const struct d9__piece *piece = &worker->piece;
	struct d9__callback *armer = piece->open ? piece->task->callback : NULL;

	/* A look in the future, or before there was time, is damage. */
	if (!armer || due_ns <= timeout_ns || due_ns - timeout_ns >= ns)
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
	};
	return 0;
}

static void count_early(const struct d9__stale_timer *stale, const struct d9__traced_task *timer,
			const struct d9__between *between)
{
	struct d9__stale_timers *sum = stale->armer->stale;
	uint64_t lag_ns = stale->armed_ns + stale->timeout_ns - stale->due_ns;
	double score = (double)between->busy_ns * (double)between->busy_ns / (double)lag_ns;

	sum->early++;
	if (score <= sum->score)
		return;
	sum->score = score;
	sum->lag_ns = lag_ns;
	sum->armed_ns = stale->armed_ns;
	sum->timeout_ns = stale->timeout_ns;
	sum->due_ns = stale->due_ns;
	sum->worker = stale->worker->id;
	sum->task = timer->id;
	sum->timer = timer->callback;
	sum->between = *between;
}

void d9__stale_ran(struct d9__traced_task *timer, uint64_t due_ns)
{
	struct d9__stale_timer *stale = timer->stale;
	struct d9__between between;

	/* Another due time: it was armed again since, by a clock that went. */
	if (due_ns == stale->due_ns) {
		between = d9__worker_between(stale->worker, due_ns - stale->timeout_ns,
					     stale->armed_ns);
		if (between.busy_ns >= EARLY_NS && (EARLY_PART * between.busy_ns >= stale->timeout_ns ||
						    between.busy_ns >= D9__STALE_ALWAYS_NS))
			count_early(stale, timer, &between);
	}
	free(stale);
	timer->stale = NULL;
}
