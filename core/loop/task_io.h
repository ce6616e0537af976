/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Task I/O: results of the reads, writes and accepts of this thread's callbacks, by task.
 *
 * The wrappers of core/block count a call when it is over, in the row of the task that runs; calls
 * outside of callbacks have a row of their own.  Figures only grow.  Once a second the flush thread
 * writes their growth as TaskIoEvents, and a row of which it has told all is free for another task.
 * A thread that has no free row left counts by callback, at last all in one.  Nothing here makes a
 * system call.
 */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dial9/export.h>

#define D9__IO_ROWS	 64u /* and so many events a thread and second at most */
#define D9__IO_TASKS	 48u /* the first is that of no task; behind them are callbacks' */
#define D9__IO_CALLBACKS (D9__IO_ROWS - 1 - D9__IO_TASKS)
#define D9__IO_REST	 (D9__IO_ROWS - 1) /* of callbacks that found no row */

/* In the order of the event's fields. */
enum d9__io_figure {
	D9__IO_READS,
	D9__IO_READ_BYTES,
	D9__IO_WRITES,
	D9__IO_WRITE_BYTES,
	D9__IO_ACCEPTS,
	D9__IO_AGAIN,
	D9__IO_EOF,
	D9__IO_ERRORS,
	D9__IO_FIGURES
};

/* Written by its thread, but for the last two members. */
struct d9__io_row {
	_Atomic(uint64_t) figures[D9__IO_FIGURES];
	_Atomic(int32_t) fd;	  /* the latest */
	_Atomic(int32_t) error;	  /* the latest of those that D9__IO_ERRORS counts */
	_Atomic(bool) shared;	  /* not one task's alone */
	_Atomic(uint64_t) told;	  /* calls that the trace has: all, and the row is free */
	uint64_t told_figures[D9__IO_FIGURES]; /* flush thread */
};

struct d9__task_io {
	/* Owner thread.  The row that the latest call counted in, and of which task that was. */
	struct d9__io_row *row; /* NULL: none yet */
	uint64_t task;
	_Atomic(uintptr_t) counting; /* where on the stack a call is being counted; 0: none is */
	/* The flush thread's pass in which tasks of that home found no row; 0: none. */
	uint32_t full[D9__IO_TASKS];
	/* In this pass callbacks have the rows before |next_callback|, the latest |callback|. */
	uint32_t pass, next_callback, callback;
	uint32_t callbacks[D9__IO_CALLBACKS]; /* handles of their names */

	_Atomic(uint32_t) passes; /* of the flush thread */
	_Atomic(uint64_t) tasks[D9__IO_ROWS];
	struct d9__io_row rows[D9__IO_ROWS];
};

struct d9__slot;
struct d9__thread;

/*
 * Count a call, for the task that runs on this |thread|: |kind| is D9__IO_READS, D9__IO_WRITES or
 * D9__IO_ACCEPTS.  Async-signal-safe, keeps errno.
 */

/* A read or write that has moved |bytes|. */
void d9__task_io_moved(struct d9__thread *thread, enum d9__io_figure kind, int fd, uint64_t bytes);

/* Any other, with errno if |result| is below 0.  |is_empty|: it asked for bytes and got none. */
void d9__task_io_count(struct d9__thread *thread, enum d9__io_figure kind, int fd, int64_t result,
		       bool is_empty);

/* The growth of a row since it was taken before: an event. */
struct d9__io_growth {
	uint32_t worker;
	uint64_t task, calls; /* of all kinds */
	uint64_t figures[D9__IO_FIGURES];
	int32_t fd, error;
	bool shared;
};

/* Events of this process, and the calls in them. */
extern struct d9__io_sums {
	_Atomic(uint64_t) calls, events;
} d9__io_sums;

/* Flush thread: take that of |thread|, which cannot end meanwhile.  How many rows grew. */
size_t d9__task_io_take(struct d9__thread *thread, struct d9__io_growth growths[D9__IO_ROWS]);
void d9__task_io_emit(struct d9__slot *slot, uint64_t ns, const struct d9__io_growth *growth);

/* On a thread that ends, |thread| is in no list any more: write the rest. */
void d9__task_io_end(struct d9__thread *thread);

/* Flush thread, whose slot is |own|: write what was not told, of all threads. */
void d9__task_io_tell(struct d9__slot *own, uint64_t ns);

/* Tell once a second from now on. */
void d9__task_io_start(void);

/* In a forked child: the calls of its parent are in another trace. */
void d9__task_io_forget(struct d9__task_io *io);
