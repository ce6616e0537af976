/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scrub plan: scrub's treatment of each field, by the event's kind, the field's name, its type and
 * annotations.
 */

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "stage/redact_rules.h"

/* Return the treatment of |schema|'s events, for free(3); NULL: out of memory. */
struct d9__redact_plan *d9__scrub_plan(const struct d9_schema *schema);

/* True if readers understand |annotation|. */
bool d9__scrub_is_vocabulary(const struct d9__annotation_definition *annotation);

/* True if field |i| is one of the recorder's or of readers', so that its name tells nothing of the
 * program. */
bool d9__scrub_keeps_name(const struct d9_schema *schema, uint32_t i);
