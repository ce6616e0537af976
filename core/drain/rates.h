/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rates: how many polls and wakes the threads of the program record.
 *
 * Threads count nothing: the flush thread reads what they write, while a trigger asks for it.  An
 * event counts in the tenth of a second of its own stamp, so that a count does not depend on when
 * the flush thread comes to read it.  Flush thread.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ring/chunk.h"

#define D9__RATES_STEP_NS UINT64_C(100000000)
#define D9__RATES_SECOND  10u /* steps */
#define D9__RATES_KEPT	  64u /* steps, the one that has begun included */

enum d9__rate { D9__RATE_POLLS, D9__RATE_WAKES, D9__RATES };

/* Count from now on, or do not any more. */
void d9__rates_switch(bool on);

/* |batch| is about to be written, and may be gone by the next look. */
void d9__rates_take(const struct d9__batch *batch);

/* Count all events that were published until now. */
void d9__rates_look(uint64_t now_ns);

/*
 * How many events were recorded in the second that ends where step |end| begins, by the threads
 * whose worker is |wanted|. |end| is at most D9__RATES_KEPT - D9__RATES_SECOND steps back.
 */
uint64_t d9__rates_second(enum d9__rate rate, uint64_t end,
			  bool (*wanted)(const void *arg, uint32_t worker), const void *arg);
