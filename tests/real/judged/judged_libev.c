/* SPDX-License-Identifier: Apache-2.0 */
#include <ev.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "judged.h"

#define UNUSED (void)loop, (void)watcher, (void)events

static bool is_innocent;
static double begun;

static void on_client(struct ev_loop *loop, ev_timer *watcher, int events)
{
	UNUSED;
	judged_compute(0.02);
}

static ev_timer clients[4];

static void add_clients(struct ev_loop *loop)
{
	for (unsigned i = 0; i < 4; i++) {
		ev_timer_init(&clients[i], on_client, 0.005, 0.005);
		ev_timer_start(loop, &clients[i]);
	}
}

static void stop(struct ev_loop *loop, ev_timer *watcher, int events)
{
	UNUSED;
	ev_break(loop, EVBREAK_ALL);
}

static void run_to_end(struct ev_loop *loop, double seconds)
{
	static ev_timer end;

	ev_timer_init(&end, stop, seconds, 0.);
	ev_timer_start(loop, &end);
	ev_run(loop, 0);
}

/* ---- hold the loop ---- */

static void on_answer(struct ev_loop *loop, ev_timer *watcher, int events)
{
	UNUSED;
	ev_break(loop, EVBREAK_ONE);
}

static void ask_peer(struct ev_loop *loop, ev_timer *watcher, int events)
{
	struct ev_loop *own;
	ev_timer answer;

	UNUSED;
	if (is_innocent)
		return;
	own = ev_loop_new(EVFLAG_AUTO);
	ev_timer_init(&answer, on_answer, 0.045, 0.);
	ev_timer_start(own, &answer);
	ev_run(own, 0);
	ev_loop_destroy(own);
}

static void hold_nested(bool innocent, double seconds)
{
	struct ev_loop *loop = EV_DEFAULT;
	static ev_timer asks;

	is_innocent = innocent;
	add_clients(loop);
	ev_timer_init(&asks, ask_peer, 0.5, 0.5);
	ev_timer_start(loop, &asks);
	run_to_end(loop, seconds);
}

static void rebuild_index(struct ev_loop *loop, ev_timer *watcher, int events)
{
	UNUSED;
	judged_compute(is_innocent ? 0.2 : 9);
}

static void hold_callback(bool innocent, double seconds)
{
	struct ev_loop *loop = EV_DEFAULT;
	static ev_timer rebuild;

	is_innocent = innocent;
	add_clients(loop);
	ev_timer_init(&rebuild, rebuild_index, 0.25, 0.25);
	ev_timer_start(loop, &rebuild);
	run_to_end(loop, seconds);
}

static __attribute__((noinline)) void sweep_cache(void)
{
	judged_compute(is_innocent ? 0.2 : 25);
}

static ev_timer batch;

static void on_batch(struct ev_loop *loop, ev_timer *watcher, int events)
{
	UNUSED;
	judged_compute(2);
}

static void hold_between(bool innocent, double seconds)
{
	struct ev_loop *loop = EV_DEFAULT;
	double next = begun;

	is_innocent = innocent;
	add_clients(loop);
	/* Enough for samples to find it: so the report knows who runs the loop. */
	ev_timer_init(&batch, on_batch, 0.04, 0.04);
	ev_timer_start(loop, &batch);
	while (judged_now() < begun + seconds) {
		ev_run(loop, EVRUN_ONCE);
		if (judged_now() < next)
			continue;
		next += 0.5;
		sweep_cache();
	}
}

static __attribute__((noinline)) void ask_sidecar(int sidecar)
{
	char byte = 'x';

	if (write(sidecar, &byte, 1) != 1 || read(sidecar, &byte, 1) != 1)
		abort();
}

static void ask_between(bool innocent, double seconds)
{
	struct ev_loop *loop = EV_DEFAULT;
	int sidecar = judged_sidecar(innocent ? 0.05 : 6);

	add_clients(loop);
	while (judged_now() < begun + seconds) {
		ev_run(loop, EVRUN_ONCE);
		ask_sidecar(sidecar);
	}
}

/* ---- timers that are set between runs ---- */

static ev_timer request, keep;
static unsigned timeouts;

/* So many timers tell, however long the machine takes for them. */
#define TIMEOUTS 6

static void on_timeout(struct ev_loop *loop, ev_timer *watcher, int events)
{
	UNUSED;
	timeouts++;
}

/* Computes for long, and sets a timer then, by a clock that the loop read before. */
static __attribute__((noinline)) void run_tasks(struct ev_loop *loop)
{
	if (ev_is_active(&request))
		return;
	if (!is_innocent)
		judged_compute(300);
	ev_timer_init(&request, on_timeout, 0.5, 0.);
	ev_timer_start(loop, &request);
}

static void stale_between(bool innocent, double seconds)
{
	struct ev_loop *loop = EV_DEFAULT;

	is_innocent = innocent;
	ev_timer_init(&keep, on_client, 0.05, 0.05);
	ev_timer_start(loop, &keep);
	while (timeouts < TIMEOUTS || judged_now() < begun + seconds) {
		run_tasks(loop);
		ev_run(loop, EVRUN_ONCE);
	}
}

/* The timer is early, and little ran: a sleep outside of the loop made its clock old. */
static void sleep_between(bool innocent, double seconds)
{
	struct ev_loop *loop = EV_DEFAULT;

	is_innocent = innocent;
	ev_timer_init(&keep, on_client, 0.05, 0.05);
	ev_timer_start(loop, &keep);
	while (timeouts < TIMEOUTS || judged_now() < begun + seconds) {
		if (!ev_is_active(&request)) {
			judged_sleep(200);
			if (innocent)
				ev_now_update(loop);
			ev_timer_init(&request, on_timeout, 0.5, 0.);
			ev_timer_start(loop, &request);
		}
		ev_run(loop, EVRUN_ONCE);
	}
}

/* ---- naps ---- */

/* A program that looks at its loop between naps: clients come meanwhile.  The innocent twin's naps
 * are short. */
static void nap_between(bool innocent, double seconds)
{
	struct ev_loop *loop = EV_DEFAULT;

	is_innocent = innocent;
	ev_timer_init(&keep, on_client, 0.005, 0.005);
	ev_timer_start(loop, &keep);
	while (judged_now() < begun + seconds) {
		judged_sleep(is_innocent ? 1 : 30);
		ev_run(loop, EVRUN_NOWAIT);
	}
}

/* Asks its loop for events all the time.  The innocent twin lets it wait. */
static void ask_loop(bool innocent, double seconds)
{
	struct ev_loop *loop = EV_DEFAULT;

	add_clients(loop);
	while (judged_now() < begun + seconds)
		ev_run(loop, innocent ? EVRUN_ONCE : EVRUN_NOWAIT);
}

int main(int argc, char **argv)
{
	static const struct judged programs[] = {
		{ "hold_callback", hold_callback },
		{ "hold_nested", hold_nested },
		{ "hold_between", hold_between },
		{ "ask_between", ask_between },
		{ "stale_between", stale_between },
		{ "sleep_between", sleep_between },
		{ "nap_between", nap_between },
		{ "ask_loop", ask_loop },
		{ NULL, NULL },
	};

	begun = judged_now();
	return judged_main(argc, argv, programs);
}
