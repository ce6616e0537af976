/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "analyze/helpers.h"

/*
 * A thread that is there, or made, for the work and has no CPU yet makes it wait as well, and nothing runs meanwhile: that is
 * the machine's.  Who waits in a queue is taken by a thread whose run has just ended.
 */
void d9__helper_behind(struct d9__helper_runs *runs, struct d9__helper_run *run)
{
	uint64_t start_ns = run->at_ns - run->run_ns, from_ns = start_ns - run->wait_ns, left_ns = start_ns;
	uint64_t kept = runs->n < D9__HELPER_RUNS ? runs->n : D9__HELPER_RUNS;

	run->behind_ns = 0;
	for (uint64_t i = 1; i <= kept && left_ns > from_ns; i++) {
		size_t place = (size_t)((runs->n - i) % D9__HELPER_RUNS);
		uint64_t end_ns = runs->items[place].end_ns < left_ns ? runs->items[place].end_ns : left_ns;
		uint64_t since_ns = runs->items[place].start_ns > from_ns ? runs->items[place].start_ns : from_ns;

		if (end_ns <= since_ns)
			continue;
		run->behind_ns += end_ns - since_ns;
		left_ns = since_ns;
	}
	/* A run that is not kept any more came before. */
	if (runs->n > kept && left_ns > from_ns && left_ns < start_ns)
		run->behind_ns += left_ns - from_ns;
	runs->items[runs->n % D9__HELPER_RUNS].start_ns = start_ns;
	runs->items[runs->n % D9__HELPER_RUNS].end_ns = run->at_ns;
	runs->n++;
}

static void count_giver(struct d9__helper *helper, const struct d9__helper_run *run)
{
	struct d9__helper_giver *giver = NULL;

	for (size_t i = 0; i < helper->n_givers && !giver; i++)
		if (helper->givers[i].by == run->by)
			giver = &helper->givers[i];
	if (!run->by || (!giver && helper->n_givers == D9__HELPER_GIVERS))
		return;
	if (!giver)
		giver = &helper->givers[helper->n_givers++];
	giver->by = run->by;
	giver->runs++;
	giver->wait_ns += run->wait_ns;
	giver->run_ns += run->run_ns;
	giver->behind_ns += run->behind_ns;
	if (run->wait_ns >= giver->longest.wait_ns)
		giver->longest = *run;
	if (run->run_ns >= giver->slowest.run_ns)
		giver->slowest = *run;
}

int d9__helper_ran(struct d9__callback *callback, const struct d9__helper_run *run)
{
	struct d9__helper *helper = callback->helper;

	if (!helper)
		helper = callback->helper = calloc(1, sizeof(*helper));
	if (!helper)
		return -ENOMEM;
	count_giver(helper, run);
	helper->runs++;
	helper->wait_ns += run->wait_ns;
	helper->run_ns += run->run_ns;
	helper->behind_ns += run->behind_ns;
	if (run->wait_ns >= helper->longest.wait_ns)
		helper->longest = *run;
	if (run->run_ns >= helper->slowest.run_ns)
		helper->slowest = *run;
	return 0;
}
