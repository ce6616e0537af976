/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libglib's own calls of libc: waits, wake-ups, and the end of contexts.
 *
 * write() may be called with a context's lock held and in a signal handler, close() and eventfd()
 * in a forked child: no locks there, and no function of GLib.
 */
#include "config.h"

#include "base/time.h"
#include "glib/waits.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <dial9/event.h>
#include <dial9/loop.h>

#include "glib/contexts.h"
#include "glib/dispatch.h"
#include "glib/logs.h"
#include "glib/scan.h"
#include "hook/got.h"
#include "loop/adapter.h"

#define BLOCKED_NS    (100 * D9__US_NS) /* shorter waits inside a callback are not told */
#define SAMPLE_NS     (10 * D9__MS_NS)
#define NO_WORKER     255u

_Atomic(uint32_t) d9__glib_polls_unbound;
struct d9__glib_waits_seen d9__glib_waits_seen = { .fd = -1 };

static const struct d9_field wake_fields[] = {
	{ "waker_task_id", D9_FIELD_VARINT, NULL, NULL },
	{ "waker_worker", D9_FIELD_U8, NULL, NULL },
	{ "woken_task_id", D9_FIELD_VARINT | D9_FIELD_OPTIONAL, NULL, NULL },
	{ "loop_fd", D9_FIELD_VARINT, NULL, NULL },
};
static struct d9_event_type wake_type = D9_EVENT_TYPE("LoopWakeEvent", wake_fields);

static const struct d9_field blocked_fields[] = {
	{ "worker_id", D9_FIELD_VARINT, NULL, NULL },
	{ "task_id", D9_FIELD_VARINT, NULL, NULL },
	{ "function", D9_FIELD_POOLED_STRING, NULL, NULL },
	{ "fd", D9_FIELD_VARINT | D9_FIELD_OPTIONAL, NULL, NULL },
	{ "duration_ns", D9_FIELD_VARINT, "ns", NULL },
};
static struct d9_event_type blocked_type = D9_EVENT_TYPE("BlockingCallEvent", blocked_fields);

static const struct d9_field sample_fields[] = {
	{ "worker_id", D9_FIELD_VARINT, NULL, NULL }, { "rounds", D9_FIELD_VARINT, NULL, "counter" },
	{ "spins", D9_FIELD_VARINT, NULL, "counter" }, { "parks", D9_FIELD_VARINT, NULL, "counter" },
	{ "polls", D9_FIELD_VARINT, NULL, "counter" }, { "unseen", D9_FIELD_VARINT, NULL, "counter" },
};
static struct d9_event_type sample_type = D9_EVENT_TYPE("LoopSampleEvent", sample_fields);

void d9__glib_waits_init(void)
{
	d9_event_type_register(&wake_type);
}

/* ---- which context waits ---- */

/* The array is sorted by descriptor; equality decides, so one that is not does no harm. */
static bool find_by_halves(struct d9__glib_context *record, const struct pollfd *fds, nfds_t n,
			   int fd)
{
	nfds_t low = 0, high = n;

	while (low < high) {
		nfds_t middle = low + (high - low) / 2;

		if (fds[middle].fd == fd) {
			record->wake_at = (uint32_t)middle;
			return true;
		}
		if (fds[middle].fd < fd)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

static bool waits_for(struct d9__glib_context *record, const struct pollfd *fds, nfds_t n)
{
	int fd = atomic_load_explicit(&record->wake_fd, memory_order_relaxed);

	if (fd < 0)
		return false;
	return (record->wake_at < n && fds[record->wake_at].fd == fd) ||
	       find_by_halves(record, fds, n, fd);
}

static struct d9__glib_context *find_one(const struct pollfd *fds, nfds_t n)
{
	for (nfds_t i = 0; i < n; i++) {
		struct d9__glib_context *record = d9__glib_context_of_fd(fds[i].fd);

		if (record && fds[i].fd == atomic_load_explicit(&record->wake_fd,
								memory_order_relaxed)) {
			record->wake_at = (uint32_t)i;
			return record;
		}
	}
	return d9__glib_context_resolve_pipe(fds, n);
}

/* Once per thread: a context that was made where no hook could see it. */
static struct d9__glib_context *look_for_own(struct d9__glib_thread *thread,
					     const struct pollfd *fds, nfds_t n)
{
	GMainContext *context;

	if (thread->looked || !atomic_load_explicit(&d9__glib_all, memory_order_relaxed))
		return NULL;
	thread->looked = true;
	context = d9__glib.g_main_context_get_thread_default();
	if (!context)
		context = atomic_load_explicit(&d9__glib_default, memory_order_relaxed);
	/* It waits in GLib: what the first thread waits for is this one, so that it exists. */
	if (!context && !d9__sandbox_is_shut() && syscall(SYS_gettid) == getpid())
		context = d9__glib.g_main_context_default();
	if (!context || !d9__glib_context(thread, context))
		return NULL;
	return find_one(fds, n);
}

static struct d9__glib_context *context_of(struct d9__glib_thread *thread,
					   const struct pollfd *fds, nfds_t n)
{
	struct d9__glib_context *record = thread->record;

	if (record &&
	    thread->generation ==
		    atomic_load_explicit(&d9__glib_generation, memory_order_acquire) &&
	    waits_for(record, fds, n))
		return record;
	record = find_one(fds, n);
	if (!record && d9_poll_task() == 0)
		record = look_for_own(thread, fds, n);
	return record;
}

/* ---- a wait ---- */

struct wait {
	struct d9__glib_context *record;
	uint64_t since_ns; /* of a wait that blocks the loop of a callback; 0: it is none */
	nfds_t n;
};

/* The function that waits, as programs call it and where it lies, and who called it. */
struct call {
	const char *function;
	const void *real, *caller;
};

#define CALL(function_, real_) \
	(&(struct call){ (function_), (const void *)(real_), __builtin_return_address(0) })

/* Figures of the loop, now and then. */
static void sample(struct d9__glib_context *record, uint64_t now_ns)
{
	struct d9_waker self;
	uint64_t unseen = d9__glib_unseen_of(record);

	if (now_ns - record->sampled_ns < SAMPLE_NS)
		return;
	record->sampled_ns = now_ns;
	d9_waker_self(&self);
	if (self.worker != NO_WORKER)
		D9_EMIT(&sample_type, self.worker, record->rounds, record->spins, record->parks,
			record->polls, unseen);
	d9__glib_scan_if_wanted(record, now_ns, unseen);
	d9__glib_logs_look();
	d9__got_rescan_paced(now_ns);
}

/* Inside a callback it blocks the loop; else it is that of a context that we have not seen. */
static void note_unbound(struct wait *wait)
{
	if (d9_poll_task() != 0)
		wait->since_ns = d9_loop_now();
	else if (atomic_load_explicit(&d9__glib_all, memory_order_relaxed))
		atomic_fetch_add_explicit(&d9__glib_polls_unbound, 1, memory_order_relaxed);
}

/*
 * Whether a callback waits by a context of its own, as synchronous calls of GIO do: what else its
 * loop has cannot run, so that this is no wait of a loop.
 */
static bool is_inner(struct d9__glib_thread *thread, const struct d9__glib_context *record)
{
	/* A longjmp() out of the callback leaves it behind. */
	if (thread->outermost && d9_poll_task() == 0)
		thread->outermost = NULL;
	return thread->outermost && thread->outermost != record;
}

static void begin(struct wait *wait, const struct pollfd *fds, nfds_t n, int64_t timeout_ns)
{
	struct d9__glib_thread *thread = d9__glib_thread();
	struct d9__glib_context *record;

	*wait = (struct wait) { .n = n };
	if (__builtin_expect(thread->calibrating, 0)) {
		for (nfds_t i = 0; i < n; i++)
			d9__glib_waits_seen.polled |=
				timeout_ns == 0 && fds[i].fd == d9__glib_waits_seen.fd;
		return;
	}
	if (thread->inside)
		return;
	record = context_of(thread, fds, n);
	if (!record) {
		if (timeout_ns != 0)
			note_unbound(wait);
		return;
	}
	wait->record = record;
	record->polled = true;
	d9__glib_become_owner(record, thread);
	d9__glib_new_round(record, thread);
	if (timeout_ns != 0 && is_inner(thread, record)) {
		wait->since_ns = d9_loop_now();
		return;
	}
	if (timeout_ns == 0) {
		record->spins++;
	} else {
		record->parks++;
		if (d9__gate_open(D9__GATE_LOOP))
			sample(record, d9_loop_now());
	}
	d9_loop_park(record->loop, timeout_ns);
}

static void tell_blocked(const struct wait *wait, const struct call *call)
{
	uint64_t ns = d9_loop_now() - wait->since_ns;
	struct d9_waker self;

	if (ns < BLOCKED_NS)
		return;
	/* Long ones with their stack: it names the program's function that asked for a synchronous call of GIO. */
	if (ns >= D9__BLOCKING_NS) {
		d9__block_tell(&(struct d9__blocked_call){ .function = call->function, .real = call->real,
						      .caller = call->caller, .fd = -1,
						      .begin_ns = wait->since_ns, .ns = ns });
		return;
	}
	d9_waker_self(&self);
	if (self.task_id)
		D9_EMIT(&blocked_type, self.worker, self.task_id, call->function, d9_absent(), ns);
}

static void end(struct wait *wait, const struct call *call)
{
	int saved = errno;

	if (wait->since_ns)
		tell_blocked(wait, call);
	if (wait->record && wait->since_ns)
		d9_loop_park(wait->record->loop, 0); /* a round of the inner loop begins */
	if (wait->record)
		d9_loop_unpark(wait->record->loop);
	errno = saved;
}

int d9__hook_poll(struct pollfd *fds, nfds_t n, int timeout)
{
	struct wait wait;
	int result;

	begin(&wait, fds, n, timeout < 0 ? -1 : timeout * (int64_t)D9__MS_NS);
	result = d9__glib.poll(fds, n, timeout);
	end(&wait, CALL("poll", d9__glib.poll));
	return result;
}

static int64_t length_of(const struct timespec *timeout)
{
	if (!timeout || timeout->tv_sec > INT64_MAX / 2000000000)
		return -1;
	return timeout->tv_sec * (int64_t)D9__SECOND_NS + timeout->tv_nsec;
}

int d9__hook_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		   const sigset_t *mask)
{
	struct wait wait;
	int result;

	begin(&wait, fds, n, length_of(timeout));
	result = d9__glib.ppoll(fds, n, timeout, mask);
	end(&wait, CALL("ppoll", d9__glib.ppoll));
	return result;
}

/* ---- wake-ups ---- */

/* Another thread than the loop's wakes it. */
static void tell_wake(const struct d9__glib_thread *thread, struct d9__glib_context *record,
		      int fd)
{
	uintptr_t owner = atomic_load_explicit(&record->owner, memory_order_relaxed);
	struct d9_waker self;
	uint64_t woken;

	if (!owner || owner == (uintptr_t)thread || !d9__gate_open(D9__GATE_WAKE))
		return;
	d9_waker_self(&self);
	woken = thread->about ? d9_task_id(D9_LIBRARY_GLIB, thread->about) : 0;
	D9_EMIT(&wake_type, self.task_id, self.worker, woken ? d9_arg_u64(woken) : d9_absent(), fd);
}

ssize_t d9__hook_write(int fd, const void *bytes, size_t n)
{
	struct d9__glib_thread *thread = d9__glib_thread();
	struct d9__glib_context *record;
	int saved;

	if (n != 8 && n != 1)
		return d9__glib.write(fd, bytes, n);
	if (thread->capturing) {
		thread->capturing = false;
		thread->captured_fd = fd;
		thread->captured_bytes = (uint8_t)n;
		return (ssize_t)n;
	}
	record = d9__glib_context_of_fd(fd);
	if (record && fd == atomic_load_explicit(&record->write_fd, memory_order_relaxed)) {
		saved = errno;
		tell_wake(thread, record, fd);
		errno = saved;
	}
	return d9__glib.write(fd, bytes, n);
}

int d9__hook_close(int fd)
{
	if (__builtin_expect(d9__glib_self.calibrating, 0) && fd == d9__glib_waits_seen.fd)
		d9__glib_waits_seen.closed = true;
	d9__glib_context_note_closed(fd);
	return d9__glib.close(fd);
}

int d9__hook_eventfd(unsigned value, int flags)
{
	int fd = d9__glib.eventfd(value, flags);

	if (fd >= 0)
		d9__glib_context_note_closed(fd); /* the one of that number was closed elsewhere */
	d9__glib_thread()->eventfd = fd;
	return fd;
}

/* ---- the program's own poll functions ---- */

gint d9__glib_wait_chain_poll(GPollFD *fds, guint n, gint timeout)
{
	struct d9__glib_thread *thread = d9__glib_thread();
	struct d9__glib_context *record = context_of(thread, (struct pollfd *)(void *)fds, n);
	GPollFunc user = record ? atomic_load_explicit(&record->user_poll, memory_order_relaxed)
				: NULL;
	bool outer = thread->inside;
	struct wait wait;
	int result;

	if (!user)
		return d9__glib.g_poll(fds, n, timeout);
	begin(&wait, (struct pollfd *)(void *)fds, n,
	      timeout < 0 ? -1 : timeout * (int64_t)D9__MS_NS);
	thread->inside = true;
	result = user(fds, n, timeout);
	thread->inside = outer;
	end(&wait, CALL("poll", user));
	return result;
}

/* Without a descriptor to tell contexts apart our function could not find the program's. */
static bool can_chain(const struct d9__glib_context *record)
{
	return atomic_load_explicit(&record->wake_fd, memory_order_relaxed) >= 0;
}

void d9__hook_g_main_context_set_poll_func(GMainContext *context, GPollFunc function)
{
	GMainContext *which = context ? context : d9__glib.g_main_context_default();
	struct d9__glib_context *record = d9__glib_context(d9__glib_thread(), which);

	if (record) {
		bool own = function && function != d9__glib.g_poll && can_chain(record);

		atomic_store_explicit(&record->user_poll, own ? function : NULL,
				      memory_order_relaxed);
		if (own)
			function = d9__glib_wait_chain_poll;
	}
	d9__glib.g_main_context_set_poll_func(context, function);
}

GPollFunc d9__hook_g_main_context_get_poll_func(GMainContext *context)
{
	GPollFunc function = d9__glib.g_main_context_get_poll_func(context), user;
	struct d9__glib_context *record;

	if (function != d9__glib_wait_chain_poll)
		return function;
	record = d9__glib_context(d9__glib_thread(),
				  context ? context : d9__glib.g_main_context_default());
	user = record ? atomic_load_explicit(&record->user_poll, memory_order_relaxed) : NULL;
	return user ? user : d9__glib.g_poll;
}

void d9__glib_wait_adopt_poll(struct d9__glib_context *record, GMainContext *context)
{
	GPollFunc function = d9__glib.g_main_context_get_poll_func(context);

	if (function == d9__glib_wait_chain_poll || function == d9__glib.g_poll || !can_chain(record))
		return;
	atomic_store_explicit(&record->user_poll, function, memory_order_relaxed);
	d9__glib.g_main_context_set_poll_func(context, d9__glib_wait_chain_poll);
}

/* ---- loops that others drive: GLib's own calls of these have no slot ---- */

gint d9__hook_g_main_context_query(GMainContext *context, gint priority, gint *timeout,
				   GPollFD *fds, gint n)
{
	gint needed = d9__glib.g_main_context_query(context, priority, timeout, fds, n);
	struct d9__glib_thread *thread = d9__glib_thread();
	struct d9__glib_context *record;

	/* A caller with too small an array comes again. */
	if (needed > n || thread->calibrating)
		return needed;
	record = d9__glib_context(thread, context ? context : d9__glib.g_main_context_default());
	if (record) {
		d9__loop_round_begin(); /* some hosts prepare nothing */
		record->queried_ns = d9_loop_now();
		record->query_timeout = timeout ? *timeout : 0;
		record->polled = false;
	}
	return needed;
}

/* The host has waited, or only looked. */
static void end_query(struct d9__glib_thread *thread, struct d9__glib_context *record)
{
	uint64_t since_ns = record->queried_ns;

	record->queried_ns = 0;
	d9__glib_become_owner(record, thread);
	d9__glib_new_round(record, thread);
	if (!since_ns || record->polled)
		return;
	if (record->query_timeout == 0) {
		record->spins++;
		d9_loop_park(record->loop, 0);
		d9_loop_unpark(record->loop);
		return;
	}
	record->parks++;
	d9_loop_parked(record->loop, since_ns);
	/* Behind it: a park does not begin before what its thread recorded last. */
	if (d9__gate_open(D9__GATE_LOOP))
		sample(record, d9_loop_now());
}

gboolean d9__hook_g_main_context_check(GMainContext *context, gint priority, GPollFD *fds, gint n)
{
	struct d9__glib_thread *thread = d9__glib_thread();
	struct d9__glib_context *record = NULL;
	gboolean ready;

	if (!thread->calibrating) {
		GMainContext *which = context ? context : d9__glib.g_main_context_default();

		record = d9__glib_context(thread, which);
		if (record)
			end_query(thread, record);
	}
	ready = d9__glib.g_main_context_check(context, priority, fds, n);
	/* Else the round ends where what is ready has been dispatched. */
	if (record && !ready && !thread->timing)
		d9__loop_round_end();
	return ready;
}
