/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "findings/hold.h"

#include "analyze/loop_time.h"
#include "analyze/stale.h"

/*
 * A stretch of D9__LONG_STRETCH_NS is long if it takes so many times as long as 99 of 100 of its
 * loop.
 */
#define LONG_TIMES 3

/* Waits behind it of so long in a minute, or in a shorter trace, are too much. */
#define BEHIND_NS (50 * D9__MS_NS)
#define MINUTE_NS (60 * D9__SECOND_NS)

/*
 * And one in so many of all that callbacks waited.  Of a loop at its limit each waits for its turn,
 * and one long call has many behind it, to whom it makes no odds.
 */
#define BEHIND_PART 200

/* So many long ones are no accident. */
#define OFTEN 3

/* And one in so many of a loop's calls that takes so small a part of its time may be one. */
#define ACCIDENT_CALLS 10000
#define ACCIDENT_PART  1000

/* It is a warning, and critical, from here on. */
#define WARNING_NS  (10 * D9__MS_NS)
#define CRITICAL_NS (50 * D9__MS_NS)

static bool is_unusual(const struct d9__hold *hold)
{
	return hold->worker && hold->ns >= D9__LONG_STRETCH_NS &&
	       hold->ns > LONG_TIMES * d9__histogram_quantile(&hold->worker->own_calls, 0.99);
}

/* Whether callbacks waited behind it for too long in all. */
static bool is_waited_for(const struct d9__findings *findings, uint64_t behind_ns)
{
	const struct d9__analysis *a = findings->analysis;
	uint64_t ns = a->loop_last_ns - a->loop_first_ns;

	if (ns < MINUTE_NS)
		ns = MINUTE_NS;
	return (double)behind_ns * MINUTE_NS >= (double)BEHIND_NS * (double)ns &&
	       (double)behind_ns * BEHIND_PART >= (double)a->latency.delays.sum;
}

/* Whether most long waits have other causes than long calls: the kernel, as a rule, or a queue. */
static bool have_others(const struct d9__latency *latency)
{
	uint64_t others = latency->behind_unfair + latency->behind_backlog +
			  latency->behind_several + latency->behind_kernel;

	return others > latency->behind_long;
}

/*
 * Whether the machine may have made the few long ones: a thread that runs for a minute meets a
 * pause that no counter of the kernel tells, and no program is the better for a warning about that.
 */
static bool is_accident(const struct d9__findings *findings, const struct d9__hold *hold)
{
	const struct d9__analysis *a = findings->analysis;

	return hold->worker && ACCIDENT_CALLS * hold->n <= hold->worker->own_calls.count &&
	       ACCIDENT_PART * hold->ns <= a->loop_last_ns - a->loop_first_ns;
}

uint64_t d9__hold_limit_ns(const struct d9__findings *findings, const struct d9__worker *worker,
			   const struct d9__callback *callback)
{
	uint64_t ns = d9__long_call_ns(worker);

	/* Timers that it sets too early are told, and are what waits for it. */
	if (callback->stale && callback->stale->early)
		return ns;
	return ns > D9__LONG_STRETCH_NS && is_waited_for(findings, callback->behind_ns)
		       ? D9__LONG_STRETCH_NS
		       : ns;
}

bool d9__hold_is_long(const struct d9__findings *findings, const struct d9__hold *hold)
{
	return is_unusual(hold) || hold->ns >= D9__HOLD_ALWAYS_NS ||
	       is_waited_for(findings, hold->behind_ns);
}

enum d9__severity d9__hold_severity(const struct d9__findings *findings,
				    const struct d9__hold *hold)
{
	if (hold->ns > CRITICAL_NS)
		return D9__CRITICAL;
	if (is_waited_for(findings, hold->behind_ns))
		return D9__WARNING;
	if (hold->ns > WARNING_NS)
		return is_accident(findings, hold) ? D9__INFO : D9__WARNING;
	return hold->n >= OFTEN && hold->waited && !have_others(&findings->analysis->latency)
		       ? D9__WARNING
		       : D9__INFO;
}
