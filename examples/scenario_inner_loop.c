/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A callback asks a slow peer by an event base of its own until the answer is there: nothing else of its
 * loop runs meanwhile.  The innocent twin waits for the answer in the loop that it runs in.
 *
 *	scenario_inner_loop [innocent]
 */
#include <stdio.h>
#include <string.h>

#include <event2/event.h>

#include <dial9/libevent.h>

static const struct timeval answer_time = { .tv_usec = 30000 };
static unsigned answers;

static void on_answer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	answers++;
}

static void ask_and_wait(evutil_socket_t fd, short what, void *arg)
{
	struct event_base *own = event_base_new();

	(void)fd, (void)what, (void)arg;
	d9_event_base_attach(own);
	event_base_once(own, -1, EV_TIMEOUT, on_answer, NULL, &answer_time);
	event_base_dispatch(own);
	event_base_free(own);
}

static void ask(evutil_socket_t fd, short what, void *base)
{
	(void)fd, (void)what;
	event_base_once(base, -1, EV_TIMEOUT, on_answer, NULL, &answer_time);
}

int main(int argc, char **argv)
{
	const struct timeval period = { .tv_usec = 100000 }, second = { .tv_sec = 1 };
	int innocent = argc > 1 && !strcmp(argv[1], "innocent");
	struct event_base *base = event_base_new();
	struct event *timer;

	d9_event_base_attach(base);
	timer = event_new(base, -1, EV_PERSIST, innocent ? ask : ask_and_wait, base);
	event_add(timer, &period);
	event_base_loopexit(base, &second);
	event_base_dispatch(base);
	event_free(timer);
	event_base_free(base);
	printf("%u answers\n", answers);
	return 0;
}
