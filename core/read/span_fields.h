/* SPDX-License-Identifier: Apache-2.0 */
/* Span fields, beyond <dial9/reader.h>. */

#pragma once

#include <stdint.h>

#include <dial9/reader.h>

/* Spans of which nothing is known, because those that were never closed take 64 MiB. */
uint64_t d9__span_fields_left_out(const struct d9_span_fields *fields);
