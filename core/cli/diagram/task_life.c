/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <dial9/reader.h>

#include "analyze/budget.h"
#include "analyze/latency.h"
#include "analyze/processes.h"
#include "base/array.h"
#include "base/utf8.h"
#include "cli/cmd.h"
#include "cli/diagram/task_life.h"
#include "read/known_text.h"
#include "symbol/symbolizer.h"
#include "tool/event_line.h"
#include "tool/progress.h"
#include "tool/symbol_options.h"
#include "tool/trace_input.h"

void d9__task_life_release(struct d9__task_life *life)
{
	d9__symbolizer_close(life->symbols);
	for (size_t i = 0; i < life->n_places; i++)
		d9__table_release(&life->places[i]);
	free(life->places);
	d9__texts_release(&life->texts);
	free(life->marks);
	free(life->name);
}

/* ---- texts ---- */

/* |text| kept once; NULL: out of memory. */
static const char *keep(struct d9__task_life *life, const char *text, size_t len)
{
	uint32_t number;

	return d9__texts_number(&life->texts, text, len, &number) ? NULL
								  : life->texts.items[number];
}

/* The function's half of "CALLBACK @ SITE", or all of another text. */
static char *name_of_place(struct d9__symbolizer *symbols, const char *place)
{
	const char *at = strstr(place, " @ ");
	size_t len = at ? (size_t)(at - place) : strlen(place);
	const char *function = d9__symbolizer_function(symbols, place, len, D9__ENTRY);

	return function ? strdup(function) : strndup(place, len);
}

/* Return the place of task |id| in the process of this life, or NULL. */
static const char *place_of(const struct d9__task_life *life, uint64_t id)
{
	return life->n_places ? d9__table_find(&life->places[life->process], id) : NULL;
}

char *d9__task_life_task_name(const struct d9__task_life *life, uint64_t id)
{
	const char *place = place_of(life, id);

	return place ? name_of_place(life->symbols, place) : NULL;
}

void d9__task_life_describe_waker(const struct d9__task_life *life, const struct d9__task_life_mark *mark,
			     char *buf, size_t size)
{
	static const char *const others[D9__WAKE_REASONS] = {
		[D9__WAKE_UNKNOWN] = "an unknown cause", [D9__WAKE_TIMER] = "its timer",
		[D9__WAKE_SIGNAL] = "a signal",		 [D9__WAKE_ACTIVE] = "its own thread",
		[D9__WAKE_CROSS_THREAD] = "another thread", [D9__WAKE_DEFERRED] = "the loop library",
		[D9__WAKE_INTERNAL] = "the loop library",
		[D9__WAKE_RESUMPTION] = "the end of a loop inside it",
	};
	char *name;

	if (mark->waker == life->id) {
		snprintf(buf, size, "itself");
	} else if (mark->waker) {
		name = d9__task_life_task_name(life, mark->waker);
		snprintf(buf, size, "%s (task %" PRIu64 ")", name ? name : "?", mark->waker);
		free(name);
	} else if (mark->reason == D9__WAKE_FD && life->fd >= 0) {
		snprintf(buf, size, "descriptor %" PRId64, life->fd);
	} else {
		snprintf(buf, size, "%s",
			 mark->reason == D9__WAKE_FD
				 ? "a descriptor"
				 : others[mark->reason < D9__WAKE_REASONS ? mark->reason : 0]);
	}
}

void d9__task_life_describe_inside(const struct d9__task_life *life, const struct d9__task_life_mark *mark,
			      char *buf, size_t size)
{
	char *name = mark->verb ? name_of_place(life->symbols, mark->text) : NULL;

	if (mark->verb)
		snprintf(buf, size, "span %s %s", name ? name : mark->text, mark->verb);
	else
		snprintf(buf, size, "%s", mark->text);
	free(name);
}

/* ---- marks ---- */

/* A mark, the room for the next one, and for sorting. */
#define MARK_BYTES (2 * sizeof(struct d9__task_life_mark))

static int add(struct d9__task_life *life, struct d9__task_life_mark mark)
{
	if (!d9__budget_take(D9__KEPT_MARKS, MARK_BYTES))
		return 0;
	if (!d9__array_grow(life->marks, life->n))
		return -ENOMEM;
	mark.number = life->n;
	life->marks[life->n++] = mark;
	return 0;
}

static int enter(struct d9__task_life *life, uint64_t ns, uint64_t worker)
{
	life->entered = true;
	life->worker = worker;
	return add(life, (struct d9__task_life_mark){ .kind = D9__LIFE_ENTER, .ns = ns, .worker = worker,
						 .tid = life->tid });
}

static int leave(struct d9__task_life *life, uint64_t ns)
{
	if (!life->entered)
		return 0;
	life->entered = false;
	return add(life, (struct d9__task_life_mark){ .kind = D9__LIFE_EXIT, .ns = ns });
}

static int close_life(struct d9__task_life *life, uint64_t ns)
{
	int err = leave(life, ns);

	life->closed = true;
	return err ? err : add(life, (struct d9__task_life_mark){ .kind = D9__LIFE_CLOSE, .ns = ns });
}

static int begin_life(struct d9__task_life *life, uint64_t ns)
{
	if (life->is_new)
		return 0;
	life->is_new = true;
	return add(life, (struct d9__task_life_mark){ .kind = D9__LIFE_NEW, .ns = ns });
}

/* ---- events ---- */

/* Threads that run no loop share a worker id: there the thread's id tells. */
static bool is_here(const struct d9__task_life *life, const struct d9_event *event)
{
	uint64_t worker = d9_event_u64(event, "worker_id", UINT64_MAX);

	if (worker != life->worker)
		return false;
	return worker != D9__LIFE_NO_WORKER || (life->tid && d9_event_u64(event, "tid", 0) == life->tid);
}

/* True if |event| happened on the life's thread while the life was entered. */
static bool is_inside(const struct d9__task_life *life, const struct d9_event *event)
{
	return life->entered && is_here(life, event) &&
	       !(life->is_span && d9_event_u64(event, "span_id", 0) == life->id);
}

static struct d9_text text_at(const struct d9_event *event, const char *field)
{
	const struct d9_value *value = d9_event_field(event, field);

	if (!value || !value->present || value->unresolved ||
	    (value->type != D9_FIELD_STRING && value->type != D9_FIELD_POOLED_STRING))
		return (struct d9_text){ "", 0 };
	return value->u.text;
}

/* A logged line is shown with its level, other events by their names.  Cut, it ends in a whole character. */
static size_t describe_line(const struct d9_event *event, char *buf, size_t size)
{
	struct d9_text level = text_at(event, "level"), message = text_at(event, "message");
	int len = snprintf(buf, size, "%.*s: %.*s", d9__precision(level.len), level.data, d9__precision(message.len),
			   message.data);

	if (len < (int)size)
		return len < 0 ? 0 : (size_t)len;
	for (len = (int)size - 1; len && buf[len - 1] & 0x80; len--)
		;
	return (size_t)len;
}

static int add_inside(struct d9__task_life *life, const struct d9_event *event)
{
	struct d9__task_life_mark mark = { .kind = D9__LIFE_INSIDE, .ns = event->timestamp_ns };
	struct d9_text text = { d9_event_name(event), strlen(d9_event_name(event)) };
	char line[160];

	if (event->kind == D9_EVENT_SPAN_ENTER || event->kind == D9_EVENT_SPAN_EXIT) {
		text = d9__known_text(event, D9_SPAN_SPAN_NAME);
		mark.verb = event->kind == D9_EVENT_SPAN_ENTER ? "begins" : "ends";
	}
	if (!strcmp(d9_event_name(event), "LogEvent")) {
		text.len = describe_line(event, line, sizeof(line));
		text.data = line;
	}
	mark.text = keep(life, text.data, text.len);
	return mark.text ? add(life, mark) : -ENOMEM;
}

#define PLACE_BYTES (3 * sizeof(struct d9__table_entry))

static int set_place(struct d9__task_life *life, uint64_t task, struct d9_text place)
{
	struct d9__table *places = &life->places[life->reading];
	const char *kept;

	if (!place.len || !task || d9__table_find(places, task))
		return 0;
	/* Of the one that is looked for in any case. */
	if (task != life->id && !d9__budget_take(D9__KEPT_TASKS, PLACE_BYTES))
		return 0;
	kept = keep(life, place.data, place.len);
	return kept ? d9__table_add(places, task, (void *)kept) : -ENOMEM;
}

static int on_spawn(struct d9__task_life *life, const struct d9_event *event)
{
	uint64_t task = d9_event_known_u64(event, D9_TASK_SPAWN_TASK_ID, 0);
	struct d9_text kind = d9__known_text(event, D9_TASK_SPAWN_KIND);
	int err = set_place(life, task, d9__known_text(event, D9_TASK_SPAWN_SPAWN_LOC));

	if (err || life->is_span || task != life->id)
		return err;
	snprintf(life->kind, sizeof(life->kind), "%.*s", d9__precision(kind.len), kind.data);
	life->fd = (int64_t)d9_event_known_u64(event, D9_TASK_SPAWN_FD, UINT64_MAX);
	return begin_life(life, event->timestamp_ns);
}

static int on_poll_start(struct d9__task_life *life, const struct d9_event *event)
{
	uint64_t worker = d9_event_known_u64(event, D9_POLL_START_WORKER_ID, 0);
	uint64_t task = d9_event_known_u64(event, D9_POLL_START_TASK_ID, 0);
	int err = set_place(life, task, d9__known_text(event, D9_POLL_START_SPAWN_LOC));

	if (!err && life->entered && worker == life->worker)
		err = leave(life, event->timestamp_ns);
	return !err && task == life->id ? enter(life, event->timestamp_ns, worker) : err;
}

static int on_wake(struct d9__task_life *life, const struct d9_event *event)
{
	if (d9_event_known_u64(event, D9_WAKE_EVENT_WOKEN_TASK_ID, 0) != life->id)
		return 0;
	return add(life, (struct d9__task_life_mark){
				 .kind = D9__LIFE_WAKE,
				 .ns = event->timestamp_ns,
				 .waker = d9_event_known_u64(event, D9_WAKE_EVENT_WAKER_TASK_ID, 0),
				 .reason = (unsigned)d9_event_known_u64(event, D9_WAKE_EVENT_REASON, 0) });
}

static int on_task_event(struct d9__task_life *life, const struct d9_event *event)
{
	switch (event->kind) {
	case D9_EVENT_TASK_SPAWN:
		return on_spawn(life, event);
	case D9_EVENT_POLL_START:
		return on_poll_start(life, event);
	case D9_EVENT_POLL_END:
	case D9_EVENT_WORKER_PARK:
		return d9_event_known_u64(event, 0, 0) == life->worker
			       ? leave(life, event->timestamp_ns)
			       : 0;
	case D9_EVENT_WAKE:
		return on_wake(life, event);
	case D9_EVENT_TASK_TERMINATE:
		return d9_event_known_u64(event, 0, 0) == life->id
			       ? close_life(life, event->timestamp_ns)
			       : 0;
	default:
		return is_inside(life, event) ? add_inside(life, event) : 0;
	}
}

/* The close knows when the span was made, which may be long before it was entered, if ever. */
static int on_span_close(struct d9__task_life *life, const struct d9_event *event)
{
	uint64_t start_ns = d9_event_known_u64(event, D9_SPAN_CLOSE_START_NS, 0);
	struct d9_text name = d9__known_text(event, D9_SPAN_CLOSE_SPAN_NAME);
	int err = 0;

	if (!life->is_new && !start_ns)
		return 0;
	if (!life->place)
		life->place = keep(life, name.data, name.len);
	if (!life->place)
		return -ENOMEM;
	if (!life->is_new)
		err = begin_life(life, start_ns);
	for (size_t i = 0; start_ns && i < life->n; i++)
		if (life->marks[i].kind == D9__LIFE_NEW && start_ns < life->marks[i].ns)
			life->marks[i].ns = start_ns;
	return err ? err : close_life(life, event->timestamp_ns);
}

static int on_span_event(struct d9__task_life *life, const struct d9_event *event)
{
	bool mine = d9_event_u64(event, "span_id", 0) == life->id;
	struct d9_text name;
	int err;

	switch (event->kind) {
	case D9_EVENT_SPAN_ENTER:
		if (!mine)
			break;
		name = d9__known_text(event, D9_SPAN_SPAN_NAME);
		if (!life->place)
			life->place = keep(life, name.data, name.len);
		err = life->place ? begin_life(life, event->timestamp_ns) : -ENOMEM;
		if (!life->entered)
			life->tid = d9_event_u64(event, "tid", 0);
		return err || life->entered
			       ? err
			       : enter(life, event->timestamp_ns,
				       d9_event_known_u64(event, D9_SPAN_WORKER_ID, 0));
	case D9_EVENT_SPAN_EXIT:
		if (!mine)
			break;
		return leave(life, event->timestamp_ns);
	case D9_EVENT_SPAN_CLOSE:
		return mine ? on_span_close(life, event) : 0;
	case D9_EVENT_POLL_START:
	case D9_EVENT_POLL_END:
	case D9_EVENT_WORKER_PARK:
	case D9_EVENT_WORKER_UNPARK:
		return 0;
	default:
		break;
	}
	return is_inside(life, event) ? add_inside(life, event) : 0;
}

static int take(struct d9__task_life *life, const struct d9_event *event, size_t process)
{
	size_t before = life->n;
	int err = d9__symbolizer_learn(life->symbols, event);

	if (err || !event->has_timestamp || !event->timestamp_ns ||
	    event->kind == D9_EVENT_SYMBOL)
		return err;
	if (!life->first_ns)
		life->first_ns = event->timestamp_ns;
	if (event->timestamp_ns > life->last_ns)
		life->last_ns = event->timestamp_ns;
	if (life->closed || (life->has_process && process != life->process))
		return 0;
	life->reading = process;
	err = life->is_span ? on_span_event(life, event) : on_task_event(life, event);
	if (life->n > before && !life->has_process) {
		life->has_process = true;
		life->process = process;
	}
	return err;
}

/* Sort by time, because a wake is read only after events that happened later. */
static int compare(const void *left, const void *right)
{
	const struct d9__task_life_mark *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

static int start(struct d9__task_life *life, size_t n_processes)
{
	life->fd = -1;
	life->places = calloc(n_processes + 1, sizeof(*life->places));
	if (!life->places)
		return -ENOMEM;
	life->n_places = n_processes;
	return d9__symbol_open(&life->symbols);
}

static int finish(struct d9__task_life *life, const char *command)
{
	if (!life->n)
		return d9__cmd_fail(command, "no %s %" PRIu64 " in this trace",
				    life->is_span ? "span" : "task", life->id);
	if (!life->is_span)
		life->place = place_of(life, life->id);
	qsort(life->marks, life->n, sizeof(*life->marks), compare);
	life->name = name_of_place(life->symbols, life->place ? life->place : "?");
	return life->name ? 0 : d9__cmd_fail(command, "out of memory");
}

int d9__task_life_read(struct d9__task_life *life, const char *command, char **paths)
{
	struct d9__processes processes = { .n = 0 };
	struct d9__progress progress;
	struct d9_reader *reader = NULL;
	const struct d9_event *event;
	int err, status = d9__traces_open(command, paths, &reader);

	if (status)
		return status;
	err = d9__processes_find(&processes, reader);
	if (!err)
		err = start(life, processes.n);
	d9__progress_init(&progress);
	while (!err && (event = d9__traces_next(reader, &progress, &err)))
		err = take(life, event, processes.of_segment[event->segment]);
	d9__progress_clear(&progress);
	status = d9__traces_close(command, reader, err);
	d9_reader_free(reader);
	d9__processes_release(&processes);
	if (!err && finish(life, command))
		status = D9__EXIT_USAGE;
	return status;
}

struct d9__task_life_sums d9__task_life_sum(const struct d9__task_life *life)
{
	struct d9__task_life_sums sums = { .enters = 0 };
	uint64_t since_ns = life->marks[0].ns, wake_ns = 0, end_ns = life->last_ns;
	bool inside = false;

	for (size_t i = 0; i < life->n; i++) {
		const struct d9__task_life_mark *mark = &life->marks[i];

		if (mark->kind == D9__LIFE_WAKE) {
			sums.wakes++;
			sums.self_wakes += mark->waker == life->id;
			sums.foreign_wakes += mark->waker && mark->waker != life->id;
			wake_ns = mark->ns;
		} else if (mark->kind == D9__LIFE_ENTER) {
			/* Woken while it ran: it waits from the end of that on. */
			uint64_t from_ns = wake_ns > since_ns ? wake_ns : since_ns;
			uint64_t waited_ns = wake_ns ? mark->ns - from_ns : 0;

			sums.enters++;
			sums.idle_ns += mark->ns - since_ns;
			sums.waited_ns += waited_ns;
			if (waited_ns > sums.waited_max_ns)
				sums.waited_max_ns = waited_ns;
			since_ns = mark->ns;
			wake_ns = 0;
			inside = true;
		} else if (mark->kind == D9__LIFE_EXIT) {
			sums.busy_ns += mark->ns - since_ns;
			since_ns = mark->ns;
			inside = false;
		} else if (mark->kind == D9__LIFE_CLOSE) {
			end_ns = mark->ns;
		}
	}
	if (inside)
		sums.busy_ns += end_ns - since_ns;
	else
		sums.idle_ns += end_ns - since_ns;
	return sums;
}
