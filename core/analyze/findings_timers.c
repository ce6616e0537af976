/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of timers that run before their time. */
#include "config.h"

#include <stdio.h>

#include "analyze/findings.h"
#include "analyze/stale.h"
#include "analyze/units.h"

/* Told louder if so many ran early, and one in so many of the timer's runs. */
#define STALE_WARNING 3
#define STALE_PART    20

static enum d9__severity stale_severity(const struct d9__stale_timers *stale)
{
	if (STALE_PART * stale->early < stale->timer->lateness.count)
		return D9__INFO;
	if (stale->early_ns > D9__MS(50))
		return D9__CRITICAL;
	return stale->early >= STALE_WARNING ? D9__WARNING : D9__INFO;
}

/* "handle_request itself had run for 8.9 ms by then", and what ran before it. */
static void describe_lag(const struct d9__stale_timers *stale, const struct d9__callback *armer,
			 char *buf, size_t size)
{
	const struct d9__callback *most = stale->between.most;
	size_t len, armer_len;
	const char *armer_name = d9__callback_name(armer, &armer_len), *name;
	int used = 0;

	if (most && stale->between.most_ns > D9__MS(1)) {
		name = d9__callback_name(most, &len);
		used = snprintf(buf, size, "%.*s had run for %s since, in %s call%s, and ", (int)len,
				name, d9__units_ns(stale->between.most_ns).text,
				d9__units_count(stale->between.most_calls).text,
				stale->between.most_calls == 1 ? "" : "s");
	}
	if (used >= 0 && (size_t)used < size)
		snprintf(buf + used, size - (size_t)used, "%.*s itself had run for %s by then",
			 (int)armer_len, armer_name, d9__units_ns(stale->own_ns).text);
}

static void stale_clock(struct d9__findings *findings, const struct d9__callback *armer)
{
	const struct d9__stale_timers *stale = armer->stale;
	struct d9__finding *finding;
	size_t len, timer_len;
	const char *name = d9__callback_name(armer, &len);
	const char *timer = d9__callback_name(stale->timer, &timer_len);
	char lag[512];

	describe_lag(stale, armer, lag, sizeof(lag));
	finding = d9__finding_add(
		findings, stale_severity(stale), stale->early_ns,
		"The loop looks at the clock once a round, and timers count from then. Have it look "
		"again before the timer is set (event_base_update_cache_time()), set the timer "
		"before the work, or do the work in pieces.",
		"%.*s sets the timer %.*s by a clock that has stood still: it ran %s after it was set, "
		"and %s was asked for (%s of %s such timers ran early).",
		(int)len, name, (int)timer_len, timer,
		d9__units_ns(stale->timeout_ns - stale->early_ns).text,
		d9__units_ns(stale->timeout_ns).text, d9__units_count(stale->early).text,
		d9__units_count(stale->armed).text);
	d9__finding_set_name(findings, finding, name, len);
	d9__finding_add_evidence(findings, finding,
				 &(struct d9__evidence){ .at_ns = stale->armed_ns,
							 .has_worker = true,
							 .worker = stale->worker,
							 .task = stale->task,
							 .callback = armer },
				 "set when the loop had looked at the clock %s before: %s",
				 d9__units_ns(stale->lag_ns).text, lag);
	d9__finding_add_evidence(findings, finding, NULL,
				 "early: by a quarter of what was asked for and 1 ms; a warning if %d "
				 "did, and one in %d of the timer's runs",
				 STALE_WARNING, STALE_PART);
}

void d9__check_stale_clock(struct d9__findings *findings)
{
	const struct d9__callbacks *callbacks = &findings->analysis->callbacks;

	for (size_t i = 0; i < callbacks->n; i++)
		if (callbacks->items[i]->stale && callbacks->items[i]->stale->early)
			stale_clock(findings, callbacks->items[i]);
}
