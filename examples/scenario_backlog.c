/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three hundred connections that all have something at the same moment.  No handler takes long, but
 * the last waits for all others.  In the innocent twin the messages come one after the
 * other, 3 ms apart: a machine with half a dozen other busy programs keeps up with that, too.
 *
 *	scenario_backlog [innocent]
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include <dial9/libevent.h>

#define CONNECTIONS 300
#define ROUNDS	    5
#define INNOCENT_US 3000

static int ends[CONNECTIONS][2];
static unsigned messages;

/* Of CPU time, so that a busy machine does not make it less. */
static void compute(long us)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000 + (now.tv_nsec - begin.tv_nsec) / 1000 < us);
}

static void on_message(evutil_socket_t fd, short what, void *base)
{
	char message;

	(void)what;
	if (read(fd, &message, 1) != 1)
		return;
	compute(150);
	if (++messages == CONNECTIONS * ROUNDS)
		event_base_loopbreak(base);
}

static void *send_messages(void *arg)
{
	const int *innocent = arg;

	for (int i = 0; i < ROUNDS; i++) {
		usleep(100000);
		for (int j = 0; j < CONNECTIONS; j++) {
			if (write(ends[j][1], "!", 1) != 1)
				perror("write");
			if (*innocent)
				usleep(INNOCENT_US);
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int innocent = argc > 1 && !strcmp(argv[1], "innocent");
	struct event_base *base = event_base_new();
	struct event *events[CONNECTIONS];
	pthread_t sender;

	d9_event_base_attach(base);
	for (int i = 0; i < CONNECTIONS; i++) {
		if (pipe(ends[i]) < 0) {
			perror("pipe");
			return 1;
		}
		events[i] = event_new(base, ends[i][0], EV_READ | EV_PERSIST, on_message, base);
		event_add(events[i], NULL);
	}
	pthread_create(&sender, NULL, send_messages, &innocent);
	event_base_dispatch(base);

	pthread_join(sender, NULL);
	for (int i = 0; i < CONNECTIONS; i++)
		event_free(events[i]);
	event_base_free(base);
	printf("%u messages\n", messages);
	return 0;
}
