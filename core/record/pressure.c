/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/time.h"
#include "record/pressure.h"

#define WINDOW_NS (D9__SECOND_NS / 2) /* a shorter one tells nothing */
#define TO_BEGIN  2
#define TO_END	  3

static bool decide(struct d9__pressure *pressure)
{
	if (pressure->mode != D9__PRESSURE_AUTO)
		pressure->on = pressure->mode == D9__PRESSURE_YES;
	return pressure->on;
}

/*
 * A tenth of the time in which it wanted a CPU, and a hundredth of all time: a thread that wakes up
 * ten times a second on an idle machine waits less than a millisecond.  Half as much is still
 * pressure once there is some.
 */
static bool is_much(const struct d9__pressure *pressure, uint64_t window_ns, uint64_t ran_ns,
		    uint64_t waited_ns)
{
	uint64_t half = pressure->on ? 2 : 1;

	return waited_ns * 10 * half > ran_ns + waited_ns && waited_ns * 100 * half > window_ns;
}

bool d9__pressure_judge(struct d9__pressure *pressure, uint64_t now_ns, uint64_t ran_ns,
			uint64_t waited_ns)
{
	const struct d9__pressure before = *pressure;
	/* Another thread took over. */
	bool anew = !before.at_ns || ran_ns < before.ran_ns || waited_ns < before.waited_ns;

	if (!anew && now_ns - before.at_ns < WINDOW_NS)
		return decide(pressure);
	pressure->at_ns = now_ns;
	pressure->ran_ns = ran_ns;
	pressure->waited_ns = waited_ns;
	if (anew)
		return decide(pressure);
	if (is_much(&before, now_ns - before.at_ns, ran_ns - before.ran_ns,
		    waited_ns - before.waited_ns) == before.on)
		pressure->n = 0;
	else
		pressure->n++;
	if (pressure->n >= (before.on ? TO_END : TO_BEGIN)) {
		pressure->on = !before.on;
		pressure->n = 0;
	}
	return decide(pressure);
}

bool d9__pressure_unknown(struct d9__pressure *pressure)
{
	pressure->on = false;
	return decide(pressure);
}
