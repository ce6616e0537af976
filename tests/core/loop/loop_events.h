/* SPDX-License-Identifier: Apache-2.0 */
/* Loop events: events that a test recorded, decoded, with a clock that the test moves. */

#ifndef LOOP_EVENTS_H
#define LOOP_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dial9/loop.h>

/* The letter of an event in loop_story(). */
enum loop_event_kind {
	LOOP_START = '(', /* PollStart */
	LOOP_END = ')',	  /* PollEnd */
	LOOP_PARK = 'P',
	LOOP_UNPARK = 'U',
	LOOP_WAKE = 'w',
	LOOP_SPAWN = 's',
	LOOP_TERMINATE = 't',
	LOOP_SPAN_ENTER = '<',
	LOOP_SPAN_EXIT = '>',
	LOOP_SPAN_CLOSE = 'c',
	LOOP_SPAN_CALL =
		'C', /* |span| is 0 where nothing refers to it; |active_ns| is its length */
	LOOP_SPAN_MISUSE = 'm',
	LOOP_OFF_CPU = 'o',
	LOOP_STALE_TIMER = 'z',
	LOOP_LOG = 'l',
	LOOP_TASK_DUMP = 'd',
	LOOP_ACCEPT_QUEUE = 'q',
	LOOP_OUTSIDE = 'O',
	LOOP_SOURCE_TIME = 'T',
	LOOP_TASK_IO = 'i',
	LOOP_STUCK = 'k',
	LOOP_OTHER = '?',
};

struct loop_event {
	enum loop_event_kind kind;
	uint32_t slot; /* whose: events of one slot are in file order */
	uint64_t ns;
	size_t place; /* before sorting */
	uint64_t worker, task, depth;
	uint64_t waker, issuer, reason; /* of a wake; |task| is the woken one */
	uint64_t cpu_ns, wait_ns, tid;
	uint64_t span, parent; /* |parent| 0: none */
	uint64_t start_ns, active_ns, unbalanced; /* of a span's close; how long a loop is quiet */
	uint64_t fd;           /* of a spawn; UINT64_MAX: absent */
	uint64_t timeout_ns, due_ns; /* of a stale timer */
	uint64_t frames; /* of a task's dump */
	uint64_t pending, backlog, ip_version, cookie; /* of an accept queue */
	uint64_t from_ns, to_ns; /* of an outside */
	uint64_t calls, total_ns, max_ns; /* of a source time; |text| is its phase */
	uint64_t io[8], last_errno; /* of a TaskIoEvent, in the order of its fields */
	bool instrumented, shared;
	char text[96]; /* location, a span's name, what was done wrong with it, or what was logged */
	char task_name[32]; /* "": none */
	char task_kind[16]; /* or the level of what was logged */
};

struct loop_events {
	struct loop_event *items;
	size_t n;
};

/* The clock of the test's records. */
extern uint64_t loop_ns;

/* It moves by 1 ns whenever it is read: for tests with several threads. */
extern bool loop_clock_runs;

/* Called once, when it is read next: at a moment inside a call. */
extern void (*loop_clock_read)(void);

/* A ring in memory, a fake clock at 1 s, the gate open.  Once per program. */
void loop_events_start(void);

/* Start with the machine's own clock, on ticks; false if it has none that can be used. */
bool loop_events_start_on_ticks(void);

/* A loop, without the recorder that d9_loop_register() starts. */
struct d9_loop *loop_events_add(enum d9_library library, const void *address);

/* Events recorded since the last call.  Other threads must have ended.  Freed by the next call. */
const struct loop_events *loop_events_collect(void);

/* Sort them by time: a worker's events lie in several slots if its id was used again. */
void loop_events_sort(void);

/* The kinds in file order as letters, wakes and tasks included. */
const char *loop_story(const struct loop_events *events);

/* The n-th event of |kind|.  Without one the test fails, and goes on with one that says nothing. */
const struct loop_event *loop_nth(const struct loop_events *events, enum loop_event_kind kind,
				  size_t n);

/* How many there are. */
size_t loop_count(const struct loop_events *events, enum loop_event_kind kind);

/*
 * The rule for producers: per worker Unpark and Park alternate, polls stand between them and do
 * not nest.  What went before the first event is not known.  Returns the index of the first event that breaks it, or events->n.
 */
size_t loop_first_violation(const struct loop_events *events);

#endif /* LOOP_EVENTS_H */
