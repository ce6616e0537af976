/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/budget.h"
#include "base/array.h"
#include "symbol/answers.h"

const char *d9__answers_text(struct d9__answers *answers, const char *text, size_t len)
{
	uint32_t number;

	answers->texts.kind = D9__KEPT_SYMBOLS;
	if (!text || !len || d9__texts_number(&answers->texts, text, len, &number))
		return NULL;
	return answers->texts.items[number];
}

static const char *key_of(const struct d9__question *question, uint64_t key[3])
{
	key[0] = question->address;
	key[1] = question->space;
	key[2] = (uint64_t)question->role;
	return (const char *)key;
}

const struct d9__answer *d9__answers_find(const struct d9__answers *answers, const struct d9__question *question)
{
	uint64_t key[3];
	uint32_t number;

	if (!d9__texts_find(&answers->keys, key_of(question, key), sizeof(key), &number) ||
	    number >= answers->n)
		return NULL;
	return answers->items[number].used ? &answers->items[number] : NULL;
}

static bool grow_frames(struct d9__answers *answers, size_t n)
{
	return d9__budget_take(D9__KEPT_SYMBOLS, 2 * n * sizeof(*answers->frames)) &&
	       d9__array_reserve(answers->frames, &answers->max_frames, answers->n_frames, n);
}

bool d9__answers_add(struct d9__answers *answers, const struct d9__question *question, const struct d9__symbol *frames,
		     size_t n)
{
	uint64_t key[3];
	uint32_t number;

	answers->keys.kind = D9__KEPT_SYMBOLS;
	answers->keys.each = 2 * sizeof(*answers->items);
	if (!grow_frames(answers, n) ||
	    d9__texts_number(&answers->keys, key_of(question, key), sizeof(key), &number) ||
	    (answers->keys.full && number == answers->keys.others_number) ||
	    !d9__array_reach(answers->items, &answers->n, number))
		return false;
	answers->items[number] = (struct d9__answer){
		.question = *question, .n = (uint32_t)n, .first = answers->n_frames, .used = true
	};
	if (n)
		memcpy(answers->frames + answers->n_frames, frames, n * sizeof(*frames));
	answers->n_frames += n;
	return true;
}

void d9__answers_release(struct d9__answers *answers)
{
	d9__texts_release(&answers->keys);
	d9__texts_release(&answers->texts);
	free(answers->items);
	free(answers->frames);
	*answers = (struct d9__answers){ 0 };
}
