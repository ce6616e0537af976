/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/budget.h"
#include "base/array.h"
#include "format/hash.h"
#include "symbol/answers.h"

#define FIRST_ANSWERS 1024

const char *d9__answers_text(struct d9__answers *answers, const char *text, size_t len)
{
	uint32_t number;

	answers->texts.kind = D9__KEPT_SYMBOLS;
	if (!text || !len || d9__texts_number(&answers->texts, text, len, &number))
		return NULL;
	return answers->texts.items[number];
}

static bool is_same(const struct d9__question *a, const struct d9__question *b)
{
	return a->address == b->address && a->space == b->space && a->role == b->role;
}

/* The place of |question|: its answer, or the free one where it belongs. */
static struct d9__answer *find_place(struct d9__answer *items, size_t max, uint64_t secret,
				     const struct d9__question *question)
{
	uint64_t key[] = { question->address, question->space, (uint64_t)question->role };
	size_t i = (size_t)d9__hash_bytes(secret, (const char *)key, sizeof(key)) & (max - 1);

	while (items[i].used && !is_same(&items[i].question, question))
		i = (i + 1) & (max - 1);
	return &items[i];
}

const struct d9__answer *d9__answers_find(const struct d9__answers *answers, const struct d9__question *question)
{
	const struct d9__answer *answer;

	if (!answers->max)
		return NULL;
	answer = find_place(answers->items, answers->max, answers->secret, question);
	return answer->used ? answer : NULL;
}

/* Keep at least a third of the table free. */
static bool grow_table(struct d9__answers *answers)
{
	size_t max = answers->max ? answers->max * 2 : FIRST_ANSWERS;
	struct d9__answer *items;

	if (answers->n * 3 < answers->max * 2)
		return true;
	if (!d9__budget_take(D9__KEPT_SYMBOLS, (max - answers->max) * sizeof(*items)))
		return false;
	items = calloc(max, sizeof(*items));
	if (!items)
		return false;
	if (!answers->max)
		answers->secret = d9__hash_secret();
	for (size_t i = 0; i < answers->max; i++)
		if (answers->items[i].used)
			*find_place(items, max, answers->secret, &answers->items[i].question) = answers->items[i];
	free(answers->items);
	answers->items = items;
	answers->max = max;
	return true;
}

static bool grow_frames(struct d9__answers *answers, size_t n)
{
	return d9__budget_take(D9__KEPT_SYMBOLS, 2 * n * sizeof(*answers->frames)) &&
	       d9__array_reserve(answers->frames, &answers->max_frames, answers->n_frames, n);
}

bool d9__answers_add(struct d9__answers *answers, const struct d9__question *question, const struct d9__symbol *frames,
		     size_t n)
{
	struct d9__answer *answer;

	if (!grow_table(answers) || !grow_frames(answers, n))
		return false;
	answer = find_place(answers->items, answers->max, answers->secret, question);
	*answer = (struct d9__answer){ .question = *question, .n = (uint32_t)n, .first = answers->n_frames, .used = true };
	if (n)
		memcpy(answers->frames + answers->n_frames, frames, n * sizeof(*frames));
	answers->n_frames += n;
	answers->n++;
	return true;
}

void d9__answers_release(struct d9__answers *answers)
{
	d9__texts_release(&answers->texts);
	free(answers->items);
	free(answers->frames);
	*answers = (struct d9__answers){ 0 };
}
