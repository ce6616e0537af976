/* SPDX-License-Identifier: Apache-2.0 */
/* Part of <dial9/ev-embed.h>: what runs between libev and the program's callbacks. */

#ifndef DIAL9_EV_EMBED_POLLS_H
#define DIAL9_EV_EMBED_POLLS_H

#ifndef DIAL9_EV_EMBED_H
#error "include <dial9/ev-embed.h>"
#endif

static int d9__ev_is_internal(const void *callback)
{
#define D9__EV_IS(function) (callback == (const void *)(function))
	return D9__EV_IS(pendingcb)
#if EV_SIGNAL_ENABLE || EV_ASYNC_ENABLE
	       || D9__EV_IS(pipecb)
#endif
#if EV_CHILD_ENABLE
	       || D9__EV_IS(childcb)
#endif
#if EV_USE_SIGNALFD
	       || D9__EV_IS(sigfdcb)
#endif
#if EV_USE_TIMERFD
	       || D9__EV_IS(timerfdcb)
#endif
#if EV_STAT_ENABLE
	       || D9__EV_IS(stat_timer_cb)
#if EV_USE_INOTIFY
	       || D9__EV_IS(infy_cb)
#endif
#endif
#if EV_EMBED_ENABLE
	       || D9__EV_IS(embed_io_cb) || D9__EV_IS(embed_prepare_cb)
#if EV_FORK_ENABLE
	       || D9__EV_IS(embed_fork_cb)
#endif
#endif
#if EV_USE_LINUXAIO
	       || D9__EV_IS(linuxaio_epoll_cb)
#endif
#if EV_USE_IOURING
	       || D9__EV_IS(iouring_tfd_cb)
#endif
	       || D9__EV_IS(once_cb_io) || D9__EV_IS(once_cb_to);
#undef D9__EV_IS
}

struct d9__ev_frame {
	struct d9_poll poll;
	struct d9__ev_record *running;
	const void *callback;
	struct d9__ev_watcher *known; /* of a watcher that expired; else NULL */
};

/* The watcher may be gone by now; errno stays. */
static void d9__ev_end(struct d9__ev_frame *frame)
{
	struct d9__ev_watcher *known = frame->known;

	d9_poll_end(&frame->poll);
	d9__ev_self.running = frame->running;
	d9__ev_self.callback = frame->callback;
	d9__ev_self.batched = 1;
	/* A one-shot timer that its own callback did not start again has ended. */
	if (known && known->expired && known->watcher == (const void *)(uintptr_t)frame->poll.task.key) {
		known->watcher = NULL;
		d9_task_end(D9_LIBRARY_LIBEV, frame->poll.task.key);
	}
}

static void d9__ev_begin(struct d9__ev_frame *frame, struct d9__ev_record *record)
{
	frame->poll.loop = record ? record->loop : NULL;
	frame->poll.task.name = NULL;
	frame->poll.flags = d9__ev_self.batched ? D9_POLL_BATCHED : 0;
	frame->running = d9__ev_self.running;
	frame->callback = d9__ev_self.callback;
	d9_poll_begin(&frame->poll);
	d9__ev_self.running = record;
	d9__ev_self.batched = 0;
}

static unsigned d9__ev_depth(EV_P)
{
	unsigned n = 1;

	for (int i = 0; i < NUMPRI; i++)
		n += (unsigned)D9__EV_MEMBER(pendingcnt)[i];
	return n;
}

/* Since when |w| waits for its call, and why; where it was fed by the program that is known already. */
static void d9__ev_tell_ready(EV_P_ struct d9__ev_record *record,
			      const struct d9__ev_watcher *known, struct ev_watcher *w, int events,
			      struct d9_poll *poll)
{
	int kind = known->started ? (int)known->kind : (int)D9_TASK_CUSTOM;

	poll->ready_ns = 0;
	poll->reason = D9_WAKE_FD;
	if (d9__ev_self.direct == w) {
		d9__ev_self.direct = NULL;
		poll->reason = D9_WAKE_ACTIVE;
		poll->ready_ns = d9_loop_now();
	} else if (events & (EV_READ | EV_WRITE)) {
		return;
	} else if (events & EV_TIMER) {
		poll->reason = D9_WAKE_TIMER;
		if (kind == D9_TASK_TIMER)
			poll->ready_ns = d9__ev_timer_due_ns(EV_A_(const ev_timer *)w);
#if EV_PERIODIC_ENABLE
	} else if (events & EV_PERIODIC) {
		poll->reason = D9_WAKE_TIMER;
		if (kind == D9_TASK_PERIODIC)
			poll->ready_ns = d9__ev_periodic_due_ns(EV_A_(const ev_periodic *)w);
#endif
	} else if (events & (EV_SIGNAL | EV_CHILD)) {
		poll->reason = D9_WAKE_SIGNAL;
	} else if (events & EV_ASYNC) {
		d9__ev_take_cell(record, w);
		poll->reason = D9_WAKE_CROSS_THREAD;
	} else {
		poll->reason = events & EV_CUSTOM ? D9_WAKE_ACTIVE : D9_WAKE_INTERNAL;
		poll->ready_ns = d9_loop_now();
	}
}

/* One that was started before attach, was only fed, has another callback, or fell out of the memory. */
static __attribute__((noinline)) struct d9__ev_watcher *
d9__ev_learn(const struct d9__ev_record *record, struct ev_watcher *w, const void *callback,
	     int events)
{
	struct d9__ev_watcher *known =
		d9__ev_remember(record, w, callback, d9__ev_kind(events), -1);
	uint64_t id = d9_task_id(D9_LIBRARY_LIBEV, (uintptr_t)w);

	/* If dial9 knows it with this callback it stays that task, and has a callsite. */
	if (id)
		d9__ev_arm(record, known);
	if (!id || d9_task_id(D9_LIBRARY_LIBEV, (uintptr_t)w) != id)
		known->callsite = d9_callsite(callback, NULL, 0);
	return known;
}

/* |known|: with this very callback, or NULL. */
static D9__EV_CALLS void d9__ev_record_call(EV_P_ struct d9__ev_record *record,
					    struct d9__ev_watcher *known, struct ev_watcher *w,
					    const void *callback, int events)
{
	__attribute__((cleanup(d9__ev_end))) struct d9__ev_frame frame;

	if (!known)
		known = d9__ev_learn(record, w, callback, events);
	if (events & EV_TIMER && !ev_is_active(w) && d9__ev_self.direct != w)
		known->expired = 1;
	frame.known = known->expired ? known : NULL;
	frame.poll.task.key = (uintptr_t)w;
	frame.poll.task.identity = d9__ev_identity(callback);
	frame.poll.task.callsite = known->callsite;
	frame.poll.task.fd = known->kind == D9_TASK_IO ? known->fd : -1;
	frame.poll.task.kind = known->kind;
	frame.poll.task.flags = 0;
	frame.poll.depth = d9__ev_depth(EV_A);
	d9__ev_tell_ready(EV_A_ record, known, w, events, &frame.poll);
	d9__ev_begin(&frame, record);
	d9__ev_self.callback = callback;
	D9_EV_CB_INVOKE(w, events);
}

struct d9__ev_internal_frame {
	struct d9__ev_record *running;
};

static void d9__ev_leave_internal(struct d9__ev_internal_frame *frame)
{
	d9__ev_self.running = frame->running;
	d9__ev_self.batched = 0;
}

/* libev's own; it may call a callback of ev_once(). */
static D9__EV_CALLS void d9__ev_call_internal(EV_P_ struct d9__ev_record *record,
					      struct ev_watcher *w, int events)
{
	__attribute__((cleanup(d9__ev_leave_internal))) struct d9__ev_internal_frame frame;

	frame.running = d9__ev_self.running;
	d9__ev_self.running = record;
	d9__ev_self.batched = 0;
	__atomic_add_fetch(&d9__ev_internal, 1, __ATOMIC_RELAXED);
	if (events & EV_TIMER)
		d9__ev_self.once_due_ns = d9__ev_timer_due_ns(EV_A_(const ev_timer *)w);
	D9_EV_CB_INVOKE(w, events);
}

static void d9__ev_call(void *address, void *watcher, int events)
{
	struct ev_watcher *w = (struct ev_watcher *)watcher;
	const void *callback = (const void *)D9_EV_CALLBACK(w);
	struct d9__ev_record *record = NULL;
	struct d9__ev_watcher *known;
	D9__EV_TAKE(address);

	if (d9_loop_recording())
		record = d9__ev_record_of(D9__EV_LOOP);
	if (!record) {
		D9_EV_CB_INVOKE(w, events);
		return;
	}
	known = d9__ev_recall(record, w);
	if (known && known->callback != callback)
		known = NULL;
	/* Of libev's own none is ever remembered. */
	if (!known && d9__ev_is_internal(callback))
		d9__ev_call_internal(EV_A_ record, w, events);
	else
		d9__ev_record_call(EV_A_ record, known, w, callback, events);
}

/* ---- what runs once ---- */

/* Handed to libev in the place of the program's pair. */
struct d9__ev_once {
	void (*callback)(int events, void *arg);
	void *arg;
	const struct d9_callsite *callsite;
};

struct d9__ev_once_frame {
	struct d9__ev_frame frame;
	struct d9__ev_once *once;
};

static void d9__ev_end_once(struct d9__ev_once_frame *frame)
{
	d9__ev_end(&frame->frame);
	free(frame->once);
}

/* Its key is odd: the memory may have been a watcher's before. */
static D9__EV_CALLS void d9__ev_on_once(int events, void *arg)
{
	__attribute__((cleanup(d9__ev_end_once))) struct d9__ev_once_frame frame;
	struct d9__ev_record *record = d9__ev_self.running;
	struct d9_poll *poll = &frame.frame.poll;

	frame.once = (struct d9__ev_once *)arg;
	frame.frame.known = NULL;
	poll->task.key = (uintptr_t)arg | 1;
	poll->task.identity = 0;
	poll->task.callsite = frame.once->callsite;
	poll->task.fd = -1;
	poll->task.kind = D9_TASK_ONCE;
	poll->task.flags = D9_TASK_RUNS_ONCE;
	poll->depth = 1;
	poll->reason = events & EV_TIMER ? D9_WAKE_TIMER : D9_WAKE_FD;
	poll->ready_ns = events & EV_TIMER ? d9__ev_self.once_due_ns : 0;
	d9__ev_begin(&frame.frame, record);
	d9__ev_self.callback = (const void *)frame.once->callback;
	frame.once->callback(events, frame.once->arg);
}

static struct d9__ev_once *d9__ev_make_once(void (*callback)(int, void *), void *arg,
					    const void *site)
{
	int saved = errno;
	struct d9__ev_once *once = (struct d9__ev_once *)malloc(sizeof(*once));

	errno = saved;
	if (!once)
		return NULL;
	once->callback = callback;
	once->arg = arg;
	once->callsite = d9_callsite((const void *)callback, site, 0);
	return once;
}

#endif /* DIAL9_EV_EMBED_POLLS_H */
