/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "analyze/budget.h"
#include "analyze/spawn_texts.h"
#include "read/known_text.h"

static uint64_t key_of(uint32_t segment, uint32_t number)
{
	return (uint64_t)segment << 32 | number;
}

int d9__spawn_texts_learn(struct d9__spawn_texts *texts, const struct d9_event *event)
{
	struct d9_text stands, recorded;
	uint32_t from, to;

	if (event->kind != D9_EVENT_SYMBOL || event->timestamp_ns || d9_event_known_u64(event, D9_SYMBOL_ADDR, 0))
		return 0;
	stands = d9__known_text(event, D9_SYMBOL_NAME);
	recorded = d9__known_text(event, D9_SYMBOL_SOURCE_FILE);
	if (!stands.len || !recorded.len || !d9__budget_take(D9__KEPT_SYMBOLS, 3 * sizeof(struct d9__table_entry)))
		return 0;
	texts->texts.kind = D9__KEPT_SYMBOLS;
	if (d9__texts_number(&texts->texts, stands.data, stands.len, &from) ||
	    d9__texts_number(&texts->texts, recorded.data, recorded.len, &to))
		return -ENOMEM;
	/* A trace that says it twice is believed the first time. */
	if (d9__table_find(&texts->recorded, key_of(event->segment, from)))
		return 0;
	return d9__table_add(&texts->recorded, key_of(event->segment, from), texts->texts.items[to]);
}

struct d9_text d9__spawn_texts_recorded(const struct d9__spawn_texts *texts, uint32_t segment, struct d9_text text)
{
	const char *recorded = NULL;
	uint32_t number;

	if (texts->recorded.n && d9__texts_find(&texts->texts, text.data, text.len, &number))
		recorded = d9__table_find(&texts->recorded, key_of(segment, number));
	return recorded ? (struct d9_text){ recorded, strlen(recorded) } : text;
}

void d9__spawn_texts_release(struct d9__spawn_texts *texts)
{
	d9__texts_release(&texts->texts);
	d9__table_release(&texts->recorded);
}
