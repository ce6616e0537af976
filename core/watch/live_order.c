/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "watch/live_order.h"

/* |len| bytes at |from|, copied; |*to| is what is borrowed now.  False: out of memory. */
static bool copy_bytes(struct d9__arena *arena, const void *from, size_t len, const void **to)
{
	void *copy;

	*to = NULL;
	if (!len)
		return true;
	copy = d9__arena_alloc(arena, len);
	if (!copy)
		return false;
	memcpy(copy, from, len);
	*to = copy;
	return true;
}

static bool copy_text(struct d9__arena *arena, struct d9_text *text)
{
	const void *copy;
	bool done = copy_bytes(arena, text->data, text->len, &copy);

	text->data = copy;
	return done;
}

static bool copy_pairs(struct d9__arena *arena, struct d9_value *value)
{
	size_t n = 2 * value->u.string_map.n;
	struct d9_text *pairs = d9__arena_alloc(arena, (n + 1) * sizeof(*pairs));
	bool done = pairs != NULL;

	for (size_t i = 0; done && i < n; i++) {
		pairs[i] = value->u.string_map.pairs[i];
		done = copy_text(arena, &pairs[i]);
	}
	value->u.string_map.pairs = pairs;
	return done;
}

static bool copy_value(struct d9__arena *arena, struct d9_value *value)
{
	const void *copy;
	bool done = true;

	if (!value->present)
		return true;
	switch (value->type) {
	case D9_FIELD_STRING:
	case D9_FIELD_BYTES:
		return copy_text(arena, &value->u.text);
	case D9_FIELD_STACK:
		done = copy_bytes(arena, value->u.stack.addresses,
				  value->u.stack.n * sizeof(*value->u.stack.addresses), &copy);
		value->u.stack.addresses = copy;
		return done;
	case D9_FIELD_STRING_MAP:
		return copy_pairs(arena, value);
	case D9_FIELD_LIST:
	case D9_FIELD_MAP:
		value->present = false;
		return true;
	default:
		return true;
	}
}

int d9__live_order_add(struct d9__live_order *order, const struct d9_event *event)
{
	size_t n = d9_schema_fields(event->schema);
	struct d9_value *values = d9__arena_alloc(&order->arena, (n + 1) * sizeof(*values));

	if (!values || !d9__array_reserve(order->events, &order->capacity, order->n, 1) ||
	    !d9__array_reserve(order->index, &order->index_capacity, order->n, 1))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		values[i] = event->values[i];
		if (!copy_value(&order->arena, &values[i]))
			return -ENOMEM;
	}
	order->events[order->n] = *event;
	order->events[order->n].values = values;
	order->index[order->n] = (struct d9__index_entry) { event->timestamp_ns, order->n };
	order->n++;
	return 0;
}

int d9__live_order_tell(struct d9__live_order *order,
			int (*fn)(void *arg, const struct d9_event *event), void *arg)
{
	struct d9__index_entry *scratch = calloc(order->n + 1, sizeof(*scratch));
	int err = scratch ? 0 : -ENOMEM;

	if (scratch)
		d9__index_sort(order->index, order->n, scratch);
	for (size_t i = 0; i < order->n && !err; i++)
		err = fn(arg, &order->events[order->index[i].offset]);
	free(scratch);
	order->n = 0;
	d9__arena_reset(&order->arena);
	return err;
}

size_t d9__live_order_bytes(const struct d9__live_order *order)
{
	return order->arena.given_bytes +
	       order->n * (sizeof(*order->events) + sizeof(*order->index));
}

void d9__live_order_release(struct d9__live_order *order)
{
	free(order->events);
	free(order->index);
	d9__arena_release(&order->arena);
	*order = (struct d9__live_order) { 0 };
}
