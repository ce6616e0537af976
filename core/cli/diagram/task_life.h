/* SPDX-License-Identifier: Apache-2.0 */
/* The life of one task or span: made, woken, entered, left, closed, and the events inside. */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "analyze/texts.h"
#include "base/table.h"

struct d9__symbolizer;
struct d9__text_out;

enum d9__task_life_kind {
	D9__LIFE_NEW,
	D9__LIFE_WAKE,
	D9__LIFE_ENTER,
	D9__LIFE_EXIT,
	D9__LIFE_INSIDE, /* another event while it ran */
	D9__LIFE_CLOSE,
};

#define D9__LIFE_NO_WORKER 255u

struct d9__task_life_mark {
	enum d9__task_life_kind kind;
	unsigned reason; /* of a wake */
	uint64_t ns;
	size_t number;    /* in the order of reading */
	uint64_t worker;  /* of an enter; D9__LIFE_NO_WORKER: the thread |tid| */
	uint64_t tid;
	uint64_t waker;   /* task, or 0 */
	const char *text; /* inside: the event, or the place of a span; owned by the life's texts */
	const char *verb; /* of a span: "begins", "ends"; else NULL */
};

struct d9__task_life {
	/* Which: set by the caller. */
	bool is_span;
	uint64_t id;

	struct d9__task_life_mark *marks; /* by time */
	size_t n;
	uint64_t first_ns, last_ns; /* of the whole trace */
	char *name;		    /* as it is shown; NULL: the trace has none */
	char kind[32];
	int64_t fd; /* below 0: none */

	/* State. */
	struct d9__symbolizer *symbols;
	struct d9__table *places; /* by process: text of every task by id, as wakers have names too */
	size_t n_places;
	struct d9__texts texts;
	const char *place; /* of this one */
	uint64_t worker;   /* while entered */
	uint64_t tid;      /* then, of a span; 0: not known */
	size_t process, reading; /* of this life; of the event that is being read */
	bool entered, closed, has_process, is_new;
};

/*
 * Read the life of |life|, of the first process that has it, from |paths|.  0, or the exit status
 * with a line on stderr.  Release it in both cases.
 */
int d9__task_life_read(struct d9__task_life *life, const char *command, char **paths);
void d9__task_life_release(struct d9__task_life *life);

/* The name of task |id| for people in new memory, or NULL. */
char *d9__task_life_task_name(const struct d9__task_life *life, uint64_t id);

/* Describe what made the wake |mark|: "itself", "handler (task 9)", "its timer", ... */
void d9__task_life_describe_waker(const struct d9__task_life *life, const struct d9__task_life_mark *mark,
			     char *buf, size_t size);

/* Describe the mark |mark| inside of a poll: "span parse begins", "OrderEvent". */
void d9__task_life_describe_inside(const struct d9__task_life *life, const struct d9__task_life_mark *mark,
			      char *buf, size_t size);

/* The sums of a life.  Its open parts count up to the end of the trace. */
struct d9__task_life_sums {
	uint64_t busy_ns, idle_ns, enters, wakes, self_wakes, foreign_wakes;
	uint64_t waited_ns, waited_max_ns; /* from wake to enter */
};
struct d9__task_life_sums d9__task_life_sum(const struct d9__task_life *life);
