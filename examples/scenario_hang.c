/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A web service whose handler waits for ever: here in pause(), elsewhere for a lock or for an answer that does not
 * come, or in a loop of its own that nobody ends ("loop").  The innocent twin answers.  All get one request and are
 * killed SECONDS later, as a supervisor would.
 *
 *	scenario_hang SECONDS [innocent|lock|loop]
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/http.h>

#include <dial9/libevent.h>
#include <dial9/span.h>

static struct sockaddr_in address = { .sin_family = AF_INET };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *what = "hang";
static unsigned seconds;

/* Until an answer comes, which does not. */
static void run_loop(void)
{
	struct event_base *inner = event_base_new();

	d9_event_base_attach(inner);
	event_base_loop(inner, EVLOOP_NO_EXIT_ON_EMPTY);
}

static void on_request(struct evhttp_request *request, void *arg)
{
	D9_SPAN_HERE(D9_SPAN_INFO, "http", "request");

	(void)arg;
	if (!strcmp(what, "hang"))
		pause();
	else if (!strcmp(what, "lock"))
		pthread_mutex_lock(&lock);
	else if (!strcmp(what, "loop"))
		run_loop();
	evhttp_send_reply(request, HTTP_OK, "OK", NULL);
}

/* Who asks, waits, and loses patience. */
static void *ask(void *arg)
{
	static const char request[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
	int client = socket(AF_INET, SOCK_STREAM, 0);

	if (client < 0 || connect(client, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    send(client, request, sizeof(request) - 1, 0) < 0)
		perror("request");
	sleep(seconds);
	kill(getpid(), SIGKILL);
	return arg;
}

int main(int argc, char **argv)
{
	struct event_base *base = event_base_new();
	struct evhttp *http = evhttp_new(base);
	struct evhttp_bound_socket *socket = evhttp_bind_socket_with_handle(http, "127.0.0.1", 0);
	socklen_t len = sizeof(address);
	pthread_t client;

	if (argc < 2 || !socket || getsockname(evhttp_bound_socket_get_fd(socket), (struct sockaddr *)&address, &len) < 0) {
		fprintf(stderr, "usage: %s SECONDS [innocent|lock|loop]\n", argv[0]);
		return 2;
	}
	seconds = (unsigned)atoi(argv[1]);
	if (argc > 2)
		what = argv[2];
	d9_event_base_attach(base);
	evhttp_set_gencb(http, on_request, NULL);
	pthread_mutex_lock(&lock);
	pthread_create(&client, NULL, ask, NULL);
	printf("asked\n");
	fflush(stdout);
	event_base_dispatch(base);
	return 0;
}
