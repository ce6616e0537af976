/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of recording a callback, in the tightest loop that libevent can run: an event that
 * activates itself.  Variants take turns, in short runs and in time of this thread's CPU; figures are
 * differences from the raw run of the same round.  Set DIAL9_TASK_TRACKING_ENABLED=false to see
 * PollStart and PollEnd without the wake.
 *
 *	bench_libevent [ROUNDS [CALLBACKS]]
 */

#include "config.h"

#include <stdbool.h>

#include <dial9/libevent.h>
#include <dial9/recorder.h>

#include "bench/bench.h"

#include <event2/event.h>
#include <event2/event_struct.h>

struct lane {
	struct event_base *base;
	struct event *event;
	long left;
};

static void again(evutil_socket_t fd, short what, void *arg)
{
	struct lane *lane = arg;

	(void)fd;
	(void)what;
	if (--lane->left > 0)
		event_active(lane->event, EV_READ, 1);
}

/* ns per callback */
static double run(struct lane *lane, long n)
{
	double start = bench_cpu_ns();

	lane->left = n;
	event_active(lane->event, EV_READ, 1);
	event_base_loop(lane->base, EVLOOP_NONBLOCK);
	return (bench_cpu_ns() - start) / (double)n;
}

static void make_lane(struct lane *lane)
{
	lane->base = event_base_new();
	lane->event = event_new(lane->base, -1, 0, again, lane);
}

/*
 * Put the program's own pointer back where the stub is.  What is left of us are the hooks of
 * event_active() and of the activation, on a base that is not attached.
 */
static void make_raw(struct lane *lane)
{
	lane->event->ev_evcallback.evcb_cb_union.evcb_callback = again;
}

enum { RAW, STUB, SHUT, OPEN, CLOCK, RAW_AGAIN, VARIANTS };

static double ns[VARIANTS][BENCH_ROUNDS_MAX];

/* Of one clock_gettime(). */
static double read_clock(long n)
{
	double start = bench_cpu_ns();
	struct timespec ts;

	for (long i = 0; i < n; i++)
		clock_gettime(CLOCK_MONOTONIC, &ts);
	return (bench_cpu_ns() - start) / (double)n;
}

static void print(unsigned rounds)
{
	const char *tasks = getenv("DIAL9_TASK_TRACKING_ENABLED");
	bool polls_only = tasks && !strcmp(tasks, "false");

	bench_same("a raw callback", ns[RAW], ns[RAW_AGAIN], rounds);
	for (unsigned i = 0; i < rounds; i++) {
		ns[STUB][i] -= ns[RAW][i];
		ns[SHUT][i] -= ns[RAW][i];
		ns[OPEN][i] -= ns[RAW][i];
	}
	if (polls_only) {
		bench_value("poll of a libevent callback, event_active() loop", "ns", ns[OPEN],
			    rounds, 0);
		bench_ratio("the same", "ns", ns[OPEN], "clock_gettime", ns[CLOCK], rounds, 0);
		return;
	}
	bench_value("poll and wake of a libevent callback", "ns", ns[OPEN], rounds, BENCH_MORE_NS);
	bench_value("hooks, recording off", "ns", ns[SHUT], rounds, 2);
	bench_value("stub of a base that is not attached", "ns", ns[STUB], rounds, 0);
}

int main(int argc, char **argv)
{
	const struct timespec settle = { 0, 400000000 };
	int rounds = argc > 1 ? atoi(argv[1]) : 101;
	long n = argc > 2 ? atol(argv[2]) : 5000;
	struct lane raw, stub, attached;

	if (rounds < 1 || rounds > BENCH_ROUNDS_MAX)
		return 2;
	make_lane(&raw);
	make_lane(&stub);
	make_lane(&attached);
	make_raw(&raw);
	if (d9_event_base_attach(attached.base))
		return 99;
	/* The clock changes over to ticks when it is calibrated. */
	nanosleep(&settle, NULL);
	for (int i = -2; i < rounds; i++) {
		int at = i < 0 ? 0 : i;

		ns[RAW][at] = run(&raw, n);
		ns[STUB][at] = run(&stub, n);
		d9_disable();
		ns[SHUT][at] = run(&attached, n);
		d9_enable();
		ns[OPEN][at] = run(&attached, n);
		ns[CLOCK][at] = read_clock(n);
		ns[RAW_AGAIN][at] = run(&raw, n);
	}
	print((unsigned)rounds);
	return 0;
}
