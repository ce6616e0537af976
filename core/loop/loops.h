/* SPDX-License-Identifier: Apache-2.0 */
/* Loops: which loops exist, what they are called and which thread runs them. */

#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dial9/loop.h>

#define D9__LOOPS_MAX     1024
#define D9__LOOP_NAME_MAX 64
#define D9__TASK_SHARDS   64

struct d9__task;
struct d9__thread;

struct d9_loop {
	/* Written under the registry's lock while no thread uses the loop. */
	_Atomic(struct d9_loop *) next; /* in its bucket; read without a lock */
	_Atomic(const void *) address;  /* NULL: not registered */
	_Atomic(uint32_t) library;
	_Atomic(uint32_t) serial;       /* never used again; names the loop where it has no name */

	/* Any thread. */
	_Atomic(struct d9__thread *) owner; /* who parked or polled last; never dereferenced */
	_Atomic(int32_t) handed;            /* wakes from outside that no poll has taken yet */
	_Atomic(void *) companion;          /* the adapter's */
	/* Grows with each wait that could last, from a number of its own.  Owner thread only. */
	_Atomic(uint32_t) round;

	/* Protected by the registry's lock. */
	char name[D9__LOOP_NAME_MAX]; /* empty: none */
	struct d9_loop *next_free;

	/* Flush thread only. */
	uint32_t sampled_tasks, sampled_serial;
	uint64_t sampled_ns;

	/* Its tasks by the shard that they are in, under whose lock this is written. */
	struct {
		struct d9__task *_Atomic first;
		_Atomic(uint32_t) n;
	} shards[D9__TASK_SHARDS];
};

/* The loop for |address|, made if needed.  0, -EINVAL, -ENOSPC, -ENOMEM. */
int d9__loops_add(enum d9_library library, const void *address, const char *name,
		  struct d9_loop **loop);

/* Take |loop| out and recycle it.  False if it was not registered. */
bool d9__loops_remove(struct d9_loop *loop);

/* NULL if there is none.  No lock. */
struct d9_loop *d9__loops_find(enum d9_library library, const void *address);

/* Copy the loop's name to |name|; empty if it has none. */
void d9__loop_name(struct d9_loop *loop, char name[D9__LOOP_NAME_MAX]);

/* The i-th entry ever used, registered now or not; NULL behind the last. */
struct d9_loop *d9__loops_at(size_t i);

/* Whether a loop was ever registered. */
D9_API bool d9__loops_any(void);

/* Set up all of loop/, once per process.  Returns 0 or -errno. */
int d9__loops_init(void);

/* "libevent", "libev", "glib", "own". */
const char *d9__library_name(uint32_t library);

void d9__loops_fork_prepare(void);
void d9__loops_fork_parent(void);
void d9__loops_fork_child(void);
