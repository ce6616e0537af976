/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/budget.h"
#include "base/array.h"
#include "cli/symbolize/spawn_names.h"
#include "read/known_text.h"
#include "symbol/symbol_rows.h"

#define SITE_MARK   " @ "
#define PLACE_BYTES (2 * sizeof(struct d9__spawn_place) + 6 * sizeof(struct d9__table_entry))

static void *as_pointer(size_t number)
{
	return (void *)(uintptr_t)(number + 1);
}

/* ---- what the segment holds ---- */

static int add_place(struct d9__spawn_names *names, uint32_t text, uint64_t ns, struct d9__spawn_place **out)
{
	if (!d9__array_grow(names->places, names->n))
		return -ENOMEM;
	*out = &names->places[names->n];
	**out = (struct d9__spawn_place){ .text = text, .ns = ns };
	return d9__table_add(&names->by_text, text, as_pointer(names->n++));
}

static int meet(struct d9__spawn_names *names, const struct d9_event *event, unsigned k, uint64_t callback, uint64_t site)
{
	struct d9_text text = d9__known_text(event, k);
	struct d9__spawn_place *place;
	size_t number;
	uint32_t id;
	int err = 0;

	/*
	 * Leave it: a longer text cannot be told from others, and one with a zero byte names no
	 * function.
	 */
	if (!text.len || text.len > D9__TEXT_MAX || memchr(text.data, '\0', text.len))
		return 0;
	names->texts.kind = D9__KEPT_SYMBOLS;
	names->texts.each = PLACE_BYTES;
	if (d9__texts_number(&names->texts, text.data, text.len, &id))
		return -ENOMEM;
	if (names->texts.full && id == names->texts.others_number)
		return 0;
	number = (size_t)(uintptr_t)d9__table_find(&names->by_text, id);
	if (number)
		place = &names->places[number - 1];
	else
		err = add_place(names, id, event->timestamp_ns, &place);
	if (!err && !place->callback) {
		place->callback = callback;
		place->site = site;
	}
	return err;
}

int d9__spawn_names_learn(struct d9__spawn_names *names, const struct d9_event *event)
{
	names->segment = event->segment;
	switch (event->kind) {
	case D9_EVENT_TASK_SPAWN:
		return meet(names, event, D9_TASK_SPAWN_SPAWN_LOC, d9_event_known_u64(event, D9_TASK_SPAWN_CALLBACK, 0),
			    d9_event_known_u64(event, D9_TASK_SPAWN_SPAWN_ADDR, 0));
	case D9_EVENT_POLL_START:
		return meet(names, event, D9_POLL_START_SPAWN_LOC, 0, 0);
	default:
		return d9__spawn_texts_learn(&names->before, event);
	}
}

/* ---- names ---- */

/* True if |text| is "0x7f0000001010", as of code in no module. */
static bool is_bare(const char *text, size_t len)
{
	return len > 2 && len <= 18 && !memcmp(text, "0x", 2) && strspn(text + 2, "0123456789abcdef") >= len - 2;
}

/* How many halves of a text were named. */
struct halves {
	unsigned named;
	unsigned unknown; /* addresses of which nothing is known */
};

/* One half of CALLBACK @ SITE: its function, or itself. */
static void put_half(FILE *out, struct d9__symbolizer *symbolizer, const char *text, size_t len, uint64_t address,
		     uint64_t ns, enum d9__address_role role, struct halves *halves)
{
	struct d9__frames frames = { 0 };
	const struct d9__symbol *one;
	bool is_role = false;

	if (is_bare(text, len))
		address = strtoull(text, NULL, 16);
	else if (d9__symbol_rows_is_mere_place(text, len))
		d9__symbolizer_resolve_name(symbolizer, text, len, role, &frames);
	else
		is_role = true; /* "bufferevent read": that says more than its function */
	if (!is_role && !frames.known && address)
		d9__symbolizer_resolve(symbolizer, address, ns, role, &frames);
	one = frames.known ? d9__frames_one(&frames, role) : NULL;
	if (!one || !one->function) {
		halves->unknown += !is_role;
		fwrite(text, 1, len, out);
		return;
	}
	halves->named++;
	fputs(one->function, out);
	if (role == D9__RETURN && one->file && one->line)
		fprintf(out, " %s:%u", one->file, one->line);
	else if (role == D9__RETURN && one->file)
		fprintf(out, " %s", one->file);
}

/* The name of |recorded| in new memory, |*out|.  0 or -ENOMEM. */
static int describe(struct d9__symbolizer *symbolizer, const char *recorded, const struct d9__spawn_place *place,
		    struct halves *halves, char **out)
{
	const char *mark = strstr(recorded, SITE_MARK), *site = mark ? mark + strlen(SITE_MARK) : NULL;
	size_t size, len = mark ? (size_t)(mark - recorded) : strlen(recorded);
	FILE *stream = open_memstream(out, &size);

	if (!stream)
		return -ENOMEM;
	put_half(stream, symbolizer, recorded, len, place->callback, place->ns, D9__ENTRY, halves);
	if (site) {
		fputs(SITE_MARK, stream);
		put_half(stream, symbolizer, site, strlen(site), place->site, place->ns, D9__RETURN, halves);
	}
	if (fclose(stream)) {
		free(*out);
		return -ENOMEM;
	}
	return 0;
}

/*
 * Give each place a name of its own, because viewers group by it: the recorded text is appended to
 * a name that is taken.  |*out|: the number of the name of |recorded|.
 */
static int keep_name(struct d9__spawn_names *names, const char *name, uint32_t recorded, uint32_t *out)
{
	size_t meant;
	char *longer;
	int err;

	if (d9__texts_number(&names->texts, name, strlen(name), out))
		return -ENOMEM;
	meant = (size_t)(uintptr_t)d9__table_find(&names->meant, *out);
	if (!meant)
		return d9__table_add(&names->meant, *out, as_pointer(recorded));
	if (meant == (size_t)recorded + 1)
		return 0;
	if (asprintf(&longer, "%s (%s)", name, names->texts.items[recorded]) < 0)
		return -ENOMEM;
	err = d9__texts_number(&names->texts, longer, strlen(longer), out);
	free(longer);
	return err;
}

/*
 * |*out|: the number of the text that stands for |recorded|, which may be itself.  A name of an
 * earlier run is kept if this one finds none.
 */
static int name_place(struct d9__spawn_names *names, struct d9__symbolizer *symbolizer, const struct d9__spawn_place *place,
		      uint32_t recorded, uint32_t *out)
{
	struct halves halves = { 0 };
	char *name;
	int err = describe(symbolizer, names->texts.items[recorded], place, &halves, &name);

	if (err)
		return err;
	if (halves.unknown && place->text != recorded)
		*out = place->text;
	else if (halves.named)
		err = keep_name(names, name, recorded, out);
	else
		*out = recorded;
	free(name);
	/* Without room for it the recorded text remains. */
	if (!err && names->texts.full && *out == names->texts.others_number)
		*out = recorded;
	return err;
}

int d9__spawn_names_find(struct d9__spawn_names *names, struct d9__symbolizer *symbolizer, bool all,
			 struct d9__row_batch *rows)
{
	int err = 0;

	for (size_t i = 0; !err && i < names->n; i++) {
		struct d9__spawn_place place = names->places[i];
		const char *stands = names->texts.items[place.text];
		struct d9_text old = d9__spawn_texts_recorded(&names->before, names->segment,
							      (struct d9_text){ stands, strlen(stands) });
		uint32_t recorded, name;

		if (d9__texts_number(&names->texts, old.data, old.len, &recorded))
			return -ENOMEM;
		err = name_place(names, symbolizer, &place, recorded, &name);
		if (!err && name != place.text)
			err = d9__table_add(&names->names, place.text, names->texts.items[name]);
		if (!err && name != recorded && (all || name != place.text))
			err = d9__row_batch_add_text(rows, names->texts.items[name], names->texts.items[recorded]);
	}
	return err;
}

const char *d9__spawn_names_of(const struct d9__spawn_names *names, const char *text, size_t len)
{
	uint32_t number;

	return names->names.n && d9__texts_find(&names->texts, text, len, &number) ? d9__table_find(&names->names, number)
										    : NULL;
}

void d9__spawn_names_next(struct d9__spawn_names *names)
{
	d9__spawn_texts_release(&names->before);
	d9__table_release(&names->by_text);
	d9__table_release(&names->names);
	names->n = 0;
}

void d9__spawn_names_release(struct d9__spawn_names *names)
{
	d9__spawn_names_next(names);
	d9__texts_release(&names->texts);
	d9__table_release(&names->meant);
	free(names->places);
	*names = (struct d9__spawn_names){ 0 };
}
