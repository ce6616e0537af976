/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "format/poll_wakes.h"

#include <errno.h>
#include <string.h>

#include <dial9/loop.h>
#include <dial9/reader.h>

#include "base/array.h"
#include "base/heap.h"
#include "format/definition.h"

#define OF_UNPARK UINT64_C(1)

static struct d9__polls_of_worker *find(struct d9__poll_wakes *seen, uint64_t worker)
{
	if (seen->latest < seen->n && seen->workers[seen->latest].worker == worker)
		return &seen->workers[seen->latest];
	for (size_t i = 0; i < seen->n; i++)
		if (seen->workers[i].worker == worker) {
			seen->latest = i;
			return &seen->workers[i];
		}
	return NULL;
}

static struct d9__polls_of_worker *obtain(struct d9__poll_wakes *seen, uint64_t worker)
{
	struct d9__polls_of_worker *polls = find(seen, worker);
	size_t capacity = seen->capacity;

	if (polls || seen->n == D9__POLL_WAKES_WORKERS)
		return polls;
	if (!d9__array_reserve(seen->workers, &seen->capacity, seen->n, 1))
		return NULL;
	for (; capacity < seen->capacity; capacity++)
		seen->workers[capacity] = (struct d9__polls_of_worker) { 0 };
	polls = &seen->workers[seen->n++];
	*polls = (struct d9__polls_of_worker) { .worker = worker,
						.polls = polls->polls,
						.capacity = polls->capacity };
	return polls;
}

void d9__poll_wakes_reset(struct d9__poll_wakes *seen)
{
	seen->n = seen->latest = 0;
	seen->part = false;
}

void d9__poll_wakes_release(struct d9__poll_wakes *seen)
{
	for (size_t i = 0; i < seen->capacity; i++)
		d9__free(seen->workers[i].polls);
	d9__free(seen->workers);
	*seen = (struct d9__poll_wakes) { 0 };
}

int d9__poll_wakes_unpark(struct d9__poll_wakes *seen, uint64_t worker, uint64_t ns)
{
	struct d9__polls_of_worker *polls = obtain(seen, worker);

	if (!polls)
		return seen->n == D9__POLL_WAKES_WORKERS ? 0 : -ENOMEM;
	polls->unpark_ns = ns;
	polls->unpark_part = seen->part;
	return 0;
}

void d9__poll_wakes_end(struct d9__poll_wakes *seen, uint64_t worker, uint64_t ns)
{
	struct d9__polls_of_worker *polls = find(seen, worker);

	if (!polls || !polls->open)
		return;
	polls->polls[polls->n - 1].end_ns = ns;
	polls->open = false;
}

/* The poll that was open at |ns|, or NULL.  It is near the end, nearly always. */
static const struct d9__poll_span *open_at(const struct d9__polls_of_worker *polls, uint64_t ns)
{
	size_t low = 0, high = polls->n;

	if (high && polls->polls[high - 1].start_ns < ns)
		low = high - 1;
	else if (high)
		high--;
	/* All before |low| began before |ns|, none from |high| on did. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (polls->polls[middle].start_ns < ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low && polls->polls[low - 1].end_ns >= ns ? &polls->polls[low - 1] : NULL;
}

static void describe(const struct d9__poll_wakes *seen, const struct d9__polls_of_worker *polls,
		     uint64_t ns, uint64_t told, struct d9__poll_wake *out)
{
	const struct d9__poll_span *waker = NULL;

	out->reason = told & 0xf;
	if (told == OF_UNPARK) {
		out->ns = polls->unpark_ns ? polls->unpark_ns : ns;
		out->refers_back = polls->unpark_ns && polls->unpark_part != seen->part;
		return;
	}
	out->ns = ns - (told >> 4);
	if (out->reason != D9_WAKE_FD && out->reason != D9_WAKE_SIGNAL)
		waker = open_at(polls, out->ns);
	if (waker && out->reason == D9_WAKE_DEFERRED && waker->task == out->woken &&
	    waker->end_ns == out->ns)
		waker = NULL;
	out->waker = waker ? waker->task : 0;
	out->refers_back = waker && waker->part != seen->part;
}

int d9__poll_wakes_start(struct d9__poll_wakes *seen, uint64_t worker, uint64_t task, uint64_t ns,
			 uint64_t told, struct d9__poll_wake *out)
{
	struct d9__polls_of_worker *polls = obtain(seen, worker);

	if (!polls)
		return seen->n == D9__POLL_WAKES_WORKERS ? 0 : -ENOMEM;
	*out = (struct d9__poll_wake) { .woken = task, .worker = worker };
	if (told)
		describe(seen, polls, ns, told, out);
	if (seen->times_only)
		return told != 0;
	if (!d9__array_reserve(polls->polls, &polls->capacity, polls->n, 1))
		return -ENOMEM;
	/* Where an end was lost, the next begin ends it. */
	if (polls->open)
		polls->polls[polls->n - 1].end_ns = ns;
	polls->polls[polls->n++] = (struct d9__poll_span) { ns, UINT64_MAX, task, seen->part };
	polls->open = true;
	return told != 0;
}

/* ---- by fields ---- */

struct field {
	const char *name;
	uint8_t type;
};

/* Just as recorders write them; other fields may follow. */
static const struct field start_fields[] = {
	{ "worker_id", D9_FIELD_VARINT }, { "local_queue", D9_FIELD_U8 },
	{ "task_id", D9_FIELD_VARINT },	  { "spawn_loc", D9_FIELD_POOLED_STRING },
	{ "wake", D9_FIELD_VARINT },	  { NULL, 0 }
};
static const struct field end_fields[] = { { "worker_id", D9_FIELD_VARINT }, { NULL, 0 } };
static const struct field unpark_fields[] = { { "worker_id", D9_FIELD_VARINT },
					      { "local_queue", D9_FIELD_U8 },
					      { "cpu_time_ns", D9_FIELD_VARINT },
					      { "sched_wait_ns", D9_FIELD_VARINT },
					      { "tid", D9_FIELD_U32 },
					      { NULL, 0 } };

static bool begins_with(const struct d9_schema *schema, const struct field *wanted)
{
	for (uint32_t i = 0; wanted[i].name; i++)
		if (i >= schema->n_fields || strcmp(schema->fields[i].name, wanted[i].name) ||
		    schema->fields[i].type != wanted[i].type || schema->fields[i].optional)
			return false;
	return schema->has_timestamp;
}

bool d9__poll_wakes_tell(const struct d9_schema *schema)
{
	switch (schema->kind) {
	case D9_EVENT_POLL_START:
		return begins_with(schema, start_fields);
	case D9_EVENT_POLL_END:
		return begins_with(schema, end_fields);
	case D9_EVENT_WORKER_UNPARK:
		return begins_with(schema, unpark_fields);
	default:
		return false;
	}
}

/* Pass worker_id, local_queue, task_id and spawn_loc: behind them. */
static const uint8_t *pass_start(struct d9__cursor *in, uint64_t *worker, uint64_t *task)
{
	return d9__cursor_varint(in, worker) && d9__cursor_skip(in, 1) &&
			       d9__cursor_varint(in, task) && d9__cursor_skip(in, 4)
		       ? in->p
		       : NULL;
}

const uint8_t *d9__poll_wakes_place(struct d9__cursor in, const uint8_t **end)
{
	uint64_t worker, task, told;
	const uint8_t *place = pass_start(&in, &worker, &task);

	d9__cursor_varint(&in, &told);
	*end = in.p;
	return place;
}

int d9__poll_wakes_see(struct d9__poll_wakes *seen, const struct d9_schema *schema,
		       struct d9__cursor in, uint64_t ns, struct d9__poll_wake *out)
{
	uint64_t worker, task, told;

	switch (schema->kind) {
	case D9_EVENT_POLL_START:
		if (!pass_start(&in, &worker, &task) || !d9__cursor_varint(&in, &told))
			return 0;
		return d9__poll_wakes_start(seen, worker, task, ns, told, out);
	case D9_EVENT_WORKER_UNPARK:
		return d9__cursor_varint(&in, &worker) ? d9__poll_wakes_unpark(seen, worker, ns)
						       : 0;
	default:
		if (!seen->times_only && d9__cursor_varint(&in, &worker))
			d9__poll_wakes_end(seen, worker, ns);
		return 0;
	}
}
