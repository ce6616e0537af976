/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs on libev do that goes wrong easily, one case each:
 *
 *	libev_cases CASE [--adapter=LIBRARY] [--out=FILE]
 */

#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ev.h>

#include "counters.h"

static const char *adapter;

/* By preloading, unless an adapter is to be loaded. */
static struct ev_loop *make_loop(void)
{
	struct ev_loop *loop = ev_loop_new(EVFLAG_NOENV);

	if (!loop)
		exit(99);
	if (adapter)
		attach_with("d9_ev_loop_attach", loop, adapter);
	return loop;
}

static int left;

static void count_down(struct ev_loop *loop)
{
	if (--left == 0)
		ev_break(loop, EVBREAK_ALL);
}

static void on_timer(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)w, (void)events;
	COUNT(on_timer, KIND_POLL);
	count_down(loop);
}

static void run_timer(struct ev_loop *loop, int n)
{
	ev_timer timer;

	left = n;
	ev_timer_init(&timer, on_timer, 0.001, 0.001);
	ev_timer_start(loop, &timer);
	ev_run(loop, 0);
	ev_timer_stop(loop, &timer);
}

/* ---- callbacks that are left by longjmp(), also out of a loop in a loop ---- */

static jmp_buf out;

static void on_jump(struct ev_loop *loop, ev_prepare *w, int events)
{
	(void)loop, (void)w, (void)events;
	COUNT(on_jump, KIND_POLL);
	longjmp(out, 1);
}

static void on_nesting(struct ev_loop *loop, ev_prepare *w, int events)
{
	(void)events;
	COUNT(on_nesting, KIND_POLL);
	ev_feed_event(loop, w->data, EV_CUSTOM);
	ev_run(loop, EVRUN_NOWAIT);
}

static void jump_out(struct ev_loop *loop, ev_prepare *w)
{
	ev_feed_event(loop, w, EV_CUSTOM);
	if (!setjmp(out))
		ev_run(loop, EVRUN_NOWAIT);
}

static void run_longjmp(void)
{
	struct ev_loop *loop = make_loop();
	ev_prepare jump, nesting;

	ev_init(&jump, on_jump);
	ev_init(&nesting, on_nesting);
	nesting.data = &jump;
	for (int i = 0; i < 10; i++) {
		jump_out(loop, &jump);
		jump_out(loop, &nesting);
		run_timer(loop, 2);
	}
	/* libev counts the runs that were left by a jump: one and two each time. */
	if (ev_depth(loop) != 30)
		complain("depth", 30, (long)ev_depth(loop));
}

/* ---- waits that signals interrupt, and an acquire callback that loses errno ---- */

static struct ev_loop *interrupted_loop;
static pthread_t interrupted_thread;

static void nothing(int signum)
{
	(void)signum;
}

static void on_release(struct ev_loop *loop) EV_NOEXCEPT
{
	(void)loop;
	errno = EDOM;
}

/* libev asks for errno behind it: what it finds is the program's doing, as it is without us. */
static void on_acquire(struct ev_loop *loop) EV_NOEXCEPT
{
	(void)loop;
	if (errno != EINTR && errno != EDOM && errno != 0)
		complain("errno of the wait", EINTR, errno);
}

static void *interrupt(void *arg)
{
	for (int i = 0; i < 50; i++) {
		pthread_kill(interrupted_thread, SIGUSR2);
		usleep(500);
	}
	return arg;
}

static void run_eintr(void)
{
	struct sigaction action = { .sa_handler = nothing };
	pthread_t thread;

	sigaction(SIGUSR2, &action, NULL);
	interrupted_loop = make_loop();
	interrupted_thread = pthread_self();
	ev_set_loop_release_cb(interrupted_loop, on_release, on_acquire);
	if (pthread_create(&thread, NULL, interrupt, NULL))
		exit(99);
	run_timer(interrupted_loop, 40);
	pthread_join(thread, NULL);
	ev_loop_destroy(interrupted_loop);
}

/* ---- events are collected: the sleep is a wait ---- */

static void on_ready(struct ev_loop *loop, ev_io *w, int events)
{
	(void)w, (void)events;
	COUNT(on_ready, KIND_POLL);
	count_down(loop);
}

static void run_collect(void)
{
	struct ev_loop *loop = make_loop();
	ev_io ready;
	int fds[2];

	if (pipe(fds))
		exit(99);
	ev_set_io_collect_interval(loop, 0.005);
	ev_io_init(&ready, on_ready, fds[1], EV_WRITE);
	ev_io_start(loop, &ready);
	left = 20;
	ev_run(loop, 0);
	ev_loop_destroy(loop);
}

/* ---- loops one after the other, most likely at the same address ---- */

static void use_up(struct ev_loop *loop)
{
	static ev_timer timer;

	left = 2;
	ev_timer_init(&timer, on_timer, 0.001, 0.001);
	ev_timer_start(loop, &timer);
	ev_run(loop, 0);
	ev_loop_destroy(loop);
	COUNT(on_timer, KIND_TASKS);
}

static void run_recreated(void)
{
	/* A function that goes on may have addresses in registers (-fno-plt) from before the hooks. */
	void (*volatile entered_anew)(struct ev_loop *) = use_up;

	for (int i = 0; i < 5; i++)
		entered_anew(make_loop());
}

/* ---- and without end ---- */

#define ENDLESS 10000

static void run_endless(void)
{
	for (int i = 0; i < ENDLESS; i++) {
		struct ev_loop *loop = make_loop();
		ev_timer timer;

		left = 1;
		ev_timer_init(&timer, on_timer, 0, 0);
		ev_timer_start(loop, &timer);
		while (left)
			ev_run(loop, EVRUN_NOWAIT);
		ev_loop_destroy(loop);
		if (i % (ENDLESS / 2) == ENDLESS / 2 - 1)
			expect_flat();
	}
}

/* ---- an allocator whose blocks have no size that can be asked for ---- */

#define HIDDEN 48

static void *allocate(void *ptr, long size) EV_NOEXCEPT
{
	char *memory = ptr ? (char *)ptr - HIDDEN : NULL;

	if (size == 0) {
		free(memory);
		return NULL;
	}
	memory = realloc(memory, (size_t)size + HIDDEN);
	return memory ? memory + HIDDEN : NULL;
}

static void run_allocator(void)
{
	struct ev_loop *loop;

	ev_set_allocator(allocate);
	loop = make_loop();
	run_timer(loop, 5);
	ev_loop_destroy(loop);
}

/* ---- ev_once() on a loop that ends before ---- */

static void on_never(int events, void *arg)
{
	(void)events, (void)arg;
	complain("calls behind the loop's end", 0, 1);
}

static void run_once(void)
{
	struct ev_loop *loop = make_loop();

	ev_once(loop, -1, 0, 1000., on_never, NULL);
	run_timer(loop, 3);
	ev_loop_destroy(loop);
}

/* ---- sent without waiting, and by a handler that interrupts a callback ---- */

#define SENDS 50

static struct ev_loop *sent_loop;
static ev_async sent, from_handler;

static void on_sent(struct ev_loop *loop, ev_async *w, int events)
{
	(void)loop, (void)w, (void)events;
	COUNT(on_sent, KIND_POLL);
	counter_of("cross_thread", (void *)on_sent, KIND_REASON)->count++;
}

static void on_handled(struct ev_loop *loop, ev_async *w, int events)
{
	(void)w, (void)events;
	COUNT(on_handled, KIND_POLL);
	counter_of("active", (void *)on_handled, KIND_REASON)->count++;
	count_down(loop);
}

static void handler(int signum)
{
	(void)signum;
	/* NOLINTNEXTLINE(bugprone-signal-handler): libev allows it */
	ev_async_send(sent_loop, &from_handler);
	ev_async_send(sent_loop, &from_handler); /* the same one */
}

static void on_raising(struct ev_loop *loop, ev_prepare *w, int events)
{
	(void)w, (void)events;
	COUNT(on_raising, KIND_POLL);
	raise(SIGUSR1);
	/* Ours is recorded, too, in the middle of which the next may come. */
	ev_feed_event(loop, w, EV_CUSTOM);
	ev_clear_pending(loop, w);
}

static void *send_all(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	for (int i = 0; i < SENDS; i++)
		ev_async_send(sent_loop, &sent);
	return arg;
}

static void run_sent(void)
{
	ev_prepare raising;
	pthread_t thread;

	sent_loop = make_loop();
	ev_async_init(&sent, on_sent);
	ev_async_init(&from_handler, on_handled);
	ev_async_start(sent_loop, &sent);
	ev_async_start(sent_loop, &from_handler);
	signal(SIGUSR1, handler);
	ev_init(&raising, on_raising);
	if (pthread_create(&thread, NULL, send_all, NULL))
		exit(99);
	for (int i = 0; i < 20; i++) {
		left = 1;
		ev_feed_event(sent_loop, &raising, EV_CUSTOM);
		ev_run(sent_loop, 0);
	}
	pthread_join(thread, NULL);
	left = 1;
	ev_feed_event(sent_loop, &raising, EV_CUSTOM);
	ev_run(sent_loop, 0);
	ev_loop_destroy(sent_loop);
}

/* ---- watchers in memory that was not cleared ---- */

static void on_garbage(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop, (void)events;
	COUNT(on_garbage, KIND_POLL);
	free(w);
}

static void run_garbage(void)
{
	struct ev_loop *loop = make_loop();

	for (int i = 0; i < 50; i++) {
		ev_timer *timer = malloc(sizeof(*timer));

		ev_timer_init(timer, on_garbage, 0., 0.);
		ev_timer_start(loop, timer);
	}
	run_timer(loop, 2);
	ev_loop_destroy(loop);
}

/* ---- an adapter that the program closes again ---- */

static void run_closed(void)
{
	struct ev_loop *loop = make_loop();
	void *handle = adapter ? dlopen(adapter, RTLD_NOW | RTLD_NOLOAD) : NULL;

	/* Both what attach opened and this. */
	if (!handle || dlclose(handle) || dlclose(handle))
		complain("closing the adapter", 0, 1);
	run_timer(loop, 5);
	ev_loop_destroy(loop);
}

/* ---- more watchers than are remembered ---- */

static void on_one_of_many(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)w, (void)events;
	COUNT(on_one_of_many, KIND_POLL);
	count_down(loop);
}

static void run_many(void)
{
	/* Not so many at once that the ring overruns on a busy machine. */
	const struct timespec pause = { 0, 4000000 };
	const char *asked = getenv("D9_WATCHERS");
	struct ev_loop *loop = make_loop();
	int n = 20000, at_once = 1000, total = asked ? atoi(asked) : n;
	ev_timer *timers = calloc((size_t)n, sizeof(*timers));

	if (!timers)
		exit(99);
	for (int done = 0; done < total; done += n) {
		for (int i = 0; i < n; i++) {
			ev_timer_init(&timers[i], on_one_of_many, 0., 0.);
			ev_timer_start(loop, &timers[i]);
			if ((i + 1) % at_once)
				continue;
			left = at_once;
			ev_run(loop, 0);
			nanosleep(&pause, NULL);
		}
	}
	ev_loop_destroy(loop);
	free(timers);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "longjmp", run_longjmp },	{ "eintr", run_eintr },	  { "collect", run_collect },
	{ "recreated", run_recreated }, { "allocator", run_allocator }, { "once", run_once },
	{ "sent", run_sent },		{ "garbage", run_garbage }, { "many", run_many },
	{ "closed", run_closed },	{ "endless", run_endless },
};

int main(int argc, char **argv)
{
	const char *path = NULL;

	for (int i = 2; i < argc; i++) {
		if (!strncmp(argv[i], "--adapter=", 10))
			adapter = argv[i] + 10;
		else if (!strncmp(argv[i], "--out=", 6))
			path = argv[i] + 6;
	}
	for (size_t i = 0; argc > 1 && i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(argv[1], cases[i].name))
			continue;
		cases[i].run();
		return counters_write(path);
	}
	return 2;
}
