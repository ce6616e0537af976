/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/budget.h"
#include "analyze/heap.h"

#define ENTRY_BYTES (3 * sizeof(struct d9__table_entry)) /* a place in a table */

/* Of a site that grows: fewer samples, or fewer bytes, may be chance or do not matter. */
#define GROWS_SAMPLES 10
#define GROWS_BYTES   4096.0
#define GROWS_PART    6.0 /* each third of the time has one in so many bytes at least */

/* A sampled allocation that is not freed yet. */
struct block {
	struct d9__heap_stack *stack;
	struct d9__heap_sum weight;
	uint64_t ns;
};

void d9__heap_release(struct d9__heap *heap)
{
	void *item;

	for (size_t place = 0; (place = d9__table_next(&heap->stacks, place, &item));) {
		free(((struct d9__heap_stack *)item)->names);
		free(item);
	}
	for (size_t place = 0; (place = d9__table_next(&heap->blocks, place, &item));)
		free(item);
	d9__table_release(&heap->stacks);
	d9__table_release(&heap->blocks);
	free(heap->others);
	*heap = (struct d9__heap){ 0 };
}

struct d9__heap_sum d9__heap_weigh(uint64_t size, uint64_t rate)
{
	double probability = -expm1(-(double)size / (double)rate);

	/* With a mean of one byte all were taken; and none of 0 bytes is taken by any other. */
	if (rate <= 1 || size == 0)
		return (struct d9__heap_sum){ (double)size, 1, 1 };
	return (struct d9__heap_sum){ (double)size / probability, 1 / probability, 1 };
}

static void add(struct d9__heap_sum *to, const struct d9__heap_sum *sum)
{
	to->bytes += sum->bytes;
	to->count += sum->count;
	to->samples += sum->samples;
}

static void subtract(struct d9__heap_sum *from, const struct d9__heap_sum *sum)
{
	from->samples -= sum->samples;
	/* Of nothing no rounding is left. */
	from->bytes = from->samples ? from->bytes - sum->bytes : 0;
	from->count = from->samples ? from->count - sum->count : 0;
}

/* ---- events ---- */

static uint64_t hash_of(const struct d9__heap_alloc *alloc)
{
	uint64_t hash = (uint64_t)(uintptr_t)alloc->callback * 31 + (uint64_t)(uintptr_t)alloc->worker;

	for (size_t i = 0; i < alloc->n; i++) {
		hash = (hash ^ alloc->addresses[i]) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	return hash;
}

static struct d9__heap_stack *stack_of(struct d9__heap *heap, const struct d9__heap_alloc *alloc)
{
	uint64_t hash = hash_of(alloc);
	struct d9__heap_stack *stack = d9__table_find(&heap->stacks, hash);
	size_t bytes, n = alloc->n < D9__HEAP_FRAMES ? alloc->n : D9__HEAP_FRAMES;

	if (stack)
		return stack;
	bytes = sizeof(*stack) + n * sizeof(stack->addresses[0]);
	if (!d9__budget_take(D9__KEPT_STACKS, bytes + ENTRY_BYTES)) {
		if (!heap->others)
			heap->others = calloc(1, sizeof(*heap->others));
		return heap->others;
	}
	stack = calloc(1, bytes);
	if (!stack || d9__table_add(&heap->stacks, hash, stack)) {
		free(stack);
		return NULL;
	}
	stack->number = heap->stacks.n;
	stack->ns = alloc->ns;
	stack->callback = alloc->callback;
	stack->worker = alloc->worker;
	stack->n = n;
	if (n)
		memcpy(stack->addresses, alloc->addresses, n * sizeof(alloc->addresses[0]));
	return stack;
}

/* |block|, at |address|, is live no more. */
static void end_block(struct d9__heap *heap, uint64_t address, struct block *block)
{
	subtract(&block->stack->live, &block->weight);
	subtract(&heap->live, &block->weight);
	d9__table_remove(&heap->blocks, address);
	d9__budget_give(sizeof(*block) + ENTRY_BYTES);
	free(block);
}

static int follow(struct d9__heap *heap, uint64_t address, const struct block *fresh)
{
	struct block *block = d9__table_find(&heap->blocks, address);

	/* It was freed, and that is not in the trace. */
	if (block)
		end_block(heap, address, block);
	if (!d9__budget_take(D9__KEPT_BLOCKS, sizeof(*block) + ENTRY_BYTES))
		return 0;
	block = malloc(sizeof(*block));
	if (!block || d9__table_add(&heap->blocks, address, block)) {
		free(block);
		return -ENOMEM;
	}
	*block = *fresh;
	add(&block->stack->live, &block->weight);
	add(&heap->live, &block->weight);
	return 0;
}

static void note_time(struct d9__heap *heap, uint64_t ns)
{
	if (!heap->first_ns)
		heap->first_ns = ns;
	heap->last_ns = ns;
}

int d9__heap_alloc(struct d9__heap *heap, const struct d9__heap_alloc *alloc)
{
	struct block block = { .stack = stack_of(heap, alloc), .ns = alloc->ns };

	if (!block.stack)
		return -ENOMEM;
	if (alloc->rate)
		heap->rate = alloc->rate;
	block.weight = d9__heap_weigh(alloc->size, heap->rate ? heap->rate : D9__HEAP_RATE);
	note_time(heap, alloc->ns);
	add(&block.stack->allocated, &block.weight);
	add(&heap->allocated, &block.weight);
	heap->followed |= alloc->address != 0;
	return alloc->address ? follow(heap, alloc->address, &block) : 0;
}

void d9__heap_free(struct d9__heap *heap, uint64_t ns, uint64_t address, uint64_t alloc_ns)
{
	struct block *block = d9__table_find(&heap->blocks, address);

	/* A block that the trace does not have was allocated before the trace begins. */
	if (!block || block->ns != alloc_ns)
		return;
	note_time(heap, ns);
	heap->frees++;
	end_block(heap, address, block);
}

/* ---- sites ---- */

/* The innermost frame of the program itself: what libraries allocate, it has asked for. */
static size_t own_frame(const struct d9__heap_stack *stack, const char *program)
{
	for (size_t i = 0; stack->names && program && i < stack->n; i++)
		if (stack->names[i].module && !strcmp(stack->names[i].module, program) &&
		    !d9__function_is_cxx(stack->names[i].function))
			return i;
	return 0;
}

static bool is_same(const struct d9__heap_site *site, const struct d9__heap_stack *stack, size_t frame)
{
	const struct d9__frame_name *a, *b;

	if (!stack->n || !site->stack->n)
		return stack->n == site->stack->n;
	if (!stack->names || !site->stack->names)
		return site->stack->addresses[site->frame] == stack->addresses[frame];
	a = &site->stack->names[site->frame];
	b = &stack->names[frame];
	return a->function == b->function && a->file == b->file && a->line == b->line;
}

static uint64_t site_key(const struct d9__heap_stack *stack, size_t frame)
{
	const struct d9__frame_name *name;

	if (!stack->n)
		return 0;
	if (!stack->names)
		return stack->addresses[frame];
	name = &stack->names[frame];
	return ((uint64_t)(uintptr_t)name->function * 31 + (uint64_t)(uintptr_t)name->file) * 31 + name->line;
}

struct grouping {
	const char *program;
	struct d9__heap_site *sites;
	size_t n;
	struct d9__table by_key, by_stack; /* number + 1 as pointers */
};

/* The number of the site of |stack|, which is new if it has none.  Below 0: no memory. */
static ptrdiff_t site_of(struct grouping *g, const struct d9__heap_stack *stack)
{
	size_t frame = own_frame(stack, g->program), i;
	uint64_t key = site_key(stack, frame);

	/* Two of one key would be odd: the second stands behind. */
	while ((i = (size_t)(uintptr_t)d9__table_find(&g->by_key, key)) && !is_same(&g->sites[i - 1], stack, frame))
		key++;
	if (!i) {
		g->sites[g->n] = (struct d9__heap_site){ .stack = stack, .frame = frame, .stack_bytes = -1 };
		i = ++g->n;
		if (d9__table_add(&g->by_key, key, (void *)(uintptr_t)i))
			return -1;
	}
	if (stack->allocated.bytes > g->sites[i - 1].stack_bytes) {
		g->sites[i - 1].stack = stack;
		g->sites[i - 1].frame = frame;
		g->sites[i - 1].stack_bytes = stack->allocated.bytes;
	}
	return (ptrdiff_t)i - 1;
}

static int group_stack(struct grouping *g, const struct d9__heap_stack *stack)
{
	ptrdiff_t site = site_of(g, stack);

	if (site < 0)
		return -ENOMEM;
	add(&g->sites[site].allocated, &stack->allocated);
	add(&g->sites[site].live, &stack->live);
	return d9__table_add(&g->by_stack, (uint64_t)(uintptr_t)stack, (void *)(uintptr_t)(site + 1));
}

static int compare_stacks(const void *left, const void *right)
{
	const struct d9__heap_stack *a = *(const struct d9__heap_stack *const *)left;
	const struct d9__heap_stack *b = *(const struct d9__heap_stack *const *)right;

	return (a->number > b->number) - (a->number < b->number);
}

/* In the order of their first samples: what is told may not depend on a table's order. */
static int group_stacks(struct grouping *g, const struct d9__heap *heap)
{
	const struct d9__heap_stack **sorted = calloc(heap->stacks.n + 1, sizeof(const struct d9__heap_stack *));
	size_t n = 0;
	int err = 0;
	void *item;

	if (!sorted)
		return -ENOMEM;
	for (size_t place = 0; (place = d9__table_next(&heap->stacks, place, &item));)
		sorted[n++] = item;
	qsort(sorted, n, sizeof(sorted[0]), compare_stacks);
	if (heap->others)
		sorted[n++] = heap->others;
	for (size_t i = 0; i < n && !err; i++)
		err = group_stack(g, sorted[i]);
	free(sorted);
	return err;
}

static void put_blocks(struct grouping *g, const struct d9__heap *heap)
{
	uint64_t part_ns = (heap->last_ns - heap->first_ns) / D9__HEAP_PARTS + 1;
	void *item;

	for (size_t place = 0; (place = d9__table_next(&heap->blocks, place, &item));) {
		const struct block *block = item;
		size_t site = (size_t)(uintptr_t)d9__table_find(&g->by_stack, (uint64_t)(uintptr_t)block->stack);
		uint64_t after_ns = block->ns > heap->first_ns ? block->ns - heap->first_ns : 0;
		size_t part = after_ns / part_ns < D9__HEAP_PARTS ? after_ns / part_ns : D9__HEAP_PARTS - 1;

		g->sites[site - 1].live_parts[part] += block->weight.bytes;
	}
}

static int compare_sites(const void *left, const void *right)
{
	const struct d9__heap_site *a = left, *b = right;

	if (a->live.bytes != b->live.bytes)
		return a->live.bytes < b->live.bytes ? 1 : -1;
	if (a->allocated.bytes != b->allocated.bytes)
		return a->allocated.bytes < b->allocated.bytes ? 1 : -1;
	return (a->stack->number > b->stack->number) - (a->stack->number < b->stack->number);
}

struct d9__heap_site *d9__heap_sites(const struct d9__heap *heap, const char *program, size_t *n)
{
	const char *slash = program ? strrchr(program, '/') : NULL;
	struct grouping g = { .program = slash ? slash + 1 : program };
	int err;

	*n = heap->stacks.n + (heap->others != NULL);
	if (!*n)
		return NULL;
	g.sites = calloc(*n, sizeof(*g.sites));
	err = g.sites ? group_stacks(&g, heap) : -ENOMEM;
	if (!err)
		put_blocks(&g, heap);
	d9__table_release(&g.by_key);
	d9__table_release(&g.by_stack);
	if (err) {
		free(g.sites);
		return NULL;
	}
	qsort(g.sites, g.n, sizeof(*g.sites), compare_sites);
	*n = g.n;
	return g.sites;
}

bool d9__heap_site_grows(const struct d9__heap *heap, const struct d9__heap_site *site)
{
	if (!heap->followed || !site->stack->n || site->live.samples < GROWS_SAMPLES || site->live.bytes < GROWS_BYTES)
		return false;
	for (size_t i = 0; i < D9__HEAP_PARTS; i++)
		if (site->live_parts[i] * GROWS_PART < site->live.bytes)
			return false;
	return true;
}

/* ---- callbacks ---- */

static int compare_callers(const void *left, const void *right)
{
	const struct d9__heap_caller *a = left, *b = right;

	if (a->allocated.bytes != b->allocated.bytes)
		return a->allocated.bytes < b->allocated.bytes ? 1 : -1;
	return (a->first > b->first) - (a->first < b->first);
}

/* Add |stack| to the |*n| callers.  0 or -ENOMEM. */
static int add_caller(struct d9__heap_caller *callers, size_t *n, struct d9__table *by_callback,
		      const struct d9__heap_stack *stack)
{
	uint64_t key = (uint64_t)(uintptr_t)stack->callback;
	size_t i = (size_t)(uintptr_t)d9__table_find(by_callback, key);

	if (!i) {
		callers[*n] = (struct d9__heap_caller){ .callback = stack->callback, .first = stack->number };
		i = ++*n;
		if (d9__table_add(by_callback, key, (void *)(uintptr_t)i))
			return -ENOMEM;
	}
	add(&callers[i - 1].allocated, &stack->allocated);
	if (stack->number < callers[i - 1].first)
		callers[i - 1].first = stack->number;
	return 0;
}

struct d9__heap_caller *d9__heap_callers(const struct d9__heap *heap, size_t *n)
{
	struct d9__heap_caller *callers = calloc(heap->stacks.n + 1, sizeof(*callers));
	struct d9__table by_callback = { 0 };
	int err = callers ? 0 : -ENOMEM;
	void *item;

	*n = 0;
	for (size_t place = 0; !err && (place = d9__table_next(&heap->stacks, place, &item));)
		if (((const struct d9__heap_stack *)item)->callback)
			err = add_caller(callers, n, &by_callback, item);
	d9__table_release(&by_callback);
	if (err || !*n) {
		free(callers);
		*n = err ? 1 : 0;
		return NULL;
	}
	qsort(callers, *n, sizeof(*callers), compare_callers);
	return callers;
}

/* ---- words ---- */

struct d9__heap_name d9__heap_site_name(const struct d9__heap_site *site)
{
	const struct d9__frame_name *name = site->stack->names ? &site->stack->names[site->frame] : NULL;
	struct d9__heap_name out;

	if (!site->stack->n)
		snprintf(out.text, sizeof(out.text), "(no stack)");
	else if (!name)
		snprintf(out.text, sizeof(out.text), "0x%" PRIx64, site->stack->addresses[site->frame]);
	else if (name->file && name->line)
		snprintf(out.text, sizeof(out.text), "%s (%s:%u)", name->function, name->file, name->line);
	else
		snprintf(out.text, sizeof(out.text), "%s", name->function);
	return out;
}

struct d9__heap_name d9__heap_site_path(const struct d9__heap_site *site, size_t max)
{
	const struct d9__heap_stack *stack = site->stack;
	struct d9__heap_name out = { "" };
	size_t len = 0;

	for (size_t i = site->frame; stack->names && i < stack->n && i - site->frame < max && len < sizeof(out.text); i++)
		len += (size_t)snprintf(out.text + len, sizeof(out.text) - len, "%s%s", i > site->frame ? " < " : "",
					stack->names[i].function);
	return out;
}
