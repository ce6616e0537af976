/* SPDX-License-Identifier: Apache-2.0 */
/* Spans of a query: put together of their events. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/budget.h"
#include "query/query_events.h"
#include "query/query_spans.h"
#include "read/known_text.h"

#define NO_WORKER 255u

struct span {
	uint64_t id, parent; /* parent 0: none */
	uint64_t worker, task;
	uint64_t first_ns, enter_ns, last_ns, active_ns, enters;
	bool entered, told, callback; /* told: it began before what is known of it */
	size_t size;  /* of all this */
	char *origin; /* behind the name, in the same piece of memory */
	char name[];
};

/* "SpanEnter:origin", "SpanEnter__origin", "SpanEnterEvent" */
static const char *origin_of(const struct d9_event *event)
{
	const char *name = d9_event_name(event) + strlen("SpanEnter");

	if (*name == ':')
		return name + 1;
	return !strncmp(name, "__", 2) ? name + 2 : "";
}

static struct span *new_span(struct d9__query_process *process, uint64_t id, struct d9_text name,
			     struct d9_text origin)
{
	size_t size = sizeof(struct span) + name.len + origin.len + 2;
	struct span *span;

	if (!d9__budget_take(D9__KEPT_SPANS, size))
		return NULL;
	span = calloc(1, size);
	if (!span || d9__table_add(&process->spans, id, span)) {
		free(span);
		process->out_of_memory = true;
		return NULL;
	}
	span->id = id;
	span->size = size;
	if (name.len)
		memcpy(span->name, name.data, name.len);
	span->origin = span->name + name.len + 1;
	if (origin.len)
		memcpy(span->origin, origin.data, origin.len);
	span->worker = NO_WORKER;
	span->callback = memmem(span->name, name.len, " @ ", 3) != NULL;
	return span;
}

static void put_span(struct d9__query_process *process, const struct span *span, bool closed)
{
	struct d9__span_row row = {
		.process = process->number,
		.id = { span->id, span->id },
		.parent = { span->parent, span->parent },
		.name = span->name,
		.origin = span->origin,
		.worker = { span->worker != NO_WORKER, span->worker },
		.task = { span->task, span->task },
		.first_ns = span->first_ns,
		.last_ns = { span->last_ns, span->last_ns },
		.active_ns = span->active_ns,
		.enters = span->enters,
		.closed = closed,
		.callback = span->callback,
	};

	d9__query_put(process->rows, D9__QUERY_SPANS, &row);
}

static void forget(struct d9__query_process *process, struct span *span)
{
	d9__table_remove(&process->spans, span->id);
	d9__budget_give(span->size);
	free(span);
}

/* A segment begins by telling the spans that live. */
static void tell_open(struct d9__query_process *process, const struct d9_event *event)
{
	uint64_t id = d9_event_known_u64(event, D9_SPAN_OPEN_SPAN_ID, 0);
	struct span *span;

	if (d9__table_find(&process->spans, id))
		return;
	span = new_span(process, id, d9__known_text(event, D9_SPAN_OPEN_SPAN_NAME),
			d9__known_text(event, D9_SPAN_OPEN_ORIGIN));
	if (!span)
		return;
	span->told = true;
	span->first_ns = d9_event_known_u64(event, D9_SPAN_OPEN_START_NS, event->timestamp_ns);
	span->parent = d9_event_known_u64(event, D9_SPAN_OPEN_PARENT_ID, 0);
}

static void enter(struct d9__query_process *process, const struct d9_event *event,
		  struct span *span, uint64_t id)
{
	const struct d9__worker *worker;

	if (!span) {
		const char *origin = origin_of(event);

		span = new_span(process, id, d9__known_text(event, D9_SPAN_SPAN_NAME),
				(struct d9_text) { origin, strlen(origin) });
		if (!span)
			return;
		span->first_ns = event->timestamp_ns;
		span->parent = d9_event_known_u64(event, D9_SPAN_PARENT_SPAN_ID, 0);
	}
	if (span->entered)
		return;
	span->worker = d9_event_known_u64(event, D9_SPAN_WORKER_ID, NO_WORKER);
	worker = d9__table_find(&process->analysis.timeline.by_id, span->worker);
	if (!span->enters++ && worker && worker->piece.open)
		span->task = worker->piece.task->id;
	span->entered = true;
	span->enter_ns = event->timestamp_ns;
}

static void leave(struct d9__query_process *process, const struct d9_event *event,
		  struct span *span)
{
	if (span && span->told && !span->entered)
		span->last_ns = event->timestamp_ns;
	if (!span || !span->entered)
		return;
	span->entered = false;
	span->last_ns = event->timestamp_ns;
	span->active_ns += event->timestamp_ns - span->enter_ns;
	if (!span->callback)
		return;
	put_span(process, span, true);
	forget(process, span);
}

int d9__query_span(struct d9__query_process *process, const struct d9_event *event)
{
	bool closes = event->kind == D9_EVENT_SPAN_CLOSE;
	uint64_t id =
		d9_event_known_u64(event, closes ? D9_SPAN_CLOSE_SPAN_ID : D9_SPAN_SPAN_ID, 0);
	struct span *span = d9__table_find(&process->spans, id);

	if (event->kind == D9_EVENT_SPAN_OPEN) {
		tell_open(process, event);
	} else if (event->kind == D9_EVENT_SPAN_ENTER) {
		enter(process, event, span, id);
	} else if (!closes) {
		leave(process, event, span);
	} else if (span) {
		/* The recorder knows more than events tell: threads inside at the same time, lost
		 * events. */
		span->active_ns =
			d9_event_known_u64(event, D9_SPAN_CLOSE_ACTIVE_NS, span->active_ns);
		put_span(process, span, true);
		forget(process, span);
	}
	return process->out_of_memory ? -ENOMEM : 0;
}

void d9__query_spans_finish(struct d9__query_process *process)
{
	void *span;

	for (size_t place = 0; (place = d9__table_next(&process->spans, place, &span));)
		put_span(process, span, false);
}
