/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "analyze/inner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/hot.h"

#define ENTRIES_MAX 32 /* told apart */

/* For how long a sample stands if the trace does not tell. */
#define PERIOD_NS (10 * D9__MS_NS)

struct entry {
	const struct d9__frame_name *frame;
	uint64_t ns;
};

struct entries {
	struct entry items[ENTRIES_MAX];
	size_t n;
	uint64_t ns; /* of all stacks, whatever they tell */
};

/* The names of an interpreter's functions say nothing of the program that it runs. */
static bool is_interpreter(const char *module)
{
	static const char *const names[] = { "python", "pypy", "lua", "ruby", "perl", "node", "gjs", "guile", "mono", "php" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(module, names[i], strlen(names[i])))
			return true;
	return false;
}

static void add(struct entries *entries, const struct d9__stack *stack, uint64_t ns)
{
	const struct d9__frame_name *frame = stack ? d9__hot_entry(stack) : NULL;
	size_t i = 0;

	entries->ns += ns;
	if (!frame || !frame->known || is_interpreter(frame->module))
		return;
	while (i < entries->n && entries->items[i].frame->function != frame->function)
		i++;
	if (i == ENTRIES_MAX)
		return;
	if (i == entries->n)
		entries->items[entries->n++].frame = frame;
	entries->items[i].ns += ns;
}

static void add_samples(struct entries *entries, const struct d9__callback *callback, uint64_t period_ns)
{
	const struct d9__stack *stack;
	uint64_t on;

	if (!callback->hot || callback->hot->on < D9__HOT_FEW)
		return;
	for (size_t place = 0; (stack = d9__hot_next(callback->hot, &place, &on));)
		add(entries, stack, on * period_ns);
}

static void add_blocked(struct entries *entries, const struct d9__callback *callback, const struct d9__blocked *blocked)
{
	void *item;

	for (size_t place = 0; (place = d9__table_next(&blocked->by_key, place, &item));) {
		const struct d9__blocked_calls *calls = item;

		if (calls->callback == callback)
			add(entries, calls->stack, calls->total_ns);
	}
}

/* Half of what stacks tell of, and a quarter of all that was not the machine's: else it is one among others. */
static bool is_most(const struct d9__callback *callback, const struct entries *entries, const struct entry *entry)
{
	uint64_t all_ns = callback->durations.sum;

	all_ns -= callback->taken_ns < all_ns ? callback->taken_ns : all_ns;
	return 2 * entry->ns >= entries->ns && 4 * entry->ns >= all_ns;
}

static int find_inner(const struct d9__analysis *a, struct d9__callback *callback)
{
	struct entries entries = { .n = 0 };
	const struct entry *most = &entries.items[0];

	add_samples(&entries, callback, a->samples.period_ns ? a->samples.period_ns : PERIOD_NS);
	add_blocked(&entries, callback, &a->blocked);
	for (size_t i = 1; i < entries.n; i++)
		if (entries.items[i].ns > most->ns)
			most = &entries.items[i];
	if (!entries.n || !is_most(callback, &entries, most))
		return 0;
	callback->inner = most->frame;
	if (!most->frame->file)
		return 0;
	if (asprintf(&callback->inner_source, "%s:%u", most->frame->file, most->frame->line) >= 0)
		return 0;
	callback->inner_source = NULL;
	return -ENOMEM;
}

/* A callback that the recorder names by its role, "bufferevent read", is a loop library's. */
static bool lies_in_library(const struct d9__callback *callback)
{
	return callback->internal || memmem(callback->location, strcspn(callback->location, "+ "), ".so", strlen(".so"));
}

int d9__inner_find(struct d9__analysis *a)
{
	int err = 0;

	for (size_t i = 0; i < a->callbacks.n && !err; i++)
		if (a->callbacks.items[i]->n_stalls && lies_in_library(a->callbacks.items[i]))
			err = find_inner(a, a->callbacks.items[i]);
	return err;
}
