/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of recording on libev: a watcher that feeds itself, and 64 descriptors that are ready in
 * every round.  Variants take turns, and each is held against the raw run of its round.  The raw
 * loop runs libev's own functions, but for those that libev calls itself.
 *
 *	bench_libev [ROUNDS [CALLBACKS]]
 */

#include "config.h"

#include <dlfcn.h>
#include <unistd.h>

#include <dial9/libev.h>
#include <dial9/recorder.h>

#include <ev.h>

#include "bench/bench.h"

#define READY 64

/* libev's own, past all hooks. */
static struct {
	void (*feed_event)(struct ev_loop *loop, void *w, int events);
	void (*invoke_pending)(struct ev_loop *loop);
	int (*run)(struct ev_loop *loop, int flags);
	void (*timer_again)(struct ev_loop *loop, ev_timer *w);
	void (*timer_stop)(struct ev_loop *loop, ev_timer *w);
	void (*io_start)(struct ev_loop *loop, ev_io *w);
	void (*io_stop)(struct ev_loop *loop, ev_io *w);
} raw;

struct lane {
	struct ev_loop *loop;
	void (*feed_event)(struct ev_loop *loop, void *w, int events);
	void (*invoke_pending)(struct ev_loop *loop);
	int (*run)(struct ev_loop *loop, int flags);
	void (*timer_again)(struct ev_loop *loop, ev_timer *w);
	void (*timer_stop)(struct ev_loop *loop, ev_timer *w);
	void (*io_start)(struct ev_loop *loop, ev_io *w);
	void (*io_stop)(struct ev_loop *loop, ev_io *w);
	ev_prepare feeder;
	ev_io ready[READY], io;
	ev_timer timer;
	long left;
};

static void find_functions(void)
{
	void *handle = dlopen("libev.so.4", RTLD_NOW);

	*(void **)&raw.feed_event = dlsym(handle, "ev_feed_event");
	*(void **)&raw.invoke_pending = dlsym(handle, "ev_invoke_pending");
	*(void **)&raw.run = dlsym(handle, "ev_run");
	*(void **)&raw.timer_again = dlsym(handle, "ev_timer_again");
	*(void **)&raw.timer_stop = dlsym(handle, "ev_timer_stop");
	*(void **)&raw.io_start = dlsym(handle, "ev_io_start");
	*(void **)&raw.io_stop = dlsym(handle, "ev_io_stop");
}

/* ---- callbacks ---- */

static void on_fed(struct ev_loop *loop, ev_prepare *w, int events)
{
	struct lane *lane = w->data;

	(void)events;
	if (--lane->left > 0)
		lane->feed_event(loop, w, EV_CUSTOM);
}

static void on_ready(struct ev_loop *loop, ev_io *w, int events)
{
	struct lane *lane = w->data;

	(void)loop;
	(void)events;
	lane->left--;
}

static void on_timer(struct ev_loop *loop, ev_timer *w, int events)
{
	(void)loop;
	(void)w;
	(void)events;
}

/* ---- what is measured: ns per callback, or per pair of calls ---- */

static double feed(struct lane *lane, long n)
{
	double start = bench_cpu_ns();

	lane->left = n;
	lane->feed_event(lane->loop, &lane->feeder, EV_CUSTOM);
	lane->invoke_pending(lane->loop);
	return (bench_cpu_ns() - start) / (double)n;
}

static double ready(struct lane *lane, long n)
{
	double start = bench_cpu_ns();

	lane->left = n;
	while (lane->left > 0)
		lane->run(lane->loop, EVRUN_NOWAIT);
	return (bench_cpu_ns() - start) / (double)n;
}

static double timers(struct lane *lane, long n)
{
	double start = bench_cpu_ns();

	for (long i = 0; i < n; i++) {
		lane->timer_again(lane->loop, &lane->timer);
		lane->timer_stop(lane->loop, &lane->timer);
	}
	return (bench_cpu_ns() - start) / (double)n;
}

static double ios(struct lane *lane, long n)
{
	double start = bench_cpu_ns();

	for (long i = 0; i < n; i++) {
		lane->io_start(lane->loop, &lane->io);
		lane->io_stop(lane->loop, &lane->io);
	}
	return (bench_cpu_ns() - start) / (double)n;
}

/* ---- lanes ---- */

static void make_lane(struct lane *lane)
{
	int fds[2];

	lane->loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
	ev_prepare_init(&lane->feeder, on_fed);
	lane->feeder.data = lane;
	ev_timer_init(&lane->timer, on_timer, 100., 100.);
	for (int i = 0; i < READY; i++) {
		if (pipe(fds) || write(fds[1], "x", 1) != 1)
			exit(99);
		ev_io_init(&lane->ready[i], on_ready, fds[0], EV_READ);
		lane->ready[i].data = lane;
		ev_io_start(lane->loop, &lane->ready[i]);
	}
	ev_io_init(&lane->io, on_ready, fds[1], EV_READ);
	lane->io.data = lane;
	lane->feed_event = ev_feed_event;
	lane->invoke_pending = ev_invoke_pending;
	lane->run = ev_run;
	lane->timer_again = ev_timer_again;
	lane->timer_stop = ev_timer_stop;
	lane->io_start = ev_io_start;
	lane->io_stop = ev_io_stop;
}

static void make_raw(struct lane *lane)
{
	lane->feed_event = raw.feed_event;
	lane->invoke_pending = raw.invoke_pending;
	lane->run = raw.run;
	lane->timer_again = raw.timer_again;
	lane->timer_stop = raw.timer_stop;
	lane->io_start = raw.io_start;
	lane->io_stop = raw.io_stop;
	ev_set_invoke_pending_cb(lane->loop, raw.invoke_pending);
}

enum { RAW, HOOKED, SHUT, OPEN, RAW_AGAIN, VARIANTS };

static const char *const names[VARIANTS] = {
	"raw", "not attached", "attached, switched off", "attached, recording", "raw again",
};

/* |budget|: of what recording adds, in ns; 0: none. */
static void compare(const char *what, double (*run)(struct lane *, long), struct lane *lanes,
		    unsigned rounds, long n, double budget)
{
	static double ns[VARIANTS][BENCH_ROUNDS_MAX];
	struct lane *plain = &lanes[0], *hooked = &lanes[1], *attached = &lanes[2];
	char line[96];

	for (int i = -2; i < (int)rounds; i++) {
		unsigned at = i < 0 ? 0 : (unsigned)i;

		ns[RAW][at] = run(plain, n);
		ns[HOOKED][at] = run(hooked, n);
		d9_disable();
		ns[SHUT][at] = run(attached, n);
		d9_enable();
		ns[OPEN][at] = run(attached, n);
		ns[RAW_AGAIN][at] = run(plain, n);
	}
	for (int i = HOOKED; i < VARIANTS; i++) {
		snprintf(line, sizeof(line), "libev: %s, %s", what, names[i]);
		bench_ratio(line, "ns", ns[i], "raw", ns[RAW], rounds, 0);
	}
	for (unsigned i = 0; i < rounds; i++)
		ns[OPEN][i] -= ns[RAW][i];
	snprintf(line, sizeof(line), "libev: %s, more than raw", what);
	bench_value(line, "ns", ns[OPEN], rounds, budget);
}

int main(int argc, char **argv)
{
	const struct timespec settle = { 0, 400000000 };
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 101;
	long n = argc > 2 ? atol(argv[2]) : 6400;
	static struct lane lanes[3];

	find_functions();
	if (!raw.io_stop || rounds > BENCH_ROUNDS_MAX)
		return 99;
	for (int i = 0; i < 3; i++)
		make_lane(&lanes[i]);
	make_raw(&lanes[0]);
	if (d9_ev_loop_attach(lanes[2].loop))
		return 99;
	/* The clock changes over to ticks when it is calibrated. */
	nanosleep(&settle, NULL);
	compare("fed callback", feed, lanes, rounds, n, BENCH_MORE_NS);
	compare("one of 64 ready", ready, lanes, rounds, n, BENCH_MORE_NS);
	compare("timer again and stop", timers, lanes, rounds, n, 0);
	compare("io start and stop", ios, lanes, rounds, n, 0);
	return 0;
}
