/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread hands each result to the loop by ev_feed_event(), under the lock that the loop gives up
 * while it waits, and does not wake the loop: the result lies there until something else happens.  The
 * innocent twin sends an async event as well.
 *
 *	scenario_libev_lost_wake [innocent]
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <ev.h>

#include <dial9/libev.h>

#define RESULTS 30

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ev_loop *loop;
static ev_prepare result; /* is fed only */
static ev_async wakeup;
static int innocent;
static unsigned taken, beats;

static void give_up_lock(struct ev_loop *its) EV_NOEXCEPT
{
	(void)its;
	pthread_mutex_unlock(&lock);
}

static void take_lock(struct ev_loop *its) EV_NOEXCEPT
{
	(void)its;
	pthread_mutex_lock(&lock);
}

static void take_result(struct ev_loop *its, ev_prepare *w, int events)
{
	(void)w, (void)events;
	if (++taken == RESULTS)
		ev_break(its, EVBREAK_ALL);
}

static void beat(struct ev_loop *its, ev_timer *w, int events)
{
	(void)its, (void)w, (void)events;
	beats++;
}

static void on_wakeup(struct ev_loop *its, ev_async *w, int events)
{
	(void)its, (void)w, (void)events;
}

/* The next result is worked on when the last was taken. */
static void *produce(void *arg)
{
	unsigned sent = 0, seen = 0;

	while (sent < RESULTS) {
		usleep(5000);
		pthread_mutex_lock(&lock);
		seen = taken;
		if (seen == sent) {
			sent++;
			ev_feed_event(loop, &result, EV_CUSTOM);
			if (innocent)
				ev_async_send(loop, &wakeup);
		}
		pthread_mutex_unlock(&lock);
	}
	return arg;
}

int main(int argc, char **argv)
{
	ev_timer heart;
	pthread_t producer;

	innocent = argc > 1 && !strcmp(argv[1], "innocent");
	loop = ev_default_loop(0);
	d9_ev_loop_attach(loop);
	ev_set_loop_release_cb(loop, give_up_lock, take_lock);
	ev_init(&result, take_result);
	ev_async_init(&wakeup, on_wakeup);
	ev_async_start(loop, &wakeup);
	ev_timer_init(&heart, beat, 0.1, 0.1);
	ev_timer_start(loop, &heart);
	pthread_mutex_lock(&lock);
	if (pthread_create(&producer, NULL, produce, NULL))
		return 1;
	ev_run(loop, 0);
	pthread_mutex_unlock(&lock);

	pthread_join(producer, NULL);
	ev_loop_destroy(loop);
	printf("%u results, %u beats\n", taken, beats);
	return 0;
}
