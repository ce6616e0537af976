/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "format/encoder.h"
#include "ring/event_types.h"
#include "segment/note_event.h"

static void add(struct d9__builder *out, const struct d9__note_line *line, uint32_t times)
{
	uint32_t level = d9__builder_name(out, d9__note_level(line->level));
	size_t len = strlen(line->text);
	uint8_t *p = d9__builder_event(out, D9__EVENT_LOG, line->ns, 8 + len + D9__VARINT_MAX);

	if (!p)
		return;
	p = d9__wire_put_u32(p, level);
	p = d9__wire_put_text(p, line->text, len);
	d9__builder_end(out, d9__varint_put(p, times));
}

/* |n| lines before |line| are gone. */
static void add_gap(struct d9__builder *out, uint32_t n, uint64_t ns)
{
	struct d9__note_line line = { .ns = ns, .level = D9_LOG_WARNING };

	snprintf(line.text, sizeof(line.text),
		 "%u line%s of this log overwritten before %s could be written", n,
		 n > 1 ? "s" : "", n > 1 ? "they" : "it");
	add(out, &line, 1);
}

/* Lines up to |number| are missing.  True if they are given up, false if the first one may still
 * come. */
static bool give_up(struct d9__note_teller *teller, uint32_t number, uint64_t ns,
		    struct d9__builder *out, bool all)
{
	uint64_t gap = (uint64_t)teller->added + 1;

	if (!all && teller->gap != gap) {
		teller->gap = gap;
		return false;
	}
	add_gap(out, number - teller->added, ns);
	return true;
}

void d9__note_events(struct d9__note_teller *teller, struct d9__builder *out, bool all)
{
	struct d9__note_line line = { 0 };
	struct d9__notes copy;
	uint32_t at = 0;

	d9__builder_begin(out);
	teller->added = teller->next;
	d9__notes_copy(&copy);
	while (d9__notes_next(&copy, &at, &line)) {
		if ((int32_t)(line.number - teller->added) < 0)
			continue;
		if (line.number != teller->added &&
		    !give_up(teller, line.number, line.ns, out, all))
			return;
		add(out, &line, line.times);
		teller->added = line.number + 1;
	}
}

void d9__note_events_told(struct d9__note_teller *teller)
{
	teller->next = teller->added;
	d9__notes_tell(teller->next);
}

void d9__note_events_of(const struct d9__notes *copy, uint32_t from, uint64_t from_ns,
			struct d9__builder *out)
{
	struct d9__note_line line;
	uint32_t at = 0;

	while (d9__notes_next(copy, &at, &line))
		if ((int32_t)(line.number - from) >= 0 && line.ns >= from_ns)
			add(out, &line, line.times + line.again);
}
