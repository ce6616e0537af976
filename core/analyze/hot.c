/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/budget.h"
#include "analyze/hot.h"
#include "analyze/own_frames.h"

#define SPOTS_MAX  64 /* told apart */
#define SPOTS_TOLD 3

struct hot_stack {
	const struct d9__stack *stack;
	uint64_t on, off;
};

static void free_stacks(struct d9__hot *hot)
{
	void *item;

	for (size_t place = 0; (place = d9__table_next(&hot->stacks, place, &item));)
		free(item);
	d9__table_release(&hot->stacks);
}

void d9__hot_free(struct d9__hot *hot)
{
	if (!hot)
		return;
	free_stacks(hot);
	free(hot);
}

static struct hot_stack *hot_stack_of(struct d9__hot *hot, const struct d9__stack *stack)
{
	struct hot_stack *item = d9__table_find(&hot->stacks, stack->number);

	if (item)
		return item;
	item = calloc(1, sizeof(*item));
	if (item && d9__table_add(&hot->stacks, stack->number, item)) {
		free(item);
		item = NULL;
	}
	if (item)
		item->stack = stack;
	return item;
}

int d9__hot_add(struct d9__callback *callback, const struct d9__stack *stack, bool off_cpu)
{
	struct hot_stack *item;

	if (!callback->hot && !(callback->hot = calloc(1, sizeof(*callback->hot))))
		return -ENOMEM;
	callback->hot->on += !off_cpu;
	callback->hot->off += off_cpu;
	/* Stacks beyond the budget have no frames to tell of. */
	if (!stack->n)
		return 0;
	item = hot_stack_of(callback->hot, stack);
	if (!item)
		return -ENOMEM;
	item->on += !off_cpu;
	item->off += off_cpu;
	return 0;
}

/* ---- spots ---- */

/* Whether frame |i| is a function of the module that |callback| is told by, "app+0x100". */
static bool is_own(const struct d9__callback *callback, const struct d9__stack *stack, size_t i)
{
	const char *module = stack->names[i].module;
	size_t len = strcspn(callback->location, "+ ");

	return module && !strncmp(module, callback->location, len) && !module[len] &&
	       !d9__function_is_cxx(stack->names[i].function);
}

/* How many frames lie inside the innermost callback, up to the recorder's, which called it; 0: that
 * one is not among them. */
static size_t inside(const struct d9__stack *stack)
{
	for (size_t i = 1; i < stack->n; i++)
		if (d9__frame_is_ours(&stack->names[i]))
			return i;
	return 0;
}

size_t d9__hot_leaf(const struct d9__stack *stack)
{
	enum d9__frame_class classes[D9__STACK_FRAMES];
	size_t own;

	for (size_t i = 0; i < stack->n; i++)
		classes[i] = d9__frame_class_of(stack->names[i].module, stack->names[i].function);
	own = d9__own_frames(classes, stack->n);
	return own < stack->n ? own : stack->n - 1;
}

/* Frames of the kernel that are told, without its scheduler: its entry is everywhere, too. */
#define KERNEL_TOLD 5

static bool is_kernels(const struct d9__stack *stack, size_t i)
{
	return stack->addresses[i] >> 63;
}

const char *d9__hot_left_cpu(const struct d9__stack *stack, char *buf, size_t size)
{
	size_t kernel = 0, first = 0, used, i;

	buf[0] = '\0';
	if (!stack || !stack->names || !size)
		return buf;
	while (kernel < stack->n && is_kernels(stack, kernel))
		kernel++;
	i = kernel;
	while (i < stack->n && d9__frame_is_ours(&stack->names[i]))
		i++;
	if (i == stack->n)
		return buf;
	used = (size_t)snprintf(buf, size, "%.96s", stack->names[i].function);
	while (first < kernel && strstr(stack->names[first].function, "schedule"))
		first++;
	if (kernel > first + KERNEL_TOLD)
		kernel = first + KERNEL_TOLD;
	for (i = kernel; i > first && used < size; i--)
		used += (size_t)snprintf(buf + used, size - used, "%s%.48s%s",
					 i == kernel ? " (" : ", ", stack->names[i - 1].function,
					 i == first + 1 ? ")" : "");
	return buf;
}

const struct d9__frame_name *d9__hot_entry(const struct d9__stack *stack)
{
	for (size_t i = stack->names ? inside(stack) : 0; i; i--)
		if (d9__frame_is_program(&stack->names[i - 1]))
			return &stack->names[i - 1];
	return NULL;
}

/*
 * Whether the innermost frame is a jump of the linker's to a library, which has no name of its own:
 * it is its caller's.
 */
static bool is_jump(const struct d9__stack *stack)
{
	const struct d9__frame_name *names = stack->names;

	return stack->n > 1 && !names[0].known && names[1].known && names[0].module &&
	       names[1].module && !strcmp(names[0].module, names[1].module);
}

/* The program has asked for the work of a library; and its own work inside a library's callback is
 * not the library's. */
size_t d9__hot_own_frame(const struct d9__callback *callback, const struct d9__stack *stack)
{
	size_t cxx = 0;

	for (size_t i = is_jump(stack), n = inside(stack); i < n; i++) {
		if (!d9__frame_is_program(&stack->names[i]))
			continue;
		if (!d9__function_is_cxx(stack->names[i].function))
			return i;
		cxx = cxx ? cxx : i;
	}
	/* A template alone, as where the callback itself is one. */
	if (cxx)
		return cxx;
	for (size_t i = is_jump(stack); i < stack->n; i++)
		if (is_own(callback, stack, i))
			return i;
	/* Outside of all callbacks, and of the loop library. */
	for (size_t i = is_jump(stack);
	     i < stack->n && !*callback->location && !d9__frame_is_ours(&stack->names[i]); i++)
		if (d9__frame_is_program(&stack->names[i]))
			return i;
	return 0;
}

bool d9__hot_calls_loop(const struct d9__callback *callback, const struct d9__stack *stack)
{
	size_t own = stack->names ? d9__hot_own_frame(callback, stack) : 0;

	for (size_t i = 0; i < own; i++)
		if (d9__frame_is_ours(&stack->names[i]) ||
		    (stack->names[i].module &&
		     d9__module_is_loop(stack->names[i].module, strlen(stack->names[i].module))))
			return true;
	return false;
}

/* A place in a library whose functions have no names: one address says no more than the next. */
static bool is_nameless(const struct d9__frame_name *frame)
{
	return !frame->known && frame->module && !d9__frame_is_program(frame);
}

static bool is_same(const struct d9__frame_name *a, const struct d9__frame_name *b)
{
	if (is_nameless(a) && is_nameless(b))
		return !strcmp(a->module, b->module);
	return a->function == b->function && a->file == b->file;
}

static void add_to_spots(const struct d9__callback *callback, const struct hot_stack *item,
			 uint64_t n, struct d9__spot *spots, size_t *n_spots)
{
	size_t frame = d9__hot_own_frame(callback, item->stack), i = 0;

	while (i < *n_spots &&
	       !is_same(&spots[i].stack->names[spots[i].frame], &item->stack->names[frame]))
		i++;
	if (i == SPOTS_MAX)
		return;
	if (i == *n_spots)
		spots[(*n_spots)++] =
			(struct d9__spot) { .stack = item->stack, .frame = frame, .stack_n = n };
	spots[i].n += n;
	if (n > spots[i].stack_n ||
	    (n == spots[i].stack_n && item->stack->number < spots[i].stack->number)) {
		spots[i].stack = item->stack;
		spots[i].frame = frame;
		spots[i].stack_n = n;
	}
}

static int compare_stacks(const void *left, const void *right)
{
	const struct hot_stack *a = *(const struct hot_stack *const *)left;
	const struct hot_stack *b = *(const struct hot_stack *const *)right;

	return (a->stack->number > b->stack->number) - (a->stack->number < b->stack->number);
}

static int compare_spots(const void *left, const void *right)
{
	const struct d9__spot *a = left, *b = right;

	if (a->n != b->n)
		return a->n < b->n ? 1 : -1;
	return (a->stack->number > b->stack->number) - (a->stack->number < b->stack->number);
}

size_t d9__hot_spots(const struct d9__callback *callback, bool off_cpu, struct d9__spot *out,
		     size_t max)
{
	const struct d9__hot *hot = callback->hot;
	struct d9__spot spots[SPOTS_MAX];
	struct hot_stack **sorted;
	size_t n = 0, n_spots = 0;
	void *item;

	if (!hot || !hot->stacks.n)
		return 0;
	sorted = calloc(hot->stacks.n, sizeof(struct hot_stack *));
	if (!sorted)
		return 0;
	for (size_t place = 0; (place = d9__table_next(&hot->stacks, place, &item));)
		sorted[n++] = item;
	qsort(sorted, n, sizeof(struct hot_stack *), compare_stacks);
	for (size_t i = 0; i < n; i++) {
		uint64_t count = off_cpu ? sorted[i]->off : sorted[i]->on;

		/* Around a short call the recorder itself may be found. */
		if (count && sorted[i]->stack->names &&
		    !d9__frame_is_ours(&sorted[i]->stack->names[0]))
			add_to_spots(callback, sorted[i], count, spots, &n_spots);
	}
	free(sorted);
	qsort(spots, n_spots, sizeof(spots[0]), compare_spots);
	n_spots = n_spots < max ? n_spots : max;
	memcpy(out, spots, n_spots * sizeof(spots[0]));
	return n_spots;
}

const struct d9__stack *d9__hot_next(const struct d9__hot *hot, size_t *place, uint64_t *on)
{
	void *item;

	*place = d9__table_next(&hot->stacks, *place, &item);
	if (!*place)
		return NULL;
	*on = ((const struct hot_stack *)item)->on;
	return ((const struct hot_stack *)item)->stack;
}

/* ---- calls out of the program ---- */

/* "write" of "__GI___libc_write", "fork" of "__libc_fork", "sscanf" of "__isoc99_sscanf". */
static const char *plain_name(const char *function)
{
	static const char *const prefixes[] = { "_IO_",	 "GI_",	    "libc_",
						"vdso_", "isoc99_", "isoc23_" };
	size_t i = 0;

	while (i < sizeof(prefixes) / sizeof(prefixes[0])) {
		size_t len = strlen(prefixes[i]);

		/* One alone is a name's own: _exit() is not exit(). */
		if (!strncmp(function, "__", 2))
			len = strspn(function, "_");
		else if (strncmp(function, prefixes[i], len) != 0)
			len = 0;
		if (len && function[len]) {
			function += len;
			i = 0;
		} else {
			i++;
		}
	}
	return function;
}

/*
 * The outermost outside of the program, else of the C++ library's in the program's file.  Of
 * functions that a library's was inlined into, the one that the program called.
 */
const char *d9__hot_called_in(const struct d9__callback *callback, const struct d9__stack *stack)
{
	size_t own = stack->names ? d9__hot_own_frame(callback, stack) : 0;
	size_t leaf = own ? d9__hot_leaf(stack) : 0;
	const struct d9__frame_name *cxx = NULL;

	for (size_t i = own; i > leaf; i--) {
		const struct d9__frame_name *frame = &stack->names[i - 1];

		if (d9__frame_is_ours(frame))
			continue;
		/* Of several addresses none is where it is. */
		if (!d9__frame_is_program(frame))
			return is_nameless(frame) ? frame->module
						  : plain_name(frame->outermost ? frame->outermost
										: frame->function);
		if (!cxx && d9__function_is_cxx(frame->function))
			cxx = frame;
	}
	return cxx ? cxx->function : NULL;
}

static bool is_same_name(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

/* How often |item| counts among the samples of |spot|, or of its callback for NULL. */
static uint64_t votes_of(const struct d9__callback *callback, bool off_cpu,
			 const struct d9__spot *spot, const struct hot_stack *item)
{
	const struct d9__stack *stack = item->stack;
	uint64_t n = off_cpu ? item->off : item->on;

	if (!n || !spot)
		return n;
	if (!stack->names || d9__frame_is_ours(&stack->names[0]) ||
	    !is_same(&spot->stack->names[spot->frame],
		     &stack->names[d9__hot_own_frame(callback, stack)]))
		return 0;
	return n;
}

/*
 * The function outside of the program that more than half of the samples of |spot|, or of all of
 * |callback| for NULL, are in; NULL: none, or too few.  One stack says nothing of it: recursion
 * makes many of one call.  If a majority is anywhere, it outlives the first round.
 */
static const char *majority(const struct d9__callback *callback, bool off_cpu,
			    const struct d9__spot *spot)
{
	uint64_t lead = 0, all = 0, of_most = 0;
	const char *most = NULL;
	void *item;

	for (size_t at = 0; (at = d9__table_next(&callback->hot->stacks, at, &item));) {
		uint64_t n = votes_of(callback, off_cpu, spot, item);
		const char *name =
			n ? d9__hot_called_in(callback, ((struct hot_stack *)item)->stack) : NULL;

		if (is_same_name(name, most)) {
			lead += n;
		} else if (n > lead) {
			most = name;
			lead = n - lead;
		} else {
			lead -= n;
		}
	}
	for (size_t at = 0; most && (at = d9__table_next(&callback->hot->stacks, at, &item));) {
		uint64_t n = votes_of(callback, off_cpu, spot, item);

		all += n;
		if (n &&
		    is_same_name(d9__hot_called_in(callback, ((struct hot_stack *)item)->stack),
				 most))
			of_most += n;
	}
	return 2 * of_most > all && of_most >= D9__HOT_FEW ? most : NULL;
}

const char *d9__hot_called(const struct d9__callback *callback)
{
	return callback->hot ? majority(callback, false, NULL) : NULL;
}

/* ---- words ---- */

static void put_spot(FILE *out, const struct d9__callback *callback, bool off_cpu,
		     const struct d9__spot *spot, uint64_t all)
{
	const struct d9__frame_name *own = &spot->stack->names[spot->frame];
	const char *called = majority(callback, off_cpu, spot);

	/* Of several addresses none is where it is. */
	fprintf(out, "%.0f %% in %s", 100 * (double)spot->n / (double)all,
		is_nameless(own) && spot->stack_n < spot->n ? own->module : own->function);
	if (own->file)
		fprintf(out, " (%s:%u", own->file, own->line);
	if (called)
		fprintf(out, "%sin %s", own->file ? ", " : " (", called);
	else if (!own->file)
		return;
	putc(')', out);
}

char *d9__hot_describe(const struct d9__callback *callback, bool off_cpu)
{
	const struct d9__hot *hot = callback->hot;
	uint64_t all = !hot ? 0 : off_cpu ? hot->off : hot->on;
	struct d9__spot spots[SPOTS_TOLD];
	size_t size,
		n = all < D9__HOT_FEW ? 0 : d9__hot_spots(callback, off_cpu, spots, SPOTS_TOLD);
	char *text = NULL;
	FILE *out;

	if (!n || spots[0].n < D9__HOT_FEW || !(out = open_memstream(&text, &size)))
		return NULL;
	for (size_t i = 0; i < n && spots[i].n >= D9__HOT_FEW; i++) {
		fprintf(out, "%s", i ? ", " : "");
		put_spot(out, callback, off_cpu, &spots[i], all);
	}
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

static bool has_function(const struct d9__stack *stack, const char *function)
{
	for (size_t i = 0; stack->names && i < stack->n; i++)
		if (stack->names[i].function && !strcmp(stack->names[i].function, function))
			return true;
	return false;
}

char *d9__hot_describe_inside(const struct d9__callback *callback, const char *function)
{
	struct d9__hot hot = { .on = 0 };
	struct d9__callback part = { .location = callback->location, .hot = &hot };
	struct hot_stack *copy;
	char *text = NULL;
	void *item;

	if (!callback->hot)
		return NULL;
	for (size_t at = 0; (at = d9__table_next(&callback->hot->stacks, at, &item));) {
		const struct hot_stack *from = item;

		if (!from->on || !has_function(from->stack, function))
			continue;
		copy = hot_stack_of(&hot, from->stack);
		if (!copy)
			break;
		copy->on = from->on;
		hot.on += from->on;
	}
	text = d9__hot_describe(&part, false);
	free_stacks(&hot);
	return text;
}
