/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a service does all day: clients connect, ask, and go; the server computes each answer, and
 * rebuilds an index in small steps beside.  Server and clients have a thread and a loop each, two
 * lanes of the trace.
 *
 *	DIAL9_TRACE_DIR=traces realistic_workload [REQUESTS]	of each of the five clients
 *	dial9 report traces
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>

#include <dial9/libevent.h>

#define CLIENTS	    5
#define INDEX_STEPS 30

static struct sockaddr_in address;
static unsigned served, hung_up, index_steps, answers, expected;

static void compute(uint64_t rounds)
{
	volatile uint64_t sum = 0;

	for (uint64_t i = 0; i < rounds; i++)
		sum += i * i;
	(void)sum;
}

/* ---- the server ---- */

static void on_request(struct bufferevent *peer, void *arg)
{
	struct evbuffer *input = bufferevent_get_input(peer);
	size_t len = evbuffer_get_length(input);

	(void)arg;
	compute(10000);
	evbuffer_drain(input, len);
	evbuffer_add_printf(bufferevent_get_output(peer), "processed %zu bytes\n", len);
	served++;
}

static void end_if_done(struct event_base *base)
{
	if (hung_up == expected && index_steps == INDEX_STEPS)
		event_base_loopexit(base, NULL);
}

/* The client hangs up when it has its answer. */
static void on_hang_up(struct bufferevent *peer, short what, void *arg)
{
	struct event_base *base = bufferevent_get_base(peer);

	(void)what, (void)arg;
	bufferevent_free(peer);
	hung_up++;
	end_if_done(base);
}

static void on_connection(struct evconnlistener *listener, evutil_socket_t fd,
			  struct sockaddr *from, int len, void *arg)
{
	struct bufferevent *peer = bufferevent_socket_new(evconnlistener_get_base(listener), fd,
							  BEV_OPT_CLOSE_ON_FREE);

	(void)from, (void)len, (void)arg;
	bufferevent_setcb(peer, on_request, NULL, on_hang_up, NULL);
	bufferevent_enable(peer, EV_READ | EV_WRITE);
}

static void rebuild_index(evutil_socket_t fd, short what, void *timer)
{
	(void)fd, (void)what;
	compute(50000);
	if (++index_steps < INDEX_STEPS)
		return;
	event_del(timer);
	end_if_done(event_get_base(timer));
}

static void *serve(void *arg)
{
	const struct timeval every = { 0, 2000 };
	struct evconnlistener *listener = arg;
	struct event_base *base = evconnlistener_get_base(listener);
	struct event *timer = event_new(base, -1, EV_PERSIST, rebuild_index, event_self_cbarg());

	event_add(timer, &every);
	event_base_dispatch(base);
	event_free(timer);
	return NULL;
}

/* ---- the clients ---- */

struct client {
	struct event *next; /* asks the next question */
	struct bufferevent *connection;
	unsigned left;
};

static void on_answer(struct bufferevent *connection, void *arg)
{
	const struct timeval pause = { 0, 5000 };
	struct client *client = arg;

	answers++;
	bufferevent_free(connection);
	if (--client->left)
		event_add(client->next, &pause);
}

static void on_failure(struct bufferevent *connection, short what, void *arg)
{
	(void)connection, (void)arg;
	if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) {
		fputs("the server is gone\n", stderr);
		exit(1);
	}
}

static void ask(evutil_socket_t fd, short what, void *arg)
{
	struct client *client = arg;

	(void)fd, (void)what;
	client->connection =
		bufferevent_socket_new(event_get_base(client->next), -1, BEV_OPT_CLOSE_ON_FREE);
	bufferevent_setcb(client->connection, on_answer, NULL, on_failure, client);
	bufferevent_enable(client->connection, EV_READ | EV_WRITE);
	bufferevent_write(client->connection, "a question", 10);
	bufferevent_socket_connect(client->connection, (struct sockaddr *)&address,
				   sizeof(address));
}

static void run_clients(struct event_base *base, unsigned requests)
{
	struct client clients[CLIENTS] = { 0 };

	for (int i = 0; i < CLIENTS; i++) {
		clients[i].left = requests;
		clients[i].next = evtimer_new(base, ask, &clients[i]);
		event_active(clients[i].next, EV_TIMEOUT, 1);
	}
	event_base_dispatch(base); /* until none has anything left to ask */
	for (int i = 0; i < CLIENTS; i++)
		event_free(clients[i].next);
}

/* ---- both ---- */

static struct evconnlistener *listen_on(struct event_base *base)
{
	socklen_t len = sizeof(address);
	struct evconnlistener *listener;

	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK); /* and a port that the kernel chooses */
	listener = evconnlistener_new_bind(base, on_connection, NULL, LEV_OPT_CLOSE_ON_FREE, -1,
					   (struct sockaddr *)&address, sizeof(address));
	if (listener)
		getsockname(evconnlistener_get_fd(listener), (struct sockaddr *)&address, &len);
	return listener;
}

int main(int argc, char **argv)
{
	unsigned requests = argc > 1 ? (unsigned)atoi(argv[1]) : 100;
	struct event_base *server = event_base_new(), *clients = event_base_new();
	struct evconnlistener *listener = listen_on(server);
	pthread_t thread;

	d9_event_base_attach_named(server, "server");
	d9_event_base_attach_named(clients, "clients");
	expected = requests * CLIENTS;
	if (!requests || !listener || pthread_create(&thread, NULL, serve, listener)) {
		fputs("cannot start the server\n", stderr);
		return 1;
	}
	run_clients(clients, requests);
	pthread_join(thread, NULL);
	evconnlistener_free(listener);
	event_base_free(server);
	event_base_free(clients);
	printf("%u requests served, %u answers, %u steps of the index\n", served, answers,
	       index_steps);
	return 0;
}
