/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/budget.h"
#include "base/array.h"
#include "export/profile.h"
#include "export/profile_calls.h"
#include "read/known_text.h"

/* |ns| in nanoseconds after the first event. */
static uint64_t offset_of(const struct d9__profile *profile, uint64_t ns)
{
	return ns > profile->origin_ns ? ns - profile->origin_ns : 0;
}

/* Keep |call| if its worker is wanted and a part of it lies between --from and --to. */
static void add(struct d9__profile *profile, struct d9__profile_call call)
{
	const struct d9__profile_filter *wanted = &profile->wanted;
	struct d9__profile_calls *calls = profile->calls;

	call.start_ns = offset_of(profile, call.start_ns);
	call.end_ns = offset_of(profile, call.end_ns);
	if (calls->err || call.end_ns < call.start_ns || call.end_ns < wanted->from_ns || call.start_ns > wanted->to_ns ||
	    (wanted->has_worker && call.worker != wanted->worker))
		return;
	if (calls->n == D9__PROFILE_CALLS_MAX) {
		d9__budget_leave_out(D9__KEPT_CALLS, 1);
		return;
	}
	if (!d9__budget_take(D9__KEPT_CALLS, 2 * sizeof(call)))
		return;
	calls->err = !d9__array_grow(calls->items, calls->n);
	call.number = calls->n;
	if (!calls->err)
		calls->items[calls->n++] = call;
}

static void on_piece(void *context, struct d9__worker *worker, const struct d9__piece *piece)
{
	const struct d9__profile *profile = context;

	if (piece->end_ns - piece->start_ns >= profile->wanted.min_ns)
		add(context, (struct d9__profile_call){ .start_ns = piece->start_ns,
							.end_ns = piece->end_ns,
							.worker = worker->id,
							.callback = piece->task->callback });
}

/* A function of the program that the loop library called inside of a call of its own. */
static void on_function(void *context, const struct d9__call_end *call)
{
	const struct d9__profile *profile = context;

	if (call->end_ns - call->start_ns >= profile->wanted.min_ns)
		add(context, (struct d9__profile_call) { .start_ns = call->start_ns,
							 .end_ns = call->end_ns,
							 .worker = call->worker,
							 .callback = call->callback });
}

static void on_span(void *context, const struct d9__profile_thread *thread, const char *name, uint64_t from_ns,
		    uint64_t to_ns)
{
	if (thread->has_worker)
		add(context, (struct d9__profile_call){ .start_ns = from_ns,
							.end_ns = to_ns,
							.worker = thread->worker,
							.name = name });
}

void d9__profile_calls_want(struct d9__profile_calls *calls, struct d9__profile *profile)
{
	profile->calls = calls;
	profile->analysis.on_piece = on_piece;
	profile->analysis.on_piece_context = profile;
	profile->analysis.spans.on_call =
		(struct d9__call_hook) { .take = on_function, .context = profile };
	profile->spans.on_leave = on_span;
	profile->spans.context = profile;
}

int d9__profile_calls_take(struct d9__profile *profile, const struct d9_event *event)
{
	const struct d9_value *holder = d9_event_known(event, D9_BLOCKING_CALL_HOLDER_TID);
	struct d9_text function = d9__known_text(event, D9_BLOCKING_CALL_FUNCTION);
	uint64_t ns = d9_event_known_u64(event, D9_BLOCKING_CALL_DURATION_NS, 0), start_ns = event->timestamp_ns;
	struct d9__profile_calls *calls = profile->calls;
	uint32_t number;

	if (d9__texts_number(&calls->names, function.data, function.len, &number))
		return -ENOMEM;
	/* Waits in GLib's poll(), which say nothing of a lock, have the time when they ended. */
	if (!holder || !holder->present)
		start_ns -= ns < start_ns ? ns : start_ns;
	add(profile, (struct d9__profile_call){
			     .start_ns = start_ns,
			     .end_ns = ns > UINT64_MAX - start_ns ? UINT64_MAX : start_ns + ns,
			     .worker = d9_event_known_u64(event, D9_BLOCKING_CALL_WORKER_ID, 0),
			     .name = function.len ? calls->names.items[number] : "[blocked]",
		     });
	return calls->err;
}

static int compare(const void *left, const void *right)
{
	const struct d9__profile_call *a = left, *b = right;

	if (a->worker != b->worker)
		return a->worker < b->worker ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	if (a->end_ns != b->end_ns)
		return a->end_ns > b->end_ns ? -1 : 1;
	return a->number > b->number ? -1 : a->number < b->number;
}

int d9__profile_calls_finish(struct d9__profile *profile)
{
	struct d9__profile_calls *calls = profile->calls;

	if (calls->n)
		qsort(calls->items, calls->n, sizeof(*calls->items), compare);
	return calls->err;
}

void d9__profile_calls_release(struct d9__profile_calls *calls)
{
	free(calls->items);
	d9__texts_release(&calls->names);
}
