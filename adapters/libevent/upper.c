/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libevent's upper half: bufferevents, listeners, HTTP and DNS.  The user's callbacks run inside
 * polls of libevent's own events, as spans.  What libevent registers meanwhile carries the site of
 * the program's call.
 */

#include "config.h"

#include "libevent/pools.h"
#include "libevent/thread.h"

/* libevent's, or none. */
static inline bool is_own(void *callback)
{
	return !callback || d9__is_callback_of_libevent(callback);
}

/*
 * A pointer into libevent stays as it is: filters and TLS compare the callback of what they wrap
 * with their own function.  Of a static libevent some might go unnoticed, so no callback for
 * a bufferevent's events gets a span there.
 */
static d9__pair_fn span_of_pair(d9__pair_fn callback)
{
	if (is_own((void *)callback))
		return callback;
	return d9__libevent_pool_wrap_pair(callback, d9__libevent_thread()->site, D9__STUB_SPAN);
}

static d9__bufferevent_event_fn span_of_bufferevent_event(d9__bufferevent_event_fn callback)
{
	if (d9__libevent_is_static() || is_own((void *)callback))
		return callback;
	return d9__libevent_pool_wrap_bufferevent_event(callback, d9__libevent_thread()->site);
}

static d9__listener_fn span_of_listener(d9__listener_fn callback)
{
	if (is_own((void *)callback))
		return callback;
	return d9__libevent_pool_wrap_listener(callback, d9__libevent_thread()->site);
}

static d9__dns_fn span_of_dns(d9__dns_fn callback)
{
	if (is_own((void *)callback))
		return callback;
	return d9__libevent_pool_wrap_dns(callback, d9__libevent_thread()->site);
}

static d9__addrinfo_fn span_of_addrinfo(d9__addrinfo_fn callback)
{
	if (is_own((void *)callback))
		return callback;
	return d9__libevent_pool_wrap_addrinfo(callback, d9__libevent_thread()->site);
}

static d9__answer_fn span_of_answer(d9__answer_fn callback)
{
	if (is_own((void *)callback))
		return callback;
	return d9__libevent_pool_wrap_answer(callback, d9__libevent_thread()->site);
}

static d9__maker_fn span_of_maker(d9__maker_fn callback)
{
	if (is_own((void *)callback))
		return callback;
	return d9__libevent_pool_wrap_maker(callback, d9__libevent_thread()->site);
}

static d9__error_fn span_of_error(d9__error_fn callback)
{
	if (is_own((void *)callback))
		return callback;
	return d9__libevent_pool_wrap_error(callback, d9__libevent_thread()->site);
}

/*
 * UNDER(type, function, parameters, arguments): the real call, with the caller noted as site.
 * MAKES(what, ...): the same, and what it is that the function makes.
 */
#define UNDER(type, function, params, ...)                                                         \
	type d9__hook_##function params                                                            \
	{                                                                                          \
		D9__SCOPE();                                                                       \
                                                                                                   \
		return d9__real.function(__VA_ARGS__);                                             \
	}

#define MAKES(what, type, function, params, ...)                                                   \
	type d9__hook_##function params                                                            \
	{                                                                                          \
		D9__SCOPE_MAKING(D9__MAKING_##what);                                               \
                                                                                                   \
		return d9__real.function(__VA_ARGS__);                                             \
	}

/* ---- bufferevents ---- */

/* The evhttp server sets its own three times a request.  In a static libevent the scope tells. */
void d9__hook_bufferevent_setcb(struct bufferevent *bev, d9__pair_fn on_read, d9__pair_fn on_write,
				d9__bufferevent_event_fn on_event, void *arg)
{
	if (!d9__libevent_is_static() && is_own((void *)on_read) && is_own((void *)on_write) &&
	    is_own((void *)on_event)) {
		d9__real.bufferevent_setcb(bev, on_read, on_write, on_event, arg);
		return;
	}
	D9__SCOPE();
	d9__real.bufferevent_setcb(bev, span_of_pair(on_read), span_of_pair(on_write),
				   span_of_bufferevent_event(on_event), arg);
}

MAKES(BUFFEREVENT, struct bufferevent *, bufferevent_socket_new,
      (struct event_base *base, int fd, int options), base, fd, options)
MAKES(BUFFEREVENT, int, bufferevent_pair_new,
      (struct event_base *base, int options, struct bufferevent **pair), base, options, pair)
MAKES(BUFFEREVENT, struct bufferevent *, bufferevent_filter_new,
      (struct bufferevent *below, void *in, void *out, int options, void *release, void *arg),
      below, in, out, options, release, arg)
MAKES(TLS_BUFFEREVENT, struct bufferevent *, bufferevent_openssl_socket_new,
      (struct event_base *base, int fd, void *ssl, int state, int options), base, fd, ssl, state,
      options)
MAKES(TLS_BUFFEREVENT, struct bufferevent *, bufferevent_openssl_filter_new,
      (struct event_base *base, struct bufferevent *below, void *ssl, int state, int options),
      base, below, ssl, state, options)
MAKES(DNS, int, bufferevent_socket_connect_hostname,
      (struct bufferevent *bev, struct evdns_base *dns, int family, const char *name, int port),
      bev, dns, family, name, port)

MAKES(RATE_LIMIT, int, bufferevent_set_rate_limit, (struct bufferevent *bev, void *limit), bev,
      limit)
MAKES(RATE_LIMIT, void *, bufferevent_rate_limit_group_new,
      (struct event_base *base, const void *limit), base, limit)

/* ---- listeners ---- */

struct evconnlistener *d9__hook_evconnlistener_new(struct event_base *base,
						   d9__listener_fn callback, void *arg,
						   unsigned flags, int backlog, int fd)
{
	D9__SCOPE_MAKING(D9__MAKING_LISTENER);

	return d9__real.evconnlistener_new(base, span_of_listener(callback), arg, flags, backlog,
					   fd);
}

struct evconnlistener *d9__hook_evconnlistener_new_bind(struct event_base *base,
							d9__listener_fn callback, void *arg,
							unsigned flags, int backlog,
							const struct sockaddr *address, int len)
{
	D9__SCOPE_MAKING(D9__MAKING_LISTENER);

	return d9__real.evconnlistener_new_bind(base, span_of_listener(callback), arg, flags,
						backlog, address, len);
}

UNDER(void, evconnlistener_set_cb,
      (struct evconnlistener *listener, d9__listener_fn callback, void *arg), listener,
      span_of_listener(callback), arg)
UNDER(void, evconnlistener_set_error_cb, (struct evconnlistener *listener, d9__pair_fn callback),
      listener, span_of_pair(callback))

/* ---- HTTP ---- */

UNDER(int, evhttp_set_cb,
      (struct evhttp *http, const char *path, d9__pair_fn callback, void *arg), http, path,
      span_of_pair(callback), arg)
UNDER(void, evhttp_set_gencb, (struct evhttp *http, d9__pair_fn callback, void *arg), http,
      span_of_pair(callback), arg)
UNDER(struct evhttp_request *, evhttp_request_new, (d9__pair_fn callback, void *arg),
      span_of_pair(callback), arg)
UNDER(void, evhttp_request_set_chunked_cb, (struct evhttp_request *request, d9__pair_fn callback),
      request, span_of_pair(callback))
UNDER(void, evhttp_request_set_on_complete_cb,
      (struct evhttp_request *request, d9__pair_fn callback, void *arg), request,
      span_of_pair(callback), arg)
UNDER(void, evhttp_request_set_header_cb, (struct evhttp_request *request, d9__answer_fn callback),
      request, span_of_answer(callback))
UNDER(void, evhttp_request_set_error_cb, (struct evhttp_request *request, d9__error_fn callback),
      request, span_of_error(callback))
UNDER(void, evhttp_set_bevcb, (struct evhttp *http, d9__maker_fn callback, void *arg), http,
      span_of_maker(callback), arg)
UNDER(void, evhttp_connection_set_closecb,
      (struct evhttp_connection *connection, d9__pair_fn callback, void *arg), connection,
      span_of_pair(callback), arg)
UNDER(int, evhttp_bind_socket, (struct evhttp *http, const char *address, uint16_t port), http,
      address, port)
UNDER(void *, evhttp_bind_socket_with_handle,
      (struct evhttp *http, const char *address, uint16_t port), http, address, port)
UNDER(int, evhttp_accept_socket, (struct evhttp *http, int fd), http, fd)
UNDER(void *, evhttp_accept_socket_with_handle, (struct evhttp *http, int fd), http, fd)
UNDER(void *, evhttp_bind_listener, (struct evhttp *http, struct evconnlistener *listener), http,
      listener)
MAKES(HTTP, struct evhttp_connection *, evhttp_connection_base_new,
      (struct event_base *base, struct evdns_base *dns, const char *address, uint16_t port), base,
      dns, address, port)
MAKES(HTTP, struct evhttp_connection *, evhttp_connection_base_bufferevent_new,
      (struct event_base *base, struct evdns_base *dns, struct bufferevent *bev,
       const char *address, uint16_t port),
      base, dns, bev, address, port)
MAKES(HTTP, int, evhttp_make_request,
      (struct evhttp_connection *connection, struct evhttp_request *request, int method,
       const char *uri),
      connection, request, method, uri)

/* ---- DNS ---- */

MAKES(DNS, struct evdns_base *, evdns_base_new, (struct event_base *base, int flags), base, flags)
MAKES(DNS, int, evdns_base_nameserver_add, (struct evdns_base *dns, unsigned long address), dns,
      address)
MAKES(DNS, int, evdns_base_nameserver_ip_add, (struct evdns_base *dns, const char *address), dns,
      address)
MAKES(DNS, int, evdns_base_nameserver_sockaddr_add,
      (struct evdns_base *dns, const struct sockaddr *address, unsigned len, unsigned flags), dns,
      address, len, flags)
MAKES(DNS, struct evdns_request *, evdns_base_resolve_ipv4,
      (struct evdns_base *dns, const char *name, int flags, d9__dns_fn callback, void *arg), dns,
      name, flags, span_of_dns(callback), arg)
MAKES(DNS, struct evdns_request *, evdns_base_resolve_ipv6,
      (struct evdns_base *dns, const char *name, int flags, d9__dns_fn callback, void *arg), dns,
      name, flags, span_of_dns(callback), arg)
MAKES(DNS, struct evdns_request *, evdns_base_resolve_reverse,
      (struct evdns_base *dns, const void *address, int flags, d9__dns_fn callback, void *arg),
      dns, address, flags, span_of_dns(callback), arg)
MAKES(DNS, struct evdns_request *, evdns_base_resolve_reverse_ipv6,
      (struct evdns_base *dns, const void *address, int flags, d9__dns_fn callback, void *arg),
      dns, address, flags, span_of_dns(callback), arg)
MAKES(DNS, void *, evdns_getaddrinfo,
      (struct evdns_base *dns, const char *node, const char *service, const void *hints,
       d9__addrinfo_fn callback, void *arg),
      dns, node, service, hints, span_of_addrinfo(callback), arg)
MAKES(DNS_SERVER, struct evdns_server_port *, evdns_add_server_port_with_base,
      (struct event_base *base, int fd, int flags, d9__pair_fn callback, void *arg), base, fd,
      flags, span_of_pair(callback), arg)

/* ---- libevent registers something of its own, under the base lock ---- */

UNDER(int, event_base_loopexit, (struct event_base *base, const struct timeval *timeout), base,
      timeout)
MAKES(NOTIFIER, int, evthread_make_base_notifiable, (struct event_base *base), base)
MAKES(COMMON_TIMEOUT, const struct timeval *, event_base_init_common_timeout,
      (struct event_base *base, const struct timeval *duration), base, duration)
