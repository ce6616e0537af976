/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with a libev of its own in this very file, which compiles with EV_MULTIPLICITY 1 and 0,
 * with EV_API_STATIC, and as C++.  It counts for itself, and each call of a callback by libev.
 *
 *	libev_embedded [--alone] [--out=FILE]
 *
 * --alone: not attached.
 */

#define EV_STANDALONE 1
static unsigned long hooks;
#ifdef OWN_CALLBACK
#define EV_CB_DECLARE(type) void (*own_callback)(EV_P_ struct type *w, int revents);
#define ev_set_cb(ev, cb_) ((ev)->own_callback = (cb_))
#define D9_EV_CALLBACK(watcher) ((watcher)->own_callback)
#define D9_EV_CB_INVOKE(watcher, events) (hooks++, (watcher)->own_callback(EV_A_(watcher), (events)))
#else
#define D9_EV_CB_INVOKE(watcher, events) (hooks++, (watcher)->cb(EV_A_(watcher), (events)))
#endif
#define D9_EV_SOURCE "ev.c"
#include <dial9/ev-embed.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "counters.h"

#ifdef __cplusplus
#include <stdexcept>
#endif

#if EV_MULTIPLICITY
#define LOOP_ARGUMENT loop
#else
#define LOOP_ARGUMENT NULL
#endif

#define CALLBACK(name, type) static void name(EV_P_ type *w, int revents)

/* Counts a poll of |function| and says that the arguments were used. */
#if EV_MULTIPLICITY
#define RAN(function) ((void)loop, (void)w, (void)revents, COUNT(function, KIND_POLL))
#else
#define RAN(function) ((void)w, (void)revents, COUNT(function, KIND_POLL))
#endif

/* All tasks of |callback| are started in |function|, which therefore stays one. */
#define STARTED_IN(function, callback)                                                             \
	(counter_of(#function, (void *)(callback), KIND_SITE)->count = (unsigned long)(function))
#define ONE_FUNCTION static __attribute__((noinline, noclone))

static bool done;

static void run_until_done(EV_P)
{
	done = false;
	while (!done)
		ev_run(EV_A_ EVRUN_ONCE);
}

/* ---- time ---- */

static ev_timer timer, again;
static ev_periodic periodic;
static int ticks;

CALLBACK(on_timer, ev_timer)
{
	RAN(on_timer);
	counter_of("on_timer", (void *)on_timer, KIND_TASKS)->count = 1;
}

/* Starts itself by its last call, which is a jump, and stays the same task. */
CALLBACK(on_again, ev_timer)
{
	RAN(on_again);
	counter_of("on_again", (void *)on_again, KIND_TASKS)->count = 1;
	done = ++ticks == 10;
	if (done)
		return;
	ev_timer_set(w, 0.001, 0.);
	ev_timer_start(EV_A_ w);
}

CALLBACK(on_periodic, ev_periodic)
{
	RAN(on_periodic);
	ev_periodic_stop(EV_A_ w);
}

ONE_FUNCTION void run_timers(EV_P)
{
	STARTED_IN(run_timers, on_timer);
	STARTED_IN(run_timers, on_periodic);
	ev_init(&timer, on_timer);
	ev_timer_set(&timer, 0.001, 0.);
	ev_timer_start(EV_A_ &timer);
	ev_init(&again, on_again);
	ev_timer_set(&again, 0.001, 0.);
	ev_timer_start(EV_A_ &again);
	ev_init(&periodic, on_periodic);
	ev_periodic_set(&periodic, 0., 0.003, NULL);
	ev_periodic_start(EV_A_ &periodic);
	run_until_done(EV_A);
	while (ev_is_active(&periodic))
		ev_run(EV_A_ EVRUN_ONCE);
}

/* ---- descriptors ---- */

static ev_io reader, writer;
static int fds[2], bytes;

CALLBACK(on_readable, ev_io)
{
	char byte;

	RAN(on_readable);
	if (read(w->fd, &byte, 1) != 1)
		complain("a byte to read", 1, 0);
	if (++bytes < 30) {
		ev_io_start(EV_A_ &writer);
		return;
	}
	ev_io_stop(EV_A_ w);
	done = true;
}

CALLBACK(on_writable, ev_io)
{
	RAN(on_writable);
	counter_of("on_writable", (void *)on_writable, KIND_TASKS)->count = 1;
	if (write(w->fd, "x", 1) != 1)
		complain("a byte to write", 1, 0);
	ev_io_stop(EV_A_ w);
}

ONE_FUNCTION void run_io(EV_P)
{
	STARTED_IN(run_io, on_readable);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		complain("socketpair", 0, errno);
	ev_init(&reader, on_readable);
	ev_io_set(&reader, fds[0], EV_READ);
	ev_init(&writer, on_writable);
	ev_io_set(&writer, fds[1], EV_WRITE);
	ev_io_start(EV_A_ &reader);
	ev_io_start(EV_A_ &writer);
	run_until_done(EV_A);
}

/* ---- each round; signals; another thread ---- */

static ev_prepare prepare;
static ev_check check;
static ev_idle idle;
static ev_signal usr1;
static ev_child child;
static ev_async async;
static ev_async *sent; /* by the thread */
static int idle_calls;

CALLBACK(on_prepare, ev_prepare)
{
	RAN(on_prepare);
}

CALLBACK(on_check, ev_check)
{
	RAN(on_check);
}

CALLBACK(on_idle, ev_idle)
{
	RAN(on_idle);
	if (++idle_calls < 10)
		return;
	ev_idle_stop(EV_A_ w);
	ev_prepare_stop(EV_A_ &prepare);
	ev_check_stop(EV_A_ &check);
	done = true;
}

CALLBACK(on_usr1, ev_signal)
{
	RAN(on_usr1);
	ev_signal_stop(EV_A_ w);
	done = true;
}

CALLBACK(on_child, ev_child)
{
	RAN(on_child);
	ev_child_stop(EV_A_ w);
	done = true;
}

CALLBACK(on_async, ev_async)
{
	RAN(on_async);
	counter_of("cross_thread", (void *)on_async, KIND_REASON)->count++;
	done = true;
}

static void *send_async(void *loop)
{
#if EV_MULTIPLICITY
	ev_async_send((struct ev_loop *)loop, sent);
#else
	(void)loop;
	ev_async_send(sent);
#endif
	return NULL;
}

static void run_rounds(EV_P)
{
	ev_init(&prepare, on_prepare);
	ev_init(&check, on_check);
	ev_init(&idle, on_idle);
	ev_prepare_start(EV_A_ &prepare);
	ev_check_start(EV_A_ &check);
	ev_idle_start(EV_A_ &idle);
	run_until_done(EV_A);
}

static void run_others(EV_P)
{
	pthread_t thread;
	pid_t pid;

	ev_init(&usr1, on_usr1);
	ev_signal_set(&usr1, SIGUSR1);
	ev_signal_start(EV_A_ &usr1);
	raise(SIGUSR1);
	run_until_done(EV_A);
	ev_init(&child, on_child);
	pid = fork();
	if (pid == 0)
		_exit(0);
	ev_child_set(&child, pid, 0);
	ev_child_start(EV_A_ &child);
	run_until_done(EV_A);
	ev_init(&async, on_async);
	ev_async_start(EV_A_ &async);
	sent = &async;
	if (pthread_create(&thread, NULL, send_async, (void *)LOOP_ARGUMENT))
		complain("pthread_create", 0, 1);
	run_until_done(EV_A);
	pthread_join(thread, NULL);
	ev_async_stop(EV_A_ &async);
}

/* ---- fed, cleared, invoked, nested, once ---- */

static ev_prepare fed[3];
static ev_timer outer, inner;
static int onces;

CALLBACK(on_fed, ev_prepare)
{
	RAN(on_fed);
	counter_of("active", (void *)on_fed, KIND_REASON)->count++;
	log_line("fed %d %x", (int)(w - fed), (unsigned)revents);
}

CALLBACK(on_inner, ev_timer)
{
	RAN(on_inner);
	ev_break(EV_A_ EVBREAK_ONE);
}

/* Its last call is a jump: the place that libev sees is ours. */
static ev_timer last;

CALLBACK(on_last, ev_timer)
{
	RAN(on_last);
}

CALLBACK(on_jumping, ev_timer)
{
	RAN(on_jumping);
	STARTED_IN(on_jumping, on_last);
	ev_timer_start(EV_A_ &last);
}

static void run_jump(EV_P)
{
	static ev_timer jumping;

	ev_init(&last, on_last);
	ev_timer_set(&last, 0.001, 0.);
	ev_init(&jumping, on_jumping);
	ev_timer_set(&jumping, 0.001, 0.);
	ev_timer_start(EV_A_ &jumping);
	while (ev_is_active(&jumping) || ev_is_active(&last) || ev_is_pending(&last))
		ev_run(EV_A_ EVRUN_ONCE);
}

CALLBACK(on_outer, ev_timer)
{
	RAN(on_outer);
	ev_timer_start(EV_A_ &inner);
	ev_run(EV_A_ 0);
	ev_feed_event(EV_A_ &fed[0], EV_CUSTOM);
	ev_invoke_pending(EV_A);
	done = true;
}

static void on_once(int events, void *arg)
{
	(void)events, (void)arg;
	COUNT(on_once, KIND_POLL);
	COUNT(on_once, KIND_TASKS);
	done = ++onces == 2;
}

ONE_FUNCTION void feed_all(EV_P)
{
	STARTED_IN(feed_all, on_fed);
	for (int i = 0; i < 3; i++)
		ev_feed_event(EV_A_ &fed[i], EV_CUSTOM);
	/* Else the last call is a jump, and its place is the caller's. */
	log_line("all fed");
}

static void run_fed(EV_P)
{
	for (int i = 0; i < 3; i++) {
		ev_init(&fed[i], on_fed);
		ev_set_priority(&fed[i], i - 1);
	}
	feed_all(EV_A);
	if (ev_clear_pending(EV_A_ &fed[1]) != EV_CUSTOM)
		complain("cleared events", EV_CUSTOM, 0);
	ev_invoke_pending(EV_A);
	ev_invoke(EV_A_ &fed[2], EV_CUSTOM);
	ev_init(&outer, on_outer);
	ev_timer_set(&outer, 0.001, 0.);
	ev_init(&inner, on_inner);
	ev_timer_set(&inner, 0.001, 0.);
	ev_timer_start(EV_A_ &outer);
	run_until_done(EV_A);
}

ONE_FUNCTION void run_once(EV_P)
{
	STARTED_IN(run_once, on_once);
	ev_once(EV_A_ -1, 0, 0.001, on_once, NULL);
	ev_once(EV_A_ fds[0], EV_WRITE, 10., on_once, NULL);
	run_until_done(EV_A);
}

/* ---- a callback that does not return ---- */

static ev_prepare leaving;
#ifndef __cplusplus
static jmp_buf out;
#endif

CALLBACK(on_leaving, ev_prepare)
{
	RAN(on_leaving);
#ifdef __cplusplus
	throw std::runtime_error("out");
#else
	longjmp(out, 1);
#endif
}

static void leave(EV_P)
{
	ev_init(&leaving, on_leaving);
	ev_feed_event(EV_A_ &leaving, EV_CUSTOM);
#ifdef __cplusplus
	try {
		ev_run(EV_A_ EVRUN_NOWAIT);
	} catch (const std::runtime_error &) {
		return;
	}
#else
	if (setjmp(out))
		return;
	ev_run(EV_A_ EVRUN_NOWAIT);
#endif
	complain("ways out of a callback", 1, 0);
}

/* Every call by libev was one of its own or one of the program's; ev_once() calls behind its own. */
static void check_hooks(void)
{
	unsigned long own = counters_sum(KIND_POLL) - (unsigned long)onces;

	if (hooks != own + d9__ev_internal || !d9__ev_internal)
		complain("callbacks that libev called", (long)(own + d9__ev_internal), (long)hooks);
}

int main(int argc, char **argv)
{
	const char *path =
		argc > 1 && !strncmp(argv[argc - 1], "--out=", 6) ? argv[argc - 1] + 6 : NULL;
	bool alone = argc > 1 && !strcmp(argv[1], "--alone");
#if EV_MULTIPLICITY
	struct ev_loop *loop = ev_default_loop(EVFLAG_NOENV);

	if (!alone && d9_ev_embed_attach(NULL) != -EINVAL)
		complain("d9_ev_embed_attach(NULL)", -EINVAL, 0);
#else
	if (!alone && d9_ev_embed_attach(NULL) != -EINVAL)
		complain("d9_ev_embed_attach() before ev_default_loop()", -EINVAL, 0);
	ev_default_loop(EVFLAG_NOENV);
#endif
	/* Twice is the same as once. */
	for (int i = 0; i < 2 && !alone; i++) {
		int err = d9_ev_embed_attach(LOOP_ARGUMENT);

		if (err)
			complain("d9_ev_embed_attach()", 0, err);
	}
	run_io(EV_A);
	run_timers(EV_A);
	run_rounds(EV_A);
	run_others(EV_A);
	run_fed(EV_A);
	run_once(EV_A);
	run_jump(EV_A);
	for (int i = 0; i < 3; i++)
		leave(EV_A);
	run_rounds(EV_A);
	ev_loop_destroy(EV_A);
	if (!alone)
		check_hooks();
	return counters_write(path);
}
