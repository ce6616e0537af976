/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What recording costs per callback, in the tightest loop that libevent can run: an event that
 * activates itself.  Variants take turns, in runs too short for the scheduler to come between;
 * printed are medians of the differences from the raw run of the same round.  Set
 * DIAL9_TASK_TRACKING_ENABLED=false to see PollStart and PollEnd without the wake.
 *
 *	bench_libevent [ROUNDS [CALLBACKS]]
 */

#include "config.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <dial9/libevent.h>
#include <dial9/recorder.h>

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

static double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* ns per callback */
static double run(struct lane *lane, long n)
{
	double start = now_ns();

	lane->left = n;
	event_active(lane->event, EV_READ, 1);
	event_base_loop(lane->base, EVLOOP_NONBLOCK);
	return (now_ns() - start) / (double)n;
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

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, int n)
{
	qsort(values, (size_t)n, sizeof(*values), by_value);
	return values[n / 2];
}

enum { RAW, STUB, SHUT, OPEN, RAW_AGAIN, VARIANTS };

static const char *const names[VARIANTS] = {
	"raw callback", "through a stub", "attached, switched off", "attached, recording", "A/A",
};

int main(int argc, char **argv)
{
	const struct timespec settle = { 0, 400000000 };
	int rounds = argc > 1 ? atoi(argv[1]) : 101;
	long n = argc > 2 ? atol(argv[2]) : 5000;
	struct lane raw, stub, attached;
	double *ns[VARIANTS];

	make_lane(&raw);
	make_lane(&stub);
	make_lane(&attached);
	make_raw(&raw);
	if (d9_event_base_attach(attached.base))
		return 99;
	for (int i = 0; i < VARIANTS; i++)
		ns[i] = calloc((size_t)rounds, sizeof(double));
	/* The clock changes over to ticks when it is calibrated. */
	nanosleep(&settle, NULL);
	for (int i = -2; i < rounds; i++) {
		int at = i < 0 ? 0 : i;
		double base = run(&raw, n);

		ns[RAW][at] = base;
		ns[STUB][at] = run(&stub, n) - base;
		d9_disable();
		ns[SHUT][at] = run(&attached, n) - base;
		d9_enable();
		ns[OPEN][at] = run(&attached, n) - base;
		ns[RAW_AGAIN][at] = run(&raw, n) - base;
	}
	for (int i = 0; i < VARIANTS; i++)
		printf("%-24s %+7.2f ns/callback\n", names[i], median(ns[i], rounds));
	return 0;
}
