/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/budget.h"
#include "analyze/shape.h"
#include "analyze/spans.h"
#include "analyze/stalls.h"
#include "base/array.h"

#define ORIGIN_END '\1'
#define SITE_MARK  " @ "
#define MANY_SPANS 20
#define OTHERS     "\1(left out)" /* an origin and a name, as all keys are */
#define TYPE_BYTES 1024           /* its distribution, to begin with */
#define SPAN_BYTES (sizeof(struct span) + 3 * sizeof(struct d9__table_entry))

struct span {
	uint64_t id;
	struct d9__span_type *type;    /* NULL for an adapter's */
	struct d9__callback *callback; /* NULL for the program's own */
	struct d9__worker *worker;     /* of the last enter */
	uint64_t number;               /* of the callback's calls, from 0 */
	uint64_t run, caller, piece;   /* of the callback: struct d9__call_end */
	bool outermost;		       /* of the functions that the library called */
	unsigned on_before, off_before; /* samples of the call that it is in, when it began */
	uint64_t task_id;              /* whose poll covered the first enter, or 0 */
	uint64_t nested_ns;            /* of that call so far, in loops that it ran */
	uint64_t told_ns, samples;     /* of the poll that ran when it was entered, up to then */
	uint64_t inner_ns, inner_told_ns; /* of the callback's other runs in it, up to then */
	bool entered;
	bool told; /* it began before what is known of it */
	bool with_parent;
	uint64_t first_ns, enter_ns, exit_ns; /* exit_ns 0: never left */
	uint64_t active_ns, active_in_polls_ns, idle_ns;
	bool closed;
};

void d9__spans_release(struct d9__spans *spans)
{
	void *span;

	for (size_t place = 0; (place = d9__table_next(&spans->open, place, &span));)
		free(span);
	d9__table_release(&spans->open);
	for (size_t i = 0; i < spans->n; i++) {
		d9__histogram_release(&spans->items[i]->durations);
		free(spans->items[i]);
	}
	free(spans->items);
	d9__texts_release(&spans->keys);
	*spans = (struct d9__spans){ 0 };
}

static int add_type(struct d9__spans *spans, const char *key)
{
	struct d9__span_type *type =
		d9__array_grow(spans->items, spans->n) ? calloc(1, sizeof(*type)) : NULL;

	if (!type)
		return -ENOMEM;
	/* The origin is not terminated: its reader stops at ORIGIN_END.  Of a key cut short the name may be gone. */
	type->origin = key;
	type->name = strchrnul(key, ORIGIN_END);
	type->name += *type->name != '\0';
	spans->items[spans->n++] = type;
	return 0;
}

static struct d9__span_type *type_of(struct d9__spans *spans, const char *origin, const char *name,
				     size_t name_len)
{
	size_t origin_len = strlen(origin), len = origin_len + 1 + name_len;
	char *key = malloc(len);
	uint32_t number = 0;
	int err;

	if (!key)
		return NULL;
	memcpy(key, origin, origin_len);
	key[origin_len] = ORIGIN_END;
	memcpy(key + origin_len + 1, name, name_len);
	spans->keys.others = OTHERS;
	spans->keys.each = sizeof(struct d9__span_type) + TYPE_BYTES;
	err = d9__texts_number(&spans->keys, key, len, &number);
	free(key);
	while (!err && number >= spans->n)
		err = add_type(spans, spans->keys.items[spans->n]);
	return err ? NULL : spans->items[number];
}

static bool is_adapter_span(const struct d9__span_event *event)
{
	return memmem(event->name, event->name_len, SITE_MARK, strlen(SITE_MARK)) != NULL;
}

static struct span *new_span(struct d9__spans *spans, struct d9__callbacks *callbacks,
			     struct d9__worker *worker, const struct d9__span_event *event, bool *left_out)
{
	struct span *span;

	*left_out = !d9__budget_take(D9__KEPT_SPANS, SPAN_BYTES);
	span = *left_out ? NULL : calloc(1, sizeof(*span));
	if (!span)
		return NULL;
	span->id = event->id;
	span->first_ns = event->ns;
	span->with_parent = event->has_parent;
	if (is_adapter_span(event))
		span->callback = d9__callbacks_at(callbacks, event->name, event->name_len);
	else
		span->type = type_of(spans, event->origin, event->name, event->name_len);
	if (worker->piece.open)
		span->task_id = worker->piece.task->id;
	if ((!span->callback && !span->type) || d9__table_add(&spans->open, event->id, span)) {
		free(span);
		return NULL;
	}
	return span;
}

/* Samples in the call of |piece| so far. */
static unsigned samples_of_call(const struct d9__piece *piece, bool off_cpu)
{
	const struct d9__call *call = &piece->task->call;
	unsigned before = !piece->resumed ? 0 : off_cpu ? call->off_samples : call->on_samples;

	return before + (off_cpu ? piece->off_samples : piece->on_samples);
}

/* The loop library calls a function of the program. */
static void enter_user(struct d9__piece *piece, struct span *span)
{
	const struct d9__callback_on *on = d9__callback_on(span->callback, span->worker->number);

	span->nested_ns = piece->resumed ? piece->task->call.nested_ns : 0;
	span->caller = piece->run;
	span->piece = piece->number;
	if (on && on->inner_piece == piece->number) {
		span->inner_ns = on->inner.ns;
		span->inner_told_ns = on->inner.told_ns;
	}
	if (piece->users.open++)
		return;
	span->outermost = true;
	span->on_before = samples_of_call(piece, false);
	span->off_before = samples_of_call(piece, true);
	piece->users.run = span->run;
	piece->users.since_ns = span->enter_ns;
	piece->users.told_since_ns = piece->told_ns;
	piece->users.callback = span->callback;
	if (!span->callback->caller)
		span->callback->caller = piece->task->callback;
}

/* It returned at |ns|: how long loops that it ran took meanwhile. */
static uint64_t leave_user(const struct span *span, uint64_t ns)
{
	struct d9__piece *piece = &span->worker->piece;

	if (!piece->open || piece->task->id != span->task_id)
		return 0;
	if (piece->users.open && --piece->users.open == 0)
		d9__piece_leave_users(span->worker, ns);
	return piece->resumed ? piece->task->call.nested_ns - span->nested_ns : 0;
}

int d9__span_enter(struct d9__spans *spans, struct d9__callbacks *callbacks,
		   struct d9__worker *worker, const struct d9__span_event *event)
{
	struct span *span = d9__table_find(&spans->open, event->id);
	bool left_out;

	if (span && span->entered)
		return 0;
	if (!span) {
		span = new_span(spans, callbacks, worker, event, &left_out);
		if (!span)
			return left_out ? 0 : -ENOMEM;
		if (span->callback) {
			span->callback->span = true;
			if (d9__callback_begin(span->callback, worker->number,
					       worker->piece.open ? worker->piece.task->id : 0))
				return -ENOMEM;
			span->number = span->callback->calls - 1;
			span->run = ++callbacks->runs;
		}
	}
	span->entered = true;
	span->worker = worker;
	span->enter_ns = event->ns;
	span->told_ns = worker->piece.open ? worker->piece.told_ns : 0;
	span->samples = worker->piece.open ? worker->piece.on_samples : 0;
	if (span->callback && worker->piece.open)
		enter_user(&worker->piece, span);
	return 0;
}

int d9__span_open(struct d9__spans *spans, struct d9__callbacks *callbacks,
		  struct d9__worker *none, const struct d9__span_event *event)
{
	struct span *span;
	bool left_out;

	if (d9__table_find(&spans->open, event->id) || is_adapter_span(event))
		return 0;
	span = new_span(spans, callbacks, none, event, &left_out);
	if (!span)
		return left_out ? 0 : -ENOMEM;
	span->worker = none;
	span->told = true;
	return 0;
}

static void forget(struct d9__spans *spans, struct span *span)
{
	d9__table_remove(&spans->open, span->id);
	free(span);
	d9__budget_give(SPAN_BYTES);
}

/* Of the stay that ends, what calls that blocked told in the poll that runs. */
static uint64_t told_of(const struct span *span)
{
	const struct d9__piece *piece = &span->worker->piece;
	uint64_t before_ns = span->enter_ns >= piece->start_ns ? span->told_ns : 0;

	return piece->told_ns > before_ns ? piece->told_ns - before_ns : 0;
}

/* Let the poll that runs know the function that has most of it. */
static void offer_run(const struct span *span, uint64_t ns)
{
	struct d9__piece *piece = &span->worker->piece;
	struct d9__callback_on *on = d9__callback_on(span->callback, span->worker->number);
	struct d9__inner alone = { .runs = 0 }, *inner = on ? &on->inner : &alone;
	/* Runs since it began lie in it. */
	bool within = span->piece == piece->number;

	if (on && on->inner_piece != piece->number) {
		on->inner_piece = piece->number;
		on->inner = alone;
	}
	inner->callback = span->callback;
	inner->runs++;
	inner->ns = (within ? span->inner_ns : 0) + ns;
	inner->told_ns = (within ? span->inner_told_ns : 0) + told_of(span);
	if (ns > inner->longest_ns) {
		inner->longest_ns = ns;
		inner->longest = span->number;
	}
	if (piece->inner.callback == span->callback || inner->ns > piece->inner.ns)
		piece->inner = *inner;
}

/* Let the poll that runs know its longest span. */
static void offer_to_poll(const struct span *span, uint64_t ns)
{
	struct d9__piece *piece = &span->worker->piece;

	if (!piece->open)
		return;
	if (span->callback) {
		offer_run(span, ns);
	} else if (span->enter_ns >= piece->start_ns && ns > piece->span_ns) {
		piece->span = span->type->name;
		piece->span_ns = ns;
	}
}

/* The part of the stay that lies in polls of the owning task: the poll that runs, or just ended. */
static uint64_t part_in_polls(const struct span *span, uint64_t ns)
{
	const struct d9__piece *piece = &span->worker->piece;
	uint64_t start = span->enter_ns, end = ns;

	if (!piece->task || span->task_id == 0)
		return end - start;
	if (piece->task->id != span->task_id)
		return 0;
	if (start < piece->start_ns)
		start = piece->start_ns;
	if (!piece->open && end > piece->end_ns)
		end = piece->end_ns;
	return end > start ? end - start : 0;
}

/* Where the time went of a stay that ends at |ns|: of its part in the poll that runs, as that will be known. */
static void account_stay(struct span *span, struct d9__account *account, uint64_t ns)
{
	struct d9__worker *worker = span->worker;
	const struct d9__piece *piece = &worker->piece;
	uint64_t from_ns = span->enter_ns > piece->start_ns ? span->enter_ns : piece->start_ns;
	bool within = span->enter_ns >= piece->start_ns;

	if (piece->open && piece->task->id == span->task_id) {
		d9__time_period_inside(&worker->period, account, ns - from_ns, told_of(span));
		if (!span->callback)
			account->samples += piece->on_samples - (within ? span->samples : 0);
	} else if (!piece->open && span->task_id == 0 && worker->unpark.valid && span->enter_ns >= worker->unpark.ns &&
		   span->enter_ns >= piece->end_ns) {
		d9__time_period_short(&worker->period, account, ns - span->enter_ns);
	}
}

static struct d9__account *account_of(const struct span *span)
{
	return span->callback ? d9__callback_time(span->callback, span->worker->number)
			      : &span->type->time;
}

static void tell_call(void (*take)(void *context, const struct d9__call_end *call), void *context,
		      const struct span *span, uint64_t ns)
{
	const struct d9__piece *piece = &span->worker->piece;
	bool inside = span->outermost && piece->open && piece->task->id == span->task_id;
	struct d9__call_end end = { .callback = span->callback,
				    .worker = span->worker->id,
				    .task = span->task_id,
				    .run = span->run,
				    .caller = span->caller,
				    .piece = span->piece,
				    .start_ns = span->enter_ns,
				    .ns = ns,
				    .told_ns = span->worker->piece.open ? told_of(span) : 0,
				    .end_ns = span->exit_ns,
				    .delay_ns = UINT64_MAX };

	if (inside) {
		end.on_samples = samples_of_call(piece, false) - span->on_before;
		end.off_samples = samples_of_call(piece, true) - span->off_before;
	}
	if (take)
		take(context, &end);
}

int d9__span_exit(struct d9__spans *spans, uint64_t id, uint64_t ns)
{
	struct span *span = d9__table_find(&spans->open, id);
	uint64_t stay_ns;

	/* Of a span that was told it is not known since when a thread was inside. */
	if (span && span->told && !span->entered)
		span->exit_ns = ns;
	if (!span || !span->entered)
		return 0;
	stay_ns = ns - span->enter_ns;
	span->entered = false;
	span->exit_ns = ns;
	span->active_ns += stay_ns;
	span->active_in_polls_ns += part_in_polls(span, ns);
	account_stay(span, account_of(span), ns);
	if (span->callback) {
		uint64_t nested_ns = leave_user(span, ns);

		stay_ns -= nested_ns < stay_ns ? nested_ns : stay_ns;
	}
	offer_to_poll(span, stay_ns);
	if (span->callback) {
		int err = d9__callback_end(span->callback, stay_ns);

		tell_call(spans->on_call.take, spans->on_call.context, span, stay_ns);
		/* Of a long one it is known only behind the end of its poll what the kernel took from it. */
		if (!err && (stay_ns < D9__STALL_NS || !span->worker->piece.open))
			err = d9__shape_add(span->callback, span->number, stay_ns);
		forget(spans, span);
		return err;
	}
	return 0;
}

int d9__spans_end_of(struct d9__spans *spans, const struct d9__worker *worker, uint64_t ns,
		     struct d9__callback **innermost, uint64_t *since_ns)
{
	size_t place = 0;
	void *item;
	int err = 0;

	while (!err && (place = d9__table_next(&spans->open, place, &item))) {
		const struct span *span = item;

		if (!span->callback || !span->entered || span->worker != worker || span->enter_ns > ns)
			continue;
		if (span->enter_ns > *since_ns) {
			*since_ns = span->enter_ns;
			*innermost = span->callback;
		}
		err = d9__span_exit(spans, span->id, ns);
		place = 0; /* it is out of the table, and others may have moved */
	}
	return err;
}

static int finish(struct d9__spans *spans, struct span *span)
{
	struct d9__span_type *type = span->type;
	int err = 0;

	if (type) {
		type->spans++;
		type->with_parent += span->with_parent;
		type->active_ns += span->active_ns;
		type->active_in_polls_ns += span->active_in_polls_ns;
		type->idle_ns += span->idle_ns;
		type->unclosed += !span->closed;
		spans->finished++;
		if (span->entered || (span->exit_ns == 0 && !span->told)) {
			type->unmatched++;
			spans->unmatched++;
		} else if (span->exit_ns) {
			err = d9__histogram_add(&type->durations, span->exit_ns - span->first_ns);
		}
	}
	return err;
}

/* Add a span that no thread was ever inside: it is known by its close alone. */
static int close_unentered(struct d9__spans *spans, const struct d9__span_end *end)
{
	struct d9__span_type *type;

	if (!end->never_entered || !end->start_ns)
		return 0;
	type = type_of(spans, end->origin, end->name, end->name_len);
	if (!type)
		return -ENOMEM;
	type->spans++;
	type->with_parent += end->has_parent;
	type->idle_ns += end->ns - end->start_ns;
	spans->finished++;
	return 0;
}

/* The recorder knows more than events tell: threads inside at the same time, lost events. */
static void settle(struct span *span, const struct d9__span_end *end)
{
	uint64_t start_ns = end->start_ns && end->start_ns < span->first_ns ? end->start_ns :
									      span->first_ns;
	uint64_t took_ns = end->ns > start_ns ? end->ns - start_ns : 0;

	if (end->active_ns)
		span->active_ns = end->active_ns;
	span->idle_ns = took_ns > span->active_ns ? took_ns - span->active_ns : 0;
	span->closed = true;
}

int d9__span_close(struct d9__spans *spans, const struct d9__span_end *end)
{
	struct span *span = d9__table_find(&spans->open, end->id);
	struct d9__piece *piece = span ? &span->worker->piece : NULL;
	int err;

	if (!span)
		return close_unentered(spans, end);
	if (span->type && piece->open && span->first_ns >= piece->start_ns)
		piece->whole_spans++;
	settle(span, end);
	err = finish(spans, span);
	forget(spans, span);
	return err;
}

void d9__spans_poll_end(struct d9__spans *spans, const struct d9__piece *piece)
{
	if (piece->whole_spans > spans->whole_in_poll_max)
		spans->whole_in_poll_max = piece->whole_spans;
	spans->polls_over_20 += piece->whole_spans > MANY_SPANS;
}

int d9__span_add(struct d9__spans *spans, const struct d9__span_end *end)
{
	struct d9__span_type *type = type_of(spans, end->origin, end->name, end->name_len);

	if (!type)
		return -ENOMEM;
	type->spans++;
	type->active_ns += end->active_ns;
	type->active_in_polls_ns += end->active_ns;
	spans->finished++;
	return d9__histogram_add(&type->durations, end->active_ns);
}

int d9__spans_finish(struct d9__spans *spans)
{
	void *span;
	int err = 0;

	for (size_t place = 0; !err && (place = d9__table_next(&spans->open, place, &span));) {
		const struct span *open = span;

		if (open->callback)
			tell_call(spans->on_call.take_unended, spans->on_call.context, open, 0);
		err = finish(spans, span);
	}
	return err;
}
