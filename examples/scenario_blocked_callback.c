/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A callback asks another service and sleeps in poll() until the answer comes, 30 ms later: its loop
 * sleeps with it.  The innocent twin lets the loop wait for the answer.
 *
 *	scenario_blocked_callback [innocent]
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include <dial9/libevent.h>

#define QUESTIONS 10

static struct event_base *base;
static int upstream[2];
static int asked, answered;

/* The other service: answers each question after a while. */
static void *serve(void *arg)
{
	char question;

	while (read(upstream[1], &question, 1) == 1) {
		usleep(30000);
		if (write(upstream[1], &question, 1) != 1)
			break;
	}
	return arg;
}

static void take_answer(evutil_socket_t fd, short what, void *arg)
{
	char answer;

	(void)what, (void)arg;
	if (read(fd, &answer, 1) == 1)
		answered++;
	if (answered == QUESTIONS)
		event_base_loopbreak(base);
}

static void ask(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	if (asked < QUESTIONS && write(upstream[0], "?", 1) == 1)
		asked++;
}

static void ask_and_wait(evutil_socket_t fd, short what, void *arg)
{
	struct pollfd answer = { .fd = upstream[0], .events = POLLIN };

	ask(fd, what, arg);
	if (poll(&answer, 1, -1) == 1)
		take_answer(upstream[0], what, arg);
}

int main(int argc, char **argv)
{
	const struct timeval interval = { .tv_usec = 60000 };
	int innocent = argc > 1 && !strcmp(argv[1], "innocent");
	struct event *asks, *answers;
	pthread_t server;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, upstream) < 0) {
		perror("socketpair");
		return 1;
	}
	pthread_create(&server, NULL, serve, NULL);
	base = event_base_new();
	d9_event_base_attach(base);
	asks = event_new(base, -1, EV_PERSIST, innocent ? ask : ask_and_wait, NULL);
	answers = event_new(base, upstream[0], EV_READ | EV_PERSIST, take_answer, NULL);
	event_add(asks, &interval);
	if (innocent)
		event_add(answers, NULL);
	event_base_dispatch(base);

	event_free(asks);
	event_free(answers);
	event_base_free(base);
	shutdown(upstream[0], SHUT_RDWR);
	pthread_join(server, NULL);
	printf("%d answers\n", answered);
	return 0;
}
