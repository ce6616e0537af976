/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "fleet/segment_stacks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/own_frames.h"
#include "base/hash.h"
#include "read/stack_role.h"

#define NAME_MAX_LEN 512			       /* bytes of a frame's */
#define STACK_MAX    (D9__TEXT_MAX / sizeof(uint64_t)) /* addresses */

/* A stack that is being named. */
struct naming {
	FILE *out;
	struct d9__symbolizer *symbols;
	uint64_t ns;
	size_t frames;
	char leaf_name[NAME_MAX_LEN + 8];
};

/* Write |name| without ';', which separates frames. */
static void put_name(struct naming *naming, const char *name, bool kernel)
{
	size_t len = strnlen(name, NAME_MAX_LEN);

	snprintf(naming->leaf_name, sizeof(naming->leaf_name), "%.*s%s", (int)len, name,
		 kernel ? "_[k]" : "");
	for (char *c = strchr(naming->leaf_name, ';'); c; c = strchr(c, ';'))
		*c = ':';
	if (naming->frames++)
		putc(';', naming->out);
	fputs(naming->leaf_name, naming->out);
}

/* The functions at an address: the real one behind those that were inlined into it. */
static struct d9__frames functions_at(const struct naming *naming, const uint64_t *addresses,
				      size_t i)
{
	struct d9__frames frames = { 0 };

	d9__symbolizer_resolve(naming->symbols, addresses[i], naming->ns,
			       d9__address_is_executing(addresses, i) ? D9__EXECUTING : D9__RETURN,
			       &frames);
	return frames;
}

/* Write a stack of |n| addresses, the outermost first; the recorder's frames are no part of it, as
 * in the report. */
static void put_stack(struct naming *naming, const uint64_t *addresses, size_t n)
{
	static enum d9__frame_class classes[STACK_MAX];
	static bool hidden[STACK_MAX];

	for (size_t i = 0; i < n; i++) {
		struct d9__frames frames = functions_at(naming, addresses, i);

		classes[i] = d9__frame_class_of(frames.items[0].module, frames.items[0].function);
	}
	d9__own_frames_hide(classes, n, d9__own_frames(classes, n), hidden);
	for (size_t i = n; i > 0; i--) {
		struct d9__frames frames;

		if (hidden[i - 1])
			continue;
		frames = functions_at(naming, addresses, i - 1);
		for (size_t k = frames.n; k > 0; k--) {
			const char *function = frames.items[k - 1].function;

			put_name(naming, function ? function : "[unknown]",
				 d9__address_is_kernel(addresses[i - 1]));
		}
	}
}

/*
 * Name the stack |bytes|, |len| bytes of addresses; |left_out|: it stands for all stacks beyond the
 * budget.
 */
static int name(struct naming *naming, const char *bytes, size_t len, bool left_out,
		struct d9__named_stack *out)
{
	uint64_t addresses[STACK_MAX];
	size_t n = len / sizeof(addresses[0]), size;

	naming->out = open_memstream(&out->folded, &size);
	if (!naming->out)
		return -ENOMEM;
	memcpy(addresses, bytes, n * sizeof(addresses[0]));
	if (left_out)
		put_name(naming, "(left out)", false);
	else
		put_stack(naming, addresses, n);
	if (fclose(naming->out) || !(out->leaf = strdup(naming->leaf_name)))
		return -ENOMEM;
	out->frames = naming->frames;
	return 0;
}

/* Keep the newest item under its id, unless that is known: then it goes, and |*number| is the known
 * one's. */
static int keep(struct d9__segment_stacks *stacks, uint32_t *number)
{
	struct d9__named_stack *stack = &stacks->items[stacks->n];
	uint64_t id = d9__hash_bytes(0, stack->folded, strlen(stack->folded));
	uintptr_t place = (uintptr_t)d9__table_find(&stacks->by_id, id);

	if (place) {
		*number = (uint32_t)(place - 1);
		free(stack->folded);
		free(stack->leaf);
		*stack = (struct d9__named_stack) { .folded = NULL };
		return 0;
	}
	snprintf(stack->id, sizeof(stack->id), "%016" PRIx64, id);
	*number = (uint32_t)stacks->n++;
	return d9__table_add(&stacks->by_id, id, (void *)(uintptr_t)stacks->n);
}

/* ---- samples ---- */

static uint64_t callback_number(const struct d9__sample_row *row)
{
	return row->callback ? row->callback->number + 1 : 0;
}

/* By all but how many they are. */
static int compare_samples(const void *left, const void *right)
{
	const struct d9__sample_row *a = left, *b = right;
	const uint64_t of[][2] = { { a->minute, b->minute },
				   { a->off_cpu, b->off_cpu },
				   { callback_number(a), callback_number(b) },
				   { a->thread, b->thread },
				   { a->stack, b->stack } };

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++)
		if (of[i][0] != of[i][1])
			return of[i][0] < of[i][1] ? -1 : 1;
	return 0;
}

/* |of|: by the number of a stack in the rows, its place among the named ones. */
static void merge_samples(struct d9__row_list *samples, const uint32_t *of)
{
	struct d9__sample_row *items = samples->items;
	size_t n = 0;

	for (size_t i = 0; i < samples->n; i++)
		if (items[i].stack)
			items[i].stack = of[items[i].stack - 1] + 1;
	if (samples->n)
		qsort(items, samples->n, sizeof(*items), compare_samples);
	for (size_t i = 0; i < samples->n; i++)
		if (n && !compare_samples(&items[n - 1], &items[i]))
			items[n - 1].samples += items[i].samples;
		else
			items[n++] = items[i];
	samples->n = n;
	/* Places are those of before. */
	d9__table_release(&samples->places);
}

int d9__segment_stacks_make(struct d9__segment_stacks *stacks, struct d9__segment_rows *rows,
			    struct d9__symbolizer *symbols)
{
	const struct d9__texts *keys = &rows->stacks;
	uint32_t *of = calloc(keys->n + 1, sizeof(*of));
	int err = 0;

	stacks->items = calloc(keys->n + 1, sizeof(*stacks->items));
	if (!stacks->items || !of)
		err = -ENOMEM;
	for (size_t i = 0; i < keys->n && !err; i++) {
		struct naming naming = { .symbols = symbols, .ns = rows->stack_ns[i] };
		bool left_out = keys->full && keys->others_number == i;

		err = name(&naming, keys->items[i], keys->lens[i], left_out,
			   &stacks->items[stacks->n]);
		if (!err)
			err = keep(stacks, &of[i]);
	}
	if (!err)
		merge_samples(&rows->samples, of);
	free(of);
	return err;
}

void d9__segment_stacks_release(struct d9__segment_stacks *stacks)
{
	/* The item behind the last one has a name if memory ran out in the middle of it. */
	for (size_t i = 0; stacks->items && (i < stacks->n || stacks->items[i].folded); i++) {
		free(stacks->items[i].folded);
		free(stacks->items[i].leaf);
	}
	free(stacks->items);
	d9__table_release(&stacks->by_id);
}
