/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limit connections. libevent's HTTP server does not tell when one ends, so they are known by their
 * descriptors and the kernel's cookies: another cookie is another connection.  One is closed by
 * shutdown(2), which looks to libevent like a client that has left.
 */
#include "config.h"

#include "serve/guard.h"

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/time.h"

#define CONNECTIONS_MAX 448 /* in all */
#define CLIENT_MAX	384 /* of one address */
#define FDS		4096
#define PENDING_MAX	64

/*
 * The time between two requests, and for sending one: for clients that have shown the token, and
 * for others.
 */
#define KNOWN_MS   60000
#define UNKNOWN_MS 10000

struct connection {
	bool used, known, busy;
	uint64_t cookie, since_ms;
	uint8_t address[16];
};

struct d9__guard {
	struct event *look, *accepted; /* owned */
	struct bufferevent
		*pending[PENDING_MAX]; /* accepted just now; their descriptors are not set yet */
	size_t n_pending, n;	       /* |n|: connections, some of which may have ended */
	struct connection connections[FDS]; /* by descriptor */
};

static uint64_t now_ms(void)
{
	return d9__mono_ns() / D9__MS_NS;
}

static uint64_t cookie_of(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &len) ? 0 : cookie;
}

static void read_address(int fd, uint8_t out[16])
{
	struct sockaddr_storage peer = { 0 };
	socklen_t len = sizeof(peer);

	memset(out, 0, 16);
	if (getpeername(fd, (struct sockaddr *)&peer, &len))
		return;
	if (peer.ss_family == AF_INET)
		memcpy(out, &((struct sockaddr_in *)&peer)->sin_addr, sizeof(struct in_addr));
	else if (peer.ss_family == AF_INET6)
		memcpy(out, &((struct sockaddr_in6 *)&peer)->sin6_addr, sizeof(struct in6_addr));
}

static bool is_open(struct d9__guard *guard, int fd)
{
	struct connection *connection = &guard->connections[fd];

	if (connection->used && cookie_of(fd) != connection->cookie) {
		connection->used = false;
		guard->n--;
	}
	return connection->used;
}

static void end(struct d9__guard *guard, int fd)
{
	shutdown(fd, SHUT_RDWR);
	guard->connections[fd].used = false;
	guard->n--;
}

/*
 * Find the connection that gives way, of |address| if that is not NULL; -1: none does.  |*n| gets
 * their number.
 */
static int weakest(struct d9__guard *guard, const uint8_t *address, size_t *n)
{
	int found = -1;

	*n = 0;
	for (int fd = 0; fd < FDS; fd++) {
		const struct connection *connection = &guard->connections[fd],
					*best = &guard->connections[found < 0 ? 0 : found];

		if (!is_open(guard, fd) || (address && memcmp(connection->address, address, 16)))
			continue;
		++*n;
		if (!connection->busy &&
		    (found < 0 || connection->known < best->known ||
		     (connection->known == best->known && connection->since_ms < best->since_ms)))
			found = fd;
	}
	return found;
}

static void make_room(struct d9__guard *guard, const uint8_t *address)
{
	size_t n;
	int fd = weakest(guard, address, &n);

	if (n > CLIENT_MAX && fd >= 0)
		end(guard, fd);
	fd = weakest(guard, NULL, &n);
	if (n > CONNECTIONS_MAX && fd >= 0)
		end(guard, fd);
}

static void add(struct d9__guard *guard, int fd)
{
	static const int on = 1;
	struct connection *connection;

	if (fd < 0)
		return;
	if (fd >= FDS) {
		shutdown(fd, SHUT_RDWR);
		return;
	}
	/* libevent writes an answer in pieces: without this the kernel keeps the last one back
	 * until the client has acknowledged those before, 40 ms later. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	connection = &guard->connections[fd];
	guard->n += !connection->used;
	*connection =
		(struct connection) { .used = true, .cookie = cookie_of(fd), .since_ms = now_ms() };
	read_address(fd, connection->address);
	if (guard->n > CLIENT_MAX)
		make_room(guard, connection->address);
}

static void on_accepted(evutil_socket_t none, short what, void *context)
{
	struct d9__guard *guard = context;

	(void)none;
	(void)what;
	for (size_t i = 0; i < guard->n_pending; i++)
		add(guard, bufferevent_getfd(guard->pending[i]));
	guard->n_pending = 0;
}

/* libevent asks for the buffers of a connection that it has accepted, and gives them its descriptor
 * when we return. */
static struct bufferevent *on_accept(struct event_base *base, void *context)
{
	struct d9__guard *guard = context;
	struct bufferevent *buffers;

	/* The descriptors of all before it are set, and none of them was read from yet. */
	if (guard->n_pending == PENDING_MAX)
		on_accepted(-1, 0, guard);
	buffers = bufferevent_socket_new(base, -1, 0);
	if (buffers) {
		guard->pending[guard->n_pending++] = buffers;
		event_active(guard->accepted, EV_TIMEOUT, 0);
	}
	return buffers;
}

static void on_look(evutil_socket_t none, short what, void *context)
{
	struct d9__guard *guard = context;
	uint64_t now = now_ms();

	(void)none;
	(void)what;
	for (int fd = 0; fd < FDS && guard->n; fd++) {
		const struct connection *connection = &guard->connections[fd];

		if (is_open(guard, fd) && !connection->busy &&
		    now - connection->since_ms > (connection->known ? KNOWN_MS : UNKNOWN_MS))
			end(guard, fd);
	}
}

static struct connection *connection_of(struct d9__guard *guard, struct evhttp_request *request)
{
	struct evhttp_connection *from = evhttp_request_get_connection(request);
	int fd = from ? bufferevent_getfd(evhttp_connection_get_bufferevent(from)) : -1;

	return fd >= 0 && fd < FDS && is_open(guard, fd) ? &guard->connections[fd] : NULL;
}

static void on_answered(struct evhttp_request *request, void *context)
{
	struct connection *connection = connection_of(context, request);

	if (!connection)
		return;
	connection->busy = false;
	connection->since_ms = now_ms();
}

void d9__guard_admit(struct d9__guard *guard, struct evhttp_request *request)
{
	struct connection *connection = connection_of(guard, request);

	if (!connection)
		return;
	connection->known = connection->busy = true;
	evhttp_request_set_on_complete_cb(request, on_answered, guard);
}

struct d9__guard *d9__guard_new(struct event_base *base, struct evhttp *http)
{
	static const struct timeval every = { .tv_sec = 1 };
	struct d9__guard *guard = calloc(1, sizeof(*guard));

	if (!guard)
		return NULL;
	guard->look = event_new(base, -1, EV_PERSIST, on_look, guard);
	guard->accepted = event_new(base, -1, 0, on_accepted, guard);
	if (!guard->look || !guard->accepted || event_add(guard->look, &every)) {
		d9__guard_free(guard);
		return NULL;
	}
	evhttp_set_bevcb(http, on_accept, guard);
	return guard;
}

void d9__guard_free(struct d9__guard *guard)
{
	if (!guard)
		return;
	if (guard->look)
		event_free(guard->look);
	if (guard->accepted)
		event_free(guard->accepted);
	free(guard);
}
