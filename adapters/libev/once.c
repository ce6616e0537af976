/* SPDX-License-Identifier: Apache-2.0 */
/* ev_once(): libev's own watchers call us, and we the program. */

#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include <dial9/loop.h>

#include "base/heap.h"
#include "libev/layout.h"
#include "libev/records.h"
#include "libev/static.h"
#include "libev/thread.h"
#include "libev/watchers.h"
#include "loop/adapter.h"

/* Given to libev in place of callback and argument.  We free it, once libev called it. */
struct once {
	d9__libev_once_fn callback;
	void *arg;
	const void *site;
};

struct frame {
	struct d9_poll poll;
	struct d9__libev_context saved;
	struct once *once;
};

static void end_once(struct frame *frame)
{
	d9__poll_end_once(&frame->poll);
	d9__libev_thread()->now = frame->saved;
	d9__free(frame->once);
}

/* Its key is odd: the memory may have been a watcher's before. */
static void begin_once(struct frame *frame, struct d9__libev_thread *thread,
		       const struct d9__libev_record *record, const struct once *once, int events)
{
	frame->poll.loop = record->loop;
	frame->poll.task = (struct d9_task) {
		.key = (uintptr_t)once | 1,
		.callsite = d9_callsite((const void *)once->callback, once->site, 0),
		.fd = -1,
		.kind = D9_TASK_ONCE,
		.flags = D9_TASK_RUNS_ONCE,
	};
	frame->poll.reason = d9__libev_watcher_reason(events);
	if (frame->poll.reason == D9_WAKE_TIMER)
		frame->poll.ready_ns = thread->once_due_ns;
	d9__poll_begin_once(&frame->poll);
	thread->now.callback = (const void *)once->callback;
	thread->now.internal = false;
}

/* libev calls it from a callback of its own. */
static D9__CALLS_BACK void on_once(int events, void *arg)
{
	struct once *once = arg;
	struct d9__libev_thread *thread = d9__libev_thread();
	const struct d9__libev_record *record = thread->now.internal ? thread->now.record : NULL;
	__attribute__((cleanup(end_once))) struct frame frame = {
		.poll = { .depth = 1 }, .saved = thread->now, .once = once
	};

	if (record && !record->batch)
		begin_once(&frame, thread, record, once, events);
	once->callback(events, once->arg);
}

static struct once *make_once(d9__libev_once_fn callback, void *arg, const void *site)
{
	int saved = errno;
	struct once *once = d9__malloc(sizeof(*once));

	if (once)
		*once = (struct once) { callback, arg, site };
	errno = saved;
	return once;
}

void d9__hook_ev_once(struct ev_loop *loop, int fd, int events, ev_tstamp timeout,
		      d9__libev_once_fn callback, void *arg)
{
	struct d9__libev_thread *thread = d9__libev_thread();
	const void *caller = __builtin_return_address(0);
	struct once *once = NULL;

	if (d9__libev_recorded(thread, loop) && !d9__called_by_libev(thread, caller))
		once = make_once(callback, arg, d9__libev_site(thread, caller));
	if (once)
		d9__libev.ev_once(loop, fd, events, timeout, on_once, once);
	else
		d9__libev.ev_once(loop, fd, events, timeout, callback, arg);
}
