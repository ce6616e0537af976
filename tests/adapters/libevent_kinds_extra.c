/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks of libevent's upper half: bufferevents, listeners, HTTP and DNS. */

#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/dns.h>
#include <event2/dns_struct.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <event2/util.h>

#include "libevent_kinds.h"

static const struct timeval a_second = { 1, 0 };

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

	if (getsockname(fd, (struct sockaddr *)&address, &len))
		complain("getsockname", 0, errno);
	return ntohs(address.sin_port);
}

/* ---- bufferevents ---- */

static int bytes_to_echo;

static void on_pair_read(struct bufferevent *bev, void *ctx)
{
	char bytes[64];
	size_t n = bufferevent_read(bev, bytes, sizeof(bytes));

	COUNT_TIMING(on_pair_read, KIND_SPAN);
	bytes_to_echo -= (int)n;
	if (bytes_to_echo > 0)
		bufferevent_write(ctx, bytes, n);
}

static void on_pair_write(struct bufferevent *bev, void *ctx)
{
	(void)bev;
	(void)ctx;
	COUNT_TIMING(on_pair_write, KIND_SPAN);
}

static void on_socket_read(struct bufferevent *bev, void *ctx)
{
	(void)ctx;
	COUNT_TIMING(on_socket_read, KIND_SPAN);
	bufferevent_write_buffer(bev, bufferevent_get_input(bev));
}

static void on_socket_write(struct bufferevent *bev, void *ctx)
{
	(void)bev;
	(void)ctx;
	COUNT_TIMING(on_socket_write, KIND_SPAN);
}

static void on_socket_event(struct bufferevent *bev, short what, void *ctx)
{
	COUNT(on_socket_event, KIND_SPAN);
	log_line("socket event %d %d", what & BEV_EVENT_EOF, ctx == &bytes_to_echo);
	bufferevent_disable(bev, EV_READ | EV_WRITE);
}

static void check_bufferevent_getter(struct bufferevent *bev)
{
#if LIBEVENT_VERSION_NUMBER >= 0x02010000
	bufferevent_data_cb on_read = NULL, on_write = NULL;
	bufferevent_event_cb on_event = NULL;
	void *arg = NULL;

	bufferevent_getcb(bev, &on_read, &on_write, &on_event, &arg);
	if (on_read != on_socket_read || on_write != on_socket_write ||
	    on_event != on_socket_event || arg != &bytes_to_echo)
		complain("bufferevent_getcb", 1, 0);
	bufferevent_getcb(bev, NULL, NULL, NULL, NULL);
#else
	(void)bev;
#endif
}

static void run_socket(struct run *run, int options)
{
	struct bufferevent *bev;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair))
		complain("socketpair", 0, errno);
	bev = bufferevent_socket_new(run->base, pair[0], options | BEV_OPT_CLOSE_ON_FREE);
	bufferevent_setcb(bev, on_socket_read, on_socket_write, on_socket_event, &bytes_to_echo);
	check_bufferevent_getter(bev);
	bufferevent_enable(bev, EV_READ | EV_WRITE);
	for (int i = 0; i < 3; i++) {
		char byte = 'x';

		if (write(pair[1], &byte, 1) != 1)
			complain("write", 1, errno);
		while (read(pair[1], &byte, 1) != 1)
			event_base_loop(run->base, EVLOOP_ONCE);
	}
	close(pair[1]);
	event_base_dispatch(run->base);
	bufferevent_free(bev);
	event_base_loop(run->base, EVLOOP_NONBLOCK);
}

/* A filter compares the callback of what lies below with its own: that must stay as it is. */
static void on_filter_read(struct bufferevent *bev, void *ctx)
{
	(void)ctx;
	COUNT_TIMING(on_filter_read, KIND_SPAN);
	bufferevent_write_buffer(bev, bufferevent_get_input(bev));
}

static void run_filter(struct run *run)
{
	struct bufferevent *below, *bev;
	char byte = 'x';
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair))
		complain("socketpair", 0, errno);
	below = bufferevent_socket_new(run->base, pair[0], BEV_OPT_CLOSE_ON_FREE);
	bev = bufferevent_filter_new(below, NULL, NULL, BEV_OPT_CLOSE_ON_FREE, NULL, NULL);
	bufferevent_setcb(bev, on_filter_read, NULL, on_socket_event, &bytes_to_echo);
	bufferevent_enable(bev, EV_READ | EV_WRITE);
	for (int i = 0; i < 3; i++) {
		if (write(pair[1], &byte, 1) != 1)
			complain("write", 1, errno);
		while (read(pair[1], &byte, 1) != 1)
			event_base_loop(run->base, EVLOOP_ONCE);
	}
	close(pair[1]);
	event_base_dispatch(run->base);
	bufferevent_free(bev);
	event_base_loop(run->base, EVLOOP_NONBLOCK);
}

void stage_bufferevents(struct run *run)
{
	struct bufferevent *pair[2];
	int defer = BEV_OPT_DEFER_CALLBACKS;

	if (run->threads)
		defer |= BEV_OPT_THREADSAFE;
	bytes_to_echo = 200;
	bufferevent_pair_new(run->base, defer, pair);
	for (int i = 0; i < 2; i++) {
		bufferevent_setcb(pair[i], on_pair_read, on_pair_write, NULL, pair[i]);
		bufferevent_enable(pair[i], EV_READ | EV_WRITE);
	}
	bufferevent_write(pair[0], "ten bytes.", 10);
	event_base_dispatch(run->base);
	bufferevent_free(pair[0]);
	bufferevent_free(pair[1]);
	event_base_loop(run->base, EVLOOP_NONBLOCK);

	run_socket(run, 0);
	run_socket(run, defer);
	run_filter(run);
	/* Freed and made again at the same address, with an event of libevent's inside. */
	for (int i = 0; i < 4; i++)
		run_socket(run, 0);
}

/* ---- listeners ---- */

static int accepts_left;

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address,
		      int len, void *arg)
{
	COUNT(on_accept, KIND_SPAN);
	log_line("accept %d %d %d", address->sa_family, len, arg == &accepts_left);
	close(fd);
	if (!--accepts_left)
		evconnlistener_disable(listener);
}

static void on_late_accept(struct evconnlistener *listener, evutil_socket_t fd,
			   struct sockaddr *address, int len, void *arg)
{
	COUNT(on_late_accept, KIND_SPAN);
	on_accept(listener, fd, address, len, arg);
	/* on_accept was called by us, not by libevent. */
	counter_of("on_accept", (void *)on_accept, KIND_SPAN)->count--;
}

static void connect_to(uint16_t port, int n)
{
	struct sockaddr_in address = loopback();

	address.sin_port = htons(port);
	for (int i = 0; i < n; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		if (connect(fd, (struct sockaddr *)&address, sizeof(address)))
			complain("connect", 0, errno);
		close(fd);
	}
}

void stage_listener(struct run *run)
{
	struct sockaddr_in address = loopback();
	struct evconnlistener *listener;

	listener =
		evconnlistener_new_bind(run->base, on_accept, &accepts_left, LEV_OPT_CLOSE_ON_FREE,
					8, (struct sockaddr *)&address, sizeof(address));
	for (int round = 0; round < 2; round++) {
		accepts_left = 3;
		connect_to(port_of(evconnlistener_get_fd(listener)), 3);
		evconnlistener_enable(listener);
		event_base_dispatch(run->base);
		evconnlistener_set_cb(listener, on_late_accept, &accepts_left);
	}
	evconnlistener_free(listener);
}

/* ---- HTTP ---- */

static int replies_left;

static void on_page(struct evhttp_request *request, void *arg)
{
	struct evbuffer *body = evbuffer_new();

	COUNT(on_page, KIND_SPAN);
	log_line("page %s %d", evhttp_request_get_uri(request), arg == &replies_left);
	evbuffer_add(body, "hello", 5);
	evhttp_send_reply(request, 200, "OK", body);
	evbuffer_free(body);
}

static void on_any_page(struct evhttp_request *request, void *arg)
{
	COUNT(on_any_page, KIND_SPAN);
	log_line("any page %s %d", evhttp_request_get_uri(request), arg == &accepts_left);
	evhttp_send_error(request, 404, "not here");
}

static void on_chunk(struct evhttp_request *request, void *arg)
{
	(void)arg;
	COUNT(on_chunk, KIND_SPAN);
	log_line("chunk %zu", evbuffer_get_length(evhttp_request_get_input_buffer(request)));
}

static void on_reply(struct evhttp_request *request, void *arg)
{
	COUNT(on_reply, KIND_SPAN);
	log_line("reply %d", request ? evhttp_request_get_response_code(request) : 0);
	if (!--replies_left)
		event_base_loopbreak(arg);
}

#if LIBEVENT_VERSION_NUMBER >= 0x02010000
static struct bufferevent *on_connection(struct event_base *base, void *arg)
{
	COUNT(on_connection, KIND_SPAN);
	log_line("connection %d", arg == &accepts_left);
	return bufferevent_socket_new(base, -1, 0);
}

static int on_header(struct evhttp_request *request, void *arg)
{
	(void)arg;
	COUNT(on_header, KIND_SPAN);
	log_line("header %d", evhttp_request_get_response_code(request));
	return 0;
}

static void on_error(enum evhttp_request_error error, void *arg)
{
	(void)arg;
	COUNT(on_error, KIND_SPAN);
	log_line("error %d", error);
}

/* Says no: an error and an empty reply follow. */
static int on_unwanted_header(struct evhttp_request *request, void *arg)
{
	(void)request;
	(void)arg;
	COUNT(on_unwanted_header, KIND_SPAN);
	return -1;
}
#endif

static void ask_for(struct run *run, struct evhttp_connection *connection, const char *uri)
{
	struct evhttp_request *request = evhttp_request_new(on_reply, run->base);
#if LIBEVENT_VERSION_NUMBER >= 0x02010000
	bool unwanted = strcmp(uri, "/unwanted") == 0;

	evhttp_request_set_header_cb(request, unwanted ? on_unwanted_header : on_header);
	evhttp_request_set_error_cb(request, on_error);
#endif
	evhttp_request_set_chunked_cb(request, on_chunk);
	evhttp_add_header(evhttp_request_get_output_headers(request), "Host", "localhost");
	evhttp_make_request(connection, request, EVHTTP_REQ_GET, uri);
}

void stage_http(struct run *run)
{
	struct evhttp *http = evhttp_new(run->base);
	struct evhttp_bound_socket *bound = evhttp_bind_socket_with_handle(http, "127.0.0.1", 0);
	struct evhttp_connection *connection;

	evhttp_set_cb(http, "/page", on_page, &replies_left);
	evhttp_set_gencb(http, on_any_page, &accepts_left);
#if LIBEVENT_VERSION_NUMBER >= 0x02010000
	evhttp_set_bevcb(http, on_connection, &accepts_left);
#endif
	connection = evhttp_connection_base_new(run->base, NULL, "127.0.0.1",
						port_of(evhttp_bound_socket_get_fd(bound)));
	replies_left = 7;
	for (int i = 0; i < 3; i++) {
		ask_for(run, connection, "/page");
		ask_for(run, connection, "/other");
	}
	ask_for(run, connection, "/unwanted");
	event_base_dispatch(run->base);
	evhttp_connection_free(connection);
	evhttp_free(http);
	event_base_loop(run->base, EVLOOP_NONBLOCK);
}

/* ---- DNS ---- */

static int answers_left;

static void on_question(struct evdns_server_request *request, void *arg)
{
	const ev_uint32_t address = htonl(INADDR_LOOPBACK);

	COUNT(on_question, KIND_SPAN);
	log_line("question %d", arg == &answers_left);
	for (int i = 0; i < request->nquestions; i++)
		evdns_server_request_add_a_reply(request, request->questions[i]->name, 1, &address,
						 60);
	evdns_server_request_respond(request, 0);
}

static void on_answer(int result, char type, int count, int ttl, void *addresses, void *arg)
{
	COUNT(on_answer, KIND_SPAN);
	log_line("answer %d %d %d %d %d", result, type, count, ttl, addresses != NULL);
	if (!--answers_left)
		event_base_loopbreak(arg);
}

static void on_addrinfo(int result, struct evutil_addrinfo *info, void *arg)
{
	COUNT(on_addrinfo, KIND_SPAN);
	log_line("addrinfo %d %d", result, info != NULL);
	if (info)
		evutil_freeaddrinfo(info);
	if (!--answers_left)
		event_base_loopbreak(arg);
}

static void ask_dns(struct run *run, struct evdns_base *dns)
{
	const struct evutil_addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };

	answers_left = 3;
	evdns_base_resolve_ipv4(dns, "one.example", 0, on_answer, run->base);
	evdns_base_resolve_ipv4(dns, "two.example", 0, on_answer, run->base);
	evdns_getaddrinfo(dns, "three.example", "80", &hints, on_addrinfo, run->base);
	event_base_loopexit(run->base, &a_second);
	event_base_dispatch(run->base);
}

void stage_dns(struct run *run)
{
	struct sockaddr_in address = loopback();
	struct evdns_server_port *port;
	struct evdns_base *dns;
	char nameserver[32];
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	if (bind(fd, (struct sockaddr *)&address, sizeof(address)))
		complain("bind", 0, errno);
	port = evdns_add_server_port_with_base(run->base, fd, 0, on_question, &answers_left);
	dns = evdns_base_new(run->base, 0);
	/* Names in random case would differ between runs. */
	evdns_base_set_option(dns, "randomize-case:", "0");
	evutil_snprintf(nameserver, sizeof(nameserver), "127.0.0.1:%d", port_of(fd));
	evdns_base_nameserver_ip_add(dns, nameserver);
	ask_dns(run, dns);
	evdns_base_free(dns, 0);
	evdns_close_server_port(port);
	event_base_loop(run->base, EVLOOP_NONBLOCK);
	close(fd);
}
