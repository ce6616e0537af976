/* SPDX-License-Identifier: Apache-2.0 */
/* `dial9 info --json`; documented in dial9-info(1). */

#pragma once

#include <dial9/reader.h>

#include "cli/dump_list.h"
#include "cli/trace_facts.h"
#include "text/text.h"

/* Write an object that names what was left out because of the memory budget. */
void d9__left_out_json(struct d9__text_out *out);

void d9__info_json(struct d9__text_out *out, const struct d9_reader *reader,
		   const struct d9__trace_facts *facts, const struct d9__dump_list *dumps);

/* "2026-11-21T09:16:36.123456789Z".  Returns |buf|. */
#define D9__WALL_LEN 40
const char *d9__wall_text(uint64_t wall_ns, char buf[D9__WALL_LEN]);
