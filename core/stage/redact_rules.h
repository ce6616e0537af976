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

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/definition.h"

#define D9__REDACT_GLOBS_MAX 64

struct d9__scrub;

struct d9__redact_rules {
	struct d9__scrub *scrub; /* instead of globs (scrub.h); owned; NULL: none */
	const char *globs[D9__REDACT_GLOBS_MAX];
	uint64_t matched[D9__REDACT_GLOBS_MAX]; /* names, in all segments */
	size_t n;
	char *text; /* that they stand in */
};

enum d9__redact_field {
	D9__REDACT_LEAVE,
	D9__REDACT_EMPTY,
	D9__REDACT_KEYS,

	/* Scrub's own: the replacement of the value. */
	D9__SCRUB_ADDRESS, /* of a number or a stack */
	D9__SCRUB_MODULE_START,
	D9__SCRUB_MODULE_SIZE,
	D9__SCRUB_MODULE_PATH,
	D9__SCRUB_FUNCTION,
	D9__SCRUB_FILE,
	D9__SCRUB_PLACE, /* "CALLBACK @ SITE" */
	D9__SCRUB_WORD,	 /* of the recorder's own */
	D9__SCRUB_PAIRS, /* of metadata */
	D9__SCRUB_TEXT,	 /* and from here on: by the prefix of its number */
	D9__SCRUB_SPAN,
	D9__SCRUB_LOOP,
	D9__SCRUB_THREAD,
	D9__SCRUB_NAME,
	D9__SCRUB_TARGET,
	D9__SCRUB_TRIGGER,
};

/* The treatment of a schema's events. */
struct d9__redact_plan {
	bool drop;
	uint8_t fields[]; /* enum d9__redact_field */
};

/* Add the rules of scrub.  Returns 0 or -ENOMEM. */
int d9__redact_rules_scrub(struct d9__redact_rules *rules);

/* |text|: globs with commas between them.  0, -EINVAL for an empty one or too many, -ENOMEM. */
int d9__redact_rules_parse(struct d9__redact_rules *rules, const char *text);

/* Return the plan of |schema|, for free(3); NULL: out of memory. */
struct d9__redact_plan *d9__redact_plan(struct d9__redact_rules *rules,
					const struct d9_schema *schema);

/* True if the pair |key| of a field that is D9__REDACT_KEYS is taken out. */
bool d9__redact_key(struct d9__redact_rules *rules, const struct d9_schema *schema, uint32_t field,
		    const char *key, size_t len);

void d9__redact_rules_release(struct d9__redact_rules *rules);
