/* SPDX-License-Identifier: Apache-2.0 */
/* Time order: the events of a trace by time. */

#pragma once

#include "read/reader_state.h"

/* Make the first pass.  Returns as d9_reader_next(). */
int d9__time_order_begin(struct d9_reader *reader);

/* The next event.  Returns as d9_reader_next(). */
int d9__time_order_next(struct d9_reader *reader, const struct d9_event **out);

void d9__time_order_release(struct d9_reader *reader);
