/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parse numbers, durations and sizes as people write them.  Pure.  False if |text| is not one, or overflows.
 *
 *	u64        decimal
 *	duration   a number and a unit: 250ms, 1.5s, 10us, 2m, 1h; without a unit, seconds
 *	bytes      a number and a unit: 64K, 10M, 1G (powers of 1024); without a unit, bytes
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

bool d9__parse_u64(const char *text, uint64_t *out);
bool d9__parse_duration_ns(const char *text, uint64_t *out_ns);
bool d9__parse_bytes(const char *text, uint64_t *out_bytes);
