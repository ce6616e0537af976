/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP service with events of its own, and one handler that blocks the loop: everything that
 * waits behind /report waits for tens of milliseconds, and `dial9 report` says whose fault it is.
 *
 *	http_service PORT
 *
 * PORT 0 lets the kernel choose.  Ends by SIGINT or SIGTERM and prints what it counted.
 */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>

#include <dial9/dial9.h>
#include <dial9/libevent.h>
#include <dial9/span.h>

/* One event per request: what was asked, how much was sent, how long it took. */
static const struct d9_field request_fields[] = {
	{ "path", D9_FIELD_POOLED_STRING, NULL, NULL },
	{ "status", D9_FIELD_U16, NULL, NULL },
	{ "sent", D9_FIELD_VARINT, "bytes", NULL },
	{ "took", D9_FIELD_VARINT, "ns", "gauge" },
	{ "note", D9_FIELD_STRING | D9_FIELD_OPTIONAL, NULL, NULL },
};
static struct d9_event_type request_event = D9_EVENT_TYPE("HttpRequest", request_fields);
static struct d9_name path_hello, path_report;

static unsigned long hellos, reports;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void reply(struct evhttp_request *request, struct d9_name path, const char *text,
		  uint64_t began_ns)
{
	struct evbuffer *body = evhttp_request_get_output_buffer(request);
	int sent = evbuffer_add_printf(body, "%s\n", text);

	evhttp_send_reply(request, HTTP_OK, "OK", NULL);
	D9_EMIT(&request_event, path, HTTP_OK, sent, now_ns() - began_ns, d9_absent());
}

static void hello(struct evhttp_request *request, void *arg)
{
	uint64_t began_ns = now_ns();

	(void)arg;
	hellos++;
	reply(request, path_hello, "hello", began_ns);
}

/* The mistake that this example is about: forty milliseconds of work on the loop's thread. */
static void render_report(struct evhttp_request *request, void *arg)
{
	uint64_t began_ns = now_ns();
	volatile double sum = 0;
	D9_SPAN_HERE(D9_SPAN_INFO, "http", "report");

	(void)arg;
	reports++;
	while (now_ns() - began_ns < 40000000)
		for (int i = 1; i < 1000; i++)
			sum += 1.0 / i;
	(void)sum;
	reply(request, path_report, "a report", began_ns);
}

static void stop(evutil_socket_t sig, short what, void *base)
{
	(void)sig, (void)what;
	event_base_loopbreak(base);
}

static int listening_port(struct evhttp_bound_socket *socket)
{
	struct sockaddr_in address;
	socklen_t len = sizeof(address);

	if (getsockname(evhttp_bound_socket_get_fd(socket), (struct sockaddr *)&address, &len) < 0)
		return -1;
	return ntohs(address.sin_port);
}

int main(int argc, char **argv)
{
	struct event_base *base = event_base_new();
	struct evhttp *http = evhttp_new(base);
	struct evhttp_bound_socket *socket;
	struct event *interrupt = evsignal_new(base, SIGINT, stop, base);
	struct event *terminate = evsignal_new(base, SIGTERM, stop, base);

	if (argc != 2) {
		fprintf(stderr, "usage: %s PORT\n", argv[0]);
		return 2;
	}
	d9_event_base_attach_named(base, "http");
	path_hello = d9_name_intern("/hello");
	path_report = d9_name_intern("/report");

	event_add(interrupt, NULL);
	event_add(terminate, NULL);
	evhttp_set_cb(http, "/hello", hello, NULL);
	evhttp_set_cb(http, "/report", render_report, NULL);
	socket = evhttp_bind_socket_with_handle(http, "127.0.0.1", (uint16_t)atoi(argv[1]));
	if (!socket) {
		perror("bind");
		return 1;
	}
	printf("listening on %d\n", listening_port(socket));
	fflush(stdout);

	event_base_dispatch(base);

	printf("%lu hellos\n%lu reports\n", hellos, reports);
	evhttp_free(http);
	event_free(interrupt);
	event_free(terminate);
	event_base_free(base);
	return 0;
}
