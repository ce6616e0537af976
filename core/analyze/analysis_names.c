/* SPDX-License-Identifier: Apache-2.0 */
/* Names for the callbacks of an analysis. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "analyze/budget.h"
#include "analyze/hot.h"
#include "read/stack_role.h"

#define SITE_MARK " @ "

/* "function file.c:12", or what of it is known, in new memory.  0 or -ENOMEM. */
static int describe(const char *function, const struct d9__place *place, char **out)
{
	char position[32] = "";

	if (place->file && place->line)
		snprintf(position, sizeof(position), ":%u", place->line);
	if (!function && !place->file)
		return 0;
	if (asprintf(out, "%s%s%s%s", function ? function : "",
		     function && place->file ? " " : "", place->file ? place->file : "",
		     position) < 0) {
		*out = NULL;
		return -ENOMEM;
	}
	return 0;
}

static int name_function(struct d9__callback *callback, const struct d9__namer *namer, size_t len)
{
	struct d9__place place = { .text = callback->location, .len = len,
				   .address = callback->address };

	if (!namer->name(namer->context, &place))
		return 0;
	if (place.function && !(callback->function = strdup(place.function)))
		return -ENOMEM;
	return describe(NULL, &place, &callback->source);
}

/* One that has a name keeps it. */
static int name_callback(struct d9__callback *callback, const struct d9__namer *namer)
{
	const char *mark = strstr(callback->location, SITE_MARK);
	struct d9__place site = { .address = callback->site_address, .role = D9__PLACE_CALL };
	int err = 0;

	if (!callback->function && !callback->source)
		err = name_function(callback, namer,
				    mark ? (size_t)(mark - callback->location)
					 : strlen(callback->location));
	if (err || !mark || callback->site)
		return err;
	site.text = mark + strlen(SITE_MARK);
	site.len = strlen(site.text);
	return namer->name(namer->context, &site)
		       ? describe(site.function, &site, &callback->site)
		       : 0;
}

/* Name a prepare() or check() function of the program, as far as the loop spent time there. */
static int name_outside(struct d9__outside *outside, const struct d9__namer *namer)
{
	struct d9__place place = { .text = outside->place, .address = outside->address };

	if (!outside->place || outside->function)
		return 0;
	place.len = strlen(outside->place);
	if (!namer->name(namer->context, &place) || !place.function)
		return 0;
	outside->function = strdup(place.function);
	return outside->function ? describe(NULL, &place, &outside->source) : -ENOMEM;
}

/* |text| as the samples keep it; NULL stays NULL. */
static int keep_text(struct d9__samples *samples, const char *text, const char **out)
{
	uint32_t number;

	*out = NULL;
	if (!text)
		return 0;
	if (d9__texts_number(&samples->texts, text, strlen(text), &number))
		return -ENOMEM;
	*out = samples->texts.items[number];
	return 0;
}

/* Without a name a frame is told by its address. */
static int name_frame(struct d9__samples *samples, struct d9__frame_name *frame, struct d9__place *place,
		      const struct d9__namer *namer)
{
	char address[32];
	int err;

	frame->known = namer->name(namer->context, place);
	if (!place->function) {
		snprintf(address, sizeof(address), "0x%llx", (unsigned long long)place->address);
		place->function = address;
	}
	frame->line = place->line;
	err = keep_text(samples, place->function, &frame->function);
	if (!err)
		err = keep_text(samples, place->file, &frame->file);
	if (!err)
		err = keep_text(samples, place->outermost, &frame->outermost);
	return err ? err : keep_text(samples, place->module, &frame->module);
}

/*
 * Name |n| |addresses| of a stack, in new memory, |*names|, unless the budget for stacks is spent.  |innermost| tells the
 * role of the addresses that were being executed, and the time of all.
 */
static int name_frames(struct d9__samples *samples, struct d9__frame_name **names, const uint64_t *addresses, size_t n,
		       const struct d9__place *innermost, const struct d9__namer *namer)
{
	int err = 0;

	if (!d9__budget_take(D9__KEPT_STACKS, n * sizeof((*names)[0])))
		return 0;
	*names = calloc(n ? n : 1, sizeof((*names)[0]));
	if (!*names)
		return -ENOMEM;
	for (size_t i = 0; i < n && !err; i++) {
		struct d9__place place = { .address = addresses[i], .ns = innermost->ns,
					   .role = d9__address_is_executing(addresses, i) ? innermost->role
											  : D9__PLACE_CALL };

		err = name_frame(samples, &(*names)[i], &place, namer);
	}
	return err;
}

static int name_stack(struct d9__samples *samples, struct d9__stack *stack, const struct d9__namer *namer)
{
	const struct d9__place innermost = { .ns = stack->ns, .role = D9__PLACE_RUNNING };

	return name_frames(samples, &stack->names, stack->addresses, stack->n, &innermost, namer);
}

static int name_heap_stack(struct d9__analysis *a, struct d9__heap_stack *stack, const struct d9__namer *namer)
{
	const struct d9__place innermost = { .ns = stack->ns, .role = D9__PLACE_CALL };

	return name_frames(&a->samples, &stack->names, stack->addresses, stack->n, &innermost, namer);
}

static int name_heap(struct d9__analysis *a, const struct d9__namer *namer)
{
	int err = 0;
	void *stack;

	for (size_t place = 0; !err && (place = d9__table_next(&a->heap.stacks, place, &stack));)
		err = name_heap_stack(a, stack, namer);
	return err;
}

static int name_stacks(struct d9__samples *samples, const struct d9__namer *namer)
{
	int err = 0;
	void *stack;

	for (size_t place = 0; !err && (place = d9__table_next(&samples->stacks, place, &stack));)
		err = name_stack(samples, stack, namer);
	return err;
}

int d9__analysis_name_callbacks(struct d9__analysis *a, const struct d9__namer *namer)
{
	int err = 0;

	for (size_t i = 0; i < a->callbacks.n && !err; i++) {
		err = name_callback(a->callbacks.items[i], namer);
		for (size_t j = 0; j < D9__OUTSIDE_PHASES && !err; j++)
			err = name_outside(&a->callbacks.items[i]->outside[j], namer);
	}
	return err;
}

/* ---- the program's function that a library's callback calls ---- */

/*
 * A method of a D-Bus object, a handler of a signal or of an HTTP request runs inside a callback of
 * GIO's or libsoup's, which is all that a loop knows.  The stacks of its time tell which function
 * it is.
 */

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
	static const char *const names[] = { "python", "pypy", "lua",   "ruby", "perl",
					     "node",   "gjs",  "guile", "mono", "php" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(module, names[i], strlen(names[i])))
			return true;
	return false;
}

static void add_entry(struct entries *entries, const struct d9__stack *stack, uint64_t ns)
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

static void add_samples(struct entries *entries, const struct d9__callback *callback,
			uint64_t period_ns)
{
	const struct d9__stack *stack;
	uint64_t on;

	if (!callback->hot || callback->hot->on < D9__HOT_FEW)
		return;
	for (size_t place = 0; (stack = d9__hot_next(callback->hot, &place, &on));)
		add_entry(entries, stack, on * period_ns);
}

static void add_blocked(struct entries *entries, const struct d9__callback *callback,
			const struct d9__blocked *blocked)
{
	void *item;

	for (size_t place = 0; (place = d9__table_next(&blocked->by_key, place, &item));) {
		const struct d9__blocked_calls *calls = item;

		if (calls->callback == callback)
			add_entry(entries, calls->stack, calls->total_ns);
	}
}

/*
 * Half of what stacks tell of, and a quarter of all that was not the machine's: else it is one
 * among others.
 */
static bool is_most(const struct d9__callback *callback, const struct entries *entries,
		    const struct entry *entry)
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
	return callback->internal ||
	       memmem(callback->location, strcspn(callback->location, "+ "), ".so", strlen(".so"));
}

/*
 * Find the inner function of each callback that lies in a library.  Stacks have names.  0 or
 * -ENOMEM.
 */
static int find_inners(struct d9__analysis *a)
{
	int err = 0;

	for (size_t i = 0; i < a->callbacks.n && !err; i++)
		if (a->callbacks.items[i]->n_stalls && lies_in_library(a->callbacks.items[i]))
			err = find_inner(a, a->callbacks.items[i]);
	return err;
}

/* Keep the files with the most places without a name, the worst first. */
static void find_lacking(struct d9__analysis *a, const struct d9__namer *namer)
{
	struct d9__lacking_file file;

	a->n_lacking = 0;
	while (namer->lacking && namer->lacking(namer->context, a->n_lacking, &file)) {
		size_t kept = a->n_lacking < D9__LACKING_MAX ? a->n_lacking : D9__LACKING_MAX,
		       i = kept;

		for (; i && a->lacking[i - 1].places < file.places; i--)
			if (i < D9__LACKING_MAX)
				a->lacking[i] = a->lacking[i - 1];
		if (i < D9__LACKING_MAX)
			a->lacking[i] = file;
		a->n_lacking++;
	}
}

int d9__analysis_name(struct d9__analysis *a, const struct d9__namer *namer)
{
	int err = name_stacks(&a->samples, namer);

	if (!err)
		err = name_stacks(&a->idle.samples, namer);
	if (!err)
		err = name_heap(a, namer);
	if (!err)
		err = d9__analysis_name_callbacks(a, namer);
	if (!err)
		err = find_inners(a);
	find_lacking(a, namer);
	return err;
}
