/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes: a span's values as texts, the way the close event carries them. */

#pragma once

#include <stddef.h>
#include <stdint.h>

#include "span/span_events.h"

/* Bytes that d9__attributes_put() writes at most. */
size_t d9__attributes_bytes(const struct d9__span_state *span);

/*
 * Write a StringMap of the values that are numbers, bools and texts.  Returns the first byte behind.
 * Async-signal-safe.
 */
uint8_t *d9__attributes_put(uint8_t *p, const struct d9__span_state *span);

/* |value| with six digits or so; |buf| holds 32 bytes.  The length. */
size_t d9__attribute_f64(char *buf, double value);
