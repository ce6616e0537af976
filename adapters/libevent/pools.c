/* SPDX-License-Identifier: Apache-2.0 */
/* Pools: from libevent through our stubs to the program's callback. */

#include "config.h"

#include <dial9/loop.h>

#include "base/hot.h"
#include "hook/stubs.h"
#include "libevent/bases.h"
#include "libevent/capabilities.h"
#include "libevent/fields.h"
#include "libevent/pools.h"
#include "libevent/thread.h"
#include "loop/adapter.h"

_Atomic(uint32_t) d9__stubs_full;

/* Stub words: d9__callback_identity(), and in its free bit whether the callback lies in libevent. */
#define WORD_INTERNAL UINT64_C(1)

/* ---- polls ---- */

struct poll_frame {
	struct d9__libevent_context saved;
	struct d9_poll poll;
};

static inline void restore(const struct poll_frame *frame)
{
	struct d9__libevent_thread *thread = d9__libevent_thread();

	thread->now = frame->saved;
	if (thread->depth)
		thread->depth--;
}

/* errno, and nothing of libevent or of the event is touched: the callback may have freed it. */
static void end_poll(struct poll_frame *frame)
{
	d9_poll_end(&frame->poll);
	restore(frame);
}

static void end_poll_once(struct poll_frame *frame)
{
	d9__poll_end_once(&frame->poll);
	restore(frame);
}

static __attribute__((noinline)) void begin_batch(struct d9__libevent_thread *thread)
{
	struct event_base *base = thread->now.base->base;

	thread->now.batch_starts = false;
	if (d9__real.event_base_get_num_events)
		thread->depth =
			(uint32_t)d9__real.event_base_get_num_events(base, D9__EVENT_COUNT_ACTIVE) +
			1;
	/* A plugin may have come.  To ask the loader takes 260 instructions, in 30 cache lines. */
	d9__got_rescan_paced(d9__loop_latest_ns());
}

/* The gate is open. */
static inline bool is_recorded(const struct d9__libevent_thread *thread)
{
	return thread->now.base && !thread->calibrating;
}

static inline uint64_t word_of(struct d9__stub *stub)
{
	return atomic_load_explicit(&stub->word, memory_order_relaxed);
}

static inline bool is_internal(struct d9__stub *stub)
{
	return word_of(stub) & WORD_INTERNAL;
}

/* d9__pair_identity() of its callback. */
static inline uint64_t identity_of(struct d9__stub *stub, void *arg)
{
	return (word_of(stub) + 2 * (uint64_t)(uintptr_t)arg) | 1;
}

static inline const struct d9_callsite *callsite_of(struct d9__stub *stub)
{
	return atomic_load_explicit(&stub->tag, memory_order_relaxed);
}

/* Fill in what d9__poll_begin_known() reads; an initialiser of the whole would take longer than all the rest. */
static inline void enter(struct poll_frame *frame, struct d9__libevent_thread *thread,
			 struct d9__stub *stub, uint64_t key, uint64_t identity)
{
	uint16_t flags = D9_POLL_BATCHED;

	if (thread->now.batch_starts) {
		begin_batch(thread);
		flags = 0;
	}
	frame->saved = thread->now;
	frame->poll.loop = thread->now.base->loop;
	frame->poll.task.key = key;
	frame->poll.task.identity = identity;
	frame->poll.task.callsite = callsite_of(stub);
	frame->poll.ready_ns = 0;
	/* This one counts, whatever made it ready. */
	frame->poll.depth = thread->depth ? thread->depth : 1;
	frame->poll.flags = flags;
	frame->poll.reason = D9_WAKE_UNKNOWN;
}

static inline void run_begins(struct d9__libevent_thread *thread, struct d9__stub *stub, short what)
{
	thread->now.stub = stub;
	thread->now.what = (uint8_t)what;
	thread->now.state = is_internal(stub) ? D9__STATE_INTERNAL : D9__STATE_POLL;
}

/* ---- events ---- */

/* The callback that libevent registers for a listener; NULL until it made one. */
static _Atomic(void *) listener_callback;

void d9__libevent_pool_note_listener_callback(d9__event_fn callback)
{
	atomic_store_explicit(&listener_callback, (void *)callback, memory_order_relaxed);
}

static uint16_t kind_of_internal_event(struct d9__stub *stub)
{
	return stub->callback == atomic_load_explicit(&listener_callback, memory_order_relaxed)
		       ? D9_TASK_LISTENER
		       : D9_TASK_INTERNAL;
}

static inline uint16_t kind_of_event(struct d9__stub *stub, int fd, short what)
{
	if (__builtin_expect(is_internal(stub), 0))
		return kind_of_internal_event(stub);
	if (what & D9__EV_SIGNAL)
		return D9_TASK_SIGNAL;
	if (fd >= 0)
		return D9_TASK_IO;
	return what & D9__EV_TIMEOUT ? D9_TASK_TIMER : D9_TASK_ACTIVE;
}

static void describe_due(struct d9_poll *poll, const void *event)
{
	poll->ready_ns = d9__libevent_field_due_ns(event, d9_loop_now());
	if (poll->ready_ns)
		poll->reason = D9_WAKE_TIMER;
}

static inline void enter_event(struct poll_frame *frame, struct d9__libevent_thread *thread,
			       struct d9__stub *stub, void *arg)
{
	const void *event = d9__libevent_current_event(thread->now.base->base);

	enter(frame, thread, stub, event ? (uintptr_t)event : (uintptr_t)stub,
	      event ? identity_of(stub, arg) : 0);
}

static __attribute__((noinline)) void describe_event(struct d9_poll *poll, struct d9__stub *stub,
						     int fd, short what)
{
	bool once = stub->kind == D9__STUB_ONCE;

	poll->task.name = NULL;
	poll->task.kind = once && !is_internal(stub) ? D9_TASK_ONCE : kind_of_event(stub, fd, what);
	poll->task.fd = what & D9__EV_SIGNAL ? -1 : fd;
	/* All events of a stub are one task where none is known: it goes on. */
	poll->task.flags = once && poll->task.identity ? D9_TASK_RUNS_ONCE : 0;
	/* Else the activation has told. */
	if (d9__libevent_wakes_are_public() && poll->task.identity && what & D9__EV_TIMEOUT)
		describe_due(poll, (const void *)(uintptr_t)poll->task.key);
}

static __attribute__((noinline)) void begin_other_event(struct d9_poll *poll, struct d9__stub *stub,
							int fd, short what)
{
	describe_event(poll, stub, fd, what);
	d9__poll_begin_other(poll);
}

static inline void begin_event(struct poll_frame *frame, struct d9__libevent_thread *thread,
			       struct d9__stub *stub, int fd, short what, void *arg)
{
	enter_event(frame, thread, stub, arg);
	if (__builtin_expect(d9__libevent_wakes_are_public(), 0)) {
		describe_event(&frame->poll, stub, fd, what);
		d9_poll_begin(&frame->poll);
	} else if (__builtin_expect(!d9__poll_begin_known(&frame->poll), 0)) {
		begin_other_event(&frame->poll, stub, fd, what);
	}
	run_begins(thread, stub, what);
}

/* The program calls a callback that it was given back as a raw field, or libevent a user's one. */
static D9__CALLS_BACK void run_event_as_span(struct d9__stub *stub, int fd, short what, void *arg)
{
	__attribute__((cleanup(d9_loop_span_exit))) struct d9_loop_span span;

	D9__USER_CODE();
	d9_loop_span_enter(&span, callsite_of(stub));
	((d9__event_fn)stub->callback)(fd, what, arg);
}

static D9__HOT __attribute__((noinline)) D9__CALLS_BACK void run_event(int fd, short what,
								       void *arg, unsigned index);
D9__STUBS_DEFINE(event_pool, 1024, void, run_event, (int fd, short what, void *arg),
		 (fd, what, arg))

static __attribute__((noinline)) D9__CALLS_BACK void record_once(int fd, short what, void *arg,
								 struct d9__stub *stub)
{
	struct d9__libevent_thread *thread = d9__libevent_thread();
	__attribute__((cleanup(end_poll_once))) struct poll_frame frame;

	enter_event(&frame, thread, stub, arg);
	describe_event(&frame.poll, stub, fd, what);
	if (frame.poll.task.flags & D9_TASK_RUNS_ONCE)
		d9__poll_begin_once(&frame.poll);
	else
		d9_poll_begin(&frame.poll);
	run_begins(thread, stub, what);
	((d9__event_fn)stub->callback)(fd, what, arg);
}

static D9__HOT __attribute__((noinline)) D9__CALLS_BACK void
record_event(int fd, short what, void *arg, struct d9__stub *stub)
{
	struct d9__libevent_thread *thread = d9__libevent_thread();

	if (!is_recorded(thread)) {
		((d9__event_fn)stub->callback)(fd, what, arg);
	} else if (d9__libevent_in_poll(thread)) {
		run_event_as_span(stub, fd, what, arg);
	} else if (__builtin_expect(stub->kind == D9__STUB_ONCE, 0)) {
		record_once(fd, what, arg, stub);
	} else {
		__attribute__((cleanup(end_poll))) struct poll_frame frame;

		begin_event(&frame, thread, stub, fd, what, arg);
		((d9__event_fn)stub->callback)(fd, what, arg);
	}
}

/* While recording is off this is all that runs: no frame, no call. */
static void run_event(int fd, short what, void *arg, unsigned index)
{
	struct d9__stub *stub = d9__stub_at(&event_pool, index);

	if (__builtin_expect(d9__gate_open(D9__GATE_LOOP), 1))
		record_event(fd, what, arg, stub);
	else
		((d9__event_fn)stub->callback)(fd, what, arg);
}

/* ---- deferred callbacks and finalizers; and users' callbacks of the same type ---- */

static void begin_other_pair(struct d9_poll *poll, struct d9__stub *stub)
{
	bool finalizer = stub->kind == D9__STUB_FINALIZER;

	poll->task.name = NULL;
	poll->task.fd = -1;
	poll->task.kind = is_internal(stub) ? D9_TASK_INTERNAL
			  : finalizer	    ? D9_TASK_FINALIZER
					    : D9_TASK_DEFERRED;
	poll->task.flags = finalizer ? D9_TASK_RUNS_ONCE : 0;
	if (finalizer)
		poll->flags |= D9_POLL_BREAKS_BATCH;
	d9__poll_begin_other(poll);
}

static inline void begin_pair(struct poll_frame *frame, struct d9__libevent_thread *thread,
			      struct d9__stub *stub, void *object, void *arg)
{
	enter(frame, thread, stub, (uintptr_t)object, identity_of(stub, arg));
	if (stub->kind == D9__STUB_FINALIZER || !d9__poll_begin_known(&frame->poll))
		begin_other_pair(&frame->poll, stub);
	run_begins(thread, stub, 0);
}

static D9__CALLS_BACK void run_pair_as_span(struct d9__stub *stub, void *object, void *arg)
{
	__attribute__((cleanup(d9_loop_span_exit))) struct d9_loop_span span;

	D9__USER_CODE();
	d9_loop_span_enter(&span, callsite_of(stub));
	((d9__pair_fn)stub->callback)(object, arg);
}

static __attribute__((noinline)) D9__CALLS_BACK void run_pair(void *object, void *arg,
							      unsigned index);
D9__STUBS_DEFINE(pair_pool, 1024, void, run_pair, (void *object, void *arg), (object, arg))

static __attribute__((noinline)) D9__CALLS_BACK void record_pair(void *object, void *arg,
								 struct d9__stub *stub)
{
	struct d9__libevent_thread *thread = d9__libevent_thread();

	if (!is_recorded(thread)) {
		((d9__pair_fn)stub->callback)(object, arg);
	} else if (stub->kind == D9__STUB_SPAN || d9__libevent_in_poll(thread)) {
		run_pair_as_span(stub, object, arg);
	} else {
		__attribute__((cleanup(end_poll))) struct poll_frame frame;

		begin_pair(&frame, thread, stub, object, arg);
		((d9__pair_fn)stub->callback)(object, arg);
	}
}

static void run_pair(void *object, void *arg, unsigned index)
{
	struct d9__stub *stub = d9__stub_at(&pair_pool, index);

	if (__builtin_expect(d9__gate_open(D9__GATE_LOOP), 1))
		record_pair(object, arg, stub);
	else
		((d9__pair_fn)stub->callback)(object, arg);
}

/* ---- users' callbacks of the other types ---- */

/*
 * RUN_SPAN(pool, index, type, arguments): the body of a stub that only brackets the callback.
 */
#define RUN_SPAN(pool, index, type, ...)                                                           \
	do {                                                                                       \
		struct d9__stub *stub = d9__stub_at(&(pool), index);                               \
		struct d9_loop_span span __attribute__((cleanup(d9_loop_span_exit)));              \
                                                                                                   \
		D9__USER_CODE();                                                                   \
		d9_loop_span_enter(&span, callsite_of(stub));                                      \
		((type)stub->callback)(__VA_ARGS__);                                               \
	} while (0)

/* As SPAN, of a callback that returns something. */
#define RETURN_SPAN(pool, index, type, ...)                                                        \
	struct d9__stub *stub = d9__stub_at(&(pool), index);                                       \
	struct d9_loop_span span __attribute__((cleanup(d9_loop_span_exit)));                      \
                                                                                                   \
	D9__USER_CODE();                                                                           \
	d9_loop_span_enter(&span, callsite_of(stub));                                              \
	return ((type)stub->callback)(__VA_ARGS__)

static __attribute__((noinline)) D9__CALLS_BACK void
run_bufferevent_event(void *bev, short what, void *arg, unsigned index);
D9__STUBS_DEFINE(bufferevent_pool, 256, void, run_bufferevent_event,
		 (void *bev, short what, void *arg), (bev, what, arg))

static void run_bufferevent_event(void *bev, short what, void *arg, unsigned index)
{
	RUN_SPAN(bufferevent_pool, index, d9__bufferevent_event_fn, bev, what, arg);
}

static __attribute__((noinline)) D9__CALLS_BACK void
run_listener(void *listener, int fd, void *address, int len, void *arg, unsigned index);
D9__STUBS_DEFINE(listener_pool, 64, void, run_listener,
		 (void *listener, int fd, void *address, int len, void *arg),
		 (listener, fd, address, len, arg))

static void run_listener(void *listener, int fd, void *address, int len, void *arg, unsigned index)
{
	RUN_SPAN(listener_pool, index, d9__listener_fn, listener, fd, address, len, arg);
}

static __attribute__((noinline)) D9__CALLS_BACK void
run_dns(int result, char type, int count, int ttl, void *addresses, void *arg, unsigned index);
D9__STUBS_DEFINE(dns_pool, 64, void, run_dns,
		 (int result, char type, int count, int ttl, void *addresses, void *arg),
		 (result, type, count, ttl, addresses, arg))

static void run_dns(int result, char type, int count, int ttl, void *addresses, void *arg,
		    unsigned index)
{
	RUN_SPAN(dns_pool, index, d9__dns_fn, result, type, count, ttl, addresses, arg);
}

static __attribute__((noinline)) D9__CALLS_BACK void run_addrinfo(int result, void *info, void *arg,
								  unsigned index);
D9__STUBS_DEFINE(addrinfo_pool, 64, void, run_addrinfo, (int result, void *info, void *arg),
		 (result, info, arg))

static void run_addrinfo(int result, void *info, void *arg, unsigned index)
{
	RUN_SPAN(addrinfo_pool, index, d9__addrinfo_fn, result, info, arg);
}

static __attribute__((noinline)) D9__CALLS_BACK int run_answer(void *object, void *arg,
							       unsigned index);
D9__STUBS_DEFINE(answer_pool, 64, int, run_answer, (void *object, void *arg), (object, arg))

static int run_answer(void *object, void *arg, unsigned index)
{
	RETURN_SPAN(answer_pool, index, d9__answer_fn, object, arg);
}

static __attribute__((noinline)) D9__CALLS_BACK void *run_maker(void *base, void *arg,
								unsigned index);
D9__STUBS_DEFINE(maker_pool, 64, void *, run_maker, (void *base, void *arg), (base, arg))

static void *run_maker(void *base, void *arg, unsigned index)
{
	RETURN_SPAN(maker_pool, index, d9__maker_fn, base, arg);
}

static __attribute__((noinline)) D9__CALLS_BACK void run_error(int error, void *arg,
							       unsigned index);
D9__STUBS_DEFINE(error_pool, 64, void, run_error, (int error, void *arg), (error, arg))

static void run_error(int error, void *arg, unsigned index)
{
	RUN_SPAN(error_pool, index, d9__error_fn, error, arg);
}

/* ---- making and undoing ---- */

/* Runs under the pools' lock, maybe under libevent's: names are made at the first poll. */
static void prepare(struct d9__stub *stub)
{
	bool internal = d9__is_callback_of_libevent(stub->callback);

	atomic_store_explicit(&stub->word,
			      d9__callback_identity(stub->callback) |
				      (internal ? WORD_INTERNAL : 0),
			      memory_order_relaxed);
	atomic_store_explicit(&stub->tag,
			      (void *)d9_callsite(stub->callback, stub->site, D9_CALLSITE_LOCKED),
			      memory_order_relaxed);
}

static struct d9__stubs *const pools[] = { &event_pool,	   &pair_pool,	&bufferevent_pool,
					   &listener_pool, &dns_pool,	&addrinfo_pool,
					   &answer_pool,   &maker_pool, &error_pool };

void d9__pools_init(void)
{
	for (size_t i = 0; i < sizeof(pools) / sizeof(pools[0]); i++)
		pools[i]->prepare = prepare;
}

/*
 * Where no stub is left the callback runs unrecorded, and the trace says so.  A stub of the pool
 * stays itself: one hooked function of libevent calls another.
 */
static void *wrap(struct d9__stubs *pool, void *callback, const void *site, enum d9__stub_kind kind)
{
	void *wrapped = d9__stubs_wrap(pool, callback, site, kind);

	if (__builtin_expect(callback && wrapped == callback, 0) &&
	    !d9__stubs_find(pool, callback)) {
		atomic_fetch_add_explicit(&d9__stubs_full, 1, memory_order_relaxed);
		d9__libevent_capability_degrade_poll("more distinct callbacks than stubs");
	}
	return wrapped;
}

d9__event_fn d9__libevent_pool_wrap_event(d9__event_fn callback, const void *site, enum d9__stub_kind kind)
{
	return (d9__event_fn)wrap(&event_pool, (void *)callback, site, kind);
}

static __attribute__((noinline)) d9__event_fn wrap_called_slow(struct d9__libevent_thread *thread,
							       d9__event_fn *callback,
							       void *caller,
							       enum d9__stub_kind kind)
{
	struct d9__stub *stub;
	d9__event_fn wrapped;

	*callback = d9__libevent_pool_unwrap_event(*callback);
	wrapped = d9__libevent_pool_wrap_event(*callback, d9__libevent_thread_site(caller), kind);
	stub = d9__stubs_find(&event_pool, (void *)wrapped);
	if (stub)
		thread->latest[kind] = (uint16_t)(stub - event_pool.slots + 1);
	return wrapped;
}

/*
 * A stub whose site is the caller itself stands for calls by the program, while no other call of its
 * is under way; and its callback is no stub.
 */
d9__event_fn d9__libevent_pool_wrap_event_called(struct d9__libevent_thread *thread, d9__event_fn *callback,
				   void *caller, enum d9__stub_kind kind)
{
	unsigned latest = thread->latest[kind];
	struct d9__stub *stub = d9__stub_at(&event_pool, latest ? latest - 1 : 0);

	if (__builtin_expect(latest && stub->callback == (void *)*callback &&
				     stub->site == caller && stub->kind == kind && !thread->site &&
				     (!D9__LIBEVENT_ARCHIVE ||
				      !d9__called_by_libevent(thread, caller)) &&
				     !atomic_load_explicit(&stub->dead, memory_order_relaxed),
			     1))
		return (d9__event_fn)event_pool.functions[latest - 1];
	return wrap_called_slow(thread, callback, caller, kind);
}

/*
 * So few of one callback, made at one place, are no leak; most programs never have more.  Counted by a load
 * and a store: threads that collide are off by one, and then events are tasks a little earlier or later.
 */
#define FEW 64u

static uint32_t count_alive(struct d9__stub *stub, uint32_t step)
{
	uint32_t alive = atomic_load_explicit(&stub->alive, memory_order_relaxed) + step;

	atomic_store_explicit(&stub->alive, alive, memory_order_relaxed);
	return alive;
}

static __attribute__((noinline)) void arm(struct d9__stub *stub, const struct event_base *base,
					  const struct event *event, int fd, short events, void *arg)
{
	const struct d9__libevent_base *attached = base ? d9__libevent_wrapped_base(base) : NULL;

	if (!attached || is_internal(stub))
		return;
	d9_task_arm(attached->loop, &(struct d9_task){
		.key = (uintptr_t)event,
		.identity = identity_of(stub, arg),
		.callsite = callsite_of(stub),
		.fd = events & D9__EV_SIGNAL ? -1 : fd,
		.kind = kind_of_event(stub, fd, (short)(events | D9__EV_TIMEOUT)),
	});
}

void d9__libevent_pool_event_made(struct d9__libevent_thread *thread, const struct event_base *base,
		    const struct event *event, d9__event_fn wrapped, int fd, short events, void *arg)
{
	unsigned latest = thread->latest[D9__STUB_POLL];
	struct d9__stub *stub;

	/* Not where no stub was left. */
	if (!latest || event_pool.functions[latest - 1] != (void *)wrapped)
		return;
	stub = d9__stub_at(&event_pool, latest - 1);
	if (count_alive(stub, 1) > FEW && d9__gate_open(D9__GATE_LOOP))
		arm(stub, base, event, fd, events, arg);
}

void d9__libevent_pool_event_freed(d9__event_fn wrapped)
{
	struct d9__stub *stub = d9__stubs_find(&event_pool, (void *)wrapped);

	if (stub && atomic_load_explicit(&stub->alive, memory_order_relaxed))
		count_alive(stub, -UINT32_C(1));
}

d9__pair_fn d9__libevent_pool_wrap_pair(d9__pair_fn callback, const void *site, enum d9__stub_kind kind)
{
	return (d9__pair_fn)wrap(&pair_pool, (void *)callback, site, kind);
}

d9__bufferevent_event_fn d9__libevent_pool_wrap_bufferevent_event(d9__bufferevent_event_fn callback,
						    const void *site)
{
	return (d9__bufferevent_event_fn)wrap(&bufferevent_pool, (void *)callback, site,
					      D9__STUB_SPAN);
}

d9__listener_fn d9__libevent_pool_wrap_listener(d9__listener_fn callback, const void *site)
{
	return (d9__listener_fn)wrap(&listener_pool, (void *)callback, site, D9__STUB_SPAN);
}

d9__dns_fn d9__libevent_pool_wrap_dns(d9__dns_fn callback, const void *site)
{
	return (d9__dns_fn)wrap(&dns_pool, (void *)callback, site, D9__STUB_SPAN);
}

d9__addrinfo_fn d9__libevent_pool_wrap_addrinfo(d9__addrinfo_fn callback, const void *site)
{
	return (d9__addrinfo_fn)wrap(&addrinfo_pool, (void *)callback, site, D9__STUB_SPAN);
}

d9__answer_fn d9__libevent_pool_wrap_answer(d9__answer_fn callback, const void *site)
{
	return (d9__answer_fn)wrap(&answer_pool, (void *)callback, site, D9__STUB_SPAN);
}

d9__maker_fn d9__libevent_pool_wrap_maker(d9__maker_fn callback, const void *site)
{
	return (d9__maker_fn)wrap(&maker_pool, (void *)callback, site, D9__STUB_SPAN);
}

d9__error_fn d9__libevent_pool_wrap_error(d9__error_fn callback, const void *site)
{
	return (d9__error_fn)wrap(&error_pool, (void *)callback, site, D9__STUB_SPAN);
}

d9__event_fn d9__libevent_pool_unwrap_event(d9__event_fn callback)
{
	return (d9__event_fn)d9__stubs_unwrap(&event_pool, (void *)callback);
}

d9__pair_fn d9__libevent_pool_unwrap_pair(d9__pair_fn callback)
{
	return (d9__pair_fn)d9__stubs_unwrap(&pair_pool, (void *)callback);
}

d9__bufferevent_event_fn d9__libevent_pool_unwrap_bufferevent_event(d9__bufferevent_event_fn callback)
{
	return (d9__bufferevent_event_fn)d9__stubs_unwrap(&bufferevent_pool, (void *)callback);
}
