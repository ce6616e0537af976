/* SPDX-License-Identifier: Apache-2.0 */
/* The frames of addresses that were asked before, and the texts of all frames. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analyze/texts.h"
#include "symbol/symbol.h"

/* The question: |space| is a binary's number, or another number that nothing else has. */
struct d9__question {
	uint64_t address;
	uint32_t space;
	enum d9__address_role role;
};

struct d9__answer {
	struct d9__question question;
	uint32_t n; /* frames; 0: nothing is known */
	size_t first;
	bool used; /* false: the key is no question's, or memory was short */
};

/* All zero is empty.  Not thread-safe. */
struct d9__answers {
	struct d9__texts keys; /* of questions: item i answers key i */
	struct d9__answer *items;
	size_t n;
	struct d9__symbol *frames; /* of all */
	size_t n_frames, max_frames;
	struct d9__texts texts;
};

/* |text| as it is kept; NULL if it is NULL or empty, or memory is short. */
const char *d9__answers_text(struct d9__answers *answers, const char *text, size_t len);

/* The answer to |question|, or NULL.  Its frames are borrowed until the next d9__answers_add(). */
const struct d9__answer *d9__answers_find(const struct d9__answers *answers, const struct d9__question *question);

/*
 * Keep |n| frames, whose texts are kept ones, for |question|, which has no answer; false if memory or the budget do not
 * allow it.
 */
bool d9__answers_add(struct d9__answers *answers, const struct d9__question *question, const struct d9__symbol *frames,
		     size_t n);

void d9__answers_release(struct d9__answers *answers);
