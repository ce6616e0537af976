/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open calls: callbacks that threads are in the middle of, seen from outside by the flush thread.
 *
 * A callback that never returns writes nothing, so only the flush thread can tell of it.  It looks
 * at the slots: one whose last event is a PollStart, 10 ms old or more, has a call open.  Then it asks
 * the kernel where the thread is, at 10 ms and whenever the time has doubled, and writes that as
 * StuckPollEvent; from one second on LastSignEvent says each second that the call is still open.  The
 * ring's health page has the same for who looks at the process, or at what is left of it.
 *
 * A loop that stands still between callbacks, in a function of its own or of the program (prepare() and check() of a
 * GLib source), is told in the same way, with task 0 and the function as its span: if it did not go on since the look
 * before.
 *
 * A callback that runs a loop itself, as a modal dialog does, is open for as long as that loop runs.  Its thread may
 * well sleep in that loop's wait, so the kernel is not asked about it; everything else is the same.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/stuck.h"
#include "ring/ring_file.h"
#include "ring/slot.h"

#define D9__OPEN_CALLS_MAX    64u /* of more, the longest */
#define D9__OPEN_INNER_MAX    4u  /* of more, the innermost */
#define D9__OPEN_CALL_FDS     256u /* descriptors that are told by their number */

struct d9__open_call {
	uint32_t slot, tid, worker;
	uint64_t task;
	uint64_t since_ns;    /* when it began */
	bool around;	      /* a loop runs inside it; |task| is not the one that the slot polls */
	bool outside;	      /* no callback: the loop itself stands still; |task| is 0, and of its thread: */
	const void *function; /* of the program that it calls, or NULL */
	uint32_t waits;	      /* so far */
	bool stands;	      /* none since the look before */
	uint32_t loc, span;   /* name handles: of the poll, of the innermost callback inside it or 0 */
	/* Functions that the loop library has called inside one another, the innermost, |span|,
	 * first. */
	struct d9__open_inner {
		uint64_t id, since_ns;
		uint32_t name;
	} inner[D9__OPEN_INNER_MAX];
	uint32_t n_inner;
	const char *library;
	uint64_t told_inner_id; /* ids grow: the trace has the beginnings of those up to this one */
	uint64_t next_look_ns; /* at the thread */
	uint64_t told_for_ns; /* how old it was when the latest StuckPollEvent was written */
	uint64_t sign_ns;     /* of the latest LastSignEvent */
	bool known;           /* |stuck| was filled in */
	struct d9__stuck stuck;
};

/* Flush thread only. */
struct d9__open_calls {
	struct d9__open_call items[D9__OPEN_CALLS_MAX];
	size_t n;
	uint64_t youngest_ns; /* how long the youngest of all calls has been quiet; UINT64_MAX: none is open */
	uint64_t age_ns;      /* of the youngest of |items|; UINT64_MAX: there are none */
	uint64_t tasks[D9__SLOT_COUNT]; /* what each slot polled at the latest look; 0 nothing */
	int task_fd;          /* /proc/self/task; 0 or below: there is none */
	int fds[D9__OPEN_CALL_FDS]; /* that are told by their number: texts such as "read(7)" are kept for ever */
	size_t n_fds;
};

/*
 * Before the first look, as early as can be: a program may give up its rights, or change its root, before its first
 * callback hangs.
 */
void d9__open_calls_begin(struct d9__open_calls *calls);

/*
 * Tell of each of |n| calls, whose slot, thread and task are set, when it began and what it is called; of one with
 * |around| set, which task it is: the thread's outermost; of one with |outside| set, the function if that is known.
 * |since_ns| becomes 0 for one that is over.
 */
typedef void (*d9__open_calls_describe_fn)(struct d9__open_call *calls, size_t n);

/* Set the function that knows that, before the first loop runs.  Any thread. */
void d9__open_calls_provide(d9__open_calls_describe_fn describe);

/* Find the calls that are open at |now_ns|. */
void d9__open_calls_look(struct d9__open_calls *calls, uint64_t now_ns);

/* Look where the threads are, where that is due, and write what is to be written into |own|. */
void d9__open_calls_tell(struct d9__open_calls *calls, struct d9__slot *own, uint64_t now_ns);

/*
 * Whether a thread has slot |slot|, and its worker is in |state|: then |*call| tells which, and
 * since when it has left no stamp.
 */
bool d9__open_calls_of(uint32_t slot, enum d9__worker_state state, struct d9__open_call *call);

/* Whether the thread of |call|, whose worker runs, goes round in the code of a loop library. */
bool d9__open_calls_in_library(const struct d9__open_call *call);

struct d9__burnt {
	uint64_t cpu_ns, wall_ns; /* the first of the second */
};

/* Tell that the thread of |call| burnt so much inside its loop's library. */
void d9__open_calls_tell_library(struct d9__open_calls *calls, struct d9__open_call *call,
				 struct d9__slot *own, uint64_t now_ns, struct d9__burnt burnt);

/* At the end: write of the functions that libraries are calling when they began, however short that
 * is ago. */
void d9__open_calls_tell_inner(struct d9__open_calls *calls);

/* Put the longest into the health page, which the caller has under its lock. */
void d9__open_calls_publish(const struct d9__open_calls *calls, struct d9__ring_health *health);

void d9__open_calls_release(struct d9__open_calls *calls);
