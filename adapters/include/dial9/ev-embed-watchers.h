/* SPDX-License-Identifier: Apache-2.0 */
/* Part of <dial9/ev-embed.h>: what the program does with watchers. */

#ifndef DIAL9_EV_EMBED_WATCHERS_H
#define DIAL9_EV_EMBED_WATCHERS_H

#ifndef DIAL9_EV_EMBED_H
#error "include <dial9/ev-embed.h>"
#endif

/* ---- what the program calls: each is declared as in ev.h ---- */

#define D9__EV_API(type, name, params)                                                             \
	EV_API_DECL type name params;                                                              \
	__attribute__((noinline, unused)) type name params

#define D9__EV_API_NOEXCEPT(type, name, params)                                                    \
	EV_API_DECL type name params D9__EV_NOEXCEPT;                                              \
	__attribute__((noinline, unused)) type name params D9__EV_NOEXCEPT

D9__EV_API_NOEXCEPT(void, ev_once,
		    (EV_P_ int fd, int events, ev_tstamp timeout, void (*cb)(int, void *), void *arg))
{
	const void *site = d9__ev_site(__builtin_return_address(0));
	struct d9__ev_once *once = NULL;

	if (d9_loop_recording() && d9__ev_record_of(D9__EV_LOOP))
		once = d9__ev_make_once(cb, arg, site);
	d9__real_ev_once(EV_A_ fd, events, timeout, once ? d9__ev_on_once : cb, once ? once : arg);
}

/* ---- watchers are started and stopped ---- */

/* Before libev starts it: afterwards nothing tells that its descriptor was set. */
static void d9__ev_note_start(const void *address, struct ev_watcher *w, uint16_t kind, int32_t fd,
			      int renewed, const void *caller)
{
	struct d9__ev_record *record = ev_is_active(w) ? NULL : d9__ev_record_of(address);
	const void *callback = (const void *)D9_EV_CALLBACK(w);
	struct d9__ev_watcher *known;

	if (!record || !callback)
		return;
	known = d9__ev_recall(record, w);
	if (known && known->callback == callback && known->fd == fd && known->kind == kind &&
	    !renewed) {
		known->stopped = known->expired = 0;
		return;
	}
	/* Another one than the one of that address; also one that only dial9 still knows. */
	if (renewed || known)
		d9_task_renew(D9_LIBRARY_LIBEV, (uintptr_t)w, 0);
	known = d9__ev_remember(record, w, callback, kind, fd);
	known->started = 1;
	known->callsite = d9_callsite(callback, d9__ev_site(caller), 0);
	d9__ev_arm(record, known);
}

/* What was announced will not run, and its next poll must not be measured from that. */
static void d9__ev_forget(struct d9__ev_watcher *known, const void *w)
{
	if (known)
		known->watcher = NULL;
	d9_task_end(D9_LIBRARY_LIBEV, (uintptr_t)w);
}

static void d9__ev_note_stop(const void *address, const struct ev_watcher *w)
{
	struct d9__ev_record *record =
		ev_is_active(w) || ev_is_pending(w) ? d9__ev_record_of(address) : NULL;
	struct d9__ev_watcher *known;

	if (!record)
		return;
	known = d9__ev_recall(record, w);
	if (ev_is_pending(w) || !known)
		d9__ev_forget(known, w);
	else
		known->stopped = 1;
}

#define D9__EV_START(function, type, kind, fd, renewed)                                            \
	D9__EV_API_NOEXCEPT(void, function, (EV_P_ type *w))                                       \
	{                                                                                          \
		d9__ev_note_start(D9__EV_LOOP, (struct ev_watcher *)w, kind, fd, renewed,          \
				  __builtin_return_address(0));                                    \
		d9__real_##function(EV_A_ w);                                                      \
	}

#define D9__EV_STOP(function, type)                                                                \
	D9__EV_API_NOEXCEPT(void, function, (EV_P_ type *w))                                       \
	{                                                                                          \
		d9__ev_note_stop(D9__EV_LOOP, (struct ev_watcher *)w);                             \
		d9__real_##function(EV_A_ w);                                                      \
	}

#define D9__EV_KIND(type, kind, fd, renewed)                                                       \
	D9__EV_START(ev_##type##_start, ev_##type, kind, fd, renewed)                              \
	D9__EV_STOP(ev_##type##_stop, ev_##type)

D9__EV_KIND(io, D9_TASK_IO, w->fd, (w->events & EV__IOFDSET) != 0)
D9__EV_STOP(ev_timer_stop, ev_timer)
#if EV_PERIODIC_ENABLE
D9__EV_KIND(periodic, D9_TASK_PERIODIC, -1, 0)
D9__EV_START(ev_periodic_again, ev_periodic, D9_TASK_PERIODIC, -1, 0)
#endif
#if EV_SIGNAL_ENABLE
D9__EV_KIND(signal, D9_TASK_SIGNAL, w->signum, 0)
#endif
#if EV_CHILD_ENABLE
D9__EV_KIND(child, D9_TASK_CHILD, w->pid, 0)
#endif
#if EV_STAT_ENABLE
D9__EV_KIND(stat, D9_TASK_STAT, -1, 0)
#endif
#if EV_IDLE_ENABLE
D9__EV_KIND(idle, D9_TASK_IDLE, -1, 0)
#endif
#if EV_PREPARE_ENABLE
D9__EV_KIND(prepare, D9_TASK_PREPARE, -1, 0)
#endif
#if EV_CHECK_ENABLE
D9__EV_KIND(check, D9_TASK_CHECK, -1, 0)
#endif
#if EV_EMBED_ENABLE
D9__EV_KIND(embed, D9_TASK_EMBED, -1, 0)
#endif
#if EV_FORK_ENABLE
D9__EV_KIND(fork, D9_TASK_FORK, -1, 0)
#endif
#if EV_CLEANUP_ENABLE
D9__EV_KIND(cleanup, D9_TASK_CLEANUP, -1, 0)
#endif

/* By a clock that stands still while callbacks run: it fires early where they ran long. */
static void d9__ev_look_at_clock(EV_P_ const ev_timer *w, ev_tstamp timeout)
{
	struct d9__ev_record *record = d9__ev_self.running;
	uint64_t due_ns = d9__ev_ns(w->at), timeout_ns = (uint64_t)(timeout * 1e9), lag_ns;

	if (!record || record != d9__ev_record_of(D9__EV_LOOP) || !due_ns || !timeout_ns)
		return;
	lag_ns = d9_loop_now() + timeout_ns - due_ns;
	if (lag_ns >= 4000000 && lag_ns < UINT64_C(3600000000000) && lag_ns >= timeout_ns / 4)
		d9_timer_stale(record->loop, (uintptr_t)w, timeout_ns, due_ns);
}

#define D9__EV_START_TIMER(function, timeout)                                                      \
	D9__EV_API_NOEXCEPT(void, function, (EV_P_ ev_timer *w))                                   \
	{                                                                                          \
		ev_tstamp after = (timeout);                                                       \
                                                                                                   \
		d9__ev_note_start(D9__EV_LOOP, (struct ev_watcher *)w, D9_TASK_TIMER, -1, 0,       \
				  __builtin_return_address(0));                                    \
		d9__real_##function(EV_A_ w);                                                      \
		if (d9__ev_self.running && after > 0. && after < 1e9 && ev_is_active(w))           \
			d9__ev_look_at_clock(EV_A_ w, after);                                      \
	}

D9__EV_START_TIMER(ev_timer_start, ev_is_active(w) ? 0. : w->at)
D9__EV_START_TIMER(ev_timer_again, w->repeat)

/* ---- async watchers ---- */

#if EV_ASYNC_ENABLE
D9__EV_API_NOEXCEPT(void, ev_async_start, (EV_P_ ev_async *w))
{
	struct d9__ev_record *record = d9__ev_record_of(D9__EV_LOOP);

	d9__ev_note_start(D9__EV_LOOP, (struct ev_watcher *)w, D9_TASK_ASYNC, -1, 0,
			  __builtin_return_address(0));
	if (record)
		d9__ev_add_cell(record, w);
	d9__real_ev_async_start(EV_A_ w);
}

D9__EV_API_NOEXCEPT(void, ev_async_stop, (EV_P_ ev_async *w))
{
	struct d9__ev_cell *cell = d9__ev_find_cell(w);

	d9__ev_note_stop(D9__EV_LOOP, (struct ev_watcher *)w);
	if (cell)
		d9__ev_drop_cell(cell);
	d9__real_ev_async_stop(EV_A_ w);
}

/* Any thread, any signal handler: nothing but atomics. */
D9__EV_API_NOEXCEPT(void, ev_async_send, (EV_P_ ev_async *w))
{
	struct d9__ev_cell *cell = d9_loop_recording() ? d9__ev_find_cell(w) : NULL;

	if (cell)
		d9_wake_cell_fill(&cell->wake, cell->record->loop);
	d9__real_ev_async_send(EV_A_ w);
}
#endif

/* ---- fed by the program ---- */

/* Fed and never started: this is the place that it will be known by. */
static void d9__ev_note_fed(struct d9__ev_record *record, struct ev_watcher *w, int events,
			    const void *site)
{
	const void *callback = (const void *)D9_EV_CALLBACK(w);
	struct d9__ev_watcher *known = d9__ev_recall(record, w);

	/* Of libev's own none is ever remembered. */
	if ((!known || known->callback != callback) && d9__ev_is_internal(callback))
		return;
	if (known && known->callback != callback) {
		d9_task_renew(D9_LIBRARY_LIBEV, (uintptr_t)w, d9__ev_identity(callback));
		known->callback = callback;
		known->callsite = d9_callsite(callback, NULL, 0);
	} else if (!known && !ev_is_active(w) && !d9_task_id(D9_LIBRARY_LIBEV, (uintptr_t)w)) {
		known = d9__ev_remember(record, w, callback, d9__ev_kind(events), -1);
		known->callsite = d9_callsite(callback, site, 0);
		d9__ev_arm(record, known);
	}
	d9_wake(record->loop, (uintptr_t)w,
		d9__ev_self.running == record ? D9_WAKE_ACTIVE : D9_WAKE_UNKNOWN, NULL);
}

/* Those that |call| has made pending are the program's doing. */
#define D9__EV_FEED(call)                                                                          \
	do {                                                                                       \
		const void *site = d9__ev_site(__builtin_return_address(0));                       \
		struct d9__ev_record *record =                                                     \
			d9_loop_recording() ? d9__ev_record_of(D9__EV_LOOP) : NULL;                \
		int before[NUMPRI];                                                                \
                                                                                                   \
		memcpy(before, D9__EV_MEMBER(pendingcnt), sizeof(before));                         \
		call;                                                                              \
		for (int i = 0; record && i < NUMPRI; i++) {                                       \
			for (int j = before[i]; j < D9__EV_MEMBER(pendingcnt)[i]; j++) {           \
				ANPENDING *p = D9__EV_MEMBER(pendings)[i] + j;                     \
                                                                                                   \
				d9__ev_note_fed(record, (struct ev_watcher *)p->w, p->events,      \
						site);                                             \
			}                                                                          \
		}                                                                                  \
	} while (0)

D9__EV_API_NOEXCEPT(void, ev_feed_event, (EV_P_ void *w, int revents))
{
	D9__EV_FEED(d9__real_ev_feed_event(EV_A_ w, revents));
}

D9__EV_API_NOEXCEPT(void, ev_feed_fd_event, (EV_P_ int fd, int revents))
{
	D9__EV_FEED(d9__real_ev_feed_fd_event(EV_A_ fd, revents));
}

#if EV_SIGNAL_ENABLE
D9__EV_API_NOEXCEPT(void, ev_feed_signal_event, (EV_P_ int signum))
{
	D9__EV_FEED(d9__real_ev_feed_signal_event(EV_A_ signum));
}
#endif

D9__EV_API_NOEXCEPT(int, ev_clear_pending, (EV_P_ void *w))
{
	struct d9__ev_record *record = d9__ev_record_of(D9__EV_LOOP);

	if (record && ev_is_pending(w))
		d9__ev_forget(d9__ev_recall(record, w), w);
	return d9__real_ev_clear_pending(EV_A_ w);
}

#endif /* DIAL9_EV_EMBED_WATCHERS_H */
