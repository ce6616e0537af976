/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "analyze/latency.h"
#include "analyze/returns.h"

/* Fewer tell nothing, nor do callbacks behind fewer than one in so many. */
#define RETURNS_MIN  10
#define RETURNS_PART 5

/* Behind one that blocks for so long it is enough that callbacks waited once. */
#define LONG_NS (100 * D9__MS_NS)

/* Sleeps are of one length if nine of ten are no shorter than this part of the median: a busy
 * machine makes some of them longer. */
#define REGULAR_PART 0.75

void d9__returns_release(struct d9__returns *returns)
{
	d9__histogram_release(&returns->sleeps);
}

void d9__returns_come(struct d9__returns *returns, uint64_t ns, uint64_t held_ns)
{
	returns->held += held_ns != 0;
	returns->held_ns = held_ns;
	returns->open = ns >= D9__RETURN_NS;
	returns->seen_found = returns->seen_late = false;
	returns->n += returns->open;
}

/* When a descriptor was ready is not known, and all others tell. */
static bool has_waited(unsigned reason, uint64_t delay_ns, uint64_t least_ns)
{
	if (reason == D9__WAKE_FD)
		return true;
	return (reason == D9__WAKE_TIMER || reason == D9__WAKE_CROSS_THREAD) &&
	       delay_ns != UINT64_MAX && delay_ns >= least_ns;
}

static void call_behind_held(struct d9__returns *returns)
{
	returns->held_found++;
	if (returns->held_ns > returns->held_longest_ns)
		returns->held_longest_ns = returns->held_ns;
	returns->held_ns = 0;
}

void d9__returns_call(struct d9__returns *returns, unsigned reason, uint64_t delay_ns, bool looked)
{
	bool late = delay_ns != UINT64_MAX && delay_ns >= D9__RETURN_NS;

	/* It is an answer to what the program asked then, as a rule. */
	if (looked && reason == D9__WAKE_FD)
		return;
	if (returns->held_ns && has_waited(reason, delay_ns, D9__MS_NS))
		call_behind_held(returns);
	if (!returns->open || !has_waited(reason, delay_ns, D9__RETURN_NS))
		return;
	returns->calls++;
	returns->found += !returns->seen_found;
	returns->seen_found = true;
	late = late && reason != D9__WAKE_FD;
	returns->late += late && !returns->seen_late;
	returns->seen_late |= late;
}

void d9__returns_slept(struct d9__returns *returns)
{
	returns->open = false;
	returns->held_ns = 0;
}

int d9__returns_measure(struct d9__returns *returns, uint64_t n, uint64_t outside_ns,
			uint64_t asleep_ns, uint64_t longest_ns, uint64_t at_ns)
{
	uint64_t mean_ns = n ? asleep_ns / n : 0, others_ns = outside_ns - longest_ns;
	uint64_t ns = asleep_ns > others_ns + mean_ns ? asleep_ns - others_ns : mean_ns;

	int err = 0;

	if (mean_ns < D9__RETURN_NS)
		return 0;
	for (uint64_t i = 0; i < n && !err; i++)
		err = d9__histogram_add(&returns->sleeps, mean_ns);
	if (ns > returns->longest_ns) {
		returns->longest_ns = ns;
		returns->longest_at_ns = at_ns;
	}
	return err;
}

uint64_t d9__returns_mean_ns(const struct d9__returns *returns)
{
	return returns->sleeps.count ? returns->sleeps.sum / returns->sleeps.count : 0;
}

bool d9__returns_are_held(const struct d9__returns *returns)
{
	return returns->held_found && RETURNS_PART * returns->held_found >= returns->held &&
	       (returns->held_found >= RETURNS_MIN || returns->held_longest_ns >= LONG_NS);
}

static bool are_regular(const struct d9__returns *returns)
{
	return (double)d9__histogram_quantile(&returns->sleeps, 0.1) >=
	       REGULAR_PART * (double)d9__histogram_quantile(&returns->sleeps, 0.5);
}

bool d9__returns_are_late(const struct d9__returns *returns)
{
	if (returns->sleeps.count < RETURNS_MIN || returns->found < RETURNS_MIN ||
	    RETURNS_PART * returns->found < returns->n)
		return false;
	return are_regular(returns) ||
	       (returns->late >= RETURNS_MIN && RETURNS_PART * returns->late >= returns->n);
}
