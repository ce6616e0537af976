/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "read/event_copy.h"
#include "watch/live_order.h"

int d9__live_order_add(struct d9__live_order *order, const struct d9_event *event)
{
	if (!d9__array_reserve(order->events, &order->capacity, order->n, 1) ||
	    !d9__array_reserve(order->index, &order->index_capacity, order->n, 1) ||
	    d9__event_copy(&order->arena, event, &order->events[order->n]))
		return -ENOMEM;
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
