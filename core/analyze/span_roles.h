/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Span roles: spans that one event tells, whose annotations say which field is the start, length
 * and name of a span.
 */

#pragma once

#include "analyze/spans.h"

/* Add the span that |event| tells whole; nothing if it tells none.  0 or -ENOMEM. */
int d9__span_whole(struct d9__spans *spans, const struct d9_event *event);
