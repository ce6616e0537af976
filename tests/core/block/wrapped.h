/* SPDX-License-Identifier: Apache-2.0 */
/* A callback of a loop, the wrappers of calls that block, and what they recorded in it. */

#pragma once

#include <dlfcn.h>
#include <string.h>

#include <dial9/loop.h>

#include "block/call.h"
#include "block/calls.h"
#include "block/locks.h"
#include "block/waits.h"
#include "core/loop/loop_events.h"
#include "drain/blocking_event.h"
#include "drain/side_event.h"
#include "record/sampling.h"
#include "support/d9_test.h"

#define MS	 UINT64_C(1000000)
#define CALLBACK 7

static struct d9_loop *loop;
static struct d9_poll poll_;
static struct d9_loop_run run;

/* ---- callbacks ---- */

static inline void begin_callback(void)
{
	poll_ = (struct d9_poll) { .loop = loop, .task = { .key = CALLBACK, .fd = -1 } };
	d9_loop_enter(loop, &run);
	d9_poll_begin(&poll_);
}

static inline void end_callback(void)
{
	d9_poll_end(&poll_);
	d9_loop_leave(&run);
}

/* ---- wrappers ---- */

/* As the engine does: not a cast, which compilers warn of. */
typedef void *any_function __attribute__((may_alias));

static inline const struct d9__got_hook *find_hook(const char *name)
{
	for (size_t i = 0; i < D9__CALL_HOOKS; i++)
		if (!strcmp(d9__call_hooks[i].name, name))
			return &d9__call_hooks[i];
	for (size_t i = 0; i < D9__LOCK_HOOKS; i++)
		if (!strcmp(d9__lock_hooks[i].name, name))
			return &d9__lock_hooks[i];
	for (size_t i = 0; i < D9__WAIT_HOOKS; i++)
		if (d9__wait_hooks[i].name && !strcmp(d9__wait_hooks[i].name, name))
			return &d9__wait_hooks[i];
	return NULL;
}

/* The wrapper of |name| in front of |real|. */
static inline void *wrap(const char *name, void *real)
{
	const struct d9__got_hook *hook = find_hook(name);

	if (!hook)
		return NULL;
	*(any_function *)hook->real = real;
	return hook->replacement;
}

static inline void *wrapped(const char *name)
{
	return wrap(name, dlsym(RTLD_DEFAULT, name));
}

/* ---- what they left ---- */

static struct d9__side_record samples[8], calls[8];
static size_t n_samples, n_calls;

static inline void take_records(void)
{
	struct d9__side_record record;

	n_samples = n_calls = 0;
	for (uint32_t i = 0; i < d9__slot_high(); i++)
		while (d9__side_take(i, &record)) {
			if (record.type_id == D9__EVENT_CPU_SAMPLE && n_samples < 8)
				samples[n_samples++] = record;
			if (record.type_id == D9__EVENT_BLOCKING_CALL && n_calls < 8)
				calls[n_calls++] = record;
		}
}

static inline const struct d9__sample_raw *sample_at(size_t i)
{
	return (const struct d9__sample_raw *)(const void *)samples[i].payload;
}

static inline const struct d9__blocking_raw *call_at(size_t i)
{
	return (const struct d9__blocking_raw *)(const void *)calls[i].payload;
}

/* Start recording, with a loop for callbacks. */
static inline int wrapped_main(const char *name, const CU_TestInfo *tests)
{
	loop_events_start();
	atomic_store(&d9__sampling.blocking, true);
	loop = loop_events_add(D9_LIBRARY_LIBEVENT, &loop);
	return d9_test_main(name, tests);
}
