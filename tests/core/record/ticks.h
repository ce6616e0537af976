/* SPDX-License-Identifier: Apache-2.0 */
/* Ticks: events of one field, that count up. */

#ifndef D9_TESTS_RECORD_TICKS_H
#define D9_TESTS_RECORD_TICKS_H

#include <time.h>

#include <dial9/event.h>

static const struct d9_field tick_fields[] = {
	{ "number", D9_FIELD_VARINT, NULL, NULL },
};
static struct d9_event_type tick = D9_EVENT_TYPE("Tick", tick_fields);

static inline void emit_ticks(uint64_t from, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		D9_EMIT(&tick, from + i);
}

static inline void sleep_ms(long ms)
{
	const struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

#endif /* D9_TESTS_RECORD_TICKS_H */
