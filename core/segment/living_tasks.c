/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "segment/living_tasks.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/heap.h"
#include "ring/clock.h"
#include "segment/announcement.h"
#include "segment/dump_tasks.h"

#define RECENT_NS UINT64_C(10000000000)
#define PER_ITEM  256 /* bytes of a segment for each task or span: these take some 40 */

typedef void (*each_fn)(d9__living_span_fn fn, void *arg);

static _Atomic(each_fn) spans_provider;

void d9__living_tasks_provide_spans(void (*each)(d9__living_span_fn fn, void *arg))
{
	atomic_store_explicit(&spans_provider, each, memory_order_relaxed);
}

struct list {
	struct d9__living_tasks *living;
	size_t capacity, most;
};

/* Without memory those that are listed are all. */
static void list_span(void *arg, const struct d9__living_span *span)
{
	struct list *list = arg;
	struct d9__living_tasks *living = list->living;

	if (living->n_spans == list->most)
		return;
	if (living->n_spans == list->capacity) {
		size_t more = list->capacity ? 2 * list->capacity : 64;
		struct d9__living_span *grown = d9__reallocarray(living->spans, more, sizeof(*grown));

		if (!grown)
			return;
		living->spans = grown;
		list->capacity = more;
	}
	living->spans[living->n_spans++] = *span;
}

void d9__living_tasks_list(struct d9__living_tasks *living, uint64_t file_bytes)
{
	each_fn each = atomic_load_explicit(&spans_provider, memory_order_relaxed);
	struct d9__dump_tasks tasks = { .failed = false };
	uint64_t now_ns = d9__clock_mono_ns(), most = file_bytes / PER_ITEM;

	d9__living_tasks_release(living);
	d9__dump_tasks_list(&tasks, now_ns > RECENT_NS ? now_ns - RECENT_NS : 0);
	living->ns = now_ns;
	living->n = tasks.n < most ? tasks.n : (size_t)most;
	living->items = tasks.items;
	tasks.items = NULL;
	d9__dump_tasks_release(&tasks);
	if (each)
		each(list_span,
		     &(struct list) { .living = living, .most = (size_t)(most - living->n) });
}

int d9__living_tasks_tell(struct d9__living_tasks *living, struct d9__writer *w)
{
	int err = d9__announcement_write(living->items, living->n, living->ns, w, false, living->ns);

	if (!err && living->n_spans)
		err = d9__announcement_spans(living->spans, living->n_spans, living->ns, w);
	d9__living_tasks_release(living);
	return err == -ENOMEM ? 0 : err;
}

void d9__living_tasks_release(struct d9__living_tasks *living)
{
	d9__free(living->items);
	d9__free(living->spans);
	*living = (struct d9__living_tasks){ .ns = 0 };
}
