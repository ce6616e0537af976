/* SPDX-License-Identifier: Apache-2.0 */
/* Noise: events that do not compress well, and what the recorder counts of them. */

#ifndef D9_TESTS_RECORD_NOISE_H
#define D9_TESTS_RECORD_NOISE_H

#include <time.h>

#include <dial9/event.h>

#include "core/record/scratch.h"

static const struct d9_field tick_fields[] = {
	{ "number", D9_FIELD_VARINT, NULL, NULL },
	{ "noise", D9_FIELD_U32, NULL, NULL },
};
static struct d9_event_type tick = D9_EVENT_TYPE("Tick", tick_fields);

/* |n| events that do not compress well. */
static inline void emit_ticks(uint64_t from, uint64_t n)
{
	uint32_t noise = (uint32_t)from * 2654435761u + 1;

	for (uint64_t i = 0; i < n; i++) {
		noise = noise * 1664525 + 1013904223;
		D9_EMIT(&tick, from + i, noise);
	}
}

static inline void sleep_ms(long ms)
{
	const struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

/* Wait until |done| says so, for at most ten seconds. */
static inline bool wait_until(bool (*done)(void))
{
	for (int i = 0; i < 5000; i++) {
		if (done())
			return true;
		sleep_ms(2);
	}
	return false;
}

static inline struct d9_counters counters(void)
{
	struct d9_counters c;

	d9_recorder_counters(d9_recorder_running(), &c, sizeof(c));
	return c;
}

/* Of a recorder that was stopped. */
static inline struct d9_counters counters_of(struct d9_recorder *recorder)
{
	struct d9_counters c;

	CU_ASSERT_EQUAL(d9_recorder_counters(recorder, &c, sizeof(c)), 0);
	return c;
}

static inline uint64_t all_lost(const struct d9_counters *c)
{
	uint64_t lost = 0;

	for (int i = 0; i < D9_LOSS_COUNT; i++)
		lost += c->lost[i];
	return lost;
}

#endif /* D9_TESTS_RECORD_NOISE_H */
