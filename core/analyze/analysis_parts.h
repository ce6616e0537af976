/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of an analysis share. */

#ifndef D9_ANALYZE_ANALYSIS_PARTS_H
#define D9_ANALYZE_ANALYSIS_PARTS_H

#include "analyze/analysis.h"

/* analysis_calls.c: the timeline's on_piece(); |context| is the analysis. */
int d9__analysis_piece(void *context, struct d9__worker *worker, const struct d9__piece *piece);

/* The call of |task| is over: count it.  0 or -ENOMEM. */
int d9__analysis_finish_call(struct d9__analysis *a, struct d9__task *task);

/* analysis_events.c: take |event|, which has a time or needs none.  0 or -ENOMEM. */
int d9__analysis_dispatch(struct d9__analysis *a, const struct d9_event *event);

#endif /* D9_ANALYZE_ANALYSIS_PARTS_H */
