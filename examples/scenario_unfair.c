/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection whose handler takes a message and, while there are more, makes itself ready again
 * at once: nothing else has a turn until all are done.  The innocent twin takes a message and goes
 * back to the loop.
 *
 *	scenario_unfair [innocent]
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>

#include <dial9/libevent.h>

#define BURSTS	 8
#define MESSAGES 300

static int innocent, ends[2];
static unsigned messages, beats;

/* Of CPU time, so that a busy machine does not make it less. */
static void compute(long us)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000 + (now.tv_nsec - begin.tv_nsec) / 1000 < us);
}

static void on_message(evutil_socket_t fd, short what, void *event)
{
	char message;
	int more;

	(void)what;
	if (read(fd, &message, 1) == 1) {
		messages++;
		compute(100);
	}
	if (!innocent && ioctl(fd, FIONREAD, &more) == 0 && more > 0)
		event_active(event, EV_READ, 0);
}

static void beat(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	beats++;
}

/* Sends the messages of a burst at once. */
static void *send_bursts(void *arg)
{
	char burst[MESSAGES] = { 0 };

	for (int i = 0; i < BURSTS; i++) {
		usleep(100000);
		if (write(ends[1], burst, sizeof(burst)) != sizeof(burst))
			perror("write");
	}
	return arg;
}

int main(int argc, char **argv)
{
	const struct timeval period = { .tv_usec = 20000 }, second = { .tv_sec = 1 };
	struct event_base *base = event_base_new();
	struct event *connection, *timer;
	pthread_t sender;

	innocent = argc > 1 && !strcmp(argv[1], "innocent");
	d9_event_base_attach(base);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0) {
		perror("socketpair");
		return 1;
	}
	connection = event_new(base, ends[0], EV_READ | EV_PERSIST, on_message, event_self_cbarg());
	timer = event_new(base, -1, EV_PERSIST, beat, NULL);
	event_add(connection, NULL);
	event_add(timer, &period);
	event_base_loopexit(base, &second);
	pthread_create(&sender, NULL, send_bursts, NULL);
	event_base_dispatch(base);

	pthread_join(sender, NULL);
	event_free(connection);
	event_free(timer);
	event_base_free(base);
	printf("%u messages, %u beats\n", messages, beats);
	return 0;
}
