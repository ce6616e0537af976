/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes wrong easily in libevent's upper half, and callbacks that leave their stack.
 *
 *	libevent_upper closes|again|coroutine [--out=FILE]
 */

#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <ucontext.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/dns.h>
#include <event2/dns_struct.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>

#include "counters.h"

#define ROUNDS	    5
#define STACK_BYTES (256 * 1024)

static const struct timeval a_second = { 1, 0 };
static struct event_base *base;
static int left;

static struct sockaddr_in loopback(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return address;
}

static uint16_t port_of(int fd)
{
	struct sockaddr_in address = { 0 };
	socklen_t len = sizeof(address);

	getsockname(fd, (struct sockaddr *)&address, &len);
	return ntohs(address.sin_port);
}

static void one_less(void)
{
	if (!--left)
		event_base_loopbreak(base);
}

/* ---- callbacks at the end of something ---- */

static void on_complete(struct evhttp_request *request, void *arg)
{
	(void)request, (void)arg;
	COUNT(on_complete, KIND_SPAN);
}

static void on_server_close(struct evhttp_connection *connection, void *arg)
{
	(void)connection, (void)arg;
	COUNT(on_server_close, KIND_SPAN);
	one_less();
}

static void on_client_close(struct evhttp_connection *connection, void *arg)
{
	(void)connection, (void)arg;
	COUNT(on_client_close, KIND_SPAN);
	one_less();
}

static void on_page(struct evhttp_request *request, void *arg)
{
	(void)arg;
	COUNT(on_page, KIND_SPAN);
	evhttp_request_set_on_complete_cb(request, on_complete, NULL);
	evhttp_connection_set_closecb(evhttp_request_get_connection(request), on_server_close, NULL);
	evhttp_send_reply(request, 200, "OK", NULL);
}

static void on_reply(struct evhttp_request *request, void *arg)
{
	(void)request, (void)arg;
	COUNT(on_reply, KIND_SPAN);
	one_less();
}

static void close_connections(void)
{
	struct evhttp *http = evhttp_new(base);
	struct evhttp_bound_socket *bound = evhttp_bind_socket_with_handle(http, "127.0.0.1", 0);
	uint16_t port = port_of(evhttp_bound_socket_get_fd(bound));

	evhttp_set_gencb(http, on_page, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		struct evhttp_connection *connection =
			evhttp_connection_base_new(base, NULL, "127.0.0.1", port);
		struct evhttp_request *request = evhttp_request_new(on_reply, NULL);

		evhttp_connection_set_closecb(connection, on_client_close, NULL);
		evhttp_add_header(evhttp_request_get_output_headers(request), "Connection", "close");
		evhttp_make_request(connection, request, EVHTTP_REQ_GET, "/");
		left = 3; /* the reply, and both ends */
		event_base_dispatch(base);
		evhttp_connection_free(connection);
	}
	evhttp_free(http);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address,
		      int len, void *arg)
{
	(void)listener, (void)address, (void)len, (void)arg;
	COUNT(on_accept, KIND_SPAN);
	close(fd);
}

static void on_accept_error(struct evconnlistener *listener, void *arg)
{
	(void)listener, (void)arg;
	COUNT(on_accept_error, KIND_SPAN);
	one_less();
}

/* A client comes while no descriptor is left: each round of the loop fails to take it. */
static void fail_to_accept(void)
{
	struct sockaddr_in address = loopback();
	struct evconnlistener *listener =
		evconnlistener_new_bind(base, on_accept, NULL, LEV_OPT_CLOSE_ON_FREE, 8,
					(struct sockaddr *)&address, sizeof(address));
	struct rlimit before, none = { 0, 0 };
	int client = socket(AF_INET, SOCK_STREAM, 0);

	evconnlistener_set_error_cb(listener, on_accept_error);
	address.sin_port = htons(port_of(evconnlistener_get_fd(listener)));
	if (connect(client, (struct sockaddr *)&address, sizeof(address)))
		complain("connect", 0, errno);
	getrlimit(RLIMIT_NOFILE, &before);
	none.rlim_max = before.rlim_max;
	setrlimit(RLIMIT_NOFILE, &none);
	left = ROUNDS;
	event_base_dispatch(base);
	setrlimit(RLIMIT_NOFILE, &before);
	evconnlistener_free(listener);
	close(client);
}

static void on_question(struct evdns_server_request *request, void *arg)
{
	(void)arg;
	COUNT(on_question, KIND_SPAN);
	for (int i = 0; i < request->nquestions; i++)
		evdns_server_request_add_ptr_reply(request, NULL, request->questions[i]->name,
						   "somebody.example", 60);
	evdns_server_request_respond(request, 0);
}

static void on_name(int result, char type, int count, int ttl, void *names, void *arg)
{
	(void)ttl, (void)arg;
	COUNT(on_name, KIND_SPAN);
	if (result || type != DNS_PTR || count != 1 || strcmp(*(char **)names, "somebody.example") != 0)
		complain("reverse resolution", 0, result);
	one_less();
}

static void resolve_addresses(void)
{
	struct sockaddr_in address = loopback();
	struct evdns_base *dns = evdns_base_new(base, 0);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	struct evdns_server_port *port;
	char nameserver[32];

	if (bind(fd, (struct sockaddr *)&address, sizeof(address)))
		complain("bind", 0, errno);
	port = evdns_add_server_port_with_base(base, fd, 0, on_question, NULL);
	evutil_snprintf(nameserver, sizeof(nameserver), "127.0.0.1:%d", port_of(fd));
	evdns_base_nameserver_ip_add(dns, nameserver);
	left = 2;
	evdns_base_resolve_reverse(dns, &address.sin_addr, 0, on_name, NULL);
	evdns_base_resolve_reverse_ipv6(dns, &in6addr_loopback, 0, on_name, NULL);
	event_base_loopexit(base, &a_second);
	event_base_dispatch(base);
	evdns_base_free(dns, 0);
	evdns_close_server_port(port);
	event_base_loop(base, EVLOOP_NONBLOCK);
	close(fd);
}

/* ---- objects at the same address ---- */

static void on_again(struct bufferevent *bev, void *arg)
{
	(void)arg;
	COUNT(on_again, KIND_SPAN);
	evbuffer_drain(bufferevent_get_input(bev), 1);
	one_less();
}

/* Each is freed before the next is made, which the allocator puts where it was. */
static void use_addresses_again(void)
{
	struct bufferevent *before = NULL;
	int same = 0;

	for (int i = 0; i < 2 * ROUNDS; i++) {
		struct bufferevent *bev;
		int fds[2];

		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) || write(fds[1], "x", 1) != 1)
			complain("socketpair", 0, errno);
		bev = bufferevent_socket_new(base, fds[0], BEV_OPT_CLOSE_ON_FREE);
		same += bev == before;
		before = bev;
		bufferevent_setcb(bev, on_again, NULL, NULL, NULL);
		bufferevent_enable(bev, EV_READ);
		left = 1;
		event_base_dispatch(base);
		bufferevent_free(bev);
		event_base_loop(base, EVLOOP_NONBLOCK); /* the last reference goes in there */
		close(fds[1]);
	}
	/* A sanitizer's allocator does not; this is not its test. */
	if (!same)
		exit(77);
	counter_of("on_again", (void *)on_again, KIND_SPAN_TASKS)->count = 2 * ROUNDS;
}

/* ---- coroutines ---- */

static ucontext_t outside, coroutine;
static struct event_base *inner;

static void on_inner(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	COUNT(on_inner, KIND_POLL);
}

static void run_inner(void)
{
	const struct timeval at_once = { 0, 0 };

	event_base_once(inner, -1, EV_TIMEOUT, on_inner, NULL, &at_once);
	event_base_loop(inner, EVLOOP_ONCE);
}

/* Goes on where it was left, a step for each callback, some with a loop on this stack. */
static void work_in_steps(void)
{
	for (;;) {
		run_inner();
		swapcontext(&coroutine, &outside);
		swapcontext(&coroutine, &outside);
	}
}

static void on_step(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	COUNT(on_step, KIND_POLL);
	swapcontext(&outside, &coroutine);
	if (--left)
		event_active(*(struct event **)arg, EV_READ, 1);
}

static void make_coroutine(void (*function)(void), char *stack)
{
	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = stack;
	coroutine.uc_stack.ss_size = STACK_BYTES;
	coroutine.uc_link = &outside;
	makecontext(&coroutine, function, 0);
}

/* Callbacks of a loop on the thread's stack leave it and come back. */
static void leave_the_stack(char *stack)
{
	struct event *step = NULL;

	step = event_new(base, -1, EV_PERSIST, on_step, &step);
	make_coroutine(work_in_steps, stack);
	left = 2 * ROUNDS;
	event_active(step, EV_READ, 1);
	event_base_dispatch(base);
	event_free(step);
}

/* Leaves in the middle: the thread's stack goes on, with a loop of its own, and comes back here. */
static void on_pause(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	COUNT(on_pause, KIND_POLL);
	swapcontext(&coroutine, &outside);
	if (--left)
		event_active(*(struct event **)arg, EV_READ, 1);
}

static void run_paused_loop(void)
{
	struct event *pausing = NULL;

	pausing = event_new(base, -1, EV_PERSIST, on_pause, &pausing);
	event_active(pausing, EV_READ, 1);
	event_base_dispatch(base);
	event_free(pausing);
}

/* The loop itself runs on a stack of its own. */
static void run_beside_the_stack(char *stack)
{
	left = ROUNDS;
	make_coroutine(run_paused_loop, stack);
	while (left) {
		swapcontext(&outside, &coroutine);
		if (left)
			run_inner();
	}
}

static void switch_stacks(void)
{
	char *stack = malloc(STACK_BYTES);

	inner = event_base_new();
	leave_the_stack(stack);
	run_beside_the_stack(stack);
	/* As before, on the stack that all threads have. */
	left = 1;
	run_inner();
	event_base_free(inner);
	free(stack);
}

int main(int argc, char **argv)
{
	const char *out = argc > 2 && !strncmp(argv[2], "--out=", 6) ? argv[2] + 6 : NULL;

	if (argc < 2)
		return 2;
	base = event_base_new();
	if (!strcmp(argv[1], "closes")) {
		close_connections();
		fail_to_accept();
		resolve_addresses();
	} else if (!strcmp(argv[1], "again")) {
		use_addresses_again();
	} else {
		switch_stacks();
	}
	event_base_free(base);
	return counters_write(out);
}
