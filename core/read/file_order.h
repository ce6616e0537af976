/* SPDX-License-Identifier: Apache-2.0 */
/* File order: the events of a trace as they were written. */

#pragma once

#include "read/reader_state.h"

/* The next event.  Returns as d9_reader_next(). */
int d9__file_order_next(struct d9_reader *reader, const struct d9_event **out);

void d9__file_order_release(struct d9_reader *reader);
