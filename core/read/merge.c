/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "read/merge.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* Times that an entry may move, on average, before all are merged in passes. */
#define MOVED_MOST 8

static bool before(const struct d9__merge_item *a, const struct d9__merge_item *b)
{
	return a->time_ns < b->time_ns || (a->time_ns == b->time_ns && a->order < b->order);
}

static void sift_up(struct d9__merge *merge, size_t at)
{
	struct d9__merge_item item = merge->items[at];

	while (at > 0 && before(&item, &merge->items[(at - 1) / 2])) {
		merge->items[at] = merge->items[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	merge->items[at] = item;
}

void d9__merge_sift(struct d9__merge *merge)
{
	struct d9__merge_item item = merge->items[0];
	size_t at = 0;

	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= merge->n)
			break;
		if (child + 1 < merge->n && before(&merge->items[child + 1], &merge->items[child]))
			child++;
		if (!before(&merge->items[child], &item))
			break;
		merge->items[at] = merge->items[child];
		at = child;
	}
	merge->items[at] = item;
}

int d9__merge_push(struct d9__merge *merge, struct d9__merge_item item)
{
	if (!d9__array_reserve(merge->items, &merge->capacity, merge->n, 1))
		return -ENOMEM;
	merge->items[merge->n++] = item;
	sift_up(merge, merge->n - 1);
	return 0;
}

void d9__merge_pop(struct d9__merge *merge)
{
	merge->items[0] = merge->items[--merge->n];
	if (merge->n)
		d9__merge_settle(merge);
}

void d9__merge_release(struct d9__merge *merge)
{
	free(merge->items);
	*merge = (struct d9__merge) { 0 };
}

/* ---- sorting ---- */

/* Merge a[0..n_a) and b[0..n_b) into |to|; of equal ones, those of |a| first. */
static void merge_runs(const struct d9__index_entry *a, size_t n_a, const struct d9__index_entry *b,
		       size_t n_b, struct d9__index_entry *to)
{
	while (n_a && n_b) {
		if (b->time_ns < a->time_ns) {
			*to++ = *b++;
			n_b--;
		} else {
			*to++ = *a++;
			n_a--;
		}
	}
	memcpy(to, a, n_a * sizeof(*a));
	memcpy(to + n_a, b, n_b * sizeof(*b));
}

/* Where the ascending run that begins at |at| ends. */
static size_t run_end(const struct d9__index_entry *entries, size_t n, size_t at)
{
	for (at++; at < n && entries[at].time_ns >= entries[at - 1].time_ns; at++)
		;
	return at;
}

/* Merge neighbouring runs pairwise.  Returns whether more than one run was there. */
static bool merge_pass(const struct d9__index_entry *from, size_t n, struct d9__index_entry *to)
{
	size_t at = 0;

	if (run_end(from, n, 0) >= n)
		return false;
	while (at < n) {
		size_t mid = run_end(from, n, at);
		size_t end = mid < n ? run_end(from, n, mid) : n;

		merge_runs(from + at, mid - at, from + mid, end - mid, to + at);
		at = end;
	}
	return true;
}

/* Merge runs until one is left: as many times as it takes, however much is out of order. */
static void sort_by_passes(struct d9__index_entry *entries, size_t n,
			   struct d9__index_entry *scratch)
{
	struct d9__index_entry *from = entries, *to = scratch;

	while (merge_pass(from, n, to)) {
		struct d9__index_entry *swap = from;

		from = to;
		to = swap;
	}
	if (from != entries)
		memcpy(entries, from, n * sizeof(*entries));
}

/*
 * Merge the run from |run| up to |end| into the |done| entries in front of it, which are in order.
 * Returns how many entries moved.
 */
static size_t insert_run(struct d9__index_entry *run, const struct d9__index_entry *end,
			 size_t done, struct d9__index_entry *scratch)
{
	struct d9__index_entry *from = run, *to, *begin;
	size_t later = 0;

	for (; later < done && from[-1].time_ns > run->time_ns; from--)
		scratch[later++] = from[-1];
	/* |scratch| has the later ones backwards.  Behind the last of them the run stays as it is.
	 */
	for (begin = to = from, from = run; later; to++)
		*to = from < end && from->time_ns < scratch[later - 1].time_ns ? *from++
									       : scratch[--later];
	return (size_t)(to - begin);
}

void d9__index_sort(struct d9__index_entry *entries, size_t n, struct d9__index_entry *scratch)
{
	size_t moved = 0;

	/* Nearly all that is told late belongs a few places further up. */
	for (size_t done = n ? run_end(entries, n, 0) : 0; done < n;) {
		size_t end = run_end(entries, n, done);

		moved += insert_run(entries + done, entries + end, done, scratch);
		if (moved / MOVED_MOST > n) {
			sort_by_passes(entries, n, scratch);
			return;
		}
		done = end;
	}
}
