/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "record/pace.h"

/* One wake-up of a loop is some so many events. */
#define EVENTS_PER_WAKE_UP 5

#define LOOKS                                                                                      \
	(D9__PACE_CALM_NS / D9__PACE_BRISK_NS) /* while one decides whether to go on with it */

void d9__pace_begin(struct d9__pace *pace, uint64_t now_ns)
{
	*pace = (struct d9__pace) { .period_ns = D9__PACE_BRISK_NS,
				    .brisk = true,
				    .active_ns = now_ns,
				    .measured_ns = now_ns };
}

/* A wake-up in each of LOOKS is the sign to look that often; going on with it takes that every
 * other finds any. */
void d9__pace_look(struct d9__pace *pace, uint64_t now_ns, uint64_t events)
{
	bool measured = now_ns - pace->measured_ns >= D9__PACE_CALM_NS;

	if (events)
		pace->active_ns = now_ns;
	pace->measured_events += events;
	pace->busy_looks += events != 0;
	if (!pace->brisk)
		pace->brisk = pace->measured_events >= EVENTS_PER_WAKE_UP * LOOKS;
	else if (measured)
		pace->brisk = pace->busy_looks * 2 >= LOOKS;
	if (measured) {
		pace->measured_ns = now_ns;
		pace->measured_events = 0;
		pace->busy_looks = 0;
	}
}

void d9__pace_open_call(struct d9__pace *pace, uint64_t quiet_ns)
{
	if (quiet_ns == UINT64_MAX)
		pace->open_ns = 0;
	else if (quiet_ns < D9__PACE_CALM_NS || !pace->open_ns)
		pace->open_ns = D9__PACE_BRISK_NS;
	else if (pace->open_ns < D9__PACE_REST_NS / 2)
		pace->open_ns *= 2;
	else
		pace->open_ns = D9__PACE_REST_NS;
}

bool d9__pace_active(const struct d9__pace *pace, uint64_t now_ns)
{
	return now_ns - pace->active_ns < D9__PACE_SILENCE_NS;
}

/* Where segments live shorter, they are looked at more often. */
static uint64_t calm_period(uint64_t rotation_ns)
{
	uint64_t period_ns = rotation_ns / 10;

	if (period_ns > D9__PACE_CALM_NS)
		return D9__PACE_CALM_NS;
	return period_ns > D9__PACE_BRISK_NS ? period_ns : D9__PACE_BRISK_NS;
}

void d9__pace_choose(struct d9__pace *pace, uint64_t now_ns, bool worked, uint64_t rotation_ns)
{
	bool active = d9__pace_active(pace, now_ns);

	if (worked || (active && pace->brisk))
		pace->period_ns = D9__PACE_BRISK_NS;
	else if (active)
		pace->period_ns = calm_period(rotation_ns);
	else if (pace->period_ns * 2 < D9__PACE_REST_NS)
		pace->period_ns *= 2;
	else
		pace->period_ns = D9__PACE_REST_NS;
	if (pace->open_ns && pace->period_ns > pace->open_ns)
		pace->period_ns = pace->open_ns;
}
