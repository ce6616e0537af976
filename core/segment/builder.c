/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/heap.h"
#include "format/encoder.h"
#include "ring/event_types.h"
#include "segment/builder.h"

static bool reserve(struct d9__builder *b, size_t more)
{
	b->failed = b->failed || !d9__array_reserve(b->data, &b->capacity, b->len, more);
	return !b->failed;
}

void d9__builder_begin(struct d9__builder *b)
{
	*b = (struct d9__builder){ .data = b->data, .capacity = b->capacity };
	if (reserve(b, D9__WIRE_HEADER_LEN))
		b->len = (size_t)(d9__wire_put_header(b->data) - b->data);
}

void d9__builder_release(struct d9__builder *b)
{
	d9__free(b->data);
	*b = (struct d9__builder){ 0 };
}

void d9__builder_put(struct d9__builder *b, const void *bytes, size_t len)
{
	if (!reserve(b, len))
		return;
	memcpy(b->data + b->len, bytes, len);
	b->len += len;
}

static bool is_defined(const struct d9__builder *b, uint16_t type_id)
{
	for (uint32_t i = 0; i < b->n_defined; i++)
		if (b->defined[i] == type_id)
			return true;
	return false;
}

static void define(struct d9__builder *b, uint16_t type_id)
{
	const struct d9__type_frames *frames = d9__event_type_frames(type_id);

	if (!frames || b->n_defined == sizeof(b->defined) / sizeof(b->defined[0])) {
		b->failed = true;
		return;
	}
	d9__builder_put(b, frames->bytes, frames->len);
	b->defined[b->n_defined++] = type_id;
}

bool d9__builder_define(struct d9__builder *b, uint16_t type_id, const void *frames, size_t len)
{
	if (is_defined(b, type_id))
		return true;
	if (b->n_defined == sizeof(b->defined) / sizeof(b->defined[0]))
		return false;
	d9__builder_put(b, frames, len);
	b->defined[b->n_defined++] = type_id;
	return true;
}

uint8_t *d9__builder_event(struct d9__builder *b, uint16_t type_id, uint64_t ns, size_t max_bytes)
{
	uint64_t delta = ns - b->time_base;
	uint8_t *p;

	if (!is_defined(b, type_id))
		define(b, type_id);
	if (!reserve(b, max_bytes + D9__WIRE_TIME_RESET_LEN + 8))
		return NULL;
	p = b->data + b->len;
	if (delta > D9__WIRE_DELTA_MAX || ns < b->time_base || !b->events) {
		p = d9__wire_put_time_reset(p, ns);
		delta = 0;
	}
	b->time_base = ns;
	if (!b->events || ns < b->first_ns)
		b->first_ns = ns;
	if (ns > b->last_ns)
		b->last_ns = ns;
	return d9__wire_put_event_head(p, type_id, (uint32_t)delta);
}

void d9__builder_end(struct d9__builder *b, const uint8_t *end)
{
	b->len = (size_t)(end - b->data);
	b->events++;
}

uint32_t d9__builder_name(struct d9__builder *b, const char *text)
{
	size_t len = strlen(text);

	for (uint32_t i = 0; i < b->n_names; i++)
		if (!strcmp(b->names[i], text))
			return i;
	if (b->n_names == sizeof(b->names) / sizeof(b->names[0]))
		b->failed = true;
	if (!reserve(b, D9__POOL_ENTRY_FRAME_LEN + len))
		return 0;
	b->len = (size_t)(d9__wire_put_pool_entry(b->data + b->len, b->n_names, text, len) -
			  b->data);
	b->names[b->n_names] = text;
	return b->n_names++;
}

static uint32_t hash_of(const uint64_t *addresses, uint32_t n)
{
	uint64_t hash = n;

	for (uint32_t i = 0; i < n; i++)
		hash = (hash ^ addresses[i]) * UINT64_C(0x9e3779b97f4a7c15);
	return (uint32_t)(hash >> 32);
}

uint32_t d9__builder_stack(struct d9__builder *b, const uint64_t *addresses, uint32_t n)
{
	size_t place = hash_of(addresses, n) % (sizeof(b->stacks) / sizeof(b->stacks[0])), bytes = 8 * (size_t)n;

	if (b->stacks[place].at && b->stacks[place].n == n &&
	    !memcmp(b->data + b->stacks[place].at, addresses, bytes))
		return b->stacks[place].id;
	if (!reserve(b, D9__POOL_ENTRY_FRAME_LEN + bytes))
		return 0;
	b->len = (size_t)(d9__wire_put_stack_entry(b->data + b->len, b->n_stacks, addresses, n) - b->data);
	b->stacks[place].id = b->n_stacks;
	b->stacks[place].at = (uint32_t)(b->len - bytes);
	b->stacks[place].n = n;
	return b->n_stacks++;
}
