/* SPDX-License-Identifier: Apache-2.0 */

#pragma once

#include <dial9/reader.h>

#include "format/definition.h"

/* Numbers that are never below 0, and are kept as such. */
static inline bool d9__is_unsigned(enum d9_field_type type)
{
	return type == D9_FIELD_VARINT || (type >= D9_FIELD_U8 && type <= D9_FIELD_U32);
}

/* d9_event_known_u64() in line, for the fields that are asked for in most events. */
static inline uint64_t d9__known_u64(const struct d9_event *event, unsigned k, uint64_t fallback)
{
	const struct d9_value *value;

	if (event->schema->known[k] < 0)
		return fallback;
	value = &event->values[event->schema->known[k]];
	if (__builtin_expect(!value->present || !d9__is_unsigned(value->type), 0))
		return d9_event_known_u64(event, k, fallback);
	return value->u.u64;
}
