/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of a bucket, fetched. */

#pragma once

#include "serve/bucket_parts.h"

void d9__bucket_fetch(void *context, const char *name, d9__source_ready *ready,
		      void *ready_context);
int d9__bucket_open(void *context, const char *name);
char *d9__bucket_path(void *context, const char *name);
void d9__bucket_pump_fetches(struct d9__bucket_source *source);
void d9__bucket_end_fetches(struct d9__bucket_source *source);
