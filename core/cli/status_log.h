/* SPDX-License-Identifier: Apache-2.0 */
/* Status log: the recorder's own log, read from a ring. */

#pragma once

#include <stdint.h>

#include "ring/note.h"
#include "text/text.h"
#include "watch/recorders.h"

/* Lines of each level, and how often they came. */
struct d9__log_counts {
	uint64_t lines[D9_LOG_INFO + 1];
};

/* "2 errors, 1 warning, 12 others"; "nothing" without any. */
void d9__status_log_counts_text(struct d9__text_out *out, const struct d9__log_counts *counts);

/* Read the log of |recorder| to |notes|; empty if that fails. */
void d9__status_log_read(const struct d9__recorder_seen *recorder, struct d9__notes *notes,
			 struct d9__log_counts *counts);

/* Every line that is there, oldest first. */
void d9__status_log_text(struct d9__text_out *out, const struct d9__recorder_seen *recorder);

/* One JSON object. */
void d9__status_log_json(struct d9__text_out *out, const struct d9__recorder_seen *recorder);
