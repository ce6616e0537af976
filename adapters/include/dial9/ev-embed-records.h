/* SPDX-License-Identifier: Apache-2.0 */
/* Part of <dial9/ev-embed.h>: attached loops, and what is known about their watchers. */

#ifndef DIAL9_EV_EMBED_RECORDS_H
#define DIAL9_EV_EMBED_RECORDS_H

#ifndef DIAL9_EV_EMBED_H
#error "include <dial9/ev-embed.h>"
#endif

#ifndef D9__EV_WATCHERS
#define D9__EV_WATCHERS 1024u /* remembered per loop; a power of two */
#endif
#define D9__EV_CELLS	64    /* async watchers whose senders are known */

/* A watcher, as it was started or first seen.  What falls out of this memory dial9 still knows. */
struct d9__ev_watcher {
	const void *watcher; /* NULL: free.  Not dereferenced on its own account */
	const void *callback;
	const struct d9_callsite *callsite; /* NULL: dial9 has it */
	int32_t fd;			    /* of an io; what a signal or child watcher is for */
	uint16_t kind;
	uint8_t started; /* seen: it is of that kind.  What is only fed may be of any */
	uint8_t stopped; /* and not started again */
	uint8_t expired; /* stopped by libev itself: its last poll is to come, or runs */
};

/* An attached loop.  Never freed, but used again. */
struct d9__ev_record {
	struct d9__ev_record *next;
	const void *address; /* NULL: free */
	struct d9_loop *loop;
	struct d9__ev_watcher *watchers;
	void (*backend_poll)(EV_P_ ev_tstamp timeout); /* libev's, behind ours */
};

/* Carries the wake of an async watcher from other threads and signal handlers. */
struct d9__ev_cell {
	const void *watcher; /* NULL: free */
	struct d9__ev_record *record;
	struct d9_wake_cell wake;
};

static struct d9__ev_record *d9__ev_records;
static struct d9__ev_cell d9__ev_cells[D9__EV_CELLS];

/* Callbacks of libev's own that ran, and places of events that had been cleared. */
static unsigned long d9__ev_internal;

/* What this thread is doing. */
static __thread struct {
	struct d9__ev_record *latest;  /* that was looked up */
	struct d9__ev_record *running; /* whose callback runs; NULL: none */
	const void *callback;	       /* that runs */
	const void *direct;	       /* watcher that ev_invoke() runs */
	uint64_t once_due_ns;	       /* of the timer of ev_once() that runs */
	int batched;		       /* only libev ran since the latest poll */
} d9__ev_self;

static struct d9__ev_record *d9__ev_record_search(const void *address)
{
	struct d9__ev_record *record = __atomic_load_n(&d9__ev_records, __ATOMIC_ACQUIRE);

	while (record && __atomic_load_n(&record->address, __ATOMIC_ACQUIRE) != address)
		record = record->next;
	if (record)
		d9__ev_self.latest = record;
	return record;
}

/* Of the loop at |address|, or NULL. */
static inline struct d9__ev_record *d9__ev_record_of(const void *address)
{
	struct d9__ev_record *record = d9__ev_self.latest;

	if (record && __atomic_load_n(&record->address, __ATOMIC_RELAXED) == address)
		return record;
	return d9__ev_record_search(address);
}

static inline struct d9__ev_watcher *d9__ev_place(const struct d9__ev_record *record,
						  const void *watcher)
{
	uint64_t hash = (uint64_t)(uintptr_t)watcher * UINT64_C(0x9e3779b97f4a7c15);

	return &record->watchers[(hash >> 40) % D9__EV_WATCHERS];
}

/* NULL: not remembered. */
static inline struct d9__ev_watcher *d9__ev_recall(const struct d9__ev_record *record,
						   const void *watcher)
{
	struct d9__ev_watcher *known = d9__ev_place(record, watcher);

	return known->watcher == watcher ? known : NULL;
}

/* A watcher with another callback is another task. */
static inline uint64_t d9__ev_identity(const void *callback)
{
	return (uint64_t)(uintptr_t)callback | UINT64_C(1) << 63;
}

static struct d9__ev_watcher *d9__ev_remember(const struct d9__ev_record *record,
					      const void *watcher, const void *callback,
					      uint16_t kind, int32_t fd)
{
	struct d9__ev_watcher *known = d9__ev_place(record, watcher);

	if (known->watcher && known->watcher != watcher && known->stopped && !known->expired)
		d9_task_end(D9_LIBRARY_LIBEV, (uintptr_t)known->watcher);
	known->watcher = watcher;
	known->callback = callback;
	known->callsite = NULL;
	known->fd = fd;
	known->kind = kind;
	known->started = known->stopped = known->expired = 0;
	return known;
}

/* dial9 knows it, and its place, also when it has fallen out of our memory. */
static void d9__ev_arm(const struct d9__ev_record *record, const struct d9__ev_watcher *known)
{
	struct d9_task task;

	task.key = (uintptr_t)known->watcher;
	task.identity = d9__ev_identity(known->callback);
	task.callsite = known->callsite;
	task.name = NULL;
	task.fd = known->kind == D9_TASK_IO ? known->fd : -1;
	task.kind = known->kind;
	task.flags = 0;
	d9_task_arm(record->loop, &task);
}

/* The linker's marks around what calls callbacks. */
extern const char d9__ev_calls_start[] __asm__("__start_d9_ev_calls")
	__attribute__((visibility("hidden")));
extern const char d9__ev_calls_stop[] __asm__("__stop_d9_ev_calls")
	__attribute__((visibility("hidden")));

/* The program's call that returns to |caller|; one that returns to us is a callback's last. */
static inline const void *d9__ev_site(const void *caller)
{
	uintptr_t size = (uintptr_t)d9__ev_calls_stop - (uintptr_t)d9__ev_calls_start;

	return (uintptr_t)caller - (uintptr_t)d9__ev_calls_start <= size ? d9__ev_self.callback
									   : caller;
}

/* ---- async watchers: senders may be signal handlers and other threads ---- */

static struct d9__ev_cell *d9__ev_find_cell(const void *watcher)
{
	for (int i = 0; i < D9__EV_CELLS; i++) {
		/* acquire: pairs with the release of who filled it in */
		if (__atomic_load_n(&d9__ev_cells[i].watcher, __ATOMIC_ACQUIRE) == watcher)
			return &d9__ev_cells[i];
	}
	return NULL;
}

/* The poll's wake, if somebody has sent. */
static void d9__ev_take_cell(struct d9__ev_record *record, const void *watcher)
{
	struct d9__ev_cell *cell = d9__ev_find_cell(watcher);
	struct d9_waker waker, self;

	if (!cell || !d9_wake_cell_take(&cell->wake, record->loop, &waker))
		return;
	d9_waker_self(&self);
	d9_wake(record->loop, (uintptr_t)watcher,
		waker.worker == self.worker && waker.task_id ? D9_WAKE_ACTIVE
							     : D9_WAKE_CROSS_THREAD,
		&waker);
}

static void d9__ev_drop_cell(struct d9__ev_cell *cell)
{
	struct d9_waker waker;

	d9_wake_cell_take(&cell->wake, cell->record->loop, &waker);
	__atomic_store_n(&cell->watcher, (const void *)NULL, __ATOMIC_RELEASE);
}

/* Loops may take cells at the same time; one that fails has no sender in the trace. */
static __attribute__((unused)) void d9__ev_add_cell(struct d9__ev_record *record, const void *watcher)
{
	static const char taken = 0;

	if (d9__ev_find_cell(watcher))
		return;
	for (int i = 0; i < D9__EV_CELLS; i++) {
		const void *none = NULL;

		if (!__atomic_compare_exchange_n(&d9__ev_cells[i].watcher, &none,
						 (const void *)&taken, 0, __ATOMIC_ACQUIRE,
						 __ATOMIC_RELAXED))
			continue;
		d9__ev_cells[i].record = record;
		__atomic_store_n(&d9__ev_cells[i].watcher, watcher, __ATOMIC_RELEASE);
		return;
	}
}

/* ---- deadlines, in ns of CLOCK_MONOTONIC ---- */

/* 0: not plausible, or of another clock. */
static inline uint64_t d9__ev_ns(ev_tstamp s)
{
#if EV_USE_MONOTONIC
	return have_monotonic && s > 0. && s < 1e10 ? (uint64_t)(s * 1e9) : 0;
#else
	(void)s;
	return 0;
#endif
}

/* When |timer|, whose callback is about to run, was due.  Where it is stopped what is left is kept. */
static uint64_t d9__ev_timer_due_ns(EV_P_ const ev_timer *timer)
{
	if (timer->repeat > 0.)
		return d9__ev_ns(timer->at - timer->repeat);
	return d9__ev_ns(D9__EV_MEMBER(mn_now) + timer->at);
}

#if EV_PERIODIC_ENABLE
static uint64_t d9__ev_periodic_due_ns(EV_P_ const ev_periodic *periodic)
{
	ev_tstamp due = periodic->interval > 0. ? periodic->at - periodic->interval : periodic->at;

	return periodic->reschedule_cb ? 0 : d9__ev_ns(due - D9__EV_MEMBER(rtmn_diff));
}
#endif

#endif /* DIAL9_EV_EMBED_RECORDS_H */
