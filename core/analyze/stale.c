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

/* Or a smaller part, of so much and more. */
#define LONG_EARLY_NS	(10 * D9__MS_NS)
#define LONG_EARLY_PART 10

int d9__stale_armed(struct d9__worker *worker, struct d9__traced_task *timer, uint64_t ns,
		    uint64_t timeout_ns, uint64_t due_ns)
{
	const struct d9__piece *piece = &worker->piece;
	struct d9__stale_timers **sum =
		piece->open ? &piece->task->callback->stale : &worker->stale;

	/* A look in the future, or before there was time, is damage. */
	if (due_ns <= timeout_ns || due_ns - timeout_ns >= ns)
		return 0;
	if (!*sum)
		*sum = calloc(1, sizeof(**sum));
	if (!timer->stale)
		timer->stale = calloc(1, sizeof(*timer->stale));
	if (!*sum || !timer->stale)
		return -ENOMEM;
	(*sum)->armed++;
	*timer->stale = (struct d9__stale_timer) {
		.sum = *sum,
		.between = !piece->open,
		.worker = worker,
		.armed_ns = ns,
		.timeout_ns = timeout_ns,
		.due_ns = due_ns,
	};
	return 0;
}

/* How old the loop's clock was. */
static uint64_t lag_of(const struct d9__stale_timer *stale)
{
	return stale->armed_ns + stale->timeout_ns - stale->due_ns;
}

/* Whether a clock that was old by |own_ns|, by the program's own doing, made it run before its
 * time. */
static bool is_early(const struct d9__stale_timer *stale, uint64_t own_ns)
{
	if (own_ns >= LONG_EARLY_NS && LONG_EARLY_PART * own_ns >= stale->timeout_ns)
		return true;
	return own_ns >= EARLY_NS &&
	       (EARLY_PART * own_ns >= stale->timeout_ns || own_ns >= D9__STALE_ALWAYS_NS);
}

static void count_early(const struct d9__stale_timer *stale, const struct d9__traced_task *timer,
			const struct d9__between *between)
{
	struct d9__stale_timers *sum = stale->sum;
	uint64_t lag_ns = lag_of(stale), own_ns = stale->between ? lag_ns : between->busy_ns;
	double score = (double)own_ns * (double)own_ns / (double)lag_ns;

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
		if (is_early(stale, stale->between ? lag_of(stale) : between.busy_ns))
			count_early(stale, timer, &between);
	}
	free(stale);
	timer->stale = NULL;
}
