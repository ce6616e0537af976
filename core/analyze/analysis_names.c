/* SPDX-License-Identifier: Apache-2.0 */
/* Names for the callbacks of an analysis. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/analysis.h"
#include "analyze/budget.h"
#include "analyze/inner.h"
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

static int name_callback(struct d9__callback *callback, const struct d9__namer *namer)
{
	const char *mark = strstr(callback->location, SITE_MARK);
	struct d9__place site = { .address = callback->site_address, .role = D9__PLACE_CALL };
	int err;

	err = name_function(callback, namer,
			    mark ? (size_t)(mark - callback->location)
				 : strlen(callback->location));
	if (err || !mark)
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

	if (!outside->place)
		return 0;
	place.len = strlen(outside->place);
	if (!namer->name(namer->context, &place) || !place.function)
		return 0;
	outside->function = strdup(place.function);
	return outside->function ? 0 : -ENOMEM;
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

int d9__analysis_name(struct d9__analysis *a, const struct d9__namer *namer)
{
	int err = name_stacks(&a->samples, namer);

	if (!err)
		err = name_stacks(&a->idle.samples, namer);
	if (!err)
		err = name_heap(a, namer);
	if (!err)
		err = d9__analysis_name_callbacks(a, namer);
	return err ? err : d9__inner_find(a);
}
