/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "segment/living_tasks.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/heap.h"
#include "base/time.h"
#include "ring/clock.h"
#include "segment/announcement.h"
#include "segment/dump_tasks.h"

#define RECENT_NS (10 * D9__SECOND_NS)
#define PER_ITEM  256 /* bytes of a segment for each task or span: these take some 40 */

typedef void (*each_fn)(d9__living_span_fn fn, void *arg);

static _Atomic(each_fn) spans_provider;

void d9__living_tasks_provide_spans(void (*each)(d9__living_span_fn fn, void *arg))
{
	atomic_store_explicit(&spans_provider, each, memory_order_relaxed);
}

struct list {
	struct d9__living_tasks *living;
	size_t most;
};

/* Without memory those that are listed are all. */
static void list_span(void *arg, const struct d9__living_span *span)
{
	const struct list *list = arg;
	struct d9__living_tasks *living = list->living;

	if (living->n_spans < list->most && d9__array_grow(living->spans, living->n_spans))
		living->spans[living->n_spans++] = *span;
}

static void release(struct d9__living_tasks *living)
{
	d9__free(living->items);
	d9__free(living->spans);
	*living = (struct d9__living_tasks){ .ns = 0 };
}

static void list_all(struct d9__living_tasks *living, uint64_t file_bytes)
{
	each_fn each = atomic_load_explicit(&spans_provider, memory_order_relaxed);
	struct d9__dump_tasks tasks = { .failed = false };
	uint64_t now_ns = d9__clock_mono_ns(), most = file_bytes / PER_ITEM;

	release(living);
	d9__dump_tasks_list(&tasks, now_ns > RECENT_NS ? now_ns - RECENT_NS : 0);
	living->ns = now_ns;
	living->n = tasks.n < most ? tasks.n : (size_t)most;
	living->items = tasks.items;
	tasks.items = NULL;
	d9__dump_tasks_release(&tasks);
	if (each)
		each(list_span, &(struct list) { .living = living, .most = (size_t)(most - living->n) });
}

static int tell(struct d9__living_tasks *living, struct d9__writer *w)
{
	int err = d9__announcement_write(living->items, living->n, living->ns, w, false, living->ns);

	if (!err && living->n_spans)
		err = d9__announcement_spans(living->spans, living->n_spans, living->ns, w);
	release(living);
	return err == -ENOMEM ? 0 : err;
}

const struct d9__lead_in d9__living_tasks_lead_in = { list_all, tell, release };
