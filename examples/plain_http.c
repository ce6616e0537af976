/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP server on libevent's evhttp that knows nothing of dial9, as yours does: recorded by `dial9 record`.  What it is
 * asked for under /primes it computes in the loop, so that all others wait.
 *
 *	plain_http
 *
 * The kernel chooses the port, which it prints.  Ends by SIGTERM.
 */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>

static void send_text(struct evhttp_request *request, struct evbuffer *text)
{
	evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type", "text/plain");
	evhttp_send_reply(request, HTTP_OK, "OK", text);
	evbuffer_free(text);
}

static void say_hello(struct evhttp_request *request, void *arg)
{
	struct evbuffer *text = evbuffer_new();

	(void)arg;
	evbuffer_add(text, "hello\n", 6);
	send_text(request, text);
}

/* For 10 ms or more. */
static void count_primes(struct evhttp_request *request, void *arg)
{
	struct evbuffer *text = evbuffer_new();
	unsigned primes = 0;

	(void)arg;
	for (unsigned n = 2; n < 20000; n++) {
		unsigned divisor = 2;

		while (n % divisor)
			divisor++;
		primes += divisor == n;
	}
	evbuffer_add_printf(text, "%u primes\n", primes);
	send_text(request, text);
}

static void on_term(evutil_socket_t sig, short what, void *base)
{
	(void)sig;
	(void)what;
	event_base_loopbreak(base);
}

int main(void)
{
	struct event_base *base = event_base_new();
	struct event *term = evsignal_new(base, SIGTERM, on_term, base);
	struct evhttp *http = evhttp_new(base);
	struct evhttp_bound_socket *listener;
	struct sockaddr_in address;
	socklen_t size = sizeof(address);

	evhttp_set_gencb(http, say_hello, NULL);
	evhttp_set_cb(http, "/primes", count_primes, NULL);
	listener = evhttp_bind_socket_with_handle(http, "127.0.0.1", 0);
	if (!listener || getsockname(evhttp_bound_socket_get_fd(listener), (struct sockaddr *)&address, &size))
		return 1;
	printf("listening on %d\n", ntohs(address.sin_port));
	fflush(stdout);
	event_add(term, NULL);
	event_base_dispatch(base);
	evhttp_free(http);
	event_free(term);
	event_base_free(base);
	return 0;
}
