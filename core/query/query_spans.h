/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of spans. */

#pragma once

#include "query/query_events.h"

/* query_spans.c */
int d9__query_span(struct d9__query_process *process, const struct d9_event *event);
void d9__query_spans_finish(struct d9__query_process *process);
