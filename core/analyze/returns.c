/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "analyze/latency.h"
#include "analyze/returns.h"

/* Fewer tell nothing, nor do callbacks behind fewer than one in so many. */
#define RETURNS_MIN  10
#define RETURNS_PART 5

/* Sleeps are of one length if nine of ten are no shorter than this part of the median: a busy
 * machine makes some of them longer. */
#define REGULAR_PART 0.75

void d9__returns_release(struct d9__returns *returns)
{
	d9__histogram_release(&returns->sleeps);
}

void d9__returns_come(struct d9__returns *returns, uint64_t ns)
{
	returns->open = ns >= D9__RETURN_NS;
	returns->seen_found = returns->seen_late = false;
	returns->n += returns->open;
}

void d9__returns_call(struct d9__returns *returns, unsigned reason, uint64_t delay_ns)
{
	bool late = delay_ns != UINT64_MAX && delay_ns >= D9__RETURN_NS;

	if (!returns->open)
		return;
	/* When a descriptor was ready is not known, and all others tell. */
	if (reason != D9__WAKE_FD &&
	    ((reason != D9__WAKE_TIMER && reason != D9__WAKE_CROSS_THREAD) || !late))
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
