/* SPDX-License-Identifier: Apache-2.0 */
/* The wakes of a batch that is cut in two anywhere: both parts together tell those of the whole. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <dial9/loop.h>

#include "format/encoder.h"
#include "format/poll_wakes.h"
#include "segment/continuation.h"
#include "support/d9_test.h"

#define MANY 200

static struct d9__walker walker;

struct wakes {
	struct d9__poll_wakes seen;
	struct d9__poll_wake items[MANY];
	size_t n;
	size_t events;	     /* that are no wakes */
	uint32_t cuts[MANY]; /* where events begin */
	size_t n_cuts;
	const uint8_t *batch;
};

static void see_start(struct wakes *wakes, const struct d9__wire_frame *frame)
{
	const uint8_t *p = frame->values;
	uint64_t worker = d9__walk_varint(&p), task, told;
	struct d9__poll_wake wake;

	p++;
	task = d9__walk_varint(&p);
	p += 4;
	told = d9__walk_varint(&p);
	if (d9__poll_wakes_start(&wakes->seen, worker, task, frame->ns, told, &wake) == 1)
		wakes->items[wakes->n++] = wake;
}

static bool see(void *arg, const struct d9__wire_frame *frame)
{
	struct wakes *wakes = arg;
	const uint8_t *p = frame->values;
	struct d9__poll_wake *wake;

	if (frame->tag != D9__WIRE_EVENT)
		return true;
	if (wakes->batch && frame->type_id != D9__EVENT_WAKE)
		wakes->cuts[wakes->n_cuts++] = (uint32_t)(frame->bytes - wakes->batch);
	wakes->events += frame->type_id != D9__EVENT_WAKE;
	switch (frame->type_id) {
	case D9__EVENT_POLL_START:
		see_start(wakes, frame);
		break;
	case D9__EVENT_POLL_END:
		d9__poll_wakes_end(&wakes->seen, d9__walk_varint(&p), frame->ns);
		break;
	case D9__EVENT_UNPARK:
		d9__poll_wakes_unpark(&wakes->seen, d9__walk_varint(&p), frame->ns);
		break;
	default:
		wake = &wakes->items[wakes->n++];
		*wake = (struct d9__poll_wake) { .ns = frame->ns, .waker = d9__walk_varint(&p) };
		wake->woken = d9__walk_varint(&p);
		wake->worker = p[0];
		wake->reason = p[1];
	}
	return true;
}

static struct wakes *read_batch(struct wakes *wakes, const uint8_t *batch, size_t len)
{
	d9__poll_wakes_reset(&wakes->seen);
	CU_ASSERT_EQUAL(d9__walk(&walker, batch, (uint32_t)len, see, wakes), 0);
	return wakes;
}

static int compare(const void *a, const void *b)
{
	const struct d9__poll_wake *x = a, *y = b;

	return x->woken < y->woken ? -1 : x->woken > y->woken;
}

static bool are_equal(struct wakes *a, struct wakes *b)
{
	qsort(a->items, a->n, sizeof(*a->items), compare);
	qsort(b->items, b->n, sizeof(*b->items), compare);
	for (size_t i = 0; i < a->n && a->n == b->n; i++)
		if (a->items[i].ns != b->items[i].ns || a->items[i].waker != b->items[i].waker ||
		    a->items[i].woken != b->items[i].woken ||
		    a->items[i].worker != b->items[i].worker ||
		    a->items[i].reason != b->items[i].reason)
			return false;
	return a->n == b->n && a->events == b->events;
}

static void put_unpark(struct d9__builder *out, uint64_t ns)
{
	uint8_t *p = d9__builder_event(out, D9__EVENT_UNPARK, ns, 64);

	p = d9__varint_put(p, 3);
	*p++ = 0;
	p = d9__varint_put(d9__varint_put(p, 1), 1);
	d9__builder_end(out, d9__wire_put_u32(p, 7));
}

static void put_poll(struct d9__builder *out, uint64_t ns, uint64_t task, uint64_t told,
		     uint64_t end_ns)
{
	uint32_t name = d9__builder_name(out, "here");
	uint8_t *p = d9__builder_event(out, D9__EVENT_POLL_START, ns, 64);

	p = d9__varint_put(p, 3);
	*p++ = 1;
	p = d9__wire_put_u32(d9__varint_put(p, task), name);
	d9__builder_end(out, d9__varint_put(p, told));
	p = d9__builder_event(out, D9__EVENT_POLL_END, end_ns, 16);
	d9__builder_end(out, d9__varint_put(p, 3));
}

/* Each task runs once, so that its number tells its wake.  Every value refers to any earlier wait
 * or poll. */
static void make_batch(struct d9__builder *out)
{
	uint64_t ns = UINT64_C(5000000000), unpark_ns = ns;

	uint8_t *p;

	d9__builder_begin(out);
	/* Recorders define its type in every batch. */
	p = d9__varint_put(d9__varint_put(d9__builder_event(out, D9__EVENT_WAKE, ns, 32), 0), 1);
	*p++ = 3;
	*p++ = D9_WAKE_TIMER;
	d9__builder_end(out, p);
	for (uint64_t task = 2; task < 60; task++) {
		/* Up to five polls back, and at one time in two into what was before the wait. */
		uint64_t back = 20 + task * 7919 % 450 + (task % 2 ? 20000000 : 0);

		if (task % 5 == 2) {
			unpark_ns = ns += 20000000;
			put_unpark(out, ns);
		}
		ns += 50;
		if (task % 3 == 0)
			put_poll(out, ns, task, 1, ns + 40);
		else if (task % 3 == 1)
			put_poll(out, ns, task, back << 4 | D9_WAKE_ACTIVE, ns + 40);
		else
			put_poll(out, ns, task, (ns - unpark_ns + 20) << 4 | D9_WAKE_FD, ns + 40);
		ns += 40;
	}
}

static void test_batch_in_two_parts_tells_the_same_wakes(void)
{
	static struct wakes whole, parts;
	struct d9__builder batch = { 0 }, rest = { 0 }, part = { 0 };
	uint32_t len, end;
	size_t unequal = 0, wakers = 0, wrong_end = 0;

	d9__event_types_init();
	make_batch(&batch);
	len = (uint32_t)batch.len;
	whole = (struct wakes) { .batch = batch.data };
	read_batch(&whole, batch.data, len);
	for (size_t i = 0; i < whole.n; i++)
		wakers += whole.items[i].waker != 0;
	CU_ASSERT(whole.n > 50 && wakers > 5);
	for (size_t i = 1; i < whole.n_cuts; i++) {
		uint32_t taken = whole.cuts[i];

		d9__poll_wakes_release(&parts.seen);
		parts = (struct wakes) { .n = 0 };
		read_batch(&parts, batch.data, taken);
		CU_ASSERT_EQUAL(d9__continuation(&walker, batch.data, taken, len, &rest, NULL), 0);
		read_batch(&parts, rest.data, rest.len);
		unequal += !are_equal(&whole, &parts);
		/* As much as was written of it is found again. */
		for (size_t k = i; k < whole.n_cuts; k += 7) {
			uint32_t at = whole.cuts[k];

			d9__continuation(&walker, batch.data, taken, at, &part, NULL);
			end = (uint32_t)part.len;
			d9__continuation(&walker, batch.data, taken, len, &rest, &end);
			wrong_end += end != at;
		}
	}
	CU_ASSERT_EQUAL(unequal, 0);
	CU_ASSERT_EQUAL(wrong_end, 0);
	d9__poll_wakes_release(&whole.seen);
	d9__poll_wakes_release(&parts.seen);
	d9__builder_release(&batch);
	d9__builder_release(&rest);
	d9__builder_release(&part);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "batch in two parts tells the same wakes",
		  test_batch_in_two_parts_tells_the_same_wakes },
		CU_TEST_INFO_NULL,
	};

	return d9_test_main("continuation", tests);
}
