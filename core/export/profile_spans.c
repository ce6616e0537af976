/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/budget.h"
#include "base/array.h"
#include "export/profile_spans.h"
#include "read/known_text.h"

#define NO_WORKER    255u
#define SITE_MARK    " @ " /* in the name of a span of a loop adapter's, which is a callback */
#define SPAN_BYTES   (2 * sizeof(struct entered))
#define THREAD_BYTES (sizeof(struct thread) + 3 * sizeof(struct d9__table_entry))

struct entered {
	uint64_t id, ns;
	const char *name;
};

struct thread {
	struct d9__profile_thread who;
	struct entered *spans; /* the innermost last */
	size_t n;
};

/* Threads that run no loop are told apart by their tid. */
static uint64_t key_of(bool has_worker, uint64_t worker, uint64_t tid)
{
	return has_worker ? worker : tid | UINT64_C(1) << 63;
}

static struct d9__profile_thread thread_of(const struct d9_event *event)
{
	uint64_t worker = d9_event_known_u64(event, D9_SPAN_WORKER_ID, NO_WORKER);

	return (struct d9__profile_thread){ worker != NO_WORKER, worker, d9_event_u64(event, "tid", 0) };
}

/*
 * Find the thread of |who|, or make it at its first span; NULL if the budget does not allow it.  0
 * or -ENOMEM.
 */
static int thread_at(struct d9__profile_spans *spans, const struct d9__profile_thread *who, struct thread **out)
{
	uint64_t key = key_of(who->has_worker, who->worker, who->tid);

	*out = d9__table_find(&spans->threads, key);
	if (*out || !d9__budget_take(D9__KEPT_SPANS, THREAD_BYTES))
		return 0;
	*out = calloc(1, sizeof(**out));
	if (*out && !d9__table_add(&spans->threads, key, *out)) {
		(*out)->who = *who;
		return 0;
	}
	free(*out);
	return -ENOMEM;
}

static bool is_inside(const struct thread *thread, uint64_t id)
{
	for (size_t i = 0; i < thread->n; i++)
		if (thread->spans[i].id == id)
			return true;
	return false;
}

static int enter(struct d9__profile_spans *spans, const struct d9_event *event)
{
	struct d9_text name = d9__known_text(event, D9_SPAN_SPAN_NAME);
	uint64_t id = d9_event_known_u64(event, D9_SPAN_SPAN_ID, 0);
	struct d9__profile_thread who = thread_of(event);
	struct thread *thread;
	uint32_t number;

	if (!name.len || memmem(name.data, name.len, SITE_MARK, strlen(SITE_MARK)))
		return 0;
	if (thread_at(spans, &who, &thread))
		return -ENOMEM;
	if (!thread || is_inside(thread, id) || !d9__budget_take(D9__KEPT_SPANS, SPAN_BYTES))
		return 0;
	if (d9__texts_number(&spans->names, name.data, name.len, &number) ||
	    !d9__array_grow(thread->spans, thread->n))
		return -ENOMEM;
	thread->spans[thread->n++] = (struct entered){ id, event->timestamp_ns, spans->names.items[number] };
	return 0;
}

/* True if |thread| was inside of the span |id| until |ns|. */
static bool leave(const struct d9__profile_spans *spans, struct thread *thread, uint64_t id, uint64_t ns)
{
	for (size_t i = thread->n; i--;) {
		if (thread->spans[i].id != id)
			continue;
		if (spans->on_leave)
			spans->on_leave(spans->context, &thread->who, thread->spans[i].name, thread->spans[i].ns, ns);
		memmove(thread->spans + i, thread->spans + i + 1, (--thread->n - i) * sizeof(*thread->spans));
		d9__budget_give(SPAN_BYTES);
		return true;
	}
	return false;
}

/* A span is left on the thread that entered it, whatever its exit says, and closed for all. */
static void leave_anywhere(struct d9__profile_spans *spans, uint64_t id, uint64_t ns)
{
	void *thread;

	for (size_t place = 0; (place = d9__table_next(&spans->threads, place, &thread));)
		leave(spans, thread, id, ns);
}

int d9__profile_spans_take(struct d9__profile_spans *spans, const struct d9_event *event)
{
	struct d9__profile_thread who;
	struct thread *thread;
	uint64_t id;

	switch (event->kind) {
	case D9_EVENT_SPAN_ENTER:
		return enter(spans, event);
	case D9_EVENT_SPAN_EXIT:
		id = d9_event_known_u64(event, D9_SPAN_SPAN_ID, 0);
		who = thread_of(event);
		thread = d9__table_find(&spans->threads, key_of(who.has_worker, who.worker, who.tid));
		if (!thread || !leave(spans, thread, id, event->timestamp_ns))
			leave_anywhere(spans, id, event->timestamp_ns);
		return 0;
	case D9_EVENT_SPAN_CLOSE:
		leave_anywhere(spans, d9_event_known_u64(event, D9_SPAN_CLOSE_SPAN_ID, 0), event->timestamp_ns);
		return 0;
	default:
		return 0;
	}
}

/*
 * Return the thread's open spans.  A thread that has become a worker may have entered them before,
 * under its tid.
 */
static const struct thread *find_thread(const struct d9__profile_spans *spans, const struct d9__profile_thread *thread)
{
	const struct thread *found = d9__table_find(&spans->threads, key_of(thread->has_worker, thread->worker, thread->tid));

	return found && found->n ? found : d9__table_find(&spans->threads, key_of(false, 0, thread->tid));
}

const char *d9__profile_spans_innermost(const struct d9__profile_spans *spans, const struct d9__profile_thread *thread)
{
	const struct thread *found = find_thread(spans, thread);

	return found && found->n ? found->spans[found->n - 1].name : NULL;
}

bool d9__profile_spans_inside(const struct d9__profile_spans *spans, const struct d9__profile_thread *thread,
			      const char *name)
{
	const struct thread *found = find_thread(spans, thread);

	for (size_t i = 0; found && i < found->n; i++)
		if (!strcmp(found->spans[i].name, name))
			return true;
	return false;
}

void d9__profile_spans_release(struct d9__profile_spans *spans)
{
	void *item;

	for (size_t place = 0; (place = d9__table_next(&spans->threads, place, &item));) {
		struct thread *thread = item;

		d9__budget_give(THREAD_BYTES + thread->n * SPAN_BYTES);
		free(thread->spans);
		free(thread);
	}
	d9__table_release(&spans->threads);
	d9__texts_release(&spans->names);
}
