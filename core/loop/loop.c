/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of <dial9/loop.h>. */
#include "config.h"

#include <dial9/loop.h>

#include <time.h>

int d9_library_describe(const char *library, const char *key, const char *value)
{
	(void)library;
	(void)key;
	(void)value;
	return 0;
}

int d9_loop_register(enum d9_library library, const void *address, const char *name,
		     struct d9_loop **loop)
{
	(void)library;
	(void)address;
	(void)name;
	*loop = NULL;
	return 0;
}

void d9_loop_unregister(struct d9_loop *loop)
{
	(void)loop;
}

struct d9_loop *d9_loop_find(enum d9_library library, const void *address)
{
	(void)library;
	(void)address;
	return NULL;
}

int d9_loop_recording(void)
{
	return 0;
}

uint64_t d9_loop_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void d9_loop_enter(struct d9_loop *loop, struct d9_loop_run *run)
{
	(void)loop;
	run->d9__opaque[0] = 0;
}

void d9_loop_leave(struct d9_loop_run *run)
{
	(void)run;
}

void d9_loop_park(struct d9_loop *loop, int64_t timeout_ns)
{
	(void)loop;
	(void)timeout_ns;
}

void d9_loop_unpark(struct d9_loop *loop)
{
	(void)loop;
}

void d9_loop_parked(struct d9_loop *loop, uint64_t since_ns)
{
	(void)loop;
	(void)since_ns;
}

struct d9_callsite {
	const void *callback, *site;
};

const struct d9_callsite *d9_callsite(const void *callback, const void *site, unsigned flags)
{
	static const struct d9_callsite unknown;

	(void)callback;
	(void)site;
	(void)flags;
	return &unknown;
}

int d9_task_arm(struct d9_loop *loop, const struct d9_task *task)
{
	(void)loop;
	(void)task;
	return 0;
}

void d9_task_renew(enum d9_library library, uint64_t key, uint64_t identity)
{
	(void)library;
	(void)key;
	(void)identity;
}

void d9_task_end(enum d9_library library, uint64_t key)
{
	(void)library;
	(void)key;
}

uint64_t d9_task_id(enum d9_library library, uint64_t key)
{
	(void)library;
	(void)key;
	return 0;
}

void d9_poll_begin(struct d9_poll *poll)
{
	poll->task_id = 0;
}

void d9_poll_end(struct d9_poll *poll)
{
	(void)poll;
}

uint64_t d9_poll_task(void)
{
	return 0;
}

void d9_waker_self(struct d9_waker *waker)
{
	*waker = (struct d9_waker){ .ns = d9_loop_now(), .worker = 255 };
}

int d9_wake(struct d9_loop *loop, uint64_t key, enum d9_wake_reason reason,
	    const struct d9_waker *waker)
{
	(void)loop;
	(void)key;
	(void)reason;
	(void)waker;
	return 0;
}

int d9_wake_cell_fill(struct d9_wake_cell *cell, struct d9_loop *loop)
{
	(void)cell;
	(void)loop;
	return 0;
}

int d9_wake_cell_take(struct d9_wake_cell *cell, struct d9_loop *loop, struct d9_waker *waker)
{
	(void)cell;
	(void)loop;
	(void)waker;
	return 0;
}

void d9_loop_span_enter(struct d9_loop_span *span, const struct d9_callsite *callsite)
{
	(void)callsite;
	span->d9__opaque[0] = 0;
}

void d9_loop_span_exit(struct d9_loop_span *span)
{
	(void)span;
}
