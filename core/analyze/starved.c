/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "analyze/starved.h"

#include "analyze/tasks.h"

/* Fewer rounds are chance. */
#define ROUNDS 10

/* Longer queues are not told. */
#define QUEUE_MAX 255

/*
 * Whether some in the queue were never called: were they called in turns, as where a round is cut
 * short, there would be more tasks than the queue ever had besides them.
 */
static bool is_starving(const struct d9__starving *now)
{
	return now->rounds >= ROUNDS && now->most < QUEUE_MAX && now->least > 1 &&
	       now->tasks <= now->most - (now->least - 1);
}

static void keep_longest(struct d9__starved *starved)
{
	const struct d9__starving *now = &starved->now;

	if (!is_starving(now) || now->to_ns - now->from_ns <= starved->to_ns - starved->from_ns)
		return;
	starved->from_ns = now->from_ns;
	starved->to_ns = now->to_ns;
	starved->rounds = now->rounds;
	starved->calls = now->calls;
	starved->waiting = now->least - 1;
	starved->by = now->candidate;
}

/* The queue is longer than behind the call before: a new round. */
static void begin_round(struct d9__starved *starved, uint64_t ns)
{
	struct d9__starving *now = &starved->now;

	if (now->queue > 1) {
		now->rounds++;
		if (now->queue < now->least)
			now->least = now->queue;
		return;
	}
	keep_longest(starved);
	*now = (struct d9__starving) { .from_ns = ns, .least = QUEUE_MAX };
}

void d9__starved_call(struct d9__starved *starved, struct d9__traced_task *task, uint64_t ns,
		      unsigned queue)
{
	struct d9__starving *now = &starved->now;

	if (queue >= now->queue)
		begin_round(starved, ns);
	now->queue = queue;
	now->to_ns = ns;
	now->calls++;
	if (queue > now->most)
		now->most = queue;
	if (task->starving_ns != now->from_ns) {
		task->starving_ns = now->from_ns;
		now->tasks++;
	}
	if (!now->votes)
		now->candidate = task->callback;
	now->votes += now->candidate == task->callback ? 1 : (uint64_t)-1;
}

void d9__starved_finish(struct d9__starved *starved)
{
	keep_longest(starved);
}
