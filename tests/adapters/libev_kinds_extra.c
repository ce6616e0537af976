/* SPDX-License-Identifier: Apache-2.0 */
/* Signals, children, files, other threads, forks, loops in loops, and what runs once. */

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libev_kinds.h"

/* ---- signals and children ---- */

static struct {
	ev_signal usr1, usr2;
	ev_child one, any;
	int signals, children;
	bool done, children_done;
} process;

static void on_usr1(struct ev_loop *loop, ev_signal *w, int events)
{
	(void)events;
	COUNT(on_usr1, KIND_POLL);
	if (++process.signals < 5) {
		raise(w->signum);
		return;
	}
	ev_signal_stop(loop, w);
	process.done = true;
}

static void on_usr2(struct ev_loop *loop, ev_signal *w, int events)
{
	(void)loop;
	(void)w;
	(void)events;
	COUNT(on_usr2, KIND_POLL);
}

static void on_child(struct ev_loop *loop, ev_child *w, int events)
{
	(void)events;
	COUNT(on_child, KIND_POLL);
	ev_child_stop(loop, w);
	process.children_done = ++process.children == 3;
}

static void on_any_child(struct ev_loop *loop, ev_child *w, int events)
{
	(void)events;
	COUNT(on_any_child, KIND_POLL);
	process.children_done = ++process.children == 3;
	if (process.children_done)
		ev_child_stop(loop, w);
}

static pid_t start_child(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(7);
	return pid;
}

static void run_process(struct ev_loop *loop)
{
	ev_signal_init(&process.usr1, on_usr1, SIGUSR1);
	ev_signal_init(&process.usr2, on_usr2, SIGUSR2);
	ev_signal_start(loop, &process.usr1);
	ev_signal_start(loop, &process.usr2);
	raise(SIGUSR1);
	run_until(loop, &process.done, "signals");
	ev_feed_signal_event(loop, SIGUSR2);
	ev_invoke_pending(loop);
	ev_signal_stop(loop, &process.usr2);
	ev_child_init(&process.any, on_any_child, 0, 0);
	ev_child_start(loop, &process.any);
	ev_child_init(&process.one, on_child, start_child(), 0);
	ev_child_start(loop, &process.one);
	/* The second one starts when the first is through: their signals would melt into one. */
	while (process.children < 2)
		ev_run(loop, EVRUN_ONCE);
	start_child();
	run_until(loop, &process.children_done, "children");
}

/* ---- a file ---- */

static struct {
	ev_stat stat;
	bool done;
} file;

static void on_stat(struct ev_loop *loop, ev_stat *w, int events)
{
	(void)events;
	COUNT(on_stat, KIND_POLL);
	ev_stat_stop(loop, w);
	file.done = true;
}

static void run_stat(struct ev_loop *loop)
{
	char path[] = "/tmp/libev_every_kind.XXXXXX";
	int fd = mkstemp(path);

	if (fd < 0 || write(fd, "x", 1) != 1)
		complain("a file", 0, errno);
	ev_stat_init(&file.stat, on_stat, path, 0.);
	ev_stat_start(loop, &file.stat);
	ev_run(loop, EVRUN_NOWAIT);
	unlink(path);
	/* Whether the kernel or a timer of seconds notices it is not ours to wait for. */
	ev_stat_stat(loop, &file.stat);
	ev_feed_event(loop, &file.stat, EV_STAT);
	run_until(loop, &file.done, "a file's change");
	close(fd);
}

/* ---- another thread, and a signal handler ---- */

#define SENDS 50

static struct {
	ev_async async;
	struct ev_loop *loop;
	int sent, received;
	bool done;
	pthread_t thread;
} other;

static void on_async(struct ev_loop *loop, ev_async *w, int events)
{
	(void)loop;
	(void)events;
	COUNT(on_async, KIND_POLL);
	(void)w;
	__atomic_add_fetch(&other.received, 1, __ATOMIC_RELEASE);
	other.done = other.received == SENDS;
}

/* One after the other is seen: so many sends are so many polls. */
static void *send_all(void *arg)
{
	(void)arg;
	for (int i = 0; i < SENDS; i++) {
		while (__atomic_load_n(&other.received, __ATOMIC_ACQUIRE) != i)
			usleep(50);
		ev_async_send(other.loop, &other.async);
	}
	return NULL;
}

static void on_handler(int signum)
{
	(void)signum;
	ev_async_send(other.loop, &other.async); /* NOLINT(bugprone-signal-handler): libev allows it */
}

static void run_async(struct ev_loop *loop)
{
	sigset_t all, old;
	int seen;

	other.loop = loop;
	ev_async_init(&other.async, on_async);
	ev_async_start(loop, &other.async);
	/* Signals are the loop's thread's. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	if (pthread_create(&other.thread, NULL, send_all, NULL))
		complain("pthread_create", 0, 1);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	run_until(loop, &other.done, "asyncs");
	pthread_join(other.thread, NULL);
	signal(SIGUSR1, on_handler);
	seen = other.received;
	raise(SIGUSR1);
	ev_run(loop, EVRUN_ONCE);
	if (other.received != seen + 1)
		complain("an async sent by a signal handler", seen + 1, other.received);
	ev_async_stop(loop, &other.async);
	signal(SIGUSR1, SIG_DFL);
}

/* ---- a loop in a callback ---- */

static struct {
	ev_timer outer, inner, soon;
	ev_prepare fed;
	bool done;
} nested;

static void on_inner(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)w;
	(void)events;
	COUNT(on_inner, KIND_POLL);
	ev_break(loop, EVBREAK_ONE);
}

static void on_inner_fed(struct ev_loop *loop, ev_prepare *w, int events)
{
	(void)loop;
	(void)w;
	(void)events;
	COUNT(on_inner_fed, KIND_POLL);
}

static void on_outer(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)w;
	(void)events;
	COUNT(on_outer, KIND_POLL);
	for (int i = 0; i < 3; i++) {
		ev_timer_set(&nested.inner, 0.002, 0.);
		ev_timer_start(loop, &nested.inner);
		ev_run(loop, 0);
		ev_feed_event(loop, &nested.fed, EV_CUSTOM);
		ev_invoke_pending(loop);
	}
	nested.done = true;
}

static void run_nested(struct ev_loop *loop)
{
	ev_timer_init(&nested.outer, on_outer, 0.001, 0.);
	ev_init(&nested.inner, on_inner);
	ev_init(&nested.fed, on_inner_fed);
	ev_timer_start(loop, &nested.outer);
	run_until(loop, &nested.done, "a nested loop");
}

/* ---- a loop in a loop ---- */

static struct {
	ev_embed watcher;
	ev_io reader;
	int fds[2], reads;
	bool done;
} embedded;

static void on_embed(struct ev_loop *loop, ev_embed *w, int events)
{
	(void)events;
	COUNT(on_embed, KIND_POLL);
	ev_embed_sweep(loop, w);
}

static void on_embedded(struct ev_loop *loop, ev_io *w, int events)
{
	char byte;

	(void)loop;
	(void)events;
	COUNT(on_embedded, KIND_POLL);
	if (read(w->fd, &byte, 1) != 1)
		complain("a byte in the embedded loop", 1, 0);
	if (++embedded.reads == 3)
		embedded.done = true;
	else if (write(embedded.fds[1], "x", 1) != 1)
		complain("a byte into the embedded loop", 1, 0);
}

static void run_embedded_with(struct ev_loop *loop, void (*callback)(struct ev_loop *, ev_embed *, int))
{
	struct ev_loop *inner = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);

	if (!inner || pipe(embedded.fds))
		return;
	record_loop(inner);
	embedded.reads = 0;
	embedded.done = false;
	ev_io_init(&embedded.reader, on_embedded, embedded.fds[0], EV_READ);
	ev_io_start(inner, &embedded.reader);
	ev_embed_init(&embedded.watcher, callback, inner);
	ev_embed_start(loop, &embedded.watcher);
	if (write(embedded.fds[1], "x", 1) != 1)
		complain("a byte into the embedded loop", 1, 0);
	run_until(loop, &embedded.done, "an embedded loop");
	ev_embed_stop(loop, &embedded.watcher);
	ev_io_stop(inner, &embedded.reader);
	ev_loop_destroy(inner);
	close(embedded.fds[0]);
	close(embedded.fds[1]);
}

/* ---- what runs once ---- */

static int once_left;
static bool once_done;

static void on_once(int events, void *arg)
{
	(void)events;
	COUNT(on_once, KIND_POLL);
	COUNT(on_once, KIND_TASKS);
	if (arg != &once_left)
		complain("argument of ev_once()", 0, 1);
	once_done = --once_left == 0;
}

static void run_once(struct ev_loop *loop)
{
	int fds[2];

	if (pipe(fds) || write(fds[1], "x", 1) != 1)
		complain("a pipe", 0, errno);
	once_left = 3;
	ev_once(loop, -1, 0, 0.003, on_once, &once_left);
	ev_once(loop, fds[0], EV_READ, -1., on_once, &once_left);
	ev_once(loop, fds[1], EV_WRITE, 10., on_once, &once_left);
	run_until(loop, &once_done, "ev_once()");
	close(fds[0]);
	close(fds[1]);
}

/* ---- the kernel's copy of the descriptors is made anew; the loop ends ---- */

static struct {
	ev_fork fork;
	ev_cleanup cleanup;
	bool done;
} ends;

static void on_fork(struct ev_loop *loop, ev_fork *w, int events)
{
	(void)loop;
	(void)w;
	(void)events;
	COUNT(on_fork, KIND_POLL);
	ends.done = true;
}

static void on_cleanup(struct ev_loop *loop, ev_cleanup *w, int events)
{
	(void)loop;
	(void)w;
	(void)events;
	COUNT(on_cleanup, KIND_POLL);
}

static void run_ends(struct ev_loop *loop)
{
	ev_fork_init(&ends.fork, on_fork);
	ev_fork_start(loop, &ends.fork);
	ev_loop_fork(loop);
	ev_run(loop, EVRUN_NOWAIT);
	if (!ends.done)
		complain("a fork watcher's call", 1, 0);
	ev_fork_stop(loop, &ends.fork);
	ev_cleanup_init(&ends.cleanup, on_cleanup);
	ev_cleanup_start(loop, &ends.cleanup);
}

void run_extra_kinds(struct ev_loop *loop)
{
	if (ev_is_default_loop(loop))
		run_process(loop);
	run_stat(loop);
	run_async(loop);
	run_nested(loop);
	run_embedded_with(loop, on_embed);
	run_embedded_with(loop, NULL);
	run_once(loop);
	run_ends(loop);
}
