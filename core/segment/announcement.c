/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "segment/announcement.h"

#include <stdlib.h>

#include "base/sort.h"
#include "format/encoder.h"
#include "ring/names.h"

#define NAMES_MAX   64    /* in one batch */
#define BATCH_BYTES 49152 /* begin another behind these */
#define SPAWN_BYTES (5 * D9__VARINT_MAX + 16)
#define OPEN_BYTES  (3 * D9__VARINT_MAX + 1 + 2 * 4)

/* Equal texts side by side: each batch defines its own. */
static int by_names(const void *a, const void *b)
{
	const struct d9__task_spawn *x = a, *y = b;

	if (x->loc != y->loc)
		return x->loc < y->loc ? -1 : 1;
	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	return x->task < y->task ? -1 : x->task > y->task;
}

struct page {
	struct d9__builder builder;
	uint32_t names[NAMES_MAX], n_names; /* handle of each string of its pool */
};

static uint32_t name_id(struct page *page, uint32_t handle)
{
	const struct d9__name *name = d9__name_text(handle);
	uint8_t frame[D9__POOL_ENTRY_FRAME_LEN + D9__NAME_BYTES];

	for (uint32_t i = page->n_names; i-- > 0;)
		if (page->names[i] == handle)
			return i;
	d9__builder_put(&page->builder, frame,
			(size_t)(d9__wire_put_pool_entry(frame, page->n_names, name->text, name->len) -
				 frame));
	page->names[page->n_names] = handle;
	return page->n_names++;
}

static void put_task(struct page *page, const struct d9__task_spawn *task, uint64_t ns)
{
	bool named = task->name != D9__NAME_EMPTY;
	uint32_t loc = name_id(page, task->loc), kind = name_id(page, task->kind);
	uint32_t name = named ? name_id(page, task->name) : 0;
	uint8_t *p = d9__builder_event(&page->builder, D9__EVENT_TASK_SPAWN, ns, SPAWN_BYTES);

	if (p)
		d9__builder_end(&page->builder, d9__task_spawn_put(p, task, loc, kind, name));
}

static int write_page(struct page *page, struct d9__writer *writer, bool real, uint64_t now_ns)
{
	int err = d9__writer_note(writer, &page->builder, real, now_ns);

	d9__builder_begin(&page->builder);
	page->n_names = 0;
	return err;
}

static bool is_full(const struct page *page)
{
	return page->n_names > NAMES_MAX - 3 || page->builder.len > BATCH_BYTES;
}

int d9__announcement_write(struct d9__task_spawn *items, size_t n, uint64_t ns, struct d9__writer *writer,
			   bool real, uint64_t now_ns)
{
	struct page page = { .n_names = 0 };
	int err = 0;

	if (n)
		d9__sort(items, n, sizeof(*items), by_names);
	d9__builder_begin(&page.builder);
	for (size_t i = 0; i < n && !err; i++) {
		if (!i || items[i].task != items[i - 1].task)
			put_task(&page, &items[i], ns);
		if (is_full(&page))
			err = write_page(&page, writer, real, now_ns);
	}
	if (!err)
		err = write_page(&page, writer, real, now_ns);
	d9__builder_release(&page.builder);
	return err;
}

static void put_span(struct page *page, const struct d9__living_span *span, uint64_t ns)
{
	uint32_t name = name_id(page, span->name), origin = name_id(page, span->origin);
	uint8_t *p = d9__builder_event(&page->builder, D9__EVENT_SPAN_OPEN, ns, OPEN_BYTES);

	if (!p)
		return;
	p = d9__varint_put(p, span->id);
	*p++ = span->parent != 0;
	if (span->parent)
		p = d9__varint_put(p, span->parent);
	p = d9__wire_put_u32(p, name);
	p = d9__varint_put(p, span->start_ns);
	d9__builder_end(&page->builder, d9__wire_put_u32(p, origin));
}

int d9__announcement_spans(const struct d9__living_span *spans, size_t n, uint64_t ns,
			   struct d9__writer *writer)
{
	struct page page = { .n_names = 0 };
	int err = 0;

	d9__builder_begin(&page.builder);
	for (size_t i = 0; i < n && !err; i++) {
		put_span(&page, &spans[i], ns);
		if (is_full(&page))
			err = write_page(&page, writer, false, ns);
	}
	if (!err)
		err = write_page(&page, writer, false, ns);
	d9__builder_release(&page.builder);
	return err;
}
