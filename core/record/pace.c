/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "record/pace.h"

void d9__pace_begin(struct d9__pace *pace, uint64_t now_ns)
{
	*pace = (struct d9__pace) { .period_ns = D9__PACE_TICK_NS, .active_ns = now_ns };
}

void d9__pace_events(struct d9__pace *pace, uint64_t now_ns, uint64_t events)
{
	if (events)
		pace->active_ns = now_ns;
}

bool d9__pace_active(const struct d9__pace *pace, uint64_t now_ns)
{
	return now_ns - pace->active_ns < D9__PACE_SILENCE_NS;
}

/* From a look to the next twice as long as before, |most_ns| in the end. */
static void slow_down(struct d9__pace *pace, uint64_t most_ns)
{
	pace->look_ns = 2 * pace->look_ns < most_ns ? 2 * pace->look_ns : most_ns;
}

void d9__pace_open_calls(struct d9__pace *pace, uint64_t age_ns, bool any)
{
	if (age_ns == UINT64_MAX)
		pace->look_ns = any ? D9__PACE_LOOK_NS : 0;
	else if (age_ns < D9__PACE_TICK_NS || !pace->look_ns)
		pace->look_ns = D9__PACE_LOOK_NS;
	else
		slow_down(pace, age_ns < D9__PACE_REST_NS ? D9__PACE_TICK_NS : D9__PACE_REST_NS);
}

/* Where segments live shorter, ticks come more often. */
static uint64_t usual_period(uint64_t rotation_ns)
{
	uint64_t period_ns = rotation_ns / 10;

	if (period_ns > D9__PACE_TICK_NS)
		return D9__PACE_TICK_NS;
	return period_ns > D9__PACE_LOOK_NS ? period_ns : D9__PACE_LOOK_NS;
}

void d9__pace_choose(struct d9__pace *pace, uint64_t now_ns, uint64_t rotation_ns)
{
	if (d9__pace_active(pace, now_ns))
		pace->period_ns = usual_period(rotation_ns);
	else if (pace->period_ns * 2 < D9__PACE_REST_NS)
		pace->period_ns *= 2;
	else
		pace->period_ns = D9__PACE_REST_NS;
}
