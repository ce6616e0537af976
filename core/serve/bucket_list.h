/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of a bucket: few questions. */

#pragma once

#include "serve/bucket_parts.h"

void d9__bucket_look(void *context, const struct d9__source_scope *scope, d9__source_ready *ready,
		     void *ready_context);

/* Send the requests that can be sent now; the next step of a wish if none is left. */
void d9__bucket_pump_lists(struct d9__bucket_source *source);
void d9__bucket_end_lists(struct d9__bucket_source *source);
void d9__bucket_free_lists(struct d9__bucket_source *source);
