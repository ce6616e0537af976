/* SPDX-License-Identifier: Apache-2.0 */
/* Loops: what an adapter reports so that an event loop's work is recorded. */

#ifndef DIAL9_LOOP_H
#define DIAL9_LOOP_H

#include <stddef.h>
#include <stdint.h>

#include <dial9/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The contract between dial9 and whatever knows one kind of loop: our adapters for libevent,
 * libev and GLib, a binding of a third party, or the author of a home-made loop.  It is stable.
 * examples/own_loop.c uses all of it that a simple loop needs; dial9-loop(3) tells it as a story.
 *
 *   d9_loop_register()          once per loop
 *   d9_loop_enter()             the thread starts to run the loop
 *     d9_loop_park()            the loop is about to wait ...
 *     d9_loop_unpark()          ... and has waited
 *       d9_wake()               this is ready, because of that (optional)
 *       d9_poll_begin()         a callback is about to run ...
 *       d9_poll_end()           ... and has returned, or was left by an exception
 *   d9_loop_leave()             the thread stops to run the loop
 *   d9_loop_unregister()        once per loop
 *
 * Rules for all functions here:
 * - They never fail the program: what cannot be recorded is dropped and counted.
 * - errno is unchanged, the ones that return an int included.
 * - While recording is off each returns after one load.
 * - "Quick" in a comment means: no lock, no allocation and no system call but at the first use by
 *   a thread and when a task comes or goes, where a lock is held for some instructions; safe while
 *   a lock of the loop library is held.  Functions not called quick may take locks of dial9 and of
 *   the dynamic loader.
 * - None is async-signal-safe unless its comment says so.
 * - Times are nanoseconds of CLOCK_MONOTONIC.  0 stands for "now" or "unknown".
 *
 * A worker is an operating system thread that runs loops; dial9 hands out the ids.  Threads need
 * not be announced; a thread that only wakes others never becomes a worker.
 */

/* ---- libraries and loops ---- */

/* The adapter that calls.  It keeps keys and task ids of several adapters in one process apart. */
enum d9_library {
	D9_LIBRARY_OWN = 0, /* home-made loops and bindings of third parties */
	D9_LIBRARY_LIBEVENT = 1,
	D9_LIBRARY_LIBEV = 2,
	D9_LIBRARY_GLIB = 3,
};

/**
 * Set the fact |key| about |library| in the trace's metadata, as `loop.<library>.<key>`.
 *
 * Tell at least "version" and "capabilities", and in "degraded" what is not recorded and why.
 * Every segment of the trace carries the latest values.
 *
 * @param library  "libevent", "libev", "glib", or a name of your own; copied
 * @param key      copied
 * @param value    copied; NULL removes the fact
 *
 * @return 0, -EINVAL for a NULL or over 200 bytes of names, -ENOMEM
 *
 * Threads: any.  Not quick.
 * Since: 0.1
 */
D9_API int d9_library_describe(const char *library, const char *key, const char *value);

/* One loop.  Valid from d9_loop_register() to d9_loop_unregister(). */
struct d9_loop;

/**
 * Make the loop at |address| known, and start the process's recorder if none runs.
 *
 * Registering an address again gives the same loop; a new name replaces the old one.
 *
 * @param library  whose loop it is
 * @param address  identifies the loop until it is unregistered; not dereferenced
 * @param name     lane group of the threads that run it, at most 63 bytes are used, copied;
 *                 NULL: the name of the thread that runs it
 * @param loop     receives the loop, owned by dial9
 *
 * @return 0, also while recording is off; -EINVAL, -ENOSPC over 1024 loops, -ENOMEM, -EPERM when the process has
 *         forbidden itself system calls (seccomp) that a new loop would need
 *
 * Threads: any.  Not quick.
 * Since: 0.1
 */
D9_API int d9_loop_register(enum d9_library library, const void *address, const char *name,
			    struct d9_loop **loop);

/**
 * Forget |loop|: its tasks end, its address may be registered anew.
 *
 * No thread may be inside |loop| or use it afterwards.  NULL does nothing.
 *
 * Threads: any.  Not quick.
 * Since: 0.1
 */
D9_API void d9_loop_unregister(struct d9_loop *loop);

/**
 * Find the loop registered for |address|.
 *
 * @return the loop, or NULL
 *
 * Threads: any.  Quick.
 * Since: 0.1
 */
D9_API struct d9_loop *d9_loop_find(enum d9_library library, const void *address);

/**
 * Tell whether what loops do is being recorded now: one load.
 *
 * For adapters that would gather figures only to have them dropped.
 *
 * @return 1 or 0
 *
 * Threads: any.  Quick.  Async-signal-safe.
 * Since: 0.1
 */
D9_API int d9_loop_recording(void);

/**
 * Read the clock that stamps this thread's records.
 *
 * @return nanoseconds of CLOCK_MONOTONIC, never 0
 *
 * Threads: any.  Quick.
 * Since: 0.1
 */
D9_API uint64_t d9_loop_now(void);

/* ---- a thread runs a loop ---- */

/*
 * Marks one run of a loop; must lie on the stack of the function that runs it, in uninitialised
 * memory.  Its address tells runs that were left by longjmp() from living ones.
 */
struct d9_loop_run {
	uint64_t d9__opaque[2];
};

/**
 * Say that this thread starts to run |loop|: event_base_loop(), ev_run(), g_main_loop_run().
 *
 * Nests.  The thread's first call gives it a worker id.  Callbacks and runs that a longjmp() left
 * unfinished are closed.  Optional: parks and polls work without it, but then such leftovers are
 * noticed later.
 *
 * Threads: the one that runs the loop.  Takes locks only at a thread's first call; hold none.
 * Since: 0.1
 */
D9_API void d9_loop_enter(struct d9_loop *loop, struct d9_loop_run *run);

/**
 * Say that the run begun with |run| is over.
 *
 * If the thread was inside a callback of an outer loop, that callback's poll goes on from now.
 * Else what it does until its next d9_loop_enter() is the program's own, and told as that.
 * Fits __attribute__((cleanup)).
 *
 * Threads: the one that called d9_loop_enter().  Quick.
 * Since: 0.1
 */
D9_API void d9_loop_leave(struct d9_loop_run *run);

/**
 * Say that |loop| is about to ask its backend for events.
 *
 * Written as a park unless |timeout_ns| is 0: a loop that spins gets one short park each 100 ms.
 * Until d9_loop_unpark() wakes of this thread count as reported by the backend.
 *
 * @param timeout_ns  0: does not wait; above: at most so long; -1: for ever, or unknown
 *
 * Threads: the one that runs the loop.  Quick, but one call in ten, and at most one per
 * millisecond, reads the thread's CPU time (0.6 us).
 * Since: 0.1
 */
D9_API void d9_loop_park(struct d9_loop *loop, int64_t timeout_ns);

/**
 * Say that the backend has returned.  Wakes reported since d9_loop_park() are written here.
 *
 * Threads: the one that called d9_loop_park().  Quick, as there.
 * Since: 0.1
 */
D9_API void d9_loop_unpark(struct d9_loop *loop);

/**
 * Say afterwards that |loop| waited from |since_ns| until now, for loops that are driven from
 * outside and can tell only when the wait is over.
 *
 * Threads: the one that runs the loop.  Quick, as d9_loop_park().
 * Since: 0.1
 */
D9_API void d9_loop_parked(struct d9_loop *loop, uint64_t since_ns);

/* ---- callsites ---- */

/*
 * A callback and the place that registered it: the name of a task, written into the trace as
 * `CALLBACK @ SITE` in module+offset form.  Interned for ever, one per pair.
 */
struct d9_callsite;

enum d9_callsite_flag {
	/* A lock of the loop library is held: its text is made at the task's first poll. */
	D9_CALLSITE_LOCKED = 1,
};

/**
 * Intern the pair of |callback| and |site|.
 *
 * Do it when the callback is registered and keep the result; a known pair costs a look-up.
 *
 * @param callback  address of the function; not called
 * @param site      return address of the registering call, or NULL if unknown
 * @param flags     D9_CALLSITE_... or 0
 *
 * @return the callsite, never NULL: when memory is out, one that stands for "unknown"
 *
 * Threads: any.  Quick with D9_CALLSITE_LOCKED, apart from a lock under which nothing is called.
 * Since: 0.1
 */
#ifdef __cplusplus /* where a function of a structure's name is said to shadow its constructor */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif
D9_API const struct d9_callsite *d9_callsite(const void *callback, const void *site,
					     unsigned flags);
#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif

/* ---- tasks ---- */

/* The reason why a task became ready.  The trace spells them as below, in lower case. */
enum d9_task_kind {
	D9_TASK_IO,
	D9_TASK_TIMER,
	D9_TASK_SIGNAL,
	D9_TASK_ONCE,
	D9_TASK_DEFERRED,
	D9_TASK_FINALIZER,
	D9_TASK_ACTIVE, /* made ready by the program only */
	D9_TASK_LISTENER,
	D9_TASK_INTERNAL, /* its callback lies in the loop library */
	D9_TASK_IDLE,
	D9_TASK_CHILD,
	D9_TASK_STAT,
	D9_TASK_PREPARE,
	D9_TASK_CHECK,
	D9_TASK_EMBED,
	D9_TASK_FORK,
	D9_TASK_CLEANUP,
	D9_TASK_ASYNC,
	D9_TASK_CUSTOM,
	D9_TASK_PERIODIC, /* a timer by the wall clock */
};

enum d9_task_flag {
	D9_TASK_NO_WAKES = 1,  /* its wakes cannot be seen: readers are told */
	D9_TASK_RUNS_ONCE = 2, /* ends when its next poll ends */
};

/*
 * A task: the registered thing that owns a callback.  Initialise with { .fd = -1, ... }, so that
 * what later releases add is 0.
 *
 * |key| names the task among the living ones of the library; an address, or an id of the library
 * joined with the loop's.  The trace never shows it: it gets a number that is not used again.
 *
 * |identity| tells whether an object that is used again is still the same task, for example a
 * mix of callback, argument and descriptor.  A different one makes a new task; 0 is not compared.
 */
struct d9_task {
	uint64_t key;
	uint64_t identity;
	const struct d9_callsite *callsite; /* NULL: that of d9_task_arm(), else unknown */
	const char *name;                   /* read once, copied; at most 63 bytes; or NULL */
	int fd;                             /* or -1 */
	uint16_t kind;                      /* enum d9_task_kind */
	uint16_t flags;                     /* D9_TASK_... flags */
};

/**
 * Note a task when it is registered, if its first poll will not know all about it.
 *
 * Writes nothing while the loop has few tasks: one that never runs costs no bytes.  Of a loop with more
 * than some 200 its own thread writes what it registers, so that readers can tell what heaps up.  A
 * task known by |task->key| with another identity ends.
 *
 * @param task  borrowed for the call
 *
 * @return 0, -EINVAL, -ENOMEM
 *
 * Threads: any.  Quick.
 * Since: 0.1
 */
D9_API int d9_task_arm(struct d9_loop *loop, const struct d9_task *task);

/**
 * Say that the object |key| was set up again, with |identity|.
 *
 * If that differs from the recorded task's, or is 0, that task ends; the next wake or poll draws a
 * new number.  Unknown keys are no error and cost a look-up.
 *
 * Threads: any.  Quick.
 * Since: 0.1
 */
D9_API void d9_task_renew(enum d9_library library, uint64_t key, uint64_t identity);

/**
 * Say that the task |key| will not run again: it was freed, removed, or ran its only time.
 *
 * May be called from the task's own callback.  Unknown keys are no error.
 *
 * Threads: any.  Quick.
 * Since: 0.1
 */
D9_API void d9_task_end(enum d9_library library, uint64_t key);

/**
 * @return the id of the living task |key| as the trace shows it, or 0
 *
 * Threads: any.  Quick.
 * Since: 0.1
 */
D9_API uint64_t d9_task_id(enum d9_library library, uint64_t key);

/* ---- polls ---- */

enum d9_wake_reason {
	D9_WAKE_UNKNOWN,
	D9_WAKE_FD,
	D9_WAKE_TIMER,
	D9_WAKE_SIGNAL,
	D9_WAKE_ACTIVE,       /* by code on the loop's own thread */
	D9_WAKE_CROSS_THREAD, /* by another thread */
	D9_WAKE_DEFERRED,
	D9_WAKE_INTERNAL,
	D9_WAKE_RESUMPTION, /* dial9's own: the second piece of a split poll */
};

enum d9_poll_flag {
	/*
	 * Only the loop library ran since this thread's previous poll ended: that poll's end is
	 * this one's start.  Halves the clock reads.  Ignored after anything else was recorded.
	 */
	D9_POLL_BATCHED = 1,
	/*
	 * Code may run between the end of this poll and the next begin, such as a destroy
	 * notifier: no shared stamp.  May be set before d9_poll_end() as well.
	 */
	D9_POLL_BREAKS_BATCH = 2,
};

/*
 * One call of one callback.  Filled by the caller, on the stack of the function that makes the
 * call; not touched by the caller between begin and end, |flags| excepted.  Its address tells what
 * is inside what: who makes calls inside a call is another function, not inlined; AddressSanitizer's
 * own stacks (use-after-return) do not go with it.
 * Initialise with { .loop = ..., .task = { .fd = -1, ... } }, or, on a path where nanoseconds count,
 * store every field: compilers turn an initialiser into a string instruction that costs more.
 */
struct d9_poll {
	struct d9_loop *loop;
	struct d9_task task;
	uint64_t ready_ns; /* when it became ready, such as a timer's due time; 0: see |reason| */
	uint32_t depth;    /* callbacks ready in this round, this one included; saturates at 255 */
	uint16_t flags;    /* D9_POLL_... flags */
	uint16_t reason;   /* enum d9_wake_reason, for a poll that no d9_wake() announced */
	uint64_t task_id;  /* set by d9_poll_begin(): as in the trace; 0 if not recorded */
	uint64_t d9__opaque[2];
};

/**
 * Say that a callback is about to run.
 *
 * Writes one wake, unless the task was announced since its last poll.  Its stamp is |ready_ns|,
 * else that of the announcement, else, with a |reason|, the latest unpark.  With neither
 * |ready_ns| nor |reason| nor announcement no wake is written.
 *
 * Callbacks nest: a loop may run inside a callback.  The trace shows the outer poll in pieces.
 *
 * Threads: the one that runs the loop.  Quick, apart from the first poll of a task.
 * Since: 0.1
 */
D9_API void d9_poll_begin(struct d9_poll *poll);

/**
 * Say that the callback has returned.
 *
 * Fits __attribute__((cleanup)): with -fexceptions that covers C++ exceptions and cancellation.
 * Calling it again does nothing.  Touches neither the loop library nor the callback's objects.
 *
 * Threads: the one that called d9_poll_begin().  Quick.
 * Since: 0.1
 */
D9_API void d9_poll_end(struct d9_poll *poll);

/**
 * @return the id of the task whose callback runs on this thread, or 0
 *
 * Threads: any.  Quick.  Async-signal-safe.
 * Since: 0.1
 */
D9_API uint64_t d9_poll_task(void);

/* ---- wakes ---- */

/* The task or thread that made something ready, and when. */
struct d9_waker {
	uint64_t task_id; /* the task whose callback did it; 0: kernel, timer, plain thread */
	uint64_t ns;      /* 0: now */
	uint32_t worker;  /* worker of the thread that did it; 255: none, or unknown */
};

/**
 * Describe this thread at this moment as a waker, to be used later or elsewhere.
 *
 * Threads: any.  Quick.  Async-signal-safe.
 * Since: 0.1
 */
D9_API void d9_waker_self(struct d9_waker *waker);

/**
 * Say that the task |key| of |loop| became ready.
 *
 * At most one wake is written per poll: further ones before that poll are coalesced.  Only one of
 * another thread at the very moment of one by the loop's own may be written besides it.  A key not
 * known yet becomes a task; its wake is written with its first poll.
 *
 * @param reason  D9_WAKE_UNKNOWN: dial9 tells from where it was called.  On another thread than
 *                the loop's: cross-thread.  Between park and unpark: fd.  In a callback: active.
 *                Else: timer.  The stamp of a timer's wake is replaced by d9_poll.ready_ns.
 * @param waker   NULL: this thread, now.  Between park and unpark: the kernel, at the unpark.
 *
 * @return 1 if this is the wake for the next poll, 0 if it was coalesced or recording is off
 *
 * Threads: any.  Quick.
 * Since: 0.1
 */
D9_API int d9_wake(struct d9_loop *loop, uint64_t key, enum d9_wake_reason reason,
		   const struct d9_waker *waker);

/*
 * Carries one wake out of a signal handler, or from a thread that must not record, to the loop's
 * thread.  All zero when empty.  Lives in the adapter's memory, one per object that can be woken.
 */
struct d9_wake_cell {
	uint64_t d9__opaque[3];
};

/**
 * Put a wake by this thread at this moment into |cell|.
 *
 * Counts as work handed to |loop| from outside until it is taken.
 *
 * @return 1 if it is there, 0 if the cell was filled already: coalesced, or recording is off
 *
 * Threads: any.  Quick.  Async-signal-safe.
 * Since: 0.1
 */
D9_API int d9_wake_cell_fill(struct d9_wake_cell *cell, struct d9_loop *loop);

/**
 * Take the wake out of |cell|; pass it to d9_wake().
 *
 * @return 1 with |waker| set, 0 if the cell is empty
 *
 * Threads: the loop's.  Quick.
 * Since: 0.1
 */
D9_API int d9_wake_cell_take(struct d9_wake_cell *cell, struct d9_loop *loop,
			     struct d9_waker *waker);

/* ---- timers ---- */

/**
 * Say that the timer |key| was armed by |loop|'s clock while that stood still.
 *
 * Loops look at the clock once a round.  A timer that a callback arms late in a long round counts
 * from when the round began, and fires early.  Call this where that matters, not for each timer:
 * each call writes an event, with the present time and the callback that runs.
 *
 * @param timeout_ns  the time that was asked for
 * @param due_ns      when |loop| will call it, ns of CLOCK_MONOTONIC; the same as d9_poll.ready_ns
 *                    of that call
 *
 * Threads: the one that runs the loop.  Quick.
 * Since: 0.1
 */
D9_API void d9_timer_stale(struct d9_loop *loop, uint64_t key, uint64_t timeout_ns,
			   uint64_t due_ns);

/* ---- user callbacks inside a poll ---- */

/*
 * One call of a user's callback by the loop library's own callback: bufferevents, listeners, HTTP
 * handlers.  On the caller's stack, in uninitialised memory.
 */
struct d9_loop_span {
	uint64_t d9__opaque[2];
};

/**
 * Say that a user's callback starts inside the running poll.  Written as a span named like
 * |callsite|.  Outside of a poll nothing is written.
 *
 * Threads: the one that runs the loop.  Quick, apart from the first span of a callsite.
 * Since: 0.1
 */
D9_API void d9_loop_span_enter(struct d9_loop_span *span, const struct d9_callsite *callsite);

/**
 * Say that it has returned.  Fits __attribute__((cleanup)).
 *
 * Threads: the one that called d9_loop_span_enter().  Quick.
 * Since: 0.1
 */
D9_API void d9_loop_span_exit(struct d9_loop_span *span);

#ifdef __cplusplus
}
#endif

#endif /* DIAL9_LOOP_H */
