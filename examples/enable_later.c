/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attached but not recording: hooks cost next to nothing until somebody asks.  Here SIGUSR1 switches
 * recording on and off again; the timer "heartbeat" runs all the time and is recorded in between.
 *
 *	enable_later [MILLISECONDS]
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <event2/event.h>

#include <dial9/dial9.h>
#include <dial9/libevent.h>

static struct event_base *base;
static unsigned long beats, beats_recorded;
static int recording;

static void heartbeat(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	beats++;
	if (recording)
		beats_recorded++;
}

static void toggle(evutil_socket_t sig, short what, void *arg)
{
	(void)sig, (void)what, (void)arg;
	recording = !recording;
	if (recording)
		d9_enable();
	else
		d9_disable();
}

static void stop(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	event_base_loopbreak(base);
}

int main(int argc, char **argv)
{
	const struct timeval every_millisecond = { .tv_usec = 1000 };
	long ms = argc > 1 ? atol(argv[1]) : 1000;
	const struct timeval end = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
	struct d9_recorder *recorder = NULL;
	struct d9_options *options;
	struct event *timer, *switcher;

	/* Before and after the loop it is nothing to end by. */
	signal(SIGUSR1, SIG_IGN);
	if (d9_options_new(&options) == 0) {
		d9_options_set_enabled(options, false);
		d9_recorder_start(options, &recorder);
		d9_options_free(options);
	}
	base = event_base_new();
	d9_event_base_attach(base);

	timer = event_new(base, -1, EV_PERSIST, heartbeat, NULL);
	event_add(timer, &every_millisecond);
	switcher = evsignal_new(base, SIGUSR1, toggle, NULL);
	event_add(switcher, NULL);
	event_base_once(base, -1, EV_TIMEOUT, stop, NULL, &end);
	event_base_dispatch(base);

	event_free(switcher);
	event_free(timer);
	event_base_free(base);
	d9_recorder_stop(recorder, 1000);
	printf("%lu beats, %lu while recording\n", beats, beats_recorded);
	return 0;
}
