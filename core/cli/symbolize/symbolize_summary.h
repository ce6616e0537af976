/* SPDX-License-Identifier: Apache-2.0 */
/* The summary of `dial9 symbolize`: how much it named, and what would name the rest. */

#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <dial9/reader.h>

#include "symbol/symbolizer.h"

/* Addresses; an address of several segments counts in each. */
struct d9__symbolize_counts {
	uint64_t all, named, placed; /* placed: with a file and line */
};

struct d9__symbolize_module {
	const char *name; /* the binary's own: that very pointer */
	struct d9__symbolize_counts counts;
};

/* All zero is empty. */
struct d9__symbolize_summary {
	struct d9__symbolize_counts counts;
	struct d9__symbolize_module *modules;
	size_t n_modules;
	size_t n_active, n_cut; /* segments that were left as they are */
};

/* The answer for an address of a segment.  0 or -ENOMEM. */
int d9__symbolize_summary_count(struct d9__symbolize_summary *summary, const struct d9__frames *frames);

/* Count the segment |info| as left out, because it is being written, cut or damaged. */
void d9__symbolize_summary_leave_out(struct d9__symbolize_summary *summary, const struct d9_segment_info *info);

/* Print it; |symbolizers| are those that gave the answers. */
void d9__symbolize_summary_print(const struct d9__symbolize_summary *summary,
				 struct d9__symbolizer *const *symbolizers, size_t n, FILE *out);

void d9__symbolize_summary_release(struct d9__symbolize_summary *summary);
