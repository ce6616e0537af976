/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that waits for one message, and looks for it every 2 ms.  The innocent twin lets the loop
 * wait.
 *
 *	scenario_idle_wakes [innocent]
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include <dial9/libevent.h>

static struct event_base *base;
static unsigned looks;
static int ends[2];

static void look(evutil_socket_t fd, short what, void *arg)
{
	char message;

	(void)fd, (void)what, (void)arg;
	looks++;
	if (read(ends[0], &message, 1) == 1)
		event_base_loopbreak(base);
}

/* The message comes after a second. */
static void *send_message(void *arg)
{
	sleep(1);
	if (write(ends[1], "!", 1) != 1)
		perror("write");
	return arg;
}

int main(int argc, char **argv)
{
	const struct timeval interval = { .tv_usec = 2000 };
	int innocent = argc > 1 && !strcmp(argv[1], "innocent");
	struct event *event;
	pthread_t sender;

	if (pipe(ends) < 0) {
		perror("pipe");
		return 1;
	}
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	base = event_base_new();
	d9_event_base_attach(base);
	event = innocent ? event_new(base, ends[0], EV_READ | EV_PERSIST, look, NULL)
			 : event_new(base, -1, EV_PERSIST, look, NULL);
	event_add(event, innocent ? NULL : &interval);
	pthread_create(&sender, NULL, send_message, NULL);
	event_base_dispatch(base);

	pthread_join(sender, NULL);
	event_free(event);
	event_base_free(base);
	printf("looked %u times\n", looks);
	return 0;
}
