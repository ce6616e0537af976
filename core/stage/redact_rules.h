/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redact rules: globs for what must not leave.  A glob is held against three kinds of names, and *
 *is any text, dots included: of one that matches
 *
 *	TYPE			the event type is dropped,
 *	TYPE.FIELD		that field of its events is emptied,
 *	TYPE.FIELD.KEY		the pairs of that key are taken out of a field which is a map of
 *texts.
 */

#ifndef D9_STAGE_REDACT_RULES_H
#define D9_STAGE_REDACT_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/definition.h"

#define D9__REDACT_GLOBS_MAX 64

struct d9__redact_rules {
	const char *globs[D9__REDACT_GLOBS_MAX];
	uint64_t matched[D9__REDACT_GLOBS_MAX]; /* names, in all segments */
	size_t n;
	char *text; /* that they stand in */
};

enum d9__redact_field { D9__REDACT_LEAVE, D9__REDACT_EMPTY, D9__REDACT_KEYS };

/* What becomes of the events of a schema. */
struct d9__redact_plan {
	bool drop;
	uint8_t fields[]; /* enum d9__redact_field */
};

/* |text|: globs with commas between them.  0, -EINVAL for an empty one or too many, -ENOMEM. */
int d9__redact_rules_parse(struct d9__redact_rules *rules, const char *text);

/* For free(3); NULL: out of memory. */
struct d9__redact_plan *d9__redact_plan(struct d9__redact_rules *rules,
					const struct d9_schema *schema);

/* Whether the pair |key| of a field that is D9__REDACT_KEYS is taken out. */
bool d9__redact_key(struct d9__redact_rules *rules, const struct d9_schema *schema, uint32_t field,
		    const char *key, size_t len);

void d9__redact_rules_release(struct d9__redact_rules *rules);

#endif /* D9_STAGE_REDACT_RULES_H */
