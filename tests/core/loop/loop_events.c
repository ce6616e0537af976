/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "core/loop/loop_events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <dial9/reader.h>

#include "format/decoder.h"
#include "format/poll_wakes.h"
#include "format/values.h"
#include "loop/loops.h"
#include "loop/workers.h"
#include "ring/chunk.h"
#include "ring/clock.h"
#include "ring/gate.h"
#include "ring/ring_file.h"
#include "ring/slot.h"
#include "support/d9_test.h"

uint64_t loop_ns = 1000000000;
bool loop_clock_runs;
void (*loop_clock_read)(void);

static struct loop_events collected;

static uint64_t fake_mono(void)
{
	void (*read)(void) = loop_clock_read;

	if (read) {
		loop_clock_read = NULL;
		read();
	}
	return __atomic_add_fetch(&loop_ns, loop_clock_runs ? 1 : 0, __ATOMIC_RELAXED);
}

static void start_recording(void)
{
	static const struct d9__ring_options options = {
		.kind = D9__RING_ANON, .boot_id = "test-1", .trace_dir = "/", .service = "test"
	};

	if (d9__ring_start(&options) || d9__gate_init() || d9__loops_init()) {
		fputs("cannot start a ring\n", stderr);
		exit(99);
	}
	d9__gate_set(D9__GATE_ALL);
}

void loop_events_start(void)
{
	d9__clock_fake(fake_mono, fake_mono);
	d9__clock_start(D9__CLOCK_WANT_MONOTONIC);
	start_recording();
}

bool loop_events_start_on_ticks(void)
{
	const struct timespec pause = { 0, 10000000 };
	struct d9__clock_status status;

	if (d9__clock_under_valgrind())
		return false;
	d9__clock_start(D9__CLOCK_WANT_TICKS);
	/* Two anchors that are far enough apart. */
	for (int tries = 0; tries < 500; tries++) {
		nanosleep(&pause, NULL);
		d9__clock_tick(NULL);
		d9__clock_status(&status);
		if (status.kind == D9__CLOCK_TICKS) {
			start_recording();
			return true;
		}
	}
	return false;
}

struct d9_loop *loop_events_add(enum d9_library library, const void *address)
{
	struct d9_loop *loop;

	if (d9__loops_add(library, address, "test", &loop))
		abort();
	return loop;
}

/* ---- decoding ---- */

static const struct {
	const char *name;
	enum loop_event_kind kind;
} kinds[] = {
	{ "PollStartEvent", LOOP_START },     { "PollEndEvent", LOOP_END },
	{ "WorkerParkEvent", LOOP_PARK },     { "WorkerUnparkEvent", LOOP_UNPARK },
	{ "WakeEventEvent", LOOP_WAKE },      { "TaskSpawnEvent", LOOP_SPAWN },
	{ "SpanMisuseEvent", LOOP_SPAN_MISUSE },
	{ "SpanCloseEvent", LOOP_SPAN_CLOSE }, { "TaskTerminateEvent", LOOP_TERMINATE },
	{ "OffCpuEvent", LOOP_OFF_CPU },	      { "StaleTimerEvent", LOOP_STALE_TIMER },
	{ "LogEvent", LOOP_LOG },		      { "TaskDumpEvent", LOOP_TASK_DUMP },
	{ "TcpAcceptQueueEvent", LOOP_ACCEPT_QUEUE }, { "LoopOutsideEvent", LOOP_OUTSIDE },
	{ "SourceTimeEvent", LOOP_SOURCE_TIME },
	{ "TaskIoEvent", LOOP_TASK_IO },
	{ "TcpAcceptQueueEvent", LOOP_ACCEPT_QUEUE }, { "StuckPollEvent", LOOP_STUCK },
};

static enum loop_event_kind kind_of(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!strcmp(name, kinds[i].name))
			return kinds[i].kind;
	}
	if (!strncmp(name, "SpanEnter:", 10))
		return LOOP_SPAN_ENTER;
	if (!strncmp(name, "SpanCall:", 9))
		return LOOP_SPAN_CALL;
	return strncmp(name, "SpanExit:", 9) ? LOOP_OTHER : LOOP_SPAN_EXIT;
}

static void copy_text(char *to, size_t size, const struct d9_value *value)
{
	size_t len = value->u.text.len < size - 1 ? value->u.text.len : size - 1;

	if (value->present && len)
		memcpy(to, value->u.text.data, len);
	to[value->present ? len : 0] = '\0';
}

static void set_number(struct loop_event *event, const char *name, const struct d9_value *value)
{
	const struct {
		const char *name;
		uint64_t *to;
	} fields[] = {
		{ "worker_id", &event->worker },
		{ "task_id", &event->task },
		{ "local_queue", &event->depth },
		{ "waker_task_id", &event->waker },
		{ "woken_task_id", &event->task },
		{ "target_worker", &event->issuer },
		{ "reason", &event->reason },
		{ "cpu_time_ns", &event->cpu_ns },
		{ "sched_wait_ns", &event->wait_ns },
		{ "tid", &event->tid },
		{ "span_id", &event->span },
		{ "parent_span_id", &event->parent },
		{ "fd", &event->fd },
		{ "blocked_ns", &event->cpu_ns },
		{ "run_queue_ns", &event->wait_ns },
		{ "timeout_ns", &event->timeout_ns },
		{ "due_ns", &event->due_ns },
		{ "start_timestamp_ns", &event->start_ns },
		{ "active_ns", &event->active_ns },
		{ "unbalanced_enters", &event->unbalanced },
		{ "parent_span_instance_id", &event->parent },
		{ "pending_connections", &event->pending },
		{ "backlog_limit", &event->backlog },
		{ "ip_version", &event->ip_version },
		{ "socket_cookie", &event->cookie },
		{ "from_ns", &event->from_ns },
		{ "to_ns", &event->to_ns },
		{ "calls", &event->calls },
		{ "total_ns", &event->total_ns },
		{ "max_ns", &event->max_ns },
		{ "reads", &event->io[0] },
		{ "read_bytes", &event->io[1] },
		{ "writes", &event->io[2] },
		{ "write_bytes", &event->io[3] },
		{ "accepts", &event->io[4] },
		{ "again", &event->io[5] },
		{ "eof", &event->io[6] },
		{ "errors", &event->io[7] },
		{ "last_errno", &event->last_errno },
		{ "cpu_ns", &event->cpu_ns },
		{ "wall_ns", &event->wait_ns },
		{ "for_ns", &event->active_ns },
		{ "duration_ns", &event->active_ns },
		{ "span_instance_id", &event->span },
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (!strcmp(name, fields[i].name) && value->present)
			*fields[i].to = value->u.u64;
	}
}

static void set_field(struct loop_event *event, const char *name, const struct d9_value *value)
{
	if (!strcmp(name, "spawn_loc") || !strcmp(name, "span_name") ||
	    !strcmp(name, "message") || !strcmp(name, "mistake") || !strcmp(name, "phase"))
		copy_text(event->text, sizeof(event->text), value);
	else if (!strcmp(name, "kind") || !strcmp(name, "level"))
		copy_text(event->task_kind, sizeof(event->task_kind), value);
	else if (!strcmp(name, "name"))
		copy_text(event->task_name, sizeof(event->task_name), value);
	else if (!strcmp(name, "callchain"))
		event->frames = value->unresolved ? 0 : value->u.stack.n;
	else if (!strcmp(name, "instrumented"))
		event->instrumented = value->u.boolean;
	else if (!strcmp(name, "shared"))
		event->shared = value->u.boolean;
	else if (value->type == D9_FIELD_VARINT || value->type == D9_FIELD_U8 ||
		 value->type == D9_FIELD_U32)
		set_number(event, name, value);
}

static struct loop_event *add_event(void)
{
	if ((collected.n & (collected.n - 1)) == 0)
		collected.items = realloc(collected.items, (collected.n ? 2 * collected.n : 1) *
								   sizeof(*collected.items));
	return &collected.items[collected.n++];
}

/* As readers do: what the latest event, a poll, tells of its wake stands where that happened. */
static void tell_wake(struct d9__poll_wakes *seen, uint64_t told)
{
	const struct loop_event event = collected.items[collected.n - 1];
	struct d9__poll_wake wake;
	size_t at = collected.n - 1;

	if (event.kind == LOOP_UNPARK)
		d9__poll_wakes_unpark(seen, event.worker, event.ns);
	if (event.kind == LOOP_END)
		d9__poll_wakes_end(seen, event.worker, event.ns);
	if (event.kind != LOOP_START ||
	    d9__poll_wakes_start(seen, event.worker, event.task, event.ns, told, &wake) != 1)
		return;
	add_event();
	for (; at && collected.items[at - 1].ns > wake.ns; at--)
		continue;
	memmove(collected.items + at + 1, collected.items + at,
		(collected.n - 1 - at) * sizeof(event));
	collected.items[at] = (struct loop_event) { .kind = LOOP_WAKE,
						    .slot = event.slot,
						    .ns = wake.ns,
						    .fd = UINT64_MAX,
						    .waker = wake.waker,
						    .task = wake.woken,
						    .issuer = wake.worker,
						    .reason = wake.reason };
}

static void append(const struct d9__decoder *decoder, const struct d9__frame *frame,
		   struct d9__values *values, uint32_t slot, struct d9__poll_wakes *seen)
{
	struct loop_event *event = add_event();
	uint64_t told = 0;

	*event = (struct loop_event){ .kind = kind_of(frame->schema->name), .slot = slot,
				      .ns = frame->timestamp_ns, .fd = UINT64_MAX };
	if (d9__values_build(values, decoder, frame))
		abort();
	for (uint32_t i = 0; i < frame->schema->n_fields; i++)
		set_field(event, frame->schema->fields[i].name, &values->items[i]);
	if (!strcmp(frame->schema->name, "PollStartEvent"))
		told = values->items[frame->schema->n_fields - 1].u.u64;
	tell_wake(seen, told);
}

static void decode(const struct d9__batch *batch, struct d9__definitions *schemas)
{
	struct d9__cursor in = { .p = batch->bytes, .end = batch->bytes + batch->len };
	struct d9__values values = { .items = NULL };
	struct d9__poll_wakes seen = { .n = 0 };
	struct d9__decoder decoder;
	struct d9__frame frame;
	int err;

	d9__decoder_init(&decoder, schemas, 0);
	while ((err = d9__decoder_next(&decoder, &in, &frame)) == 1) {
		if (frame.kind == D9__FRAME_EVENT)
			append(&decoder, &frame, &values, batch->slot, &seen);
	}
	if (err) {
		fprintf(stderr, "%s\n", decoder.message);
		abort();
	}
	d9__values_release(&values);
	d9__poll_wakes_release(&seen);
	d9__decoder_release(&decoder);
}

const struct loop_events *loop_events_collect(void)
{
	struct d9__definitions schemas = { .n = 0 };
	struct d9__batch batch;

	free(collected.items);
	collected = (struct loop_events){ NULL, 0 };
	d9__chunk_seal(d9__slot_self());
	d9__slot_seal_idle(UINT32_MAX);
	while (d9__chunk_pop_full(&batch)) {
		decode(&batch, &schemas);
		d9__chunk_release(&batch);
	}
	d9__definitions_release(&schemas);
	return &collected;
}

static int compare(const void *a, const void *b)
{
	const struct loop_event *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	return x->place < y->place ? -1 : 1;
}

void loop_events_sort(void)
{
	for (size_t i = 0; i < collected.n; i++)
		collected.items[i].place = i;
	qsort(collected.items, collected.n, sizeof(*collected.items), compare);
}

/* ---- asking ---- */

const char *loop_story(const struct loop_events *events)
{
	static char story[4096];
	size_t n = 0;

	for (size_t i = 0; i < events->n && n < sizeof(story) - 1; i++) {
		if (events->items[i].kind != LOOP_OTHER)
			story[n++] = (char)events->items[i].kind;
	}
	story[n] = '\0';
	return story;
}

const struct loop_event *loop_nth(const struct loop_events *events, enum loop_event_kind kind,
				  size_t n)
{
	static const struct loop_event none;

	for (size_t i = 0; i < events->n; i++) {
		if (events->items[i].kind == kind && n-- == 0)
			return &events->items[i];
	}
	CU_FAIL("so many events of that kind were recorded");
	return &none;
}

size_t loop_count(const struct loop_events *events, enum loop_event_kind kind)
{
	size_t n = 0;

	for (size_t i = 0; i < events->n; i++)
		n += events->items[i].kind == kind;
	return n;
}

size_t loop_first_violation(const struct loop_events *events)
{
	static const struct {
		enum loop_event_kind kind;
		char from, to; /* 's' stopped, 'r' running, 'p' polling */
	} rules[] = { { LOOP_UNPARK, 's', 'r' },
		      { LOOP_START, 'r', 'p' },
		      { LOOP_END, 'p', 'r' },
		      { LOOP_PARK, 'r', 's' } };
	char state[D9__WORKERS_MAX] = { 0 }; /* 0: the first event of the worker tells */

	for (size_t i = 0; i < events->n; i++) {
		const struct loop_event *event = &events->items[i];
		char *at = &state[event->worker % D9__WORKERS_MAX];

		for (size_t k = 0; k < sizeof(rules) / sizeof(rules[0]); k++) {
			if (event->kind != rules[k].kind)
				continue;
			if (*at && *at != rules[k].from)
				return i;
			*at = rules[k].to;
			break;
		}
	}
	return events->n;
}
