/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/budget.h"
#include "base/array.h"
#include "read/known_text.h"
#include "read/stack_role.h"
#include "symbol/address_set.h"

#define SPAN_NAME     3 /* of an event that a span is entered: read/catalogue.c */
#define ADDRESS_BYTES (2 * sizeof(struct d9__address) + 3 * sizeof(struct d9__table_entry))

/* The higher, the better does a row tell it. */
static unsigned rank(enum d9__address_role role)
{
	return role == D9__RETURN ? 2 : role == D9__EXECUTING ? 1 : 0;
}

/* |*out|: the item of |address|, made if there is none; NULL if the budget does not allow it.  0 or -ENOMEM. */
static int find_or_add(struct d9__address_set *set, uint64_t address, struct d9__address **out)
{
	size_t number = (size_t)(uintptr_t)d9__table_find(&set->by_address, address);
	int err;

	*out = number ? &set->items[number - 1] : NULL;
	if (number || !d9__budget_take(D9__KEPT_SYMBOLS, ADDRESS_BYTES))
		return 0;
	set->bytes += ADDRESS_BYTES;
	err = d9__array_grow(set->items, set->n) ? 0 : -ENOMEM;
	if (!err)
		err = d9__table_add(&set->by_address, address, (void *)(uintptr_t)(set->n + 1));
	if (err)
		return err;
	*out = &set->items[set->n++];
	**out = (struct d9__address){ .address = address };
	return 0;
}

static int meet(struct d9__address_set *set, uint64_t address, uint64_t ns, enum d9__address_role role)
{
	struct d9__address *item;
	int err = address ? find_or_add(set, address, &item) : 0;

	if (err || !address || !item)
		return err;
	if (!item->met) {
		item->ns = ns;
		item->role = role;
	}
	item->met = true;
	if (rank(role) > rank(item->role))
		item->role = role;
	return 0;
}

static int meet_stacks(struct d9__address_set *set, const struct d9_event *event)
{
	size_t n = d9_schema_fields(event->schema);
	int err = 0;

	for (size_t i = 0; i < n; i++) {
		const struct d9_value *value = &event->values[i];

		if (!value->present || value->type != D9_FIELD_STACK)
			continue;
		for (size_t k = 0; !err && k < value->u.stack.n; k++)
			err = meet(set, value->u.stack.addresses[k], event->timestamp_ns,
				   event->kind != D9_EVENT_ALLOC &&
						   d9__address_is_executing(value->u.stack.addresses, k)
					   ? D9__EXECUTING : D9__RETURN);
	}
	return err;
}

/* The number that |text| is, if it is "0x" and up to 16 digits; else 0, which is no address. */
static uint64_t bare_address(const char *text, size_t len)
{
	char digits[17] = "", *end;
	uint64_t address;

	if (len < 3 || len > 18 || text[0] != '0' || text[1] != 'x')
		return 0;
	memcpy(digits, text + 2, len - 2);
	if (digits[strspn(digits, "0123456789abcdef")])
		return 0;
	address = strtoull(digits, &end, 16);
	return address;
}

/* The address that |text| means: "0x7f01", of a function in no module that the recorder knew, or "server+0x1a2b0". */
static uint64_t address_of(const struct d9__symbolizer *symbolizer, const char *text, size_t len)
{
	uint64_t address = bare_address(text, len);

	return address || !symbolizer ? address : d9__symbolizer_address(symbolizer, text, len);
}

/*
 * "CALLBACK @ SITE" or "CALLBACK", the |k|-th text of |event|.  Without a |symbolizer| only bare addresses count: those
 * of `spawn_loc` in modules are in its task's event.
 */
static int meet_place(struct d9__address_set *set, const struct d9__symbolizer *symbolizer,
		      const struct d9_event *event, unsigned k)
{
	struct d9_text text = d9__known_text(event, k);
	const char *at = text.len ? memmem(text.data, text.len, " @ ", 3) : NULL;
	size_t len = at ? (size_t)(at - text.data) : text.len;
	int err = meet(set, address_of(symbolizer, text.data, len), event->timestamp_ns, D9__ENTRY);

	if (err || !at)
		return err;
	return meet(set, address_of(symbolizer, at + 3, text.len - len - 3), event->timestamp_ns, D9__RETURN);
}

static int meet_spawn(struct d9__address_set *set, const struct d9_event *event)
{
	uint64_t ns = event->timestamp_ns;
	int err = meet(set, d9_event_known_u64(event, D9_TASK_SPAWN_CALLBACK, 0), ns, D9__ENTRY);

	if (!err)
		err = meet(set, d9_event_known_u64(event, D9_TASK_SPAWN_SPAWN_ADDR, 0), ns, D9__RETURN);
	return err ? err : meet_place(set, NULL, event, D9_TASK_SPAWN_SPAWN_LOC);
}

static int take_row(struct d9__address_set *set, const struct d9_event *event)
{
	uint64_t address = d9_event_known_u64(event, D9_SYMBOL_ADDR, 0);
	struct d9__address *item;
	int err = address ? find_or_add(set, address, &item) : 0;

	if (!err && address && item)
		item->has_row = true;
	return err;
}

int d9__address_set_learn(struct d9__address_set *set, const struct d9__symbolizer *symbolizer,
			  const struct d9_event *event)
{
	switch (event->kind) {
	case D9_EVENT_SYMBOL:
		return take_row(set, event);
	case D9_EVENT_TASK_SPAWN:
		return meet_spawn(set, event);
	case D9_EVENT_POLL_START:
		return meet_place(set, NULL, event, D9_POLL_START_SPAWN_LOC);
	case D9_EVENT_SPAN_ENTER:
		return meet_place(set, symbolizer, event, SPAN_NAME);
	case D9_EVENT_SPAN_OPEN:
		return meet_place(set, symbolizer, event, D9_SPAN_OPEN_SPAN_NAME);
	case D9_EVENT_SPAN_CALL:
		return meet_place(set, symbolizer, event, D9_SPAN_CALL_SPAN_NAME);
	case D9_EVENT_LAST_SIGN:
		return meet_place(set, symbolizer, event, D9_LAST_SIGN_SPAN);
	case D9_EVENT_HELPER_RUN:
		return meet_place(set, symbolizer, event, D9_HELPER_RUN_FUNCTION);
	case D9_EVENT_SOURCE_TIME:
		return meet(set, d9_event_known_u64(event, D9_SOURCE_TIME_ADDRESS, 0), event->timestamp_ns, D9__ENTRY);
	default:
		return meet_stacks(set, event);
	}
}

static int compare(const void *left, const void *right)
{
	const struct d9__address *a = left, *b = right;

	return (a->address > b->address) - (a->address < b->address);
}

void d9__address_set_sort(struct d9__address_set *set)
{
	if (set->n)
		qsort(set->items, set->n, sizeof(*set->items), compare);
	d9__table_release(&set->by_address);
}

void d9__address_set_release(struct d9__address_set *set)
{
	free(set->items);
	d9__table_release(&set->by_address);
	d9__budget_give(set->bytes);
	*set = (struct d9__address_set){ 0 };
}
